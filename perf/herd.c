/* SPDX-License-Identifier: MIT */
/*
 * herd: many wait for permits of one semaphore, one releases them, first come first served.
 *
 * Each of N waiters acquires k permits, over and over. The releaser gives, in one call, what the next H in the
 * queue want:
 *	lockstep  H = 1: every grant is one wake of one thread, with all N queued
 *	window    H = N/2: a burst, so that what paces the run is paid once for N/2 grants
 *
 * Pacing, the same for all: a burst begins when all N are queued and all that was granted before has returned. The
 * waiters do nothing for it but count their returns; the releaser looks at two counters and, as long as they are
 * short, lets others run (perf_until). On one processor that is one sched_yield a burst, and so one switch, if the
 * scheduler then runs all that were woken.
 *
 * FIFO, exactly: since nobody queues between the beginning of a burst and the grants of it, those who are granted
 * together must have been queued before all who are not. Every return is logged, and the log is replayed after the
 * run. The initial order is known, since each waiter starts when the one before is queued. Conservation: as many
 * returns as grants, nobody queued and no permit left at the end.
 *
 * raw has no permits and is granted in turn, which is the same order; within a burst any order will do.
 *
 * Seen to fail: with a library that puts a newcomer at the head of its room, both modes end with "not FIFO ...
 * overtaken in burst 0"; with a baseline that takes a permit too few for each grant, the run stops, and the watchdog
 * says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "perf.h"

#define MOST_PERMITS 8

static const struct impl *const impls[] = {
	&impl_vez, &impl_cond_broadcast, &impl_cond_request, &impl_cond_request_locked, &impl_raw, NULL
};

static struct perf_option options[] = {
	{ "impl", "vez", "vez, cond-broadcast, cond-request, cond-request-locked, raw" },
	{ "mode", "lockstep", "lockstep: one grant at a time; window: N/2" },
	{ "waiters", "8", "N" },
	{ "ops", "20000", "grants" },
	{ "permits", "1", "for each acquire: 1, or random:8 for 1 to 8" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ "limit-ms", "0", "ends the run at a burst after this time; 0: never" },
	{ NULL, NULL, NULL },
};

struct herd {
	const struct impl *impl;
	void *sem;
	unsigned waiters;
	unsigned burst;
	uint64_t ops;
	bool random;
	double limit;

	uint16_t *log; /* who returned, in order */
	uint64_t released;
	bool stop;

	uint64_t returned __attribute__((aligned(128)));
};

struct waiter {
	struct herd *herd;
	unsigned slot;
	pthread_t thread;
};

/* What a waiter's round asks for: both sides know it without talking. */
static uint32_t wants(const struct herd *h, unsigned slot, uint64_t round)
{
	if (!h->random)
		return 1;
	uint64_t mixed = (round * 1031 + slot + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return 1 + (uint32_t)(mixed >> 61) % MOST_PERMITS;
}

static void *wait_in_turn(void *arg)
{
	struct waiter *w = arg;
	struct herd *h = w->herd;
	for (uint64_t round = 0;; round++) {
		h->impl->acquire(h->sem, w->slot, wants(h, w->slot, round));
		if (__atomic_load_n(&h->stop, __ATOMIC_RELAXED))
			return NULL;
		h->log[__atomic_fetch_add(&h->returned, 1, __ATOMIC_ACQ_REL)] = (uint16_t)w->slot;
	}
}

/* ---- pacing ---- */

static bool all_queued(void *arg)
{
	struct herd *h = arg;
	return __atomic_load_n(&h->returned, __ATOMIC_ACQUIRE) == h->released && h->impl->waiters(h->sem) == h->waiters;
}

struct queued {
	struct herd *herd;
	size_t count;
};

static bool some_queued(void *arg)
{
	struct queued *q = arg;
	return q->herd->impl->waiters(q->herd->sem) == q->count;
}

static void start(struct herd *h, struct waiter *waiters)
{
	for (unsigned i = 0; i < h->waiters; i++) {
		struct queued q = { h, i + 1 };
		waiters[i] = (struct waiter){ .herd = h, .slot = i };
		waiters[i].thread = perf_thread(wait_in_turn, &waiters[i]);
		perf_until(some_queued, &q);
	}
}

/* What the next count in the queue want. In a burst of N/2 the same waiters always come together: slots [0, N/2) and
 * the others by turns, each of them once, in whatever order. */
static uint32_t demand(const struct herd *h, uint64_t first, unsigned count)
{
	uint32_t sum = 0;
	for (uint64_t i = first; i < first + count; i++)
		sum += wants(h, (unsigned)(i % h->waiters), i / h->waiters);
	return sum;
}

static void release_all(struct herd *h)
{
	double end = h->limit > 0 ? perf_now() + h->limit : 0;
	while (h->released < h->ops) {
		uint32_t permits = demand(h, h->released, h->burst);
		h->released += h->burst;
		h->impl->release(h->sem, permits);
		perf_until(all_queued, h);
		if (end > 0 && perf_now() > end)
			break;
	}
}

static void finish(struct herd *h, struct waiter *waiters)
{
	__atomic_store_n(&h->stop, true, __ATOMIC_RELAXED);
	h->impl->release(h->sem, demand(h, h->released, h->waiters));
	for (unsigned i = 0; i < h->waiters; i++)
		pthread_join(waiters[i].thread, NULL);
	if (h->returned != h->released || h->impl->waiters(h->sem) != 0 || h->impl->permits(h->sem) != 0)
		perf_fail("%s: not conserved: %llu returns of %llu grants, %zu queued, %u permits left", h->impl->name,
			  (unsigned long long)h->returned, (unsigned long long)h->released, h->impl->waiters(h->sem),
			  h->impl->permits(h->sem));
}

/* ---- order ---- */

/* One burst: nobody in it was queued after somebody who is not in it. since: when each was queued last, as the number
 * of the burst after which it was; those who came together share it. */
static void check_burst(const struct herd *h, const uint16_t *granted, int64_t burst, int64_t *since)
{
	int64_t latest = INT64_MIN;
	for (unsigned i = 0; i < h->burst; i++) {
		if (since[granted[i]] == burst)
			perf_fail("%s: waiter %u was granted twice in burst %lld", h->impl->name, granted[i],
				  (long long)burst);
		latest = since[granted[i]] > latest ? since[granted[i]] : latest;
		since[granted[i]] = burst;
	}
	for (unsigned i = 0; i < h->waiters; i++)
		if (since[i] < latest)
			perf_fail("%s: not FIFO: waiter %u was overtaken in burst %lld", h->impl->name, i,
				  (long long)burst);
}

static void check_order(const struct herd *h)
{
	int64_t *since = malloc(h->waiters * sizeof *since);
	if (!since)
		perf_fail("no memory");
	for (unsigned i = 0; i < h->waiters; i++)
		since[i] = (int64_t)i - h->waiters;
	for (uint64_t i = 0; i < h->released; i += h->burst)
		check_burst(h, h->log + i, (int64_t)(i / h->burst), since);
	free(since);
}

/* ---- the program ---- */

static void configure(struct herd *h)
{
	const char *mode = perf_option(options, "mode");
	const char *permits = perf_option(options, "permits");
	bool window = strcmp(mode, "window") == 0;
	memset(h, 0, sizeof *h);
	h->impl = impl_named(impls, perf_option(options, "impl"));
	h->waiters = (unsigned)perf_number(options, "waiters");
	h->burst = window && h->waiters > 1 ? h->waiters / 2 : 1;
	h->ops = perf_number(options, "ops");
	h->random = strcmp(permits, "random:8") == 0;
	h->limit = (double)perf_number(options, "limit-ms") / 1e3;
	if (!window && strcmp(mode, "lockstep") != 0)
		perf_fail("--mode is lockstep or window");
	if (!h->random && strcmp(permits, "1") != 0)
		perf_fail("--permits is 1 or random:8");
	if (h->waiters < 1 || h->waiters > 4096 || h->ops < 1)
		perf_fail("--waiters is 1 to 4096, --ops at least 1");
	if (h->random && h->impl == &impl_raw)
		perf_fail("raw has no permits");
	if (h->random && window && h->waiters % 2)
		perf_fail("with random permits a window needs an even number of waiters");
}

int main(int argc, char **argv)
{
	struct herd h;
	struct perf_region region;
	char extra[64];
	perf_options(argc, argv, "N waiters, one releaser, FIFO", options, sizeof options / sizeof *options);
	configure(&h);
	perf_pin(perf_option(options, "cpu"));
	struct waiter *waiters = calloc(h.waiters, sizeof *waiters);
	h.log = calloc(h.ops + h.burst, sizeof *h.log);
	if (!waiters || !h.log)
		perf_fail("no memory");
	h.sem = h.impl->create(h.waiters);
	start(&h, waiters);
	perf_begin(&region);
	release_all(&h);
	perf_end(&region);
	finish(&h, waiters);
	check_order(&h);
	snprintf(extra, sizeof extra, "\"permits\": \"%s\"", perf_option(options, "permits"));
	perf_print(&(struct perf_result){ "herd", h.impl->name, perf_option(options, "mode"), h.waiters,
					  perf_option(options, "cpu"), h.released, extra },
		   &region);
	h.impl->destroy(h.sem);
	free(h.log);
	free(waiters);
	return 0;
}
