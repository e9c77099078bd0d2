/* SPDX-License-Identifier: MIT */
/*
 * The bounded buffer (Dijkstra, Hoare): producers and consumers on a ring of a few places.
 *
 * vez_queue_t: an item goes straight to a consumer that waits. Closing lets the consumers drain it and then tells them
 * that there will be no more: nobody counts.
 * Seen to fail: an item taken twice or lost changes the sum; items out of order are noticed per producer.
 */
#include "classic.h"

#define PRODUCERS 3
#define CONSUMERS 3
#define ITEMS 5000

struct item {
	int producer;
	int number;
};

static struct item places[4];
static vez_queue_t buffer;
static long consumed, sum;

static void *producer(void *arg)
{
	for (int i = 1; i <= ITEMS; i++)
		check(vez_queue_put(&buffer, &(struct item){ (int)(intptr_t)arg, i }) == 0);
	return NULL;
}

static void *consumer(void *arg)
{
	int last[PRODUCERS] = { 0 };
	struct item item;
	int rc;
	(void)arg;
	while ((rc = vez_queue_take(&buffer, &item)) == 0) {
		check(item.number > last[item.producer]);
		last[item.producer] = item.number;
		__atomic_fetch_add(&consumed, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&sum, item.number, __ATOMIC_RELAXED);
	}
	check(rc == VEZ_ECLOSED);
	return NULL;
}

int main(void)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	check(vez_queue_init(&buffer, places, sizeof places[0], sizeof places / sizeof places[0]) == 0);
	for (intptr_t i = 0; i < CONSUMERS; i++)
		consumers[i] = start(consumer, NULL);
	for (intptr_t i = 0; i < PRODUCERS; i++)
		producers[i] = start(producer, (void *)i);
	for (int i = 0; i < PRODUCERS; i++)
		finish(producers[i]);
	check(vez_queue_close(&buffer) == 0);
	for (int i = 0; i < CONSUMERS; i++)
		finish(consumers[i]);
	check(consumed == PRODUCERS * ITEMS && sum == (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2);
	check(vez_queue_destroy(&buffer) == 0);
	return 0;
}
