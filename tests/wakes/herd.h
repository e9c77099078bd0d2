/* SPDX-License-Identifier: MIT */
/*
 * A herd whose wakes in vain are known: SIZE threads wait, one of them is meant, and all are woken; ROUNDS times. So
 * SIZE - 1 are woken in vain each time. Who wakes them looks, without a condition, whether all of them wait: each wake
 * is of all of them, and nobody waits for anything else.
 */
#ifndef HERD_H
#define HERD_H

#include <pthread.h>
#include <sched.h>

#define HERD_MOST 16

struct herd {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	int size, waiting, turn, begun;
};

static void *herd_member(void *arg)
{
	struct herd *h = arg;
	pthread_mutex_lock(&h->mutex);
	int me = h->begun++;
	for (;;) {
		do {
			h->waiting++;
			pthread_cond_wait(&h->cond, &h->mutex); /* the wait */
		} while (h->turn != me && h->turn >= 0);
		if (h->turn < 0)
			break;
		pthread_mutex_unlock(&h->mutex);
		pthread_mutex_lock(&h->mutex);
	}
	pthread_mutex_unlock(&h->mutex);
	return NULL;
}

static void herd_wait_for_all(struct herd *h)
{
	for (;;) {
		pthread_mutex_lock(&h->mutex);
		if (h->waiting == h->size)
			break;
		pthread_mutex_unlock(&h->mutex);
		sched_yield();
	}
	h->waiting = 0;
}

__attribute__((noinline)) static void herd_wake_one(struct herd *h, int turn)
{
	h->turn = turn;
	pthread_cond_broadcast(&h->cond); /* the wake */
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void herd_end(struct herd *h)
{
	h->turn = -1;
	pthread_cond_broadcast(&h->cond);
	__asm__ volatile("" ::: "memory");
}

static int herd_run(int size, int rounds)
{
	pthread_t thread[HERD_MOST];
	struct herd h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, size, 0, 0, 0 };
	for (int i = 0; i < size; i++)
		if (pthread_create(&thread[i], NULL, herd_member, &h) != 0)
			return 1;
	for (int i = 0; i < rounds; i++) {
		herd_wait_for_all(&h);
		herd_wake_one(&h, i % size);
		pthread_mutex_unlock(&h.mutex);
	}
	herd_wait_for_all(&h);
	herd_end(&h);
	pthread_mutex_unlock(&h.mutex);
	for (int i = 0; i < size; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

#endif
