/* SPDX-License-Identifier: MIT */
/*
 * Trouble tickets (M. Grand, Patterns in Java: Producer-Consumer): clients hand in tickets, dispatchers work on them,
 * at their own pace; a client that asks for too much at once waits, but not for ever.
 *
 * vez_queue_t, with a deadline for the client.
 * Seen to fail: a queue without bound never answers ETIMEDOUT.
 */
#include "classic.h"

#define CLIENTS 3
#define TICKETS 2000

static int places[8];
static vez_queue_t queue;
static char solved[CLIENTS * TICKETS];

static void *client(void *arg)
{
	int first = (int)(intptr_t)arg * TICKETS;
	for (int i = first; i < first + TICKETS; i++)
		check(vez_queue_put(&queue, &i) == 0);
	return NULL;
}

static void *dispatcher(void *arg)
{
	int ticket;
	(void)arg;
	while (vez_queue_take(&queue, &ticket) == 0)
		solved[ticket]++;
	return NULL;
}

int main(void)
{
	pthread_t clients[CLIENTS], dispatchers[2];
	check(vez_queue_init(&queue, places, sizeof places[0], 8) == 0);

	/* Nobody works yet: the ninth ticket is refused, now and after a while, and does not appear. */
	for (int i = 0; i < 8; i++)
		check(vez_queue_put(&queue, &i) == 0);
	vez_deadline_t deadline = vez_after_ms(2);
	check(vez_queue_try_put(&queue, &(int){ 8 }) == EBUSY);
	check(vez_queue_put_until(&queue, &(int){ 8 }, deadline, NULL) == ETIMEDOUT);
	check(vez_deadline_remaining_ns(deadline) == 0 && vez_queue_length(&queue) == 8);
	for (int i = 0, ticket; i < 8; i++)
		check(vez_queue_take(&queue, &ticket) == 0 && ticket == i);

	for (int i = 0; i < 2; i++)
		dispatchers[i] = start(dispatcher, NULL);
	for (intptr_t i = 0; i < CLIENTS; i++)
		clients[i] = start(client, (void *)i);
	for (int i = 0; i < CLIENTS; i++)
		finish(clients[i]);
	check(vez_queue_close(&queue) == 0);
	for (int i = 0; i < 2; i++)
		finish(dispatchers[i]);
	for (int i = 0; i < CLIENTS * TICKETS; i++)
		check(solved[i] == 1);
	check(vez_queue_destroy(&queue) == 0);
	return 0;
}
