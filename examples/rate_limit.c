/* SPDX-License-Identifier: MIT */
/*
 * No more than so many operations begin in any period of so long, in whatever bursts they come; for threads and for
 * requests that have none.
 *
 * A vez_sem_t has a permit for each operation that may begin in a period. Whoever has been granted one says so
 * (rate_used), and the permit comes back a period later: a request that waits for a token that does not fire is a
 * timer, which the library's own thread keeps. So nothing ticks while nothing is done, a whole period's permits may be
 * used at once (the burst), and waiting for one has all that waiting for a semaphore has: the order of coming, a
 * deadline, a token, and a form without a thread. Firing the timers' token ends the limit and gives all permits back.
 *
 * For a gap between two operations that must not overlap either, there is vez_sched_min_gap (connection_pool.c).
 *
 * Exit status 0: no period had too many, and none was lost.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vez.h>

#define BURST 5
#define PERIOD_NS 20000000
#define THREADS 3
#define EACH 8      /* operations of each thread */
#define REQUESTS 12 /* without a thread */
#define ALL (THREADS * EACH + REQUESTS)

struct timer {
	vez_request_t request;
	struct rate *rate;
	struct timer *next; /* that is not set */
};

struct rate {
	vez_sem_t permits;
	vez_cancel_t end;
	vez_mutex_t lock; /* guards unset */
	struct timer *unset, timer[BURST];
};

static void rate_init(struct rate *r)
{
	vez_sem_init(&r->permits, BURST, BURST, 0);
	vez_cancel_init(&r->end);
	vez_mutex_init(&r->lock, 0);
	r->unset = NULL;
	for (int i = 0; i < BURST; i++) {
		r->timer[i].rate = r;
		r->timer[i].next = r->unset;
		r->unset = &r->timer[i];
	}
}

/* A period has passed since a permit was used, or the limit has ended. */
static void give_back(vez_request_t *request, int result, void *arg)
{
	struct timer *t = arg;
	struct rate *r = t->rate;
	(void)request;
	(void)result;
	vez_mutex_lock(&r->lock);
	t->next = r->unset;
	r->unset = t;
	vez_mutex_unlock(&r->lock);
	vez_sem_release(&r->permits, 1);
}

/* By who was granted a permit: the operation begins. There is a timer for each permit. */
static void rate_used(struct rate *r)
{
	vez_mutex_lock(&r->lock);
	struct timer *t = r->unset;
	r->unset = t->next;
	vez_mutex_unlock(&r->lock);
	vez_request_init(&t->request, give_back, t);
	vez_request_set_limits(&t->request, vez_after_ns(PERIOD_NS), NULL);
	int rc = vez_cancel_wait_async(&r->end, &t->request);
	if (rc != EINPROGRESS) { /* the limit has ended (0); or EAGAIN: there is no thread for deadlines */
		if (rc != 0)
			fprintf(stderr, "no limit: %s\n", vez_strerror(rc));
		give_back(&t->request, rc, t);
	}
}

static int rate_wait(struct rate *r, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_sem_acquire_until(&r->permits, 1, deadline, cancel);
}

static int rate_wait_async(struct rate *r, vez_request_t *request)
{
	return vez_sem_acquire_async(&r->permits, 1, request);
}

/* ---- operations ---- */

static struct rate rate;
static vez_mutex_t lock = VEZ_MUTEX_INITIALIZER;
static vez_latch_t left = VEZ_LATCH_INITIALIZER(ALL);
static int64_t began[ALL];
static int count;

static void operate(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	vez_mutex_lock(&lock);
	began[count++] = vez_deadline_from_timespec(&now);
	vez_mutex_unlock(&lock);
	rate_used(&rate);
	vez_latch_count_down(&left, 1);
}

static void *work(void *arg)
{
	for (int i = 0; i < EACH; i++)
		if (rate_wait(&rate, VEZ_FOREVER, NULL) == 0)
			operate();
	return arg;
}

static void granted(vez_request_t *r, int result, void *arg)
{
	(void)r;
	(void)arg;
	if (result == 0)
		operate();
}

static int in_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int main(void)
{
	static vez_request_t request[REQUESTS];
	pthread_t thread[THREADS];
	rate_init(&rate);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < REQUESTS; i++) {
		vez_request_init(&request[i], granted, NULL);
		if (rate_wait_async(&rate, &request[i]) == 0)
			operate();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (vez_latch_wait_until(&left, vez_after_s(60), NULL) != 0)
		return 1;
	for (int i = 0; i < REQUESTS; i++)
		vez_request_wait(&request[i], VEZ_FOREVER, NULL); /* until its function has returned */

	/* Each of the permits was used once in a period. */
	qsort(began, ALL, sizeof began[0], in_time);
	int soonest = 0;
	for (int i = 0; i + BURST < ALL; i++)
		soonest += began[i + BURST] - began[i] < PERIOD_NS;
	printf("%d operations in %.3f s, %d too soon\n", count, (double)(began[ALL - 1] - began[0]) / 1e9, soonest);

	/* The timers that are set give their permits back now. */
	vez_cancel_fire(&rate.end);
	if (vez_sem_acquire_until(&rate.permits, BURST, vez_after_s(60), NULL) != 0)
		return 1;
	return count != ALL || soonest != 0 || vez_cancel_destroy(&rate.end) != 0;
}
