/* SPDX-License-Identifier: MIT */
/*
 * Slots: threads sleep side by side on one word, each with a bit of its own, so that one system call wakes any of them
 * and nobody else.
 *
 * A thread has one slot, by its number (self.h), wherever it waits: threads that came one after another are neighbours,
 * 32 on one word. The first 1,024 of a process have each a slot of their own. The others share as many more: two of
 * them that have the same slot are woken together, and the one that is not meant looks in vain, and sleeps again.
 * The words lie in static memory: who wakes a thread has left its object, which may be gone, and so may the thread.
 */
#ifndef VEZ__SLOT_H
#define VEZ__SLOT_H

#include <stdint.h>

#define VEZ__SLOTS 2048u
/* Of these, so many are of one thread each. */
#define VEZ__OWN_SLOTS 1024u

/* Threads of neighbouring slots that are to be woken: of those that sleep on this word, those with these bits. */
struct vez__neighbours {
	uint32_t *turn; /* the futex; moves on whenever some of them are woken. NULL: there are none */
	uint32_t bits;
};

/* This thread's slot. */
uint32_t vez__slot_mine(void);

/* The word of this slot; its bit there. */
uint32_t *vez__slot_turn(uint32_t slot);
static inline uint32_t vez__slot_bit(uint32_t slot)
{
	return UINT32_C(1) << (slot % 32);
}

/* Wakes them. Their own words say why by then (DONE or ENTERING): who sees that the turn has moved finds it there. */
void vez__slot_wake(struct vez__neighbours those);

#endif
