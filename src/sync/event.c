/* SPDX-License-Identifier: MIT */
/*
 * The event: a flag that lets through all who wait until it is reset, or one for each set.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock   futex/lock.h
 *	bit 2       AUTO       constant
 *	bit 3       SET        manual: open; AUTO: one set is kept. Set by set, cleared by reset and by the wait that
 *	                       takes it
 *	bit 4       CHOSEN     AUTO: a wait-for-any was queued here. Set inside, never cleared
 *	bits 32-63  undecided  requests that wait and that no set has let through. A request counts itself inside; a
 *	                       set, from anywhere, takes off those that it lets through; who gives up takes
 *	                       itself off inside
 *  room_  the requests, oldest first. The first (length - undecided) of them have been let through: whoever is inside
 *         settles them before it leaves.
 * Invariants
 *  V1 a set decides by its one exchange: it takes requests off the count, or sets SET. What it takes off is never put
 *     back, so a later reset, give-up or newcomer cannot undo it.
 *  V2 let through are always the oldest: the room is FIFO, and only a request that is not among those let through
 *     gives up. But what was let through may be lost (select.c): then the set is carried out for the next, or kept, by
 *     who is inside; so where that can be (CHOSEN), a reset comes after who is inside.
 *  V3 while nobody is inside: the room holds as many as are undecided, and SET implies that there are none. Who leaves
 *     made it so, by the word that its leaving exchange expects; a set that finds undecided requests enters or finds
 *     somebody inside.
 *  V4 only the one inside adds to the count, so nobody can put the word back to what the leaver expects.
 *  V5 a wait that is let through at once waits until nobody is inside, so that a set which lets others go has left. One
 *     whose deadline has passed does not; vez_event_destroy waits for that set.
 * Ordering
 *  set (acq_rel, also where the word stays as it is) pairs with take (acquire), vez_event_is_set and vez_event_reset
 *  (acquire). All changes are read-modify-write, so they form one release sequence, and a wait sees what came before
 *  every set that fed it.
 *  set (busy) -> the leaving exchange of the one inside (acq_rel) -> publication (word.c).
 *  set (not busy) enters by its own exchange, which acquires what the last leaver left.
 * Progress and fairness
 *  Set is lock-free and waits for nobody. AUTO: first come, first served. Manual: all are released by one leaver, and
 *  sleep as a cohort, woken by one system call.
 * Lifetime: see V5 and monitor.c. A set's last touch is its exchange, or the leaving one.
 * Sources: Dijkstra (1968); Reed and Kanodia, "Synchronization with Eventcounts and Sequencers" (1979); the count of
 *  those who are owed a turn, kept in the word: execution delegation applied to the monitor itself (sem.c).
 */
#include "vez/event.h"

#include <errno.h>
#include <string.h>

#include "engine.h"

#define AUTO UINT64_C(4)
#define SET UINT64_C(8)
#define CHOSEN UINT64_C(16)
#define ONE (UINT64_C(1) << 32)

static uint64_t undecided_in(uint64_t word)
{
	return word >> 32;
}

static vez_event_t *event_of(vez_monitor_t *m)
{
	return (vez_event_t *)((char *)m - offsetof(vez_event_t, monitor_));
}

/* The word when a set is carried out on it. */
static uint64_t with_set(uint64_t word)
{
	if (!(word & AUTO))
		return (word | SET) % ONE;
	return undecided_in(word) > 0 ? word - ONE : word | SET;
}

/* The word when the set that it holds is carried out for those who came to wait meanwhile. */
static uint64_t with_held_set(uint64_t word)
{
	return word & AUTO ? (word & ~SET) - ONE : word % ONE;
}

/* ---- inside ---- */

/* Carries out a set for the first. Where that is lost, AUTO, the set is carried out anew, as if it had not
 * been there. */
static void let_first_through(vez_event_t *e)
{
	uint64_t seen = vez__load(&e->monitor_.word_, relaxed);
	if (vez_monitor_settle(&e->monitor_, vez_room_first(&e->room_), 0) || !(seen & AUTO))
		return;
	while (!vez__cas(&e->monitor_.word_, &seen, with_set(seen), acq_rel))
		;
}

static bool serve(vez_monitor_t *m, uint64_t seen)
{
	vez_event_t *e = event_of(m);
	if ((seen & SET) && undecided_in(seen) > 0) {
		vez__cas(&m->word_, &seen, with_held_set(seen), acq_rel);
		return true;
	}
	uint64_t let_through = vez_room_length(&e->room_) - undecided_in(seen);
	for (uint64_t n = let_through; n > 0; n--)
		let_first_through(e);
	return let_through > 0;
}

/* r leaves. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	(void)r;
	return vez__cas(&m->word_, &seen, seen - ONE, acq_rel);
}

static const struct vez__ops event_ops = { .type = VEZ__EVENT, .serve = serve, .take_back = take_back };

/* ---- wait ---- */

/* Goes through if the event is set, and nobody is inside or that is all the same. */
static inline bool take(vez_event_t *e, uint64_t barring)
{
	uint64_t seen = vez__load(&e->monitor_.word_, acquire);
	while ((seen & SET) && !(seen & barring))
		if (!(seen & AUTO) || vez__cas(&e->monitor_.word_, &seen, seen & ~SET, acquire))
			return true;
	return false;
}

static bool is_auto(const vez_event_t *e)
{
	return vez__load(&e->monitor_.word_, relaxed) & AUTO;
}

/* 0 or ECANCELED; EINPROGRESS: r is queued. */
static VEZ__COLD int file(vez_event_t *e, vez_request_t *r)
{
	if (!is_auto(e))
		vez__request_in_cohort(&e->monitor_, r);
	vez__monitor_enter(&e->monitor_);
	int rc = EINPROGRESS;
	if (!vez__request_must_queue(r) && take(e, 0))
		rc = 0;
	else if (!vez__request_prepare(&e->monitor_, &e->room_, r, &event_ops))
		rc = ECANCELED;
	if (rc == EINPROGRESS) {
		if (vez__request_must_queue(r) && is_auto(e))
			vez__fetch_or(&e->monitor_.word_, CHOSEN, relaxed);
		vez__fetch_add(&e->monitor_.word_, ONE, relaxed);
		vez__request_insert(r);
		rc = vez__request_filed(&e->monitor_, r);
	}
	vez__monitor_leave(&e->monitor_, &event_ops);
	return rc;
}

static int attempt(vez_event_t *e)
{
	return take(e, 0) ? 0 : EBUSY;
}

static VEZ__COLD int wait_slow(vez_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	if (vez__deadline_passed(deadline))
		return vez__no_time_left(attempt(e));
	vez__request_mine(&r, 0, cancel);
	int rc = file(e, &r);
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

int vez_event_wait(vez_event_t *e)
{
	return VEZ__LIKELY(take(e, VEZ__LOCKED)) ? 0 : wait_slow(e, VEZ_FOREVER, NULL);
}

int vez_event_wait_until(vez_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	return VEZ__LIKELY(take(e, VEZ__LOCKED)) ? 0 : wait_slow(e, deadline, cancel);
}

int vez_event_wait_async(vez_event_t *e, vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (rc == 0 && (vez__request_must_queue(r) || !take(e, VEZ__LOCKED)))
		rc = vez__async_waits(r) ? file(e, r) : vez__no_time_left(attempt(e));
	return vez__async_end(r, rc);
}

/* ---- set and the rest ---- */

int vez_event_set(vez_event_t *e)
{
	uint64_t seen = vez__load(&e->monitor_.word_, relaxed);
	uint64_t enters;
	do
		enters = undecided_in(seen) > 0 && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
	while (!vez__cas(&e->monitor_.word_, &seen, with_set(seen) | enters, acq_rel));
	if (enters)
		vez__monitor_leave(&e->monitor_, &event_ops);
	return 0;
}

static VEZ__COLD void reset_inside(vez_event_t *e)
{
	vez__monitor_enter(&e->monitor_);
	while (serve(&e->monitor_, vez__load(&e->monitor_.word_, relaxed)))
		;
	vez__fetch_and(&e->monitor_.word_, ~SET, acquire);
	vez__monitor_leave(&e->monitor_, &event_ops);
}

int vez_event_reset(vez_event_t *e)
{
	uint64_t before = vez__fetch_and(&e->monitor_.word_, ~SET, acquire);
	if (VEZ__UNLIKELY((before & CHOSEN) && (before & VEZ__LOCKED)))
		reset_inside(e);
	return 0;
}

bool vez_event_is_set(const vez_event_t *e)
{
	return vez__load(&e->monitor_.word_, acquire) & SET;
}

size_t vez_event_waiters(const vez_event_t *e)
{
	return (size_t)undecided_in(vez__load(&e->monitor_.word_, acquire));
}

int vez_event_init(vez_event_t *e, unsigned flags)
{
	if (flags & ~VEZ_AUTO_RESET)
		return EINVAL;
	memset(e, 0, sizeof *e);
	e->monitor_.word_ = flags & VEZ_AUTO_RESET ? AUTO : 0;
	return 0;
}

int vez_event_destroy(vez_event_t *e)
{
	vez__monitor_enter(&e->monitor_);
	while (serve(&e->monitor_, vez__load(&e->monitor_.word_, relaxed)))
		;
	return vez__monitor_retire(&e->monitor_, &event_ops, false);
}
