/* SPDX-License-Identifier: MIT */
/* Scenarios of the counting semaphore. */
#include "vez/sem.h"

#include <errno.h>

#include "scenario.h"

static vez_sem_t s;
static int told;
static int rc[X_THREADS];

static void make(uint32_t permits, uint32_t max, unsigned flags)
{
	x_alive(&s, sizeof s);
	X_NAME(s);
	x_assert(vez_sem_init(&s, permits, max, flags) == 0);
	told = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_0(void)
{
	make(0, 0, 0);
}

/* Nobody is queued and this many permits are free. */
static void left(uint32_t permits)
{
	x_assert(vez_sem_waiters(&s) == 0);
	x_assert(vez_sem_permits(&s) == permits);
	x_assert(vez_sem_destroy(&s) == 0);
}

static void left_0(void)
{
	left(0);
}

/* ---- hand-off: one waits, one releases ---- */

static void acquire_1(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	x_assert(told == 1);
}

static void release_1(void)
{
	told = 1;
	x_assert(vez_sem_release(&s, 1) == 0);
}

X_SCENARIO(sem_handoff, .setup = make_0, .thread = { acquire_1, release_1 }, .check = left_0);
