/* SPDX-License-Identifier: MIT */
/* Crews: threads that all do one thing a round, started together; and random numbers. */
#include "stress.h"

#include <sched.h>
#include <time.h>

static _Thread_local uint64_t random_state = 1;
static atomic_uint seeded;

void rnd_seed(uint64_t salt)
{
	random_state = (opt.seed + salt + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

/* xorshift64: G. Marsaglia (2003). */
uint64_t rnd(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % below;
}

void dawdle(void)
{
	static const unsigned most[] = { 4, 30, 200, 1000 };
	for (volatile uint64_t i = rnd(most[rnd(4)]); i > 0; i--)
		;
}

int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void look_again(unsigned *looks)
{
	if (++*looks > 64)
		sched_yield();
}

void idle(uint64_t ns)
{
	int64_t end = now_ns() + (int64_t)rnd(ns);
	WAIT_UNTIL(now_ns() >= end);
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	struct crew *c = m->crew;
	rnd_seed(atomic_fetch_add(&seeded, 1) + 1);
	for (unsigned done = 0;; done++) {
		WAIT_UNTIL(atomic_load(&c->round) != done || atomic_load(&c->over));
		if (atomic_load(&c->round) == done)
			return NULL;
		m->fn(m->arg);
		atomic_fetch_sub(&c->left, 1);
	}
}

void crew_add(struct crew *c, const char *name, void (*fn)(void *arg), void *arg)
{
	struct member *m = &c->members[c->size];
	m->crew = c;
	m->fn = fn;
	m->arg = arg;
	c->threads[c->size++] = spawn(name, member_main, m);
}

static atomic_llong begun;

void meet(uint64_t ns)
{
	int64_t moment = atomic_load(&begun) + (int64_t)rnd(ns);
	WAIT_UNTIL(now_ns() >= moment);
}

void crew_begin(struct crew *c)
{
	atomic_store(&begun, now_ns() + 2000);
	atomic_store(&c->left, c->size);
	atomic_fetch_add(&c->round, 1);
}

void crew_end(struct crew *c)
{
	WAIT_UNTIL(atomic_load(&c->left) == 0);
	progress();
}

void crew_dismiss(struct crew *c)
{
	atomic_store(&c->over, true);
	for (unsigned i = 0; i < c->size; i++)
		pthread_join(c->threads[i], NULL);
}
