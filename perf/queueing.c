/* SPDX-License-Identifier: MIT */
/*
 * queueing: what the FIFO queue costs, and what one false wake costs.
 *
 *	release  N waiters of high priority acquire one permit over and over; a releaser of low priority gives them, one
 *	         at a time, all on one processor. Each release lets one waiter go, who runs at once, queues again and
 *	         sleeps: there is no pacing and no contention, and what differs is the queue. With one: vez, and
 *	         cond-request on pthreads. Without: the C library's sem_t, and cond-plain, a counter under a mutex with
 *	         signal, which compares with cond-request like with like. A 2009 monograph on execution
 *	         delegation measured under 3 % for N < 4.
 *	false    the price of a thread that is woken only to find that it cannot go: a waiter of high priority is
 *	         woken in vain and sleeps again: two switches, a FUTEX_WAKE, a FUTEX_WAIT. --impl=futex only.
 *
 * The waiters have SCHED_FIFO where that is permitted; else the releaser makes itself nicer. "priority" in the result
 * says which. The releaser stays an ordinary thread, so that the kernel's bound on real-time threads never bites.
 *
 * Conservation: as many returns as releases, and each waiter's count apart from the others' by one at most where
 * there is a queue: with all N queued at every release, FIFO is a rota. Seen to fail: with a library that puts a
 * newcomer at the head of its room, one waiter has all the turns.
 */
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "impl.h"
#include "perf.h"

static const struct impl *const impls[] = { &impl_vez, &impl_sem_t, &impl_cond_request, &impl_cond_plain, NULL };

static struct perf_option options[] = {
	{ "impl", "vez", "vez, sem_t, cond-request, cond-plain; futex with --mode=false" },
	{ "mode", "release", "release, or false: the price of one false wake" },
	{ "waiters", "1", "N" },
	{ "ops", "50000", "releases" },
	{ "cpu", "0", "the processor to run on" },
	{ NULL, NULL, NULL },
};

struct waiter {
	const struct impl *impl;
	void *sem;
	unsigned slot;
	bool *stop;
	uint64_t returned;
	pthread_t thread;
} __attribute__((aligned(128)));

/* How the waiters come before the releaser. */
static const char *priority = "none";
static bool risen;

/* ---- priorities ---- */

/* The calling thread, about to wait: above the releaser. */
static void rise(void)
{
	struct sched_param high = { .sched_priority = 1 };
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &high) == 0)
		__atomic_store_n(&risen, true, __ATOMIC_RELAXED);
}

/* The releaser, when the waiters sleep: below them, if they could not rise. */
static void sink(void)
{
	if (__atomic_load_n(&risen, __ATOMIC_RELAXED))
		priority = "SCHED_FIFO";
	else if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 19) == 0)
		priority = "nice";
}

/* Lets the waiters run until each has taken all that was released and sleeps again. With SCHED_FIFO they have. */
static void settle(void)
{
	for (unsigned i = 0; i < 100; i++)
		sched_yield();
}

/* ---- release ---- */

static void *wait_in_turn(void *arg)
{
	struct waiter *w = arg;
	rise();
	for (;;) {
		w->impl->acquire(w->sem, w->slot, 1);
		if (__atomic_load_n(w->stop, __ATOMIC_RELAXED))
			return NULL;
		__atomic_store_n(&w->returned, w->returned + 1, __ATOMIC_RELAXED);
	}
}

static uint64_t returned(struct waiter *waiters, unsigned count)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += __atomic_load_n(&waiters[i].returned, __ATOMIC_RELAXED);
	return sum;
}

static void check(struct waiter *waiters, unsigned count, uint64_t ops)
{
	if (returned(waiters, count) != ops)
		perf_fail("%s: %llu returns of %llu releases", waiters->impl->name,
			  (unsigned long long)returned(waiters, count), (unsigned long long)ops);
	bool queued = waiters->impl->waiters != NULL && strcmp(priority, "SCHED_FIFO") == 0;
	for (unsigned i = 1; queued && i < count; i++) {
		int64_t apart = (int64_t)(waiters[i].returned - waiters[0].returned);
		if (apart < -1 || apart > 1)
			perf_fail("%s: not FIFO: one waiter had %lld turns more than another", waiters->impl->name,
				  (long long)apart);
	}
}

static void measure_release(struct perf_region *region, const char *name, unsigned count, uint64_t ops)
{
	const struct impl *impl = impl_named(impls, name);
	struct waiter *waiters = aligned_alloc(128, count * sizeof *waiters);
	void *sem = impl->create(count);
	bool stop = false;
	if (!waiters)
		perf_fail("no memory");
	for (unsigned i = 0; i < count; i++) {
		waiters[i] = (struct waiter){ .impl = impl, .sem = sem, .slot = i, .stop = &stop };
		waiters[i].thread = perf_thread(wait_in_turn, &waiters[i]);
	}
	settle();
	sink();
	perf_begin(region);
	for (uint64_t i = 0; i < ops; i++)
		impl->release(sem, 1);
	while (returned(waiters, count) != ops)
		sched_yield();
	perf_end(region);
	settle();
	check(waiters, count, ops);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	impl->release(sem, count);
	for (unsigned i = 0; i < count; i++)
		pthread_join(waiters[i].thread, NULL);
	impl->destroy(sem);
	free(waiters);
}

/* ---- false ---- */

struct sleeper {
	uint32_t word;
	uint64_t woken;
};

static void *sleep_and_look(void *arg)
{
	struct sleeper *s = arg;
	rise();
	while (!__atomic_load_n(&s->word, __ATOMIC_ACQUIRE)) {
		syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		__atomic_store_n(&s->woken, s->woken + 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void measure_false(struct perf_region *region, uint64_t ops)
{
	struct sleeper s = { 0, 0 };
	pthread_t thread = perf_thread(sleep_and_look, &s);
	settle();
	sink();
	perf_begin(region);
	for (uint64_t i = 0; i < ops; i++)
		syscall(SYS_futex, &s.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	perf_end(region);
	if (strcmp(priority, "SCHED_FIFO") == 0 && __atomic_load_n(&s.woken, __ATOMIC_RELAXED) != ops)
		perf_fail("%llu wakes were seen %llu times", (unsigned long long)ops, (unsigned long long)s.woken);
	__atomic_store_n(&s.word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char extra[64];
	perf_options(argc, argv, "what a queue costs", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	const char *impl = perf_option(options, "impl");
	unsigned count = (unsigned)perf_number(options, "waiters");
	uint64_t ops = perf_number(options, "ops");
	perf_pin(perf_option(options, "cpu"));
	if (count < 1 || count > 1024 || ops < 1)
		perf_fail("--waiters is 1 to 1024, --ops at least 1");
	if (strcmp(mode, "release") == 0)
		measure_release(&region, impl, count, ops);
	else if (strcmp(mode, "false") == 0 && strcmp(impl, "futex") == 0)
		measure_false(&region, ops);
	else
		perf_fail("no --mode=%s with --impl=%s", mode, impl);
	snprintf(extra, sizeof extra, "\"priority\": \"%s\"", priority);
	perf_print(&(struct perf_result){ "queueing", impl, mode, count, perf_option(options, "cpu"), ops, extra },
		   &region);
	return 0;
}
