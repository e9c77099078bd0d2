/* SPDX-License-Identifier: MIT */
/* Guarded buffers and queues; barriers. */
#include "run.h"

#define SIDE 4 /* producers; consumers */

/* ---- buffer and queue ---- */

static const struct peer_buffer *buffer;

static void produce(struct peer_worker *w)
{
	for (uint64_t i = 1; i <= w->quota; i++) {
		double before = peer_before_wait();
		buffer->put(run.object, (uint64_t)w->number << 48 | i);
		peer_after_wait(w, before);
	}
}

static void consume(struct peer_worker *w)
{
	uint64_t last[SIDE] = { 0 };
	for (; w->ops < w->quota; w->ops++) {
		double before = peer_before_wait();
		uint64_t item = buffer->take(run.object);
		peer_after_wait(w, before);
		uint64_t producer = item >> 48, number = item & (UINT64_MAX >> 16);
		if (producer >= SIDE || number <= last[producer])
			perf_fail("not FIFO: item %llu of producer %llu", (unsigned long long)number,
				  (unsigned long long)producer);
		last[producer] = number;
		w->value += number;
	}
}

static void *pass_items(void *arg)
{
	struct peer_worker *w = arg;
	pthread_barrier_wait(&run.begin);
	if (w->number < SIDE)
		produce(w);
	else
		consume(w);
	pthread_barrier_wait(&run.end);
	return NULL;
}

static void pass(const struct peer_buffer *found)
{
	uint64_t sum = 0, share = run.ops / SIDE;
	if (run.capacity < 1 || run.capacity > PEER_ITEMS)
		perf_fail("--capacity is 1 to %d", PEER_ITEMS);
	buffer = found;
	run.object = run_object(buffer->size, 1);
	run.result.bytes = buffer->make(run.object, run.capacity);
	pthread_barrier_init(&run.begin, NULL, 2 * SIDE + 1);
	pthread_barrier_init(&run.end, NULL, 2 * SIDE + 1);
	for (unsigned i = 0; i < 2 * SIDE; i++)
		run.workers[i].quota = share;
	run_start(2 * SIDE, pass_items);
	run_sleep_ms(2);
	run_begins();
	pthread_barrier_wait(&run.begin);
	pthread_barrier_wait(&run.end);
	run_ends();
	run_join(2 * SIDE);
	for (unsigned i = 0; i < 2 * SIDE; i++)
		sum += run.workers[i].value;
	if (sum != SIDE * (share * (share + 1) / 2))
		perf_fail("not conserved");
	run.result.ops = share * SIDE;
}

void buffer_pass(void)
{
	RUN_FIND(peer.buffers);
	pass(found);
}

void queue_pass(void)
{
	RUN_FIND(peer.queues);
	pass(found);
}

/* ---- barrier ---- */

static const struct peer_barrier *barrier;
static uint64_t last_round = UINT64_MAX;

static void meet(struct peer_worker *own)
{
	__atomic_store_n(&own->ops, own->ops + 1, __ATOMIC_RELAXED);
	double before = peer_before_wait();
	barrier->meet(run.object);
	peer_after_wait(own, before);
	for (unsigned i = 0; i < run.threads; i++)
		if (__atomic_load_n(&run.workers[i].ops, __ATOMIC_RELAXED) < own->ops)
			perf_fail("a party went on alone");
}

static void *take_part(void *arg)
{
	struct peer_worker *own = arg;
	do
		meet(own);
	while (own->ops < __atomic_load_n(&last_round, __ATOMIC_RELAXED));
	return NULL;
}

/* The calling thread is the first party. The last round is told one round ahead, so that all read it before they come
 * to it. */
void barrier_meet(void)
{
	RUN_FIND(peer.barriers);
	barrier = found;
	run.object = run_object(barrier->size, 1);
	run.result.bytes = barrier->make(run.object, run.threads);
	for (unsigned i = 1; i < run.threads; i++)
		run.workers[i].thread = perf_thread(take_part, &run.workers[i]);
	for (unsigned i = 0; i < 100; i++)
		meet(&run.workers[0]);
	double until = perf_now() + run.limit;
	run_begins();
	do {
		meet(&run.workers[0]);
		run.result.ops++;
	} while (!run_time_is_up(run.result.ops, until));
	run_ends();
	__atomic_store_n(&last_round, run.workers[0].ops + 1, __ATOMIC_RELAXED);
	meet(&run.workers[0]);
	for (unsigned i = 1; i < run.threads; i++)
		pthread_join(run.workers[i].thread, NULL);
	run_look_at_waits(run.threads);
}
