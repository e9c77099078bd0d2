/* SPDX-License-Identifier: MIT */
/*
 * vez/monitor.h - build your own synchronizer
 *
 * A monitor is a short lock around a synchronizer's state. A room is a queue of requests that wait there. Who cannot go
 * on files a request in a room and sleeps on the request's own word; who changes the state carries out, inside the
 * monitor, every request that can now go (vez_monitor_settle) and so decides its result. Leaving the monitor then
 * wakes exactly those threads, and each returns from vez_monitor_wait with its result and without taking a lock.
 * There is nothing to check again and nobody who looks in vain.
 *
 *	acquire(n):  enter; if nobody waits and n are free, take them and exit; else wait in the room
 *	release(n):  enter; add n; while the first in the room can go: take its permits, settle it; exit
 *	gave_up:     a request has left by deadline or token: settle whom it held back
 *
 * README.md has this semaphore whole. Sources: execution delegation and specific notification (C. Martins, 2009), on
 * the monitors of Hoare (1974).
 *
 * The state that is waited for is looked at and changed inside, in the same stay in which the request is queued or the
 * others are settled. vez_room_length() == 0, read outside, is no reason not to enter and look: somebody may have
 * looked already and be queued the next moment. A wait that has to let go of a mutex or of another monitor as well does
 * so inside, after it has looked and right before vez_monitor_wait: whoever can settle it has to come inside and finds
 * it queued.
 *
 * Inside: be short; do not sleep. No vez wait but vez_monitor_wait. Releasing, setting and other monitors are
 * allowed (but not in gave_up). A monitor is not recursive: entering it again from inside never returns.
 * Ordering: everything before an exit happens before everything after the next enter, and before the return of every
 * wait settled inside.
 * A room belongs to one monitor, and stays where it is until that is destroyed.
 * Destroy: the exit's last touch is the one step that lets the next one in; a thread whose wait has returned may
 * destroy and free the monitor, if no other thread will enter it and no request is queued.
 * Signal handlers: none of these. fork: a monitor that another thread was inside at the moment of the fork, or in which
 * requests were queued, is to be initialized anew in the child. Waits are no pthread cancellation points.
 */
#ifndef VEZ_MONITOR_H
#define VEZ_MONITOR_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

typedef struct vez_room {
	vez_request_t *first_;
	struct vez_monitor *monitor_;
	uint32_t length_;
	uint32_t reserved_;
} vez_room_t;

VEZ_ASSERT_SIZE_(vez_room_t, 24);

/* An empty room. All-zero bytes are one, too. */
#define VEZ_ROOM_INITIALIZER { 0, 0, 0, 0 }

/* Private: what was settled inside, and whom to wake, when the monitor has been left. */
struct vez__pending {
	vez_request_t *last_;
	uint32_t *wake_;
};

typedef struct vez_monitor {
	struct vez__core core_;
	struct vez__pending pending_;
	vez_request_t *calls_;
	uint64_t owner_;
	void (*gave_up_)(struct vez_monitor *m, vez_room_t *room, vez_request_t *r);
	uint32_t ran_;
	uint32_t asked_;
} vez_monitor_t;

VEZ_ASSERT_SIZE_(vez_monitor_t, 64);

/* A monitor that nobody is inside, with this give-up rule (or NULL). */
#define VEZ_MONITOR_INITIALIZER(gave_up) { VEZ_CORE_INITIALIZER_(0), { 0, 0 }, 0, 0, gave_up, 0, 0 }

/* gave_up, which may be NULL, is called inside the monitor after a request has left its room by deadline or token, so
 * that it can settle those whom the request held back. It must be short and use no other vez object. It runs on the
 * thread that timed out, or on the one that fired the token or cancelled the request, or on the library's own. */
void vez_monitor_init(vez_monitor_t *m, void (*gave_up)(vez_monitor_t *m, vez_room_t *room, vez_request_t *r));

/* EBUSY, and nothing has changed, while somebody is inside or a request is queued in one of its rooms. A thread that is
 * just giving up, or ends a wait by firing its token, or comes to run calls, is waited for. */
int vez_monitor_destroy(vez_monitor_t *m);

/* Waits until nobody else is inside, and enters. */
void vez_monitor_enter(vez_monitor_t *m);

/* Runs the calls (vez/call.h) that may run now, 64 at most, and leaves; then wakes the threads of all that was settled
 * inside, and runs at most 64 functions of requests (vez/request.h). Only by the thread that is inside. */
void vez_monitor_exit(vez_monitor_t *m);

/* Only from inside: queues the request in the room by its key, leaves the monitor, and sleeps until the request is
 * settled. Returns outside, with the settled result; or with ETIMEDOUT or ECANCELED, when the deadline passed or the
 * token fired first. A wait whose token is fired (asked first) or whose deadline has passed when it begins is not
 * queued: the monitor is left and gave_up is not called. cancel may be NULL. */
int vez_monitor_wait(vez_monitor_t *m, vez_room_t *room, vez_request_t *r, vez_deadline_t deadline,
		     vez_cancel_t *cancel);

/* Only from inside: queues the request in the room by its key, leaves the monitor, and returns EINPROGRESS; the request
 * completes when it is settled, or by its own limits (vez/request.h), unless those have been reached already, or it
 * belongs to a wait-for-any that is won: not queued, the monitor is left, and that code. EAGAIN: it has a deadline, and
 * the library's thread, which would keep it, could not be made (the monitor was left meanwhile). */
int vez_monitor_wait_async(vez_monitor_t *m, vez_room_t *room, vez_request_t *r);

/* Only from inside, for a request that is queued in a room of this monitor: decides its result and takes it out of its
 * room at once (fetch the next one before). True, and its wait will return result once the monitor is left.
 * False: the request belongs to a wait-for-any that is won already; it has left its room, give it nothing. So settle it
 * first, and change the state for it only if that said true. False also if it has been settled already, which changes
 * nothing. For a request that was never used since it was initialized this is vez_monitor_settle_unqueued. */
bool vez_monitor_settle(vez_monitor_t *m, vez_request_t *r, int result);

/* Only from inside, for a request that is queued nowhere, and will not be: decides its result. That is how an
 * asynchronous call which need not wait tells a wait-for-any so, before it takes anything. True, and the request is
 * complete; false: it belongs to a wait-for-any that is won already; give it nothing. False also, and nothing has
 * changed, if it is queued, or settled and not complete yet, or a member that is complete. */
bool vez_monitor_settle_unqueued(vez_monitor_t *m, vez_request_t *r, int result);

/* Only from inside, for a request that is queued in a room of this monitor: puts it in this room instead (it may be the
 * same), by its key, which vez_request_set_key may have changed right before: last of those with that key. Its thread
 * does not wake, its limits stay, and gave_up is told of the room where it is then. A customer who is called from the
 * waiting room to the chair sleeps once. False, and nothing has changed: it has been settled already. */
bool vez_monitor_move(vez_monitor_t *m, vez_room_t *room, vez_request_t *r);

/* Only from inside, for a request that is queued in a room of this monitor: it waits from now on until it is settled.
 * Its deadline and its token end it no more, not even those that have been reached but have not got inside yet; nor
 * does vez_request_cancel (EALREADY). So what was begun for it is not begun in vain: settle it. False, and nothing has
 * changed: it has been settled already, or belongs to a wait-for-any, which another member may yet win. */
bool vez_monitor_keep(vez_monitor_t *m, vez_request_t *r);

/* Makes an empty room. */
void vez_room_init(vez_room_t *room);

/* Only from inside: the request that is served first, the one served after r; NULL if there is none. */
vez_request_t *vez_room_first(const vez_room_t *room);
vez_request_t *vez_room_next(const vez_room_t *room, const vez_request_t *r);

/* How many requests are queued. Any thread, any time; outside, somebody may be about to be. */
size_t vez_room_length(const vez_room_t *room);

VEZ_END_DECLS_

#endif
