/* SPDX-License-Identifier: MIT */
/*
 * vez/sem.h - counting semaphore: n permits at a time, first come first served
 *
 * An acquire takes n permits at once or waits for them; a request is granted whole or not at all. Those who wait are
 * served in the order of their keys, first come first served among equals (the plain calls have key 0). A big request
 * at the head holds back smaller ones behind it, and when it leaves, by grant, deadline or token, those who can go are
 * let go at once. A newcomer does not overtake: it is served as if it queued. Uncontended, acquire and release are one
 * compare-and-swap each and no system call; a release that lets k requests go wakes those k threads, each once.
 *
 * With VEZ_BARGING, running threads take permits that are free although others wait, which saves the switch to the
 * waiting thread; the first in the queue is passed over for about 1 ms at the most, then newcomers queue. Use it where
 * permits are held for less time than a switch takes (a few microseconds); where FIFO order matters or permits are held
 * for long, the default costs nothing.
 *
 * Ordering: everything before a release happens before everything after an acquire that it lets through.
 * Destroy: a thread whose call has returned, with any result, may destroy the semaphore and unmap it, if no other
 * thread will call it again and nobody is queued. vez_sem_destroy first waits for a release that is just leaving.
 * Signal handlers: vez_sem_release, vez_sem_permits and vez_sem_waiters may be called there, whatever they interrupt.
 * fork: in the child the permits stand as they were; a semaphore on which threads of the parent were waiting, or which
 * one of them was about to leave, is to be initialized anew. Waits are no pthread cancellation points.
 * Errors on entry, in this order: EINVAL, ECANCELED (token fired, nothing taken), VEZ_ECLOSED, then the permits
 * (which are taken even if the deadline has passed), then ETIMEDOUT.
 * Sources: Dijkstra (1965); the n-permit FIFO semaphore with execution delegation: C. Martins (2009).
 */
#ifndef VEZ_SEM_H
#define VEZ_SEM_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

/* The largest maximum. */
#define VEZ_SEM_MAX UINT32_C(0x7fffffff)

typedef struct vez_sem {
	struct vez__core core_;
	vez_request_t *queue_;
	uint32_t below_max_;
	uint32_t reserved_;
} vez_sem_t;

VEZ_ASSERT_SIZE_(vez_sem_t, 32);

/* A FIFO semaphore with this many permits (at most VEZ_SEM_MAX) and the largest maximum. All-zero bytes are one
 * with none. */
#define VEZ_SEM_INITIALIZER(permits) { VEZ_CORE_INITIALIZER_((uint64_t)(permits) << 32), 0, 0, 0 }

/* Makes a semaphore with permits free out of at most max (0: VEZ_SEM_MAX). flags: 0, or VEZ_BARGING.
 * EINVAL: permits > max, max > VEZ_SEM_MAX, unknown flags. */
int vez_sem_init(vez_sem_t *s, uint32_t permits, uint32_t max, unsigned flags);

/* EBUSY, and nothing has changed, while requests are queued. */
int vez_sem_destroy(vez_sem_t *s);

/* Takes n permits, waiting as long as it takes. 0; EINVAL if n is more than the maximum; VEZ_ECLOSED. n = 0 takes
 * nothing and does not wait. */
int vez_sem_acquire(vez_sem_t *s, uint32_t n);

/* Takes n permits if that is possible without waiting: 0; else EBUSY, and nothing has changed. EINVAL, VEZ_ECLOSED as
 * vez_sem_acquire. Honours the queue. Makes no system call, but where keys or barging decide, and another call is
 * inside at that moment: then it waits until that has left. */
int vez_sem_try_acquire(vez_sem_t *s, uint32_t n);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_sem_acquire_until(vez_sem_t *s, uint32_t n, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same, queueing by key: smallest first. */
int vez_sem_acquire_key(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's key and limits (vez/request.h): 0, EINPROGRESS, or an error. */
int vez_sem_acquire_async(vez_sem_t *s, uint32_t n, vez_request_t *r);

/* Gives n permits back, or adds them; any thread, signal handlers included; never waits. EOVERFLOW, and nothing has
 * changed, if more than the maximum would be free; what waiting requests take at once does not count (of that, no more
 * than 8,388,607 permits while another call is inside at the same moment). */
int vez_sem_release(vez_sem_t *s, uint32_t n);

/* The permits that nobody holds. Where requests wait, that is what does not suffice for the first of them. */
uint32_t vez_sem_permits(const vez_sem_t *s);

/* Takes all permits that nobody holds, without waiting for more, and says how many. */
uint32_t vez_sem_drain(vez_sem_t *s);

/* All who wait, and all later acquires, get VEZ_ECLOSED; permits granted before stand, release and drain go on
 * counting. Closing again: 0. */
int vez_sem_close(vez_sem_t *s);

/* How many requests are queued. Any thread, any time, signal handlers included. */
size_t vez_sem_waiters(const vez_sem_t *s);

VEZ_END_DECLS_

#endif
