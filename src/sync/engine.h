/* SPDX-License-Identifier: MIT */
/*
 * The engine behind vez/monitor.h, as vez's own synchronizers use it.
 *
 * They differ from a user's in two things: they keep their state in the upper bits of the monitor's word, so that a
 * fast path is one exchange on it; and others may change that state while somebody is inside (a release does not wait).
 * So who leaves looks at the very word that its leaving exchange expects (serve), and who gives up takes its claim back
 * first (withdraw).
 */
#ifndef VEZ__ENGINE_H
#define VEZ__ENGINE_H

#include "../futex/atomic.h"
#include "../futex/lock.h"
#include "../futex/word.h"
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
	/* r gives up: takes back what it claims. False: it was settled instead. */
	bool (*withdraw)(vez_monitor_t *m, vez_request_t *r);
	/* The requests are always settled together: those without a token sleep as a cohort, woken by one system call. */
	bool cohort;
};

/* Leaves when there is nothing left to serve; then publishes all that was settled inside. */
void vez__monitor_leave(vez_monitor_t *m, const struct vez__ops *ops);

/* Inside: makes r ready to be queued and enlists it with the token, which may be NULL. False: the token is fired. Once
 * it said true, the request must be inserted before the monitor is left. */
bool vez__request_prepare(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops,
			  vez_cancel_t *cancel);

/* Inside: puts a prepared request in its room, by its key. */
void vez__request_insert(vez_request_t *r);

/* Inside: takes r, whose thread is the caller or is coming in, out of its room with this result. */
void vez__request_settle_own(vez_request_t *r, int result);

/* Inside: tells the thread of r, which stays queued, to come in and look (ops->look). False: it or another thread is
 * coming because of r already, and will serve. One poke at a time. */
bool vez__request_poke(vez_monitor_t *m, vez_request_t *r);

/* Inside, the request's thread (look): it looks again at this moment, if nothing happens before. */
void vez__request_look_again(vez_request_t *r, vez_deadline_t at);

/* Inside, the request's thread, which looked in vain: whether it has been passed over for long enough (1 ms since it
 * first looked in vain); if not, it looks again by then. True once. */
bool vez__request_lost_patience(vez_request_t *r);

/* Inside: takes r out of its room without settling it, to be moved to a room of another monitor, where its limits apply
 * no more. Until then it is the caller's. False: its thread or one that fired its token is coming; settle it here
 * instead. */
bool vez__request_take_out(vez_request_t *r);

/* Inside m: puts a request that was taken out of another monitor's room in this one, last. */
void vez__request_move_in(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, const struct vez__ops *ops);

/* Inside: r stays queued until it is settled: its limits apply no more, not even to who is coming in because of one. */
void vez__request_keep(vez_request_t *r);

/* Inside, for destroy: leaves with EBUSY if a request is queued or held says so. Otherwise leaves and returns 0 when
 * every thread that was still to come in because of a settled request has been here: from then on nobody touches the
 * monitor. */
int vez__monitor_retire(vez_monitor_t *m, const struct vez__ops *ops, bool held);

/* Whether r has been settled. Inside. */
bool vez__request_settled(const vez_request_t *r);

/* Outside, the request's thread: sleeps until r is settled, or gives up at the deadline. Returns the result. */
int vez__request_await(vez_request_t *r, vez_deadline_t deadline);

/* The thread that fires a token and found that it has to end r: enters r's monitor and does so. */
void vez__request_cancel_fired(vez_request_t *r);

/* Enlists r with its token r->cancel_: false, and not enlisted, if that is fired. Takes no lock. */
bool vez__cancel_enlist(vez_request_t *r);

/* Takes r off its token's list, if it has a token that did not take it off itself. */
void vez__cancel_delist(vez_request_t *r);

/* ECANCELED, ETIMEDOUT or 0: whether a wait with these limits may begin. */
int vez__limits_refuse(vez_deadline_t deadline, const vez_cancel_t *cancel);

/* Whether it has passed; reads the clock only if it must. */
bool vez__deadline_passed(vez_deadline_t deadline);

#endif
