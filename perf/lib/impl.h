/* SPDX-License-Identifier: MIT */
/* One interface to every semaphore that is compared. */
#ifndef IMPL_H
#define IMPL_H

#include <stddef.h>
#include <stdint.h>

struct impl {
	const char *name;
	/* Without permits, for callers with slots 0 .. slots - 1. */
	void *(*create)(unsigned slots);
	void (*destroy)(void *sem);
	/* slot: who calls. What an implementation keeps for each waiter it keeps there. */
	void (*acquire)(void *sem, unsigned slot, uint32_t permits);
	void (*release)(void *sem, uint32_t permits);
	/* How many wait, and how many permits are free. NULL where the implementation cannot tell. */
	size_t (*waiters)(void *sem);
	uint32_t (*permits)(void *sem);
};

/* vez_sem_t: FIFO. */
extern const struct impl impl_vez;
/* One mutex, one condition, a FIFO queue, broadcast when the first can go. */
extern const struct impl impl_cond_broadcast;
/* A condition for each request; who releases grants, and signals after unlocking: the best that pthreads allow. */
extern const struct impl impl_cond_request;
/* The same, signalled with the mutex held: how it is usually written. */
extern const struct impl impl_cond_request_locked;
/* A futex word for each waiter, and nothing else: the limit. One permit at a time, in turn. */
extern const struct impl impl_raw;
/* The C library's semaphore: no queue, one permit at a time. */
extern const struct impl impl_sem_t;
/* One mutex, one condition, a counter; signal: no queue, one permit at a time. */
extern const struct impl impl_cond_plain;

/* The one with this name out of a list that ends with NULL; ends the program if there is none. */
const struct impl *impl_named(const struct impl *const *list, const char *name);

#endif
