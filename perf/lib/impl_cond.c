/* SPDX-License-Identifier: MIT */
/*
 * FIFO semaphores out of a mutex and conditions: one condition and broadcast, and a condition for each request.
 *
 * The conditions of requests are kept by caller and outlive every wait: only so may they be signalled after unlocking,
 * when the request may have returned already. The length of the queue is read without the mutex by who paces the run.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "perf.h"

/* How many conditions a releaser remembers at a time. */
#define BATCH 64

struct request {
	struct request *next;
	uint32_t wants;
	bool granted;
	pthread_cond_t cond;
} __attribute__((aligned(128)));

struct cond_sem {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct request *first;
	struct request **end;
	size_t length;
	uint32_t permits;
	unsigned slots;
	struct request *requests;
};

/* ---- with the mutex held ---- */

static bool first_can_go(const struct cond_sem *s)
{
	return s->first && s->permits >= s->first->wants;
}

static void append(struct cond_sem *s, struct request *r, uint32_t wants)
{
	r->next = NULL;
	r->wants = wants;
	r->granted = false;
	*s->end = r;
	s->end = &r->next;
	__atomic_store_n(&s->length, s->length + 1, __ATOMIC_RELAXED);
}

/* Takes what the first wants, and takes it off the queue. */
static struct request *grant_first(struct cond_sem *s)
{
	struct request *r = s->first;
	s->permits -= r->wants;
	s->first = r->next;
	if (!s->first)
		s->end = &s->first;
	__atomic_store_n(&s->length, s->length - 1, __ATOMIC_RELAXED);
	return r;
}

static bool take_at_once(struct cond_sem *s, uint32_t permits)
{
	if (s->first || s->permits < permits)
		return false;
	s->permits -= permits;
	return true;
}

/* ---- all ---- */

static void *create(unsigned slots)
{
	struct cond_sem *s = calloc(1, sizeof *s);
	struct request *requests = aligned_alloc(128, slots * sizeof *requests);
	if (!s || !requests)
		perf_fail("no memory");
	memset(requests, 0, slots * sizeof *requests);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	for (unsigned i = 0; i < slots; i++)
		pthread_cond_init(&requests[i].cond, NULL);
	s->end = &s->first;
	s->slots = slots;
	s->requests = requests;
	return s;
}

static void destroy(void *sem)
{
	struct cond_sem *s = sem;
	for (unsigned i = 0; i < s->slots; i++)
		pthread_cond_destroy(&s->requests[i].cond);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s->requests);
	free(s);
}

static size_t waiters(void *sem)
{
	struct cond_sem *s = sem;
	return __atomic_load_n(&s->length, __ATOMIC_RELAXED);
}

static uint32_t free_permits(void *sem)
{
	struct cond_sem *s = sem;
	pthread_mutex_lock(&s->lock);
	uint32_t permits = s->permits;
	pthread_mutex_unlock(&s->lock);
	return permits;
}

/* ---- one condition ---- */

static void broadcast_acquire(void *sem, unsigned slot, uint32_t permits)
{
	struct cond_sem *s = sem;
	struct request *r = &s->requests[slot];
	bool more = false;
	pthread_mutex_lock(&s->lock);
	if (!take_at_once(s, permits)) {
		append(s, r, permits);
		while (s->first != r || s->permits < permits)
			pthread_cond_wait(&s->changed, &s->lock);
		grant_first(s);
		more = first_can_go(s);
	}
	pthread_mutex_unlock(&s->lock);
	if (more)
		pthread_cond_broadcast(&s->changed);
}

static void broadcast_release(void *sem, uint32_t permits)
{
	struct cond_sem *s = sem;
	pthread_mutex_lock(&s->lock);
	s->permits += permits;
	bool go = first_can_go(s);
	pthread_mutex_unlock(&s->lock);
	if (go)
		pthread_cond_broadcast(&s->changed);
}

const struct impl impl_cond_broadcast = {
	"cond-broadcast", create, destroy, broadcast_acquire, broadcast_release, waiters, free_permits
};

/* ---- a condition for each request ---- */

static void request_acquire(void *sem, unsigned slot, uint32_t permits)
{
	struct cond_sem *s = sem;
	struct request *r = &s->requests[slot];
	pthread_mutex_lock(&s->lock);
	if (!take_at_once(s, permits)) {
		append(s, r, permits);
		while (!r->granted)
			pthread_cond_wait(&r->cond, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Grants up to BATCH and signals them. True: more can go. A granted request may be queued again before its condition is
 * signalled, so its link is not used any more: the conditions are remembered apart. */
static bool release_batch(struct cond_sem *s, uint32_t permits)
{
	pthread_cond_t *granted[BATCH];
	unsigned count = 0;
	pthread_mutex_lock(&s->lock);
	s->permits += permits;
	while (count < BATCH && first_can_go(s)) {
		struct request *r = grant_first(s);
		r->granted = true;
		granted[count++] = &r->cond;
	}
	bool more = first_can_go(s);
	pthread_mutex_unlock(&s->lock);
	for (unsigned i = 0; i < count; i++)
		pthread_cond_signal(granted[i]);
	return more;
}

static void request_release(void *sem, uint32_t permits)
{
	while (release_batch(sem, permits))
		permits = 0;
}

static void request_locked_release(void *sem, uint32_t permits)
{
	struct cond_sem *s = sem;
	pthread_mutex_lock(&s->lock);
	s->permits += permits;
	while (first_can_go(s)) {
		struct request *r = grant_first(s);
		r->granted = true;
		pthread_cond_signal(&r->cond);
	}
	pthread_mutex_unlock(&s->lock);
}

const struct impl impl_cond_request = {
	"cond-request", create, destroy, request_acquire, request_release, waiters, free_permits
};

const struct impl impl_cond_request_locked = {
	"cond-request-locked", create, destroy, request_acquire, request_locked_release, waiters, free_permits
};
