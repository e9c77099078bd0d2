/* SPDX-License-Identifier: MIT */
/*
 * The latch: lets all go when a count has reached 0.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock   futex/lock.h
 *	bit 2       AWAITED    requests may be queued. Set inside by one that joins, cleared inside when the last one
 *	                       gives up; means nothing once the latch is open
 *	bits 32-63  count      only falls. Anybody
 * Invariants
 *  H1 the exchange that takes the count to 0 opens the latch, for good. If it finds AWAITED and nobody inside it enters
 *     with that same exchange; else the one inside sees the 0 in the word that its leaving exchange expects.
 *  H2 while nobody is inside, an open latch has nobody queued.
 * Ordering
 *  every exchange that counts down releases, and pairs with is_open and vez_latch_count (acquire): what came before
 *  every count_down (core.c). For those who are queued:
 *  the opening exchange, or the leaving one of the thread inside (acq_rel), then the publication (word.c).
 * Progress and fairness
 *  count_down is lock-free and waits for nobody. All waiters are released by one leaver, who wakes neighbours
 *  (futex/slot.h) together.
 * Lifetime: core.c C5. The last touch of a count_down is its exchange, or the leaving one.
 * Sources: D. Lea, java.util.concurrent (2004).
 */
#include "vez/latch.h"

#include <string.h>

#include "../engine/filing.h"

#define AWAITED UINT64_C(4)

static uint64_t count_in(uint64_t word)
{
	return word >> 32;
}

static vez_latch_t *latch_of(const struct vez__stay *in)
{
	return (vez_latch_t *)in->core;
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	if (count_in(seen) > 0 || !latch_of(in)->queue_)
		return false;
	vez__settle_all(in, &latch_of(in)->queue_, 0);
	return true;
}

static inline bool is_open(const struct vez__core *c, uint64_t barring)
{
	uint64_t seen = vez__load(&c->word_, acquire);
	return count_in(seen) == 0 && !(seen & barring);
}

/* What is open stays open: nothing is taken from anybody. */

static bool fast(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return is_open(c, VEZ__LOCKED);
}

static int attempt(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return is_open(c, 0) ? 0 : EBUSY;
}

static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	(void)seen;
	return attempt(in->core, r);
}

static const struct vez__rules latch_rules = {
	.type = VEZ__LATCH, .queue = offsetof(vez_latch_t, queue_), .sleeps = VEZ__TOGETHER,
	.waiting = AWAITED, .fast = fast, .attempt = attempt, .take = take, .serve = serve,
};

static VEZ__SLOW int wait_slow(vez_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez__wait(&l->core_, &latch_rules, &(vez_request_t){ .cancel_ = cancel }, deadline);
}

int vez_latch_wait(vez_latch_t *l)
{
	return VEZ__LIKELY(is_open(&l->core_, VEZ__LOCKED)) ? 0 : wait_slow(l, VEZ_FOREVER, NULL);
}

int vez_latch_wait_until(vez_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	return !fired && VEZ__LIKELY(is_open(&l->core_, VEZ__LOCKED)) ? 0 : wait_slow(l, deadline, cancel);
}

int vez_latch_wait_async(vez_latch_t *l, vez_request_t *r)
{
	return vez__file_async(&l->core_, &latch_rules, r);
}

static VEZ__INLINE int count_down(vez_latch_t *l, uint32_t n, bool told)
{
	uint64_t seen = vez__load(&l->core_.word_, relaxed);
	uint64_t taken, enters;
	do {
		uint64_t count = count_in(seen);
		if (count == 0)
			return 0;
		taken = n < count ? n : count;
		enters = taken == count && (seen & AWAITED) && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
	} while (!vez__cas_if(told, &l->core_.word_, &seen, (seen | enters) - (taken << 32), acq_rel));
	if (enters)
		vez__leave_entered(&l->core_, &latch_rules);
	return 0;
}

static VEZ__COLD int count_down_told(vez_latch_t *l, uint32_t n)
{
	return count_down(l, n, true);
}

int vez_latch_count_down(vez_latch_t *l, uint32_t n)
{
	return vez__checked() ? count_down_told(l, n) : count_down(l, n, false);
}

uint32_t vez_latch_count(const vez_latch_t *l)
{
	return (uint32_t)count_in(vez__load(&l->core_.word_, acquire));
}

size_t vez_latch_waiters(const vez_latch_t *l)
{
	return count_in(vez__load(&l->core_.word_, acquire)) ? vez__load(&l->core_.length_, relaxed) : 0;
}

int vez_latch_init(vez_latch_t *l, uint32_t count)
{
	memset(l, 0, sizeof *l);
	l->core_.word_ = (uint64_t)count << 32;
	return 0;
}

int vez_latch_destroy(vez_latch_t *l)
{
	return vez__destroy(&l->core_, &latch_rules, 0);
}
