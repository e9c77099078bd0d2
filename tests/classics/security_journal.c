/* SPDX-License-Identifier: MIT */
/*
 * The security journal (M. Grand, Patterns in Java: Scheduler): checkpoints print entries on one printer, and entries
 * that wait are printed in the order of their time stamps, not of their arrival.
 *
 * vez_sched_t with "earlier" as its order.
 * Seen to fail: without the order, entries are printed as they arrived.
 */
#include "classic.h"

#define ENTRIES 6

struct entry {
	long stamp;
};

static bool earlier(const void *a, const void *b)
{
	return ((const struct entry *)a)->stamp < ((const struct entry *)b)->stamp;
}

static vez_sched_t printer;
static long printed[ENTRIES + 1]; /* by who has the printer */
static size_t lines;

static void *checkpoint(void *arg)
{
	struct entry *e = arg;
	check(vez_sched_enter(&printer, e) == 0);
	printed[lines++] = e->stamp;
	check(vez_sched_leave(&printer) == 0);
	return NULL;
}

int main(void)
{
	struct entry entries[ENTRIES] = { { 40 }, { 10 }, { 60 }, { 30 }, { 20 }, { 50 } }, busy = { 99 };
	pthread_t checkpoints[ENTRIES];
	check(vez_sched_init(&printer, earlier, 0) == 0);
	check(vez_sched_enter(&printer, &busy) == 0);
	for (size_t i = 0; i < ENTRIES; i++) {
		checkpoints[i] = start(checkpoint, &entries[i]);
		await(vez_sched_waiters(&printer) == i + 1);
	}
	check(vez_sched_leave(&printer) == 0);
	for (size_t i = 0; i < ENTRIES; i++)
		finish(checkpoints[i]);
	for (size_t i = 0; i < ENTRIES; i++)
		check(printed[i] == (long)(i + 1) * 10);
	check(lines == ENTRIES && vez_sched_destroy(&printer) == 0);
	return 0;
}
