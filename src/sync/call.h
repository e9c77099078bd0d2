/* SPDX-License-Identifier: MIT */
/* What the engine asks of delegated calls, for the monitors of users. */
#ifndef VEZ__CALL_H
#define VEZ__CALL_H

#include "engine.h"

/* How a user's monitor takes part: runs the calls that may run. */
extern const struct vez__ops vez__user_ops;

/* Inside: the calls that have arrived are put in its room. */
void vez__calls_gather(vez_monitor_t *m);

/* How many bodies a thread runs in one stay, where one of the callers can go on. Tests set it. */
extern unsigned vez__call_batch;

/* Inside: whether the caller's own code is inside from here on. */
void vez__monitor_own(vez_monitor_t *m, bool own);

#endif
