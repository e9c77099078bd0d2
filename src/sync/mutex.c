/* SPDX-License-Identifier: MIT */
/*
 * The mutex.
 *
 * State
 *  core_.word_
 *	bits 0-1  the lock    futex/lock.h
 *	bit 32    HELD        somebody owns the mutex. Set by the thread that takes it, or for it by the one that grants
 *	                      it; cleared by unlock
 *	bits 5-6  ASKED, HANDOFF   barging.h; HANDOFF while QUEUED always, if FAIR
 *	bit 33    QUEUED      requests are queued. Inside
 *	bits 36-38  FAIR, RECURSIVE, ERRORCHECK   constant
 *	bit 39    NOTED       inspection or a race checker knows the owner. Set by that, after it took it; cleared with HELD
 *  owner_   the owner's number (vez__self) if tracked, else 0. Written by the owner, or for it by the thread that
 *           grants it; read anywhere
 *  holds_   how often it holds; by the owner, or for it by the thread that grants it
 *  a request's value is the number of its thread.
 * Invariants
 *  X1 HELD is only set by an exchange that saw it clear: one owner.
 *  X2 while nobody is inside and the mutex is free, nobody is queued, or the first is entering (ASKED, or its own
 *     deadline). Unlock makes it so: it enters, or finds ASKED, or finds a thread inside that will leave only
 *     past serve.
 *  X3 while HANDOFF, HELD is only set inside, for the first.
 * Ordering
 *  unlock (release) pairs with the exchange in lock (acquire), or with the one inside (acq_rel) that grants or retries,
 *  and then with word.c's publication. owner_ is relaxed: only the owner itself finds its own number there.
 * Progress and fairness
 *  unlock is lock-free. A newcomer passes over the first for about 1 ms at most; then turns are taken in order.
 * Lifetime
 *  unlock's last touch is its exchange, or the leaving one. It enters only when one is queued, whose call keeps the mutex
 *  alive until it was granted, which happens inside.
 * Sources: mutex.h in include/vez.
 */
#include "mutex.h"

#include <string.h>

#include "../futex/self.h"
#include "../futex/spin.h"
#include "barging.h"

#define HELD (UINT64_C(1) << 32)
#define QUEUED (UINT64_C(1) << 33)
#define FAIR (UINT64_C(1) << 36)
#define RECURSIVE (UINT64_C(1) << 37)
#define ERRORCHECK (UINT64_C(1) << 38)
#define NOTED (UINT64_C(1) << 39)
#define TRACKED (RECURSIVE | ERRORCHECK)

static vez_mutex_t *mutex_of(const struct vez__stay *in)
{
	return (vez_mutex_t *)in->core;
}

static bool is_free(uint64_t word)
{
	return !(word & (HELD | VEZ__HANDOFF));
}

static void note_owner(vez_mutex_t *m, uint64_t word, uint64_t owner, uint32_t holds)
{
	if (!(word & TRACKED))
		return;
	vez__store(&m->owner_, owner, relaxed);
	m->holds_ = holds;
}

/* ---- inside ---- */

/* The word when this request (or nobody) is the first of those who are left. */
static uint64_t with_first(uint64_t word, const vez_request_t *first)
{
	word &= ~(QUEUED | VEZ__HANDOFF);
	if (!first)
		return word;
	return word | QUEUED | (word & FAIR ? VEZ__HANDOFF : 0);
}

static bool is_free_for(uint64_t seen, const vez_request_t *r)
{
	(void)r;
	return !(seen & HELD);
}

/* Takes the free mutex for r, the first. False: the word has changed. */
static bool take_for(struct vez__stay *in, uint64_t seen, const vez_request_t *r)
{
	uint64_t next = with_first(seen, vez__queue_next(r, r)) | HELD;
	if (!vez__change(in, seen, next))
		return false;
	note_owner(mutex_of(in), next, r->value_, 1);
	return true;
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	vez_request_t *first = mutex_of(in)->queue_;
	if (!first || (seen & HELD))
		return false;
	if (!(seen & VEZ__HANDOFF))
		return vez__barging_ask(in, seen, first, 0);
	if (take_for(in, seen, first))
		vez__settle(in, first, 0);
	return true;
}

static void retry(struct vez__stay *in, vez_request_t *r)
{
	vez__barging_retry(in, r, &mutex_of(in)->queue_, is_free_for, take_for, true);
}

static bool roll_back(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	return r != mutex_of(in)->queue_ || vez__change(in, seen, with_first(seen, vez__queue_next(r, r)));
}

static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	(void)r;
	if (!is_free(seen))
		return EBUSY;
	return vez__change(in, seen, seen | HELD) ? 0 : EAGAIN;
}

static bool mark(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	(void)r;
	return vez__change(in, seen, seen | QUEUED | (seen & FAIR ? VEZ__HANDOFF : 0));
}

/* ---- lock ---- */

/* Takes the mutex if it is free for a newcomer. */
static inline bool try_take(vez_mutex_t *m)
{
	uint64_t seen = vez__load(&m->core_.word_, relaxed);
	while (is_free(seen))
		if (vez__cas(&m->core_.word_, &seen, seen | HELD, acquire))
			return true;
	return false;
}

static int attempt(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return try_take((vez_mutex_t *)c) ? 0 : EBUSY;
}

static const struct vez__rules mutex_rules = {
	.type = VEZ__MUTEX, .queue = offsetof(vez_mutex_t, queue_), .attempt = attempt, .take = take, .mark = mark,
	.serve = serve, .roll_back = roll_back, .entered = vez__barging_entered, .retry = retry,
};

static bool look_again(void *m)
{
	return try_take(m);
}

/* The caller, which owns it now, is known to inspection, or to a race checker, which is told of nothing before. */
static VEZ__COLD void note(vez_mutex_t *m, bool bounded)
{
	if (vez__checked()) {
		vez__told_acquire(&m->core_.word_, sizeof m->core_.word_);
		vez__told_locked(m, bounded);
	}
	if ((vez__inspecting() && vez__inspect_owns(m)) || vez__checked())
		vez__fetch_or(&m->core_.word_, NOTED, relaxed);
}

/* The caller owns it now; whether it would have waited within bounds only. */
static inline int taken(vez_mutex_t *m, bool bounded)
{
	if (vez__watched())
		note(m, bounded);
	return 0;
}

/* The owner locks again. */
static int relock(vez_mutex_t *m, int otherwise)
{
	if (vez__load(&m->core_.word_, relaxed) & ERRORCHECK)
		return otherwise;
	if (m->holds_ == VEZ_MUTEX_MAX_HOLDS)
		return EOVERFLOW;
	m->holds_++;
	return 0;
}

static bool is_owner(const vez_mutex_t *m)
{
	return vez__load(&m->owner_, relaxed) == vez__self();
}

/* Spins, unless there is no time left, then waits. */
static int lock_contended(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (!vez__deadline_passed(deadline) && vez__spin(VEZ__SPIN_MUTEX, VEZ__SPIN_RARELY, look_again, m))
		return 0;
	const vez_request_t like = { .value_ = vez__self(), .cancel_ = cancel };
	return vez__wait(&m->core_, &mutex_rules, &like, deadline);
}

static VEZ__COLD int lock_slow(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	uint64_t word = vez__load(&m->core_.word_, relaxed);
	if (vez__is_fired(cancel))
		return ECANCELED;
	if ((word & TRACKED) && is_owner(m))
		return relock(m, EDEADLK);
	bool bounded = deadline != VEZ_FOREVER || cancel;
	if (vez__checked() && !bounded)
		vez__told_locks(m);
	int rc = try_take(m) ? 0 : lock_contended(m, deadline, cancel);
	if (rc == 0)
		note_owner(m, word, vez__self(), 1);
	return rc == 0 ? taken(m, bounded) : rc;
}

/* Guesses the word first, that of a default mutex which nobody waits for: to load it before the exchange costs 2 ns
 * of 17. */
static inline bool lock_fast(vez_mutex_t *m)
{
	uint64_t guess = 0;
	if (VEZ__LIKELY(vez__cas_fast(&m->core_.word_, &guess, HELD, acquire)))
		return true;
	return !(guess & (HELD | VEZ__HANDOFF | TRACKED)) && vez__cas_fast(&m->core_.word_, &guess, guess | HELD, acquire);
}

int vez_mutex_lock(vez_mutex_t *m)
{
	if (VEZ__LIKELY(lock_fast(m)))
		return taken(m, false);
	return lock_slow(m, VEZ_FOREVER, NULL);
}

int vez_mutex_lock_until(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired(cancel);
	if (!fired && VEZ__LIKELY(lock_fast(m)))
		return taken(m, deadline != VEZ_FOREVER || cancel);
	return lock_slow(m, deadline, cancel);
}

int vez_mutex_trylock(vez_mutex_t *m)
{
	if (VEZ__LIKELY(lock_fast(m)))
		return taken(m, true);
	uint64_t word = vez__load(&m->core_.word_, relaxed);
	if ((word & TRACKED) && is_owner(m))
		return relock(m, EBUSY);
	if (!try_take(m))
		return EBUSY;
	note_owner(m, word, vez__self(), 1);
	return taken(m, true);
}

/* ---- unlock ---- */

/* Whether the unlock has to enter: somebody is queued, and nobody is entering or inside who would see that the mutex
 * is free. */
static inline bool has_to_enter(uint64_t seen)
{
	return (seen & QUEUED) && !(seen & VEZ__LOCKED) && !(seen & VEZ__ASKED);
}

static VEZ__COLD int let_go(vez_mutex_t *m)
{
	uint64_t seen = vez__load(&m->core_.word_, relaxed);
	bool enters;
	if (seen & NOTED)
		vez__inspect_disowns(m);
	if (vez__checked())
		vez__told_unlocks(m);
	do {
		if (!(seen & HELD))
			return EPERM;
		enters = has_to_enter(seen);
	} while (!vez__cas(&m->core_.word_, &seen, (seen & ~(HELD | NOTED)) | (enters ? VEZ__LOCKED : 0), acq_rel));
	if (enters)
		vez__leave_entered(&m->core_, &mutex_rules);
	return 0;
}

static VEZ__COLD int unlock_tracked(vez_mutex_t *m)
{
	if (!is_owner(m))
		return EPERM;
	if (--m->holds_ > 0)
		return 0;
	vez__store(&m->owner_, 0, relaxed);
	return let_go(m);
}

int vez_mutex_unlock(vez_mutex_t *m)
{
	uint64_t seen = vez__load(&m->core_.word_, relaxed);
	if (VEZ__LIKELY((seen & (HELD | NOTED | TRACKED)) == HELD) && VEZ__LIKELY(!has_to_enter(seen)) &&
	    VEZ__LIKELY(vez__cas_fast(&m->core_.word_, &seen, seen & ~HELD, release)))
		return 0;
	return seen & TRACKED ? unlock_tracked(m) : let_go(m);
}

/* ---- for conditions ---- */

bool vez__mutex_is_mine(const vez_mutex_t *m)
{
	uint64_t word = vez__load(&m->core_.word_, relaxed);
	return word & TRACKED ? is_owner(m) : word & HELD;
}

uint32_t vez__mutex_release_all(vez_mutex_t *m)
{
	uint32_t holds = m->holds_;
	note_owner(m, vez__load(&m->core_.word_, relaxed), 0, 0);
	let_go(m);
	return holds;
}

static void set_holds(vez_mutex_t *m, uint32_t holds)
{
	if (vez__load(&m->core_.word_, relaxed) & TRACKED)
		m->holds_ = holds;
}

void vez__mutex_restore(vez_mutex_t *m, uint32_t holds)
{
	set_holds(m, holds);
	taken(m, false);
}

void vez__mutex_retake(vez_mutex_t *m, uint32_t holds)
{
	vez_mutex_lock(m);
	set_holds(m, holds);
}

void vez__mutex_queue(vez_mutex_t *m, vez_request_t *r)
{
	struct vez__stay in;
	vez__enter(&in, &m->core_);
	while (!mark(&in, vez__word_of(&in), r))
		;
	while (r) {
		vez_request_t *next = r->with_.ptr_;
		vez__move_in(&in, &mutex_rules, r);
		r = next;
	}
	vez__leave(&in, &mutex_rules);
}

bool vez__mutex_was_queued(const vez_request_t *r)
{
	return r->rules_ == &mutex_rules;
}

/* ---- the rest ---- */

int vez_mutex_init(vez_mutex_t *m, unsigned flags)
{
	if ((flags & ~(VEZ_FAIR | VEZ_RECURSIVE | VEZ_ERRORCHECK)) ||
	    (flags & (VEZ_RECURSIVE | VEZ_ERRORCHECK)) == (VEZ_RECURSIVE | VEZ_ERRORCHECK))
		return EINVAL;
	memset(m, 0, sizeof *m);
	m->core_.word_ = (flags & VEZ_FAIR ? FAIR : 0) | (flags & VEZ_RECURSIVE ? RECURSIVE : 0) |
			 (flags & VEZ_ERRORCHECK ? ERRORCHECK : 0);
	vez__inspect_left(m); /* who has forked makes what it holds anew */
	if (vez__checked())
		vez__told_made(m);
	return 0;
}

int vez_mutex_destroy(vez_mutex_t *m)
{
	int rc = vez__destroy(&m->core_, &mutex_rules, HELD);
	if (rc == 0 && vez__checked())
		vez__told_gone(m);
	return rc;
}

unsigned vez_mutex_holds(const vez_mutex_t *m)
{
	return is_owner(m) ? m->holds_ : 0;
}

size_t vez_mutex_waiters(const vez_mutex_t *m)
{
	return vez__load(&m->core_.word_, acquire) & QUEUED ? vez__load(&m->core_.length_, relaxed) : 0;
}
