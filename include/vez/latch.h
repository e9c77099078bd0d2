/* SPDX-License-Identifier: MIT */
/*
 * vez/latch.h - latch: a count that opens a gate, once, when it reaches zero
 *
 * Threads that wait are let go together when the count has been counted down to 0; who comes later does not wait. The
 * latch never closes again: for a round that repeats, see vez/barrier.h; for a gate that closes, vez/event.h.
 *
 * Typical uses: a start signal (count 1), and waiting until N pieces of work are done (count N, counted down by whoever
 * finishes one; nobody but the waiters waits).
 *
 * Counting down never waits. Where another thread is just using the latch, that one carries out the opening before it
 * leaves. The count_down that opens it wakes those who wait up to 32 at a time by one system call: threads that began
 * to use vez one after another mostly belong together.
 *
 * Ordering: everything before a count_down happens before everything after a wait that returned 0, and before
 * everything after a vez_latch_count that read 0.
 * Destroy: a wait that returned 0 gives the right to destroy the latch and unmap it, if no other thread will call it
 * again and nobody is queued, though the count_down that opened it has not returned yet; a count that read 0 does not.
 * vez_latch_destroy waits for those who are just leaving.
 * Signal handlers: vez_latch_waiters only. fork: in the child the count is as it was; a latch on which threads of the
 * parent were waiting, or which one of them was about to leave, is to be initialized anew. Waits are no pthread
 * cancellation points.
 * Errors on entry, in this order: ECANCELED (token fired, even if the latch is open), then the latch (which lets
 * through even if the deadline has passed), then ETIMEDOUT.
 * Sources: the CountDownLatch of D. Lea's java.util.concurrent (2004); the gate latch in M. Raynal, "Concurrent
 * Programming" (2013).
 */
#ifndef VEZ_LATCH_H
#define VEZ_LATCH_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

typedef struct vez_latch {
	struct vez__core core_;
	vez_request_t *queue_;
	uint64_t reserved_;
} vez_latch_t;

VEZ_ASSERT_SIZE_(vez_latch_t, 32);

/* A latch with this count. All-zero bytes are an open one. */
#define VEZ_LATCH_INITIALIZER(count) { VEZ_CORE_INITIALIZER_((uint64_t)(count) << 32), 0, 0 }

/* Makes a latch that opens when count has been counted down; 0: it is open. Returns 0. */
int vez_latch_init(vez_latch_t *l, uint32_t count);

/* EBUSY, and nothing has changed, while requests are queued. */
int vez_latch_destroy(vez_latch_t *l);

/* Takes n off the count, which stops at 0; then it is open. Never waits. Any thread. Returns 0. */
int vez_latch_count_down(vez_latch_t *l, uint32_t n);

/* Waits until the count is 0. 0. */
int vez_latch_wait(vez_latch_t *l);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_latch_wait_until(vez_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's limits (vez/request.h): 0, EINPROGRESS, or an error. */
int vez_latch_wait_async(vez_latch_t *l, vez_request_t *r);

/* What is still to be counted down. Any thread, any time. */
uint32_t vez_latch_count(const vez_latch_t *l);

/* How many requests are queued. Any thread, any time, signal handlers included. */
size_t vez_latch_waiters(const vez_latch_t *l);

VEZ_END_DECLS_

#endif
