/* SPDX-License-Identifier: MIT */
/*
 * quiet HOW: a thread is woken 50 times, and each time waits again on the same pair; but never in vain:
 *  unlock  it unlocked in between
 *  signal  it signalled in between
 *  work    it worked for 200 microseconds in between, under the mutex
 *  other   it waits for another condition in between
 * or  vain    in vain, as the others would be if nothing were in between
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define TIMES 50

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, nobody = PTHREAD_COND_INITIALIZER;
static int waiting;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void between(const char *how)
{
	static const struct timespec past = { 1, 0 };
	uint64_t until = now() + 200000;
	if (!strcmp(how, "unlock")) {
		pthread_mutex_unlock(&mutex);
		pthread_mutex_lock(&mutex);
	} else if (!strcmp(how, "signal")) {
		pthread_cond_signal(&nobody);
	} else if (!strcmp(how, "work")) {
		while (now() < until)
			;
	} else if (!strcmp(how, "other")) {
		pthread_cond_timedwait(&nobody, &mutex, &past);
	}
}

static void *waiter(void *how)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < TIMES; i++) {
		waiting = 1;
		while (waiting)
			pthread_cond_wait(&cond, &mutex);
		between(how);
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc < 2 || pthread_create(&thread, NULL, waiter, argv[1]) != 0)
		return 1;
	for (int i = 0; i < TIMES; i++) {
		pthread_mutex_lock(&mutex);
		while (!waiting) {
			pthread_mutex_unlock(&mutex);
			sched_yield();
			pthread_mutex_lock(&mutex);
		}
		waiting = 0;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return pthread_join(thread, NULL);
}
