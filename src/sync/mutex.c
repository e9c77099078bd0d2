/* SPDX-License-Identifier: MIT */
/*
 * The mutex.
 *
 * State
 *  monitor_.word_
 *	bits 0-1  the lock    futex/lock.h
 *	bit 32    HELD        somebody owns the mutex. Set by who takes it, or for it by who grants it; cleared
 *	                      by unlock
 *	bit 33    QUEUED      requests are in the room. Inside
 *	bit 34    POKED       the first was told that the mutex is free, and is coming. Set inside, cleared by it
 *	                      when it comes
 *	bit 35    HANDOFF     the mutex goes to the first; newcomers queue. Inside; while QUEUED always, if FAIR
 *	bits 36-38  FAIR, RECURSIVE, ERRORCHECK   constant
 *	bit 39    NOTED       inspection knows the owner. Set by that, after it took it; cleared with HELD
 *  owner_   the owner's number (vez__self) if tracked, else 0. Written by the owner, or for it by who grants; read
 *           anywhere
 *  holds_   how often it holds; by the owner, or for it by who grants
 *  a request's value is the number of its thread.
 * Invariants
 *  X1 HELD is only set by an exchange that saw it clear: one owner.
 *  X2 while nobody is inside and the mutex is free, nobody is queued, or the first is coming (POKED, or its own
 *     deadline). Unlock makes it so: it enters, or finds POKED, or finds somebody inside who will leave only
 *     past serve.
 *  X3 while HANDOFF, only who grants inside sets HELD.
 *  X4 who comes in vain keeps its place and looks again 1 ms after its first vain look; from then on HANDOFF.
 * Ordering
 *  unlock (release) pairs with the exchange in lock (acquire), or with the one inside (acq_rel) that grants or looks,
 *  and then with word.c's publication. owner_ is relaxed: only the owner itself finds its own number there.
 * Progress and fairness
 *  unlock is lock-free. A newcomer passes over the first for about 1 ms at most; then turns are taken in order.
 * Lifetime
 *  unlock's last touch is its exchange, or the leaving one. It enters only when somebody is queued, who keeps the mutex
 *  alive until it was granted, which happens inside.
 * Sources: mutex.h in include/vez.
 */
#include "mutex.h"

#include <errno.h>
#include <string.h>

#include "../futex/self.h"
#include "../futex/spin.h"

#define HELD (UINT64_C(1) << 32)
#define QUEUED (UINT64_C(1) << 33)
#define POKED (UINT64_C(1) << 34)
#define HANDOFF (UINT64_C(1) << 35)
#define FAIR (UINT64_C(1) << 36)
#define RECURSIVE (UINT64_C(1) << 37)
#define ERRORCHECK (UINT64_C(1) << 38)
#define NOTED (UINT64_C(1) << 39)
#define FIRST_PAUSES 64
#define TRACKED (RECURSIVE | ERRORCHECK)

static vez_mutex_t *mutex_of(vez_monitor_t *m)
{
	return (vez_mutex_t *)((char *)m - offsetof(vez_mutex_t, monitor_));
}

static bool is_free(uint64_t word)
{
	return !(word & (HELD | HANDOFF));
}

static void note_owner(vez_mutex_t *m, uint64_t word, uint64_t owner, uint64_t holds)
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
	word &= ~(QUEUED | HANDOFF);
	if (!first)
		return word;
	return word | QUEUED | (word & FAIR ? HANDOFF : 0);
}

/* Takes the free mutex for r, the first. False: the word has changed. */
static bool take_for(vez_mutex_t *m, uint64_t seen, const vez_request_t *r)
{
	uint64_t next = with_first(seen, vez_room_next(&m->room_, r)) | HELD;
	if (!vez__cas(&m->monitor_.word_, &seen, next, acq_rel))
		return false;
	note_owner(m, next, r->value_, 1);
	return true;
}

static bool poke(vez_mutex_t *m, uint64_t seen, vez_request_t *first)
{
	if ((seen & POKED) || !vez__request_poke(&m->monitor_, first))
		return false;
	vez__fetch_or(&m->monitor_.word_, POKED, relaxed);
	return true;
}

static bool serve(vez_monitor_t *monitor, uint64_t seen)
{
	vez_mutex_t *m = mutex_of(monitor);
	vez_request_t *first = vez_room_first(&m->room_);
	if (!first || (seen & HELD))
		return false;
	if (!(seen & HANDOFF))
		return poke(m, seen, first);
	if (take_for(m, seen, first))
		vez_monitor_settle(monitor, first, 0);
	return true;
}

/* Who was poked is here: the first may be poked again. */
static void came(vez_monitor_t *m)
{
	if (vez__load(&m->word_, relaxed) & POKED)
		vez__fetch_and(&m->word_, ~POKED, relaxed);
}

static void look(vez_monitor_t *monitor, vez_request_t *r)
{
	vez_mutex_t *m = mutex_of(monitor);
	while (!vez__request_settled(r) && r == vez_room_first(&m->room_)) {
		uint64_t seen = vez__load(&monitor->word_, relaxed);
		if (seen & HELD) {
			if (vez__request_lost_patience(r))
				vez__fetch_or(&monitor->word_, HANDOFF, relaxed);
			return;
		}
		if (take_for(m, seen, r))
			vez__request_settle_own(r, 0);
	}
}

static bool take_back(vez_monitor_t *monitor, uint64_t seen, vez_request_t *r)
{
	const vez_room_t *room = &mutex_of(monitor)->room_;
	return r != vez_room_first(room) ||
	       vez__cas(&monitor->word_, &seen, with_first(seen, vez_room_next(room, r)), acq_rel);
}

static const struct vez__ops mutex_ops = {
	.type = VEZ__MUTEX, .serve = serve, .came = came, .look = look, .take_back = take_back,
};

/* Takes the mutex for a newcomer, after those who come before it. False: it must wait. */
static bool take_inside(vez_mutex_t *m)
{
	for (;;) {
		uint64_t seen = vez__load(&m->monitor_.word_, relaxed);
		if (serve(&m->monitor_, seen))
			continue;
		if (!is_free(seen))
			return false;
		if (vez__cas(&m->monitor_.word_, &seen, seen | HELD, acquire))
			return true;
	}
}

static void mark_queued(vez_mutex_t *m)
{
	uint64_t marks = QUEUED;
	if (vez__load(&m->monitor_.word_, relaxed) & FAIR)
		marks |= HANDOFF;
	vez__fetch_or(&m->monitor_.word_, marks, acq_rel);
}

/* ---- lock ---- */

/* Takes the mutex if it is free for a newcomer. */
static inline bool take(vez_mutex_t *m)
{
	uint64_t seen = vez__load(&m->monitor_.word_, relaxed);
	while (is_free(seen))
		if (vez__cas(&m->monitor_.word_, &seen, seen | HELD, acquire))
			return true;
	return false;
}

/* Looks more and more rarely: two threads that look all the time at a mutex that is held for 10 ns cost ten times what
 * one costs that goes on alone meanwhile (perf/mutex, 2 threads, 2 virtual CPUs, 2026-11-28: 240 ns an operation
 * against 23). */
static bool spin(vez_mutex_t *m)
{
	unsigned budget = vez__spin_budget(VEZ__SPIN_MUTEX);
	unsigned spun = 0;
	bool taken = false;
	for (unsigned pauses = FIRST_PAUSES; !taken && spun < budget; pauses *= 2) {
		for (unsigned i = 0; i < pauses; i++)
			vez__pause();
		spun += pauses;
		taken = take(m);
	}
	if (budget > 0)
		vez__spin_learn(VEZ__SPIN_MUTEX, spun, taken);
	return taken;
}

static int wait_for(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, 0, cancel);
	r.value_ = vez__self();
	vez__monitor_enter(&m->monitor_);
	int rc = take_inside(m) ? 0 : EBUSY;
	if (rc == EBUSY && !vez__request_prepare(&m->monitor_, &m->room_, &r, &mutex_ops))
		rc = ECANCELED;
	if (rc == EBUSY) {
		mark_queued(m);
		vez__request_insert(&r);
	}
	vez__monitor_leave(&m->monitor_, &mutex_ops);
	return rc == EBUSY ? vez__request_await(&r, deadline) : rc;
}

/* The caller, which owns it now, is known to inspection. */
static VEZ__COLD void note(vez_mutex_t *m)
{
	if (vez__inspect_owns(m))
		vez__fetch_or(&m->monitor_.word_, NOTED, relaxed);
}

/* The caller owns it now. */
static inline int taken(vez_mutex_t *m)
{
	if (vez__inspecting())
		note(m);
	return 0;
}

/* The owner locks again. */
static int relock(vez_mutex_t *m, int otherwise)
{
	if (vez__load(&m->monitor_.word_, relaxed) & ERRORCHECK)
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

static VEZ__COLD int lock_slow(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	uint64_t word = vez__load(&m->monitor_.word_, relaxed);
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if ((word & TRACKED) && is_owner(m))
		return relock(m, EDEADLK);
	int rc = 0;
	if (!take(m)) {
		if (vez__deadline_passed(deadline))
			return ETIMEDOUT;
		rc = spin(m) ? 0 : wait_for(m, deadline, cancel);
	}
	if (rc == 0)
		note_owner(m, word, vez__self(), 1);
	return rc == 0 ? taken(m) : rc;
}

/* Guesses the word first, that of a default mutex which nobody waits for: to load it before the exchange costs 2 ns
 * of 17. */
static inline bool lock_fast(vez_mutex_t *m)
{
	uint64_t guess = 0;
	if (VEZ__LIKELY(vez__cas(&m->monitor_.word_, &guess, HELD, acquire)))
		return true;
	return !(guess & (HELD | HANDOFF | TRACKED)) && vez__cas(&m->monitor_.word_, &guess, guess | HELD, acquire);
}

int vez_mutex_lock(vez_mutex_t *m)
{
	if (VEZ__LIKELY(lock_fast(m)))
		return taken(m);
	return lock_slow(m, VEZ_FOREVER, NULL);
}

int vez_mutex_lock_until(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = cancel && vez_cancel_fired(cancel);
	if (!fired && VEZ__LIKELY(lock_fast(m)))
		return taken(m);
	return lock_slow(m, deadline, cancel);
}

int vez_mutex_trylock(vez_mutex_t *m)
{
	if (VEZ__LIKELY(lock_fast(m)))
		return taken(m);
	uint64_t word = vez__load(&m->monitor_.word_, relaxed);
	if ((word & TRACKED) && is_owner(m))
		return relock(m, EBUSY);
	if (!take(m))
		return EBUSY;
	note_owner(m, word, vez__self(), 1);
	return taken(m);
}

/* ---- unlock ---- */

/* Whether the unlock has to enter: somebody is queued, and nobody is coming or inside who would see that the mutex
 * is free. */
static inline bool has_to_enter(uint64_t seen)
{
	return (seen & QUEUED) && !(seen & VEZ__LOCKED) && !(seen & POKED);
}

static VEZ__COLD int let_go(vez_mutex_t *m)
{
	uint64_t seen = vez__load(&m->monitor_.word_, relaxed);
	bool enters;
	if (seen & NOTED)
		vez__inspect_disowns(m);
	do {
		if (!(seen & HELD))
			return EPERM;
		enters = has_to_enter(seen);
	} while (!vez__cas(&m->monitor_.word_, &seen, (seen & ~(HELD | NOTED)) | (enters ? VEZ__LOCKED : 0), acq_rel));
	if (enters)
		vez__monitor_leave(&m->monitor_, &mutex_ops);
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
	uint64_t seen = vez__load(&m->monitor_.word_, relaxed);
	if (VEZ__LIKELY((seen & (HELD | NOTED | TRACKED)) == HELD) && VEZ__LIKELY(!has_to_enter(seen)) &&
	    VEZ__LIKELY(vez__cas(&m->monitor_.word_, &seen, seen & ~HELD, release)))
		return 0;
	return seen & TRACKED ? unlock_tracked(m) : let_go(m);
}

/* ---- for conditions ---- */

bool vez__mutex_is_mine(const vez_mutex_t *m)
{
	uint64_t word = vez__load(&m->monitor_.word_, relaxed);
	return word & TRACKED ? is_owner(m) : word & HELD;
}

uint64_t vez__mutex_release_all(vez_mutex_t *m)
{
	uint64_t holds = m->holds_;
	note_owner(m, vez__load(&m->monitor_.word_, relaxed), 0, 0);
	let_go(m);
	return holds;
}

void vez__mutex_restore(vez_mutex_t *m, uint64_t holds)
{
	if (vez__load(&m->monitor_.word_, relaxed) & TRACKED)
		m->holds_ = holds;
	taken(m);
}

void vez__mutex_retake(vez_mutex_t *m, uint64_t holds)
{
	vez_mutex_lock(m);
	vez__mutex_restore(m, holds);
}

void vez__mutex_queue(vez_mutex_t *m, vez_request_t *r)
{
	vez__monitor_enter(&m->monitor_);
	mark_queued(m);
	while (r) {
		vez_request_t *next = r->ptr_;
		vez__request_move_in(&m->monitor_, &m->room_, r, &mutex_ops);
		r = next;
	}
	vez__monitor_leave(&m->monitor_, &mutex_ops);
}

/* ---- the rest ---- */

int vez_mutex_init(vez_mutex_t *m, unsigned flags)
{
	if ((flags & ~(VEZ_FAIR | VEZ_RECURSIVE | VEZ_ERRORCHECK)) ||
	    (flags & (VEZ_RECURSIVE | VEZ_ERRORCHECK)) == (VEZ_RECURSIVE | VEZ_ERRORCHECK))
		return EINVAL;
	memset(m, 0, sizeof *m);
	m->monitor_.word_ = (flags & VEZ_FAIR ? FAIR : 0) | (flags & VEZ_RECURSIVE ? RECURSIVE : 0) |
			    (flags & VEZ_ERRORCHECK ? ERRORCHECK : 0);
	vez__inspect_left(m); /* who has forked makes what it holds anew */
	return 0;
}

int vez_mutex_destroy(vez_mutex_t *m)
{
	vez__monitor_enter(&m->monitor_);
	return vez__monitor_retire(&m->monitor_, &mutex_ops, vez__load(&m->monitor_.word_, relaxed) & HELD);
}

unsigned vez_mutex_holds(const vez_mutex_t *m)
{
	return is_owner(m) ? (unsigned)m->holds_ : 0;
}

size_t vez_mutex_waiters(const vez_mutex_t *m)
{
	return vez__load(&m->monitor_.word_, acquire) & QUEUED ? vez_room_length(&m->room_) : 0;
}
