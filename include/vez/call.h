/* SPDX-License-Identifier: MIT */
/*
 * vez/call.h - delegated and guarded execution on a monitor
 *
 * A call hands a function, the body, to a monitor. The body runs inside the monitor, alone, on whichever thread holds
 * it: the caller's, if nobody is inside; else the one who is, before it leaves, so that the caller need not be switched
 * to. That may be any thread that leaves the monitor, gives up a wait on it or ends one: one that fires a token, and
 * the library's own, too. A guarded call runs when its guard is true. The guard is evaluated by the thread that has
 * changed the state (after each body, when somebody leaves, waits or gives up), never by waking the caller to look; the
 * caller wakes when its body has run. Calls are looked at in the order in which they arrived, from the first again
 * after each body; one whose guard is false holds nobody back.
 *
 *	put:   vez_monitor_call_when(&m, has_place, put_item, &item, VEZ_FOREVER, NULL)
 *	take:  vez_monitor_call_when(&m, has_item, take_item, &item, VEZ_FOREVER, NULL)
 *
 * A thread runs at most 64 bodies of others each time that it is inside; then it leaves the rest to one of their
 * callers that is waiting and has run none yet, or else to the library's thread (vez/request.h), which is made for that
 * if need be. Where it cannot be made, the thread goes on. So a call runs at most 3 times 64 bodies of others: when it
 * comes, once if it is asked to while it waits, and when it gives up.
 * A body, or a guard, may read and (a body only) change what the monitor guards, settle requests that wait in its
 * rooms, and use other vez objects without waiting (what that completes is called when the monitor has been left; a
 * token on which somebody waits here must not be fired, nor a request that is queued here be cancelled; nor may a body
 * of monitor A do that to B while a body of B does it to A). It must not enter, wait or call on the same monitor
 * (EDEADLK), nor depend on thread-local state, nor leave by longjmp; an exception that leaves it, and pthread_exit in
 * it, end the program. Guards change nothing, and are called often.
 *
 * Ordering: everything before the call happens before its body, bodies happen one after another, and the body happens
 * before everything after the call's return or completion.
 * Destroy: as in vez/monitor.h; a queued call is a queued request. Signal handlers: none of these. fork: as in
 * vez/monitor.h. Waits are no pthread cancellation points.
 * Sources: conditional critical regions (Hoare 1972; Brinch Hansen 1972); flat combining (Hendler, Incze, Shavit,
 * Tzafrir 2010); delegated execution: C. Martins (2009).
 */
#ifndef VEZ_CALL_H
#define VEZ_CALL_H

#include "monitor.h"

VEZ_BEGIN_DECLS_

/* Has body(arg) run inside the monitor, and returns 0 when it has. EINVAL: body is NULL; EDEADLK: the caller
 * is inside. */
int vez_monitor_call(vez_monitor_t *m, void (*body)(void *arg), void *arg);

/* Has body(arg) run when guard(arg) is true (guard NULL: at once): 0. Or not at all, asked in this order: EINVAL,
 * EDEADLK; ECANCELED or ETIMEDOUT, if the token, which may be NULL, fired or the deadline passed first. A deadline that
 * has passed means one attempt, after the calls that may run and are there already: where they are more than 64, it
 * waits until they have been run. */
int vez_monitor_call_when(vez_monitor_t *m, bool (*guard)(void *arg), void (*body)(void *arg), void *arg,
			  vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's limits (vez/request.h), which also completes when the body has run. 0: it
 * has, and nothing is called; EINPROGRESS; or an error. Does not wait for the monitor either: if somebody is inside,
 * that one sees to it, and a deadline that has passed ends it then. vez uses the request's key and value until
 * it has completed. */
int vez_monitor_call_async(vez_monitor_t *m, bool (*guard)(void *arg), void (*body)(void *arg), void *arg,
			   vez_request_t *r);

/* A function under a monitor, and when it may run: to be handed around and called like the function itself. guard may
 * be NULL. */
typedef struct vez_guarded {
	vez_monitor_t *monitor;
	bool (*guard)(void *arg);
	void (*body)(void *arg);
} vez_guarded_t;

/* vez_monitor_call_when(f.monitor, f.guard, f.body, arg, VEZ_FOREVER, NULL). */
int vez_guarded_call(vez_guarded_t f, void *arg);

VEZ_END_DECLS_

#endif
