/* SPDX-License-Identifier: MIT */
/* Semaphores: one thread alone; permits for those who wait, and whether they get them in order. */
#include "run.h"

static const struct peer_sem *sem;
static void *sems[2]; /* the same one twice in lockstep */
static unsigned burst;
static uint16_t *served; /* who returned, in order */

void sem_pair(void)
{
	RUN_FIND(peer.sems);
	run.object = run_object(found->size, 1);
	run.result.bytes = found->make(run.object, 1);
	run_alone(found->pairs);
}

static void *wait_in_turn(void *arg)
{
	struct peer_worker *w = arg;
	for (unsigned at = w->number < burst ? 0 : 1;; at = 1 - at) {
		__atomic_fetch_add(&run.arrived, 1, __ATOMIC_RELAXED);
		double before = peer_before_wait();
		sem->acquire(sems[at], w->number);
		if (run_stopped())
			return NULL;
		peer_after_wait(w, before);
		w->ops++;
		served[__atomic_fetch_add(&run.returned, 1, __ATOMIC_ACQ_REL)] = (uint16_t)w->number;
	}
}

static bool this_many_wait(void *arg)
{
	return __atomic_load_n(&run.arrived, __ATOMIC_RELAXED) == *(uint64_t *)arg;
}

/* One more thread at a time, so that the order in which they came is known. */
static void start_in_turn(void)
{
	for (uint64_t i = 0; i < run.threads; i++) {
		uint64_t expected = i + 1;
		run.workers[i].number = (unsigned)i;
		run.workers[i].thread = perf_thread(wait_in_turn, &run.workers[i]);
		perf_until(this_many_wait, &expected);
	}
	run_sleep_ms(2);
}

static void grant_bursts(void)
{
	double until = perf_now() + run.limit;
	while (run.released < RUN_MOST_OPS - PEER_MOST && !(run.released / burst % 16 == 0 && perf_now() > until)) {
		void *next = sems[run.released / burst % 2];
		run.released += burst;
		sem->release(next, burst);
		perf_until(run_all_wait, NULL);
	}
}

/* Those who are served together must have come before all who wait at the same one and are not. */
static uint64_t overtakings(void)
{
	uint64_t wrong = 0;
	int64_t since[PEER_MOST];
	unsigned at[PEER_MOST];
	for (unsigned i = 0; i < run.threads; i++) {
		since[i] = (int64_t)i - run.threads;
		at[i] = i < burst ? 0 : 1;
	}
	for (uint64_t i = 0; i < run.released; i += burst) {
		unsigned here = sems[0] == sems[1] ? 0 : i / burst % 2;
		int64_t latest = INT64_MIN;
		for (unsigned k = 0; k < burst; k++) {
			unsigned one = served[i + k];
			latest = since[one] > latest ? since[one] : latest;
			since[one] = (int64_t)(i / burst);
			at[one] = 1 - at[one];
		}
		for (unsigned k = 0; k < run.threads; k++)
			wrong += since[k] < latest && (sems[0] == sems[1] || at[k] == here);
	}
	return wrong;
}

static void sem_grants(unsigned at_once, unsigned count)
{
	RUN_FIND(peer.sems);
	sem = found;
	burst = at_once;
	served = calloc(RUN_MOST_OPS + PEER_MOST, sizeof *served);
	for (unsigned i = 0; i < 2; i++) {
		sems[i] = i < count ? run_object(sem->size, 1) : sems[0];
		if (i < count)
			run.result.bytes = sem->make(sems[i], 0);
	}
	start_in_turn();
	run_begins();
	grant_bursts();
	run_ends();
	run.result.ops = run.released;
	run.result.fairness = run_fairness(0, run.threads);
	run_stop();
	for (unsigned i = 0; i < 2; i++)
		sem->release(sems[i], run.threads);
	run_join(run.threads);
	if (run.returned != run.released)
		perf_fail("%llu returns of %llu grants", (unsigned long long)run.returned,
			  (unsigned long long)run.released);
	run.result.overtakings = (double)overtakings() / (double)run.released;
	run.result.has_overtakings = true;
	free(served);
}

void sem_lockstep(void)
{
	sem_grants(1, 1);
}

void sem_bursts(void)
{
	if (run.threads < 2)
		perf_fail("--threads is at least 2");
	sem_grants(run.threads / 2, 2);
}
