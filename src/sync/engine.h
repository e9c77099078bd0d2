/* SPDX-License-Identifier: MIT */
/*
 * The engine behind vez/monitor.h, as vez's own synchronizers use it.
 *
 * They differ from a user's in two things: they keep their state in the upper bits of the monitor's word, so that a
 * fast path is one exchange on it; and others may change that state while somebody is inside (a release does not wait).
 * So who leaves looks at the very word that its leaving exchange expects (serve), and who gives up takes its claim back
 * by such a word, too (take_back).
 *
 * A blocking call is the asynchronous one on a request of its own (vez__request_mine) plus vez__request_await:
 *
 *	file(object, arguments, r):  enter; what can be had at once is had; else vez__request_prepare, mark the word,
 *	                             vez__request_insert, vez__request_serve; leave; vez__request_filed
 */
#ifndef VEZ__ENGINE_H
#define VEZ__ENGINE_H

#include "../futex/atomic.h"
#include "../futex/lock.h"
#include "../futex/word.h"
#include "inspect.h"
#include "select.h"
#include "vez/cancel.h"
#include "vez/monitor.h"
#include "vez/request.h"

/* How a synchronizer takes part. All run inside; each may be NULL. */
struct vez__ops {
	/* The state reads seen: carries out one thing that can be done now (grants a request, corrects a mark).
	 * True: something was done, or the state has changed; look again. False: nothing is left to do. */
	bool (*serve)(vez_monitor_t *m, uint64_t seen);
	/* A thread that was poked, or whose limit has passed, is here. */
	void (*came)(vez_monitor_t *m);
	/* The thread of r, which was poked, is here: settles r (vez__request_settle_own) if it can go now. */
	void (*look)(vez_monitor_t *m, vez_request_t *r);
	/* r, which is queued, is to leave without being granted, and by seen nothing is left to serve: takes back what
	 * it claims. False: the state has changed, nothing was done. */
	bool (*take_back)(vez_monitor_t *m, uint64_t seen, vez_request_t *r);
	/* Serve puts in its room what arrives from outside, and may set deadlines: who leaves tells the clock. */
	bool gathers;
	/* What the object is, and where in it the monitor lies. */
	enum vez__type type;
	size_t offset;
};

/* Waits until nobody else is inside, and enters. */
static inline void vez__monitor_enter(vez_monitor_t *m)
{
	vez__lock_enter(&m->word_);
}

/* Leaves when there is nothing left to serve; then publishes all that was settled inside. */
void vez__monitor_leave(vez_monitor_t *m, const struct vez__ops *ops);

/* Inside: whether nothing was settled or poked that is still to be published. */
static inline bool vez__monitor_owes_nothing(const vez_monitor_t *m)
{
	return !m->settled_[0] && !m->cohort_ && !m->async_ && !m->poked_;
}

/* What was settled in monitors that have been left, and is not published yet; all zero: nothing. */
struct vez__owed {
	vez_request_t *settled[2];
	vez_request_t *async;
};

/* Leaves a monitor that serves nobody and from which nobody is poked: the caller owes what was settled, after what it
 * owes already, and publishes it with vez__pay. */
void vez__monitor_leave_owing(vez_monitor_t *m, struct vez__owed *owed);
void vez__pay(const struct vez__owed *owed);

/* Leaves a monitor of vez's own that serves nobody. */
static inline void vez__monitor_exit(vez_monitor_t *m)
{
	vez__monitor_leave(m, NULL);
}

/* Inside, for destroy: leaves with EBUSY if a request is queued or held says so. Otherwise leaves and returns 0 when
 * everyone who was still to come in because of a settled request has been here: from then on nobody touches
 * the monitor. */
int vez__monitor_retire(vez_monitor_t *m, const struct vez__ops *ops, bool held);

/* ---- a request is filed ---- */

/* Makes the caller's own request, which vez__request_await waits for. Its value and pointer are the caller's to set. */
static inline void vez__request_mine(vez_request_t *r, int64_t key, vez_cancel_t *cancel)
{
	r->word_ = 0;
	r->state_ = 0;
	r->kind_ = 0;
	r->key_ = key;
	r->timer_.at_ = 0;
	r->cancel_ = cancel;
}

/* Begins an asynchronous call on this request. 0; or why it ends before it began: to be handed to vez__async_end all
 * the same. */
int vez__async_begin(vez_request_t *r);

/* Ends it with this code, which is the request's result unless it is EINPROGRESS; returns what the call returns. */
int vez__async_end(vez_request_t *r, int rc);

/* Whether what cannot be had on the fast path is to be filed. False: its deadline has passed, so one
 * attempt decides. */
bool vez__async_waits(const vez_request_t *r);

/* What an attempt comes to when there is no time left. */
static inline int vez__no_time_left(int rc)
{
	return rc == EBUSY ? ETIMEDOUT : rc;
}

/* Whether r must be queued and served there even if it could be granted at once: it belongs to a wait-for-any, and only
 * who is served from a room is granted exactly if its wait is not won. */
bool vez__request_must_queue(const vez_request_t *r);

/* Before it is prepared: r will always be settled together with others: those without a token and with a thread sleep
 * as the cohort of m, woken by one system call. */
void vez__request_in_cohort(vez_monitor_t *m, vez_request_t *r);

/* Inside: makes r ready to be queued in this room of m and enlists it with its token. False: the token is fired. Once
 * it said true, the request must be inserted before the monitor is left. */
bool vez__request_prepare(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops);


/* Inside: puts a prepared request in its room, by its key. */
void vez__request_insert(vez_request_t *r);

/* The same, last, whatever its key says. */
void vez__request_insert_last(vez_request_t *r);

/* The same in two steps, where a request arrives from outside: it becomes one of this room before it is pushed; it is
 * put there, last, with its limits, inside; or settled, if its token is fired. */
void vez__request_arrive(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops);
void vez__request_gather(vez_monitor_t *m, vez_request_t *r);

/* Inside, after insertion: serves, if r must not be left to who leaves (vez__request_must_queue), and ends it if its
 * deadline has passed. EINPROGRESS, or the result that r has got already. */
int vez__request_filed(vez_monitor_t *m, vez_request_t *r);

/* Outside, the request's thread: sleeps until r is settled, or gives up at the deadline. Returns the result. */
int vez__request_await(vez_request_t *r, vez_deadline_t deadline);

/* ---- inside ---- */

/* Whether r, which can be granted, is to be: from then on it must be. False: it belongs to a wait-for-any that is won,
 * and must be dropped. */
bool vez__request_claim(vez_request_t *r);

/* The same for two that meet: both are to be, or one of them is lost. */
enum vez__lost vez__request_claim_both(vez_request_t *first, vez_request_t *second);

/* The first count requests of the room are claimed, where who is lost is dropped. False: look again. */
bool vez__room_claim(vez_monitor_t *m, uint64_t seen, vez_room_t *room, size_t count);

/* For serve: r is lost (vez__request_claim): it takes back what it claims and leaves its room. True. */
bool vez__request_drop(vez_monitor_t *m, uint64_t seen, vez_request_t *r);

/* Whether r has no thread: nobody could look. */
bool vez__request_is_async(const vez_request_t *r);

/* Whether r has been settled. */
bool vez__request_settled(const vez_request_t *r);

/* Settles r with 0, if nobody is coming for it, so that nobody will who could see the result before it is published;
 * *granted as vez_monitor_settle says. False: somebody is, and will end it. */
bool vez__request_take(vez_monitor_t *m, vez_request_t *r, bool *granted);

/* Whether somebody is coming to end it. */
bool vez__request_is_leaving(const vez_request_t *r);

/* Takes r, whose thread is the caller or is coming in, out of its room with this result. */
void vez__request_settle_own(vez_request_t *r, int result);

/* Tells the thread of r, which stays queued, to come in and look (ops->look). False: it or another thread is coming
 * because of r already, and will serve. One poke at a time. */
bool vez__request_poke(vez_monitor_t *m, vez_request_t *r);

/* The request's thread (look): it looks again at this moment, if nothing happens before. */
void vez__request_look_again(vez_request_t *r, vez_deadline_t at);

/* The request's thread, which looked in vain: whether it has been passed over for long enough (1 ms since it first
 * looked in vain); if not, it looks again by then. True once. */
bool vez__request_lost_patience(vez_request_t *r);

/* Takes r out of its room without settling it, to be moved to a room of another monitor, where its limits apply
 * no more. Until then it is the caller's. False: its thread or one that fired its token is coming; settle it
 * here instead. */
bool vez__request_take_out(vez_request_t *r);

/* Inside m: puts a request that was taken out of another monitor's room in this one, last. */
void vez__request_move_in(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops);

/* r stays queued until it is settled: its limits apply no more, not even to who is coming in because of one. */
void vez__request_keep(vez_request_t *r);

/* A stack of requests, linked by place_[0], the latest first: from now on a list, the oldest first. */
static inline vez_request_t *vez__oldest_first(vez_request_t *latest)
{
	vez_request_t *oldest = NULL;
	while (latest) {
		vez_request_t *older = latest->place_[0];
		latest->place_[0] = oldest;
		oldest = latest;
		latest = older;
	}
	return oldest;
}

/* ---- a request is ended ---- */

/* Who fires a token and found that it has to end r: enters r's monitor and does so. */
void vez__request_cancel_fired(vez_request_t *r);

/* Whoever claimed r (vez__word_claim) comes in and ends it with this cause, unless it is settled. True: so it ended,
 * and it has completed or will by the caller's thread. r is its owner's again. */
bool vez__request_end_claimed(vez_request_t *r, int cause);

/* Enlists r with its token r->cancel_: false, and not enlisted, if that is fired. Takes no lock. */
bool vez__cancel_enlist(vez_request_t *r);

/* Takes r off its token's list, if it has a token that did not take it off itself. */
void vez__cancel_delist(vez_request_t *r);

/* ECANCELED, ETIMEDOUT or 0: whether a wait with these limits may begin. */
int vez__limits_refuse(vez_deadline_t deadline, const vez_cancel_t *cancel);

/* Whether it has passed; reads the clock only if it must. */
bool vez__deadline_passed(vez_deadline_t deadline);

#endif
