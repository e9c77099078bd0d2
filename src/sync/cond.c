/* SPDX-License-Identifier: MIT */
/*
 * Conditions on a mutex.
 *
 * State
 *  core_.word_    bits 0-1    the lock    futex/lock.h
 *                 bits 4-31   places      how many of the queue are places of waits with guards; inside
 *                 bits 32-63  tickets     how many of those who wait with guards, and are asked, may still be let in.
 *                                         Inside the mutex; means nothing while none is asked
 *  queue_         those who were not notified yet, by key. Of one who waits with a guard it is a place (struct
 *                 vez__when), which it leaves by itself, when its wait is over. Inside
 *  mutex_           the mutex of those who wait; means nothing while nobody does. Inside
 *  a request's value is the number of its thread; its with_.ptr_ links those that move together, after they left the
 *  queue.
 * Invariants
 *  K1 a waiter is queued before it lets the mutex go: a signal under the mutex misses nobody.
 *  K2 a request leaves the queue once: notified (moved to the mutex's queue with its limits off, or settled with 0 if
 *     its thread, or one that fired its token, is entering because of it already), or given up.
 *  K3 between the two cores a request belongs to the notifier alone. Its thread is inside its call, and so holds the
 *     mutex object in being.
 *  K4 one who waits with a guard has its request in the mutex: asleep, then, when notified, among those whose guards
 *     are asked, until there is no ticket left or its guard is false. So its limits apply all the time, and it is
 *     settled inside the mutex only. Its place keeps the condition in being, and the count of tickets with it.
 *  K5 who comes while others have places has one, too. So those without places came before all others (of their key).
 *  K6 the mutex is entered from inside the condition, never the other way round.
 * Ordering
 *  signal -> wait: the cores in turn; word.c's publication by the thread that grants the mutex.
 * Progress and fairness
 *  Notified in key order, then arrival; a fair mutex is granted in the order of notification, behind those queued
 *  before. Any other may be taken first by one that was asked together with those before it (mutex.c).
 *  A thread that was entering because of a notified request wakes it, and its thread then locks the mutex as a
 *  newcomer.
 * Lifetime: the notifier's last touch of the condition is leaving its core; a notified thread does not touch it.
 * Sources: cond.h in include/vez.
 */
#include "vez/cond.h"

#include <string.h>

#include "../engine/filing.h"
#include "../futex/self.h"
#include "mutex.h"

#define PLACE UINT64_C(0x10)
#define PLACES (VEZ__TICKET - PLACE)

static const struct vez__rules cond_rules = {
	.type = VEZ__COND, .sleeps = VEZ__BESIDE, .queue = offsetof(vez_cond_t, queue_),
};

/* ---- with a guard ---- */

static struct vez__when *when_of(const vez_request_t *r)
{
	return r->with_.ptr_;
}

static bool has_guards(const vez_cond_t *c)
{
	return vez__load(&c->core_.word_, relaxed) & PLACES;
}

/* Inside: w waits in the mutex, asleep, and has a place in the queue. EINPROGRESS, or ECANCELED. */
static int take_place(struct vez__stay *in, vez_cond_t *c, vez_mutex_t *m, struct vez__when *w)
{
	if (!vez__mutex_doze(m, w, c))
		return ECANCELED;
	w->place.queue_ = &c->queue_;
	w->place.rules_ = &cond_rules;
	vez__insert(in->core, &w->place);
	vez__fetch_add(&c->core_.word_, PLACE, relaxed);
	return EINPROGRESS;
}

static void leave_place(vez_cond_t *c, struct vez__when *w)
{
	struct vez__stay in;
	vez__enter(&in, &c->core_);
	vez__take_out(&w->place);
	vez__fetch_add(&c->core_.word_, -PLACE, relaxed);
	vez__leave_threads(&in);
}

/* Queues r here; or, if it waits with a guard, in the mutex, and its place (when, else NULL) here. EINPROGRESS, or why
 * it may not. */
static int join(vez_cond_t *c, vez_mutex_t *m, vez_request_t *r, struct vez__when *when, vez_deadline_t deadline)
{
	struct vez__stay in;
	vez__enter(&in, &c->core_);
	int rc = c->queue_ && c->mutex_ != m ? EINVAL : vez__limits_refuse(deadline, r->cancel_);
	if (rc == 0)
		rc = when ? take_place(&in, c, m, when) : vez__queue_inside(&in, &cond_rules, r);
	if (rc == EINPROGRESS)
		c->mutex_ = m;
	vez__leave_threads(&in);
	return rc;
}

/* Without a guard: one that came while others wait with theirs. */
static VEZ__SLOW int wait_when(vez_cond_t *c, vez_mutex_t *m, struct vez__guard guard, int64_t key,
			       vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__when w;
	guard.tickets = &c->core_.word_;
	w.guard = guard;
	vez__request_init_local(&w.place, key, NULL);
	vez__request_init_local(&w.r, 0, cancel);
	w.place.with_.ptr_ = &w;
	w.r.with_.ptr_ = &w.guard;
	w.r.value_ = vez__self();
	w.r.arg_ = (void *)(intptr_t)key; /* for inspection */
	int rc = join(c, m, &w.r, &w, deadline);
	if (rc != EINPROGRESS)
		return rc;
	uint32_t holds = vez__mutex_release_all(m);
	rc = vez__await(&w.r, deadline);
	leave_place(c, &w);
	vez__mutex_take_back(m, holds, rc == 0);
	return rc != 0 && guard.fn && vez__guard_ask(&guard) ? 0 : rc;
}

int vez_cond_wait_when(vez_cond_t *c, vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
		       vez_cancel_t *cancel)
{
	if (!guard)
		return EINVAL;
	if (!vez__mutex_is_mine(m))
		return EPERM;
	const struct vez__guard g = { .fn = guard, .arg = arg };
	return vez__guard_ask(&g) ? 0 : wait_when(c, m, g, 0, deadline, cancel);
}

/* ---- without ---- */

int vez_cond_wait_key(vez_cond_t *c, vez_mutex_t *m, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	if (!vez__mutex_is_mine(m))
		return EPERM;
	if (VEZ__UNLIKELY(has_guards(c)))
		return wait_when(c, m, (struct vez__guard){ .fn = NULL }, key, deadline, cancel);
	vez__request_init_local(&r, key, cancel);
	r.with_.ptr_ = NULL;
	r.value_ = vez__self();
	r.arg_ = (void *)(intptr_t)key; /* in the mutex's queue all have key 0 (mutex.c: ask_more) */
	vez__inspect_may_move(&r);
	int rc = join(c, m, &r, NULL, deadline);
	if (rc != EINPROGRESS)
		return rc;
	uint32_t holds = vez__mutex_release_all(m);
	rc = vez__await(&r, deadline);
	vez__inspect_moves_no_more(&r);
	vez__mutex_take_back(m, holds, vez__mutex_was_queued(&r));
	return rc;
}

int vez_cond_wait(vez_cond_t *c, vez_mutex_t *m)
{
	return vez_cond_wait_key(c, m, 0, VEZ_FOREVER, NULL);
}

int vez_cond_wait_until(vez_cond_t *c, vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_cond_wait_key(c, m, 0, deadline, cancel);
}

/* Inside: takes r, which waits without a guard, out; *link is where the list of those that move ends. */
static void take(struct vez__stay *in, vez_request_t *r, void ***link)
{
	if (!vez__take_out(r)) {
		vez__settle(in, r, 0);
		return;
	}
	**link = r;
	*link = &r->with_.ptr_;
	**link = NULL;
}

/* Inside: takes out at most so many of those who wait without guards: of the first ones, or, past_guards, of all.
 * How many. */
static size_t take_plain(struct vez__stay *in, vez_cond_t *c, size_t most, bool past_guards, void ***link)
{
	size_t count = 0;
	vez_request_t *next;
	for (vez_request_t *r = c->queue_; r && count < most && (past_guards || !when_of(r)); r = next) {
		next = vez__queue_next(c->queue_, r);
		if (when_of(r))
			continue;
		take(in, r, link);
		count++;
	}
	return count;
}

/* Inside: those who wait with guards, in their order. */
static struct vez__when *list_guards(vez_cond_t *c)
{
	struct vez__when *first = NULL, **end = &first;
	for (vez_request_t *r = c->queue_; r; r = vez__queue_next(c->queue_, r))
		if (when_of(r)) {
			*end = when_of(r);
			end = &(*end)->next;
		}
	*end = NULL;
	return first;
}

static size_t notify(vez_cond_t *c, size_t most)
{
	struct vez__stay in, in_mutex = { .core = NULL };
	vez_request_t *moved = NULL;
	void **link = (void **)&moved;
	if (vez__load(&c->core_.length_, relaxed) == 0)
		return 0;
	vez__enter(&in, &c->core_);
	vez_mutex_t *m = c->mutex_;
	size_t count = take_plain(&in, c, most, false, &link);
	if (count < most && c->queue_) {
		count += vez__mutex_notify(&in_mutex, m, list_guards(c), most - count);
		count += take_plain(&in, c, most - count, true, &link); /* by their keys they come last */
	}
	vez__leave(&in, &cond_rules);
	if (in_mutex.core)
		vez__publish_stay(&in_mutex);
	if (moved)
		vez__mutex_queue(m, moved);
	return count;
}

size_t vez_cond_signal(vez_cond_t *c)
{
	return notify(c, 1);
}

size_t vez_cond_broadcast(vez_cond_t *c)
{
	return notify(c, SIZE_MAX);
}

int vez_cond_init(vez_cond_t *c)
{
	memset(c, 0, sizeof *c);
	return 0;
}

int vez_cond_destroy(vez_cond_t *c)
{
	return vez__destroy(&c->core_, &cond_rules, 0);
}

size_t vez_cond_waiters(const vez_cond_t *c)
{
	return vez__load(&c->core_.length_, relaxed);
}
