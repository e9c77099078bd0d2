/* SPDX-License-Identifier: MIT */
/*
 * The bounded queue: items handed from side to side by whoever comes second.
 *
 * State
 *  core_.word_
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
 *     needs no rule: no reservation to take back, and nobody to serve.
 *  Q4 once CLOSED, nobody waits.
 * Ordering
 *  leaving after a put (release) pairs with entering for the take (acquire): storage, and what came
 *  before the put. Copied to a waiting taker: vez__word_publish pairs with vez__await, as for every grant.
 *  available (acquire) comes before the load of CLOSED in refused: see there.
 * Progress and fairness: each side is FIFO. Whoever makes an item or a place available while somebody waits for it
 *  hands it over in the same step, so no newcomer can come between.
 * Lifetime: as in engine/core.c: the leaving exchange is the last touch, for a put, a take and a close alike.
 * Sources: the bounded buffer of Dijkstra (1965) and of Hoare, "Monitors" (1974); hand-over by delegation:
 *  C. Martins (2009).
 */
#include "vez/queue.h"

#include <string.h>

#include "../engine/filing.h"

#define CLOSED UINT64_C(0x04)

static vez_queue_t *queue_of(const struct vez__stay *in)
{
	return (vez_queue_t *)in->core;
}

/* ---- inside ---- */

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
 * when the lock has been left. */
static vez_request_t *serve_first(struct vez__stay *in, vez_request_t *const *side)
{
	vez_request_t *r = *side;
	while (r && !vez__settle(in, r, 0))
		r = *side;
	return r;
}

/* Without a capacity: the longest waiter of this side that the newcomer can meet, settled; NULL if there is none. *rc:
 * 0; EBUSY: nobody is there to meet; ECANCELED: the newcomer's wait-for-any is won. */
static vez_request_t *meet_first(struct vez__stay *in, vez_request_t *const *side, vez_request_t *newcomer, int *rc)
{
	vez_request_t *next;
	*rc = EBUSY;
	for (vez_request_t *r = *side; r; r = next) {
		next = vez__queue_next(*side, r);
		if (vez__same_select(r, newcomer))
			continue;
		enum vez__lost lost = vez__win_both(newcomer, r);
		*rc = lost == VEZ__FIRST ? ECANCELED : EBUSY;
		if (lost == VEZ__FIRST)
			return NULL;
		if (vez__settle(in, r, lost == VEZ__SECOND ? ECANCELED : 0) && lost == VEZ__NEITHER) {
			*rc = 0;
			return r;
		}
	}
	return NULL;
}

/* 0; VEZ_ECLOSED; ECANCELED; or EBUSY: would have to wait. */
static int put(struct vez__stay *in, uint64_t seen, vez_request_t *newcomer)
{
	vez_queue_t *q = queue_of(in);
	vez_request_t *taker;
	int rc = 0;
	if (seen & CLOSED)
		return VEZ_ECLOSED;
	if (q->capacity_ == 0)
		taker = meet_first(in, &q->takers_, newcomer, &rc);
	else if (q->length_ == q->capacity_)
		return EBUSY;
	else if (vez__win(newcomer))
		taker = serve_first(in, &q->takers_);
	else
		return ECANCELED;
	if (rc != 0)
		return rc;
	memcpy(taker ? taker->with_.ptr_ : end_of(q), newcomer->with_.ptr_, q->item_size_);
	if (!taker)
		vez__store(&q->length_, q->length_ + 1, relaxed);
	return 0;
}

/* Takes the oldest item; that of the longest waiting putter goes to its place, which is the last one now. */
static void take_stored(struct vez__stay *in, void *item)
{
	vez_queue_t *q = queue_of(in);
	unsigned char *oldest = place(q, q->first_);
	memcpy(item, oldest, q->item_size_);
	if (++q->first_ == q->capacity_)
		q->first_ = 0;
	vez_request_t *putter = serve_first(in, &q->putters_);
	if (putter)
		memcpy(oldest, putter->with_.ptr_, q->item_size_);
	else
		vez__store(&q->length_, q->length_ - 1, relaxed);
}

/* 0; VEZ_ECLOSED; ECANCELED; or EBUSY: would have to wait. */
static int take(struct vez__stay *in, uint64_t seen, vez_request_t *newcomer)
{
	vez_queue_t *q = queue_of(in);
	int rc = EBUSY;
	if (q->length_ > 0) {
		if (!vez__win(newcomer))
			return ECANCELED;
		take_stored(in, newcomer->with_.ptr_);
		return 0;
	}
	vez_request_t *putter = q->capacity_ == 0 ? meet_first(in, &q->putters_, newcomer, &rc) : NULL;
	if (putter)
		memcpy(newcomer->with_.ptr_, putter->with_.ptr_, q->item_size_);
	return rc == EBUSY && (seen & CLOSED) ? VEZ_ECLOSED : rc;
}

/* ---- put and take ---- */

/* Whether the other side, or the storage, has what a put or a take needs: Q1. */
static bool place_available(const vez_queue_t *q)
{
	if (q->capacity_ == 0)
		return vez__load(&q->takers_length_, acquire) > 0;
	return vez__load(&q->length_, acquire) < q->capacity_;
}

static bool item_available(const vez_queue_t *q)
{
	if (q->capacity_ == 0)
		return vez__load(&q->putters_length_, acquire) > 0;
	return vez__load(&q->length_, acquire) > 0;
}

/* An attempt that is refused without entering. CLOSED is looked at second: if it is clear now, the queue was open when
 * nothing was available. */
static bool refused(const vez_queue_t *q, bool available)
{
	return !available && !(vez__load(&q->core_.word_, relaxed) & CLOSED);
}

/* Inside, which is left: puts or takes, as the rules say; r waits if it must and waits is true. */
static inline int operate(vez_queue_t *q, const struct vez__rules *rules, vez_request_t *r, bool waits)
{
	struct vez__stay in;
	vez__enter(&in, &q->core_);
	int rc = rules->take(&in, vez__word_of(&in), r);
	if (rc == EBUSY && waits)
		rc = vez__queue_inside(&in, rules, r);
	vez__leave(&in, NULL);
	return rc;
}

static int attempt_put(struct vez__core *c, vez_request_t *r);
static int attempt_take(struct vez__core *c, vez_request_t *r);

static const struct vez__rules putting = {
	.type = VEZ__QUEUE, .queue = offsetof(vez_queue_t, putters_), .length = offsetof(vez_queue_t, putters_length_),
	.attempt = attempt_put, .take = put,
};

static const struct vez__rules taking = {
	.type = VEZ__QUEUE, .queue = offsetof(vez_queue_t, takers_), .length = offsetof(vez_queue_t, takers_length_),
	.attempt = attempt_take, .take = take,
};

static int attempt_put(struct vez__core *c, vez_request_t *r)
{
	vez_queue_t *q = (vez_queue_t *)c;
	return refused(q, place_available(q)) ? EBUSY : operate(q, &putting, r, false);
}

static int attempt_take(struct vez__core *c, vez_request_t *r)
{
	vez_queue_t *q = (vez_queue_t *)c;
	return refused(q, item_available(q)) ? EBUSY : operate(q, &taking, r, false);
}

static inline int try(vez_queue_t *q, const struct vez__rules *rules, void *item)
{
	vez_request_t r;
	vez__request_init_local(&r, 0, NULL);
	r.with_.ptr_ = item;
	return rules->attempt(&q->core_, &r);
}

static inline int until(vez_queue_t *q, const struct vez__rules *rules, void *item, vez_deadline_t deadline,
			vez_cancel_t *cancel)
{
	vez_request_t r;
	if (vez__is_fired(cancel))
		return ECANCELED;
	if (vez__deadline_passed(deadline))
		return vez__no_time_left(try(q, rules, item));
	vez__request_init_local(&r, 0, cancel);
	r.with_.ptr_ = item;
	int rc = operate(q, rules, &r, true);
	return rc == EINPROGRESS ? vez__await(&r, deadline) : rc;
}

static int async(vez_queue_t *q, const struct vez__rules *rules, void *item, vez_request_t *r)
{
	r->with_.ptr_ = item;
	return vez__file_async(&q->core_, rules, r);
}

int vez_queue_put(vez_queue_t *q, const void *item)
{
	return until(q, &putting, (void *)item, VEZ_FOREVER, NULL);
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
	return until(q, &taking, item, VEZ_FOREVER, NULL);
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

int vez_queue_close(vez_queue_t *q)
{
	struct vez__stay in;
	vez__enter(&in, &q->core_);
	vez__fetch_or(&q->core_.word_, CLOSED, relaxed);
	vez__settle_all(&in, &q->putters_, VEZ_ECLOSED);
	vez__settle_all(&in, &q->takers_, VEZ_ECLOSED);
	vez__leave(&in, NULL);
	return 0;
}

size_t vez_queue_length(const vez_queue_t *q)
{
	return vez__load(&q->length_, relaxed);
}

size_t vez_queue_putters(const vez_queue_t *q)
{
	return vez__load(&q->putters_length_, relaxed);
}

size_t vez_queue_takers(const vez_queue_t *q)
{
	return vez__load(&q->takers_length_, relaxed);
}

size_t vez_queue_waiters(const vez_queue_t *q)
{
	return vez__load(&q->core_.length_, relaxed);
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
	return vez__destroy(&q->core_, &putting, 0);
}
