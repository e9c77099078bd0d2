/* SPDX-License-Identifier: MIT */
/*
 * event: threads that are let go by a set.
 *
 *	pingpong   two threads let each other go in turn, by two automatic events; an operation is a round trip
 *	           impl: vez; cond: a mutex, a condition and a flag each, signalled after unlocking; sem_t
 *	gate       --waiters threads wait at a gate; when all are there it is opened, and shut again for the next time
 *	           (two gates take turns); an operation is one opening
 *	           impl: vez: manual events; latch: latches that are made anew; cond: a mutex, a condition and a flag,
 *	           broadcast after unlocking; cond-locked: the same, broadcast with the mutex held
 */
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <vez/event.h>
#include <vez/latch.h>

#include "perf.h"

static struct perf_option options[] = {
	{ "impl", "vez", "pingpong: vez, cond, sem_t; gate: vez, latch, cond, cond-locked" },
	{ "mode", "pingpong", "pingpong, gate" },
	{ "waiters", "8", "threads at the gate" },
	{ "ops", "50000", "round trips, or openings" },
	{ "limit-ms", "0", "operations are fewer if they take longer than about this; 0: no limit" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

struct place {
	vez_event_t event;
	vez_latch_t latch;
	sem_t sem;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool set;
	unsigned waiting;
};

static struct place places[2];
static bool automatic;

static void vez_set(struct place *p)
{
	vez_event_set(&p->event);
}

static void vez_wait(struct place *p)
{
	vez_event_wait(&p->event);
}

static void vez_reset(struct place *p)
{
	vez_event_reset(&p->event);
}

static void latch_set(struct place *p)
{
	vez_latch_count_down(&p->latch, 1);
}

static void latch_wait(struct place *p)
{
	vez_latch_wait(&p->latch);
}

static void latch_reset(struct place *p)
{
	vez_latch_destroy(&p->latch);
	vez_latch_init(&p->latch, 1);
}

static void sem_set(struct place *p)
{
	sem_post(&p->sem);
}

static void sem_await(struct place *p)
{
	while (sem_wait(&p->sem) != 0)
		;
}

static void cond_set_as(struct place *p, bool locked)
{
	pthread_mutex_lock(&p->mutex);
	p->set = true;
	if (locked)
		pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->mutex);
	if (!locked && automatic)
		pthread_cond_signal(&p->cond);
	else if (!locked)
		pthread_cond_broadcast(&p->cond);
}

static void cond_set(struct place *p)
{
	cond_set_as(p, false);
}

static void cond_locked_set(struct place *p)
{
	cond_set_as(p, true);
}

static void cond_wait(struct place *p)
{
	pthread_mutex_lock(&p->mutex);
	while (!p->set)
		pthread_cond_wait(&p->cond, &p->mutex);
	if (automatic)
		p->set = false;
	pthread_mutex_unlock(&p->mutex);
}

static void cond_reset(struct place *p)
{
	pthread_mutex_lock(&p->mutex);
	p->set = false;
	pthread_mutex_unlock(&p->mutex);
}

static const struct impl {
	const char *name;
	void (*set)(struct place *p);
	void (*wait)(struct place *p);
	void (*reset)(struct place *p);
} impls[] = {
	{ "vez", vez_set, vez_wait, vez_reset },
	{ "latch", latch_set, latch_wait, latch_reset },
	{ "sem_t", sem_set, sem_await, NULL },
	{ "cond", cond_set, cond_wait, cond_reset },
	{ "cond-locked", cond_locked_set, cond_wait, cond_reset },
};

static const struct impl *impl;
static unsigned waiters;
static uint64_t ops;
static double limit;
static bool stop;
static unsigned passed; /* how many have passed the gate, of all openings */

static bool time_is_up(uint64_t done, double end)
{
	return done >= ops || (limit > 0 && done % 64 == 0 && perf_now() > end);
}

static void *answer(void *arg)
{
	(void)arg;
	for (;;) {
		impl->wait(&places[0]);
		if (__atomic_load_n(&stop, __ATOMIC_RELAXED))
			return NULL;
		impl->set(&places[1]);
	}
}

static uint64_t play(void)
{
	double end = perf_now() + limit;
	uint64_t done = 0;
	while (!time_is_up(done, end)) {
		impl->set(&places[0]);
		impl->wait(&places[1]);
		done++;
	}
	return done;
}

static void *pass_gates(void *arg)
{
	(void)arg;
	for (unsigned turn = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); turn++) {
		struct place *p = &places[turn % 2];
		__atomic_add_fetch(&p->waiting, 1, __ATOMIC_RELAXED);
		impl->wait(p);
		__atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static bool all_wait(void *arg)
{
	struct place *p = arg;
	return __atomic_load_n(&p->waiting, __ATOMIC_RELAXED) == waiters;
}

static uint64_t opened;

static void open_gate(void)
{
	struct place *p = &places[opened % 2];
	perf_until(all_wait, p);
	/* They have all left the other one. */
	struct place *other = &places[(opened + 1) % 2];
	__atomic_store_n(&other->waiting, 0, __ATOMIC_RELAXED);
	if (opened > 0)
		impl->reset(other);
	opened++;
	impl->set(p);
}

static uint64_t open_gates(void)
{
	double end = perf_now() + limit;
	uint64_t done = 0;
	for (; !time_is_up(done, end); done++)
		open_gate();
	return done;
}

static void choose(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			impl = &impls[i];
	if (!impl || (!automatic && !impl->reset) || (automatic && impl->wait == latch_wait))
		perf_fail("no --impl=%s with this mode", name);
}

static void make_places(void)
{
	for (int i = 0; i < 2; i++) {
		vez_event_init(&places[i].event, automatic ? VEZ_AUTO_RESET : 0);
		vez_latch_init(&places[i].latch, 1);
		sem_init(&places[i].sem, 0, 0);
		pthread_mutex_init(&places[i].mutex, NULL);
		pthread_cond_init(&places[i].cond, NULL);
	}
}

int main(int argc, char **argv)
{
	struct perf_region region;
	pthread_t threads[1024];
	perf_options(argc, argv, "threads that are let go by a set", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	automatic = strcmp(mode, "pingpong") == 0;
	choose(perf_option(options, "impl"));
	waiters = automatic ? 1 : (unsigned)perf_number(options, "waiters");
	if (waiters < 1 || waiters > 1024)
		perf_fail("--waiters=1 to 1024");
	limit = (double)perf_number(options, "limit-ms") / 1000;
	perf_pin(perf_option(options, "cpu"));
	make_places();
	for (unsigned i = 0; i < waiters; i++)
		threads[i] = perf_thread(automatic ? answer : pass_gates, NULL);
	uint64_t (*run)(void) = automatic ? play : open_gates;
	ops = 200;
	run();
	ops = perf_number(options, "ops");
	perf_begin(&region);
	uint64_t done = run();
	perf_end(&region);
	if (!automatic) /* who has yet to leave the last gate must not see stop there */
		perf_until(all_wait, &places[opened % 2]);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	if (automatic)
		impl->set(&places[0]);
	else
		open_gate();
	for (unsigned i = 0; i < waiters; i++)
		pthread_join(threads[i], NULL);
	if (!automatic && passed != (unsigned)(waiters * opened))
		perf_fail("%u passed in %llu openings", passed, (unsigned long long)opened);
	perf_print(&(struct perf_result){ "event", impl->name, mode, waiters, perf_option(options, "cpu"), done, "" },
		   &region);
	return 0;
}
