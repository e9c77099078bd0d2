/* SPDX-License-Identifier: MIT */
/* vez, as a peer among others. */
#include <stdlib.h>
#include <vez.h>

#include "peers.h"

static size_t sem_make(void *object, unsigned n)
{
	vez_sem_init(object, n, 0, 0);
	return sizeof(vez_sem_t);
}

static void sem_acquire(void *object, unsigned slot)
{
	(void)slot;
	vez_sem_acquire(object, 1);
}

static void sem_release(void *object, unsigned permits)
{
	vez_sem_release(object, permits);
}

PEER_PAIRS(sem_pairs, vez_sem_t, vez_sem_acquire(o, 1), vez_sem_release(o, 1))

static const struct peer_sem sems[] = {
	{ "", sizeof(vez_sem_t), sem_make, sem_acquire, sem_release, sem_pairs },
	{ 0 },
};

/* ---- mutex ---- */

static size_t mutex_make(void *object, unsigned n)
{
	(void)n;
	vez_mutex_init(object, 0);
	return sizeof(vez_mutex_t);
}

static size_t fair_make(void *object, unsigned n)
{
	(void)n;
	vez_mutex_init(object, VEZ_FAIR);
	return sizeof(vez_mutex_t);
}

PEER_PAIRS(mutex_pairs, vez_mutex_t, vez_mutex_lock(o), vez_mutex_unlock(o))
PEER_CONTEND(mutex_contend, vez_mutex_t, vez_mutex_lock(o), vez_mutex_unlock(o))

static const struct peer_mutex mutexes[] = {
	{ "", sizeof(vez_mutex_t), mutex_make, mutex_pairs, mutex_contend },
	{ "fair", sizeof(vez_mutex_t), fair_make, mutex_pairs, mutex_contend },
	{ 0 },
};

/* ---- rwlock ---- */

static size_t rwlock_make(void *object, unsigned n)
{
	(void)n;
	vez_rwlock_init(object, VEZ_RW_HOARE);
	return sizeof(vez_rwlock_t);
}

static void rwlock_read(void *object, void (*section)(void *arg), void *arg)
{
	vez_rwlock_rdlock(object);
	section(arg);
	vez_rwlock_rdunlock(object);
}

static void rwlock_write(void *object, void (*section)(void *arg), void *arg)
{
	vez_rwlock_wrlock(object);
	section(arg);
	vez_rwlock_wrunlock(object);
}

PEER_PAIRS(read_pairs, vez_rwlock_t, vez_rwlock_rdlock(o), vez_rwlock_rdunlock(o))
PEER_PAIRS(write_pairs, vez_rwlock_t, vez_rwlock_wrlock(o), vez_rwlock_wrunlock(o))

static const struct peer_rwlock rwlocks[] = {
	{ "", sizeof(vez_rwlock_t), rwlock_make, rwlock_read, rwlock_write, read_pairs, write_pairs },
	{ 0 },
};

/* ---- guarded buffer ---- */

struct buffer {
	vez_monitor_t monitor;
	struct peer_ring ring;
};

struct passing {
	struct peer_ring *ring;
	uint64_t item;
};

static bool has_place(void *arg)
{
	return !peer_ring_full(((struct passing *)arg)->ring);
}

static bool has_item(void *arg)
{
	return !peer_ring_empty(((struct passing *)arg)->ring);
}

static void put_item(void *arg)
{
	struct passing *p = arg;
	peer_ring_put(p->ring, p->item);
}

static void take_item(void *arg)
{
	struct passing *p = arg;
	p->item = peer_ring_take(p->ring);
}

static size_t buffer_make(void *object, unsigned n)
{
	struct buffer *b = object;
	vez_monitor_init(&b->monitor, NULL);
	b->ring.capacity = n;
	return sizeof b->monitor;
}

static void buffer_put(void *object, uint64_t item)
{
	struct buffer *b = object;
	struct passing p = { &b->ring, item };
	vez_monitor_call_when(&b->monitor, has_place, put_item, &p, VEZ_FOREVER, NULL);
}

static uint64_t buffer_take(void *object)
{
	struct buffer *b = object;
	struct passing p = { &b->ring, 0 };
	vez_monitor_call_when(&b->monitor, has_item, take_item, &p, VEZ_FOREVER, NULL);
	return p.item;
}

static const struct peer_buffer buffers[] = {
	{ "", sizeof(struct buffer), buffer_make, buffer_put, buffer_take },
	{ 0 },
};

/* ---- queue ---- */

struct queue {
	vez_queue_t queue;
	uint64_t items[PEER_ITEMS];
};

static size_t queue_make(void *object, unsigned n)
{
	struct queue *q = object;
	vez_queue_init(&q->queue, q->items, sizeof *q->items, n);
	return sizeof q->queue;
}

static void queue_put(void *object, uint64_t item)
{
	struct queue *q = object;
	vez_queue_put(&q->queue, &item);
}

static uint64_t queue_take(void *object)
{
	struct queue *q = object;
	uint64_t item = 0;
	vez_queue_take(&q->queue, &item);
	return item;
}

static const struct peer_buffer queues[] = {
	{ "", sizeof(struct queue), queue_make, queue_put, queue_take },
	{ 0 },
};

/* ---- barrier ---- */

static size_t barrier_make(void *object, unsigned n)
{
	vez_barrier_init(object, n, NULL, NULL);
	return sizeof(vez_barrier_t);
}

static void barrier_meet(void *object)
{
	vez_barrier_wait(object, NULL);
}

static const struct peer_barrier barriers[] = {
	{ "", sizeof(vez_barrier_t), barrier_make, barrier_meet },
	{ 0 },
};

/* ---- once ---- */

struct made {
	void (*fn)(void *arg);
	void *arg;
};

static int make_it(void *arg)
{
	struct made *m = arg;
	m->fn(m->arg);
	return 0;
}

static size_t once_make(void *object, unsigned n)
{
	(void)n;
	*(vez_once_t *)object = (vez_once_t)VEZ_ONCE_INITIALIZER;
	return sizeof(vez_once_t);
}

static void once_call(void *object, void (*fn)(void *arg), void *arg)
{
	struct made m = { fn, arg };
	vez_once(object, make_it, &m);
}

static void once_calls(void *object, uint64_t n, void (*fn)(void *arg), void *arg)
{
	struct made m = { fn, arg };
	for (; n > 0; n--)
		vez_once(object, make_it, &m);
}

static const struct peer_once onces[] = {
	{ "", sizeof(vez_once_t), once_make, once_call, once_calls },
	{ 0 },
};

/* ---- event and latch ---- */

static size_t event_make(void *object, unsigned n)
{
	vez_event_init(object, n ? VEZ_AUTO_RESET : 0);
	return sizeof(vez_event_t);
}

static void event_set(void *object)
{
	vez_event_set(object);
}

static void event_wait(void *object)
{
	vez_event_wait(object);
}

static void event_reset(void *object)
{
	vez_event_reset(object);
}

static const struct peer_event events[] = {
	{ "", sizeof(vez_event_t), event_make, event_set, event_wait, event_reset, true },
	{ 0 },
};

static size_t latch_make(void *object, unsigned n)
{
	(void)n;
	vez_latch_init(object, 1);
	return sizeof(vez_latch_t);
}

static void latch_set(void *object)
{
	vez_latch_count_down(object, 1);
}

static void latch_wait(void *object)
{
	vez_latch_wait(object);
}

static void latch_reset(void *object)
{
	vez_latch_destroy(object);
	vez_latch_init(object, 1);
}

static const struct peer_event latches[] = {
	{ "", sizeof(vez_latch_t), latch_make, latch_set, latch_wait, latch_reset, false },
	{ 0 },
};

/* ---- token ---- */

struct callable {
	vez_mutex_t mutex;
	vez_cond_t cond;
	vez_cancel_t tokens[PEER_MOST][2];
};

static size_t token_make(void *object, unsigned n)
{
	struct callable *c = object;
	(void)n;
	vez_mutex_init(&c->mutex, 0);
	vez_cond_init(&c->cond);
	for (unsigned i = 0; i < PEER_MOST; i++)
		for (unsigned k = 0; k < 2; k++)
			vez_cancel_init(&c->tokens[i][k]);
	return sizeof(vez_cancel_t);
}

static void token_wait(void *object, unsigned slot, unsigned round)
{
	struct callable *c = object;
	vez_mutex_lock(&c->mutex);
	while (vez_cond_wait_until(&c->cond, &c->mutex, VEZ_FOREVER, &c->tokens[slot][round % 2]) == 0)
		;
	vez_mutex_unlock(&c->mutex);
}

static void token_fire(void *object, unsigned slot, unsigned round)
{
	struct callable *c = object;
	vez_cancel_clear(&c->tokens[slot][(round + 1) % 2]);
	vez_cancel_fire(&c->tokens[slot][round % 2]);
}

static const struct peer_token tokens[] = {
	{ "", sizeof(struct callable), token_make, token_wait, token_fire },
	{ 0 },
};

const struct peer peer = {
	"vez", sems, mutexes, rwlocks, buffers, queues, barriers, onces, events, latches, tokens,
};
