/* SPDX-License-Identifier: MIT */
/*
 * The alarm clock.
 *
 * State
 *  arrivals  a stack of requests that were set since the agenda was last put in order (timer_.link_[0]). Pushed by
 *            anybody, taken whole by the one inside guard
 *  agenda    the other requests that have a deadline; inside guard
 *  next      when the thread wakes by itself, or is going to, at the latest. Lowered by anybody; raised by the thread,
 *            at the beginning of a round
 *  bell      a word (futex/word.h): DONE wakes the thread
 *  vez__alarm_owes  of each thread: it lowered next, or left something to the library's thread, and has yet to ring
 *  The tokens that are to fire at a moment are cancel.c's, those that a signal fires signals.c's; the thread is
 *  clock.c.
 * Invariants
 *  A1 a request is on the stack or in the agenda from vez__alarm_set until it is taken off: by the thread, inside
 *     guard, which has then announced that it ends it (ENTERING) and clears its timer; or by whoever completes it.
 *  A2 so a request seen inside guard is alive; and one that the thread is to end is alive until it has.
 *  A3 guard is innermost: nothing is entered, woken or called inside it, and whoever is inside it holds (hold.h).
 *     Setting takes no lock, so that it may happen inside a core; the bell is rung when that is left.
 *  A4 a moment that was set is seen: either the push comes before the round takes the stack; or after, and then next
 *     was raised before the push, and the pusher lowers it and rings, or finds it low enough.
 * Ordering
 *  the push (release) pairs with the exchange in take_arrivals (acquire): the request's fields; and the exchange, which
 *  also releases, with a later push (acquire): next as it was raised before.
 *  The ring (release) pairs with the exchange in vez__alarm_begin (acquire): what came before it comes before the
 *  round.
 * Progress: setting is lock-free. The thread sleeps until something is due, or rings; at most one ring is made for each
 *  moment that is earlier than all others.
 * Source: the alarm clock of Hoare, "Monitors" (1974).
 */
#include "alarm.h"

#include <string.h>

#include "../futex/fork.h"
#include "../futex/futex.h"
#include "../futex/lock.h"
#include "../futex/stack.h"
#include "../futex/word.h"

static struct vez__timer *arrivals;
static uint64_t guard;
static struct vez__agenda agenda;
static vez_deadline_t next = VEZ_FOREVER;
static uint32_t bell;
__thread bool vez__alarm_owes;

static vez_request_t *request_of(struct vez__timer *t)
{
	return (vez_request_t *)((char *)t - offsetof(vez_request_t, timer_));
}

void vez__alarm_ring(void)
{
	if (vez__exchange(&bell, VEZ__DONE, acq_rel) & VEZ__PARKED)
		vez__futex_wake(&bell);
}

void vez__alarm_at(vez_deadline_t at)
{
	vez_deadline_t seen = vez__load(&next, relaxed);
	while (at < seen) {
		if (vez__cas(&next, &seen, at, relaxed)) {
			vez__alarm_owes = true;
			return;
		}
	}
}

void vez__alarm_owe(void)
{
	vez__alarm_owes = true;
}

void vez__alarm_tell_now(void)
{
	vez__alarm_owes = false;
	vez__alarm_ring();
}

/* Arrivals are linked by what lies first in their timers. */
void vez__alarm_set(vez_request_t *r)
{
	vez_deadline_t at = vez__timer_at(&r->timer_);
	vez__stack_push(&arrivals, &r->timer_, &r->timer_);
	vez__alarm_at(at);
}

/* Inside guard. */
static void take_arrivals(void)
{
	struct vez__timer *t = vez__stack_take(&arrivals);
	while (t) {
		struct vez__timer *older = t->link_[0];
		vez__agenda_set(&agenda, t);
		t = older;
	}
}

void vez__alarm_unset(vez_request_t *r)
{
	if (!vez__timer_is_set(&r->timer_))
		return;
	vez__lock_enter(&guard);
	if (vez__load(&arrivals, relaxed))
		take_arrivals();
	vez__agenda_unset(&r->timer_);
	vez__lock_exit(&guard);
}

/* ---- for the thread ---- */

void vez__alarm_begin(void)
{
	vez__exchange(&bell, 0, acq_rel);
	vez__exchange(&next, VEZ_FOREVER, acq_rel);
}

vez_request_t *vez__alarm_due(int64_t now, vez_deadline_t *again)
{
	vez_request_t *due = NULL;
	struct vez__timer *t;
	vez__lock_enter(&guard);
	take_arrivals();
	while ((t = vez__agenda_due(&agenda, now))) {
		vez_request_t *r = request_of(t);
		if (!vez__word_announce_end(&r->word_))
			continue; /* somebody else ends it */
		vez__timer_to(t, VEZ_FOREVER);
		t->link_[0] = due;
		due = r;
	}
	*again = vez__agenda_next(&agenda);
	vez__lock_exit(&guard);
	return due;
}

void vez__alarm_sleep(vez_deadline_t until)
{
	vez__alarm_at(until);
	vez__alarm_owes = false; /* this is the thread itself */
	vez__word_wait(&bell, VEZ__DONE, vez__load(&next, relaxed));
}

/* Nothing is set. */
void vez__alarm_forget(void)
{
	memset(&agenda, 0, sizeof agenda);
	guard = 0;
	arrivals = NULL;
	next = VEZ_FOREVER;
	bell = 0;
	vez__alarm_owes = false;
}

VEZ__AT_FORK(NULL, NULL, vez__alarm_forget)
