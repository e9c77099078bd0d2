/* SPDX-License-Identifier: MIT */
/*
 * The lost wake (Herlihy and Shavit, The Art of Multiprocessor Programming, section 8.2): a queue that signals "not
 * empty" only when it goes from empty to not empty. With conditions: two consumers wait; a producer puts an item and
 * signals one; before that one runs, a second producer puts an item, finds the queue not empty, and does not signal.
 * One consumer sleeps beside an item for ever.
 *
 * Here it cannot be written: whoever puts an item gives it to the first consumer that waits, inside, so that the queue
 * is never "not empty" while a consumer waits. Four threads as in the book: both consumers asleep, then both producers.
 * Seen to fail: a put that settles only where the last one found no consumer leaves one waiting: finish does not come.
 */
#include "classic.h"

#define ROUNDS 2000

static vez_monitor_t monitor = VEZ_MONITOR_INITIALIZER(NULL);
static vez_room_t consumers = VEZ_ROOM_INITIALIZER;
static int items[4];
static size_t length; /* inside */

static void put(int item)
{
	vez_monitor_enter(&monitor);
	vez_request_t *r = vez_room_first(&consumers);
	if (r) {
		vez_request_set_value(r, NULL, (uint64_t)item);
		vez_monitor_settle(&monitor, r, 0);
	} else {
		items[length++] = item;
	}
	vez_monitor_exit(&monitor);
}

static int take(void)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&monitor);
	if (length == 0) {
		check(vez_monitor_wait(&monitor, &consumers, &r, VEZ_FOREVER, NULL) == 0);
		return (int)vez_request_value(&r);
	}
	int item = items[--length];
	vez_monitor_exit(&monitor);
	return item;
}

static int sum;

static void *consumer(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&sum, take(), __ATOMIC_RELAXED);
	return NULL;
}

static void *producer(void *arg)
{
	put((int)(intptr_t)arg);
	return NULL;
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t taking[2], putting[2];
		for (size_t i = 0; i < 2; i++)
			taking[i] = start(consumer, NULL);
		await(vez_room_length(&consumers) == 2);
		for (intptr_t i = 0; i < 2; i++)
			putting[i] = start(producer, (void *)(i + 1));
		for (int i = 0; i < 2; i++) {
			finish(taking[i]);
			finish(putting[i]);
		}
		check(vez_room_length(&consumers) == 0 && length == 0);
	}
	check(sum == 3 * ROUNDS);
	return 0;
}
