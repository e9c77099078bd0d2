/* SPDX-License-Identifier: MIT */
/*
 * Who waits on which condition.
 *
 * State: conds.h.
 * Invariants: C1 a slot's condition changes only while its count is 0. The count may err where a thread signals without
 *  the mutex while another comes or its time runs out; a broadcast sets it right.
 * Ordering: none of its own. A thread that is woken through the mutex reads what its waker wrote before.
 * Progress: lock-free.
 */
#include "conds.h"

#define COUNT UINT64_C(0xfffff)

static uint64_t name(const void *cond)
{
	return ((uint64_t)(uintptr_t)cond >> 3) << 20;
}

static struct cond_slot *slot_of(struct cond_slot *slots, uint64_t named)
{
	return &slots[(named >> 20) * UINT64_C(0x9e3779b97f4a7c15) >> 50];
}

_Static_assert(COND_SLOTS == 1 << (64 - 50), "the hash has as many bits as there are slots");

static uint64_t look(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static int change(_Atomic uint64_t *word, uint64_t *expected, uint64_t desired)
{
	return atomic_compare_exchange_weak_explicit(word, expected, desired, memory_order_relaxed,
		memory_order_relaxed);
}

void wakes__cond_enter(struct cond_slot *slots, const void *cond)
{
	uint64_t named = name(cond), next;
	_Atomic uint64_t *word = &slot_of(slots, named)->waiting;
	uint64_t seen = look(word);
	do {
		if ((seen & ~COUNT) != named && (seen & COUNT) != 0)
			return;
		next = (seen & ~COUNT) == named ? seen + 1 : named | 1;
	} while (!change(word, &seen, next));
}

/* Takes so many off the count, and says how many it was before. */
static uint64_t take(struct cond_slot *slot, uint64_t named, uint64_t most)
{
	uint64_t seen = look(&slot->waiting), count;
	do {
		count = (seen & ~COUNT) == named ? seen & COUNT : 0;
		if (count == 0)
			return 0;
	} while (!change(&slot->waiting, &seen, seen - (count < most ? count : most)));
	return count;
}

void wakes__cond_leave(struct cond_slot *slots, const void *cond)
{
	uint64_t named = name(cond);
	take(slot_of(slots, named), named, 1);
}

int wakes__cond_wake(struct cond_slot *slots, const void *cond, unsigned most, unsigned site)
{
	uint64_t named = name(cond), waker = named | (site + 1);
	struct cond_slot *slot = slot_of(slots, named);
	uint64_t seen = look(&slot->waiting);
	if ((seen & COUNT) == 0)
		return 0; /* the usual case writes nothing */
	if ((seen & ~COUNT) != named)
		return 1; /* not followed: perhaps */
	if (look(&slot->waker) != waker)
		atomic_store_explicit(&slot->waker, waker, memory_order_relaxed);
	return take(slot, named, most) != 0;
}

int wakes__cond_waker(struct cond_slot *slots, const void *cond)
{
	uint64_t named = name(cond);
	uint64_t waker = look(&slot_of(slots, named)->waker);
	return (waker & ~COUNT) == named ? (int)(waker & COUNT) - 1 : -1;
}
