/* SPDX-License-Identifier: MIT */
/*
 * A stack that anybody pushes on and that is only ever emptied whole, and the hash of an address.
 * Source of the stack: R. K. Treiber, "Systems Programming: Coping with Parallelism" (1986).
 */
#ifndef VEZ__STACK_H
#define VEZ__STACK_H

#include "atomic.h"

/* Pushes the chain from first to the element whose link is last. Releases what its pusher wrote, and acquires what
 * whoever emptied the stack released. */
static inline void vez__stack_push(void *top, void *first, void *last)
{
	void **stack = (void **)top, **link = (void **)last;
	void *seen = vez__load(stack, relaxed);
	do
		*link = seen;
	while (!vez__cas(stack, &seen, first, acq_rel));
}

/* Empties the stack: the element pushed last, or NULL. */
static inline void *vez__stack_take(void *top)
{
	return vez__exchange((void **)top, NULL, acq_rel);
}

/* So many bits of a hash of the address. */
static inline uint64_t vez__hash_of(const void *address, unsigned bits)
{
	return ((uint64_t)(uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits);
}

#endif
