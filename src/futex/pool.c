/* SPDX-License-Identifier: MIT */
/*
 * A pool of places.
 *
 * Invariant: a place is either never taken, or linked from free, or somebody's. Links are only followed by an exchange
 * that succeeds if nothing was taken since the first place was read: the count in the upper half tells.
 * Ordering: giving (release) pairs with taking (acquire): what the one before wrote there. The link of the first place
 * was written before the exchange that gave it, which the load in vez__pool_take (acquire) pairs with.
 * Source: the counted pointers of IBM System/370 Principles of Operation, "Free-Pool Manipulation" (1983).
 */
#include "pool.h"

#include "atomic.h"

static uint32_t take_unused(struct vez__pool *p)
{
	uint32_t left = vez__load(&p->unused, relaxed);
	while (left > 0)
		if (vez__cas(&p->unused, &left, left - 1, relaxed))
			return left;
	return 0;
}

VEZ__HOT uint32_t vez__pool_take(struct vez__pool *p)
{
	uint64_t seen;
	uint32_t place;
	/* An exchange that fails has acquired nothing, so it is looked at anew: the link is read before the next one. */
	while ((place = (uint32_t)(seen = vez__load(&p->free, acquire))) != 0) {
		uint64_t taken = (seen >> 32) + 1;
		if (vez__cas(&p->free, &seen, taken << 32 | vez__load(&p->next[place], relaxed), acq_rel))
			return place;
	}
	return take_unused(p);
}

VEZ__HOT void vez__pool_give(struct vez__pool *p, uint32_t place)
{
	uint64_t seen = vez__load(&p->free, relaxed);
	do
		vez__store(&p->next[place], (uint32_t)seen, relaxed);
	while (!vez__cas(&p->free, &seen, (seen >> 32) << 32 | place, acq_rel));
}
