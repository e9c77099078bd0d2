/* SPDX-License-Identifier: MIT */
/*
 * The readers-writer lock: Hoare's alternation, order of arrival, or readers first; nested upgrades.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock     futex/lock.h
 *	bit 2       IN_ORDER     VEZ_RW_FIFO; constant
 *	bit 3       READERS_1ST  VEZ_RW_READERS; constant
 *	bits 8-22   upgraders    how many wait to upgrade; inside
 *	bits 32-46  holds        read holds, those of waiting upgraders and of the upgraded one included. Anybody
 *	bit 56      PASS         a writer has left (unlock, downgrade, undo) while readers were queued: they are to be
 *	                         admitted by policy. Set by that writer, cleared by the one inside who admits them
 *	bit 57      READERS      readers are queued; inside
 *	bit 58      WRITERS      writers are queued; inside
 *	bit 59      RETURNING    upgraders that gave up wait until nobody is upgraded; inside
 *	bit 60      NOTED        inspection knows who is WRITING or UPGRADED. Set by that, cleared with those
 *	bit 62      WRITING      somebody holds it for writing. Anybody
 *	bit 63      UPGRADED     one of the read holds is upgraded. Anybody
 *  readers_, writers_, upgraders_  the requests behind these bits, in order of arrival; those that are RETURNING are
 *                 the first of the upgraders. Inside
 *  free_          the word when nobody holds it and nobody waits; constant
 *  tickets_       numbers the requests: a request's value is its ticket, which is its place among all kinds; inside
 * Invariants
 *  W1 WRITING excludes holds and UPGRADED. While UPGRADED, every other hold belongs to a thread that waits, in
 *     upgraders_ or to return: one becomes upgraded only while holds = upgraders, or as the only hold.
 *  W2 while nobody is inside nothing is due: no PASS; unless WRITING or UPGRADED, no RETURNING, not holds = upgraders >
 *     0, no WRITERS where holds = 0, and no reader that may enter by policy and for whom there is room. Whoever makes
 *     something due enters by the same exchange, or finds somebody inside.
 *  W3 a request is queued by the exchange that marks it in the word, and that exchange expects a word in which nothing
 *     was due. So PASS is for those who were queued when the writer left, and for no one who came later.
 *  W4 what is due and not yet carried out belongs to whom it is due: no verdict lets a newcomer take it. Free with
 *     WRITERS waits for PASS or for the writer; holds = upgraders > 0 keeps everybody out; PASS keeps upgraders out.
 *  W5 an upgrader that gave up is counted in holds and no more in upgraders: once nobody is upgraded, nobody will be
 *     before its call has returned.
 * Ordering
 *  Every exchange that gives up a hold releases (vez_rwlock_rdunlock, vez_rwlock_wrunlock, give_back), every one that
 *  takes one acquires (the fast paths, attempt, take): one that enters sees what came before every hold that was given
 *  up before (core.c).
 *  give_back (busy) -> serve: the one inside grants by acq_rel, and publishes to the waiter (word.c).
 *  give_back (undo) pairs with the acquiring load in read_on.
 * Progress and fairness
 *  Unlocking is lock-free: it never waits for the one inside. HOARE: a writer that leaves and a last reader that leaves
 *  take turns in serve (PASS first), so each side waits for the other once. IN_ORDER: nobody is overtaken, but by
 *  upgraders, who could not wait for a writer that waits for them. Upgraders: first come first served; the readers whom
 *  an undo admits delay the next one once for each turn.
 * Races considered (each a scenario of the explorer, or a test)
 *  give-up x grant: both inside; giving up serves first by the word from which it then takes the request out, so a hold
 *   that was left in the word before is granted, and the give-up finds itself settled.
 *  give-up x those it held back: leaving serves: the last writer's departure admits the readers, the last
 *   upgrader's too.
 *  unlock x joining: the joining exchange fails, what the unlock left is served first, and then it queues; it is served
 *   by its own leaving if it could have entered.
 *  unlock x newcomer's fast path: W4. trylock x one inside: decided by the word alone, which says all but who is first.
 *  undo x upgrader that gives up: it sees UPGRADED gone, or its RETURNING is seen by the undo.
 *  undo x upgrading again at once: PASS goes first, so the readers that the undo admitted are inside before.
 *  unlock x destroy: the unlocking exchange is the last touch, or the leaving one, for which destroy waits.
 * Lifetime: core.c C5.
 * Sources: Courtois, Heymans, Parnas (1971); Hoare, "Monitors" (1974); the phase as a bit beside the counts: ticket and
 *  phase-fair locks (Brandenburg, Anderson 2010); delegation: C. Martins (2009).
 */
#include "vez/rwlock.h"

#include <string.h>

#include "../engine/filing.h"

#define IN_ORDER UINT64_C(0x04)
#define READERS_1ST UINT64_C(0x08)
#define UPGRADER (UINT64_C(1) << 8)
#define UPGRADERS (UINT64_C(0x7fff) << 8)
#define HOLD (UINT64_C(1) << 32)
#define HOLDS (UINT64_C(0x7fff) << 32)
#define PASS (UINT64_C(1) << 56)
#define READERS (UINT64_C(1) << 57)
#define WRITERS (UINT64_C(1) << 58)
#define RETURNING (UINT64_C(1) << 59)
#define NOTED (UINT64_C(1) << 60)
#define WRITING (UINT64_C(1) << 62)
#define UPGRADED (UINT64_C(1) << 63)

/* Nobody waits and nobody writes if the word's upper half is less. */
#define MARKED (HOLDS + HOLD)
#define EXCLUSIVE (WRITING | UPGRADED)

static uint64_t holds_in(uint64_t word)
{
	return (word & HOLDS) / HOLD;
}

static uint64_t upgraders_in(uint64_t word)
{
	return (word & UPGRADERS) / UPGRADER;
}

static vez_rwlock_t *lock_of(const struct vez__stay *in)
{
	return (vez_rwlock_t *)in->core;
}

/* ---- inside ---- */

static uint64_t ticket_of(const vez_request_t *first)
{
	return first ? first->value_ : UINT64_MAX;
}

/* How many queued readers came before the first writer and the first upgrader. */
static size_t readers_in_order(const vez_rwlock_t *l)
{
	uint64_t writer = ticket_of(l->writers_);
	uint64_t upgrader = ticket_of(l->upgraders_);
	uint64_t bound = writer < upgrader ? writer : upgrader;
	size_t count = 0;
	const vez_request_t *r = l->readers_;
	for (; r && r->value_ < bound; r = vez__queue_next(l->readers_, r))
		count++;
	return count;
}

/* How many queued readers may enter by policy, the first ones, if nobody writes. */
static size_t readers_let_in(const vez_rwlock_t *l, uint64_t seen)
{
	if (seen & IN_ORDER)
		return readers_in_order(l);
	bool held_back = (seen & UPGRADERS) || ((seen & WRITERS) && !(seen & READERS_1ST));
	return held_back && !(seen & PASS) ? 0 : l->readers_length_;
}

/* For how many of them there is room: the others go on waiting, as if they had come when these have entered. */
static size_t readers_due(const vez_rwlock_t *l, uint64_t seen)
{
	if (!(seen & READERS))
		return 0;
	size_t count = readers_let_in(l, seen);
	size_t room = VEZ_RWLOCK_MAX_READERS - holds_in(seen);
	return count < room ? count : room;
}

/* Admits the first count queued readers. */
static void admit(struct vez__stay *in, uint64_t seen, size_t count)
{
	vez_rwlock_t *l = lock_of(in);
	if (!vez__win_all(in, seen, &l->readers_, count))
		return;
	uint64_t next = (seen & ~PASS) + count * HOLD;
	if (count == l->readers_length_)
		next &= ~READERS;
	if (!vez__change(in, seen, next))
		return;
	for (size_t i = 0; i < count; i++)
		vez__settle(in, l->readers_, 0);
}

static void let_first_upgrade(struct vez__stay *in, uint64_t seen)
{
	if (vez__change(in, seen, (seen | UPGRADED) - UPGRADER))
		vez__settle(in, lock_of(in)->upgraders_, 0);
}

static void let_first_write(struct vez__stay *in, uint64_t seen)
{
	vez_request_t *first = lock_of(in)->writers_;
	if (!vez__win_all(in, seen, &lock_of(in)->writers_, 1))
		return;
	uint64_t next = seen | WRITING;
	if (!vez__queue_next(first, first))
		next &= ~WRITERS;
	if (vez__change(in, seen, next))
		vez__settle(in, first, 0);
}

/* Those that are returning come before the others. */
#define RETURNS (-1)

static void let_all_return(struct vez__stay *in, uint64_t seen)
{
	vez_request_t *const *upgraders = &lock_of(in)->upgraders_;
	if (!vez__change(in, seen, seen & ~RETURNING))
		return;
	while (*upgraders && (*upgraders)->key_ == RETURNS)
		vez__settle(in, *upgraders, 0);
}

/* A hold is given back: readers may have waited for that. */
static bool makes_room(uint64_t before)
{
	return (before & READERS) && holds_in(before) == VEZ_RWLOCK_MAX_READERS;
}

/* Whether something may be due, as far as the word tells; READERS count only with PASS. */
static bool is_due(uint64_t word)
{
	if (word & EXCLUSIVE)
		return false;
	bool last = holds_in(word) == upgraders_in(word);
	return (word & (PASS | RETURNING)) || (last && (word & (WRITERS | UPGRADERS)));
}

static bool serve(struct vez__stay *in, uint64_t seen)
{
	size_t readers = seen & EXCLUSIVE ? 0 : readers_due(lock_of(in), seen);
	if (readers == 0 && !is_due(seen))
		return false;
	if (seen & RETURNING)
		let_all_return(in, seen);
	else if (readers > 0 || (seen & PASS))
		admit(in, seen, readers);
	else if (seen & UPGRADERS)
		let_first_upgrade(in, seen);
	else
		let_first_write(in, seen);
	return true;
}

/* ---- what a newcomer finds: 0, it may enter; EBUSY, it waits; EAGAIN, only who is inside knows; or an error ---- */

/* EAGAIN: readers are being let in, or were to wait for room, and what there is may be theirs. */

static int may_read(uint64_t seen)
{
	if (seen & (EXCLUSIVE | UPGRADERS))
		return EBUSY;
	bool passes = (seen & READERS_1ST) && (seen & (HOLDS | PASS));
	if ((seen & WRITERS) && !passes)
		return EBUSY;
	if (holds_in(seen) == VEZ_RWLOCK_MAX_READERS)
		return EOVERFLOW;
	return (seen & (READERS | PASS)) == READERS ? EAGAIN : 0;
}

static int may_write(uint64_t seen)
{
	return seen & (EXCLUSIVE | HOLDS | READERS | WRITERS) ? EBUSY : 0;
}

static int may_upgrade(uint64_t seen)
{
	if ((seen & UPGRADED) || holds_in(seen) <= upgraders_in(seen))
		return EPERM;
	return holds_in(seen) > 1 ? EBUSY : 0;
}

/* ---- entering ---- */

/* One way to enter: what an entry adds to the word; with which bits in the word it is made inside only; and the rules
 * of its queue, which come first. */
struct way {
	struct vez__rules rules;
	int (*verdict)(uint64_t seen);
	uint64_t takes;
	uint64_t inside;
};

static const struct way *way_of(const struct vez__rules *rules)
{
	return (const struct way *)rules;
}

static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	const struct way *way = way_of(vez__rules_of(r));
	int rc = way->verdict(seen);
	if (rc == 0 && vez__must_queue(r))
		rc = EBUSY;
	if (rc == 0)
		return vez__change(in, seen, seen + way->takes) ? 0 : EAGAIN;
	r->value_ = ++lock_of(in)->tickets_;
	return rc;
}

/* One attempt without waiting, by the word alone. */
static int enter_at_once(vez_rwlock_t *l, const struct way *way)
{
	uint64_t seen = vez__load(&l->core_.word_, relaxed);
	int rc;
	do {
		rc = way->verdict(seen);
		if (rc == 0 && (seen & way->inside))
			return EAGAIN;
	} while (rc == 0 && !vez__cas(&l->core_.word_, &seen, seen + way->takes, acquire));
	return rc;
}

static int attempt(struct vez__core *c, vez_request_t *r)
{
	int rc = enter_at_once((vez_rwlock_t *)c, way_of(vez__rules_of(r)));
	return rc == EAGAIN ? vez__attempt_inside(c, vez__rules_of(r), r) : rc;
}

/* The fast paths: nobody waits, nobody is inside. They guess what the word reads when one thread uses the lock: an
 * exchange need not wait for a load of what the one before it has stored. Readers that only meet other readers
 * try again. */
static inline bool read_fast(vez_rwlock_t *l)
{
	uint64_t seen = l->free_;
	if (vez__checked())
		return false;
	do
		if (VEZ__LIKELY(vez__cas_fast(&l->core_.word_, &seen, seen + HOLD, acquire)))
			return true;
	while (seen < HOLDS && !(seen & (UPGRADERS | VEZ__LOCKED)));
	return false;
}

static inline bool write_fast(vez_rwlock_t *l)
{
	uint64_t seen = l->free_;
	return !vez__checked() && vez__cas_fast(&l->core_.word_, &seen, seen + WRITING, acquire);
}

static bool fast_read(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return read_fast((vez_rwlock_t *)c);
}

static bool fast_write(struct vez__core *c, vez_request_t *r)
{
	(void)r;
	return write_fast((vez_rwlock_t *)c);
}

#define RULES(side, ...) \
	{ .type = VEZ__RWLOCK, .queue = offsetof(vez_rwlock_t, side), .attempt = attempt, .take = take, \
	  .serve = serve, __VA_ARGS__ }
#define READERS_LENGTH offsetof(vez_rwlock_t, readers_length_)

static const struct way reading = {
	RULES(readers_, .waiting = READERS, .sleeps = VEZ__TOGETHER, .fast = fast_read, .length = READERS_LENGTH),
	may_read, HOLD, 0,
};
static const struct way writing = { RULES(writers_, .waiting = WRITERS, .fast = fast_write), may_write, WRITING, 0 };
/* With PASS readers may be due first; others that are queued may have won, and be about to be let in. */
static const struct way upgrading = { RULES(upgraders_, .each = UPGRADER), may_upgrade, UPGRADED, READERS | PASS };

static VEZ__SLOW int enter_slow(vez_rwlock_t *l, const struct way *way, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez__wait(&l->core_, &way->rules, &(vez_request_t){ .cancel_ = cancel }, deadline);
}

/* If rc says so the caller now writes, or is upgraded: inspection is to know. */
static VEZ__COLD int note(vez_rwlock_t *l, int rc)
{
	if (rc == 0 && vez__inspect_owns(l))
		vez__fetch_or(&l->core_.word_, NOTED, relaxed);
	return rc;
}

static inline int alone(vez_rwlock_t *l, int rc)
{
	return vez__inspecting() ? note(l, rc) : rc;
}

int vez_rwlock_rdlock(vez_rwlock_t *l)
{
	return VEZ__LIKELY(read_fast(l)) ? 0 : enter_slow(l, &reading, VEZ_FOREVER, NULL);
}

int vez_rwlock_tryrdlock(vez_rwlock_t *l)
{
	int rc = enter_at_once(l, &reading);
	return rc == EAGAIN ? vez__attempt(&l->core_, &reading.rules, 0) : rc;
}

int vez_rwlock_rdlock_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	return !fired && VEZ__LIKELY(read_fast(l)) ? 0 : enter_slow(l, &reading, deadline, cancel);
}

int vez_rwlock_wrlock(vez_rwlock_t *l)
{
	return alone(l, VEZ__LIKELY(write_fast(l)) ? 0 : enter_slow(l, &writing, VEZ_FOREVER, NULL));
}

int vez_rwlock_trywrlock(vez_rwlock_t *l)
{
	return alone(l, enter_at_once(l, &writing));
}

int vez_rwlock_wrlock_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	return alone(l, !fired && VEZ__LIKELY(write_fast(l)) ? 0 : enter_slow(l, &writing, deadline, cancel));
}

int vez_rwlock_rdlock_async(vez_rwlock_t *l, vez_request_t *r)
{
	return vez__file_async(&l->core_, &reading.rules, r);
}

int vez_rwlock_wrlock_async(vez_rwlock_t *l, vez_request_t *r)
{
	return vez__file_async(&l->core_, &writing.rules, r);
}

/* ---- leaving ---- */

/* The word after each way to leave; false: nobody holds what that gives up. */

static bool after_rdunlock(uint64_t seen, uint64_t *next)
{
	*next = seen - HOLD;
	return !(seen & UPGRADED) && holds_in(seen) > upgraders_in(seen);
}

/* A writer leaves: the readers that are queued now are to be admitted. */
static uint64_t passed(uint64_t word)
{
	return word & READERS ? word | PASS : word;
}

static bool after_wrunlock(uint64_t seen, uint64_t *next)
{
	*next = passed(seen - WRITING) & ~NOTED;
	return seen & WRITING;
}

static bool after_downgrade(uint64_t seen, uint64_t *next)
{
	*next = passed(seen - WRITING + HOLD) & ~NOTED;
	return seen & WRITING;
}

static bool after_undo(uint64_t seen, uint64_t *next)
{
	*next = passed(seen - UPGRADED) & ~NOTED;
	return seen & UPGRADED;
}

static VEZ__SLOW int give_back(vez_rwlock_t *l, bool (*after)(uint64_t seen, uint64_t *next))
{
	uint64_t seen = vez__load(&l->core_.word_, relaxed);
	uint64_t next;
	bool enters;
	if ((seen & NOTED) && after(seen, &next) && !(next & NOTED))
		vez__inspect_disowns(l);
	do {
		if (!after(seen, &next)) {
			if (vez__checked())
				vez__told_unlocks(l); /* a checker knows no holder, as any thread may unlock */
			return EPERM;
		}
		enters = (is_due(next) || makes_room(seen)) && !(seen & VEZ__LOCKED);
	} while (!vez__cas(&l->core_.word_, &seen, enters ? next | VEZ__LOCKED : next, acq_rel));
	if (enters)
		vez__leave_entered(&l->core_, &reading.rules);
	return 0;
}

int vez_rwlock_rdunlock(vez_rwlock_t *l)
{
	uint64_t seen = l->free_ + HOLD;
	if (vez__checked())
		return give_back(l, after_rdunlock);
	do
		if (VEZ__LIKELY(vez__cas_fast(&l->core_.word_, &seen, seen - HOLD, release)))
			return 0;
	while (seen >= HOLD && seen < MARKED && !(seen & UPGRADERS));
	return give_back(l, after_rdunlock);
}

int vez_rwlock_wrunlock(vez_rwlock_t *l)
{
	uint64_t seen = l->free_ + WRITING;
	if (!vez__checked() && VEZ__LIKELY(vez__cas_fast(&l->core_.word_, &seen, seen - WRITING, release)))
		return 0;
	return give_back(l, after_wrunlock);
}

/* The caller's own hold says which it is: while it reads nobody is WRITING, and while it writes nobody reads. */
int vez_rwlock_unlock(vez_rwlock_t *l)
{
	return vez__load(&l->core_.word_, relaxed) & WRITING ? vez_rwlock_wrunlock(l) : vez_rwlock_rdunlock(l);
}

int vez_rwlock_downgrade(vez_rwlock_t *l)
{
	return give_back(l, after_downgrade);
}

/* ---- upgrading ---- */

static inline bool upgrade_fast(vez_rwlock_t *l)
{
	uint64_t seen = vez__load(&l->core_.word_, relaxed);
	return seen / HOLD == 1 && !(seen & (UPGRADERS | VEZ__LOCKED)) &&
	       vez__cas(&l->core_.word_, &seen, seen + UPGRADED, acquire);
}

/* Inside: queues r until nobody is upgraded; false: nobody is. */
static bool join_returning(struct vez__stay *in, vez_request_t *r)
{
	vez_rwlock_t *l = lock_of(in);
	uint64_t seen;
	do {
		seen = vez__word_of(in);
		if (!(seen & UPGRADED))
			return false;
	} while (!vez__change(in, seen, seen | RETURNING));
	vez__prepare(&l->core_, &upgrading.rules, &l->upgraders_, r);
	vez__insert(&l->core_, r);
	return true;
}

/* An upgrader that has given up may read on when nobody is upgraded (W5). */
static void read_on(vez_rwlock_t *l)
{
	vez_request_t r;
	struct vez__stay in;
	if (!(vez__load(&l->core_.word_, acquire) & UPGRADED))
		return;
	vez__request_init_local(&r, RETURNS, NULL);
	r.value_ = 0;
	vez__enter(&in, &l->core_);
	bool waits = join_returning(&in, &r);
	vez__leave(&in, &upgrading.rules);
	if (waits)
		vez__await(&r, VEZ_FOREVER);
}

static VEZ__SLOW int upgrade_waiting(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = enter_slow(l, &upgrading, deadline, cancel);
	if (rc == ETIMEDOUT || rc == ECANCELED)
		read_on(l);
	return rc;
}

int vez_rwlock_upgrade_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (vez__is_fired(cancel))
		return ECANCELED;
	if (VEZ__LIKELY(upgrade_fast(l)))
		return alone(l, 0);
	if (!vez__deadline_passed(deadline))
		return alone(l, upgrade_waiting(l, deadline, cancel));
	return vez__no_time_left(vez_rwlock_try_upgrade(l));
}

int vez_rwlock_try_upgrade(vez_rwlock_t *l)
{
	return alone(l, vez__attempt(&l->core_, &upgrading.rules, 0));
}

int vez_rwlock_undo_upgrade(vez_rwlock_t *l)
{
	return give_back(l, after_undo);
}

/* ---- the rest ---- */

size_t vez_rwlock_waiters(const vez_rwlock_t *l)
{
	uint64_t seen = vez__load(&l->core_.word_, acquire);
	if (!(seen & (READERS | WRITERS | UPGRADERS | RETURNING)))
		return 0;
	return vez__load(&l->core_.length_, relaxed);
}

int vez_rwlock_init(vez_rwlock_t *l, unsigned policy)
{
	if (policy != VEZ_RW_HOARE && policy != VEZ_RW_FIFO && policy != VEZ_RW_READERS)
		return EINVAL;
	memset(l, 0, sizeof *l);
	l->free_ = policy == VEZ_RW_FIFO ? IN_ORDER : policy == VEZ_RW_READERS ? READERS_1ST : 0;
	l->core_.word_ = l->free_;
	vez__inspect_left(l);
	return 0;
}

int vez_rwlock_destroy(vez_rwlock_t *l)
{
	return vez__destroy(&l->core_, &reading.rules, EXCLUSIVE | HOLDS);
}
