/* SPDX-License-Identifier: MIT */
/*
 * Slots.
 *
 * State: the turns. Nothing is taken or given back, and nothing is to be made anew after fork.
 * Invariants
 *  L1 a turn never goes back: a thread that was going to sleep on an old one does not sleep.
 *  L2 on a word of own slots each bit is one thread's. So a wake for as many as have these bits reaches those, and the
 *     kernel need not look for more. On the other words it wakes all that it finds.
 * Ordering: moving on (release) pairs with the load of the turn before a thread sleeps (word.c: U3). Race checkers are
 *  told of neither: what a thread has to see was ordered by its own word, and its neighbours are strangers to it. A
 *  library that is built for ThreadSanitizer shows it both, and so hides races between threads that share a word.
 * Layout: a line for each word, so that those who sleep on one do not disturb those who sleep on another.
 */
#include "slot.h"

#include <limits.h>
#include <stdbool.h>

#include "atomic.h"
#include "futex.h"
#include "self.h"

static struct {
	uint32_t turn;
} __attribute__((aligned(64))) rows[VEZ__SLOTS / 32];

VEZ__HOT uint32_t vez__slot_mine(void)
{
	uint64_t before = vez__self() - 1;
	if (VEZ__LIKELY(before < VEZ__OWN_SLOTS))
		return (uint32_t)before;
	return VEZ__OWN_SLOTS + (uint32_t)(before % (VEZ__SLOTS - VEZ__OWN_SLOTS));
}

VEZ__HOT uint32_t *vez__slot_turn(uint32_t slot)
{
	return &rows[slot / 32].turn;
}

/* At most so many threads sleep with one of these bits. */
static int count_of(struct vez__neighbours those)
{
	bool own = those.turn < &rows[VEZ__OWN_SLOTS / 32].turn;
	return own ? __builtin_popcount(those.bits) : INT_MAX;
}

VEZ__HOT void vez__slot_wake(struct vez__neighbours those)
{
	vez__fetch_add_untold(those.turn, 1, release);
	vez__futex_wake_bits(those.turn, count_of(those), those.bits);
}
