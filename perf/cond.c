/* SPDX-License-Identifier: MIT */
/*
 * cond: threads that wait on conditions of one mutex.
 *
 *	vez             vez_mutex_t and vez_cond_t, signalled with the mutex held
 *	vez-fair        the same with VEZ_FAIR
 *	vez-after       vez, signalled after unlocking
 *	pthread         signalled after unlocking: the best that pthreads allow
 *	pthread-locked  signalled with the mutex held: how it is usually written
 *
 *	pingpong   two threads take turns, a condition for each. An operation is one turn
 *	broadcast  all waiters wait for the next round; when the last has come, the main thread begins it and notifies
 *	           all. An operation is one waiter's return
 *
 * The program is the same for all of them, in loops that check again; how often that was in vain is told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/cond.h>

#include "perf.h"

#define MOST_WAITERS 1024

static struct perf_option options[] = {
	{ "impl", "vez", "vez, vez-fair, vez-after, pthread, pthread-locked" },
	{ "mode", "pingpong", "pingpong, or broadcast" },
	{ "waiters", "64", "threads that wait (broadcast)" },
	{ "ops", "100000", "turns, or returns" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ "limit-ms", "0", "ends the run after this time; 0: never" },
	{ NULL, NULL, NULL },
};

/* ---- implementations ---- */

enum which { GO, BACK, CONDS };

static struct {
	vez_mutex_t mutex;
	vez_cond_t cond[CONDS];
	pthread_mutex_t pthread_mutex;
	pthread_cond_t pthread_cond[CONDS];
} with;

static void vez_lock(void)
{
	vez_mutex_lock(&with.mutex);
}

static void vez_unlock(void)
{
	vez_mutex_unlock(&with.mutex);
}

static void vez_wait(enum which which)
{
	vez_cond_wait(&with.cond[which], &with.mutex);
}

static void vez_signal(enum which which)
{
	vez_cond_signal(&with.cond[which]);
}

static void vez_broadcast(enum which which)
{
	vez_cond_broadcast(&with.cond[which]);
}

static void pthread_lock(void)
{
	pthread_mutex_lock(&with.pthread_mutex);
}

static void pthread_unlock(void)
{
	pthread_mutex_unlock(&with.pthread_mutex);
}

static void pthread_wait(enum which which)
{
	pthread_cond_wait(&with.pthread_cond[which], &with.pthread_mutex);
}

static void pthread_signal(enum which which)
{
	pthread_cond_signal(&with.pthread_cond[which]);
}

static void pthread_broadcast(enum which which)
{
	pthread_cond_broadcast(&with.pthread_cond[which]);
}

#define VEZ_CALLS vez_lock, vez_unlock, vez_wait, vez_signal, vez_broadcast
#define PTHREAD_CALLS pthread_lock, pthread_unlock, pthread_wait, pthread_signal, pthread_broadcast

static const struct impl {
	const char *name;
	bool inside; /* notifies with the mutex held */
	unsigned flags;
	void (*lock)(void);
	void (*unlock)(void);
	void (*wait)(enum which which);
	void (*signal)(enum which which);
	void (*broadcast)(enum which which);
} impls[] = {
	{ "vez", true, 0, VEZ_CALLS },
	{ "vez-fair", true, VEZ_FAIR, VEZ_CALLS },
	{ "vez-after", false, 0, VEZ_CALLS },
	{ "pthread", false, 0, PTHREAD_CALLS },
	{ "pthread-locked", true, 0, PTHREAD_CALLS },
};

static const struct impl *impl;

static void choose(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			impl = &impls[i];
	if (!impl)
		perf_fail("no --impl=%s", name);
	vez_mutex_init(&with.mutex, impl->flags);
	pthread_mutex_init(&with.pthread_mutex, NULL);
	for (int i = 0; i < CONDS; i++) {
		vez_cond_init(&with.cond[i]);
		pthread_cond_init(&with.pthread_cond[i], NULL);
	}
}

static void notify_and_unlock(void (*notify)(enum which which), enum which which)
{
	if (impl->inside)
		notify(which);
	impl->unlock();
	if (!impl->inside)
		notify(which);
}

/* ---- what they share, guarded by the mutex ---- */

static struct {
	uint64_t turns, ops;
	uint64_t round;
	unsigned here, waiters;
	bool over;
	uint64_t in_vain;
	uint64_t returned;
} shared;

static double deadline;

static bool time_is_up(void)
{
	return deadline > 0 && perf_now() > deadline;
}

/* ---- two take turns ---- */

static void take_turns(enum which mine)
{
	enum which theirs = mine == GO ? BACK : GO;
	impl->lock();
	for (;;) {
		while (!shared.over && shared.turns % 2 != (uint64_t)mine) {
			impl->wait(mine);
			shared.in_vain += !shared.over && shared.turns % 2 != (uint64_t)mine;
		}
		if (!shared.over)
			shared.turns++;
		if (shared.turns >= shared.ops || (shared.turns % 256 == 0 && time_is_up()))
			shared.over = true;
		bool over = shared.over;
		notify_and_unlock(impl->signal, theirs);
		if (over)
			return;
		impl->lock();
	}
}

static void *second_player(void *arg)
{
	(void)arg;
	take_turns(BACK);
	return NULL;
}

static void pingpong(struct perf_region *region)
{
	impl->lock();
	pthread_t second = perf_thread(second_player, NULL);
	perf_begin(region);
	impl->unlock();
	take_turns(GO);
	pthread_join(second, NULL);
	perf_end(region);
}

/* ---- all wait for one ---- */

static void *await_rounds(void *arg)
{
	(void)arg;
	impl->lock();
	while (!shared.over) {
		uint64_t round = shared.round;
		if (++shared.here == shared.waiters)
			impl->signal(BACK);
		do {
			impl->wait(GO);
			shared.in_vain += round == shared.round;
		} while (round == shared.round);
		shared.returned++;
	}
	impl->unlock();
	return NULL;
}

static void begin_rounds(void)
{
	for (bool over = false; !over;) {
		impl->lock();
		while (shared.here < shared.waiters)
			impl->wait(BACK);
		shared.here = 0;
		shared.round++;
		shared.turns = shared.round * shared.waiters;
		over = shared.over = shared.turns >= shared.ops || time_is_up();
		notify_and_unlock(impl->broadcast, GO);
	}
}

static void broadcast(struct perf_region *region)
{
	pthread_t threads[MOST_WAITERS];
	for (unsigned i = 0; i < shared.waiters; i++)
		threads[i] = perf_thread(await_rounds, NULL);
	impl->lock();
	while (shared.here < shared.waiters)
		impl->wait(BACK);
	impl->unlock();
	perf_begin(region);
	begin_rounds();
	for (unsigned i = 0; i < shared.waiters; i++)
		pthread_join(threads[i], NULL);
	perf_end(region);
	if (shared.returned != shared.turns)
		perf_fail("%s: %llu returns, not %llu", impl->name, (unsigned long long)shared.returned,
			  (unsigned long long)shared.turns);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char extra[64];
	perf_options(argc, argv, "waiting on conditions", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	bool all = strcmp(mode, "broadcast") == 0;
	choose(perf_option(options, "impl"));
	shared.ops = perf_number(options, "ops");
	shared.waiters = all ? (unsigned)perf_number(options, "waiters") : 1;
	if (shared.waiters < 1 || shared.waiters > MOST_WAITERS)
		perf_fail("--waiters is 1 to %d", MOST_WAITERS);
	uint64_t limit = perf_number(options, "limit-ms");
	perf_pin(perf_option(options, "cpu"));
	deadline = limit ? perf_now() + (double)limit / 1e3 : 0;
	if (all)
		broadcast(&region);
	else
		pingpong(&region);
	snprintf(extra, sizeof extra, "\"in_vain\": %llu", (unsigned long long)shared.in_vain);
	perf_print(&(struct perf_result){ "cond", impl->name, mode, shared.waiters, perf_option(options, "cpu"),
					  shared.turns, extra },
		   &region);
	return 0;
}
