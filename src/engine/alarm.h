/* SPDX-License-Identifier: MIT */
/* What the library's thread is to be awake for: the deadlines of asynchronous requests, and the moments of tokens. */
#ifndef VEZ__ALARM_H
#define VEZ__ALARM_H

#include <stdbool.h>

#include "agenda.h"
#include "vez/request.h"

/* Inside r's core, before r is queued: r will be ended at its deadline. Takes no lock. */
void vez__alarm_set(vez_request_t *r);

/* Takes r, which is settled, off again, if it has a deadline that did not take it off itself. Holding. */
void vez__alarm_unset(vez_request_t *r);

/* The thread is to be awake at this moment, for a token. Inside any core. */
void vez__alarm_at(vez_deadline_t at);

/* The thread has something to do at once, of which it is to be told. Inside any core. */
void vez__alarm_owe(void);

/* Whether the calling thread has done one of these and has not told yet. */
extern __thread bool vez__alarm_owes __attribute__((tls_model("initial-exec"), visibility("hidden")));
void vez__alarm_tell_now(void);

/* Outside every core, after any of these: wakes the thread, if it has to wake earlier than it was going to. Whether
 * it had to be told. */
static inline bool vez__alarm_tell(void)
{
	if (__builtin_expect(!vez__alarm_owes, 1))
		return false;
	vez__alarm_tell_now();
	return true;
}

/* Wakes the thread; signal handlers included. */
void vez__alarm_ring(void);

/* ---- for the thread ---- */

/* A round begins: what is set from now on is told. */
void vez__alarm_begin(void);

/* The requests that are due at this moment, which are the caller's to end (vez__word_announce_end), linked by their
 * timers; NULL: none. *again: when others will be. Holding. */
vez_request_t *vez__alarm_due(int64_t now, vez_deadline_t *again);

/* Nothing is to be done before this moment: sleeps until then, or until it is told. */
void vez__alarm_sleep(vez_deadline_t until);

/* In the child of a fork: nothing is set. */
void vez__alarm_forget(void);

#endif
