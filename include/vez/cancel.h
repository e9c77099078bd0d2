/* SPDX-License-Identifier: MIT */
/*
 * vez/cancel.h - cancellation tokens: how a wait is called off
 *
 * A token is what thread interruption is elsewhere: a flag that ends waits. Any number of waits, on any number of
 * objects, may name the same token; firing it ends them all with ECANCELED. A token is sticky: no wait consumes it, so
 * that callers further up see it too, and it stays fired until vez_cancel_clear.
 *
 * The thread that fires ends the waits itself: it takes each request out of its room, lets those go who were held back
 * by it, and wakes its thread with the answer. When vez_cancel_fire returns, every request that was queued with the token
 * when it fired is decided, even if the token is cleared before any of their threads has run. A request that was granted
 * first stays granted, and its wait returns 0.
 *
 * Ordering: everything before the firing happens before the return of a wait that it ended, and before everything after
 * a vez_cancel_fired that says true.
 * Lifetime: a token must outlive every wait that names it. It may be discarded as soon as those have returned, though a
 * fire that ended them has not.
 * Signal handlers: vez_cancel_fired only. Not inside a monitor: the firing thread enters the monitors of the requests that it
 * ends, and would wait for itself. Leave first.
 * fork: the child's tokens say what they said at the fork; waits of other threads do not exist in the child. A token that
 * another thread was firing, or waiting with, at that moment is to be initialized anew.
 */
#ifndef VEZ_CANCEL_H
#define VEZ_CANCEL_H

#include "base.h"

VEZ_BEGIN_DECLS_

typedef struct vez_cancel {
	uint64_t lock_;
	uintptr_t arrivals_;
	void *enlisted_[2];
	uint64_t reserved_[12];
} vez_cancel_t;

VEZ_ASSERT_SIZE_(vez_cancel_t, 128);

/* A token that is not fired. All-zero bytes are one, too. */
#define VEZ_CANCEL_INITIALIZER { 0, 0, { 0, 0 }, { 0 } }

/* Makes a token that is not fired. */
void vez_cancel_init(vez_cancel_t *c);

/* Fires the token: ends every wait that names it. Firing a fired token does nothing. Any thread. */
void vez_cancel_fire(vez_cancel_t *c);

/* Whether it is fired. Any thread, signal handlers included. */
bool vez_cancel_fired(const vez_cancel_t *c);

/* Re-arms the token; says whether it was fired. Waits that the firing ended stay ended. */
bool vez_cancel_clear(vez_cancel_t *c);

/* The calling thread's own token: its interrupt status. Valid until the thread exits; other threads fire it. */
vez_cancel_t *vez_cancel_self(void);

VEZ_END_DECLS_

#endif
