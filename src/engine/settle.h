/* SPDX-License-Identifier: MIT */
/* A request is settled: its result is decided, inside the core of its object. */
#ifndef VEZ__SETTLE_H
#define VEZ__SETTLE_H

#include "core.h"
#include "winner.h"

/* A request's state_; settle.c says what it means. */
#define VEZ__QUEUED 1u
#define VEZ__KEPT 2u
#define VEZ__FIRE_COMES 4u
#define VEZ__FIRE_CAME 8u
#define VEZ__EXPECTED 16u
#define VEZ__FILING 32u
#define VEZ__WON 64u
#define VEZ__LATE 128u
#define VEZ__ARRIVING 256u
#define VEZ__OWN 512u
#define VEZ__SPENT 1024u
#define VEZ__TIRELESS 2048u
#define VEZ__ATTEMPT 4096u
/* and VEZ__JUMPS, of room.h: 8192u */

static inline const struct vez__rules *vez__rules_of(const vez_request_t *r)
{
	return r->rules_;
}

static inline struct vez__core *vez__core_of(const vez_request_t *r)
{
	size_t queue = r->rules_->queue;
	if (queue == VEZ__IN_ROOM) /* outside, another thread may just be moving it to another room of the monitor */
		return &((vez_room_t *)vez__load(&r->queue_, acquire))->monitor_->core_;
	return (struct vez__core *)((char *)r->queue_ - queue);
}

/* Whether no thread waits for r: nobody could retry. */
static inline bool vez__is_async(const vez_request_t *r)
{
	return r->how_ & VEZ__IS_ASYNC;
}

static inline bool vez__is_settled(const vez_request_t *r)
{
	return !(r->state_ & VEZ__QUEUED);
}

/* Whether r must be queued and served there even if it could be granted at once: it belongs to a wait-for-any, and only
 * what is served from a queue is granted exactly if it wins. */
static inline bool vez__must_queue(const vez_request_t *r)
{
	return vez__is_member(r);
}

/* Whether somebody is entering to end it. */
static inline bool vez__is_leaving(const vez_request_t *r)
{
	return !vez__word_is_free(vez__load(&r->word_, relaxed));
}

/* Whether the word tells of those who are queued, by waiting and each. */
static inline bool vez__is_marked(const struct vez__rules *rules)
{
	return rules->waiting | rules->each;
}

/* Inside, where by seen nothing is left to serve: takes back what the word says of r, which is to leave its queue
 * without being granted. False: the state has changed, nothing was done. */
bool vez__roll_back(struct vez__stay *in, uint64_t seen, vez_request_t *r);

/* Inside: r is in this queue of the core from now on, by its key, or last; its rules are known. */
void vez__insert(struct vez__core *c, vez_request_t *r);
void vez__append(struct vez__core *c, vez_request_t *r);

/* Whether r, which can be granted, is to be: from then on it must be. False: it belongs to a wait-for-any that is won
 * by another member, and must be dropped. */
bool vez__win(vez_request_t *r);

/* The same for two that meet: both are to be, or one of them has lost. */
enum vez__lost vez__win_both(vez_request_t *first, vez_request_t *second);

/* The first count requests of the queue win, where one that has lost is dropped. False: look again. */
bool vez__win_all(struct vez__stay *in, uint64_t seen, vez_request_t *const *queue, size_t count);

/* For serve: r has lost: its reservation is rolled back and it leaves its queue. True. */
bool vez__drop(struct vez__stay *in, uint64_t seen, vez_request_t *r);

/* Decides the result of r, which is queued, and takes it out of its queue. False: it belongs to a wait-for-any that is
 * won, and gets nothing. */
bool vez__settle(struct vez__stay *in, vez_request_t *r, int result);

/* Settles all requests of a queue with this result. */
void vez__settle_all(struct vez__stay *in, vez_request_t *const *queue, int result);

/* The same with 0, if nobody is entering because of r, so that nobody will who could see the result before it is
 * published; *granted as vez__settle says. False: somebody is, and will end it. */
bool vez__settle_unless_leaving(struct vez__stay *in, vez_request_t *r, bool *granted);

/* By a thread that has entered because of r, which it then sees to: takes r out of its queue with this result. False:
 * it has lost. */
bool vez__settle_own(vez_request_t *r, int result);

/* The result of r, which is or was queued nowhere. False: it has lost. */
bool vez__decide(vez_request_t *r, int result);

/* Says in the word that r is settled. Returns the word before. */
uint32_t vez__note_settled(vez_request_t *r);

/* r, which is settled, is completed by the leaver; or it is expected that somebody takes it. */
void vez__complete_pending(struct vez__stay *in, vez_request_t *r);
void vez__expect_for(struct vez__stay *in, vez_request_t *r);

/* Takes r out of its queue without settling it, to be moved to one of another core, where its limits apply no more.
 * Until then it is the caller's. False: a thread is entering because of a limit; settle it here instead. */
bool vez__take_out(vez_request_t *r);

/* Puts a request that was taken out of another core's queue in the one of these rules, last of those with key 0. */
void vez__move_in(struct vez__stay *in, const struct vez__rules *rules, vez_request_t *r);

/* r, which is queued, is in no queue from here on, and not counted, but can still give up: rules->roll_back then, and
 * whoever may settle it, first puts it back (vez__insert). For one that was only prepared, or is in its queue. */
void vez__set_aside(vez_request_t *r);

/* Inside: puts r, which is queued, in another room of the same monitor, by its key. */
void vez__move_to_room(struct vez__core *c, vez_request_t **queue, vez_request_t *r);

/* r stays queued until it is settled: its limits apply no more, not even to a thread that is entering because of
 * one. */
void vez__keep(vez_request_t *r);

/* Tells the thread of r, which stays queued, to enter and retry (rules->retry). False: it or another thread is entering
 * because of r already, and will serve. */
bool vez__ask_to_retry(struct vez__stay *in, vez_request_t *r);

/* For probes, if they are there: the word by which the thread of r is known. */
static inline const void *vez__probed_word(const vez_request_t *r)
{
	return vez__is_async(r) ? NULL : &r->word_;
}

#define VEZ__PROBE_REQUEST(name, r, value) \
	VEZ__PROBE4(name, vez__object_of(vez__core_of(r), vez__rules_of(r)), r, vez__probed_word(r), value)

#endif
