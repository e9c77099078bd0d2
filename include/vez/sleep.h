/* SPDX-License-Identifier: MIT */
/*
 * vez/sleep.h - waiting for a moment, or for a token to fire
 *
 * A thread that does something now and then sleeps until the next time, or until it is told to stop; one that ends a
 * program in order sleeps until there is a reason to. An event loop is told of a token as it is told of everything
 * else: by a request (vez/request.h) that completes when the token fires, so that it calls a function, ticks an
 * eventfd, joins a list of completions, or is a member of a wait-for-any.
 *
 * Two reasons to stop: a wait names one token. Where one reason includes the other (the program ends, so this client is
 * done with), make the narrow token a child of the wide one (vez_cancel_init_child) and wait with the child; when the
 * wait says ECANCELED, vez_cancel_fired of the parent tells whether it was the wide reason. Of two that have nothing to
 * do with each other, make the token of the wait a child of one, and have a hook of the other (vez_cancel_attach) fire
 * it. vez_cancel_fired of each tells which it was, of both if it was both. A wait without a thread takes both as
 * members of a wait-for-any, whose winner tells which came first.
 * The same signal twice (SIGTERM: soon, again: now): bind it to the second token when the first has fired, in a hook of
 * the first, or when vez_cancel_wait has returned. Signals that come before that are one.
 *
 *	vez_cancel_on_signal(&soon, SIGTERM);
 *	vez_cancel_wait(&soon, VEZ_FOREVER);
 *	vez_cancel_on_signal(&now, SIGTERM);
 *	rc = vez_latch_wait_until(&workers_done, vez_after_s(10), &now);
 *
 * Ordering: everything before the firing happens before everything after the return, or the completion, that tells of
 * it.
 * Lifetime: a token may be destroyed as soon as what waited for it has returned or completed, though the fire has not
 * returned.
 * Signal handlers: none of these. fork: requests of the parent's are not the child's. These are no pthread cancellation
 * points.
 * Sources: the alarm clock of Hoare, "Monitors" (1974).
 */
#ifndef VEZ_SLEEP_H
#define VEZ_SLEEP_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

/* Sleeps until this moment: 0; at once, if it has passed. Or ECANCELED: the token (which may be NULL) has fired before.
 * The token is looked at before the clock: a fired one is ECANCELED even if the moment has passed. Never early. */
int vez_sleep_until(vez_deadline_t moment, vez_cancel_t *cancel);

/* Waits until the token has fired: 0; at once, if it is fired. Or ETIMEDOUT: the deadline has passed before. A fire
 * that meets the wait ends it, even if the token is cleared at once. */
int vez_cancel_wait(vez_cancel_t *c, vez_deadline_t deadline);

/* The same without waiting, by the request's deadline: 0: it is fired; EINPROGRESS: the request completes with 0 when
 * the token fires, before that one's hooks run; or an error. The token of the request's limits is c from then on. Its
 * function runs on the thread that fires. A thread's own token (vez_cancel_self) that goes with its thread counts as
 * fired. */
int vez_cancel_wait_async(vez_cancel_t *c, vez_request_t *r);

VEZ_END_DECLS_

#endif
