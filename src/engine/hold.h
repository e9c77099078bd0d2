/* SPDX-License-Identifier: MIT */
/*
 * While a thread holds, it completes nothing: what it settles, also in a signal handler, is left, and completed when
 * its last hold is let go. A thread holds while it has a lock that completing needs, and inside users' monitors.
 */
#ifndef VEZ__HOLD_H
#define VEZ__HOLD_H

#include "../futex/atomic.h"
#include "../futex/lock.h"
#include "vez/request.h"

/* Of each thread: hold.c. */
struct vez__holding {
	uint32_t count;
	vez_request_t *left;
	void (*complete)(vez_request_t *first);
};

extern __thread struct vez__holding vez__holding __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* No longer holding: completes what was left. */
void vez__complete_left(void);

static inline bool vez__holds(void)
{
	return vez__holding.count > 0;
}

static inline void vez__hold(void)
{
	vez__order_for_handlers();
	vez__holding.count++;
	vez__order_for_handlers();
}

static inline void vez__let_go(void)
{
	vez__order_for_handlers();
	if (--vez__holding.count > 0)
		return;
	vez__order_for_handlers();
	if (VEZ__UNLIKELY(vez__load(&vez__holding.left, relaxed) != NULL))
		vez__complete_left();
}

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
