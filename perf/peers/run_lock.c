/* SPDX-License-Identifier: MIT */
/* Mutexes and reader-writer locks. */
#include <sched.h>

#include "run.h"

#define READERS 8
#define WRITERS 2
#define HOLD 48 /* pauses inside an rwlock, of about 21 ns each */

/* ---- mutex ---- */

static const struct peer_mutex *mutex;

void mutex_pair(void)
{
	RUN_FIND(peer.mutexes);
	run.object = run_object(found->size, 1);
	run.result.bytes = found->make(run.object, 0);
	run_alone(found->pairs);
}

static void *contend(void *arg)
{
	pthread_barrier_wait(&run.begin);
	mutex->contend(run.object, arg);
	pthread_barrier_wait(&run.end);
	return NULL;
}

void mutex_contended(void)
{
	uint64_t sum = 0;
	RUN_FIND(peer.mutexes);
	mutex = found;
	run.object = run_object(mutex->size, 1);
	run.result.bytes = mutex->make(run.object, 0);
	peer_run.inside = peer_run.outside = perf_steps_for(run.section);
	pthread_barrier_init(&run.begin, NULL, run.threads + 1);
	pthread_barrier_init(&run.end, NULL, run.threads + 1);
	run_start(run.threads, contend);
	run_sleep_ms(2);
	run_begins();
	pthread_barrier_wait(&run.begin);
	run_sleep_ms(run.limit * 1e3);
	run_stop();
	pthread_barrier_wait(&run.end);
	run_ends();
	run_join(run.threads);
	for (unsigned i = 0; i < run.threads; i++)
		sum += run.workers[i].ops;
	if (sum != peer_guarded.count)
		perf_fail("%llu operations, but %llu were counted inside", (unsigned long long)sum,
			  (unsigned long long)peer_guarded.count);
	run.result.fairness = run_fairness(0, run.threads);
	run.result.ops = sum ? sum : 1;
}

/* ---- rwlock ---- */

static const struct peer_rwlock *rwlock;
static bool first_is_done;
static struct {
	uint64_t first __attribute__((aligned(128)));
	uint64_t second __attribute__((aligned(128)));
} data;

struct visit {
	struct peer_worker *worker;
	double before;
};

static void stay(void)
{
	sched_yield();
	perf_pause(HOLD);
}

static void write_section(void *arg)
{
	struct visit *v = arg;
	peer_after_wait(v->worker, v->before);
	data.first++;
	stay();
	data.second++;
}

static void read_section(void *arg)
{
	struct visit *v = arg;
	peer_after_wait(v->worker, v->before);
	uint64_t first = data.first;
	stay();
	if (first != data.second)
		perf_fail("a reader and a writer at the same time");
}

/* The first that is done looks how far the others are. */
static void tell_fairness(void)
{
	if (__atomic_exchange_n(&first_is_done, true, __ATOMIC_RELAXED))
		return;
	double readers = run_fairness(0, READERS), writers = run_fairness(READERS, WRITERS);
	double all = run_fairness(0, READERS + WRITERS);
	run.result.fairness = readers > writers ? readers : writers;
	run.result.fairness = all > run.result.fairness ? all : run.result.fairness;
}

static void *visit(void *arg)
{
	struct peer_worker *w = arg;
	bool writes = w->number >= READERS;
	struct visit v = { w, 0 };
	pthread_barrier_wait(&run.begin);
	while (w->ops < w->quota) {
		v.before = peer_before_wait();
		if (writes)
			rwlock->write(run.object, write_section, &v);
		else
			rwlock->read(run.object, read_section, &v);
		__atomic_store_n(&w->ops, w->ops + 1, __ATOMIC_RELAXED);
		perf_pause(run.think);
	}
	tell_fairness();
	pthread_barrier_wait(&run.end);
	return NULL;
}

void rwlock_work(void)
{
	unsigned n = READERS + WRITERS;
	RUN_FIND(peer.rwlocks);
	rwlock = found;
	run.object = run_object(rwlock->size, 1);
	run.result.bytes = rwlock->make(run.object, 0);
	pthread_barrier_init(&run.begin, NULL, n + 1);
	pthread_barrier_init(&run.end, NULL, n + 1);
	for (unsigned i = 0; i < n; i++)
		run.workers[i].quota = run.ops / n;
	run_start(n, visit);
	run_sleep_ms(2);
	run_begins();
	pthread_barrier_wait(&run.begin);
	pthread_barrier_wait(&run.end);
	run_ends();
	run_join(n);
	run.result.ops = run.ops / n * n;
	if (data.first != run.ops / n * WRITERS)
		perf_fail("writes were lost");
}

void rwlock_rd(void)
{
	RUN_FIND(peer.rwlocks);
	run.object = run_object(found->size, 1);
	run.result.bytes = found->make(run.object, 0);
	run_alone(found->read_pairs);
}

void rwlock_wr(void)
{
	RUN_FIND(peer.rwlocks);
	run.object = run_object(found->size, 1);
	run.result.bytes = found->make(run.object, 0);
	run_alone(found->write_pairs);
}
