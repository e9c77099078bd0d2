/* SPDX-License-Identifier: MIT */
/* What a wait costs the thread that waits. */
#ifndef TEST_BILL_H
#define TEST_BILL_H

#include <stddef.h>

struct billable {
	int (*wait)(void *object);                  /* one wait, whole; 0 */
	size_t (*waiters)(const void *object);
	void (*let_go)(void *object, unsigned all); /* all of them */
};

/* The calling thread has learned that spinning pays, and may spin for a second: what keeps it from that is that it has
 * one processor only. */
void spin_eagerly(void);
/* The calling thread keeps the processor busy for a while. */
void burn(void);
/* With one processor for all, several threads wait on the object while another one keeps that busy: each has next to
 * nothing to pay. */
void check_waits_cost_nothing(const struct billable *on, void *object);

#endif
