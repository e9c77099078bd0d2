/* SPDX-License-Identifier: MIT */
/* Semaphores without a queue, one permit at a time: the C library's, and a counter under a mutex. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "impl.h"
#include "perf.h"

static void *sem_create(unsigned slots)
{
	(void)slots;
	sem_t *s = malloc(sizeof *s);
	if (!s || sem_init(s, 0, 0) != 0)
		perf_fail("cannot create a semaphore");
	return s;
}

static void sem_free(void *sem)
{
	sem_destroy(sem);
	free(sem);
}

static void sem_acquire(void *sem, unsigned slot, uint32_t permits)
{
	(void)slot;
	(void)permits;
	while (sem_wait(sem) != 0)
		;
}

static void sem_release(void *sem, uint32_t permits)
{
	for (; permits > 0; permits--)
		sem_post(sem);
}

const struct impl impl_sem_t = { "sem_t", sem_create, sem_free, sem_acquire, sem_release, NULL, NULL };

struct plain {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t permits;
};

static void *plain_create(unsigned slots)
{
	(void)slots;
	struct plain *s = calloc(1, sizeof *s);
	if (!s)
		perf_fail("no memory");
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	return s;
}

static void plain_free(void *sem)
{
	struct plain *s = sem;
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void plain_acquire(void *sem, unsigned slot, uint32_t permits)
{
	struct plain *s = sem;
	(void)slot;
	(void)permits;
	pthread_mutex_lock(&s->lock);
	while (s->permits == 0)
		pthread_cond_wait(&s->changed, &s->lock);
	s->permits--;
	pthread_mutex_unlock(&s->lock);
}

static void plain_release(void *sem, uint32_t permits)
{
	struct plain *s = sem;
	for (; permits > 0; permits--) {
		pthread_mutex_lock(&s->lock);
		s->permits++;
		pthread_mutex_unlock(&s->lock);
		pthread_cond_signal(&s->changed);
	}
}

const struct impl impl_cond_plain = {
	"cond-plain", plain_create, plain_free, plain_acquire, plain_release, NULL, NULL
};
