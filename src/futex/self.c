/* SPDX-License-Identifier: MIT */
/*
 * Thread numbers. pthread_self and the kernel's thread id are used again after a thread has ended: neither says whether
 * the owner of a lock is the caller. A counter does.
 */
#include "self.h"

#include "atomic.h"

static uint64_t last;

__thread uint64_t vez__number;

uint64_t vez__number_take(void)
{
	return vez__number = vez__fetch_add(&last, 1, relaxed) + 1;
}
