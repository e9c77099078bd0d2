/* SPDX-License-Identifier: MIT */
/*
 * The counting semaphore: n permits at a time, by key, then first come first served.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       CLOSED               set by close, never cleared
 *	bit 3       BARGING              constant
 *	bit 4       BEHIND               the first in the queue has a key above 0: a newcomer with key 0 comes before
 *	                                 it. Set and cleared inside; late to be set, never late to be cleared
 *	bits 5-6    ASKED, HANDOFF       barging.h
 *	bit 7       WARNED               barging: the first knows that it may be passed over, and keeps the time. Inside
 *	bit 8       LIMITED              the maximum is below VEZ_SEM_MAX; constant
 *	bits 9-31   demand               sum of what queued requests want, DEMAND_MOST if it is more; 0: nobody
 *	                                 is queued. Inside
 *	bits 32-63  permits              what nobody holds. Anybody
 *  queue_         the first of those who wait. Its with_.sum_ is the sum of what all of them want; inside
 *  below_max_     VEZ_SEM_MAX less the maximum (so that all-zero bytes are a semaphore); constant
 *  a request's value is what it wants.
 * Invariants
 *  S1 permits <= max + demand. A release decides by this alone, in the exchange that adds its permits. It is exact: if
 *     all who wait can be served, what is left is permits - demand; if not, what is left is less than some request
 *     wants, so at most max. (Above DEMAND_MOST it needs the sum itself, and so the lock.)
 *  S2 while nobody is inside: FIFO: the first in the queue wants more than there is. BARGING: so, or ASKED. A release
 *     that finds queued requests enters or finds somebody inside.
 *  S3 permits that were decided to go to queued requests go there: without BARGING others take only what is left when
 *     all who wait are served, or what is not enough for the first, if they come before it by key.
 * Ordering
 *  Permits: every exchange on the word that adds permits releases, every one that takes them acquires (core.c): an
 *  acquire sees what came before every release that fed the permits. release (busy) -> serve: the one inside grants by
 *  acq_rel, and publishes to the waiter (word.c).
 * Progress and fairness
 *  Release is lock-free. It never waits for the one inside: where somebody is inside its permits lie in the word,
 *  the leaver's exchange fails, and the leaver serves. Nobody is passed over, but by key; with BARGING for about 1 ms:
 *  see barging.c.
 * Lifetime: core.c C5. A release's last touch is its exchange, or the leaving one.
 * Sources: Dijkstra (1965); n permits, FIFO, by execution delegation: C. Martins (2009); barging.c.
 */
#include "vez/sem.h"

#include <string.h>

#include "barging.h"

#define CLOSED UINT64_C(0x04)
#define BARGING UINT64_C(0x08)
#define BEHIND UINT64_C(0x10)
#define WARNED UINT64_C(0x80)
#define LIMITED UINT64_C(0x100)
#define DEMAND_SHIFT 9
#define DEMAND_MOST UINT64_C(0x7fffff)
#define DEMAND_BITS (DEMAND_MOST << DEMAND_SHIFT)

static const struct vez__rules sem_rules;

static uint64_t permits_in(uint64_t word)
{
	return word >> 32;
}

static uint64_t demand_in(uint64_t word)
{
	return (word & DEMAND_BITS) >> DEMAND_SHIFT;
}

static uint64_t with_permits(uint64_t n)
{
	return n << 32;
}

static uint64_t with_demand(uint64_t word, uint64_t demand)
{
	return (word & ~DEMAND_BITS) | (demand < DEMAND_MOST ? demand : DEMAND_MOST) << DEMAND_SHIFT;
}

static uint64_t max_of(const vez_sem_t *s)
{
	return VEZ_SEM_MAX - s->below_max_;
}

static vez_sem_t *sem_of(const struct vez__stay *in)
{
	return (vez_sem_t *)in->core;
}

/* ---- inside ---- */

static uint64_t demand_of(const vez_sem_t *s)
{
	return s->queue_ ? s->queue_->with_.sum_ : 0;
}

/* This request (or nobody) is, or will be, the first. */
static void set_demand(vez_request_t *first, uint64_t demand)
{
	if (first)
		first->with_.sum_ = demand;
}

/* The word when the first in the queue has changed: demand and marks as they now must be. */
static uint64_t with_queue(uint64_t word, uint64_t demand, const vez_request_t *first)
{
	word &= ~(BEHIND | VEZ__HANDOFF | WARNED);
	if (first && first->key_ > 0)
		word |= BEHIND;
	return with_demand(word, demand);
}

/* Takes from seen what r, the first, wants. False: the word has changed. */
static bool take_for(struct vez__stay *in, uint64_t seen, const vez_request_t *r)
{
	vez_request_t *second = vez__queue_next(r, r);
	uint64_t demand = r->with_.sum_ - r->value_;
	if (!vez__change(in, seen, with_queue(seen, demand, second) - with_permits(r->value_)))
		return false;
	set_demand(second, demand);
	return true;
}

/* Barging: what the first wants is there. One that has no thread which could retry is handed it. */
static bool offer(struct vez__stay *in, uint64_t seen, vez_request_t *first)
{
	if (!vez__is_async(first))
		return vez__barging_ask(in, seen, first, WARNED);
	vez__fetch_or(&in->core->word_, VEZ__HANDOFF, relaxed);
	return true;
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	vez_sem_t *s = sem_of(in);
	vez_request_t *first = s->queue_;
	if (!first || first->value_ > permits_in(seen))
		return false;
	bool hands_off = !(seen & BARGING) || (seen & VEZ__HANDOFF) || permits_in(seen) > max_of(s);
	if (!hands_off)
		return offer(in, seen, first);
	if (!vez__win(first))
		return vez__drop(in, seen, first);
	if (take_for(in, seen, first))
		vez__settle(in, first, 0);
	return true;
}

/* r leaves without permits. */
static bool roll_back(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	vez_request_t *first = sem_of(in)->queue_;
	uint64_t demand = first->with_.sum_ - r->value_;
	uint64_t next = with_demand(seen, demand);
	if (r == first) {
		first = vez__queue_next(r, r);
		next = with_queue(seen, demand, first);
	}
	if (!vez__change(in, seen, next))
		return false;
	set_demand(first, demand);
	return true;
}

static bool is_free_for(uint64_t seen, const vez_request_t *r)
{
	return r->value_ <= permits_in(seen);
}

static void retry(struct vez__stay *in, vez_request_t *r)
{
	vez__barging_retry(in, r, &sem_of(in)->queue_, is_free_for, take_for, vez__word_of(in) & BARGING);
}

/* Whether a newcomer comes before those who wait. With BARGING the first is warned before. */
static bool comes_first(struct vez__stay *in, uint64_t seen, const vez_request_t *newcomer)
{
	vez_request_t *first = sem_of(in)->queue_;
	if (!first || permits_in(seen) >= demand_of(sem_of(in)) + newcomer->value_)
		return true;
	if (!(seen & BARGING))
		return newcomer->key_ < first->key_;
	if (vez__is_async(first))
		return false;
	if (!(seen & (WARNED | VEZ__HANDOFF)))
		vez__barging_ask(in, seen, first, WARNED);
	return !(seen & VEZ__HANDOFF);
}

static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (seen & CLOSED)
		return VEZ_ECLOSED;
	if (r->value_ > 0 && (permits_in(seen) < r->value_ || vez__must_queue(r) || !comes_first(in, seen, r)))
		return EBUSY;
	return vez__change(in, seen, seen - with_permits(r->value_)) ? 0 : EAGAIN;
}

static bool mark(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	vez_request_t *first = sem_of(in)->queue_;
	uint64_t demand = demand_of(sem_of(in)) + r->value_;
	uint64_t clears = BEHIND;
	if (!first || r->key_ < first->key_) {
		first = r;
		clears |= WARNED;
	}
	uint64_t next = with_demand(seen & ~clears, demand);
	if (!vez__change(in, seen, first->key_ > 0 ? next | BEHIND : next))
		return false;
	set_demand(first, demand);
	return true;
}

/* ---- acquire ---- */

/* One attempt without waiting, by the word alone. EAGAIN: the keys of those who wait decide, or the clock. */
static inline int take_at_once(struct vez__core *c, uint64_t n, int64_t key)
{
	uint64_t seen = vez__load(&c->word_, relaxed);
	do {
		uint64_t permits = permits_in(seen);
		uint64_t demand = demand_in(seen);
		if (seen & CLOSED)
			return VEZ_ECLOSED;
		if (n == 0)
			return 0;
		if (permits < n)
			return EBUSY;
		if (demand == 0 || (demand < DEMAND_MOST && permits >= n + demand))
			continue;
		if (seen & BARGING ? !(seen & (WARNED | VEZ__HANDOFF)) : key < 0 || (seen & BEHIND))
			return EAGAIN;
		if (!(seen & BARGING) || (seen & VEZ__HANDOFF))
			return EBUSY;
	} while (!vez__cas(&c->word_, &seen, seen - with_permits(n), acquire));
	return 0;
}

static int attempt(struct vez__core *c, vez_request_t *r)
{
	int rc = take_at_once(c, r->value_, r->key_);
	return rc == EAGAIN ? vez__attempt_inside(c, &sem_rules, r) : rc;
}

/* The fast path: nobody waits, nobody is inside, the permits are there. */
static inline bool acquire_fast(vez_sem_t *s, uint32_t n)
{
	uint64_t seen = vez__load(&s->core_.word_, relaxed);
	return !vez__checked() && !(seen & (DEMAND_BITS | CLOSED | VEZ__LOCKED)) && seen >= with_permits(n) &&
	       vez__cas_fast(&s->core_.word_, &seen, seen - with_permits(n), acquire);
}

static bool fast(struct vez__core *c, vez_request_t *r)
{
	return acquire_fast((vez_sem_t *)c, (uint32_t)r->value_);
}

static const struct vez__rules sem_rules = {
	.type = VEZ__SEM, .sleeps = VEZ__BESIDE, .queue = offsetof(vez_sem_t, queue_), .fast = fast, .attempt = attempt,
	.take = take, .mark = mark, .serve = serve, .roll_back = roll_back, .entered = vez__barging_entered,
	.retry = retry,
};

static VEZ__SLOW int acquire_slow(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (n > max_of(s))
		return EINVAL;
	const vez_request_t like = { .key_ = key, .value_ = n, .cancel_ = cancel };
	return vez__wait(&s->core_, &sem_rules, &like, deadline);
}

int vez_sem_acquire(vez_sem_t *s, uint32_t n)
{
	return VEZ__LIKELY(acquire_fast(s, n)) ? 0 : acquire_slow(s, n, 0, VEZ_FOREVER, NULL);
}

int vez_sem_try_acquire(vez_sem_t *s, uint32_t n)
{
	int rc = n > max_of(s) ? EINVAL : take_at_once(&s->core_, n, 0);
	return rc == EAGAIN ? vez__attempt(&s->core_, &sem_rules, n) : rc;
}

int vez_sem_acquire_until(vez_sem_t *s, uint32_t n, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_sem_acquire_key(s, n, 0, deadline, cancel);
}

int vez_sem_acquire_key(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	return !fired && VEZ__LIKELY(acquire_fast(s, n)) ? 0 : acquire_slow(s, n, key, deadline, cancel);
}

int vez_sem_acquire_async(vez_sem_t *s, uint32_t n, vez_request_t *r)
{
	r->value_ = n;
	if (n > max_of(s))
		return vez__refuse_async(r, EINVAL);
	return VEZ__LIKELY(vez__granted_at_once(&s->core_, fast, r)) ? 0 : vez__file_async(&s->core_, &sem_rules, r);
}

/* ---- release ---- */

/* Inside, by an exchange of its own: more waits than the word can count: decides by the sum itself, and adds the
 * permits piece by piece. */
static VEZ__COLD int release_inside(vez_sem_t *s, uint64_t n)
{
	struct vez__stay in;
	vez__entered(&in, &s->core_);
	uint64_t seen = vez__word_of(&in);
	int rc = permits_in(seen) + n > max_of(s) + demand_of(s) ? EOVERFLOW : 0;
	while (rc == 0 && n > 0) {
		seen = vez__word_of(&in);
		if (serve(&in, seen))
			continue;
		uint64_t fits = max_of(s) + demand_in(seen) - permits_in(seen);
		uint64_t piece = n < fits ? n : fits;
		if (vez__change(&in, seen, seen + with_permits(piece)))
			n -= piece;
	}
	vez__calls_in_handler(1);
	vez__leave(&in, &sem_rules);
	vez__calls_in_handler(-1);
	return rc;
}

/* What a release does to the word besides adding its permits: enters, where somebody waits and nobody will see
 * to it. */
static uint64_t entering(uint64_t seen)
{
	if (demand_in(seen) == 0 || (seen & VEZ__LOCKED))
		return 0;
	return (seen & BARGING) && (seen & VEZ__ASKED) && !(seen & VEZ__HANDOFF) ? 0 : VEZ__LOCKED;
}

static VEZ__SLOW int release_slow(vez_sem_t *s, uint32_t n)
{
	uint64_t seen = vez__load(&s->core_.word_, relaxed);
	uint64_t adds, enters;
	do {
		bool counted = permits_in(seen) + n <= max_of(s) + demand_in(seen);
		if (!counted && (demand_in(seen) < DEMAND_MOST || (seen & VEZ__LOCKED)))
			return EOVERFLOW;
		adds = counted ? n : 0;
		enters = counted ? entering(seen) : VEZ__LOCKED;
	} while (!vez__cas(&s->core_.word_, &seen, (seen | enters) + with_permits(adds), acq_rel));
	if (adds < n)
		return release_inside(s, n);
	if (enters)
		vez__leave_in_handler(&s->core_, &sem_rules);
	return 0;
}

/* The fast path: nobody waits, and n more fit. Everything that the word decides is one comparison away from its load:
 * the exchange cannot begin before. The maximum is only looked at where there is one: with objects that are not in the
 * cache, a second load behind the acquire's exchange makes the pair of calls 15 % slower. */
static inline bool release_fast(vez_sem_t *s, uint32_t n)
{
	uint64_t seen = vez__load(&s->core_.word_, relaxed);
	uint64_t max = seen & LIMITED ? max_of(s) : VEZ_SEM_MAX;
	return !vez__checked() && n <= max && !(seen & DEMAND_BITS) && seen < with_permits(max - n + 1) &&
	       vez__cas_fast(&s->core_.word_, &seen, seen + with_permits(n), release);
}

int vez_sem_release(vez_sem_t *s, uint32_t n)
{
	return VEZ__LIKELY(release_fast(s, n)) ? 0 : release_slow(s, n);
}

/* ---- the rest ---- */

uint32_t vez_sem_drain(vez_sem_t *s)
{
	struct vez__stay in;
	uint64_t seen = vez__load(&s->core_.word_, relaxed);
	while (demand_in(seen) == 0)
		if (vez__cas(&s->core_.word_, &seen, seen - with_permits(permits_in(seen)), acquire))
			return (uint32_t)permits_in(seen);
	vez__enter(&in, &s->core_);
	do
		seen = vez__word_of(&in);
	while (serve(&in, seen) || !vez__change(&in, seen, seen - with_permits(permits_in(seen))));
	vez__leave(&in, &sem_rules);
	return (uint32_t)permits_in(seen);
}

int vez_sem_close(vez_sem_t *s)
{
	struct vez__stay in;
	uint64_t seen;
	vez__enter(&in, &s->core_);
	do {
		/* Barging: what suffices for the first is granted before, not offered. */
		if (s->queue_)
			vez__fetch_or(&s->core_.word_, VEZ__HANDOFF, relaxed);
		seen = vez__word_of(&in);
	} while (serve(&in, seen) || !vez__change(&in, seen, with_queue(seen | CLOSED, 0, NULL)));
	vez__settle_all(&in, &s->queue_, VEZ_ECLOSED);
	vez__leave(&in, &sem_rules);
	return 0;
}

uint32_t vez_sem_permits(const vez_sem_t *s)
{
	uint64_t seen = vez__load(&s->core_.word_, relaxed);
	uint64_t permits = permits_in(seen);
	uint64_t demand = demand_in(seen);
	/* What suffices for all who wait goes to them, though they may not have it yet. */
	if (!(seen & BARGING) && demand < DEMAND_MOST && permits >= demand)
		permits -= demand;
	return (uint32_t)(permits < max_of(s) ? permits : max_of(s));
}

size_t vez_sem_waiters(const vez_sem_t *s)
{
	return demand_in(vez__load(&s->core_.word_, acquire)) ? vez__load(&s->core_.length_, relaxed) : 0;
}

int vez_sem_init(vez_sem_t *s, uint32_t permits, uint32_t max, unsigned flags)
{
	if (max == 0)
		max = VEZ_SEM_MAX;
	if (max > VEZ_SEM_MAX || permits > max || (flags & ~VEZ_BARGING))
		return EINVAL;
	memset(s, 0, sizeof *s);
	s->core_.word_ = with_permits(permits) | (flags & VEZ_BARGING ? BARGING : 0) |
			 (max < VEZ_SEM_MAX ? LIMITED : 0);
	s->below_max_ = VEZ_SEM_MAX - max;
	return 0;
}

int vez_sem_destroy(vez_sem_t *s)
{
	return vez__destroy(&s->core_, &sem_rules, 0);
}
