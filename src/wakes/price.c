/* SPDX-License-Identifier: MIT */
/*
 * Measures what a wake in vain takes: a herd is woken by broadcasts, looks around, and waits again, for a while; in
 * turn with few threads and with many. What the many take more is what each of them takes, all other things being the
 * same. The turn that took least counts: what else the machine does only adds to it.
 *
 * Ordering: everything is under the mutex.
 */
#include "price.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#define FEW 2
#define MANY 8
#define TURNS 6
#define TURN 0.02 /* seconds */

struct herd {
	pthread_mutex_t mutex;
	pthread_cond_t woken, asleep;
	unsigned size, waiting;
	bool end;
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

static void wake_when_all_wait(struct herd *h)
{
	pthread_mutex_lock(&h->mutex);
	while (h->waiting < h->size)
		pthread_cond_wait(&h->asleep, &h->mutex);
	h->waiting = 0;
	pthread_cond_broadcast(&h->woken);
	pthread_mutex_unlock(&h->mutex);
}

static void wake_all_for_good(struct herd *h)
{
	pthread_mutex_lock(&h->mutex);
	h->end = true;
	pthread_cond_broadcast(&h->woken);
	pthread_mutex_unlock(&h->mutex);
}

/* What a round takes. */
static struct price drive(struct herd *h)
{
	double rounds = 0;
	wake_when_all_wait(h);
	double until = seconds(CLOCK_MONOTONIC) + TURN;
	struct price before = { seconds(CLOCK_PROCESS_CPUTIME_ID), switches() };
	for (; rounds < 1 || seconds(CLOCK_MONOTONIC) < until; rounds++)
		wake_when_all_wait(h);
	struct price after = { seconds(CLOCK_PROCESS_CPUTIME_ID), switches() };
	return (struct price){ (after.cpu - before.cpu) / rounds, (after.switches - before.switches) / rounds };
}

/* Keeps the least of what a round takes. */
static void take_turn(unsigned size, struct price *least)
{
	pthread_t thread[MANY];
	struct herd h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, false };
	pthread_mutex_lock(&h.mutex); /* nobody looks at the size before all are there */
	while (h.size < size && pthread_create(&thread[h.size], NULL, member, &h) == 0)
		h.size++;
	pthread_mutex_unlock(&h.mutex);
	struct price price = h.size == size ? drive(&h) : *least;
	wake_all_for_good(&h);
	for (unsigned i = 0; i < h.size; i++)
		pthread_join(thread[i], NULL);
	if (price.cpu < least->cpu)
		*least = price;
}

struct price price_measure(void)
{
	struct price few = { HUGE_VAL, 0 }, many = { HUGE_VAL, 0 };
	double enough = seconds(CLOCK_MONOTONIC) + 2 * TURNS * TURN;
	for (int i = 0; i < TURNS && (i == 0 || seconds(CLOCK_MONOTONIC) < enough); i++) {
		take_turn(FEW, &few);
		take_turn(MANY, &many);
	}
	if (few.cpu == HUGE_VAL || many.cpu == HUGE_VAL || many.cpu < few.cpu || many.switches < few.switches)
		return (struct price){ 0, 0 };
	return (struct price){ (many.cpu - few.cpu) / (MANY - FEW), (many.switches - few.switches) / (MANY - FEW) };
}
