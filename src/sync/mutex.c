/* SPDX-License-Identifier: MIT */
/*
 * The mutex.
 *
 * State
 *  core_.word_
 *	bits 0-1  the lock    futex/lock.h
 *	bit 32    HELD        somebody owns the mutex. Set by the thread that takes it, or for it by the one that grants
 *	                      it; cleared by unlock
 *	bits 5-6  ASKED, HANDOFF   barging.h; HANDOFF while QUEUED always, if fair_
 *	bit 33    QUEUED      requests are queued. Inside
 *	bit 34    GUARDED     some of them have guards. Inside
 *	bits 37-38  RECURSIVE, ERRORCHECK   constant
 *	bit 39    NOTED       inspection or a checker knows the owner. Set by that, after it took it; cleared with HELD
 *  owner_   the owner's number (vez__self) if tracked, else 0. Written by the owner, or for it by the thread that
 *           grants it; read anywhere
 *  holds_   how often it holds; by the owner, or for it by the thread that grants it
 *  fair_    constant; not in the word, so that a free fair mutex reads as any other
 *  together_  0 to 255: how well it went lately to ask several together of those who come from a condition (learn);
 *           inside
 *  guarded_ how many of the requests have guards; inside
 *  a request's value is the number of its thread, its pointer its guard or NULL: then it is plain.
 * Invariants
 *  X1 HELD is only set by an exchange that saw it clear: one owner. It passes from one owner to the next without being
 *     cleared where the mutex is handed over.
 *  X2 while nobody is inside and the mutex is free, nobody plain is queued, or the first of those is entering (its own
 *     deadline, or the end of its patience; or it was asked, and another that was asked with it has come before), or a
 *     thread that was asked (ASKED), which will leave only past serve. Unlock makes it so: it enters, or finds ASKED,
 *     or finds a thread inside that will leave only past serve. Who was asked together with the first (ask_more) comes
 *     of itself, and nothing depends on when.
 *  X3 while HANDOFF, HELD is only set inside, for the first that is plain, or to ask for guards.
 *  X4 while nobody is inside and the mutex is free, the guards before the first plain request are false, all of them if
 *     there is none; or a thread is entering because of the first that is true. Unlock makes it so: while GUARDED it
 *     clears HELD only inside, after it has asked, and has that thread come. A guard is queued while the mutex is
 *     owned; one that comes while it is free takes it, and asks. Those behind the first plain request are asked by the
 *     one who has the mutex next, or by the thread that ends that request (gave_up).
 *  X5 who enters because of a guard asks it, if the mutex is free: its own thread together with those before it
 *     (retry), who ends its wait that one (still_false). So a guard that is true when its wait ends is granted.
 * Ordering
 *  unlock (release) pairs with the exchange in lock (acquire), or with the one inside (acq_rel) that grants or retries,
 *  and then with word.c's publication. owner_ is relaxed: only the owner itself finds its own number there. A guard is
 *  called by the owner, or by a thread inside that has taken the free mutex (acq_rel) to ask: after every unlock
 *  before.
 * Progress and fairness
 *  unlock is lock-free; while GUARDED, it waits for the thread inside. A newcomer passes over the first for about 1 ms
 *  at most; then turns are taken in order. A guard that is false holds nobody back. Of those that are true the first is
 *  handed the mutex if it is fair. Otherwise its thread is asked to retry, as the first plain one is: the mutex is free
 *  until it runs, and who runs already need not sleep for it. If it comes in vain, it sleeps again; and where it first
 *  did so more than 1 ms ago, it is handed the mutex, as a plain one is.
 *  Those who come from a condition are asked several at a time: as many as lately found the mutex free when they came
 *  (learn). One that does not sleeps again where it stood.
 *  Asking is linear in the guards that are false; of those with the same function and argument one is called, as far as
 *  a memory of the last few reaches.
 * Lifetime
 *  unlock's last touch is its exchange, or the leaving one. It enters only when one is queued, whose call keeps the
 *  mutex alive until it was granted, which happens inside.
 * Sources: mutex.h in include/vez.
 */
#include "mutex.h"

#include <string.h>

#include "../futex/self.h"
#include "../futex/spin.h"
#include "barging.h"

#define HELD (UINT64_C(1) << 32)
#define QUEUED (UINT64_C(1) << 33)
#define GUARDED (UINT64_C(1) << 34)
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
	m->holds_ = (uint16_t)holds;
}

/* ---- guards ---- */

/* A guarded wait, on its thread's stack. */
struct wait {
	vez_request_t r;
	struct vez__guard guard;
};

static struct vez__guard *guard_of(const vez_request_t *r)
{
	return r->with_.ptr_;
}

static bool is_guarded(const vez_request_t *r)
{
	return guard_of(r) != NULL;
}

/* Guards that were found false since the mutex was last changed: the latest of them. */
struct asked {
	const struct vez__guard *no[8];
	unsigned count;
};

static void remember(struct asked *asked, const struct vez__guard *g)
{
	asked->no[asked->count++ % (sizeof asked->no / sizeof asked->no[0])] = g;
}

static bool was_asked(const struct asked *asked, const struct vez__guard *g)
{
	for (unsigned i = 0; i < sizeof asked->no / sizeof asked->no[0] && i < asked->count; i++)
		if (asked->no[i]->fn == g->fn && asked->no[i]->arg == g->arg)
			return true;
	return false;
}

static bool is_true(struct asked *asked, const struct vez__guard *g)
{
	if (was_asked(asked, g))
		return false;
	bool is = vez__guard_ask(g);
	if (!is)
		remember(asked, g);
	return is;
}

static bool lacks_ticket(const struct vez__guard *g)
{
	return g->tickets && vez__load(g->tickets, relaxed) < VEZ__TICKET;
}

static void take_ticket(const struct vez__guard *g)
{
	if (g->tickets)
		vez__fetch_add(g->tickets, -VEZ__TICKET, relaxed);
}

/* Whether it may have the mutex. */
static bool may_go(struct asked *asked, const struct vez__guard *g)
{
	return !lacks_ticket(g) && (!g->fn || is_true(asked, g));
}

/* ---- inside ---- */

static vez_request_t *first_plain(const vez_mutex_t *m)
{
	vez_request_t *r = m->core_.length_ > m->guarded_ ? m->queue_ : NULL;
	while (r && is_guarded(r))
		r = vez__queue_next(m->queue_, r);
	return r;
}

/* The word when r has left: one with a guard, the first without one, or one that was asked together with that. */
static uint64_t word_without(const vez_mutex_t *m, uint64_t word, const vez_request_t *r)
{
	uint32_t guarded = m->guarded_ - is_guarded(r), plain = m->core_.length_ - 1 - guarded;
	word &= ~(QUEUED | GUARDED);
	if (!is_guarded(r))
		word &= ~VEZ__HANDOFF;
	if (plain > 0 && m->fair_)
		word |= VEZ__HANDOFF;
	return word | (plain + guarded > 0 ? QUEUED : 0) | (guarded > 0 ? GUARDED : 0);
}

static bool is_free_for(uint64_t seen, const vez_request_t *r)
{
	(void)r;
	return !(seen & HELD);
}

/* Takes the free mutex for r, the first without a guard, or one that was asked together with that. False: the word has
 * changed. */
static bool take_for(struct vez__stay *in, uint64_t seen, const vez_request_t *r)
{
	uint64_t next = word_without(mutex_of(in), seen, r) | HELD;
	if (!vez__change(in, seen, next))
		return false;
	note_owner(mutex_of(in), next, r->value_, 1);
	return true;
}

/* Whether r, which is queued, comes from a condition on which it did not wait alone: its thread sleeps in its slot. */
static bool has_slot(const vez_request_t *r)
{
	return r->how_ & VEZ__IN_SLOT;
}

/* How many are asked together with the first: few at the beginning, and after some came in vain. */
static unsigned more_to_ask(const vez_mutex_t *m)
{
	unsigned together = vez__load(&m->together_, relaxed);
	return together * together / 2048;
}

/* first was asked. If it sleeps in its slot, and so is to be woken there, asks those right behind it, too, as far as
 * they come from a condition, had the same key there, and are its neighbours. Each finds the mutex free, if the one
 * before has let it go when it runs. */
static void ask_more(struct vez__stay *in, vez_request_t *first)
{
	const vez_mutex_t *m = mutex_of(in);
	vez_request_t *r = first;
	for (unsigned more = more_to_ask(m); more > 0 && in->asked.turn; more--) {
		r = vez__queue_next(m->queue_, r);
		if (!r || is_guarded(r) || !has_slot(r) || r->arg_ != first->arg_ ||
		    vez__slot_turn(vez__slot_of(r)) != in->asked.turn)
			return;
		vez__ask_to_retry(in, r);
	}
}

/* One with a slot has come, as the first or together with that one. If it found the mutex free, more are asked the next
 * time, otherwise far fewer. */
static void learn(vez_mutex_t *m, bool first, bool in_vain)
{
	unsigned before = vez__load(&m->together_, relaxed);
	unsigned now = in_vain ? before / 2 : before + (first ? 1 : 8);
	vez__store(&m->together_, (uint8_t)(now < UINT8_MAX ? now : UINT8_MAX), relaxed);
}

/* Where first is on its way though ASKED does not say so, says so: it was asked together with another that came before
 * it, or its patience is over (barging.c). It was notified, so its limits apply no more: it enters for nothing else,
 * and takes ASKED back then. */
static bool say_it_comes(struct vez__stay *in, uint64_t seen, const vez_request_t *first)
{
	if ((seen & VEZ__ASKED) || !has_slot(first) || !(vez__load(&first->word_, relaxed) & VEZ__ENTERING))
		return false;
	vez__fetch_or(&in->core->word_, VEZ__ASKED, relaxed);
	return true;
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	vez_request_t *first = seen & HELD ? NULL : first_plain(mutex_of(in));
	if (!first)
		return false;
	if (!(seen & VEZ__HANDOFF)) {
		if (!vez__barging_ask(in, seen, first, 0))
			return say_it_comes(in, seen, first);
		ask_more(in, first);
		return true;
	}
	if (take_for(in, seen, first))
		vez__settle(in, first, 0);
	return true;
}

/* The mutex is this thread's: it becomes that of r. */
static void give(struct vez__stay *in, vez_request_t *r)
{
	vez_mutex_t *m = mutex_of(in);
	uint64_t seen, next;
	do {
		seen = vez__word_of(in);
		next = word_without(m, seen, r) & ~NOTED;
	} while (!vez__change(in, seen, next));
	note_owner(m, next, r->value_, 1);
	if (is_guarded(r)) {
		take_ticket(guard_of(r));
		m->guarded_--;
	}
	vez__settle(in, r, 0);
}

/* r, which has a guard, is not queued any more. */
static void mark_without(struct vez__stay *in, const vez_request_t *r)
{
	vez_mutex_t *m = mutex_of(in);
	uint64_t seen;
	do
		seen = vez__word_of(in);
	while (!vez__change(in, seen, word_without(m, seen, r)));
	m->guarded_--;
}

/* r waits to be notified, and is not asked until then. */
static void fall_asleep(struct vez__stay *in, vez_request_t *r)
{
	mark_without(in, r);
	vez__set_aside(r);
	guard_of(r)->asleep = true;
}

static void wake_up(struct vez__stay *in, vez_request_t *r)
{
	guard_of(r)->asleep = false;
	mutex_of(in)->guarded_++;
	vez__insert(in->core, r);
}

/* The mutex is this thread's, and known was false: the first who may have the mutex. Those who were notified, and whose
 * guards are false, are not any more. */
static vez_request_t *first_to_go(struct vez__stay *in, const struct vez__guard *known)
{
	vez_mutex_t *m = mutex_of(in);
	struct asked asked = { .count = 0 };
	vez_request_t *r, *next;
	if (known)
		remember(&asked, known);
	for (r = m->queue_; r && is_guarded(r); r = next) {
		next = vez__queue_next(m->queue_, r);
		if (may_go(&asked, guard_of(r)))
			break;
		if (guard_of(r)->tickets)
			fall_asleep(in, r);
	}
	return r;
}

static void set_free(struct vez__stay *in)
{
	vez__fetch_and(&in->core->word_, ~(HELD | NOTED), release);
}

/* Whether it first came in vain more than 1 ms ago. */
static bool lost_patience(const struct vez__guard *g)
{
	return g->patience != 0 && vez__deadline_passed(g->patience);
}

/* Whether r, which may have the mutex, is handed it: otherwise running threads may take it first. own is the request
 * of this thread, or NULL. Where a guard says now this and now that, another may be about to be woken already. */
static bool is_handed(const struct vez__stay *in, const vez_request_t *r, const vez_request_t *own)
{
	if (mutex_of(in)->fair_ || (vez__word_of(in) & VEZ__HANDOFF))
		return true;
	return is_guarded(r) && (r == own || lost_patience(guard_of(r)) || in->pending->wake_ || in->asked.turn);
}

/* Lets the mutex go, and asks the thread of r, whose guard is true, to retry. Even if another was asked, who may be
 * late: a guard before a plain request is not to wait for that. */
static void set_free_for(struct vez__stay *in, vez_request_t *r)
{
	set_free(in);
	if (vez__ask_to_retry(in, r)) /* else it is entering anyway, or one that ends its wait is */
		vez__fetch_or(&in->core->word_, VEZ__ASKED, relaxed);
}

/* The mutex is this thread's, and known was false: hands the mutex to the first who may have it, or lets it go. */
static void hand_on(struct vez__stay *in, const struct vez__guard *known, const vez_request_t *own)
{
	vez_request_t *r = first_to_go(in, known);
	if (r && is_handed(in, r, own))
		give(in, r);
	else if (r && is_guarded(r))
		set_free_for(in, r);
	else
		set_free(in);
}

/* Takes the free mutex for this thread, to ask. False: it is owned, and its owner will ask. */
static bool take_to_ask(struct vez__stay *in)
{
	uint64_t seen;
	do {
		seen = vez__word_of(in);
		if (seen & HELD)
			return false;
	} while (!vez__change(in, seen, seen | HELD));
	return true;
}

/* The thread of r has come. Its guard, and those before it, may have changed since it was asked. */
static void retry_guarded(struct vez__stay *in, vez_request_t *r)
{
	if (take_to_ask(in))
		hand_on(in, NULL, r);
	if (!vez__is_settled(r) && guard_of(r)->patience == 0)
		guard_of(r)->patience = vez_after_ns(VEZ__PATIENCE_NS);
}

static void retry(struct vez__stay *in, vez_request_t *r)
{
	vez_request_t *first = first_plain(mutex_of(in));
	if (is_guarded(r)) {
		retry_guarded(in, r);
		return;
	}
	/* Who was asked together with the first takes the mutex as a newcomer does; not if the first is to be handed
	 * it. */
	bool behind = has_slot(r) && r != first && !(vez__word_of(in) & VEZ__HANDOFF);
	vez__barging_retry(in, r, behind ? &r : &first, is_free_for, take_for, !behind);
	if (has_slot(r))
		learn(mutex_of(in), !behind, !vez__is_settled(r));
}

/* By seen the mutex is free, and taken to ask r once more: behind a plain request its guard may have become true since.
 * False: so it has, and the mutex is its thread's, or the word has changed. */
static bool still_false(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (!vez__change(in, seen, seen | HELD))
		return false;
	bool is = vez__guard_ask(guard_of(r));
	if (is)
		give(in, r);
	else
		set_free(in);
	return !is;
}

/* The same of one that waits on a condition: its turn comes after that of those before it. */
static bool still_not_its_turn(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (!vez__change(in, seen, seen | HELD))
		return false;
	hand_on(in, NULL, r);
	return !vez__is_settled(r);
}

static bool roll_back_guarded(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	const struct vez__guard *g = guard_of(r);
	bool asked = !g->asleep && !(seen & HELD);
	if (asked && !(g->tickets ? still_not_its_turn(in, seen, r) : still_false(in, seen, r)))
		return false;
	if (g->asleep) /* then the marks do not count it */
		wake_up(in, r);
	mark_without(in, r);
	return true;
}

static bool roll_back(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (is_guarded(r))
		return roll_back_guarded(in, seen, r);
	return r != first_plain(mutex_of(in)) || vez__change(in, seen, word_without(mutex_of(in), seen, r));
}

/* Those behind the first plain request were not asked since the mutex is free. */
static void gave_up(struct vez__stay *in, vez_request_t *r)
{
	if (!is_guarded(r) && (vez__word_of(in) & GUARDED) && take_to_ask(in))
		hand_on(in, NULL, NULL);
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
	return vez__change(in, seen, seen | QUEUED | (mutex_of(in)->fair_ ? VEZ__HANDOFF : 0));
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

/* Of those who wait for the mutex; and of those who wait on a condition to be notified, and then for the mutex. */
#define RULES(what) \
	{ \
		.type = (what), .queue = offsetof(vez_mutex_t, queue_), .attempt = attempt, .take = take, \
		.mark = mark, .serve = serve, .roll_back = roll_back, .entered = vez__barging_entered, .retry = retry, \
		.gave_up = gave_up, \
	}

static const struct vez__rules mutex_rules = RULES(VEZ__MUTEX), when_rules = RULES(VEZ__COND);

static bool look_again(void *m)
{
	return try_take(m);
}

/* Whether a wait with these limits may end without the mutex. */
static inline bool is_bounded(vez_deadline_t deadline, const vez_cancel_t *cancel)
{
	return deadline != VEZ_FOREVER || cancel;
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

static VEZ__SLOW int lock_slow(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	uint64_t word = vez__load(&m->core_.word_, relaxed);
	if (vez__is_fired(cancel))
		return ECANCELED;
	if ((word & TRACKED) && is_owner(m))
		return relock(m, EDEADLK);
	bool bounded = is_bounded(deadline, cancel);
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
	return !(guess & (HELD | VEZ__HANDOFF | TRACKED)) &&
	       vez__cas_fast(&m->core_.word_, &guess, guess | HELD, acquire);
}

int vez_mutex_lock(vez_mutex_t *m)
{
	if (VEZ__LIKELY(lock_fast(m)))
		return taken(m, false);
	return lock_slow(m, VEZ_FOREVER, NULL);
}

int vez_mutex_lock_until(vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	if (!fired && VEZ__LIKELY(lock_fast(m)))
		return taken(m, is_bounded(deadline, cancel));
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

/* The caller is about to let it go. */
static void note_gone(vez_mutex_t *m, uint64_t word)
{
	if (word & NOTED)
		vez__inspect_disowns(m);
	if (vez__checked())
		vez__told_unlocks(m);
}

/* The owner asks for guards. */
static int let_go_guarded(vez_mutex_t *m)
{
	struct vez__stay in;
	vez__enter(&in, &m->core_);
	hand_on(&in, NULL, NULL);
	vez__leave(&in, &mutex_rules);
	return 0;
}

static VEZ__SLOW int let_go(vez_mutex_t *m)
{
	uint64_t seen = vez__load(&m->core_.word_, relaxed);
	bool enters;
	note_gone(m, seen);
	do {
		if (!(seen & HELD))
			return EPERM;
		if (seen & GUARDED)
			return let_go_guarded(m);
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
	if (VEZ__LIKELY((seen & (HELD | NOTED | TRACKED | GUARDED)) == HELD) && VEZ__LIKELY(!has_to_enter(seen)) &&
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

void vez__mutex_take_back(vez_mutex_t *m, uint32_t holds, bool granted)
{
	if (granted)
		taken(m, false);
	else
		vez_mutex_lock(m);
	if (vez__load(&m->core_.word_, relaxed) & TRACKED)
		m->holds_ = (uint16_t)holds;
}

void vez__mutex_queue(vez_mutex_t *m, vez_request_t *r)
{
	struct vez__stay in;
	vez__enter(&in, &m->core_);
	while (!mark(&in, vez__word_of(&in), r))
		;
	while (r) {
		vez_request_t *next = r->with_.ptr_;
		r->with_.ptr_ = NULL;
		vez__move_in(&in, &mutex_rules, r);
		r = next;
	}
	vez__leave(&in, &mutex_rules);
}

bool vez__mutex_was_queued(const vez_request_t *r)
{
	return r->rules_ == &mutex_rules;
}

/* ---- waiting for guards ---- */

/* Inside: a guard is queued from here on. Whether the mutex was free, and is this thread's now; if not, its owner
 * asks. */
static bool mark_guarded(struct vez__stay *in)
{
	uint64_t seen;
	do
		seen = vez__word_of(in);
	while (!vez__change(in, seen, seen | QUEUED | GUARDED | HELD));
	return !(seen & HELD);
}

/* Queues the wait; if the caller owns the mutex, and so has found the guard false, it is let go. EINPROGRESS, or
 * ECANCELED. */
static int file_guarded(vez_mutex_t *m, struct wait *w, bool owned)
{
	struct vez__stay in;
	const struct vez__guard *known = owned ? &w->guard : NULL;
	vez__enter(&in, &m->core_);
	bool waits = vez__prepare(in.core, &mutex_rules, &m->queue_, &w->r);
	if (waits) {
		owned |= mark_guarded(&in);
		m->guarded_++;
		vez__insert(in.core, &w->r);
	}
	if (owned)
		hand_on(&in, known, &w->r);
	vez__leave(&in, &mutex_rules);
	return waits ? EINPROGRESS : ECANCELED;
}

/* Waits; 0: the mutex is the caller's, once, and the guard true. Else it is not. */
static int wait_guarded(vez_mutex_t *m, struct vez__guard guard, bool owned, vez_deadline_t deadline,
			vez_cancel_t *cancel)
{
	struct wait w;
	w.guard = guard;
	vez__request_init_local(&w.r, 0, cancel);
	w.r.value_ = vez__self();
	w.r.with_.ptr_ = &w.guard;
	if (owned) {
		uint64_t word = vez__load(&m->core_.word_, relaxed);
		note_owner(m, word, 0, 0);
		note_gone(m, word);
	}
	int rc = file_guarded(m, &w, owned);
	return rc == EINPROGRESS ? vez__await(&w.r, deadline) : rc;
}

static VEZ__SLOW int await_slow(vez_mutex_t *m, struct vez__guard guard, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	uint32_t holds = m->holds_;
	int rc = wait_guarded(m, guard, true, deadline, cancel);
	vez__mutex_take_back(m, holds, rc == 0);
	return rc != 0 && vez__guard_ask(&guard) ? 0 : rc;
}

int vez_mutex_await(vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
		    vez_cancel_t *cancel)
{
	if (!guard)
		return EINVAL;
	if (!vez__mutex_is_mine(m))
		return EPERM;
	const struct vez__guard g = { .fn = guard, .arg = arg };
	if (vez__guard_ask(&g))
		return 0;
	int refused = vez__limits_refuse(deadline, cancel);
	return refused ? refused : await_slow(m, g, deadline, cancel);
}

/* Its owner locks it once more, and waits. */
static int relock_when(vez_mutex_t *m, struct vez__guard guard, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = relock(m, EDEADLK);
	if (rc == 0) {
		rc = vez_mutex_await(m, guard.fn, guard.arg, deadline, cancel);
		if (rc != 0)
			m->holds_--;
	}
	return rc;
}

static VEZ__SLOW int lock_when_slow(vez_mutex_t *m, struct vez__guard guard, bool owned, vez_deadline_t deadline,
				    vez_cancel_t *cancel)
{
	bool late = vez__deadline_passed(deadline), bounded = is_bounded(deadline, cancel);
	if (!owned && (try_take(m) || (!late && vez__spin(VEZ__SPIN_MUTEX, VEZ__SPIN_RARELY, look_again, m)))) {
		owned = true;
		note_owner(m, vez__load(&m->core_.word_, relaxed), vez__self(), 1);
		taken(m, bounded);
		if (vez__guard_ask(&guard))
			return 0;
	}
	if (late) {
		if (owned)
			vez__mutex_release_all(m);
		return ETIMEDOUT;
	}
	int rc = wait_guarded(m, guard, owned, deadline, cancel);
	return rc == 0 ? taken(m, bounded) : rc;
}

int vez_mutex_lock_when(vez_mutex_t *m, bool (*guard)(void *arg), void *arg, vez_deadline_t deadline,
			vez_cancel_t *cancel)
{
	struct vez__guard g = { .fn = guard, .arg = arg };
	if (!guard)
		return EINVAL;
	if (vez__is_fired(cancel))
		return ECANCELED;
	bool owned = lock_fast(m);
	if (owned)
		taken(m, is_bounded(deadline, cancel));
	if (owned && vez__guard_ask(&g))
		return 0;
	if (!owned && (vez__load(&m->core_.word_, relaxed) & TRACKED) && is_owner(m))
		return relock_when(m, g, deadline, cancel);
	return lock_when_slow(m, g, owned, deadline, cancel);
}

/* ---- for waits with a guard on a condition ---- */

bool vez__mutex_doze(vez_mutex_t *m, struct vez__when *w, const void *condition)
{
	struct vez__stay in;
	vez__enter(&in, &m->core_);
	bool waits = vez__prepare(in.core, &when_rules, &m->queue_, &w->r);
	if (waits) {
		vez__set_aside(&w->r);
		w->guard.asleep = true;
		vez__inspect_place_at(&w->r, condition);
	}
	vez__leave_pending(&in, &mutex_rules); /* the mutex is the caller's: nothing is settled, nobody asked */
	return waits;
}

/* Inside: those who still wait are asked from here on. How many they are; *asked: how many of them were before. */
static size_t wake_all(struct vez__stay *in, struct vez__when *first, size_t *asked)
{
	size_t count = 0;
	for (struct vez__when *w = first; w; w = w->next) {
		if (vez__is_settled(&w->r))
			continue;
		count++;
		if (w->guard.asleep)
			wake_up(in, &w->r);
		else
			++*asked;
	}
	return count;
}

size_t vez__mutex_notify(struct vez__stay *in, vez_mutex_t *m, struct vez__when *first, size_t most)
{
	uint64_t *tickets = first->guard.tickets;
	size_t asked = 0;
	vez__enter(in, &m->core_);
	size_t all = wake_all(in, first, &asked), before = vez__load(tickets, relaxed) / VEZ__TICKET;
	size_t kept = before < asked ? before : asked, given = most < all - kept ? most : all - kept;
	vez__fetch_add(tickets, (kept + given - before) * VEZ__TICKET, relaxed);
	if (all > 0 && mark_guarded(in))
		hand_on(in, NULL, NULL);
	vez__leave_pending(in, &mutex_rules);
	return given;
}

/* ---- the rest ---- */

int vez_mutex_init(vez_mutex_t *m, unsigned flags)
{
	if ((flags & ~(VEZ_FAIR | VEZ_RECURSIVE | VEZ_ERRORCHECK)) ||
	    (flags & (VEZ_RECURSIVE | VEZ_ERRORCHECK)) == (VEZ_RECURSIVE | VEZ_ERRORCHECK))
		return EINVAL;
	memset(m, 0, sizeof *m);
	m->fair_ = flags & VEZ_FAIR ? 1 : 0;
	m->core_.word_ = (flags & VEZ_RECURSIVE ? RECURSIVE : 0) | (flags & VEZ_ERRORCHECK ? ERRORCHECK : 0);
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
