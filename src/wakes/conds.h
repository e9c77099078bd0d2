/* SPDX-License-Identifier: MIT */
/*
 * Who waits on which condition, and who was the last to wake somebody there.
 */
#ifndef WAKES_CONDS_H
#define WAKES_CONDS_H

#include <stdatomic.h>
#include <stdint.h>

#define COND_SLOTS 16384

/*
 * A condition's slot is found by its address. While nobody waits, another condition may take it over; while somebody
 * does, another condition that falls on it is not followed.
 *  waiting  bits 20-63: the condition's address, less three bits; bits 0-19: how many wait and were not woken yet
 *  waker    the same, and the number of the site that woke somebody last, and 1 more
 */
struct cond_slot {
	_Atomic uint64_t waiting, waker;
};

void wakes__cond_enter(struct cond_slot *slots, const void *cond);

/* The wait ended without a wake. */
void wakes__cond_leave(struct cond_slot *slots, const void *cond);

/* Up to so many are about to be woken, by this site; false: nobody waits. */
int wakes__cond_wake(struct cond_slot *slots, const void *cond, unsigned most, unsigned site);

/* The site that woke somebody last; -1: it is not known. */
int wakes__cond_waker(struct cond_slot *slots, const void *cond);

#endif
