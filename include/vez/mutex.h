/* SPDX-License-Identifier: MIT */
/*
 * vez/mutex.h - mutual exclusion
 *
 * The default mutex is made for throughput. An unlock does not hand it to the one that waits: until that thread has
 * woken up and runs, nobody could use it. The mutex is free at once, and whichever thread comes first may take it, also
 * one that did not wait (barging). The longest waiter is woken to take part in that (of those whom a condition has
 * notified, several may be: vez/cond.h). It can find the mutex taken again, and then sleeps on; but when it has been
 * passed over so for about 1 ms, newcomers queue, and the next unlock hands it the mutex. So nobody starves, and
 * threads that compete take turns of about that length.
 * VEZ_FAIR hands the mutex over at every unlock: strict first come first served, never free while somebody is
 * queued. That costs a switch for each hand-over; under contention it is many times slower. Uncontended, lock
 * and unlock are one compare-and-swap each, and no system call.
 *
 * A mutex is owned by a thread; for one that is acquired here and released there, or without blocking a thread, use a
 * semaphore of 1 (vez/sem.h). Who owns it is only tracked by the recursive and the error checking kinds: elsewhere
 * relocking one's own mutex waits for ever, and any thread's unlock unlocks. An owner that exits leaves the mutex
 * locked, and no later thread is taken for it.
 *
 * Ordering: everything before an unlock happens before everything after the next lock.
 * Destroy: a thread whose call has returned may destroy the mutex and unmap it, if no other thread will call it again
 * and nobody is queued; the unlock that let it in no longer touches it.
 * Guards: a wait may have a guard, a function that says whether it can go (vez_mutex_await, vez_mutex_lock_when). It is
 * queued like every other wait, but its turn comes only while its guard is true. The thread that unlocks calls the
 * guards of those who wait, before it lets the mutex go, in the order of arrival. One that is false holds nobody back,
 * and its thread sleeps on; the first whose guard is true is next. So there is no signal to forget.
 * A fair mutex is handed to that one: nobody comes between. A default mutex becomes free, and the thread is woken to
 * take it; running threads may come first, also such as find their own guards true when they come. If one of them has
 * the mutex still, or has made the guard false, the thread has woken in vain, and sleeps on. About 1 ms after the first
 * time it is handed the mutex instead. Either way 0 means that the caller has the mutex and its guard is true, and of
 * those who wait and whose guards are true the first goes first.
 * A guard is short, depends only on what the mutex guards, changes nothing, and calls nothing of vez: nobody can queue
 * while it runs. It runs on the thread that unlocks; or, if the mutex is free, on one that has come or gives up. Where
 * one who waits without a guard is next, the guards behind it are called when that one unlocks. An unlock calls each
 * guard that is false; where waiters have the same function and argument, once for all of them, as far as the last
 * eight different ones that were false go.
 * Signal handlers: none of these but vez_mutex_waiters. fork: in the child, the thread that forked still owns what it
 * held; a mutex that another thread held, or that threads were waiting for, is to be initialized anew. Waits are no
 * pthread cancellation points.
 * Errors on entry, in this order: EINVAL (no guard), ECANCELED (token fired), EOVERFLOW or EDEADLK for the owner, then
 * the mutex (which is taken even if the deadline has passed), then ETIMEDOUT. vez_mutex_await, whose caller has the
 * mutex already: EINVAL, EPERM, then the guard (true: 0, whatever the token says), then ECANCELED, ETIMEDOUT.
 * Sources: barging with a bound: the fair hand-off of WebKit's WTF::Lock; nsync's long wait. Guards: Hoare's
 * conditional critical regions (1972); Abseil's Mutex::Await and LockWhen; execution delegation, C. Martins (2009).
 */
#ifndef VEZ_MUTEX_H
#define VEZ_MUTEX_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

/* Its owner may lock it again; as many unlocks free it. */
#define VEZ_RECURSIVE 2u
/* Strict first come first served. */
#define VEZ_FAIR 4u
/* Its owner's relock is EDEADLK, an unlock by somebody else EPERM. Not together with VEZ_RECURSIVE. */
#define VEZ_ERRORCHECK 8u

/* How many times a recursive mutex can be locked. */
#define VEZ_MUTEX_MAX_HOLDS 65535u

typedef struct vez_mutex {
	struct vez__core core_;
	vez_request_t *queue_;
	uint64_t owner_;
	uint16_t holds_;
	uint8_t fair_;
	uint8_t together_;
	uint32_t guarded_;
} vez_mutex_t;

VEZ_ASSERT_SIZE_(vez_mutex_t, 40);

/* A default mutex, free. All-zero bytes are one, too. */
#define VEZ_MUTEX_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, 0, 0, 0, 0, 0 }

/* Makes a free mutex. flags: 0, or VEZ_FAIR, with one of VEZ_RECURSIVE and VEZ_ERRORCHECK. EINVAL: others, or both. */
int vez_mutex_init(vez_mutex_t *m, unsigned flags);

/* EBUSY, and nothing has changed, while it is locked or requests are queued. */
int vez_mutex_destroy(vez_mutex_t *m);

/* Locks, waiting as long as it takes. 0; EDEADLK if the caller owns it (error checking); EOVERFLOW
 * at VEZ_MUTEX_MAX_HOLDS. */
int vez_mutex_lock(vez_mutex_t *m);

/* Locks if that is possible without waiting: 0; else EBUSY, and nothing has changed; also where the caller owns it
 * (error checking). EOVERFLOW at VEZ_MUTEX_MAX_HOLDS. Honours the queue of a fair mutex. Makes no system call. */
int vez_mutex_trylock(vez_mutex_t *m);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_mutex_lock_until(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel);

/* Unlocks. EPERM, and nothing has changed, if it is free, or the caller is not its owner where that is tracked. Never
 * waits; while somebody waits with a guard, it asks those guards, and may wait for the moment that another thread takes
 * to queue or to give up. */
int vez_mutex_unlock(vez_mutex_t *m);

/* ---- until something is true ---- */

/*
 * The caller owns the mutex, and owns it again when this returns, whatever the result. If guard(arg) is true, 0 at
 * once. Otherwise the mutex is let go, all holds of it, until the guard is true: 0. ETIMEDOUT at the deadline,
 * ECANCELED when the token (which may be NULL) fires: then the mutex is taken back, which ignores both, and the guard
 * is asked once more; so these mean that it is false. A deadline in the past, or a token that is fired: the guard is
 * asked once. EINVAL: no guard; EPERM: the mutex is free, or not the caller's where that is tracked.
 */
int vez_mutex_await(vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
		    vez_cancel_t *cancel);

/*
 * Locks when guard(arg) is true: 0, and it is. Any other result: not locked by this call. ETIMEDOUT, ECANCELED: until
 * then the mutex could not be had while the guard was true. A deadline in the past: the guard is asked once if the
 * mutex can be had at once. A token that is fired on entry is ECANCELED, unasked. EINVAL: no guard; EDEADLK, EOVERFLOW
 * as vez_mutex_lock. The owner of a recursive mutex locks it once more, and lets go all its holds while it waits.
 */
int vez_mutex_lock_when(vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
			vez_cancel_t *cancel);

/* How many times the calling thread holds it: 0 if it does not, or where the owner is not tracked. */
unsigned vez_mutex_holds(const vez_mutex_t *m);

/* How many requests are queued, those notified on a condition included. Any thread, any time, signal handlers too. */
size_t vez_mutex_waiters(const vez_mutex_t *m);

VEZ_END_DECLS_

#endif
