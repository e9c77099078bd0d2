/* SPDX-License-Identifier: MIT */
/* A request is queued: its thread waits, or it ends before its time. */
#ifndef VEZ__AWAIT_H
#define VEZ__AWAIT_H

#include "../futex/futex.h"
#include "agenda.h"
#include "completion.h"
#include "settle.h"
#include "token.h"

/* Makes the caller's own request, which vez__await waits for. Its value and pointer are the caller's to set. */
static inline void vez__request_init_local(vez_request_t *r, int64_t key, vez_cancel_t *cancel)
{
	r->word_ = 0;
	r->state_ = 0;
	r->how_ = 0;
	r->key_ = key;
	r->timer_.at_ = 0;
	r->cancel_ = cancel;
}

/* Inside: makes r ready to be queued here and enlists it with its token. False: the token is fired. Once it said true,
 * the request must be inserted before the core is left. */
bool vez__prepare(struct vez__core *c, const struct vez__rules *rules, vez_request_t **queue, vez_request_t *r);

/* Where rules say where the queue is. */
static inline vez_request_t **vez__queue_at(struct vez__core *c, const struct vez__rules *rules)
{
	return (vez_request_t **)((char *)c + rules->queue);
}

/* The same in two steps, where a request arrives from outside: it becomes one of this queue before it is pushed; it is
 * put there, last, with its limits, inside; or settled, if its token is fired. */
void vez__arrive(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r);
void vez__gather(struct vez__stay *in, vez_request_t *r);

/* Whether its deadline has passed. */
bool vez__is_late(const vez_request_t *r);

/* Outside, the request's thread: sleeps until r is settled, or gives up at the deadline. Returns the result. */
int vez__await(vez_request_t *r, vez_deadline_t deadline);

/* Inside a core on which only threads wait, holding: waits there for what, and leaves both; for inspection it waits for
 * this object. 0, ETIMEDOUT or ECANCELED. */
int vez__wait_holding(struct vez__stay *in, const struct vez__rules *rules, void *what, const void *object,
		      vez_deadline_t deadline, vez_cancel_t *cancel);

/* Inside, after insertion, for a member of a wait-for-any: serves, and ends it if its deadline has passed. EINPROGRESS,
 * or the result that r has got already. */
int vez__member_filed(struct vez__stay *in, vez_request_t *r);

/* Inside, whoever announced that it ends r: ends it with this cause, unless it is settled. True: so it ended, and
 * nobody else has to enter. */
bool vez__end_inside(struct vez__stay *in, vez_request_t *r, int cause);

/* By a thread that fires a token and found that it has to end r: enters the core of r and does so. */
void vez__end_fired(vez_request_t *r);

/* By whoever announced that it ends r (vez__word_announce_end): enters, and ends it with this cause, unless it is
 * settled. True: so it ended, and it has completed or will by the caller's thread. r is its owner's again. */
bool vez__end_announced(vez_request_t *r, int cause);

/* The request's thread (rules->retry): it retries at this moment, if nothing happens before. */
static inline void vez__retry_at(vez_request_t *r, vez_deadline_t at)
{
	vez__timer_to(&r->timer_, at);
}

/* ECANCELED, ETIMEDOUT or 0: whether a wait with these limits may begin. */
int vez__limits_refuse(vez_deadline_t deadline, const vez_cancel_t *cancel);

static inline bool vez__is_fired(const vez_cancel_t *cancel)
{
	return cancel && vez__token_is_fired(cancel);
}

/* The same on fast paths, where nothing is told: the slow one asks again. */
static inline bool vez__is_fired_fast(const vez_cancel_t *cancel)
{
	return cancel && (vez__load_fast(&cancel->arrivals_, relaxed) & VEZ__TOKEN_FIRED);
}

#endif
