/* SPDX-License-Identifier: MIT */
/* Who this thread is: a number that no other thread of the process has, had, or will have. */
#ifndef VEZ__SELF_H
#define VEZ__SELF_H

#include <stdint.h>

/* 0: it has none yet. Such a thread takes one. */
extern __thread uint64_t vez__number __attribute__((tls_model("initial-exec"), visibility("hidden")));
uint64_t vez__number_take(void);

/* Never 0. The thread that forks keeps its number in the child. */
static inline uint64_t vez__self(void)
{
	uint64_t number = vez__number;
	return __builtin_expect(number != 0, 1) ? number : vez__number_take();
}

#endif
