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
 *  bell      wakes the thread
 *  owes      of each thread: it lowered next, and has yet to ring
 *  started, exists  whether there is a thread; written by whom vez_once lets make it
 *  stopping, working   the process exits; the thread is at work and may be inside a user's function; inside guard
 *  The tokens that are to fire at a moment are cancel.c's, those that a signal fires signals.c's.
 * Invariants
 *  A1 a request is on the stack or in the agenda from vez__alarm_set until it is taken off: by the thread, inside
 *     guard, which has then claimed it (COMING) and clears its timer; or by whoever completes it.
 *  A2 so a request seen inside guard is alive; and one that the thread has claimed is alive until it has come for it.
 *  A3 guard is innermost: nothing is entered, woken or called inside it. Setting takes no lock, so that it may happen
 *     inside a monitor; the bell is rung when that is left.
 *  A4 a moment that was set is seen: either the push comes before the round takes the stack; or after, and then next
 *     was raised before the push, and the pusher lowers it and rings, or finds it low enough.
 * Ordering
 *  the push (release) pairs with the exchange in take_arrivals (acquire): the request's fields; and the exchange, which
 *  also releases, with a later push (acquire): next as it was raised before.
 *  The bell is an event: what came before the set comes before the round that it wakes.
 * Progress: setting is lock-free. The thread sleeps until something is due, or rings; at most one ring is made for each
 *  moment that is earlier than all others.
 * Lifetime: the thread is made at first need, ends at exit, unless it is inside a user's function then, and is not in
 *  the child of a fork.
 * Source: the alarm clock of Hoare, "Monitors" (1974).
 */
#include "alarm.h"

#include <errno.h>
#include <string.h>

#include "../futex/sys.h"
#include "agenda.h"
#include "cancel.h"
#include "completion.h"
#include "engine.h"
#include "inspect.h"
#include "signals.h"
#include "vez/event.h"
#include "vez/once.h"

static vez_request_t *arrivals;
static vez_monitor_t guard = VEZ_MONITOR_INITIALIZER(NULL);
static struct vez__agenda agenda;
static vez_deadline_t next = VEZ_FOREVER;
static vez_event_t bell;
static vez_once_t started = VEZ_ONCE_INITIALIZER;
static bool exists;
static pthread_t thread;
static bool stopping;
static bool working;
static __thread bool owes __attribute__((tls_model("initial-exec")));

static vez_request_t *request_of(struct vez__timer *t)
{
	return (vez_request_t *)((char *)t - offsetof(vez_request_t, timer_));
}

void vez__alarm_ring(void)
{
	vez_event_set(&bell);
}

void vez__alarm_at(vez_deadline_t at)
{
	vez_deadline_t seen = vez__load(&next, relaxed);
	while (at < seen) {
		if (vez__cas(&next, &seen, at, relaxed)) {
			owes = true;
			return;
		}
	}
}

void vez__alarm_tell(void)
{
	if (VEZ__LIKELY(!owes))
		return;
	owes = false;
	vez__alarm_ring();
}

void vez__alarm_set(vez_request_t *r)
{
	vez_deadline_t at = vez__timer_at(&r->timer_);
	vez_request_t *top = vez__load(&arrivals, relaxed);
	do
		r->timer_.link_[0] = top;
	while (!vez__cas(&arrivals, &top, r, acq_rel));
	vez__alarm_at(at);
}

/* Inside guard. */
static void take_arrivals(void)
{
	vez_request_t *r = vez__exchange(&arrivals, NULL, acq_rel);
	while (r) {
		vez_request_t *older = r->timer_.link_[0];
		vez__agenda_set(&agenda, &r->timer_);
		r = older;
	}
}

void vez__alarm_unset(vez_request_t *r)
{
	if (!vez__timer_is_set(&r->timer_))
		return;
	vez__enter_holding(&guard);
	if (vez__load(&arrivals, relaxed))
		take_arrivals();
	vez__agenda_unset(&r->timer_);
	vez__exit_holding(&guard);
}

/* ---- the thread ---- */

/* Inside guard: the requests that are due and claimed, linked by their timers. The others are somebody else's
 * to end. */
static vez_request_t *claim_due(int64_t now)
{
	vez_request_t *claimed = NULL;
	struct vez__timer *t;
	take_arrivals();
	while ((t = vez__agenda_due(&agenda, now))) {
		vez_request_t *r = request_of(t);
		if (!vez__word_claim(&r->word_))
			continue;
		vez__timer_to(t, VEZ_FOREVER);
		t->link_[0] = claimed;
		claimed = r;
	}
	return claimed;
}

static vez_deadline_t end_due(void)
{
	int64_t now = vez__sys_now();
	vez__enter_holding(&guard);
	vez_request_t *r = claim_due(now);
	vez_deadline_t again = vez__agenda_next(&agenda);
	vez__exit_holding(&guard);
	while (r) {
		vez_request_t *following = r->timer_.link_[0];
		vez__request_end_claimed(r, ETIMEDOUT);
		r = following;
	}
	return again;
}

vez_deadline_t vez__alarm_round(void)
{
	vez__exchange(&next, VEZ_FOREVER, acq_rel);
	vez__signals_fire();
	vez_deadline_t tokens = vez__cancel_fire_due();
	vez_deadline_t requests = end_due();
	vez__alarm_at(tokens < requests ? tokens : requests);
	owes = false; /* this is the thread itself */
	return vez__load(&next, relaxed);
}

/* Whether the process goes on. */
static bool set_working(bool now)
{
	vez__enter_holding(&guard);
	working = now && !stopping;
	bool goes_on = !stopping;
	vez__exit_holding(&guard);
	return goes_on;
}

static void *run(void *arg)
{
	while (set_working(true)) {
		vez_deadline_t again = vez__alarm_round();
		set_working(false);
		vez__inspect_apart(true);
		vez_event_wait_until(&bell, again, NULL);
		vez__inspect_apart(false);
	}
	return arg;
}

static int make_thread(void *arg)
{
	(void)arg;
	vez_event_init(&bell, VEZ_AUTO_RESET);
	int rc = vez__sys_thread(&thread, run);
	vez__store(&exists, rc == 0, release);
	return rc;
}

int vez__alarm_start(void)
{
	return vez_once(&started, make_thread, NULL);
}

/* A thread that is inside a user's function may stay there for ever, or be the one that exits. */
__attribute__((destructor)) static void stop(void)
{
	if (!vez__load(&exists, acquire))
		return;
	vez__enter_holding(&guard);
	stopping = true;
	bool idle = !working;
	vez__exit_holding(&guard);
	vez__alarm_ring();
	if (idle)
		vez__sys_join(thread);
}

void vez__alarm_forget(void)
{
	vez_monitor_init(&guard, NULL);
	memset(&agenda, 0, sizeof agenda);
	memset(&started, 0, sizeof started);
	exists = false;
	arrivals = NULL;
	next = VEZ_FOREVER;
	stopping = false;
	working = false;
	owes = false;
}
