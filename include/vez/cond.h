/* SPDX-License-Identifier: MIT */
/*
 * vez/cond.h - conditions: waiting inside a mutex for something to become true
 *
 * Any number of conditions may be used with one mutex; a condition is used with one mutex at a time. A wait releases
 * the mutex, whole if it is recursive, and holds it again on every return, whatever the result. A signal notifies the
 * longest waiter (or the one with the smallest key). A notified waiter moves straight to the mutex's queue, and is not
 * woken before the mutex is free. With a fair mutex they wake and return one after another, in their order. A mutex
 * that is not fair learns how many of them can be woken together: first it wakes one after another, too; while those
 * who wake find it free it wakes more of them by one system call, up to 32; and fewer when they find it taken, who
 * sleep again where they stood. So of those who have been notified and wait for the mutex at the same time, with the
 * same key, one may return before another, whichever signal, broadcast or condition has notified them.
 *
 * There are no spurious returns: 0 means notified. A later waiter cannot take an earlier one's notification. A
 * notification is never lost to a deadline or token that comes at the same moment: either that wait returns 0, or
 * another waiter is notified. Once notified, a wait returns 0 whatever happens later; taking the mutex back ignores
 * deadline and token. What the notification says may have changed when the waiter has the mutex, if others took it in
 * between: where that is possible, check again. A signal that finds nobody waiting is not remembered.
 *
 * Guards: a wait may have one (vez_cond_wait_when; vez/mutex.h says what a guard is). A signal then goes to the first
 * waiter whose guard is true, and a broadcast to all whose guards are; who waits without counts as true. They are asked
 * in their order at the next unlock of the mutex, by the thread that unlocks, when those who were queued for the mutex
 * before have had their turns; at once, by the thread that signals, if the mutex is free. Whose guard is false waits on
 * as if nothing had been; if nobody's is true the signal is gone. So the wait returns with the mutex and a true guard;
 * its deadline and token count until that moment. A default mutex may be taken by a running thread first (vez/mutex.h);
 * if that makes the guard false, the notification goes to the next whose guard is true. Those with guards have key 0.
 * A wait without a guard that begins while one with a guard is there takes part as they do: it, too, is let in at the
 * unlock, and its deadline and token count until then; waits with larger keys are notified after all those with guards.
 * Keys are not compared with guards otherwise: use keys and guards on different conditions.
 *
 * Ordering: everything before a signal happens before the return of the wait that it notified.
 * Destroy: allowed when nobody waits; a thread whose wait has returned may destroy and unmap the condition though the
 * signal has not returned.
 * Signal handlers: vez_cond_waiters only. fork: a condition on which threads of the parent were waiting is to be
 * initialized anew in the child. Waits are no pthread cancellation points.
 * Errors on entry, in this order: EPERM (the mutex is free, or not the caller's where that is tracked), EINVAL,
 * ECANCELED, ETIMEDOUT (both without letting the mutex go). vez_cond_wait_when: EINVAL (no guard), EPERM; then it
 * asks its guard, and true is 0; then the others.
 * Sources: Lampson and Redell (1980); the scheduled wait: Hoare, "Monitors" (1974).
 */
#ifndef VEZ_COND_H
#define VEZ_COND_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "mutex.h"

VEZ_BEGIN_DECLS_

typedef struct vez_cond {
	struct vez__core core_;
	vez_request_t *queue_;
	vez_mutex_t *mutex_;
} vez_cond_t;

VEZ_ASSERT_SIZE_(vez_cond_t, 32);

/* A condition on which nobody waits. All-zero bytes are one, too. */
#define VEZ_COND_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, 0 }

/* Makes a condition. 0. */
int vez_cond_init(vez_cond_t *c);

/* EBUSY, and nothing has changed, while somebody waits. */
int vez_cond_destroy(vez_cond_t *c);

/* Releases the mutex, waits to be notified, and takes the mutex back. 0; EPERM; EINVAL while others wait with
 * another mutex. */
int vez_cond_wait(vez_cond_t *c, vez_mutex_t *m);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires; the mutex is
 * held then, too. */
int vez_cond_wait_until(vez_cond_t *c, vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same, waiting by key: the smallest is notified first, first come first served among equals. The other forms have
 * key 0. */
int vez_cond_wait_key(vez_cond_t *c, vez_mutex_t *m, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel);

/*
 * As vez_mutex_await, but guard(arg) is asked only on entry (true: 0 at once) and when the condition is notified, not
 * at each unlock of the mutex: for guards that cost, or are many. 0: the mutex is held and the guard is true.
 * ETIMEDOUT, ECANCELED: the guard was asked once more, with the mutex, and is false. EINVAL also: no guard.
 */
int vez_cond_wait_when(vez_cond_t *c, vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
		       vez_cancel_t *cancel);

/* Notifies the first waiter, or all of them in their order. With or without the mutex. How many were notified; of those
 * with guards, how many will be let in if their guards are true. */
size_t vez_cond_signal(vez_cond_t *c);
size_t vez_cond_broadcast(vez_cond_t *c);

/* How many wait and were not notified yet, and those with guards whose calls have not returned. Any thread, any time,
 * signal handlers included. */
size_t vez_cond_waiters(const vez_cond_t *c);

VEZ_END_DECLS_

#endif
