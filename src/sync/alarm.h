/* SPDX-License-Identifier: MIT */
/* The alarm clock: the library's own thread, which ends asynchronous requests at their deadlines, fires tokens at
 * theirs, and fires those that a signal is to fire. */
#ifndef VEZ__ALARM_H
#define VEZ__ALARM_H

#include "vez/request.h"

/* A timer's moment is stored so that zero means never. */
static inline bool vez__timer_is_set(const struct vez__timer *t)
{
	return t->at_ != 0;
}

static inline vez_deadline_t vez__timer_at(const struct vez__timer *t)
{
	return t->at_ ^ VEZ_FOREVER;
}

static inline void vez__timer_to(struct vez__timer *t, vez_deadline_t at)
{
	t->at_ = at ^ VEZ_FOREVER;
}

/* Makes the thread, if there is none: 0 or EAGAIN. Outside every monitor. */
int vez__alarm_start(void);

/* Inside r's monitor, before r is queued: r will be ended at its deadline. Takes no lock. */
void vez__alarm_set(vez_request_t *r);

/* Takes r, which is settled, off again, if it has a deadline that did not take it off itself. */
void vez__alarm_unset(vez_request_t *r);

/* The thread is to be awake at this moment, for a token. Inside any monitor. */
void vez__alarm_at(vez_deadline_t at);

/* Outside every monitor, after any of these: wakes the thread, if it has to wake earlier than it was going to. */
void vez__alarm_tell(void);

/* Wakes the thread; signal handlers included. */
void vez__alarm_ring(void);

/* One round of the thread's work: all that is due. When it is to look again. */
vez_deadline_t vez__alarm_round(void);

/* In the child of a fork: there is no thread, and nothing is set. */
void vez__alarm_forget(void);

#endif
