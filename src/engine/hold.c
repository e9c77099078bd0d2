/* SPDX-License-Identifier: MIT */
/*
 * Holds.
 *
 * State, of each thread: vez__holding
 *  count     how many; by the thread and its handlers, which leave it as they found it
 *  left      a stack of what was left, the latest first, linked by next_; pushed by handlers and by the thread itself,
 *            taken whole
 *  complete  what completes it; the same function always
 * Invariant: while count > 0, left may be filled; before the thread goes on with count = 0, it is empty.
 */
#include "hold.h"

#include "../futex/stack.h"

__thread struct vez__holding vez__holding;

/* All that was left, the oldest first: the stack's order turned round. */
static vez_request_t *take_left(void)
{
	vez_request_t *oldest = NULL;
	vez_request_t *latest = vez__stack_take(&vez__holding.left);
	while (latest) {
		vez_request_t *older = latest->next_;
		latest->next_ = oldest;
		oldest = latest;
		latest = older;
	}
	return oldest;
}

void vez__complete_left(void)
{
	do
		vez__holding.complete(take_left());
	while (vez__load(&vez__holding.left, relaxed) != NULL);
}

void vez__leave_to_holder(vez_request_t *r, void (*complete)(vez_request_t *first))
{
	vez__holding.complete = complete;
	while (r) {
		vez_request_t *next = r->next_;
		vez__stack_push(&vez__holding.left, r, r);
		r = next;
	}
}

void vez__hold_forget(void)
{
	vez__holding.left = NULL;
	vez__holding.count--;
}
