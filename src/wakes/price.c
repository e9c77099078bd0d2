/* SPDX-License-Identifier: MIT */
/*
 * Measures what a wake in vain takes: a herd is woken by broadcasts, looks around, and waits again, for a while; once
 * with few threads and once with many. What the many take more is what each of them takes, all other things being the
 * same.
 *
 * Ordering: everything is under the mutex.
 */
#include "price.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#define FEW 2
#define MANY 8
#define TURNS 4
#define TURN 0.03 /* seconds */

struct herd {
	pthread_mutex_t mutex;
	pthread_cond_t woken, asleep;
	unsigned size, waiting;
	bool end;
};

struct sum {
	double cpu, switches, rounds;
};

static double seconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double switches(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_nvcsw + usage.ru_nivcsw);
}

static void *member(void *arg)
{
	struct herd *h = arg;
	pthread_mutex_lock(&h->mutex);
	while (!h->end) {
		if (++h->waiting == h->size)
			pthread_cond_signal(&h->asleep);
		pthread_cond_wait(&h->woken, &h->mutex);
	}
	pthread_mutex_unlock(&h->mutex);
	return NULL;
}

static void wake_when_all_wait(struct herd *h, bool end)
{
	pthread_mutex_lock(&h->mutex);
	while (h->waiting < h->size)
		pthread_cond_wait(&h->asleep, &h->mutex);
	h->waiting = 0;
	h->end = end;
	pthread_cond_broadcast(&h->woken);
	pthread_mutex_unlock(&h->mutex);
}

static void drive(struct herd *h, struct sum *sum)
{
	wake_when_all_wait(h, false);
	double until = seconds(CLOCK_MONOTONIC) + TURN;
	sum->cpu -= seconds(CLOCK_PROCESS_CPUTIME_ID);
	sum->switches -= switches();
	for (; seconds(CLOCK_MONOTONIC) < until; sum->rounds++)
		wake_when_all_wait(h, false);
	sum->cpu += seconds(CLOCK_PROCESS_CPUTIME_ID);
	sum->switches += switches();
	wake_when_all_wait(h, true);
}

static void take_turn(unsigned size, struct sum *sum)
{
	pthread_t thread[MANY];
	struct herd h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false };
	pthread_mutex_lock(&h.mutex); /* nobody looks at the size before all are there */
	while (h.size < size && pthread_create(&thread[h.size], NULL, member, &h) == 0)
		h.size++;
	pthread_mutex_unlock(&h.mutex);
	if (h.size)
		drive(&h, sum);
	for (unsigned i = 0; i < h.size; i++)
		pthread_join(thread[i], NULL);
}

struct price price_measure(void)
{
	struct sum few = { 0, 0, 0 }, many = { 0, 0, 0 };
	for (int i = 0; i < TURNS; i++) {
		take_turn(FEW, &few);
		take_turn(MANY, &many);
	}
	if (few.rounds < 1 || many.rounds < 1)
		return (struct price){ 0, 0 };
	double cpu = (many.cpu / many.rounds - few.cpu / few.rounds) / (MANY - FEW);
	double turns = (many.switches / many.rounds - few.switches / few.rounds) / (MANY - FEW);
	return (struct price){ cpu > 0 ? cpu : 0, turns > 0 ? turns : 0 };
}
