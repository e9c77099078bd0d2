/* SPDX-License-Identifier: MIT */
/*
 * uncontended: one thread takes and gives back, with nobody else there.
 *
 *	pair  acquire and release: vez, sem_t, pthread_mutex as a yardstick, and a bare atomic pair as the limit (a
 *	      compare-and-swap loop that takes one, an addition that gives it back: what a semaphore cannot do without)
 *	try   the same with the form that does not wait; where it is refused, too: every second try finds nothing free
 *
 * Neither may make a system call: perf-stat counts them all. The loops call the implementations directly, and each
 * checks every result (seen to fail: an atomic pair that takes what is not there). A second thread exists and sleeps,
 * for the C library's mutex takes a shortcut in a process that has one thread only.
 */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <vez/sem.h>

#include "perf.h"

static struct perf_option options[] = {
	{ "impl", "vez", "vez, sem_t, pthread_mutex, atomic" },
	{ "mode", "pair", "pair: acquire and release; try: try_acquire, once in vain, and release" },
	{ "ops", "5000000", "pairs" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

/* How many results were wrong. */
typedef uint64_t pairs(uint64_t n);

static vez_sem_t vez = VEZ_SEM_INITIALIZER(1);
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t permits = 1;

static uint64_t vez_pairs(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += vez_sem_acquire(&vez, 1) != 0;
		wrong += vez_sem_release(&vez, 1) != 0;
	}
	return wrong + (vez_sem_permits(&vez) != 1);
}

static uint64_t vez_tries(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += vez_sem_try_acquire(&vez, 1) != 0;
		wrong += vez_sem_try_acquire(&vez, 1) != EBUSY;
		wrong += vez_sem_release(&vez, 1) != 0;
	}
	return wrong + (vez_sem_permits(&vez) != 1);
}

static uint64_t sem_pairs(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += sem_wait(&sem) != 0;
		wrong += sem_post(&sem) != 0;
	}
	return wrong;
}

static uint64_t sem_tries(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += sem_trywait(&sem) != 0;
		wrong += sem_trywait(&sem) != -1;
		wrong += sem_post(&sem) != 0;
	}
	return wrong;
}

static uint64_t mutex_pairs(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += pthread_mutex_lock(&mutex) != 0;
		wrong += pthread_mutex_unlock(&mutex) != 0;
	}
	return wrong;
}

static uint64_t mutex_tries(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += pthread_mutex_trylock(&mutex) != 0;
		wrong += pthread_mutex_trylock(&mutex) != EBUSY;
		wrong += pthread_mutex_unlock(&mutex) != 0;
	}
	return wrong;
}

/* Out of line, as the others are. */
static __attribute__((noinline)) int atomic_take(uint32_t *word)
{
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
	do {
		if (seen == 0)
			return EBUSY;
	} while (!__atomic_compare_exchange_n(word, &seen, seen - 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return 0;
}

static __attribute__((noinline)) int atomic_give(uint32_t *word)
{
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	return 0;
}

static uint64_t atomic_pairs(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += atomic_take(&permits) != 0;
		wrong += atomic_give(&permits) != 0;
	}
	return wrong;
}

static uint64_t atomic_tries(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += atomic_take(&permits) != 0;
		wrong += atomic_take(&permits) != EBUSY;
		wrong += atomic_give(&permits) != 0;
	}
	return wrong;
}

static const struct {
	const char *impl;
	const char *mode;
	pairs *run;
} runs[] = {
	{ "vez", "pair", vez_pairs },
	{ "vez", "try", vez_tries },
	{ "sem_t", "pair", sem_pairs },
	{ "sem_t", "try", sem_tries },
	{ "pthread_mutex", "pair", mutex_pairs },
	{ "pthread_mutex", "try", mutex_tries },
	{ "atomic", "pair", atomic_pairs },
	{ "atomic", "try", atomic_tries },
};

static pairs *chosen(const char *impl, const char *mode)
{
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		if (strcmp(runs[i].impl, impl) == 0 && strcmp(runs[i].mode, mode) == 0)
			return runs[i].run;
	perf_fail("no --impl=%s with --mode=%s", impl, mode);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	perf_options(argc, argv, "take and give back, alone", options, sizeof options / sizeof *options);
	const char *impl = perf_option(options, "impl");
	const char *mode = perf_option(options, "mode");
	pairs *run = chosen(impl, mode);
	uint64_t ops = perf_number(options, "ops");
	sem_init(&sem, 0, 1);
	perf_pin(perf_option(options, "cpu"));
	perf_sleeper_begin();
	uint64_t wrong = run(ops / 100 + 1);
	perf_begin(&region);
	wrong += run(ops);
	perf_end(&region);
	perf_sleeper_end();
	if (wrong)
		perf_fail("%s: %llu wrong results", impl, (unsigned long long)wrong);
	perf_print(&(struct perf_result){ "uncontended", impl, mode, 0, perf_option(options, "cpu"), ops, "" },
		   &region);
	return 0;
}
