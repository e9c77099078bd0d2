/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: exclusive use, the next one chosen by the user's order at the moment it can enter.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       WAITING              somebody is queued. Set inside before the first is queued; cleared inside, in
 *	                                 the exchange that lets the last one in or just before the last one is taken out
 *	bit 3       GAP                  gap_ > 0. Inside
 *	bit 4       LEFT                 somebody has left: left_at_ counts. Set by who leaves, never cleared
 *	bit 32      TAKEN                somebody is inside, or let in. Anybody sets it; the owner clears it
 *  owner_    the thread that is inside, 0: none. Written by who becomes or ceases to be it, or by who lets it in; read
 *            anywhere, but only to compare it with the reader
 *  gap_      inside
 *  left_at_  with GAP: when the last one left, or min_gap found it gone. By the owner, before it clears TAKEN; by
 *            min_gap, if it set GAP while TAKEN was clear: then nobody becomes owner before it leaves the monitor. Read
 *            inside, while TAKEN is clear
 *  keeper_   the waiter that is to come in when the gap ends, or has been told to see to it; NULL: none. Inside
 *  room_     in order of arrival; a request's pointer is what it enters with, its value is its thread
 * Invariants
 *  D1 at most one is inside: TAKEN is set by an exchange that finds it clear, and cleared by its owner.
 *  D2 whenever nobody is inside the monitor: WAITING exactly if the room is not empty; and then TAKEN, or GAP and the
 *     gap lasts or its end has only just come. In the gap one of those who wait is the keeper, or some thread is on its
 *     way into the monitor because of one, and will appoint one: nobody waits for a time that nobody keeps. Who leaves
 *     the monitor made it so, by the word that its leaving exchange expects; and a leave that finds WAITING enters the
 *     monitor in the same exchange or finds somebody inside.
 *  D3 who can enter is chosen among those who are queued then: a newcomer is considered only after serve found that
 *     nobody who waits can enter.
 *  D4 only its own thread tells a request to look again at some time: the keeper is appointed by telling it to come in
 *     (poke), and sets its time itself (look).
 *  D5 enters wait until nobody is inside the monitor, so that who lets them in has left. try_enter may not:
 *     vez_sched_destroy waits for that one.
 * Ordering
 *  the exchange that clears TAKEN (release) pairs with the one that sets it (acquire): what the last one did, left_at_,
 *  and that owner_ is free to be written. Let in by another thread: then also vez__word_publish and vez__request_await.
 * Progress and fairness: a leave never waits for the one inside the monitor, who serves before it leaves. Whom the
 *  user's order always puts last may wait for ever; equals are FIFO. At the end of a gap one thread is woken by its
 *  clock; it was woken once more at the beginning, to keep the time: the best one at that moment, so mostly the one
 *  that then enters.
 * Lifetime: a leave's last touch is its exchange, or the monitor's leaving one.
 * Sources: M. Grand, "Patterns in Java" (1998); Hoare (1974); execution delegation: C. Martins (2009).
 */
#include "vez/sched.h"

#include <errno.h>
#include <string.h>

#include "../futex/self.h"
#include "../futex/sys.h"
#include "engine.h"

#define WAITING UINT64_C(0x04)
#define GAP UINT64_C(0x08)
#define LEFT UINT64_C(0x10)
#define TAKEN (UINT64_C(1) << 32)

static vez_sched_t *sched_of(vez_monitor_t *m)
{
	return (vez_sched_t *)((char *)m - offsetof(vez_sched_t, monitor_));
}

/* ---- inside ---- */

/* When the next one can enter. */
static vez_deadline_t gap_end(const vez_sched_t *s)
{
	int64_t end;
	return __builtin_add_overflow(vez__load(&s->left_at_, relaxed), s->gap_, &end) ? VEZ_FOREVER : end;
}

/* Nobody is inside, but the gap lasts. */
static bool in_gap(const vez_sched_t *s, uint64_t seen)
{
	if ((seen & (TAKEN | GAP | LEFT)) != (GAP | LEFT))
		return false;
	/* seen was read relaxed. This reads it or a later value, and so left_at_ as it was when TAKEN was cleared. */
	(void)vez__load(&s->monitor_.word_, acquire);
	vez_deadline_t end = gap_end(s);
	return end == VEZ_FOREVER || vez__sys_now() < end;
}

static vez_request_t *best(const vez_sched_t *s)
{
	vez_request_t *found = vez_room_first(&s->room_);
	if (!found || !s->before_)
		return found;
	for (vez_request_t *r = found; (r = vez_room_next(&s->room_, r));)
		if (s->before_(r->ptr_, found->ptr_))
			found = r;
	return found;
}

/* Lets the best one in. */
static void admit(vez_sched_t *s, uint64_t seen)
{
	vez_request_t *r = best(s);
	uint64_t next = seen | TAKEN;
	if (s->room_.length_ == 1)
		next &= ~WAITING;
	if (!vez__cas(&s->monitor_.word_, &seen, next, acq_rel))
		return;
	vez__store(&s->owner_, r->value_, relaxed);
	s->keeper_ = NULL;
	vez_monitor_settle(&s->monitor_, r, 0);
}

/* Has somebody keep the time, whoever would enter now. False, if it cannot be told: then its thread, or one that fired
 * its token, is coming in, and will see to it. */
static bool appoint(vez_sched_t *s)
{
	vez_request_t *r = best(s);
	if (s->keeper_ || !vez__request_poke(&s->monitor_, r))
		return false;
	s->keeper_ = r;
	return true;
}

static bool serve(vez_monitor_t *m, uint64_t seen)
{
	vez_sched_t *s = sched_of(m);
	if ((seen & TAKEN) || !vez_room_first(&s->room_))
		return false;
	if (in_gap(s, seen))
		return appoint(s);
	admit(s, seen);
	return true;
}

/* r leaves without having entered. Another will keep the time. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	vez_sched_t *s = sched_of(m);
	if (s->room_.length_ == 1 && !vez__cas(&m->word_, &seen, seen & ~WAITING, acq_rel))
		return false;
	if (s->keeper_ == r)
		s->keeper_ = NULL;
	return true;
}

/* r is here, because its time has come, or to be told what it is: lets in who can enter, or keeps the time. */
static void look(vez_monitor_t *m, vez_request_t *r)
{
	vez_sched_t *s = sched_of(m);
	vez__request_look_again(r, VEZ_FOREVER);
	if (s->keeper_ == r)
		s->keeper_ = NULL;
	while (!vez__request_settled(r)) {
		uint64_t seen = vez__load(&m->word_, relaxed);
		if (seen & TAKEN)
			return;
		if (in_gap(s, seen))
			break;
		admit(s, seen);
	}
	if (vez__request_settled(r) || s->keeper_)
		return;
	s->keeper_ = r;
	vez__request_look_again(r, gap_end(s));
}

static const struct vez__ops sched_ops = { .type = VEZ__SCHED, .serve = serve, .look = look, .take_back = take_back };

/* Lets in those who wait, then a newcomer, if it can: 0. EBUSY: it would have to wait. */
static int enter_inside(vez_sched_t *s)
{
	for (;;) {
		uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
		if ((seen & TAKEN) || in_gap(s, seen))
			return EBUSY;
		if (seen & WAITING) {
			admit(s, seen);
			continue;
		}
		if (vez__cas(&s->monitor_.word_, &seen, seen | TAKEN, acquire))
			break;
	}
	vez__store(&s->owner_, vez__self(), relaxed);
	return 0;
}

/* ---- enter ---- */

static VEZ__COLD int enter_waiting(vez_sched_t *s, const void *what, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, 0, cancel);
	r.ptr_ = (void *)what;
	r.value_ = vez__self();
	vez__monitor_enter(&s->monitor_);
	int rc = enter_inside(s);
	if (rc == EBUSY && !vez__request_prepare(&s->monitor_, &s->room_, &r, &sched_ops))
		rc = ECANCELED;
	if (rc == EBUSY) {
		vez__fetch_or(&s->monitor_.word_, WAITING, relaxed);
		vez__request_insert(&r);
	}
	vez__monitor_leave(&s->monitor_, &sched_ops);
	return rc == EBUSY ? vez__request_await(&r, deadline) : rc;
}

static VEZ__COLD int attempt_inside(vez_sched_t *s)
{
	vez__monitor_enter(&s->monitor_);
	int rc = enter_inside(s);
	vez__monitor_leave(&s->monitor_, &sched_ops);
	return rc;
}

/* One attempt without waiting: from the word alone, but where the clock or the order decides. */
static int attempt(vez_sched_t *s)
{
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	do {
		if (seen & TAKEN)
			return EBUSY;
		if (seen & (WAITING | GAP))
			return attempt_inside(s);
	} while (!vez__cas(&s->monitor_.word_, &seen, seen | TAKEN, acquire));
	vez__store(&s->owner_, vez__self(), relaxed);
	return 0;
}

/* If rc says so the caller is inside now: inspection is to know. */
static inline int entered(vez_sched_t *s, int rc)
{
	if (vez__inspecting() && rc == 0)
		(void)vez__inspect_owns(s);
	return rc;
}

static bool is_inside(const vez_sched_t *s)
{
	return vez__load(&s->owner_, relaxed) == vez__self();
}

/* The fast path: nobody is inside, nobody waits, nobody is inside the monitor, and there is no gap. */
static inline bool enter_fast(vez_sched_t *s)
{
	uint64_t *word = &s->monitor_.word_;
	uint64_t seen = vez__load(word, relaxed);
	if ((seen & (TAKEN | WAITING | GAP | VEZ__LOCKED)) || !vez__cas(word, &seen, seen | TAKEN, acquire))
		return false;
	vez__store(&s->owner_, vez__self(), relaxed);
	return true;
}

static VEZ__COLD int enter_slow(vez_sched_t *s, const void *what, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (is_inside(s))
		return EDEADLK;
	if (!vez__deadline_passed(deadline))
		return enter_waiting(s, what, deadline, cancel);
	return attempt(s) == 0 ? 0 : ETIMEDOUT;
}

int vez_sched_enter(vez_sched_t *s, const void *what)
{
	return entered(s, VEZ__LIKELY(enter_fast(s)) ? 0 : enter_slow(s, what, VEZ_FOREVER, NULL));
}

int vez_sched_try_enter(vez_sched_t *s, const void *what)
{
	/* It is considered alone: who waits comes first, and who is alone has no order. */
	(void)what;
	return entered(s, attempt(s));
}

int vez_sched_enter_until(vez_sched_t *s, const void *what, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	return entered(s, VEZ__LIKELY(enter_fast(s)) ? 0 : enter_slow(s, what, deadline, cancel));
}

/* ---- leave ---- */

int vez_sched_leave(vez_sched_t *s)
{
	uint64_t enters;
	if (!is_inside(s))
		return EPERM;
	vez__inspect_left(s);
	vez__store(&s->owner_, 0, relaxed);
	uint64_t seen = vez__load(&s->monitor_.word_, relaxed);
	do {
		if (seen & GAP)
			vez__store(&s->left_at_, vez__sys_now(), relaxed);
		enters = (seen & WAITING) && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
	} while (!vez__cas(&s->monitor_.word_, &seen, (seen | LEFT | enters) & ~TAKEN, acq_rel));
	if (enters)
		vez__monitor_leave(&s->monitor_, &sched_ops);
	return 0;
}

/* ---- the rest ---- */

/* Inside: the word when there is a gap. Who is inside the resource will say when it leaves; if it has left, it
 * is now. */
static void begin_gaps(vez_sched_t *s)
{
	uint64_t before = vez__fetch_or(&s->monitor_.word_, GAP, relaxed);
	if (!(before & (GAP | TAKEN)))
		vez__store(&s->left_at_, vez__sys_now(), relaxed);
}

int vez_sched_min_gap(vez_sched_t *s, int64_t ns)
{
	if (ns < 0)
		return EINVAL;
	vez__monitor_enter(&s->monitor_);
	s->gap_ = ns;
	if (ns > 0)
		begin_gaps(s);
	else
		vez__fetch_and(&s->monitor_.word_, ~GAP, relaxed);
	/* Its time has changed. */
	if (s->keeper_)
		vez__request_poke(&s->monitor_, s->keeper_);
	vez__monitor_leave(&s->monitor_, &sched_ops);
	return 0;
}

size_t vez_sched_waiters(const vez_sched_t *s)
{
	return vez__load(&s->monitor_.word_, acquire) & WAITING ? vez_room_length(&s->room_) : 0;
}

int vez_sched_init(vez_sched_t *s, bool (*before)(const void *a, const void *b), unsigned flags)
{
	if (flags)
		return EINVAL;
	memset(s, 0, sizeof *s);
	s->before_ = before;
	vez__inspect_left(s);
	return 0;
}

int vez_sched_destroy(vez_sched_t *s)
{
	vez__monitor_enter(&s->monitor_);
	bool held = vez__load(&s->monitor_.word_, relaxed) & TAKEN;
	return vez__monitor_retire(&s->monitor_, &sched_ops, held);
}
