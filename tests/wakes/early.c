/* SPDX-License-Identifier: MIT */
/*
 * What a counted program may do that could hurt who counts: it calls before any constructor has run; its allocator has
 * a mutex; a thread is cancelled in its wait; a handler that comes at any time signals; errno is kept.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>

#include "herd.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, heap = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, nobody = PTHREAD_COND_INITIALIZER;
static bool waits, cleaned, early;

/* ---- an allocator that never frees ---- */

static _Alignas(16) unsigned char memory[1 << 22];
static size_t used;

void *malloc(size_t size)
{
	pthread_mutex_lock(&heap);
	void *p = used + size + 32 < sizeof memory ? memory + used + 16 : NULL;
	if (p) {
		memcpy(memory + used, &size, sizeof size);
		used += (size + 31) & ~(size_t)15;
	}
	pthread_mutex_unlock(&heap);
	return p;
}

void free(void *p)
{
	(void)p;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size); /* it is zero */
}

void *realloc(void *old, size_t size)
{
	size_t before = 0;
	void *p = malloc(size);
	if (old)
		memcpy(&before, (unsigned char *)old - 16, sizeof before);
	if (p && old)
		memcpy(p, old, before < size ? before : size);
	return p;
}

/* ---- before everything ---- */

static void before_all(void)
{
	static const struct timespec past = { 1, 0 };
	pthread_mutex_lock(&mutex);
	early = pthread_cond_timedwait(&cond, &mutex, &past) == ETIMEDOUT;
	pthread_mutex_unlock(&mutex);
}

static void (*const first)(void) __attribute__((used, section(".preinit_array"))) = before_all;

/* ---- cancelled ---- */

static void clean(void *arg)
{
	(void)arg;
	cleaned = pthread_mutex_trylock(&mutex) == EBUSY;
	pthread_mutex_unlock(&mutex);
}

static void *victim(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(clean, arg);
	waits = true;
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(0);
	return NULL;
}

static bool cancelled(void)
{
	pthread_t thread;
	void *result;
	if (pthread_create(&thread, NULL, victim, NULL) != 0)
		return false;
	for (bool ready = false; !ready; sched_yield()) {
		pthread_mutex_lock(&mutex);
		ready = waits;
		pthread_mutex_unlock(&mutex);
	}
	pthread_cancel(thread);
	return pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && cleaned;
}

/* ---- interrupted ---- */

static void handler(int signal)
{
	(void)signal;
	pthread_cond_signal(&nobody);
}

static bool interrupted(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	int rc = herd_run(4, 200);
	setitimer(ITIMER_REAL, &never, NULL);
	return rc == 0;
}

static bool keeps_errno(void)
{
	errno = 1234;
	pthread_cond_broadcast(&nobody);
	return errno == 1234;
}

int main(void)
{
	return !early ? 2 : !keeps_errno() ? 3 : !cancelled() ? 4 : !interrupted() ? 5 : 0;
}
