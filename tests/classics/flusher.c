/* SPDX-License-Identifier: MIT */
/*
 * The flusher (M. Grand, Patterns in Java: Balking): pressing the button while a flush is under way does nothing;
 * nobody queues for a second one.
 *
 * try_acquire, which never waits and never starts what it cannot do.
 * Seen to fail: with a waiting acquire, or with two permits, the second press waits, and nobody empties the cistern.
 */
#include "classic.h"

static vez_sem_t idle = VEZ_SEM_INITIALIZER(1);
static vez_event_t cistern_empty = VEZ_EVENT_INITIALIZER;
static int flushes; /* by who flushes */

/* Whether it flushed. */
static bool flush(void)
{
	if (vez_sem_try_acquire(&idle, 1) == EBUSY)
		return false;
	flushes++;
	check(vez_event_wait(&cistern_empty) == 0);
	check(vez_sem_release(&idle, 1) == 0);
	return true;
}

static void *press(void *arg)
{
	(void)arg;
	check(flush());
	return NULL;
}

int main(void)
{
	pthread_t first = start(press, NULL);
	await(vez_event_waiters(&cistern_empty) == 1);
	for (int i = 0; i < 100; i++)
		check(!flush());
	check(vez_event_set(&cistern_empty) == 0);
	finish(first);
	check(flush() && flushes == 2);
	return 0;
}
