/* SPDX-License-Identifier: MIT */
/*
 * A request is filed: the steps that every synchronizer takes from a call to a queued request, in one place.
 *
 *	file: enter; until it is decided: serve, take what can be had (rules->take); if it must wait: prepare, mark the
 *	      word (rules->mark), insert; leave
 *
 * A blocking call is the asynchronous one on a request of its own plus vez__await.
 */
#ifndef VEZ__FILING_H
#define VEZ__FILING_H

#include <errno.h>

#include "await.h"

/* Inside, where r must wait: marks the word, and queues r. EINPROGRESS; ECANCELED: its token is fired; or what a member
 * of a wait-for-any has got already. */
int vez__queue_inside(struct vez__stay *in, const struct vez__rules *rules, vez_request_t *r);

/* Enters, serves, takes what r wants if it can be had, and leaves. */
int vez__attempt_inside(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r);

/* One attempt without waiting, by these rules, for a request with this value. */
static inline int vez__attempt(struct vez__core *c, const struct vez__rules *rules, uint64_t value)
{
	vez_request_t r;
	vez__request_init_local(&r, 0, NULL);
	r.value_ = value;
	r.rules_ = rules;
	return rules->attempt(c, &r);
}

/* The slow part of a blocking call whose request would have this key, value and pointer: waits, or, if the deadline has
 * passed, makes one attempt. */
int vez__wait(struct vez__core *c, const struct vez__rules *rules, const vez_request_t *like, vez_deadline_t deadline);

/* r was never queued: nobody waits for it, and it has no run. */
static inline void vez__done_at_once(vez_request_t *r)
{
	vez__store(&r->word_, VEZ__DONE, release);
}

/* Whether an asynchronous call gets what r wants by the fast path, and is over. False: not, or r has a deadline, is a
 * member of a wait-for-any, or has a token that has fired; then r is as it was. */
static inline bool vez__granted_at_once(struct vez__core *c, bool (*fast)(struct vez__core *c, vez_request_t *r),
					vez_request_t *r)
{
	uint16_t completes = r->how_ & VEZ__COMPLETES;
	if (completes == VEZ__MEMBER || vez__timer_is_set(&r->timer_) || vez__is_fired(r->cancel_) || !fast(c, r))
		return false;
	r->state_ = 0;
	r->how_ = completes | VEZ__IS_ASYNC;
	r->at_.result_ = 0;
	vez__done_at_once(r);
	return true;
}

/* A whole asynchronous call, whose request has its value and pointer. */
int vez__file_async(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r);

/* The same for one that is refused at once. */
int vez__refuse_async(vez_request_t *r, int rc);

/* Begins an asynchronous call on this request. 0; or why it ends before it began: to be handed to vez__async_end all
 * the same. */
int vez__async_begin(vez_request_t *r);

/* The same inside a user's monitor, where no thread is made: its deadline needs one (clock.h). */
int vez__async_begin_inside(vez_request_t *r);

/* Ends it with this code, which is the request's result unless it is EINPROGRESS; returns what the call returns. */
int vez__async_end(vez_request_t *r, int rc);

/* Whether what cannot be had on the fast path is to be filed. False: its deadline has passed, so one
 * attempt decides. */
static inline bool vez__async_waits(const vez_request_t *r)
{
	return vez__is_member(r) || !vez__is_late(r);
}

/* What an attempt comes to when there is no time left. */
static inline int vez__no_time_left(int rc)
{
	return rc == EBUSY ? ETIMEDOUT : rc;
}

#endif
