/* SPDX-License-Identifier: MIT */
/*
 * Holds.
 *
 * State, of each thread
 *  holds     how many; by the thread and its handlers, which leave it as they found it
 *  left      a stack of what was left, the latest first, linked by next_; pushed by handlers and by the thread itself,
 *            taken whole
 *  complete  what completes it; the same function always
 * Invariant: while holds > 0, left may be filled; before the thread goes on with holds = 0, it is empty.
 */
#include "hold.h"

#include "../futex/atomic.h"
#include "../futex/stack.h"

static __thread struct {
	uint32_t holds;
	vez_request_t *left;
	void (*complete)(vez_request_t *first);
} mine __attribute__((tls_model("initial-exec")));

void vez__hold(void)
{
	vez__order_for_handlers();
	mine.holds++;
	vez__order_for_handlers();
}

/* All that was left, the oldest first: the stack's order turned round. */
static vez_request_t *take_left(void)
{
	vez_request_t *oldest = NULL;
	vez_request_t *latest = vez__stack_take(&mine.left);
	while (latest) {
		vez_request_t *older = latest->next_;
		latest->next_ = oldest;
		oldest = latest;
		latest = older;
	}
	return oldest;
}

void vez__let_go(void)
{
	vez__order_for_handlers();
	if (--mine.holds > 0)
		return;
	vez__order_for_handlers();
	while (VEZ__UNLIKELY(vez__load(&mine.left, relaxed) != NULL))
		mine.complete(take_left());
}

bool vez__holds(void)
{
	return mine.holds > 0;
}

uint32_t vez__hold_count(void)
{
	return mine.holds;
}

void vez__leave_to_holder(vez_request_t *r, void (*complete)(vez_request_t *first))
{
	mine.complete = complete;
	while (r) {
		vez_request_t *next = r->next_;
		vez__stack_push(&mine.left, r, r);
		r = next;
	}
}

void vez__hold_forget(void)
{
	mine.left = NULL;
	mine.holds--;
}
