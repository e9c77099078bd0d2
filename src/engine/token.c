/* SPDX-License-Identifier: MIT */
/*
 * A token's flag, and the requests that wait with it.
 *
 * State
 *  arrivals_  bit 0 FIRED; the rest: a stack of requests that enlisted since the list was last put in order (links: the
 *             request's enlisted_[0]). Pushed by anybody, taken whole by the one inside the lock. Empty while FIRED
 *  lock_      the short lock of enlisted_
 *  enlisted_  the other requests that wait with this token, a ring, oldest first
 * Invariants
 *  T1 a request is on the stack or the list from vez__token_enlist until it is taken off: by the fire that is to end
 *     it, under the lock, which then clears the request's cancel_; or by its own thread after it was settled.
 *  T2 so a request seen under the lock is alive; and one that a fire took off is alive until that fire completes it.
 *  T3 the lock is innermost: nothing is entered, woken or called inside it, and whoever is inside it holds (hold.h).
 *     Enlisting takes no lock at all, so that it may happen inside a core.
 * Ordering
 *  the push in vez__token_enlist (release) pairs with the exchange in take_arrivals (acquire): the request's fields.
 *  The exchange to FIRED in take_arrivals (release) pairs with the loads in vez__token_is_fired and vez_cancel_clear
 *  (acquire). An enlisting and a firing meet on arrivals_: either the push comes first and the fire takes it, or it
 *  is refused.
 * Progress: enlisting is lock-free.
 * Lifetime: the last touch of a token by a fire, as far as waits are concerned, is leaving its lock.
 * Sources: futex/stack.h; the token: cooperative cancellation as in Java's interruption and .NET's CancellationToken.
 */
#include "token.h"

#include "../futex/lock.h"
#include "../futex/word.h"
#include "ring.h"

#define FIRED VEZ__TOKEN_FIRED

bool vez__token_enlist(vez_request_t *r)
{
	vez_cancel_t *c = r->cancel_;
	uintptr_t top = vez__load(&c->arrivals_, relaxed);
	do {
		if (top & FIRED) {
			(void)vez_cancel_fired(c); /* acquires; it may have been cleared since */
			return false;
		}
		r->enlisted_[0] = (void *)top;
	} while (!vez__cas(&c->arrivals_, &top, (uintptr_t)r, release));
	return true;
}

/* Puts a chain of arrivals, of which this is the latest, at the end of the list, oldest first. */
static void sort_in(vez_cancel_t *c, vez_request_t *latest)
{
	void *links = NULL;
	while (latest) {
		vez_request_t *older = latest->enlisted_[0];
		vez__ring_append(&links, latest->enlisted_);
		links = latest->enlisted_;
		latest = older;
	}
	vez__ring_append_all(&c->enlisted_, &links);
}

/* Inside the lock: puts the arrivals in the list, and leaves mark in their place. Whether the token was fired
 * before. */
static bool take_arrivals(vez_cancel_t *c, uintptr_t mark)
{
	uintptr_t top = vez__exchange(&c->arrivals_, mark, acq_rel);
	sort_in(c, (vez_request_t *)(top & ~FIRED));
	return top & FIRED;
}

void vez__token_delist(vez_request_t *r)
{
	vez_cancel_t *c = r->cancel_;
	if (!c)
		return;
	vez__lock_enter(&c->lock_);
	if (vez__load(&c->arrivals_, relaxed) & ~FIRED)
		take_arrivals(c, 0);
	vez__ring_remove(&c->enlisted_, r->enlisted_);
	vez__lock_exit(&c->lock_);
}

/* Whether it is for this fire to end r. */
static bool claims(vez_request_t *r)
{
	const uint32_t barring = VEZ__SETTLED | VEZ__FIRED | VEZ__DONE | VEZ__UNCANCELLABLE;
	return !(vez__fetch_or(&r->word_, VEZ__FIRED, relaxed) & barring);
}

/* Inside the lock: takes off the list every request that is for this fire to end. */
static void claim_all(vez_cancel_t *c, void *claimed)
{
	void *others = NULL;
	for (void *link; (link = vez__ring_take(&c->enlisted_));) {
		vez_request_t *r = vez__enlisted_at(link);
		bool claimed_here = claims(r);
		if (claimed_here)
			r->cancel_ = NULL;
		vez__ring_append(claimed_here ? claimed : &others, link);
	}
	c->enlisted_ = others;
}

bool vez__token_mark(vez_cancel_t *c, void *claimed)
{
	vez__lock_enter(&c->lock_);
	bool fired = take_arrivals(c, FIRED);
	if (!fired)
		claim_all(c, claimed);
	vez__lock_exit(&c->lock_);
	return !fired;
}

bool vez__token_has_waits(vez_cancel_t *c)
{
	vez__lock_enter(&c->lock_);
	bool has = (vez__load(&c->arrivals_, relaxed) & ~FIRED) || c->enlisted_;
	vez__lock_exit(&c->lock_);
	return has;
}

void vez__token_make_fired(vez_cancel_t *c)
{
	c->arrivals_ = FIRED;
}

bool vez_cancel_fired(const vez_cancel_t *c)
{
	return vez__token_is_fired(c);
}

bool vez_cancel_clear(vez_cancel_t *c)
{
	return vez__fetch_and(&c->arrivals_, ~FIRED, acq_rel) & FIRED;
}
