/* SPDX-License-Identifier: MIT */
/*
 * The system calls of the cluster library: the boot clock, threads, and the descriptors on which one thread sleeps.
 *
 * A timer on CLOCK_BOOTTIME wakes its thread as soon as the machine is resumed, where a sleep on CLOCK_MONOTONIC would
 * go on for what was left of it.
 */
#include "sys.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../fault.h"

#define SECOND INT64_C(1000000000)

int64_t vez__boottime(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

int vez__process(void)
{
	return getpid();
}

void vez__signals_block(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void vez__signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

int vez__thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t others, before;
	vez__fill_but_faults(&others);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	int rc = pthread_create(thread, NULL, run, arg);
	vez__signals_restore(&before);
	return rc;
}

void vez__thread_join(pthread_t thread)
{
	pthread_join(thread, NULL);
}

int vez__bell_open(struct vez__bell *b)
{
	b->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->timer < 0)
		return errno;
	b->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->poke >= 0)
		return 0;
	int rc = errno;
	close(b->timer);
	return rc;
}

void vez__bell_close(struct vez__bell *b)
{
	close(b->timer);
	close(b->poke);
}

void vez__bell_ring(const struct vez__bell *b)
{
	int saved = errno;
	eventfd_write(b->poke, 1);
	errno = saved;
}

void vez__bell_wait(const struct vez__bell *b, int64_t until)
{
	struct itimerspec at = { .it_value = { until / SECOND, until % SECOND } };
	struct pollfd fds[2] = { { b->timer, POLLIN, 0 }, { b->poke, POLLIN, 0 } };
	eventfd_t pokes;
	if (until <= 0)
		at.it_value = (struct timespec){ 0, 1 };
	timerfd_settime(b->timer, TFD_TIMER_ABSTIME, &at, NULL);
	poll(fds, 2, -1);
	eventfd_read(b->poke, &pokes);
}

uint64_t vez__random(uint64_t bound)
{
	uint64_t r = 0;
	if (bound == 0 || getrandom(&r, sizeof r, GRND_NONBLOCK) != sizeof r)
		return 0;
	return r % bound;
}
