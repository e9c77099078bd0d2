/* SPDX-License-Identifier: MIT */
/* What happens once: something made, something told, somebody called off. */
#include <sched.h>

#include "run.h"

/* ---- once ---- */

static const struct peer_once *once;
static unsigned *made; /* plain: who goes on has been told */

static void make_and_yield(void *arg)
{
	sched_yield();
	++*(unsigned *)arg;
}

void once_done(void)
{
	RUN_FIND(peer.onces);
	unsigned once_made = 0;
	run.object = run_object(found->size, 1);
	run.result.bytes = found->make(run.object, 0);
	found->call(run.object, make_and_yield, &once_made);
	run_begins();
	found->calls(run.object, run.ops, make_and_yield, &once_made);
	run_ends();
	run.result.ops = run.ops;
	if (once_made != 1)
		perf_fail("made %u times", once_made);
}

static void *race(void *arg)
{
	struct peer_worker *w = arg;
	pthread_barrier_wait(&run.begin);
	for (uint64_t i = 0; i < run.ops; i++) {
		double before = peer_before_wait();
		once->call((char *)run.object + i * once->size, make_and_yield, &made[i]);
		peer_after_wait(w, before);
		if (made[i] != 1)
			perf_fail("not made when the call returned, or twice");
	}
	pthread_barrier_wait(&run.end);
	return NULL;
}

void once_race(void)
{
	RUN_FIND(peer.onces);
	once = found;
	run.object = run_object(once->size, (unsigned)run.ops);
	made = calloc(run.ops, sizeof *made);
	for (uint64_t i = 0; i < run.ops; i++)
		run.result.bytes = once->make((char *)run.object + i * once->size, 0);
	pthread_barrier_init(&run.begin, NULL, run.threads + 1);
	pthread_barrier_init(&run.end, NULL, run.threads + 1);
	run_start(run.threads, race);
	run_sleep_ms(2);
	run_begins();
	pthread_barrier_wait(&run.begin);
	pthread_barrier_wait(&run.end);
	run_ends();
	run_join(run.threads);
	run.result.ops = run.ops;
	free(made);
}

/* ---- event and latch ---- */

static const struct peer_event *event;
static void *places[2];
static uint64_t waiting[2] __attribute__((aligned(128)));
static uint64_t opened, passed;

static void make_places(bool automatic)
{
	for (unsigned i = 0; i < 2; i++) {
		places[i] = run_object(event->size, 1);
		run.result.bytes = event->make(places[i], automatic);
	}
}

static void *answer(void *arg)
{
	struct peer_worker *w = arg;
	for (;;) {
		double before = peer_before_wait();
		event->wait(places[0]);
		if (run_stopped())
			return NULL;
		peer_after_wait(w, before);
		event->set(places[1]);
	}
}

static void play(uint64_t n, double until)
{
	for (uint64_t i = 0; i < n && !run_time_is_up(i, until); i++) {
		event->set(places[0]);
		event->wait(places[1]);
		run.result.ops++;
	}
}

void event_pingpong(void)
{
	RUN_FIND(peer.events);
	event = found;
	if (!event->automatic)
		perf_fail("%s has no event that one wait takes", peer.name);
	make_places(true);
	run_start(1, answer);
	play(200, perf_now() + run.limit);
	run.result.ops = 0;
	run_begins();
	play(UINT64_MAX, perf_now() + run.limit);
	run_ends();
	run_stop();
	event->set(places[0]);
	run_join(1);
}

static void *pass_gates(void *arg)
{
	struct peer_worker *w = arg;
	for (unsigned turn = 0; !run_stopped(); turn++) {
		__atomic_add_fetch(&waiting[turn % 2], 1, __ATOMIC_RELAXED);
		double before = peer_before_wait();
		event->wait(places[turn % 2]);
		peer_after_wait(w, before);
		__atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static bool all_at(void *arg)
{
	return __atomic_load_n((uint64_t *)arg, __ATOMIC_RELAXED) == run.threads;
}

/* When all are at one gate they have left the other one, which is shut. */
static void open_gate(void)
{
	unsigned here = opened % 2, other = (opened + 1) % 2;
	perf_until(all_at, &waiting[here]);
	__atomic_store_n(&waiting[other], 0, __ATOMIC_RELAXED);
	if (opened > 0)
		event->reset(places[other]);
	opened++;
	event->set(places[here]);
}

static void gate(const struct peer_event *found)
{
	event = found;
	if (!event->reset)
		perf_fail("%s has no gate", peer.name);
	make_places(false);
	run_start(run.threads, pass_gates);
	for (unsigned i = 0; i < 50; i++)
		open_gate();
	double until = perf_now() + run.limit;
	run_begins();
	do {
		open_gate();
		run.result.ops++;
	} while (!run_time_is_up(run.result.ops, until));
	run_ends();
	perf_until(all_at, &waiting[opened % 2]); /* who has yet to leave the last gate must not see stop there */
	run_stop();
	open_gate();
	run_join(run.threads);
	if (passed != run.threads * opened)
		perf_fail("%llu passed in %llu openings", (unsigned long long)passed, (unsigned long long)opened);
}

void event_gate(void)
{
	RUN_FIND(peer.events);
	gate(found);
}

void latch_gate(void)
{
	RUN_FIND(peer.latches);
	gate(found);
}

/* ---- token ---- */

static const struct peer_token *token;

static void *wait_for_call_off(void *arg)
{
	struct peer_worker *w = arg;
	for (unsigned round = 0;; round++) {
		__atomic_fetch_add(&run.arrived, 1, __ATOMIC_RELAXED);
		double before = peer_before_wait();
		token->wait(run.object, w->number, round);
		if (run_stopped())
			return NULL;
		peer_after_wait(w, before);
		__atomic_fetch_add(&w->ops, 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&run.returned, 1, __ATOMIC_RELEASE);
	}
}

/* Nobody but who was called off has gone. */
static void call_off_next(void)
{
	struct peer_worker *w = &run.workers[run.released % run.threads];
	unsigned round = (unsigned)(run.released / run.threads);
	run.released++;
	token->fire(run.object, w->number, round);
	perf_until(run_all_wait, NULL);
	if (__atomic_load_n(&w->ops, __ATOMIC_ACQUIRE) != round + 1)
		perf_fail("another was called off");
}

void token_call_off(void)
{
	RUN_FIND(peer.tokens);
	token = found;
	run.object = run_object(token->size, 1);
	run.result.bytes = token->make(run.object, run.threads);
	run_start(run.threads, wait_for_call_off);
	perf_until(run_all_wait, NULL);
	run_sleep_ms(2);
	for (unsigned i = 0; i < run.threads; i++)
		call_off_next();
	double until = perf_now() + run.limit;
	run_begins();
	do {
		call_off_next();
		run.result.ops++;
	} while (!run_time_is_up(run.result.ops, until));
	run_ends();
	run_stop();
	for (uint64_t i = run.released; i < run.released + run.threads; i++)
		token->fire(run.object, (unsigned)(i % run.threads), (unsigned)(i / run.threads));
	run_join(run.threads);
}
