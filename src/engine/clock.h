/* SPDX-License-Identifier: MIT */
/* The library's own thread: ends asynchronous requests at their deadlines, fires tokens at theirs, and fires those that a
 * signal is to fire. */
#ifndef VEZ__CLOCK_H
#define VEZ__CLOCK_H

#include "vez/deadline.h"

/* Makes the thread, if there is none: 0 or EAGAIN. Outside every core. */
int vez__clock_start(void);

/* The same for a request with a deadline that was queued where no thread could be made. If none can be made, it, and all
 * others whose deadlines nobody would keep, are ended with EAGAIN. */
void vez__clock_start_for_queued(void);

/* One round of the thread's work: all that is due. When it is to look again. */
vez_deadline_t vez__clock_round(void);

/* In the child of a fork: there is no thread. */
void vez__clock_forget(void);

#endif
