/* SPDX-License-Identifier: MIT */
/*
 * million: one thread, --objects objects (a million), taken and given back one after the other in random order.
 *
 * Nobody else wants them, so that what differs is how much memory each touches: objects that fill more cache lines and
 * more pages miss more of them. All implementations go through the same order, a cycle that meets every object once
 * in each pass. The objects lie one behind the other, as in an array of a program's own.
 *
 *	mutex   lock and unlock: vez_mutex_t; pthread_mutex_t
 *	sem     acquire and release: vez_sem_t; sem_t
 *	rd, wr  lock and unlock: vez_rwlock_t; pthread_rwlock_t
 *
 * Each result is checked. Told besides the time: the processor time, which is without what else the machine does, and
 * "bytes", of all objects.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/mutex.h>
#include <vez/rwlock.h>
#include <vez/sem.h>

#include "perf.h"

static struct perf_option options[] = {
	{ "impl", "vez", "vez, pthread" },
	{ "mode", "mutex", "mutex, sem, rd, wr" },
	{ "objects", "1000000", "how many there are" },
	{ "passes", "3", "how often each is taken and given back" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

static uint32_t *order;
static size_t count;
static void *objects;
static uint64_t wrong; /* results */

/* ---- the order ---- */

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void shuffle(void)
{
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (size_t i = count; i > 1; i--) {
		size_t k = next_random() % i;
		uint32_t last = order[i - 1];
		order[i - 1] = order[k];
		order[k] = last;
	}
}

/* ---- the ways ---- */

/* One way: how an object o is made, taken and given back. */
#define WAY(name, type, make, take, give)                                                                              \
	static void name##_make(void)                                                                                  \
	{                                                                                                              \
		type *end = (type *)objects + count;                                                                   \
		for (type *o = objects; o < end; o++)                                                                  \
			wrong += (make) != 0;                                                                          \
	}                                                                                                              \
	static void name##_pass(void)                                                                                  \
	{                                                                                                              \
		type *all = objects;                                                                                   \
		uint64_t failed = 0;                                                                                   \
		for (size_t i = 0; i < count; i++) {                                                                   \
			type *o = &all[order[i]];                                                                      \
			failed += (take) != 0;                                                                         \
			failed += (give) != 0;                                                                         \
		}                                                                                                      \
		wrong += failed;                                                                                       \
	}

WAY(vez_mutex, vez_mutex_t, vez_mutex_init(o, 0), vez_mutex_lock(o), vez_mutex_unlock(o))
WAY(vez_sem, vez_sem_t, vez_sem_init(o, 1, 0, 0), vez_sem_acquire(o, 1), vez_sem_release(o, 1))
WAY(vez_rd, vez_rwlock_t, vez_rwlock_init(o, VEZ_RW_HOARE), vez_rwlock_rdlock(o), vez_rwlock_rdunlock(o))
WAY(vez_wr, vez_rwlock_t, vez_rwlock_init(o, VEZ_RW_HOARE), vez_rwlock_wrlock(o), vez_rwlock_wrunlock(o))
WAY(pthread_mutex, pthread_mutex_t, pthread_mutex_init(o, NULL), pthread_mutex_lock(o), pthread_mutex_unlock(o))
WAY(pthread_sem, sem_t, sem_init(o, 0, 1), sem_wait(o), sem_post(o))
WAY(pthread_rd, pthread_rwlock_t, pthread_rwlock_init(o, NULL), pthread_rwlock_rdlock(o), pthread_rwlock_unlock(o))
WAY(pthread_wr, pthread_rwlock_t, pthread_rwlock_init(o, NULL), pthread_rwlock_wrlock(o), pthread_rwlock_unlock(o))

static const struct way {
	const char *impl;
	const char *mode;
	size_t size;
	void (*make)(void);
	void (*pass)(void);
} ways[] = {
	{ "vez", "mutex", sizeof(vez_mutex_t), vez_mutex_make, vez_mutex_pass },
	{ "vez", "sem", sizeof(vez_sem_t), vez_sem_make, vez_sem_pass },
	{ "vez", "rd", sizeof(vez_rwlock_t), vez_rd_make, vez_rd_pass },
	{ "vez", "wr", sizeof(vez_rwlock_t), vez_wr_make, vez_wr_pass },
	{ "pthread", "mutex", sizeof(pthread_mutex_t), pthread_mutex_make, pthread_mutex_pass },
	{ "pthread", "sem", sizeof(sem_t), pthread_sem_make, pthread_sem_pass },
	{ "pthread", "rd", sizeof(pthread_rwlock_t), pthread_rd_make, pthread_rd_pass },
	{ "pthread", "wr", sizeof(pthread_rwlock_t), pthread_wr_make, pthread_wr_pass },
};

static const struct way *chosen(const char *impl, const char *mode)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (strcmp(ways[i].impl, impl) == 0 && strcmp(ways[i].mode, mode) == 0)
			return &ways[i];
	perf_fail("no --impl=%s with --mode=%s", impl, mode);
}

/* ---- the program ---- */

static void prepare(const struct way *way)
{
	count = perf_number(options, "objects");
	if (count < 1 || count > UINT32_MAX)
		perf_fail("--objects is 1 to %u", UINT32_MAX);
	order = malloc(count * sizeof *order);
	objects = aligned_alloc(64, (count * way->size + 63) / 64 * 64);
	if (!order || !objects)
		perf_fail("no memory");
	shuffle();
	way->make();
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char extra[96];
	perf_options(argc, argv, "a million objects, one after the other", options, sizeof options / sizeof *options);
	const struct way *way = chosen(perf_option(options, "impl"), perf_option(options, "mode"));
	uint64_t passes = perf_number(options, "passes");
	if (passes < 1)
		perf_fail("--passes is at least 1");
	perf_pin(perf_option(options, "cpu"));
	prepare(way);
	perf_sleeper_begin();
	double spent = -perf_cpu_now();
	perf_begin(&region);
	for (uint64_t i = 0; i < passes; i++)
		way->pass();
	perf_end(&region);
	spent += perf_cpu_now();
	perf_sleeper_end();
	if (wrong)
		perf_fail("%s: %llu wrong results", way->impl, (unsigned long long)wrong);
	snprintf(extra, sizeof extra, "\"bytes\": %zu, \"processor_ns_per_op\": %.2f", count * way->size,
		 spent * 1e9 / (double)(count * passes));
	perf_print(&(struct perf_result){ "million", way->impl, way->mode, 0, perf_option(options, "cpu"),
					  count * passes, extra },
		   &region);
	free(objects);
	free(order);
	return 0;
}
