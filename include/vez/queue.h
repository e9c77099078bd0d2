/* SPDX-License-Identifier: MIT */
/*
 * vez/queue.h - bounded FIFO queue of fixed-size items; with capacity 0 a rendezvous
 *
 * A put hands its item straight to the taker that has waited longest, or stores it, or waits for a place. A take takes
 * the oldest item and moves the item of the putter that has waited longest into the place that becomes free. So a
 * thread that waited returns with its part done, and nobody else can take it away from it. Items come out in the order
 * in which they went in; each side is served in order of arrival, and newcomers queue behind those who wait.
 *
 * Each item is copied once on the way in and once on the way out; once altogether, where a put meets a waiting taker,
 * or where the capacity is 0. Copying happens inside the queue's monitor: for big items, queue pointers.
 *
 * Ordering: everything before a put happens before everything after the take that gets its item; and everything before
 * a take happens before everything after a put that it makes room for.
 * Destroy: a thread whose call has returned, with any result, may destroy the queue and unmap it, if no other thread
 * will call it again and nobody is queued. vez_queue_destroy first waits for a call that is just leaving.
 * Signal handlers: vez_queue_length, vez_queue_waiters, vez_queue_putters and vez_queue_takers only.
 * fork: in the child a queue that no other thread was inside or waiting on holds the items it held; any other is to be
 * initialized anew. Waits are no pthread cancellation points.
 * Errors on entry, in this order: ECANCELED (token fired; nothing is put or taken), VEZ_ECLOSED, then the item or the
 * place (which is taken even if the deadline has passed), then ETIMEDOUT. A call that fails has put and taken nothing.
 * Sources: the bounded buffer of Dijkstra (1965) and Hoare (1974); the rendezvous of Hoare, "Communicating Sequential
 * Processes" (1978); execution delegation: C. Martins (2009).
 */
#ifndef VEZ_QUEUE_H
#define VEZ_QUEUE_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

typedef struct vez_queue {
	struct vez__core core_;
	vez_request_t *putters_;
	vez_request_t *takers_;
	uint32_t putters_length_;
	uint32_t takers_length_;
	unsigned char *storage_;
	size_t item_size_;
	size_t capacity_;
	size_t first_;
	size_t length_;
} vez_queue_t;

VEZ_ASSERT_SIZE_(vez_queue_t, 80);

/* Makes an empty queue of at most capacity items of item_size bytes each. storage has room for all of them, needs no
 * alignment, and belongs to the queue until it is destroyed; with capacity 0 it is not looked at.
 * EINVAL: item_size 0, storage NULL where the capacity is not 0, capacity * item_size beyond SIZE_MAX. */
int vez_queue_init(vez_queue_t *q, void *storage, size_t item_size, size_t capacity);

/* EBUSY, and nothing has changed, while requests are queued. Items that are left are dropped. */
int vez_queue_destroy(vez_queue_t *q);

/* Puts a copy of the item, waiting for a place (capacity 0: for a taker) as long as it takes. 0, or VEZ_ECLOSED. The
 * item must stay as it is until the call returns. */
int vez_queue_put(vez_queue_t *q, const void *item);

/* Puts it if that is possible without waiting: 0; else EBUSY, and nothing has changed. VEZ_ECLOSED as vez_queue_put.
 * Honours the queue. */
int vez_queue_try_put(vez_queue_t *q, const void *item);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. The item of a
 * put that ends in an error never appears. */
int vez_queue_put_until(vez_queue_t *q, const void *item, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's limits (vez/request.h). item must stay valid until it completes: 0,
 * EINPROGRESS, or an error. */
int vez_queue_put_async(vez_queue_t *q, const void *item, vez_request_t *r);

/* Takes the oldest item, waiting for one as long as it takes: 0, and it is in *item, which is otherwise untouched.
 * VEZ_ECLOSED: the queue is closed and nothing is left in it. */
int vez_queue_take(vez_queue_t *q, void *item);

/* Takes one if that is possible without waiting (capacity 0: if a putter waits): 0; else EBUSY, and nothing has
 * changed. VEZ_ECLOSED as vez_queue_take. Honours the queue. */
int vez_queue_try_take(vez_queue_t *q, void *item);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_queue_take_until(vez_queue_t *q, void *item, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_queue_take_async(vez_queue_t *q, void *item, vez_request_t *r);

/* Ends it: putters that wait, and all later puts, get VEZ_ECLOSED; takes go on until the queue is empty and then get
 * VEZ_ECLOSED, those that wait at once. Any thread. Closing again: 0. */
int vez_queue_close(vez_queue_t *q);

/* How many items are stored. Any thread, any time. Those of waiting putters are not counted. */
size_t vez_queue_length(const vez_queue_t *q);

/* How many requests are queued: of both sides, of putters, of takers. Any thread, any time. */
size_t vez_queue_waiters(const vez_queue_t *q);
size_t vez_queue_putters(const vez_queue_t *q);
size_t vez_queue_takers(const vez_queue_t *q);

VEZ_END_DECLS_

#endif
