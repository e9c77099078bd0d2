/* SPDX-License-Identifier: MIT */
/*
 * The event: a flag that lets through all who wait until it is reset, or one for each set.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock   futex/lock.h
 *	bit 2       AUTO       constant
 *	bit 3       SET        manual: open; AUTO: one set is kept. Set by set, cleared by reset and by the wait that
 *	                       takes it
 *	bit 4       CHOSEN     AUTO: a wait-for-any was queued here. Set inside, never cleared
 *	bits 32-63  undecided  requests that wait and that no set has let through. A request counts itself inside; a
 *	                       set, from anywhere, takes off those that it lets through; one that gives up
 *	                       takes itself off inside
 *  queue_  the requests, oldest first. The first (length - undecided) of them have been let through: whoever is inside
 *         settles them before it leaves.
 * Invariants
 *  V1 a set decides by its one exchange: it takes requests off the count, or sets SET. What it takes off is never put
 *     back, so a later reset, give-up or newcomer cannot undo it.
 *  V2 let through are always the oldest: the queue is FIFO, and only a request that is not among those let through
 *     gives up. But what was let through may have lost (engine/winner.c): then the set is carried out for the next,
 *     or kept, by the thread inside; so where that can be (CHOSEN), a reset comes after that thread.
 *  V3 while nobody is inside: as many are queued as are undecided, and SET implies that there are none. A set that
 *     finds undecided requests enters or finds somebody inside.
 *  V4 only the one inside adds to the count, so nobody can put the word back to what the leaver expects.
 * Ordering
 *  set (acq_rel, also where the word stays as it is) pairs with take (acquire), vez_event_is_set and vez_event_reset
 *  (acquire); a wait sees what came before every set that fed it (core.c).
 *  set (busy) -> the leaving exchange of the one inside (acq_rel) -> publication (word.c).
 *  set (not busy) enters by its own exchange, which acquires what the last leaver left.
 * Progress and fairness
 *  Set is lock-free and waits for nobody. AUTO: first come, first served. Manual: all are released by one leaver, who
 *  wakes neighbours (futex/slot.h) together.
 * Lifetime: core.c C5. A set's last touch is its exchange, or the leaving one.
 * Sources: Dijkstra (1968); Reed and Kanodia, "Synchronization with Eventcounts and Sequencers" (1979); the count of
 *  those who are owed a turn, kept in the word: execution delegation applied to the lock itself (sem.c).
 */
#include "vez/event.h"

#include <string.h>

#include "../engine/filing.h"

#define AUTO UINT64_C(4)
#define SET UINT64_C(8)
#define CHOSEN UINT64_C(16)
#define ONE (UINT64_C(1) << 32)

static uint64_t undecided_in(uint64_t word)
{
	return word >> 32;
}

static vez_event_t *event_of(const struct vez__stay *in)
{
	return (vez_event_t *)in->core;
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

/* Carries out a set for the first. Where that has lost, AUTO, the set is carried out anew, as if it had not
 * been there. */
static void let_first_through(struct vez__stay *in)
{
	uint64_t seen = vez__word_of(in);
	if (vez__settle(in, event_of(in)->queue_, 0) || !(seen & AUTO))
		return;
	while (!vez__change(in, seen, with_set(seen)))
		seen = vez__word_of(in);
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	if ((seen & SET) && undecided_in(seen) > 0) {
		vez__change(in, seen, with_held_set(seen));
		return true;
	}
	uint64_t let_through = in->core->length_ - undecided_in(seen);
	for (uint64_t n = let_through; n > 0; n--)
		let_first_through(in);
	return let_through > 0;
}

/* Goes through if the event is set, whoever is inside. */
static inline bool try_take(struct vez__core *c)
{
	uint64_t seen = vez__load(&c->word_, acquire);
	while (seen & SET)
		if (!(seen & AUTO) || vez__cas(&c->word_, &seen, seen & ~SET, acquire))
			return true;
	return false;
}

/* The fast path: nobody is inside. */
static inline bool take_fast(struct vez__core *c)
{
	uint64_t seen = vez__load_fast(&c->word_, acquire);
	while (!vez__checked() && (seen & (SET | VEZ__LOCKED)) == SET)
		if (!(seen & AUTO) || vez__cas_fast(&c->word_, &seen, seen & ~SET, acquire))
			return true;
	return false;
}

static bool fast(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return take_fast(c);
}

static int attempt(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return try_take(c) ? 0 : EBUSY;
}

static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (vez__must_queue(r) && (seen & AUTO))
		vez__fetch_or(&in->core->word_, CHOSEN, relaxed);
	return !vez__must_queue(r) && try_take(in->core) ? 0 : EBUSY;
}

#define RULES(...) \
	{ .type = VEZ__EVENT, .queue = offsetof(vez_event_t, queue_), .each = ONE, .fast = fast, .attempt = attempt, \
	  .take = take, .serve = serve, __VA_ARGS__ }

static const struct vez__rules auto_rules = RULES(.sleeps = VEZ__APART);

/* Those who wait for a manual one go on together. */
static const struct vez__rules manual_rules = RULES(.sleeps = VEZ__TOGETHER);

static const struct vez__rules *rules_of(const vez_event_t *e)
{
	return vez__load(&e->core_.word_, relaxed) & AUTO ? &auto_rules : &manual_rules;
}

/* ---- wait ---- */

static VEZ__SLOW int wait_slow(vez_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez__wait(&e->core_, rules_of(e), &(vez_request_t){ .cancel_ = cancel }, deadline);
}

int vez_event_wait(vez_event_t *e)
{
	return VEZ__LIKELY(take_fast(&e->core_)) ? 0 : wait_slow(e, VEZ_FOREVER, NULL);
}

int vez_event_wait_until(vez_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	return !fired && VEZ__LIKELY(take_fast(&e->core_)) ? 0 : wait_slow(e, deadline, cancel);
}

int vez_event_wait_async(vez_event_t *e, vez_request_t *r)
{
	return vez__file_async(&e->core_, rules_of(e), r);
}

/* ---- set and the rest ---- */

static VEZ__INLINE int set(vez_event_t *e, bool told)
{
	uint64_t seen = vez__load(&e->core_.word_, relaxed);
	uint64_t enters;
	do
		enters = undecided_in(seen) > 0 && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
	while (!vez__cas_if(told, &e->core_.word_, &seen, with_set(seen) | enters, acq_rel));
	if (enters)
		vez__leave_in_handler(&e->core_, &auto_rules);
	return 0;
}

static VEZ__COLD int set_told(vez_event_t *e)
{
	return set(e, true);
}

int vez_event_set(vez_event_t *e)
{
	return vez__checked() ? set_told(e) : set(e, false);
}

static VEZ__COLD void reset_inside(vez_event_t *e)
{
	struct vez__stay in;
	vez__enter(&in, &e->core_);
	vez__serve_all(&in, &auto_rules);
	vez__fetch_and(&e->core_.word_, ~SET, acquire);
	vez__leave(&in, &auto_rules);
}

int vez_event_reset(vez_event_t *e)
{
	uint64_t before = vez__fetch_and(&e->core_.word_, ~SET, acquire);
	if (VEZ__UNLIKELY((before & CHOSEN) && (before & VEZ__LOCKED)))
		reset_inside(e);
	return 0;
}

bool vez_event_is_set(const vez_event_t *e)
{
	return vez__load(&e->core_.word_, acquire) & SET;
}

size_t vez_event_waiters(const vez_event_t *e)
{
	return (size_t)undecided_in(vez__load(&e->core_.word_, acquire));
}

int vez_event_init(vez_event_t *e, unsigned flags)
{
	if (flags & ~VEZ_AUTO_RESET)
		return EINVAL;
	memset(e, 0, sizeof *e);
	e->core_.word_ = flags & VEZ_AUTO_RESET ? AUTO : 0;
	return 0;
}

int vez_event_destroy(vez_event_t *e)
{
	return vez__destroy(&e->core_, &auto_rules, 0);
}
