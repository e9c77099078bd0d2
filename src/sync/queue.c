/* SPDX-License-Identifier: MIT */
/*
 * The bounded queue: items handed from side to side by whoever comes second.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       CLOSED               set inside by close, never cleared
 *  putters_    puts that wait; a request's pointer is its item
 *  takers_     takes that wait; a request's pointer is where its item goes
 *  storage_    a ring of capacity_ places of item_size_ bytes; constant
 *  first_      the place of the oldest item; inside
 *  length_     how many items are stored; written inside, once for each call that changes it; read anywhere
 * Invariants, whenever nobody is inside
 *  Q1 a putter waits only if length_ = capacity_, and a taker only if length_ = 0 and no putter waits. So with a
 *     capacity an item can be had exactly if length_ > 0, and a place exactly if length_ < capacity_; without, an item
 *     can be had exactly if a putter waits, and a place if a taker does. Each of these is one number, written in one
 *     step: a try_ that reads it decides without entering.
 *  Q2 every item that a put was told of (0) was copied to a place or to one taker, by the one who settled that put; the
 *     item of any other put was copied to nobody. So what goes in comes out once.
 *  Q3 no waiter can go because another one leaves: what holds it is the length, not who is before it. So a give-up
 *     needs no rule: no claim to take back, and nobody to serve.
 *  Q4 once CLOSED, nobody waits.
 * Ordering
 *  vez__monitor_leave of a put (release) pairs with vez_monitor_enter of the take (acquire): storage, and what came
 *  before the put. Copied to a waiting taker: vez__word_publish pairs with vez__request_await, as for every grant.
 *  available (acquire) comes before the load of CLOSED in refused: see there.
 * Progress and fairness: each side is FIFO. Whoever makes an item or a place available while somebody waits for it
 *  hands it over in the same step, so no newcomer can come between.
 * Lifetime: as in monitor.c: the leaving exchange is the last touch, for a put, a take and a close alike.
 * Sources: the bounded buffer of Dijkstra (1965) and of Hoare, "Monitors" (1974); hand-over by delegation: C. Martins
 * (2009).
 */
#include "vez/queue.h"

#include <errno.h>
#include <string.h>

#include "engine.h"

#define CLOSED UINT64_C(0x04)

/* ---- inside ---- */

static bool is_closed(const vez_queue_t *q)
{
	return vez__load(&q->monitor_.word_, relaxed) & CLOSED;
}

static unsigned char *place(const vez_queue_t *q, size_t index)
{
	return q->storage_ + index * q->item_size_;
}

/* The place after the newest item. */
static unsigned char *end_of(const vez_queue_t *q)
{
	size_t behind = q->capacity_ - q->first_;
	return place(q, q->length_ < behind ? q->first_ + q->length_ : q->length_ - behind);
}

/* The longest waiter of this side, settled; NULL if nobody waits. Its item is copied after that: its thread reads it
 * when the monitor has been left. */
static vez_request_t *serve_first(vez_queue_t *q, vez_room_t *side)
{
	vez_request_t *r;
	while ((r = vez_room_first(side)))
		if (vez_monitor_settle(&q->monitor_, r, 0))
			return r;
	return NULL;
}

/* 0, VEZ_ECLOSED, or EBUSY: would have to wait. */
static int put_inside(vez_queue_t *q, const void *item)
{
	if (is_closed(q))
		return VEZ_ECLOSED;
	vez_request_t *taker = serve_first(q, &q->takers_);
	if (taker) {
		memcpy(taker->ptr_, item, q->item_size_);
		return 0;
	}
	if (q->length_ == q->capacity_)
		return EBUSY;
	memcpy(end_of(q), item, q->item_size_);
	vez__store(&q->length_, q->length_ + 1, relaxed);
	return 0;
}

/* Takes the oldest item; that of the longest waiting putter goes to its place, which is the last one now. */
static void take_stored(vez_queue_t *q, void *item)
{
	unsigned char *oldest = place(q, q->first_);
	memcpy(item, oldest, q->item_size_);
	if (++q->first_ == q->capacity_)
		q->first_ = 0;
	vez_request_t *putter = serve_first(q, &q->putters_);
	if (putter)
		memcpy(oldest, putter->ptr_, q->item_size_);
	else
		vez__store(&q->length_, q->length_ - 1, relaxed);
}

/* 0, VEZ_ECLOSED, or EBUSY: would have to wait. */
static int take_inside(vez_queue_t *q, void *item)
{
	if (q->length_ > 0) {
		take_stored(q, item);
		return 0;
	}
	vez_request_t *putter = serve_first(q, &q->putters_);
	if (putter) {
		memcpy(item, putter->ptr_, q->item_size_);
		return 0;
	}
	return is_closed(q) ? VEZ_ECLOSED : EBUSY;
}

/* Inside: waits on this side, and leaves. */
static VEZ__COLD int wait_for(vez_queue_t *q, vez_room_t *side, void *item, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	r.key_ = 0;
	r.ptr_ = item;
	bool live = vez__request_prepare(&q->monitor_, side, &r, NULL, cancel);
	if (live)
		vez__request_insert(&r);
	vez__monitor_leave(&q->monitor_, NULL);
	return live ? vez__request_await(&r, deadline) : ECANCELED;
}

/* ---- put and take ---- */

/* Whether the other side, or the storage, has what a put or a take needs: Q1. */
static bool place_available(const vez_queue_t *q)
{
	if (q->capacity_ == 0)
		return vez__load(&q->takers_.length_, acquire) > 0;
	return vez__load(&q->length_, acquire) < q->capacity_;
}

static bool item_available(const vez_queue_t *q)
{
	if (q->capacity_ == 0)
		return vez__load(&q->putters_.length_, acquire) > 0;
	return vez__load(&q->length_, acquire) > 0;
}

/* An attempt that is refused without entering. CLOSED is looked at second: if it is clear now, the queue was open when
 * nothing was available. */
static bool refused(const vez_queue_t *q, bool available)
{
	return !available && !(vez__load(&q->monitor_.word_, relaxed) & CLOSED);
}

int vez_queue_try_put(vez_queue_t *q, const void *item)
{
	if (refused(q, place_available(q)))
		return EBUSY;
	vez_monitor_enter(&q->monitor_);
	int rc = put_inside(q, item);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

int vez_queue_try_take(vez_queue_t *q, void *item)
{
	if (refused(q, item_available(q)))
		return EBUSY;
	vez_monitor_enter(&q->monitor_);
	int rc = take_inside(q, item);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

int vez_queue_put(vez_queue_t *q, const void *item)
{
	vez_monitor_enter(&q->monitor_);
	int rc = put_inside(q, item);
	if (rc == EBUSY)
		return wait_for(q, &q->putters_, (void *)item, VEZ_FOREVER, NULL);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

int vez_queue_take(vez_queue_t *q, void *item)
{
	vez_monitor_enter(&q->monitor_);
	int rc = take_inside(q, item);
	if (rc == EBUSY)
		return wait_for(q, &q->takers_, item, VEZ_FOREVER, NULL);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

static int no_time_left(int rc)
{
	return rc == EBUSY ? ETIMEDOUT : rc;
}

int vez_queue_put_until(vez_queue_t *q, const void *item, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (vez__deadline_passed(deadline))
		return no_time_left(vez_queue_try_put(q, item));
	vez_monitor_enter(&q->monitor_);
	int rc = put_inside(q, item);
	if (rc == EBUSY)
		return wait_for(q, &q->putters_, (void *)item, deadline, cancel);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

int vez_queue_take_until(vez_queue_t *q, void *item, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (vez__deadline_passed(deadline))
		return no_time_left(vez_queue_try_take(q, item));
	vez_monitor_enter(&q->monitor_);
	int rc = take_inside(q, item);
	if (rc == EBUSY)
		return wait_for(q, &q->takers_, item, deadline, cancel);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

/* ---- the rest ---- */

static void settle_all(vez_queue_t *q, vez_room_t *side, int result)
{
	for (vez_request_t *r; (r = vez_room_first(side));)
		vez_monitor_settle(&q->monitor_, r, result);
}

int vez_queue_close(vez_queue_t *q)
{
	vez_monitor_enter(&q->monitor_);
	vez__fetch_or(&q->monitor_.word_, CLOSED, relaxed);
	settle_all(q, &q->putters_, VEZ_ECLOSED);
	settle_all(q, &q->takers_, VEZ_ECLOSED);
	vez__monitor_leave(&q->monitor_, NULL);
	return 0;
}

size_t vez_queue_length(const vez_queue_t *q)
{
	return (size_t)vez__load(&q->length_, relaxed);
}

size_t vez_queue_putters(const vez_queue_t *q)
{
	return vez_room_length(&q->putters_);
}

size_t vez_queue_takers(const vez_queue_t *q)
{
	return vez_room_length(&q->takers_);
}

size_t vez_queue_waiters(const vez_queue_t *q)
{
	return vez_queue_putters(q) + vez_queue_takers(q);
}

int vez_queue_init(vez_queue_t *q, void *storage, size_t item_size, size_t capacity)
{
	size_t bytes;
	if (item_size == 0 || (capacity > 0 && !storage) || __builtin_mul_overflow(item_size, capacity, &bytes))
		return EINVAL;
	memset(q, 0, sizeof *q);
	q->storage_ = storage;
	q->item_size_ = item_size;
	q->capacity_ = capacity;
	return 0;
}

int vez_queue_destroy(vez_queue_t *q)
{
	vez_monitor_enter(&q->monitor_);
	return vez__monitor_retire(&q->monitor_, NULL, false);
}
