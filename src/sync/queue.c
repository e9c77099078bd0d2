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
 *  vez__monitor_leave of a put (release) pairs with vez__monitor_enter of the take (acquire): storage, and what came
 *  before the put. Copied to a waiting taker: vez__word_publish pairs with vez__request_await, as for every grant.
 *  available (acquire) comes before the load of CLOSED in refused: see there.
 * Progress and fairness: each side is FIFO. Whoever makes an item or a place available while somebody waits for it
 *  hands it over in the same step, so no newcomer can come between.
 * Lifetime: as in monitor.c: the leaving exchange is the last touch, for a put, a take and a close alike.
 * Sources: the bounded buffer of Dijkstra (1965) and of Hoare, "Monitors" (1974); hand-over by delegation:
 *  C. Martins (2009).
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

/* The longest waiter of this side, settled; NULL if nobody waits. Its item is copied after that: its owner reads it
 * when the monitor has been left. */
static vez_request_t *serve_first(vez_queue_t *q, vez_room_t *side)
{
	vez_request_t *r = vez_room_first(side);
	while (r && !vez_monitor_settle(&q->monitor_, r, 0))
		r = vez_room_first(side);
	return r;
}

/* Without a capacity: the longest waiter of this side that the newcomer can meet, settled; NULL if there is none. *rc:
 * 0; EBUSY: nobody is there to meet; ECANCELED: the newcomer's wait-for-any is won. */
static vez_request_t *meet_first(vez_queue_t *q, vez_room_t *side, vez_request_t *newcomer, int *rc)
{
	vez_request_t *next;
	*rc = EBUSY;
	for (vez_request_t *r = vez_room_first(side); r; r = next) {
		next = vez_room_next(side, r);
		if (vez__select_same(r, newcomer))
			continue;
		enum vez__lost lost = vez__request_claim_both(newcomer, r);
		*rc = lost == VEZ__FIRST ? ECANCELED : EBUSY;
		if (lost == VEZ__FIRST)
			return NULL;
		if (vez_monitor_settle(&q->monitor_, r, lost == VEZ__SECOND ? ECANCELED : 0) && lost == VEZ__NEITHER) {
			*rc = 0;
			return r;
		}
	}
	return NULL;
}

/* 0; VEZ_ECLOSED; ECANCELED; or EBUSY: would have to wait. */
static int put_inside(vez_queue_t *q, void *item, vez_request_t *newcomer)
{
	vez_request_t *taker;
	int rc = 0;
	if (is_closed(q))
		return VEZ_ECLOSED;
	if (q->capacity_ == 0)
		taker = meet_first(q, &q->takers_, newcomer, &rc);
	else if (q->length_ == q->capacity_)
		return EBUSY;
	else if (vez__request_claim(newcomer))
		taker = serve_first(q, &q->takers_);
	else
		return ECANCELED;
	if (rc != 0)
		return rc;
	memcpy(taker ? taker->ptr_ : end_of(q), item, q->item_size_);
	if (!taker)
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

/* 0; VEZ_ECLOSED; ECANCELED; or EBUSY: would have to wait. */
static int take_inside(vez_queue_t *q, void *item, vez_request_t *newcomer)
{
	int rc = EBUSY;
	if (q->length_ > 0) {
		if (!vez__request_claim(newcomer))
			return ECANCELED;
		take_stored(q, item);
		return 0;
	}
	vez_request_t *putter = q->capacity_ == 0 ? meet_first(q, &q->putters_, newcomer, &rc) : NULL;
	if (putter)
		memcpy(item, putter->ptr_, q->item_size_);
	return rc == EBUSY && is_closed(q) ? VEZ_ECLOSED : rc;
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

/* One side. */
struct side {
	int (*operate)(vez_queue_t *q, void *item, vez_request_t *newcomer);
	bool (*available)(const vez_queue_t *q);
	size_t room;
};

static const struct side putting = { put_inside, place_available, offsetof(vez_queue_t, putters_) };
static const struct vez__ops queue_ops = { .type = VEZ__QUEUE };
static const struct side taking = { take_inside, item_available, offsetof(vez_queue_t, takers_) };

/* Inside, which is left: r waits on its side. EINPROGRESS: it is queued; or what it came to. */
static VEZ__COLD int file(vez_queue_t *q, const struct side *side, void *item, vez_request_t *r)
{
	vez_room_t *room = (vez_room_t *)((char *)q + side->room);
	r->ptr_ = item;
	int rc = ECANCELED;
	if (vez__request_prepare(&q->monitor_, room, r, &queue_ops)) {
		vez__request_insert(r);
		rc = vez__request_filed(&q->monitor_, r);
	}
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

/* Puts or takes, or files r if it would have to wait. */
static inline int operate(vez_queue_t *q, const struct side *side, void *item, vez_request_t *r)
{
	vez__monitor_enter(&q->monitor_);
	int rc = side->operate(q, item, r);
	if (rc == EBUSY)
		return file(q, side, item, r);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

static inline int operate_until(vez_queue_t *q, const struct side *side, void *item, vez_deadline_t deadline,
				vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, 0, cancel);
	int rc = operate(q, side, item, &r);
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

static inline int attempt(vez_queue_t *q, const struct side *side, void *item, vez_request_t *r)
{
	if (refused(q, side->available(q)))
		return EBUSY;
	vez__monitor_enter(&q->monitor_);
	int rc = side->operate(q, item, r);
	vez__monitor_leave(&q->monitor_, NULL);
	return rc;
}

static inline int try(vez_queue_t *q, const struct side *side, void *item)
{
	vez_request_t r;
	vez__request_mine(&r, 0, NULL);
	return attempt(q, side, item, &r);
}

static inline int until(vez_queue_t *q, const struct side *side, void *item, vez_deadline_t deadline,
			vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (vez__deadline_passed(deadline))
		return vez__no_time_left(try(q, side, item));
	return operate_until(q, side, item, deadline, cancel);
}

static int async(vez_queue_t *q, const struct side *side, void *item, vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (rc == 0)
		rc = vez__async_waits(r) ? operate(q, side, item, r) : vez__no_time_left(attempt(q, side, item, r));
	return vez__async_end(r, rc);
}

int vez_queue_put(vez_queue_t *q, const void *item)
{
	return operate_until(q, &putting, (void *)item, VEZ_FOREVER, NULL);
}

int vez_queue_try_put(vez_queue_t *q, const void *item)
{
	return try(q, &putting, (void *)item);
}

int vez_queue_put_until(vez_queue_t *q, const void *item, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return until(q, &putting, (void *)item, deadline, cancel);
}

int vez_queue_put_async(vez_queue_t *q, const void *item, vez_request_t *r)
{
	return async(q, &putting, (void *)item, r);
}

int vez_queue_take(vez_queue_t *q, void *item)
{
	return operate_until(q, &taking, item, VEZ_FOREVER, NULL);
}

int vez_queue_try_take(vez_queue_t *q, void *item)
{
	return try(q, &taking, item);
}

int vez_queue_take_until(vez_queue_t *q, void *item, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return until(q, &taking, item, deadline, cancel);
}

int vez_queue_take_async(vez_queue_t *q, void *item, vez_request_t *r)
{
	return async(q, &taking, item, r);
}

/* ---- the rest ---- */

static void settle_all(vez_queue_t *q, vez_room_t *side, int result)
{
	for (vez_request_t *r; (r = vez_room_first(side));)
		vez_monitor_settle(&q->monitor_, r, result);
}

int vez_queue_close(vez_queue_t *q)
{
	vez__monitor_enter(&q->monitor_);
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
	vez__monitor_enter(&q->monitor_);
	return vez__monitor_retire(&q->monitor_, NULL, false);
}
