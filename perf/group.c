/* SPDX-License-Identifier: MIT */
/*
 * group: --groups groups of --threads threads each; members of one are inside together, groups exclude each other.
 *
 *	work    all threads enter and leave --ops times in all, each the same share of it, and stay inside for about a
 *	        microsecond; an operation is one of them
 *	share   the same for --ms milliseconds: who was served how often
 *	pair    one thread, uncontended: enter and leave
 *
 * With --yield=1 who is inside lets the others run first, so that they queue up whatever the scheduler does.
 *
 * All obey the rule of vez_group_t: while another group waits, newcomers of the running one wait too; when the last
 * one has left, the group of the longest waiter enters, with all of its members that wait. The last to leave decides.
 *
 *	vez             vez_group_t
 *	cond-groups     a mutex and a condition for each group; who decides broadcasts the one group that may enter,
 *	                after unlocking: the best that pthreads allow
 *	cond-broadcast  a mutex and one condition, broadcast after unlocking: each looks whether it is meant
 *
 * Checked: every entry finds no member of another group inside. (Seen to fail: cond-groups, where any group enters
 * while another one runs.) Told besides the time: the least served thread's share of the most served one's.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <vez/group.h>

#include "perf.h"

#define MOST_GROUPS 64
#define MOST 256

static struct perf_option options[] = {
	{ "impl", "vez", "vez, cond-groups, cond-broadcast" },
	{ "mode", "work", "work, share, pair" },
	{ "groups", "2", "groups" },
	{ "threads", "4", "threads of each" },
	{ "hold", "48", "pauses inside, of about 21 ns each" },
	{ "yield", "1", "1: who is inside lets others run first, so that they queue up whatever the scheduler does" },
	{ "ops", "20000", "entries in all, or pairs" },
	{ "ms", "300", "how long, with --mode=share" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

/* ---- vez ---- */

static vez_group_t vez = VEZ_GROUP_INITIALIZER;

static void vez_enter(unsigned id)
{
	if (vez_group_enter(&vez, id) != 0)
		perf_fail("an enter failed");
}

static void vez_leave(void)
{
	if (vez_group_leave(&vez) != 0)
		perf_fail("a leave failed");
}

/* ---- mutex and conditions ---- */

struct side {
	pthread_cond_t admitted;
	unsigned waiting;
	unsigned phase; /* counts how often those who waited were admitted */
	struct side *next;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t all;
	struct side sides[MOST_GROUPS];
	struct side *running;
	unsigned inside;
	struct side *first, **last; /* the sides with waiters, by the longest one */
} cond = { .mutex = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER, .last = &cond.first };

static void make_sides(void)
{
	for (int i = 0; i < MOST_GROUPS; i++)
		pthread_cond_init(&cond.sides[i].admitted, NULL);
}

static void queue_up(struct side *own, pthread_cond_t *on)
{
	unsigned phase = own->phase;
	if (own->waiting++ == 0) {
		own->next = NULL;
		*cond.last = own;
		cond.last = &own->next;
	}
	while (phase == own->phase)
		pthread_cond_wait(on, &cond.mutex);
}

static void cond_enter_on(unsigned id, pthread_cond_t *on)
{
	struct side *own = &cond.sides[id];
	pthread_mutex_lock(&cond.mutex);
	if (cond.inside == 0 || (cond.running == own && !cond.first)) {
		cond.running = own;
		cond.inside++;
	} else {
		queue_up(own, on);
	}
	pthread_mutex_unlock(&cond.mutex);
}

/* The side that is let in by this leave, or NULL. */
static struct side *cond_leave(void)
{
	pthread_mutex_lock(&cond.mutex);
	struct side *next = --cond.inside == 0 ? cond.first : NULL;
	if (next) {
		cond.first = next->next;
		if (!cond.first)
			cond.last = &cond.first;
		cond.running = next;
		cond.inside = next->waiting;
		next->waiting = 0;
		next->phase++;
	}
	pthread_mutex_unlock(&cond.mutex);
	return next;
}

static void groups_enter(unsigned id)
{
	cond_enter_on(id, &cond.sides[id].admitted);
}

static void groups_leave(void)
{
	struct side *next = cond_leave();
	if (next)
		pthread_cond_broadcast(&next->admitted);
}

static void broadcast_enter(unsigned id)
{
	cond_enter_on(id, &cond.all);
}

static void broadcast_leave(void)
{
	if (cond_leave())
		pthread_cond_broadcast(&cond.all);
}

static const struct impl {
	const char *name;
	void (*enter)(unsigned id);
	void (*leave)(void);
} impls[] = {
	{ "vez", vez_enter, vez_leave },
	{ "cond-groups", groups_enter, groups_leave },
	{ "cond-broadcast", broadcast_enter, broadcast_leave },
};

/* ---- the run ---- */

struct worker {
	pthread_t thread;
	unsigned id;
	uint64_t quota;
	uint64_t served;
} __attribute__((aligned(128)));

static const struct impl *impl;
static struct worker workers[MOST];
static pthread_barrier_t start;
static bool stop, yields;
static unsigned hold, groups;
static struct {
	unsigned members __attribute__((aligned(128)));
} inside[MOST_GROUPS];

static void stay(void)
{
	if (yields)
		sched_yield();
	perf_pause(hold);
}

static void visit(unsigned id)
{
	impl->enter(id);
	__atomic_add_fetch(&inside[id].members, 1, __ATOMIC_RELAXED);
	stay();
	for (unsigned i = 0; i < groups; i++)
		if (i != id && __atomic_load_n(&inside[i].members, __ATOMIC_RELAXED) != 0)
			perf_fail("%s: two groups at the same time", impl->name);
	__atomic_sub_fetch(&inside[id].members, 1, __ATOMIC_RELAXED);
	impl->leave();
}

static void *work(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&start);
	for (; w->served < w->quota && !__atomic_load_n(&stop, __ATOMIC_RELAXED); w->served++)
		visit(w->id);
	return NULL;
}

static void run(unsigned n, uint64_t ops, unsigned ms, struct perf_region *region)
{
	pthread_barrier_init(&start, NULL, n + 1);
	for (unsigned i = 0; i < n; i++) {
		workers[i].id = i % groups;
		workers[i].quota = ms ? UINT64_MAX : ops / n;
		workers[i].thread = perf_thread(work, &workers[i]);
	}
	perf_begin(region);
	pthread_barrier_wait(&start);
	if (ms)
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
	__atomic_store_n(&stop, ms != 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	perf_end(region);
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

static void print(const char *mode, unsigned n, uint64_t ops, const struct perf_region *region)
{
	char extra[64] = "";
	uint64_t served = 0, least = UINT64_MAX, most = 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t own = workers[i].served;
		served += own;
		least = own < least ? own : least;
		most = own > most ? own : most;
	}
	if (most)
		snprintf(extra, sizeof extra, "\"share\": %.3f", (double)least / (double)most);
	const char *cpu = perf_option(options, "cpu");
	perf_print(&(struct perf_result){ "group", impl->name, mode, n, cpu, n ? served : ops, extra }, region);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	perf_options(argc, argv, "groups that exclude each other", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	bool alone = strcmp(mode, "pair") == 0, shares = strcmp(mode, "share") == 0;
	groups = (unsigned)perf_number(options, "groups");
	unsigned n = groups * (unsigned)perf_number(options, "threads");
	uint64_t ops = perf_number(options, "ops");
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, perf_option(options, "impl")) == 0)
			impl = &impls[i];
	if (!impl || groups > MOST_GROUPS || n < 1 || n > MOST || (!alone && !shares && strcmp(mode, "work") != 0))
		perf_fail("no such --impl or --mode, or too many threads");
	hold = (unsigned)perf_number(options, "hold");
	yields = perf_number(options, "yield") != 0;
	perf_pin(perf_option(options, "cpu"));
	make_sides();
	if (alone)
		run_alone(ops, &region);
	else
		run(n, ops, shares ? (unsigned)perf_number(options, "ms") : 0, &region);
	print(mode, alone ? 0 : n, ops, &region);
	return 0;
}
