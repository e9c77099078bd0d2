/* SPDX-License-Identifier: MIT */
/* The library's own thread: ends asynchronous requests at their deadlines, fires tokens at theirs, and fires those that
 * a signal is to fire; and does what calls leave to it. */
#ifndef VEZ__CLOCK_H
#define VEZ__CLOCK_H

#include <stdbool.h>

#include "../futex/atomic.h"
#include "vez/deadline.h"

/* Makes the thread, if there is none: 0 or EAGAIN. Outside every core. */
int vez__clock_start(void);

/* Whether there is one. */
bool vez__clock_exists(void);

/* Whether the process exits, so that nothing more may be left to the thread. */
bool vez__clock_stops(void);

/* The thread is needed, by a call that may be in a signal handler, where none can be made: the next request that is
 * filed makes it (vez__clock_start_if_wanted). */
void vez__clock_want(void);
extern uint32_t vez__clock_wanted;

/* Outside every core, never in a signal handler. */
void vez__clock_start_wanted(void);
static inline void vez__clock_start_if_wanted(void)
{
	if (VEZ__UNLIKELY(vez__load(&vez__clock_wanted, relaxed)))
		vez__clock_start_wanted();
}

/* One round of the thread's work: all that is due, and a batch of what calls have left to it. When it is to look again;
 * VEZ_NOW: at once. */
vez_deadline_t vez__clock_round(void);

#endif
