/* SPDX-License-Identifier: MIT */
/* vez_sem_t behind the common interface; and the choice by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/sem.h>

#include "impl.h"
#include "perf.h"

const struct impl *impl_named(const struct impl *const *list, const char *name)
{
	for (const struct impl *const *each = list; *each; each++)
		if (strcmp((*each)->name, name) == 0)
			return *each;
	fprintf(stderr, "--impl is one of:");
	for (; *list; list++)
		fprintf(stderr, " %s", (*list)->name);
	fprintf(stderr, "\n");
	exit(2);
}

static void *create(unsigned slots)
{
	(void)slots;
	vez_sem_t *s = aligned_alloc(128, (sizeof *s + 127) / 128 * 128);
	if (!s || vez_sem_init(s, 0, 0, 0) != 0)
		perf_fail("cannot create a semaphore");
	return s;
}

static void destroy(void *sem)
{
	if (vez_sem_destroy(sem) != 0)
		perf_fail("the semaphore is still in use");
	free(sem);
}

static void acquire(void *sem, unsigned slot, uint32_t permits)
{
	(void)slot;
	if (vez_sem_acquire(sem, permits) != 0)
		perf_fail("an acquire failed");
}

static void release(void *sem, uint32_t permits)
{
	if (vez_sem_release(sem, permits) != 0)
		perf_fail("a release failed");
}

static size_t waiters(void *sem)
{
	return vez_sem_waiters(sem);
}

static uint32_t free_permits(void *sem)
{
	return vez_sem_permits(sem);
}

const struct impl impl_vez = { "vez", create, destroy, acquire, release, waiters, free_permits };
