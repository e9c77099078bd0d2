/* SPDX-License-Identifier: MIT */
/*
 * queue: producers and consumers on one bounded FIFO queue of 8-byte items.
 *
 * Each producer puts its share of the items as fast as it can, each consumer takes until the queue is closed and empty.
 * An item names its producer and its number. Checked: every item comes out once (count and sum), and each consumer sees
 * every producer's items in order, which is what FIFO means to it.
 *
 * vez             vez_queue_t
 * cond            the classic: one mutex, a ring, one condition for each side; signal after unlocking, only if somebody
 *                 waits. The best that pthreads allow
 * cond-locked     the same, signalled with the mutex held: how it is usually written
 * cond-broadcast  the same, broadcast
 * A capacity of 0 is a rendezvous: vez only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/queue.h>

#include "perf.h"

#define MOST 64

static struct perf_option options[] = {
	{ "impl", "vez", "vez, cond, cond-locked, cond-broadcast" },
	{ "producers", "4", "how many put" },
	{ "consumers", "4", "how many take" },
	{ "capacity", "16", "items" },
	{ "ops", "200000", "items passed" },
	{ "cpu", "any", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

/* ---- the implementations ---- */

struct classic {
	pthread_mutex_t mutex;
	pthread_cond_t not_full, not_empty;
	unsigned putters, takers;
	size_t capacity, first, length;
	bool closed;
	uint64_t *items;
};

static union {
	vez_queue_t vez;
	struct classic classic;
} queue;

static uint64_t *storage;

struct impl {
	const char *name;
	void (*init)(size_t capacity);
	void (*put)(uint64_t item);
	bool (*take)(uint64_t *item);
	void (*close)(void);
};

static void vez_init(size_t capacity)
{
	if (vez_queue_init(&queue.vez, storage, sizeof *storage, capacity) != 0)
		perf_fail("cannot make the queue");
}

static void vez_put(uint64_t item)
{
	if (vez_queue_put(&queue.vez, &item) != 0)
		perf_fail("a put failed");
}

static bool vez_take(uint64_t *item)
{
	return vez_queue_take(&queue.vez, item) == 0;
}

static void vez_close(void)
{
	vez_queue_close(&queue.vez);
}

static void classic_init(size_t capacity)
{
	struct classic *q = &queue.classic;
	if (capacity == 0)
		perf_fail("a rendezvous is not a classic");
	pthread_mutex_init(&q->mutex, NULL);
	pthread_cond_init(&q->not_full, NULL);
	pthread_cond_init(&q->not_empty, NULL);
	q->capacity = capacity;
	q->items = storage;
}

static void classic_close(void)
{
	struct classic *q = &queue.classic;
	pthread_mutex_lock(&q->mutex);
	q->closed = true;
	pthread_mutex_unlock(&q->mutex);
	pthread_cond_broadcast(&q->not_empty);
}

/* With the mutex held: waits for a place and fills it. True: somebody waits for an item. */
static bool classic_put_held(struct classic *q, uint64_t item)
{
	while (q->length == q->capacity) {
		q->putters++;
		pthread_cond_wait(&q->not_full, &q->mutex);
		q->putters--;
	}
	size_t end = q->first + q->length++;
	q->items[end < q->capacity ? end : end - q->capacity] = item;
	return q->takers > 0;
}

/* With the mutex held: waits for an item and takes it. False: closed. *wanted: somebody waits for a place. */
static bool classic_take_held(struct classic *q, uint64_t *item, bool *wanted)
{
	while (q->length == 0 && !q->closed) {
		q->takers++;
		pthread_cond_wait(&q->not_empty, &q->mutex);
		q->takers--;
	}
	*wanted = q->length > 0 && q->putters > 0;
	if (q->length == 0)
		return false;
	*item = q->items[q->first];
	q->length--;
	if (++q->first == q->capacity)
		q->first = 0;
	return true;
}

static void cond_put(uint64_t item)
{
	struct classic *q = &queue.classic;
	pthread_mutex_lock(&q->mutex);
	bool wanted = classic_put_held(q, item);
	pthread_mutex_unlock(&q->mutex);
	if (wanted)
		pthread_cond_signal(&q->not_empty);
}

static bool cond_take(uint64_t *item)
{
	struct classic *q = &queue.classic;
	bool wanted;
	pthread_mutex_lock(&q->mutex);
	bool taken = classic_take_held(q, item, &wanted);
	pthread_mutex_unlock(&q->mutex);
	if (wanted)
		pthread_cond_signal(&q->not_full);
	return taken;
}

static void locked_put(uint64_t item)
{
	struct classic *q = &queue.classic;
	pthread_mutex_lock(&q->mutex);
	classic_put_held(q, item);
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->mutex);
}

static bool locked_take(uint64_t *item)
{
	struct classic *q = &queue.classic;
	bool wanted;
	pthread_mutex_lock(&q->mutex);
	bool taken = classic_take_held(q, item, &wanted);
	pthread_cond_signal(&q->not_full);
	pthread_mutex_unlock(&q->mutex);
	return taken;
}

static void broadcast_put(uint64_t item)
{
	struct classic *q = &queue.classic;
	pthread_mutex_lock(&q->mutex);
	classic_put_held(q, item);
	pthread_cond_broadcast(&q->not_empty);
	pthread_mutex_unlock(&q->mutex);
}

static bool broadcast_take(uint64_t *item)
{
	struct classic *q = &queue.classic;
	bool wanted;
	pthread_mutex_lock(&q->mutex);
	bool taken = classic_take_held(q, item, &wanted);
	pthread_cond_broadcast(&q->not_full);
	pthread_mutex_unlock(&q->mutex);
	return taken;
}

static const struct impl impls[] = {
	{ "vez", vez_init, vez_put, vez_take, vez_close },
	{ "cond", classic_init, cond_put, cond_take, classic_close },
	{ "cond-locked", classic_init, locked_put, locked_take, classic_close },
	{ "cond-broadcast", classic_init, broadcast_put, broadcast_take, classic_close },
};

static const struct impl *impl;

static const struct impl *find_impl(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			return &impls[i];
	perf_fail("unknown --impl=%s", name);
}

/* ---- the threads ---- */

static pthread_barrier_t start;

struct worker {
	pthread_t thread;
	unsigned number;
	uint64_t items;
	uint64_t sum;
	unsigned producers;
};

static uint64_t item_of(unsigned producer, uint64_t number)
{
	return (uint64_t)producer << 48 | number;
}

static void *produce(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&start);
	for (uint64_t i = 1; i <= w->items; i++)
		impl->put(item_of(w->number, i));
	return NULL;
}

static void *consume(void *arg)
{
	struct worker *w = arg;
	uint64_t last[MOST] = { 0 };
	uint64_t item;
	pthread_barrier_wait(&start);
	while (impl->take(&item)) {
		uint64_t producer = item >> 48, number = item & (UINT64_MAX >> 16);
		if (producer >= w->producers || number <= last[producer])
			perf_fail("%s: not FIFO: item %llu of producer %llu after %llu", impl->name,
				  (unsigned long long)number,
				  (unsigned long long)producer, (unsigned long long)last[producer]);
		last[producer] = number;
		w->items++;
		w->sum += number;
	}
	return NULL;
}

/* ---- the program ---- */

static struct worker producers[MOST], consumers[MOST];

static void start_all(unsigned nproducers, unsigned nconsumers, uint64_t share)
{
	pthread_barrier_init(&start, NULL, nproducers + nconsumers + 1);
	for (unsigned i = 0; i < nproducers; i++) {
		producers[i] = (struct worker){ .number = i, .items = share };
		producers[i].thread = perf_thread(produce, &producers[i]);
	}
	for (unsigned i = 0; i < nconsumers; i++) {
		consumers[i] = (struct worker){ .number = i, .producers = nproducers };
		consumers[i].thread = perf_thread(consume, &consumers[i]);
	}
}

static void join_all(unsigned nproducers, unsigned nconsumers, uint64_t share)
{
	uint64_t items = 0, sum = 0;
	for (unsigned i = 0; i < nproducers; i++)
		pthread_join(producers[i].thread, NULL);
	impl->close();
	for (unsigned i = 0; i < nconsumers; i++) {
		pthread_join(consumers[i].thread, NULL);
		items += consumers[i].items;
		sum += consumers[i].sum;
	}
	if (items != nproducers * share || sum != nproducers * (share * (share + 1) / 2))
		perf_fail("%s: not conserved: %llu items out of %llu", impl->name, (unsigned long long)items,
			  (unsigned long long)(nproducers * share));
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char mode[64], extra[64];
	perf_options(argc, argv, "producers and consumers on a bounded queue", options,
		     sizeof options / sizeof *options);
	impl = find_impl(perf_option(options, "impl"));
	uint64_t nproducers = perf_number(options, "producers"), nconsumers = perf_number(options, "consumers");
	size_t capacity = perf_number(options, "capacity");
	if (nproducers < 1 || nproducers > MOST || nconsumers < 1 || nconsumers > MOST)
		perf_fail("1 to %d producers and consumers", MOST);
	uint64_t share = perf_number(options, "ops") / nproducers;
	storage = calloc(capacity + 1, sizeof *storage);
	if (!storage)
		perf_fail("no memory");
	perf_pin(perf_option(options, "cpu"));
	impl->init(capacity);
	start_all((unsigned)nproducers, (unsigned)nconsumers, share);
	perf_begin(&region);
	pthread_barrier_wait(&start);
	join_all((unsigned)nproducers, (unsigned)nconsumers, share);
	perf_end(&region);
	snprintf(mode, sizeof mode, "%u-%u-%zu", (unsigned)nproducers, (unsigned)nconsumers, capacity);
	snprintf(extra, sizeof extra, "\"capacity\": %zu", capacity);
	perf_print(&(struct perf_result){ "queue", impl->name, mode, (unsigned)(nproducers + nconsumers),
					  perf_option(options, "cpu"), nproducers * share, extra },
		   &region);
	free(storage);
	return 0;
}
