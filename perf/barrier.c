/* SPDX-License-Identifier: MIT */
/*
 * barrier: threads that meet again and again, and do nothing in between.
 *
 *	vez            vez_barrier_t
 *	vez-action     the same with an action, which counts the rounds
 *	pthread        pthread_barrier_t
 *	cond           a mutex, a condition and the number of the round: what is written by hand where an action, a
 *	               deadline or a reset is needed; the last one broadcasts after it has unlocked
 *	cond-locked    the same, broadcasting with the mutex held: how it is usually written
 *
 * An operation is a round of all parties. Every party checks, in every round, that all others have come.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/barrier.h>

#include "perf.h"

static struct perf_option options[] = {
	{ "impl", "vez", "vez, vez-action, pthread, cond, cond-locked" },
	{ "parties", "4", "threads" },
	{ "ops", "100000", "rounds" },
	{ "limit-ms", "0", "rounds are fewer if they take longer than about this; 0: no limit" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

static struct {
	vez_barrier_t vez;
	pthread_barrier_t pthread;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned parties, arrived;
	unsigned long generation;
} meeting = { .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static uint64_t rounds_acted;

static int count_round(void *arg)
{
	(void)arg;
	rounds_acted++;
	return 0;
}

static void vez_create(unsigned parties)
{
	vez_barrier_init(&meeting.vez, parties, NULL, NULL);
}

static void vez_action_create(unsigned parties)
{
	vez_barrier_init(&meeting.vez, parties, count_round, NULL);
}

static bool vez_meet(void)
{
	return vez_barrier_wait(&meeting.vez, NULL) == 0;
}

static void pthread_create_it(unsigned parties)
{
	pthread_barrier_init(&meeting.pthread, NULL, parties);
}

static bool pthread_meet(void)
{
	int rc = pthread_barrier_wait(&meeting.pthread);
	return rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD;
}

static void cond_create(unsigned parties)
{
	meeting.parties = parties;
}

static bool cond_meet_as(bool locked)
{
	pthread_mutex_lock(&meeting.mutex);
	unsigned long generation = meeting.generation;
	bool last = ++meeting.arrived == meeting.parties;
	if (last) {
		meeting.arrived = 0;
		meeting.generation++;
		if (locked)
			pthread_cond_broadcast(&meeting.cond);
	}
	while (!last && generation == meeting.generation)
		pthread_cond_wait(&meeting.cond, &meeting.mutex);
	pthread_mutex_unlock(&meeting.mutex);
	if (last && !locked)
		pthread_cond_broadcast(&meeting.cond);
	return true;
}

static bool cond_meet(void)
{
	return cond_meet_as(false);
}

static bool cond_locked_meet(void)
{
	return cond_meet_as(true);
}

static const struct impl {
	const char *name;
	void (*create)(unsigned parties);
	bool (*meet)(void);
} impls[] = {
	{ "vez", vez_create, vez_meet },
	{ "vez-action", vez_action_create, vez_meet },
	{ "pthread", pthread_create_it, pthread_meet },
	{ "cond", cond_create, cond_meet },
	{ "cond-locked", cond_create, cond_locked_meet },
};

/* What each party has come to, on a line of its own; and the round after which all end, told by the first party. */
struct place {
	_Alignas(64) uint64_t round;
	uint64_t missed;
};

static const struct impl *impl;
static struct place *places;
static unsigned parties;
static uint64_t last_round = UINT64_MAX;

static void meet(struct place *own)
{
	__atomic_store_n(&own->round, own->round + 1, __ATOMIC_RELAXED);
	own->missed += !impl->meet();
	for (unsigned i = 0; i < parties; i++)
		own->missed += __atomic_load_n(&places[i].round, __ATOMIC_RELAXED) < own->round;
}

static void *take_part(void *arg)
{
	struct place *own = arg;
	do
		meet(own);
	while (own->round < __atomic_load_n(&last_round, __ATOMIC_RELAXED));
	return NULL;
}

/* The last round is told one round ahead, so that all read it before they come to it. */
static uint64_t meet_for(uint64_t ops, double limit)
{
	double end = limit > 0 ? perf_now() + limit : 0;
	uint64_t n = 0;
	while (n < ops) {
		meet(&places[0]);
		n++;
		if (end > 0 && n % 64 == 0 && perf_now() > end)
			break;
	}
	return n;
}

static const struct impl *impl_called(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			return &impls[i];
	perf_fail("no --impl=%s", name);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	pthread_t threads[1024];
	perf_options(argc, argv, "threads that meet in rounds", options, sizeof options / sizeof *options);
	impl = impl_called(perf_option(options, "impl"));
	parties = (unsigned)perf_number(options, "parties");
	if (parties < 1 || parties > 1024)
		perf_fail("--parties=1 to 1024");
	perf_pin(perf_option(options, "cpu"));
	places = aligned_alloc(64, parties * sizeof *places);
	memset(places, 0, parties * sizeof *places);
	impl->create(parties);
	for (unsigned i = 1; i < parties; i++)
		threads[i] = perf_thread(take_part, &places[i]);
	meet_for(200, 0);
	perf_begin(&region);
	uint64_t ops = meet_for(perf_number(options, "ops"), (double)perf_number(options, "limit-ms") / 1000);
	perf_end(&region);
	__atomic_store_n(&last_round, places[0].round + 1, __ATOMIC_RELAXED);
	meet(&places[0]);
	uint64_t missed = places[0].missed;
	for (unsigned i = 1; i < parties; i++) {
		pthread_join(threads[i], NULL);
		missed += places[i].missed;
	}
	if (missed)
		perf_fail("%s: %llu times a party went on alone", impl->name, (unsigned long long)missed);
	if (strcmp(impl->name, "vez-action") == 0 && rounds_acted != places[0].round)
		perf_fail("%llu actions in %llu rounds", (unsigned long long)rounds_acted,
			  (unsigned long long)places[0].round);
	perf_print(&(struct perf_result){ "barrier", impl->name, "", parties, perf_option(options, "cpu"), ops, "" },
		   &region);
	return 0;
}
