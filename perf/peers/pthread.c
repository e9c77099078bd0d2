/* SPDX-License-Identifier: MIT */
/*
 * The C library: pthreads and sem_t, as their manual pages advise. What it does not have, and programs write by hand,
 * is written here in the best way that it allows: conditions are signalled after unlocking, and only if somebody waits.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "impl.h"
#include "peers.h"

/* ---- sem ---- */

static size_t sem_make(void *object, unsigned n)
{
	sem_init(object, 0, n);
	return sizeof(sem_t);
}

static void acquire(void *object, unsigned slot)
{
	(void)slot;
	while (sem_wait(object) != 0)
		;
}

static void release(void *object, unsigned permits)
{
	for (; permits > 0; permits--)
		sem_post(object);
}

PEER_PAIRS(sem_pairs, sem_t, sem_wait(o), sem_post(o))

/* In order: a condition for each request. */
struct ordered {
	void *sem;
};

static size_t ordered_make(void *object, unsigned n)
{
	struct ordered *s = object;
	s->sem = impl_cond_request.create(PEER_MOST);
	impl_cond_request.release(s->sem, n);
	return sizeof(pthread_mutex_t) + PEER_MOST * sizeof(pthread_cond_t);
}

static void ordered_acquire(void *object, unsigned slot)
{
	impl_cond_request.acquire(((struct ordered *)object)->sem, slot, 1);
}

static void ordered_release(void *object, unsigned permits)
{
	impl_cond_request.release(((struct ordered *)object)->sem, permits);
}

PEER_PAIRS(ordered_pairs, struct ordered, ordered_acquire(o, 0), ordered_release(o, 1))

static const struct peer_sem sems[] = {
	{ "", sizeof(sem_t), sem_make, acquire, release, sem_pairs },
	{ "ordered", sizeof(struct ordered), ordered_make, ordered_acquire, ordered_release, ordered_pairs },
	{ 0 },
};

/* ---- mutex ---- */

static size_t mutex_make(void *object, unsigned n)
{
	(void)n;
	pthread_mutex_init(object, NULL);
	return sizeof(pthread_mutex_t);
}

PEER_PAIRS(mutex_pairs, pthread_mutex_t, pthread_mutex_lock(o), pthread_mutex_unlock(o))
PEER_CONTEND(mutex_contend, pthread_mutex_t, pthread_mutex_lock(o), pthread_mutex_unlock(o))

static const struct peer_mutex mutexes[] = {
	{ "", sizeof(pthread_mutex_t), mutex_make, mutex_pairs, mutex_contend },
	{ 0 },
};

/* ---- rwlock ---- */

static size_t readers_make(void *object, unsigned n)
{
	(void)n;
	pthread_rwlock_init(object, NULL);
	return sizeof(pthread_rwlock_t);
}

static size_t writers_make(void *object, unsigned n)
{
	pthread_rwlockattr_t attr;
	(void)n;
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(object, &attr);
	pthread_rwlockattr_destroy(&attr);
	return sizeof(pthread_rwlock_t);
}

static void rwlock_read(void *object, void (*section)(void *arg), void *arg)
{
	pthread_rwlock_rdlock(object);
	section(arg);
	pthread_rwlock_unlock(object);
}

static void rwlock_write(void *object, void (*section)(void *arg), void *arg)
{
	pthread_rwlock_wrlock(object);
	section(arg);
	pthread_rwlock_unlock(object);
}

PEER_PAIRS(read_pairs, pthread_rwlock_t, pthread_rwlock_rdlock(o), pthread_rwlock_unlock(o))
PEER_PAIRS(write_pairs, pthread_rwlock_t, pthread_rwlock_wrlock(o), pthread_rwlock_unlock(o))

static const struct peer_rwlock rwlocks[] = {
	{ "", sizeof(pthread_rwlock_t), readers_make, rwlock_read, rwlock_write, read_pairs, write_pairs },
	{ "writers", sizeof(pthread_rwlock_t), writers_make, rwlock_read, rwlock_write, read_pairs, write_pairs },
	{ 0 },
};

/* ---- guarded buffer ---- */

struct buffer {
	pthread_mutex_t mutex;
	pthread_cond_t not_full, not_empty;
	unsigned putters, takers;
	struct peer_ring ring;
};

static size_t buffer_make(void *object, unsigned n)
{
	struct buffer *b = object;
	pthread_mutex_init(&b->mutex, NULL);
	pthread_cond_init(&b->not_full, NULL);
	pthread_cond_init(&b->not_empty, NULL);
	b->ring.capacity = n;
	return sizeof *b - sizeof b->ring;
}

static void buffer_put(void *object, uint64_t item)
{
	struct buffer *b = object;
	pthread_mutex_lock(&b->mutex);
	while (peer_ring_full(&b->ring)) {
		b->putters++;
		pthread_cond_wait(&b->not_full, &b->mutex);
		b->putters--;
	}
	peer_ring_put(&b->ring, item);
	bool wanted = b->takers > 0;
	pthread_mutex_unlock(&b->mutex);
	if (wanted)
		pthread_cond_signal(&b->not_empty);
}

static uint64_t buffer_take(void *object)
{
	struct buffer *b = object;
	pthread_mutex_lock(&b->mutex);
	while (peer_ring_empty(&b->ring)) {
		b->takers++;
		pthread_cond_wait(&b->not_empty, &b->mutex);
		b->takers--;
	}
	uint64_t item = peer_ring_take(&b->ring);
	bool wanted = b->putters > 0;
	pthread_mutex_unlock(&b->mutex);
	if (wanted)
		pthread_cond_signal(&b->not_full);
	return item;
}

static const struct peer_buffer buffers[] = {
	{ "", sizeof(struct buffer), buffer_make, buffer_put, buffer_take },
	{ 0 },
};

/* ---- barrier ---- */

static size_t barrier_make(void *object, unsigned n)
{
	pthread_barrier_init(object, NULL, n);
	return sizeof(pthread_barrier_t);
}

static void barrier_meet(void *object)
{
	pthread_barrier_wait(object);
}

static const struct peer_barrier barriers[] = {
	{ "", sizeof(pthread_barrier_t), barrier_make, barrier_meet },
	{ 0 },
};

/* ---- once ---- */

/* What pthread_once's function has no argument for. */
static __thread struct {
	void (*fn)(void *arg);
	void *arg;
} current;

static void make_it(void)
{
	current.fn(current.arg);
}

static size_t once_make(void *object, unsigned n)
{
	(void)n;
	*(pthread_once_t *)object = PTHREAD_ONCE_INIT;
	return sizeof(pthread_once_t);
}

static void once_call(void *object, void (*fn)(void *arg), void *arg)
{
	current.fn = fn;
	current.arg = arg;
	pthread_once(object, make_it);
}

static void once_calls(void *object, uint64_t n, void (*fn)(void *arg), void *arg)
{
	for (; n > 0; n--)
		once_call(object, fn, arg);
}

static const struct peer_once onces[] = {
	{ "", sizeof(pthread_once_t), once_make, once_call, once_calls },
	{ 0 },
};

/* ---- event: sem_t where one wait takes one set, else a flag with a condition ---- */

static void event_post(void *object)
{
	sem_post(object);
}

static void event_take(void *object)
{
	acquire(object, 0);
}

struct flag {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool set;
};

static size_t flag_make(void *object, unsigned n)
{
	struct flag *f = object;
	(void)n;
	pthread_mutex_init(&f->mutex, NULL);
	pthread_cond_init(&f->cond, NULL);
	return sizeof *f;
}

static void flag_put(struct flag *f, bool set)
{
	pthread_mutex_lock(&f->mutex);
	f->set = set;
	pthread_mutex_unlock(&f->mutex);
	if (set)
		pthread_cond_broadcast(&f->cond);
}

static void flag_set(void *object)
{
	flag_put(object, true);
}

static void flag_reset(void *object)
{
	flag_put(object, false);
}

static void flag_wait(void *object)
{
	struct flag *f = object;
	pthread_mutex_lock(&f->mutex);
	while (!f->set)
		pthread_cond_wait(&f->cond, &f->mutex);
	pthread_mutex_unlock(&f->mutex);
}

static size_t posts_make(void *object, unsigned n)
{
	(void)n;
	return sem_make(object, 0);
}

static const struct peer_event events[] = {
	{ "", sizeof(struct flag), flag_make, flag_set, flag_wait, flag_reset, false },
	{ "sem", sizeof(sem_t), posts_make, event_post, event_take, NULL, true },
	{ 0 },
};

/* ---- token: a flag for each, and a broadcast ---- */

struct callable {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool called_off[PEER_MOST][2];
};

static size_t token_make(void *object, unsigned n)
{
	struct callable *c = object;
	(void)n;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->cond, NULL);
	return sizeof(bool);
}

static void token_wait(void *object, unsigned slot, unsigned round)
{
	struct callable *c = object;
	pthread_mutex_lock(&c->mutex);
	while (!c->called_off[slot][round % 2])
		pthread_cond_wait(&c->cond, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
}

static void token_fire(void *object, unsigned slot, unsigned round)
{
	struct callable *c = object;
	pthread_mutex_lock(&c->mutex);
	c->called_off[slot][(round + 1) % 2] = false;
	c->called_off[slot][round % 2] = true;
	pthread_mutex_unlock(&c->mutex);
	pthread_cond_broadcast(&c->cond);
}

static const struct peer_token tokens[] = {
	{ "", sizeof(struct callable), token_make, token_wait, token_fire },
	{ 0 },
};

const struct peer peer = {
	"pthread", sems, mutexes, rwlocks, buffers, NULL, barriers, onces, events, NULL, tokens,
};
