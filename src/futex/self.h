/* SPDX-License-Identifier: MIT */
/* Who this thread is: a number that no other thread of the process has, had, or will have. */
#ifndef VEZ__SELF_H
#define VEZ__SELF_H

#include <stdint.h>

/* Never 0. The thread that forks keeps its number in the child. */
uint64_t vez__self(void);

#endif
