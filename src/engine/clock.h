/* SPDX-License-Identifier: MIT */
/* The library's own thread: ends asynchronous requests at their deadlines, fires tokens at theirs, and fires those that a
 * signal is to fire. */
#ifndef VEZ__CLOCK_H
#define VEZ__CLOCK_H

#include <stdbool.h>

#include "vez/deadline.h"

/* Makes the thread, if there is none: 0 or EAGAIN. Outside every core. */
int vez__clock_start(void);

/* Whether there is one. */
bool vez__clock_exists(void);

/* One round of the thread's work: all that is due. When it is to look again. */
vez_deadline_t vez__clock_round(void);

#endif
