/* SPDX-License-Identifier: MIT */
/*
 * once: something is made by whoever comes first.
 *
 *	done    it has been made: what one more call costs
 *	race    --threads threads come to --ops objects, one after the other; who is first makes it, and lets the
 *	        others come meanwhile (--yield=1), so that they wait; an operation is one object
 *
 *	vez     vez_once
 *	pthread pthread_once: its function can neither fail nor be told anything
 *	locked  a flag, read without the lock first, and a mutex held while the function runs: what is written by hand
 *	        where the function may fail, as that of vez_once may
 *
 * Checked: every function ran once, and whoever went on sees what it did. (Seen to fail: locked, with the mutex let go
 * while the function runs.)
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <vez/once.h>

#include "perf.h"

static struct perf_option options[] = {
	{ "impl", "vez", "vez, pthread, locked" },
	{ "mode", "done", "done, race" },
	{ "threads", "8", "threads of a race" },
	{ "ops", "20000", "calls, or objects" },
	{ "yield", "1", "1: who makes it lets the others come first" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

struct object {
	union {
		vez_once_t vez;
		pthread_once_t pthread;
		struct {
			pthread_mutex_t mutex;
			bool done;
		} locked;
	} once;
	unsigned made; /* plain: who goes on has been told */
};

/* What pthread_once's function has no argument for. */
static __thread struct object *current;
static bool yields;

static void make(void)
{
	if (yields)
		sched_yield();
	current->made++;
}

static int make_or_fail(void *object)
{
	current = object;
	make();
	return 0;
}

/* ---- the ways ---- */

static void vez_prepare(struct object *o)
{
	o->once.vez = (vez_once_t)VEZ_ONCE_INITIALIZER;
}

static int vez_call(struct object *o)
{
	return vez_once(&o->once.vez, make_or_fail, o);
}

static void pthread_prepare(struct object *o)
{
	o->once.pthread = PTHREAD_ONCE_INIT;
}

static int pthread_call(struct object *o)
{
	current = o;
	return pthread_once(&o->once.pthread, make);
}

static void locked_prepare(struct object *o)
{
	pthread_mutex_init(&o->once.locked.mutex, NULL);
	o->once.locked.done = false;
}

static __attribute__((noinline)) int locked_first(struct object *o)
{
	pthread_mutex_lock(&o->once.locked.mutex);
	int rc = o->once.locked.done ? 0 : make_or_fail(o);
	if (rc == 0)
		__atomic_store_n(&o->once.locked.done, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&o->once.locked.mutex);
	return rc;
}

static int locked_call(struct object *o)
{
	return __atomic_load_n(&o->once.locked.done, __ATOMIC_ACQUIRE) ? 0 : locked_first(o);
}

static const struct impl {
	const char *name;
	void (*prepare)(struct object *o);
	int (*call)(struct object *o);
} impls[] = {
	{ "vez", vez_prepare, vez_call },
	{ "pthread", pthread_prepare, pthread_call },
	{ "locked", locked_prepare, locked_call },
};

/* ---- the run ---- */

static const struct impl *impl;
static struct object *objects;
static uint64_t count;
static pthread_barrier_t start;

static void *race(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&start);
	for (uint64_t i = 0; i < count; i++)
		if (impl->call(&objects[i]) != 0 || objects[i].made != 1)
			perf_fail("%s: an object was not made when the call returned, or twice", impl->name);
	return NULL;
}

static void prepare(uint64_t n)
{
	count = n;
	objects = calloc(n, sizeof *objects);
	if (!objects)
		perf_fail("no memory");
	for (uint64_t i = 0; i < n; i++)
		impl->prepare(&objects[i]);
}

static void run_race(unsigned threads, uint64_t ops, struct perf_region *region)
{
	pthread_t ids[256];
	if (threads < 1 || threads > 256)
		perf_fail("--threads=1 to 256");
	prepare(ops);
	pthread_barrier_init(&start, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++)
		ids[i] = perf_thread(race, NULL);
	perf_begin(region);
	pthread_barrier_wait(&start);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	perf_end(region);
	for (uint64_t i = 0; i < ops; i++)
		if (objects[i].made != 1)
			perf_fail("%s: made %u times", impl->name, objects[i].made);
}

static void run_done(uint64_t ops, struct perf_region *region)
{
	prepare(1);
	impl->call(objects);
	perf_begin(region);
	for (uint64_t i = 0; i < ops; i++)
		if (impl->call(objects) != 0)
			perf_fail("a call failed");
	perf_end(region);
	if (objects->made != 1)
		perf_fail("%s: made %u times", impl->name, objects->made);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	perf_options(argc, argv, "made by whoever comes first", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	bool races = strcmp(mode, "race") == 0;
	unsigned threads = races ? (unsigned)perf_number(options, "threads") : 1;
	uint64_t ops = perf_number(options, "ops");
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, perf_option(options, "impl")) == 0)
			impl = &impls[i];
	if (!impl || ops < 1 || (!races && strcmp(mode, "done") != 0))
		perf_fail("no such --impl or --mode, or no operation");
	yields = perf_number(options, "yield") != 0;
	perf_pin(perf_option(options, "cpu"));
	if (races)
		run_race(threads, ops, &region);
	else
		run_done(ops, &region);
	const char *cpu = perf_option(options, "cpu");
	perf_print(&(struct perf_result){ "once", impl->name, mode, threads, cpu, ops, "" }, &region);
	return 0;
}
