/* SPDX-License-Identifier: MIT */
/*
 * A bounded buffer with guarded calls, whose consumers ask for batches.
 *
 * Each operation is a guard, which says when it may run, and a body, which runs alone. The thread that changes the
 * buffer looks at the guards of those that wait and runs the bodies that may run now; a caller sleeps once and wakes
 * when its operation has been done. There is no condition, no loop around a wait and no signal to forget, and "wait for
 * eight items, or for the end" is just another guard. (Where one item at a time will do, vez_queue_t is there.)
 *
 * Exit status 0: every item arrived once, and in batches of eight but for the last ones.
 */
#include <pthread.h>
#include <stdio.h>
#include <vez.h>

#define PLACES 32
#define BATCH 8
#define PRODUCERS 3
#define CONSUMERS 2
#define ITEMS 5000 /* of each producer */

struct buffer {
	vez_monitor_t monitor; /* guards the rest */
	int items[PLACES];
	unsigned first, length;
	bool closed;
};

/* What an operation needs to know, and brings back: it lies on its caller's stack. */
struct operation {
	struct buffer *buffer;
	int items[BATCH];
	unsigned count; /* how many items to put; how many were taken */
	bool closed;    /* put: it was not put, because the buffer is closed */
};

static bool can_put(void *arg)
{
	const struct operation *o = arg;
	return o->buffer->closed || PLACES - o->buffer->length >= o->count;
}

static void put(void *arg)
{
	struct operation *o = arg;
	struct buffer *b = o->buffer;
	o->closed = b->closed;
	for (unsigned i = 0; i < o->count && !b->closed; i++)
		b->items[(b->first + b->length++) % PLACES] = o->items[i];
}

static bool can_take_batch(void *arg)
{
	const struct operation *o = arg;
	return o->buffer->closed || o->buffer->length >= BATCH;
}

/* Of a closed buffer what is left: maybe nothing. */
static void take_batch(void *arg)
{
	struct operation *o = arg;
	struct buffer *b = o->buffer;
	for (o->count = 0; o->count < BATCH && b->length > 0; b->length--) {
		o->items[o->count++] = b->items[b->first];
		b->first = (b->first + 1) % PLACES;
	}
}

static void close_it(void *arg)
{
	((struct buffer *)arg)->closed = true;
}

/* 0; VEZ_ECLOSED; or ETIMEDOUT, ECANCELED: nothing was put. */
static int buffer_put(struct buffer *b, int item, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct operation o = { .buffer = b, .items = { item }, .count = 1 };
	int rc = vez_monitor_call_when(&b->monitor, can_put, put, &o, deadline, cancel);
	return rc == 0 && o.closed ? VEZ_ECLOSED : rc;
}

/* How many items were taken; 0: there will be no more. */
static unsigned buffer_take_batch(struct buffer *b, int items[BATCH])
{
	struct operation o = { .buffer = b };
	vez_monitor_call_when(&b->monitor, can_take_batch, take_batch, &o, VEZ_FOREVER, NULL);
	for (unsigned i = 0; i < o.count; i++)
		items[i] = o.items[i];
	return o.count;
}

static void buffer_close(struct buffer *b)
{
	vez_monitor_call(&b->monitor, close_it, b);
}

/* ---- producers and consumers ---- */

static struct buffer buffer = { .monitor = VEZ_MONITOR_INITIALIZER(NULL) };
static long sum, batches, small_batches;

static void *produce(void *arg)
{
	for (int i = 1; i <= ITEMS; i++)
		buffer_put(&buffer, i, VEZ_FOREVER, NULL);
	return arg;
}

static void *consume(void *arg)
{
	int items[BATCH];
	for (unsigned n; (n = buffer_take_batch(&buffer, items)) > 0;) {
		__atomic_fetch_add(&batches, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&small_batches, n < BATCH, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < n; i++)
			__atomic_fetch_add(&sum, items[i], __ATOMIC_RELAXED);
	}
	return arg;
}

int main(void)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	for (int i = 0; i < CONSUMERS; i++)
		pthread_create(&consumers[i], NULL, consume, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_create(&producers[i], NULL, produce, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(producers[i], NULL);
	buffer_close(&buffer);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(consumers[i], NULL);
	printf("%d items in %ld batches, %ld of them small\n", PRODUCERS * ITEMS, batches, small_batches);
	int late = buffer_put(&buffer, 1, vez_after_ms(10), NULL);
	return sum != (long)PRODUCERS * ITEMS * (ITEMS + 1) / 2 || small_batches > 1 || late != VEZ_ECLOSED ||
	       vez_monitor_destroy(&buffer.monitor);
}
