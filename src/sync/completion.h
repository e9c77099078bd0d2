/* SPDX-License-Identifier: MIT */
/* How a settled asynchronous request tells its owner. */
#ifndef VEZ__COMPLETION_H
#define VEZ__COMPLETION_H

#include "vez/request.h"

/* A request's kind_. */
enum { VEZ__CALLS, VEZ__TICKS, VEZ__LISTED, VEZ__MEMBER, VEZ__COHORT };

/* Outside every monitor: completes these requests, a stack linked by place_[0], the latest first. */
void vez__complete(vez_request_t *latest);

/* Takes r off its token's list and off the alarm clock. */
void vez__forget_limits(vez_request_t *r);

/* While this thread holds a lock that completing needs, or is inside a user's monitor, nothing is completed: what it
 * settles, also in a signal handler, is left, and completed when the last hold is let go. */
void vez__hold(void);
void vez__let_go(void);
bool vez__holds(void);

/* The same around a monitor that completing enters; and a wait inside it, which leaves both, with what as its pointer;
 * for inspection it waits for this object. */
void vez__enter_holding(vez_monitor_t *m);
void vez__exit_holding(vez_monitor_t *m);
int vez__wait_holding(vez_monitor_t *m, vez_room_t *room, void *what, const struct vez__ops *ops, const void *object,
		      vez_deadline_t deadline, vez_cancel_t *cancel);

/* Holding: r joins the list. */
void vez__completions_add(vez_completions_t *l, vez_request_t *r);

/* In the child of a fork: nobody waits, nothing is left to call. */
void vez__completion_forget(void);

#endif
