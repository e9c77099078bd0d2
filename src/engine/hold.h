/* SPDX-License-Identifier: MIT */
/*
 * While a thread holds, it completes nothing: what it settles, also in a signal handler, is left, and completed when
 * its last hold is let go. A thread holds while it has a lock that completing needs, and inside users' monitors.
 */
#ifndef VEZ__HOLD_H
#define VEZ__HOLD_H

#include "../futex/lock.h"
#include "vez/request.h"

void vez__hold(void);
void vez__let_go(void);
bool vez__holds(void);
uint32_t vez__hold_count(void);

/* Inside a short lock that what completes needs, too. */
static inline void vez__lock_holding(uint64_t *lock)
{
	vez__hold();
	vez__lock_enter(lock);
}

static inline void vez__unlock_holding(uint64_t *lock)
{
	vez__lock_exit(lock);
	vez__let_go();
}

/* In the child of a fork, before which this thread began to hold: what was left belongs to the parent; lets go. */
void vez__hold_forget(void);

/* While this thread holds, also in a signal handler: complete is called with these requests, a list linked by next_, or
 * with parts of it, when it holds no more. */
void vez__leave_to_holder(vez_request_t *first, void (*complete)(vez_request_t *first));

#endif
