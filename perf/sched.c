/* SPDX-License-Identifier: MIT */
/*
 * sched: --threads threads use one resource, one at a time, each time with a random priority; the best one of those who
 * wait comes next, equals in order of arrival.
 *
 *	work    the threads enter and leave --ops times in all, each the same share of it, and stay inside for about a
 *	        microsecond; an operation is one of them
 *	pair    one thread, uncontended: enter and leave
 *
 * With --yield=1 who is inside lets the others run first, so that they queue up whatever the scheduler does.
 *
 *	vez             vez_sched_t with a function that compares the priorities
 *	cond-heap       a mutex, a heap of those who wait, and a condition for each: the leaving one hands over to the
 *	                best and signals it after unlocking: the best that pthreads allow
 *	cond-broadcast  the same heap, but one condition for all, broadcast after unlocking: each looks whether it is
 *	                meant
 *
 * Checked: every stay is alone (seen to fail: cond-heap, which never finds the resource busy), and with --yield=1 the
 * better half of the priorities is passed by fewer than the worse one (seen to fail: a heap in order of arrival). Told:
 * by how many on average.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <vez/sched.h>

#include "perf.h"

#define MOST 256
#define PRIORITIES 1024

static struct perf_option options[] = {
	{ "impl", "vez", "vez, cond-heap, cond-broadcast" },
	{ "mode", "work", "work, pair" },
	{ "threads", "8", "threads" },
	{ "hold", "48", "pauses inside, of about 21 ns each" },
	{ "yield", "1", "1: who is inside lets others run first, so that they queue up whatever the scheduler does" },
	{ "ops", "20000", "entries in all, or pairs" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

/* ---- vez ---- */

static vez_sched_t vez;

static bool before(const void *a, const void *b)
{
	return *(const unsigned *)a < *(const unsigned *)b;
}

static void vez_enter(unsigned priority)
{
	if (vez_sched_enter(&vez, &priority) != 0)
		perf_fail("an enter failed");
}

static void vez_leave(void)
{
	if (vez_sched_leave(&vez) != 0)
		perf_fail("a leave failed");
}

/* ---- mutex and conditions ---- */

struct turn {
	pthread_cond_t granted;
	uint64_t order; /* priority, then arrival */
	bool may;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t all;
	bool busy;
	uint64_t arrivals;
	struct turn *heap[MOST];
	unsigned waiting;
} cond = { .mutex = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER };

static void push(struct turn *turn)
{
	unsigned i = cond.waiting++;
	for (; i > 0 && turn->order < cond.heap[(i - 1) / 2]->order; i = (i - 1) / 2)
		cond.heap[i] = cond.heap[(i - 1) / 2];
	cond.heap[i] = turn;
}

static struct turn *pop(void)
{
	struct turn *best = cond.heap[0], *last = cond.heap[--cond.waiting];
	unsigned i = 0;
	for (unsigned child = 1; child < cond.waiting; i = child, child = 2 * i + 1) {
		if (child + 1 < cond.waiting && cond.heap[child + 1]->order < cond.heap[child]->order)
			child++;
		if (last->order <= cond.heap[child]->order)
			break;
		cond.heap[i] = cond.heap[child];
	}
	cond.heap[i] = last;
	return best;
}

static void cond_enter_on(unsigned priority, struct turn *own, pthread_cond_t *on)
{
	pthread_mutex_lock(&cond.mutex);
	if (cond.busy) {
		own->may = false;
		own->order = (uint64_t)priority << 48 | cond.arrivals++;
		push(own);
		while (!own->may)
			pthread_cond_wait(on, &cond.mutex);
	}
	cond.busy = true;
	pthread_mutex_unlock(&cond.mutex);
}

/* The condition of the one that comes next, whose turn it is from here on; NULL: nobody waits. */
static pthread_cond_t *cond_leave(void)
{
	pthread_cond_t *granted = NULL;
	pthread_mutex_lock(&cond.mutex);
	if (cond.waiting == 0) {
		cond.busy = false;
	} else {
		struct turn *next = pop();
		next->may = true;
		granted = &next->granted;
	}
	pthread_mutex_unlock(&cond.mutex);
	return granted;
}

/* A thread's own lives until the thread ends: a signal after unlocking finds it. */
static __thread struct turn turn = { .granted = PTHREAD_COND_INITIALIZER };

static void heap_enter(unsigned priority)
{
	cond_enter_on(priority, &turn, &turn.granted);
}

static void heap_leave(void)
{
	pthread_cond_t *granted = cond_leave();
	if (granted)
		pthread_cond_signal(granted);
}

static void broadcast_enter(unsigned priority)
{
	cond_enter_on(priority, &turn, &cond.all);
}

static void broadcast_leave(void)
{
	if (cond_leave())
		pthread_cond_broadcast(&cond.all);
}

static const struct impl {
	const char *name;
	void (*enter)(unsigned priority);
	void (*leave)(void);
} impls[] = {
	{ "vez", vez_enter, vez_leave },
	{ "cond-heap", heap_enter, heap_leave },
	{ "cond-broadcast", broadcast_enter, broadcast_leave },
};

/* ---- the run ---- */

/* How many entered while one waited: of the better half of the priorities, and of the worse. */
struct passed {
	uint64_t times, by;
};

struct worker {
	pthread_t thread;
	uint64_t random;
	uint64_t quota;
	struct passed passed[2];
} __attribute__((aligned(128)));

static const struct impl *impl;
static struct worker workers[MOST];
static pthread_barrier_t start, finish;
static bool yields;
static unsigned hold;
static struct {
	uint64_t first __attribute__((aligned(128)));
	uint64_t second __attribute__((aligned(128)));
} data;

static unsigned draw(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned)(w->random >> 32) % PRIORITIES;
}

static void stay(void)
{
	if (yields)
		sched_yield();
	perf_pause(hold);
}

static void use_once(struct worker *w)
{
	unsigned priority = draw(w);
	uint64_t came = __atomic_load_n(&data.first, __ATOMIC_RELAXED);
	impl->enter(priority);
	uint64_t entries = data.first;
	if (entries != data.second)
		perf_fail("%s: two at the same time", impl->name);
	__atomic_store_n(&data.first, entries + 1, __ATOMIC_RELAXED);
	stay();
	data.second++;
	impl->leave();
	struct passed *p = &w->passed[priority >= PRIORITIES / 2];
	p->times++;
	p->by += entries - came;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&start);
	for (uint64_t i = 0; i < w->quota; i++)
		use_once(w);
	pthread_barrier_wait(&finish);
	return NULL;
}

static void run(unsigned n, uint64_t ops, struct perf_region *region)
{
	pthread_barrier_init(&start, NULL, n + 1);
	pthread_barrier_init(&finish, NULL, n);
	for (unsigned i = 0; i < n; i++) {
		workers[i].random = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
		workers[i].quota = ops / n;
		workers[i].thread = perf_thread(work, &workers[i]);
	}
	perf_begin(region);
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	perf_end(region);
	if (data.first != ops / n * n || data.second != data.first)
		perf_fail("%s: %llu entries are lost", impl->name, (unsigned long long)(ops / n * n - data.second));
}

static void run_alone(uint64_t ops, struct perf_region *region)
{
	perf_sleeper_begin();
	perf_begin(region);
	for (uint64_t i = 0; i < ops; i++) {
		impl->enter(0);
		impl->leave();
	}
	perf_end(region);
	perf_sleeper_end();
}

static double passed_by(unsigned n, unsigned half)
{
	struct passed sum = { 0, 0 };
	for (unsigned i = 0; i < n; i++) {
		sum.times += workers[i].passed[half].times;
		sum.by += workers[i].passed[half].by;
	}
	return sum.times ? (double)sum.by / (double)sum.times : 0;
}

static void print(const char *mode, unsigned n, uint64_t ops, const struct perf_region *region)
{
	char extra[128] = "";
	double better = passed_by(n, 0), worse = passed_by(n, 1);
	if (yields && n > 2 && ops >= 1000 && better * 1.5 > worse)
		perf_fail("%s: the better half is passed by %.2f, the worse by %.2f", impl->name, better, worse);
	if (n)
		snprintf(extra, sizeof extra, "\"passed_better\": %.2f, \"passed_worse\": %.2f", better, worse);
	const char *cpu = perf_option(options, "cpu");
	perf_print(&(struct perf_result){ "sched", impl->name, mode, n, cpu, n ? ops / n * n : ops, extra }, region);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	perf_options(argc, argv, "one at a time, the best priority first", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	bool alone = strcmp(mode, "pair") == 0;
	unsigned n = (unsigned)perf_number(options, "threads");
	uint64_t ops = perf_number(options, "ops");
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, perf_option(options, "impl")) == 0)
			impl = &impls[i];
	if (!impl || n < 1 || n > MOST || ops < n || (!alone && strcmp(mode, "work") != 0))
		perf_fail("no such --impl or --mode, too many threads, or too few operations");
	hold = (unsigned)perf_number(options, "hold");
	yields = perf_number(options, "yield") != 0;
	perf_pin(perf_option(options, "cpu"));
	vez_sched_init(&vez, before, 0);
	if (alone)
		run_alone(ops, &region);
	else
		run(n, ops, &region);
	print(mode, alone ? 0 : n, ops, &region);
	return 0;
}
