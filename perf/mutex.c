/* SPDX-License-Identifier: MIT */
/*
 * mutex: threads that want the same mutex, over and over, for a short section.
 *
 *	vez               vez_mutex_t: running threads overtake, for a millisecond at most
 *	vez-fair          with VEZ_FAIR: handed over at every unlock
 *	vez-recursive     with VEZ_RECURSIVE, which tracks its owner
 *	pthread           the C library's default
 *	pthread-adaptive  its kind that spins
 *	pthread-recursive its kind that tracks its owner
 *
 *	contended  all threads for limit-ms: a section of that many nanoseconds inside, and as many outside. An
 *	           operation is a lock and an unlock. fairness: the most operations of a thread over the fewest
 *	pair       one thread, alone in the mutex; the others sleep
 *
 * The section is a chain of multiplications, as long as was measured when the program began. What it computes is read
 * and written in the section only, by all threads, and is checked at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vez/mutex.h>

#include "perf.h"

#define MOST_THREADS 256

static struct perf_option options[] = {
	{ "impl", "vez", "vez, vez-fair, vez-recursive, pthread, pthread-adaptive, pthread-recursive" },
	{ "mode", "contended", "contended, or pair: one thread alone" },
	{ "threads", "4", "threads" },
	{ "section", "10", "nanoseconds inside, and outside" },
	{ "outside", "same", "nanoseconds outside, if they are others" },
	{ "ops", "5000000", "pairs (mode pair)" },
	{ "limit-ms", "200", "how long all run (mode contended)" },
	{ "cpu", "any", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

static struct {
	vez_mutex_t vez;
	pthread_mutex_t pthread;
} lock __attribute__((aligned(128)));

/* Guarded by the lock, on a line of its own. */
static struct {
	uint64_t value;
	uint64_t count;
} guarded __attribute__((aligned(128)));

static bool stop __attribute__((aligned(128)));
static unsigned steps_inside, steps_outside;
static pthread_barrier_t begin, end;

struct worker {
	pthread_t thread;
	void (*work)(struct worker *w);
	uint64_t ops;
	uint64_t value;
} __attribute__((aligned(128)));

/* ---- sections ---- */

typedef int call(void);

static inline __attribute__((always_inline)) void work_with(struct worker *w, call *take, call *give)
{
	uint64_t wrong = 0;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		wrong += (uint64_t)take();
		guarded.value = perf_compute(guarded.value, steps_inside);
		guarded.count++;
		wrong += (uint64_t)give();
		w->value = perf_compute(w->value, steps_outside);
		w->ops++;
	}
	if (wrong)
		perf_fail("%llu wrong results", (unsigned long long)wrong);
}

static inline __attribute__((always_inline)) uint64_t pairs_with(uint64_t n, call *take, call *give)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += (uint64_t)take();
		wrong += (uint64_t)give();
	}
	return wrong;
}

/* ---- implementations ---- */

static inline int vez_take(void)
{
	return vez_mutex_lock(&lock.vez);
}

static inline int vez_give(void)
{
	return vez_mutex_unlock(&lock.vez);
}

static inline int pthread_take(void)
{
	return pthread_mutex_lock(&lock.pthread);
}

static inline int pthread_give(void)
{
	return pthread_mutex_unlock(&lock.pthread);
}

static void vez_work(struct worker *w)
{
	work_with(w, vez_take, vez_give);
}

static void pthread_work(struct worker *w)
{
	work_with(w, pthread_take, pthread_give);
}

static uint64_t vez_pairs(uint64_t n)
{
	return pairs_with(n, vez_take, vez_give);
}

static uint64_t pthread_pairs(uint64_t n)
{
	return pairs_with(n, pthread_take, pthread_give);
}

static void vez_make(int flags)
{
	if (vez_mutex_init(&lock.vez, (unsigned)flags) != 0)
		perf_fail("cannot create a mutex");
}

static void pthread_make(int type)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	if (pthread_mutex_init(&lock.pthread, &attr) != 0)
		perf_fail("cannot create a mutex");
	pthread_mutexattr_destroy(&attr);
}

static const struct impl {
	const char *name;
	void (*make)(int kind);
	int kind;
	void (*work)(struct worker *w);
	uint64_t (*pairs)(uint64_t n);
} impls[] = {
	{ "vez", vez_make, 0, vez_work, vez_pairs },
	{ "vez-fair", vez_make, VEZ_FAIR, vez_work, vez_pairs },
	{ "vez-recursive", vez_make, VEZ_RECURSIVE, vez_work, vez_pairs },
	{ "pthread", pthread_make, PTHREAD_MUTEX_NORMAL, pthread_work, pthread_pairs },
	{ "pthread-adaptive", pthread_make, PTHREAD_MUTEX_ADAPTIVE_NP, pthread_work, pthread_pairs },
	{ "pthread-recursive", pthread_make, PTHREAD_MUTEX_RECURSIVE, pthread_work, pthread_pairs },
};

static const struct impl *chosen(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			return &impls[i];
	perf_fail("no --impl=%s", name);
}

/* ---- contended ---- */

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&begin);
	w->work(w);
	pthread_barrier_wait(&end);
	return NULL;
}

static void sleep_ms(uint64_t ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

static void contend(const struct impl *impl, struct perf_region *region, struct worker *workers, unsigned threads)
{
	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		workers[i] = (struct worker){ .work = impl->work };
		workers[i].thread = perf_thread(run_worker, &workers[i]);
	}
	sleep_ms(2);
	perf_begin(region);
	pthread_barrier_wait(&begin);
	sleep_ms(perf_number(options, "limit-ms"));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_barrier_wait(&end);
	perf_end(region);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
}

static void report(const struct impl *impl, const struct perf_region *region, const struct worker *workers,
		   unsigned threads)
{
	uint64_t sum = 0, most = 0, fewest = UINT64_MAX;
	char extra[128];
	for (unsigned i = 0; i < threads; i++) {
		sum += workers[i].ops;
		most = workers[i].ops > most ? workers[i].ops : most;
		fewest = workers[i].ops < fewest ? workers[i].ops : fewest;
	}
	if (sum != guarded.count)
		perf_fail("%s: %llu operations, but %llu were counted inside", impl->name, (unsigned long long)sum,
			  (unsigned long long)guarded.count);
	snprintf(extra, sizeof extra, "\"section\": %s, \"most\": %llu, \"fewest\": %llu, \"fairness\": %.2f",
		 perf_option(options, "section"), (unsigned long long)most, (unsigned long long)fewest,
		 (double)most / (double)(fewest ? fewest : 1));
	perf_print(&(struct perf_result){ "mutex", impl->name, "contended", threads, perf_option(options, "cpu"),
					  sum ? sum : 1, extra },
		   region);
}

static void run_contended(const struct impl *impl, unsigned threads)
{
	static struct worker workers[MOST_THREADS];
	struct perf_region region;
	const char *outside = perf_option(options, "outside");
	steps_inside = perf_steps_for((double)perf_number(options, "section"));
	bool same = strcmp(outside, "same") == 0;
	steps_outside = same ? steps_inside : perf_steps_for((double)perf_number(options, "outside"));
	contend(impl, &region, workers, threads);
	report(impl, &region, workers, threads);
}

/* ---- alone ---- */

static void run_pairs(const struct impl *impl)
{
	struct perf_region region;
	uint64_t ops = perf_number(options, "ops");
	perf_sleeper_begin();
	uint64_t wrong = impl->pairs(ops / 100 + 1);
	perf_begin(&region);
	wrong += impl->pairs(ops);
	perf_end(&region);
	perf_sleeper_end();
	if (wrong)
		perf_fail("%s: %llu wrong results", impl->name, (unsigned long long)wrong);
	perf_print(&(struct perf_result){ "mutex", impl->name, "pair", 0, perf_option(options, "cpu"), ops, "" },
		   &region);
}

int main(int argc, char **argv)
{
	perf_options(argc, argv, "threads that want the same mutex", options, sizeof options / sizeof *options);
	const struct impl *impl = chosen(perf_option(options, "impl"));
	unsigned threads = (unsigned)perf_number(options, "threads");
	if (threads < 1 || threads > MOST_THREADS)
		perf_fail("--threads is 1 to %d", MOST_THREADS);
	perf_pin(perf_option(options, "cpu"));
	impl->make(impl->kind);
	if (strcmp(perf_option(options, "mode"), "pair") == 0)
		run_pairs(impl);
	else
		run_contended(impl, threads);
	return 0;
}
