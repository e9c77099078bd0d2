/* SPDX-License-Identifier: MIT */
/*
 * nsync. Its headers advise conditional critical sections (nsync_mu_wait), which need no signal, and condition
 * variables where many wait for distinct conditions: both are here where both may be the better.
 *
 * It has neither semaphores nor queues nor barriers: what is written here is what its examples write.
 */
#include <malloc.h>
#include <nsync.h>
#include <stdlib.h>

#include "peers.h"

static int not_zero(const void *count)
{
	return *(const unsigned *)count != 0;
}

/* ---- sem ---- */

struct sem {
	nsync_mu mu;
	nsync_cv cv;
	unsigned permits;
};

static size_t wait_make(void *object, unsigned n)
{
	struct sem *s = object;
	s->permits = n;
	return sizeof(nsync_mu) + sizeof s->permits;
}

static void wait_acquire(void *object, unsigned slot)
{
	struct sem *s = object;
	(void)slot;
	nsync_mu_lock(&s->mu);
	nsync_mu_wait(&s->mu, not_zero, &s->permits, NULL);
	s->permits--;
	nsync_mu_unlock(&s->mu);
}

static void wait_release(void *object, unsigned permits)
{
	struct sem *s = object;
	nsync_mu_lock(&s->mu);
	s->permits += permits;
	nsync_mu_unlock(&s->mu);
}

PEER_PAIRS(wait_pairs, struct sem, wait_acquire(o, 0), wait_release(o, 1))

static size_t cv_make(void *object, unsigned n)
{
	struct sem *s = object;
	s->permits = n;
	return sizeof *s;
}

static void cv_acquire(void *object, unsigned slot)
{
	struct sem *s = object;
	(void)slot;
	nsync_mu_lock(&s->mu);
	while (s->permits == 0)
		nsync_cv_wait(&s->cv, &s->mu);
	s->permits--;
	nsync_mu_unlock(&s->mu);
}

static void cv_release(void *object, unsigned permits)
{
	struct sem *s = object;
	nsync_mu_lock(&s->mu);
	s->permits += permits;
	nsync_mu_unlock(&s->mu);
	for (; permits > 0; permits--)
		nsync_cv_signal(&s->cv);
}

PEER_PAIRS(cv_pairs, struct sem, cv_acquire(o, 0), cv_release(o, 1))

static const struct peer_sem sems[] = {
	{ "", sizeof(struct sem), wait_make, wait_acquire, wait_release, wait_pairs },
	{ "cv", sizeof(struct sem), cv_make, cv_acquire, cv_release, cv_pairs },
	{ 0 },
};

/* ---- mutex and rwlock: one type is both ---- */

static size_t mu_make(void *object, unsigned n)
{
	(void)n;
	nsync_mu_init(object);
	return sizeof(nsync_mu);
}

PEER_PAIRS(mu_pairs, nsync_mu, nsync_mu_lock(o), nsync_mu_unlock(o))
PEER_PAIRS(read_pairs, nsync_mu, nsync_mu_rlock(o), nsync_mu_runlock(o))
PEER_CONTEND(mu_contend, nsync_mu, nsync_mu_lock(o), nsync_mu_unlock(o))

static const struct peer_mutex mutexes[] = {
	{ "", sizeof(nsync_mu), mu_make, mu_pairs, mu_contend },
	{ 0 },
};

static void mu_read(void *object, void (*section)(void *arg), void *arg)
{
	nsync_mu_rlock(object);
	section(arg);
	nsync_mu_runlock(object);
}

static void mu_write(void *object, void (*section)(void *arg), void *arg)
{
	nsync_mu_lock(object);
	section(arg);
	nsync_mu_unlock(object);
}

static const struct peer_rwlock rwlocks[] = {
	{ "", sizeof(nsync_mu), mu_make, mu_read, mu_write, read_pairs, mu_pairs },
	{ 0 },
};

/* ---- guarded buffer ---- */

struct buffer {
	nsync_mu mu;
	nsync_cv not_full, not_empty;
	struct peer_ring ring;
};

static int has_place(const void *ring)
{
	return !peer_ring_full(ring);
}

static int has_item(const void *ring)
{
	return !peer_ring_empty(ring);
}

static size_t buffer_make(void *object, unsigned n)
{
	((struct buffer *)object)->ring.capacity = n;
	return sizeof(nsync_mu);
}

static void buffer_put(void *object, uint64_t item)
{
	struct buffer *b = object;
	nsync_mu_lock(&b->mu);
	nsync_mu_wait(&b->mu, has_place, &b->ring, NULL);
	peer_ring_put(&b->ring, item);
	nsync_mu_unlock(&b->mu);
}

static uint64_t buffer_take(void *object)
{
	struct buffer *b = object;
	nsync_mu_lock(&b->mu);
	nsync_mu_wait(&b->mu, has_item, &b->ring, NULL);
	uint64_t item = peer_ring_take(&b->ring);
	nsync_mu_unlock(&b->mu);
	return item;
}

static size_t cv_buffer_make(void *object, unsigned n)
{
	((struct buffer *)object)->ring.capacity = n;
	return sizeof(nsync_mu) + 2 * sizeof(nsync_cv);
}

static void cv_buffer_put(void *object, uint64_t item)
{
	struct buffer *b = object;
	nsync_mu_lock(&b->mu);
	while (peer_ring_full(&b->ring))
		nsync_cv_wait(&b->not_full, &b->mu);
	peer_ring_put(&b->ring, item);
	nsync_cv_signal(&b->not_empty);
	nsync_mu_unlock(&b->mu);
}

static uint64_t cv_buffer_take(void *object)
{
	struct buffer *b = object;
	nsync_mu_lock(&b->mu);
	while (peer_ring_empty(&b->ring))
		nsync_cv_wait(&b->not_empty, &b->mu);
	uint64_t item = peer_ring_take(&b->ring);
	nsync_cv_signal(&b->not_full);
	nsync_mu_unlock(&b->mu);
	return item;
}

static const struct peer_buffer buffers[] = {
	{ "", sizeof(struct buffer), buffer_make, buffer_put, buffer_take },
	{ "cv", sizeof(struct buffer), cv_buffer_make, cv_buffer_put, cv_buffer_take },
	{ 0 },
};

/* ---- once ---- */

static size_t once_make(void *object, unsigned n)
{
	static const nsync_once fresh = NSYNC_ONCE_INIT;
	(void)n;
	*(nsync_once *)object = fresh;
	return sizeof(nsync_once);
}

static void once_call(void *object, void (*fn)(void *arg), void *arg)
{
	nsync_run_once_arg(object, fn, arg);
}

static void once_calls(void *object, uint64_t n, void (*fn)(void *arg), void *arg)
{
	for (; n > 0; n--)
		nsync_run_once_arg(object, fn, arg);
}

static const struct peer_once onces[] = {
	{ "", sizeof(nsync_once), once_make, once_call, once_calls },
	{ 0 },
};

/* ---- event: a note, which is made anew; or a flag that one wait takes ---- */

static size_t note_make(void *object, unsigned n)
{
	nsync_note *note = object;
	(void)n;
	*note = nsync_note_new(NULL, nsync_time_no_deadline);
	return malloc_usable_size(*note);
}

static void note_set(void *object)
{
	nsync_note_notify(*(nsync_note *)object);
}

static void note_wait(void *object)
{
	nsync_note_wait(*(nsync_note *)object, nsync_time_no_deadline);
}

static void note_reset(void *object)
{
	nsync_note_free(*(nsync_note *)object);
	note_make(object, 0);
}

static size_t flag_make(void *object, unsigned n)
{
	(void)n;
	return wait_make(object, 0);
}

static void flag_set(void *object)
{
	struct sem *flag = object;
	nsync_mu_lock(&flag->mu);
	flag->permits = 1;
	nsync_mu_unlock(&flag->mu);
}

static void flag_wait(void *object)
{
	wait_acquire(object, 0);
}

static const struct peer_event events[] = {
	{ "", sizeof(nsync_note), note_make, note_set, note_wait, note_reset, false },
	{ "flag", sizeof(struct sem), flag_make, flag_set, flag_wait, NULL, true },
	{ 0 },
};

/* ---- latch: a counter, which is made anew ---- */

static size_t counter_make(void *object, unsigned n)
{
	nsync_counter *counter = object;
	(void)n;
	*counter = nsync_counter_new(1);
	return malloc_usable_size(*counter);
}

static void counter_set(void *object)
{
	nsync_counter_add(*(nsync_counter *)object, -1);
}

static void counter_wait(void *object)
{
	nsync_counter_wait(*(nsync_counter *)object, nsync_time_no_deadline);
}

static void counter_reset(void *object)
{
	nsync_counter_free(*(nsync_counter *)object);
	counter_make(object, 0);
}

static const struct peer_event latches[] = {
	{ "", sizeof(nsync_counter), counter_make, counter_set, counter_wait, counter_reset, false },
	{ 0 },
};

/* ---- token: a note for each wait ---- */

struct callable {
	nsync_mu mu;
	nsync_cv cv;
	nsync_note notes[PEER_MOST][2];
};

static size_t token_make(void *object, unsigned n)
{
	struct callable *c = object;
	(void)n;
	for (unsigned i = 0; i < PEER_MOST; i++)
		for (unsigned k = 0; k < 2; k++)
			c->notes[i][k] = nsync_note_new(NULL, nsync_time_no_deadline);
	return malloc_usable_size(c->notes[0][0]);
}

static void token_wait(void *object, unsigned slot, unsigned round)
{
	struct callable *c = object;
	nsync_note note = c->notes[slot][round % 2];
	nsync_mu_lock(&c->mu);
	while (nsync_cv_wait_with_deadline(&c->cv, &c->mu, nsync_time_no_deadline, note) == 0)
		;
	nsync_mu_unlock(&c->mu);
}

static void token_fire(void *object, unsigned slot, unsigned round)
{
	struct callable *c = object;
	nsync_note *used = &c->notes[slot][(round + 1) % 2];
	nsync_note_free(*used);
	*used = nsync_note_new(NULL, nsync_time_no_deadline);
	nsync_note_notify(c->notes[slot][round % 2]);
}

static const struct peer_token tokens[] = {
	{ "", sizeof(struct callable), token_make, token_wait, token_fire },
	{ 0 },
};

const struct peer peer = {
	"nsync", sems, mutexes, rwlocks, buffers, NULL, NULL, onces, events, latches, tokens,
};
