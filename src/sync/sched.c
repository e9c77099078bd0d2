/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: exclusive use, the next one chosen by the user's order at the moment it can enter.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       WAITING              somebody is queued. Inside; the exchange that lets the last one in clears it
 *	bit 3       GAP                  gap_ > 0. Inside
 *	bit 4       LEFT                 somebody has left: left_at_ counts. Set by that thread, never cleared
 *	bit 32      TAKEN                somebody has entered, or was let in. Anybody sets it; the owner clears it
 *  owner_    the thread that has entered, 0: none. Written by that thread, or by the one that lets it in; read
 *            anywhere, but only to compare it with the reader
 *  gap_      inside
 *  left_at_  with GAP: when the last one left, or min_gap found it gone. By the owner, before it clears TAKEN; by
 *            min_gap, if it set GAP while TAKEN was clear: then nobody becomes owner before it leaves the core. Read
 *            inside, while TAKEN is clear
 *  keeper_   the waiter that is to come in when the gap ends, or has been told to see to it; NULL: none. Inside
 *  queue_    in order of arrival; a request's pointer is what it enters with, its value is its thread
 * Invariants
 *  J1 at most one has entered: TAKEN is set by an exchange that finds it clear, and cleared by its owner.
 *  J2 whenever nobody is inside: WAITING exactly if somebody is queued; and then TAKEN, or GAP and the
 *     gap lasts or its end has only just come. In the gap one of those who wait is the keeper, or some thread is
 *     entering because of one, and will appoint one: nobody waits for a time that nobody keeps. A leave that finds
 *     WAITING enters in the same exchange or finds somebody inside.
 *  J3 who can enter is chosen among those who are queued then: a newcomer is considered only after serve found that
 *     nobody who waits can enter.
 *  J4 only its own thread has a request retry at some time: the keeper is appointed by asking it to retry, and sets its
 *     time itself (retry).
 * Ordering
 *  the exchange that clears TAKEN (release) pairs with the one that sets it (acquire): what the last one did, left_at_,
 *  and that owner_ is free to be written. Let in by another thread: then also publication (word.c).
 * Progress and fairness: a leave never waits for the thread inside, which serves before it leaves. Whom the
 *  user's order always puts last may wait for ever; equals are FIFO. At the end of a gap one thread is woken by its
 *  clock; it was woken once more at the beginning, to keep the time: the best one at that moment, so mostly the one
 *  that then enters.
 * Lifetime: core.c C5. A leave's last touch is its exchange, or the leaving one.
 * Sources: M. Grand, "Patterns in Java" (1998); Hoare (1974); execution delegation: C. Martins (2009).
 */
#include "vez/sched.h"

#include <string.h>

#include "../engine/filing.h"
#include "../futex/foreign.h"
#include "../futex/self.h"
#include "../futex/sys.h"

#define WAITING UINT64_C(0x04)
#define GAP UINT64_C(0x08)
#define LEFT UINT64_C(0x10)
#define TAKEN (UINT64_C(1) << 32)

static vez_sched_t *sched_of(const struct vez__stay *in)
{
	return (vez_sched_t *)in->core;
}

/* ---- inside ---- */

/* When the next one can enter. */
static vez_deadline_t gap_end(const vez_sched_t *s)
{
	int64_t end;
	return __builtin_add_overflow(vez__load(&s->left_at_, relaxed), s->gap_, &end) ? VEZ_FOREVER : end;
}

/* Nobody has entered, but the gap lasts. */
static bool in_gap(const vez_sched_t *s, uint64_t seen)
{
	if ((seen & (TAKEN | GAP | LEFT)) != (GAP | LEFT))
		return false;
	/* seen was read relaxed. This reads it or a later value, and so left_at_ as it was when TAKEN was cleared. */
	(void)vez__load(&s->core_.word_, acquire);
	vez_deadline_t end = gap_end(s);
	return end == VEZ_FOREVER || vez__sys_now() < end;
}

static bool comes_before(const vez_sched_t *s, const vez_request_t *a, const vez_request_t *b)
{
	bool before;
	VEZ__FOREIGN(before = s->before_(a->with_.ptr_, b->with_.ptr_));
	return before;
}

static vez_request_t *best(const vez_sched_t *s)
{
	vez_request_t *found = s->queue_;
	if (!found || !s->before_)
		return found;
	for (vez_request_t *r = found; (r = vez__queue_next(s->queue_, r));)
		if (comes_before(s, r, found))
			found = r;
	return found;
}

/* Lets the best one in. */
static void admit(struct vez__stay *in, uint64_t seen)
{
	vez_sched_t *s = sched_of(in);
	vez_request_t *r = best(s);
	uint64_t next = seen | TAKEN;
	if (s->core_.length_ == 1)
		next &= ~WAITING;
	if (!vez__change(in, seen, next))
		return;
	vez__store(&s->owner_, r->value_, relaxed);
	s->keeper_ = NULL;
	vez__settle(in, r, 0);
}

/* Has somebody keep the time, whoever would enter now. False, if it cannot be asked: then its thread, or one that fired
 * its token, is entering, and will see to it. */
static bool appoint(struct vez__stay *in)
{
	vez_sched_t *s = sched_of(in);
	vez_request_t *r = best(s);
	if (s->keeper_ || !vez__ask_to_retry(in, r))
		return false;
	s->keeper_ = r;
	return true;
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	vez_sched_t *s = sched_of(in);
	if ((seen & TAKEN) || !s->queue_)
		return false;
	if (in_gap(s, seen))
		return appoint(in);
	admit(in, seen);
	return true;
}

/* Another will keep the time, where r was to. */
static void keep_no_more(struct vez__stay *in, vez_request_t *r)
{
	vez_sched_t *s = sched_of(in);
	if (s->keeper_ == r)
		s->keeper_ = NULL;
}

/* r is here, because its time has come, or to be told what it is: lets in who can enter, or keeps the time. */
static void retry(struct vez__stay *in, vez_request_t *r)
{
	vez_sched_t *s = sched_of(in);
	vez__retry_at(r, VEZ_FOREVER);
	keep_no_more(in, r);
	while (!vez__is_settled(r)) {
		uint64_t seen = vez__word_of(in);
		if (seen & TAKEN)
			return;
		if (in_gap(s, seen))
			break;
		admit(in, seen);
	}
	if (vez__is_settled(r) || s->keeper_)
		return;
	s->keeper_ = r;
	vez__retry_at(r, gap_end(s));
}

/* A newcomer enters if nobody waits, who would come first; else those are let in. */
static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	vez_sched_t *s = sched_of(in);
	if ((seen & TAKEN) || in_gap(s, seen))
		return EBUSY;
	if ((seen & WAITING) || !vez__change(in, seen, seen | TAKEN))
		return EAGAIN;
	vez__store(&s->owner_, r->value_, relaxed);
	return 0;
}

/* ---- enter ---- */

static const struct vez__rules sched_rules;

/* One attempt without waiting: from the word alone, but where the clock or the order decides. */
static int attempt(struct vez__core *c, vez_request_t *r)
{
	uint64_t seen = vez__load(&c->word_, relaxed);
	do {
		if (seen & TAKEN)
			return EBUSY;
		if (seen & (WAITING | GAP))
			return vez__attempt_inside(c, &sched_rules, r);
	} while (!vez__cas(&c->word_, &seen, seen | TAKEN, acquire));
	vez__store(&((vez_sched_t *)c)->owner_, vez__self(), relaxed);
	return 0;
}

static const struct vez__rules sched_rules = {
	.type = VEZ__SCHED, .queue = offsetof(vez_sched_t, queue_), .waiting = WAITING, .attempt = attempt,
	.take = take, .serve = serve, .retry = retry, .gave_up = keep_no_more,
};

/* If rc says so the caller has entered now: a checker and inspection are to know. */
static VEZ__COLD int note(vez_sched_t *s, int rc)
{
	if (rc != 0)
		return rc;
	if (vez__checked())
		vez__told_acquire(&s->core_.word_, sizeof s->core_.word_);
	if (vez__inspecting())
		(void)vez__inspect_owns(s);
	return rc;
}

static inline int entered(vez_sched_t *s, int rc)
{
	return vez__watched() ? note(s, rc) : rc;
}

static bool is_owner(const vez_sched_t *s)
{
	return vez__load(&s->owner_, relaxed) == vez__self();
}

/* The fast path: nobody has entered, nobody waits, nobody is inside, and there is no gap. */
static inline bool enter_fast(vez_sched_t *s)
{
	uint64_t *word = &s->core_.word_;
	uint64_t seen = vez__load(word, relaxed);
	if ((seen & (TAKEN | WAITING | GAP | VEZ__LOCKED)) || !vez__cas_fast(word, &seen, seen | TAKEN, acquire))
		return false;
	vez__store(&s->owner_, vez__self(), relaxed);
	return true;
}

static VEZ__SLOW int enter_slow(vez_sched_t *s, const void *what, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (is_owner(s))
		return EDEADLK;
	const vez_request_t like = { .with_.ptr_ = (void *)what, .value_ = vez__self(), .cancel_ = cancel };
	return vez__wait(&s->core_, &sched_rules, &like, deadline);
}

int vez_sched_enter(vez_sched_t *s, const void *what)
{
	return entered(s, VEZ__LIKELY(enter_fast(s)) ? 0 : enter_slow(s, what, VEZ_FOREVER, NULL));
}

int vez_sched_try_enter(vez_sched_t *s, const void *what)
{
	/* It is considered alone: who waits comes first, and who is alone has no order. */
	(void)what;
	return entered(s, vez__attempt(&s->core_, &sched_rules, vez__self()));
}

int vez_sched_enter_until(vez_sched_t *s, const void *what, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (vez__is_fired(cancel))
		return ECANCELED;
	return entered(s, VEZ__LIKELY(enter_fast(s)) ? 0 : enter_slow(s, what, deadline, cancel));
}

/* ---- leave ---- */

/* By its owner. */
static VEZ__INLINE int leave(vez_sched_t *s, bool told)
{
	uint64_t enters;
	vez__store(&s->owner_, 0, relaxed);
	uint64_t seen = vez__load(&s->core_.word_, relaxed);
	do {
		if (seen & GAP)
			vez__store(&s->left_at_, vez__sys_now(), relaxed);
		enters = (seen & WAITING) && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
	} while (!vez__cas_if(told, &s->core_.word_, &seen, (seen | LEFT | enters) & ~TAKEN, acq_rel));
	if (enters)
		vez__leave_entered(&s->core_, &sched_rules);
	return 0;
}

static VEZ__COLD int leave_noted(vez_sched_t *s)
{
	vez__inspect_left(s);
	return leave(s, true);
}

int vez_sched_leave(vez_sched_t *s)
{
	if (!is_owner(s))
		return EPERM;
	return vez__watches(VEZ__CHECKED | VEZ__RECORDED) ? leave_noted(s) : leave(s, false);
}

/* ---- the rest ---- */

/* Inside: the word when there is a gap. Whoever has entered will say when it leaves; if it has left, it is now. */
static void begin_gaps(vez_sched_t *s)
{
	uint64_t before = vez__fetch_or(&s->core_.word_, GAP, relaxed);
	if (!(before & (GAP | TAKEN)))
		vez__store(&s->left_at_, vez__sys_now(), relaxed);
}

int vez_sched_min_gap(vez_sched_t *s, int64_t ns)
{
	struct vez__stay in;
	if (ns < 0)
		return EINVAL;
	vez__enter(&in, &s->core_);
	s->gap_ = ns;
	if (ns > 0)
		begin_gaps(s);
	else
		vez__fetch_and(&s->core_.word_, ~GAP, relaxed);
	/* Its time has changed. */
	if (s->keeper_)
		vez__ask_to_retry(&in, s->keeper_);
	vez__leave(&in, &sched_rules);
	return 0;
}

size_t vez_sched_waiters(const vez_sched_t *s)
{
	return vez__load(&s->core_.word_, acquire) & WAITING ? vez__load(&s->core_.length_, relaxed) : 0;
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
	return vez__destroy(&s->core_, &sched_rules, TAKEN);
}
