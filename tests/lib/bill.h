/* SPDX-License-Identifier: MIT */
/* What a wait costs the thread that waits. */
#ifndef TEST_BILL_H
#define TEST_BILL_H

#include <stddef.h>
#include <stdint.h>

struct billable {
	int (*wait)(void *object);                  /* one wait, whole; 0 */
	size_t (*waiters)(const void *object);
	void (*let_go)(void *object, unsigned all); /* all of them */
};

/* The calling thread has learned that spinning pays, and may spin for a second: what keeps it from that is that it has
 * one processor only. */
void spin_eagerly(void);
/* How long burn keeps the processor busy; and the processor time that is next to nothing, a thirtieth of that: what a
 * wait itself may cost where the machine is busy and a page is touched for the first time. Of up to nine threads that
 * share the processor, one that spins meanwhile gets three times as much. */
#define BURN_NS INT64_C(90000000)
#define NEXT_TO_NOTHING_NS (BURN_NS / 30)

/* The calling thread keeps the processor busy for a while. */
void burn(void);
/* With one processor for all, several threads wait on the object while another one keeps that busy: each has next to
 * nothing to pay. */
void check_waits_cost_nothing(const struct billable *on, void *object);

#endif
