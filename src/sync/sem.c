/* SPDX-License-Identifier: MIT */
/*
 * The counting semaphore: n permits at a time, by key, then first come first served.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       CLOSED               set by close, never cleared
 *	bit 3       BARGING              constant
 *	bit 4       BEHIND               the first in the queue has a key above 0: a newcomer with key 0 comes before
 *	                                 it. Set and cleared inside; late to be set, never late to be cleared
 *	bit 5       POKED                barging: a waiter was told to come and look; set inside, cleared by it when
 *	                                 it comes
 *	bit 6       HANDOFF              barging: the first has been passed over long enough: newcomers queue. Inside
 *	bit 7       WARNED               barging: the first knows that it may be passed over, and keeps the time. Inside
 *	bits 8-31   demand               sum of what queued requests want, DEMAND_MOST if it is more; 0: nobody
 *	                                 is queued. Inside
 *	bits 32-63  permits              what nobody holds. Anybody
 *  demand_        the sum itself; inside
 *  below_max_     VEZ_SEM_MAX less the maximum (so that all-zero bytes are a semaphore); constant
 *  a request's value is what it wants.
 * Invariants
 *  S1 permits <= max + demand. A release decides by this alone, in the exchange that adds its permits. It is exact: if
 *     all who wait can be served, what is left is permits - demand; if not, what is left is less than some request
 *     wants, so at most max. (Above DEMAND_MOST it needs the sum itself, and so the lock.)
 *  S2 while nobody is inside: FIFO: the first in the queue wants more than there is. BARGING: so, or POKED. Who leaves
 *     made it so, by the word that its leaving exchange expects; and a release that finds queued requests enters or
 *     finds somebody inside.
 *  S3 permits that were decided to go to queued requests go there: without BARGING others take only what is left when
 *     all who wait are served, or what is not enough for the first, if they come before it by key.
 *  S4 acquires wait until nobody is inside, so that who lets them go has left. try_acquire does not: it may hold
 *     permits while the one who released them is still inside; vez_sem_destroy waits for that one.
 * Ordering
 *  Permits: every exchange on the word that adds permits releases, every one that takes them acquires, and all are
 *  read-modify-write, so they form one release sequence: an acquire sees what came before every release that fed the
 *  permits. release (busy) -> serve: the one inside grants by acq_rel, and publishes to the waiter (word.c).
 * Progress and fairness
 *  Release is lock-free. It never waits for the one inside: where the monitor is busy its permits lie in the word,
 *  the leaver's exchange fails, and the leaver serves. Nobody is passed over, but by key; with BARGING for about 1 ms:
 *  the first is warned before it is passed over for the first time, and keeps the time itself.
 * Lifetime: see S4 and monitor.c. A release's last touch is its exchange, or the leaving one.
 * Sources: Dijkstra (1965); n permits, FIFO, by execution delegation: C. Martins (2009); the bound on barging: the fair
 *  hand-off after 1 ms of WebKit's WTF::Lock and of nsync's long wait.
 */
#include "vez/sem.h"

#include <errno.h>
#include <string.h>

#include "../futex/sys.h"
#include "engine.h"

#define CLOSED UINT64_C(0x04)
#define BARGING UINT64_C(0x08)
#define BEHIND UINT64_C(0x10)
#define POKED UINT64_C(0x20)
#define HANDOFF UINT64_C(0x40)
#define WARNED UINT64_C(0x80)
#define DEMAND_MOST UINT64_C(0xffffff)
#define DEMAND_BITS (DEMAND_MOST << 8)

static uint64_t permits_in(uint64_t word)
{
	return word >> 32;
}

static uint64_t demand_in(uint64_t word)
{
	return (word & DEMAND_BITS) >> 8;
}

static uint64_t with_permits(uint64_t n)
{
	return n << 32;
}

static uint64_t with_demand(uint64_t word, uint64_t demand)
{
	return (word & ~DEMAND_BITS) | (demand < DEMAND_MOST ? demand : DEMAND_MOST) << 8;
}

static uint64_t max_of(const vez_sem_t *s)
{
	return VEZ_SEM_MAX - s->below_max_;
}

static vez_sem_t *sem_of(vez_monitor_t *m)
{
	return (vez_sem_t *)((char *)m - offsetof(vez_sem_t, monitor_));
}

/* ---- inside ---- */

/* The word when the first in the queue has changed: demand and marks as they now must be. */
static uint64_t with_queue(uint64_t word, uint64_t demand, const vez_request_t *first)
{
	word &= ~(BEHIND | HANDOFF | WARNED);
	if (first && first->key_ > 0)
		word |= BEHIND;
	return with_demand(word, demand);
}

/* Takes from seen what r, the first, wants. False: the word has changed. */
static bool take_for(vez_sem_t *s, uint64_t seen, const vez_request_t *r)
{
	uint64_t demand = s->demand_ - r->value_;
	uint64_t next = with_queue(seen, demand, vez_room_next(&s->room_, r)) - with_permits(r->value_);
	if (!vez__cas(&s->monitor_.word_, &seen, next, acq_rel))
		return false;
	s->demand_ = demand;
	return true;
}

/* Barging: tells the first to come and look: its permits are there, or somebody passes it over. */
static bool poke(vez_sem_t *s, uint64_t seen, vez_request_t *first)
{
	if ((seen & POKED) || !vez__request_poke(&s->monitor_, first))
		return false;
	vez__fetch_or(&s->monitor_.word_, POKED | WARNED, relaxed);
	return true;
}

/* Barging: what the first wants is there. Who has no thread that could look is handed it. */
static bool offer(vez_sem_t *s, uint64_t seen, vez_request_t *first)
{
	if (!vez__request_is_async(first))
		return poke(s, seen, first);
	vez__fetch_or(&s->monitor_.word_, HANDOFF, relaxed);
	return true;
}

static bool serve(vez_monitor_t *m, uint64_t seen)
{
	vez_sem_t *s = sem_of(m);
	vez_request_t *first = vez_room_first(&s->room_);
	if (!first || first->value_ > permits_in(seen))
		return false;
	bool hands_off = !(seen & BARGING) || (seen & HANDOFF) || permits_in(seen) > max_of(s);
	if (!hands_off)
		return offer(s, seen, first);
	if (!vez__request_claim(first))
		return vez__request_drop(m, seen, first);
	if (take_for(s, seen, first))
		vez_monitor_settle(m, first, 0);
	return true;
}

/* r leaves without permits. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	vez_sem_t *s = sem_of(m);
	uint64_t demand = s->demand_ - r->value_;
	uint64_t next = with_demand(seen, demand);
	if (r == vez_room_first(&s->room_))
		next = with_queue(seen, demand, vez_room_next(&s->room_, r));
	if (!vez__cas(&m->word_, &seen, next, acq_rel))
		return false;
	s->demand_ = demand;
	return true;
}

/* Who was poked is here: the first may be poked again. */
static void came(vez_monitor_t *m)
{
	if (vez__load(&m->word_, relaxed) & POKED)
		vez__fetch_and(&m->word_, ~POKED, relaxed);
}

/* r, which was poked or is leaving, is here: it takes its permits if it is the first and they are still there. */
static void look(vez_monitor_t *m, vez_request_t *r)
{
	vez_sem_t *s = sem_of(m);
	while (!vez__request_settled(r) && r == vez_room_first(&s->room_)) {
		uint64_t seen = vez__load(&m->word_, relaxed);
		if (r->value_ > permits_in(seen)) {
			if ((seen & BARGING) && vez__request_lost_patience(r))
				vez__fetch_or(&m->word_, HANDOFF, relaxed);
			return;
		}
		if (take_for(s, seen, r))
			vez__request_settle_own(r, 0);
	}
}

static const struct vez__ops sem_ops = {
	.type = VEZ__SEM, .serve = serve, .came = came, .look = look, .take_back = take_back,
};

/* What a newcomer finds inside. */
enum verdict { TAKES, CLOSED_TO_IT, WAITS };

/* Whether a newcomer comes before those who wait. With BARGING the first is warned before. */
static bool comes_first(vez_sem_t *s, uint64_t seen, uint64_t n, int64_t key)
{
	vez_request_t *first = vez_room_first(&s->room_);
	if (!first || permits_in(seen) >= s->demand_ + n)
		return true;
	if (!(seen & BARGING))
		return key < first->key_;
	if (vez__request_is_async(first))
		return false;
	if (!(seen & (WARNED | HANDOFF)))
		poke(s, seen, first);
	return !(seen & HANDOFF);
}

/* Inside: serves those who wait, then takes n permits for a newcomer if it can have them. */
static enum verdict take_inside(vez_sem_t *s, uint64_t n, const vez_request_t *newcomer)
{
	for (;;) {
		uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
		if (serve(&s->monitor_, seen))
			continue;
		if (seen & CLOSED)
			return CLOSED_TO_IT;
		if (n > 0 && (permits_in(seen) < n || vez__request_must_queue(newcomer) ||
			      !comes_first(s, seen, n, newcomer->key_)))
			return WAITS;
		if (vez__cas(&s->monitor_.word_, &seen, seen - with_permits(n), acquire))
			return TAKES;
	}
}

/* Inside: the word when r joins the queue. */
static void join(vez_sem_t *s, vez_request_t *r)
{
	const vez_request_t *first = vez_room_first(&s->room_);
	uint64_t clears = BEHIND;
	if (!first || r->key_ < first->key_) {
		first = r;
		clears |= WARNED;
	}
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	uint64_t next;
	s->demand_ += r->value_;
	do {
		next = with_demand(seen & ~clears, s->demand_);
		if (first->key_ > 0)
			next |= BEHIND;
	} while (!vez__cas(&s->monitor_.word_, &seen, next, acq_rel));
	vez__request_insert(r);
}

/* ---- acquire ---- */

static const int verdicts[] = { [TAKES] = 0, [CLOSED_TO_IT] = VEZ_ECLOSED, [WAITS] = EBUSY };

/* 0, VEZ_ECLOSED or ECANCELED; EINPROGRESS: r is queued. */
static VEZ__COLD int file(vez_sem_t *s, uint32_t n, vez_request_t *r)
{
	r->value_ = n;
	vez__monitor_enter(&s->monitor_);
	int rc = verdicts[take_inside(s, n, r)];
	if (rc == EBUSY && !vez__request_prepare(&s->monitor_, &s->room_, r, &sem_ops))
		rc = ECANCELED;
	if (rc == EBUSY) {
		join(s, r);
		rc = vez__request_filed(&s->monitor_, r);
	}
	vez__monitor_leave(&s->monitor_, &sem_ops);
	return rc;
}

static VEZ__COLD int acquire_waiting(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline,
				     vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, key, cancel);
	int rc = file(s, n, &r);
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

static VEZ__COLD int attempt_inside(vez_sem_t *s, uint32_t n, int64_t key)
{
	vez_request_t r;
	vez__request_mine(&r, key, NULL);
	vez__monitor_enter(&s->monitor_);
	int rc = verdicts[take_inside(s, n, &r)];
	vez__monitor_leave(&s->monitor_, &sem_ops);
	return rc;
}

/* One attempt without waiting: from the word alone, but where the queue's keys decide. */
static int attempt(vez_sem_t *s, uint32_t n, int64_t key)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
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
		if (seen & BARGING ? !(seen & (WARNED | HANDOFF)) : key < 0 || (seen & BEHIND))
			return attempt_inside(s, n, key);
		if (!(seen & BARGING) || (seen & HANDOFF))
			return EBUSY;
	} while (!vez__cas(&s->monitor_.word_, &seen, seen - with_permits(n), acquire));
	return 0;
}

/* The fast path: nobody waits, nobody is inside, the permits are there. */
static inline bool acquire_fast(vez_sem_t *s, uint32_t n)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	return !(seen & (DEMAND_BITS | CLOSED | VEZ__LOCKED)) && seen >= with_permits(n) &&
	       vez__cas(&s->monitor_.word_, &seen, seen - with_permits(n), acquire);
}

static VEZ__COLD int acquire_slow(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline,
				  vez_cancel_t *cancel)
{
	if (n > max_of(s))
		return EINVAL;
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (!vez__deadline_passed(deadline))
		return acquire_waiting(s, n, key, deadline, cancel);
	return vez__no_time_left(attempt(s, n, key));
}

int vez_sem_acquire(vez_sem_t *s, uint32_t n)
{
	return VEZ__LIKELY(acquire_fast(s, n)) ? 0 : acquire_slow(s, n, 0, VEZ_FOREVER, NULL);
}

int vez_sem_try_acquire(vez_sem_t *s, uint32_t n)
{
	return n > max_of(s) ? EINVAL : attempt(s, n, 0);
}

int vez_sem_acquire_until(vez_sem_t *s, uint32_t n, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_sem_acquire_key(s, n, 0, deadline, cancel);
}

int vez_sem_acquire_key(vez_sem_t *s, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = cancel && vez_cancel_fired(cancel);
	return !fired && VEZ__LIKELY(acquire_fast(s, n)) ? 0 : acquire_slow(s, n, key, deadline, cancel);
}

int vez_sem_acquire_async(vez_sem_t *s, uint32_t n, vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (n > max_of(s))
		rc = EINVAL;
	if (rc == 0 && (vez__request_must_queue(r) || !acquire_fast(s, n)))
		rc = vez__async_waits(r) ? file(s, n, r) : vez__no_time_left(attempt(s, n, r->key_));
	return vez__async_end(r, rc);
}

/* ---- release ---- */

/* More waits than the word can count: decides by the sum itself, and adds the permits piece by piece. */
static VEZ__COLD int release_inside(vez_sem_t *s, uint64_t n)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	int rc = permits_in(seen) + n > max_of(s) + s->demand_ ? EOVERFLOW : 0;
	while (rc == 0 && n > 0) {
		if (serve(&s->monitor_, seen)) {
			seen = vez__load(&s->monitor_.word_, relaxed);
			continue;
		}
		uint64_t fits = max_of(s) + demand_in(seen) - permits_in(seen);
		uint64_t piece = n < fits ? n : fits;
		if (vez__cas(&s->monitor_.word_, &seen, seen + with_permits(piece), acq_rel)) {
			n -= piece;
			seen = vez__load(&s->monitor_.word_, relaxed);
		}
	}
	vez__monitor_leave(&s->monitor_, &sem_ops);
	return rc;
}

/* What a release does to the word besides adding its permits: enters, where somebody waits and nobody will see
 * to it. */
static uint64_t entering(uint64_t seen)
{
	if (demand_in(seen) == 0 || (seen & VEZ__LOCKED))
		return 0;
	return (seen & BARGING) && (seen & POKED) && !(seen & HANDOFF) ? 0 : VEZ__LOCKED;
}

static VEZ__COLD int release_slow(vez_sem_t *s, uint32_t n)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	uint64_t adds, enters;
	do {
		bool counted = permits_in(seen) + n <= max_of(s) + demand_in(seen);
		if (!counted && (demand_in(seen) < DEMAND_MOST || (seen & VEZ__LOCKED)))
			return EOVERFLOW;
		adds = counted ? n : 0;
		enters = counted ? entering(seen) : VEZ__LOCKED;
	} while (!vez__cas(&s->monitor_.word_, &seen, (seen | enters) + with_permits(adds), acq_rel));
	if (adds < n)
		return release_inside(s, n);
	if (enters)
		vez__monitor_leave(&s->monitor_, &sem_ops);
	return 0;
}

/* The fast path: nobody waits, and n more fit. Everything that the word decides is one comparison away from its load:
 * the exchange cannot begin before. */
static inline bool release_fast(vez_sem_t *s, uint32_t n)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	uint64_t max = max_of(s);
	return n <= max && !(seen & DEMAND_BITS) && seen < with_permits(max - n + 1) &&
	       vez__cas(&s->monitor_.word_, &seen, seen + with_permits(n), release);
}

int vez_sem_release(vez_sem_t *s, uint32_t n)
{
	return VEZ__LIKELY(release_fast(s, n)) ? 0 : release_slow(s, n);
}

/* ---- the rest ---- */

uint32_t vez_sem_drain(vez_sem_t *s)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	while (demand_in(seen) == 0)
		if (vez__cas(&s->monitor_.word_, &seen, seen - with_permits(permits_in(seen)), acquire))
			return (uint32_t)permits_in(seen);
	vez__monitor_enter(&s->monitor_);
	do
		seen = vez__load(&s->monitor_.word_, relaxed);
	while (serve(&s->monitor_, seen) ||
	       !vez__cas(&s->monitor_.word_, &seen, seen - with_permits(permits_in(seen)), acquire));
	vez__monitor_leave(&s->monitor_, &sem_ops);
	return (uint32_t)permits_in(seen);
}

int vez_sem_close(vez_sem_t *s)
{
	uint64_t seen;
	vez__monitor_enter(&s->monitor_);
	do {
		/* Barging: what suffices for the first is granted before, not offered. */
		if (vez_room_first(&s->room_))
			vez__fetch_or(&s->monitor_.word_, HANDOFF, relaxed);
		seen = vez__load(&s->monitor_.word_, relaxed);
	} while (serve(&s->monitor_, seen) ||
		 !vez__cas(&s->monitor_.word_, &seen, with_queue(seen | CLOSED, 0, NULL), acq_rel));
	s->demand_ = 0;
	for (vez_request_t *r; (r = vez_room_first(&s->room_));)
		vez_monitor_settle(&s->monitor_, r, VEZ_ECLOSED);
	vez__monitor_leave(&s->monitor_, &sem_ops);
	return 0;
}

uint32_t vez_sem_permits(const vez_sem_t *s)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	uint64_t permits = permits_in(seen);
	uint64_t demand = demand_in(seen);
	/* What suffices for all who wait goes to them, though they may not have it yet. */
	if (!(seen & BARGING) && demand < DEMAND_MOST && permits >= demand)
		permits -= demand;
	return (uint32_t)(permits < max_of(s) ? permits : max_of(s));
}

size_t vez_sem_waiters(const vez_sem_t *s)
{
	return demand_in(vez__load(&s->monitor_.word_, acquire)) ? vez_room_length(&s->room_) : 0;
}

int vez_sem_init(vez_sem_t *s, uint32_t permits, uint32_t max, unsigned flags)
{
	if (max == 0)
		max = VEZ_SEM_MAX;
	if (max > VEZ_SEM_MAX || permits > max || (flags & ~VEZ_BARGING))
		return EINVAL;
	memset(s, 0, sizeof *s);
	s->monitor_.word_ = with_permits(permits) | (flags & VEZ_BARGING ? BARGING : 0);
	s->below_max_ = VEZ_SEM_MAX - max;
	return 0;
}

int vez_sem_destroy(vez_sem_t *s)
{
	vez__monitor_enter(&s->monitor_);
	return vez__monitor_retire(&s->monitor_, &sem_ops, false);
}
