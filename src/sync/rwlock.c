/* SPDX-License-Identifier: MIT */
/*
 * The readers-writer lock: Hoare's alternation, order of arrival, or readers first; nested upgrades.
 *
 * State
 *  monitor_.word_
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
 *  readers_, writers_, upgraders_, returning_  the requests behind these bits, in order of arrival; inside
 *  free_          the word when nobody holds it and nobody waits; constant
 *  tickets_       numbers the requests: a request's value is its ticket, which is its place among all kinds; inside
 * Invariants
 *  W1 WRITING excludes holds and UPGRADED. While UPGRADED, every other hold belongs to a thread that waits, in
 *     upgraders_ or to return: one becomes upgraded only while holds = upgraders, or as the only hold.
 *  W2 while nobody is inside nothing is due: no PASS; unless WRITING or UPGRADED, no RETURNING, not holds = upgraders >
 *     0, no WRITERS where holds = 0, and no reader that may enter by policy. Who leaves made it so, by the word that
 *     its leaving exchange expects; who makes something due enters by the same exchange, or finds somebody inside.
 *  W3 a request is queued by the exchange that marks it in the word, and that exchange expects a word in which nothing
 *     was due. So PASS is for those who were queued when the writer left, and for no one who came later.
 *  W4 what is due and not yet carried out belongs to whom it is due: no verdict lets a newcomer take it. Free with
 *     WRITERS waits for PASS or for the writer; holds = upgraders > 0 keeps everybody out; PASS keeps upgraders out.
 *  W5 an upgrader that gave up is counted in holds and no more in upgraders: once nobody is upgraded, nobody will be
 *     before its call has returned.
 *  W6 blocking calls enter only when nobody is inside, or inside: who lets them go has left. try_ calls need not wait
 *     for that; vez_rwlock_destroy does.
 * Ordering
 *  Every exchange that gives up a hold releases (vez_rwlock_rdunlock, vez_rwlock_wrunlock, give_back), every one that
 *  takes one acquires (the fast paths, attempt, attempt_inside), and all changes are read-modify-write, so they form
 *  one release sequence: who enters sees what came before every hold that was given up before.
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
 *  give-up x who was held back: leaving serves: the last writer's departure admits the readers, the last
 *   upgrader's too.
 *  unlock x joining: the joining exchange fails, what the unlock left is served first, and then it queues; it is served
 *   by its own leaving if it could have entered.
 *  unlock x newcomer's fast path: W4. trylock x one inside: decided by the word alone, which says all but who is first.
 *  undo x upgrader that gives up: it sees UPGRADED gone, or its RETURNING is seen by the undo.
 *  undo x upgrading again at once: PASS goes first, so the readers that the undo admitted are inside before.
 *  unlock x destroy: the unlocking exchange is the last touch, or the leaving one, for which destroy waits.
 * Lifetime: see W6 and monitor.c.
 * Sources: Courtois, Heymans, Parnas (1971); Hoare, "Monitors" (1974); the phase as a bit beside the counts: ticket and
 *  phase-fair locks (Brandenburg, Anderson 2010); delegation: C. Martins (2009).
 */
#include "vez/rwlock.h"

#include <errno.h>
#include <string.h>

#include "engine.h"

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

static vez_rwlock_t *lock_of(vez_monitor_t *m)
{
	return (vez_rwlock_t *)((char *)m - offsetof(vez_rwlock_t, monitor_));
}

/* ---- inside ---- */

static uint64_t first_ticket(const vez_room_t *room)
{
	const vez_request_t *first = vez_room_first(room);
	return first ? first->value_ : UINT64_MAX;
}

/* How many queued readers came before the first writer and the first upgrader. */
static size_t readers_in_order(const vez_rwlock_t *l)
{
	uint64_t writer = first_ticket(&l->writers_);
	uint64_t upgrader = first_ticket(&l->upgraders_);
	uint64_t bound = writer < upgrader ? writer : upgrader;
	size_t count = 0;
	const vez_request_t *r = vez_room_first(&l->readers_);
	for (; r && r->value_ < bound; r = vez_room_next(&l->readers_, r))
		count++;
	return count;
}

/* How many queued readers may enter now, the first ones, if nobody writes. */
static size_t readers_due(const vez_rwlock_t *l, uint64_t seen)
{
	if (!(seen & READERS))
		return 0;
	if (seen & IN_ORDER)
		return readers_in_order(l);
	bool held_back = (seen & UPGRADERS) || ((seen & WRITERS) && !(seen & READERS_1ST));
	return held_back && !(seen & PASS) ? 0 : vez_room_length(&l->readers_);
}

/* Admits the first count queued readers; those for whom there is no room are told so. */
static void admit(vez_rwlock_t *l, uint64_t seen, size_t count)
{
	if (!vez__room_claim(&l->monitor_, seen, &l->readers_, count))
		return;
	size_t room = VEZ_RWLOCK_MAX_READERS - holds_in(seen);
	size_t admitted = count < room ? count : room;
	uint64_t next = (seen & ~PASS) + admitted * HOLD;
	if (count == vez_room_length(&l->readers_))
		next &= ~READERS;
	if (!vez__cas(&l->monitor_.word_, &seen, next, acq_rel))
		return;
	for (size_t i = 0; i < count; i++)
		vez_monitor_settle(&l->monitor_, vez_room_first(&l->readers_), i < admitted ? 0 : EOVERFLOW);
}

static void let_first_upgrade(vez_rwlock_t *l, uint64_t seen)
{
	if (vez__cas(&l->monitor_.word_, &seen, (seen | UPGRADED) - UPGRADER, acq_rel))
		vez_monitor_settle(&l->monitor_, vez_room_first(&l->upgraders_), 0);
}

static void let_first_write(vez_rwlock_t *l, uint64_t seen)
{
	if (!vez__room_claim(&l->monitor_, seen, &l->writers_, 1))
		return;
	uint64_t next = seen | WRITING;
	if (vez_room_length(&l->writers_) == 1)
		next &= ~WRITERS;
	if (vez__cas(&l->monitor_.word_, &seen, next, acq_rel))
		vez_monitor_settle(&l->monitor_, vez_room_first(&l->writers_), 0);
}

static void let_all_return(vez_rwlock_t *l, uint64_t seen)
{
	if (!vez__cas(&l->monitor_.word_, &seen, seen & ~RETURNING, acq_rel))
		return;
	for (vez_request_t *r; (r = vez_room_first(&l->returning_));)
		vez_monitor_settle(&l->monitor_, r, 0);
}

/* Whether something may be due, as far as the word tells; READERS count only with PASS. */
static bool is_due(uint64_t word)
{
	if (word & EXCLUSIVE)
		return false;
	bool last = holds_in(word) == upgraders_in(word);
	return (word & (PASS | RETURNING)) || (last && (word & (WRITERS | UPGRADERS)));
}

static bool serve(vez_monitor_t *m, uint64_t seen)
{
	vez_rwlock_t *l = lock_of(m);
	size_t readers = seen & EXCLUSIVE ? 0 : readers_due(l, seen);
	if (readers == 0 && !is_due(seen))
		return false;
	if (seen & RETURNING)
		let_all_return(l, seen);
	else if (readers > 0 || (seen & PASS))
		admit(l, seen, readers);
	else if (seen & UPGRADERS)
		let_first_upgrade(l, seen);
	else
		let_first_write(l, seen);
	return true;
}

/* The word without r, which is queued. */
static uint64_t without(const vez_rwlock_t *l, uint64_t word, const vez_request_t *r)
{
	if (r->room_ == &l->upgraders_)
		return word - UPGRADER;
	if (vez_room_length(r->room_) > 1)
		return word;
	return word & ~(r->room_ == &l->readers_ ? READERS : WRITERS);
}

/* r leaves as it came. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	return vez__cas(&m->word_, &seen, without(lock_of(m), seen, r), acq_rel);
}

static const struct vez__ops rwlock_ops = { .type = VEZ__RWLOCK, .serve = serve, .take_back = take_back };

/* ---- what a newcomer finds: 0, it may enter; EBUSY, it waits; or an error ---- */

static int may_read(uint64_t seen)
{
	if (seen & (EXCLUSIVE | UPGRADERS))
		return EBUSY;
	bool passes = (seen & READERS_1ST) && (seen & (HOLDS | PASS));
	if ((seen & WRITERS) && !passes)
		return EBUSY;
	return holds_in(seen) < VEZ_RWLOCK_MAX_READERS ? 0 : EOVERFLOW;
}

static int may_write(uint64_t seen)
{
	return seen & (EXCLUSIVE | HOLDS | READERS | WRITERS) ? EBUSY : 0;
}

/* EAGAIN: with PASS readers may be due first; in order of arrival only who is inside knows. */
static int may_upgrade(uint64_t seen)
{
	if ((seen & UPGRADED) || holds_in(seen) <= upgraders_in(seen))
		return EPERM;
	if (holds_in(seen) > 1)
		return EBUSY;
	return seen & PASS ? EAGAIN : 0;
}

/* One way to enter. */
struct way {
	int (*verdict)(uint64_t seen);
	uint64_t takes; /* what who enters adds to the word */
	uint64_t mark;  /* what who queues sets in the word, or adds to it */
	bool counted;
	size_t room;
};

static const struct way reading = { may_read, HOLD, READERS, false, offsetof(vez_rwlock_t, readers_) };
static const struct way writing = { may_write, WRITING, WRITERS, false, offsetof(vez_rwlock_t, writers_) };
static const struct way upgrading = { may_upgrade, UPGRADED, UPGRADER, true, offsetof(vez_rwlock_t, upgraders_) };

/* Inside: serves those who wait, then enters if it may and need not queue. */
static int attempt_inside(vez_rwlock_t *l, const struct way *way, bool queues)
{
	for (;;) {
		uint64_t seen = vez__load(&l->monitor_.word_, relaxed);
		if (serve(&l->monitor_, seen))
			continue;
		int rc = way->verdict(seen);
		if (rc == 0 && queues)
			return EBUSY;
		if (rc != 0 || vez__cas(&l->monitor_.word_, &seen, seen + way->takes, acquire))
			return rc;
	}
}

/* Inside: queues r by a word in which nothing is due (W3). */
static void join(vez_rwlock_t *l, const struct way *way, vez_request_t *r)
{
	uint64_t seen, next;
	do {
		seen = vez__load(&l->monitor_.word_, relaxed);
		next = way->counted ? seen + way->mark : seen | way->mark;
	} while (serve(&l->monitor_, seen) || !vez__cas(&l->monitor_.word_, &seen, next, acq_rel));
	r->value_ = ++l->tickets_;
	vez__request_insert(r);
}

/* ---- entering ---- */

/* Readers enter together, but where a writer may stand between them. */
static bool together(const vez_rwlock_t *l, const struct way *way)
{
	return way == &reading && !(vez__load(&l->monitor_.word_, relaxed) & IN_ORDER);
}

/* EINPROGRESS: r is queued; or what it came to. */
static VEZ__COLD int file(vez_rwlock_t *l, const struct way *way, vez_request_t *r)
{
	vez_room_t *room = (vez_room_t *)((char *)l + way->room);
	if (together(l, way))
		vez__request_in_cohort(&l->monitor_, r);
	vez__monitor_enter(&l->monitor_);
	int rc = attempt_inside(l, way, vez__request_must_queue(r));
	if (rc == EBUSY && !vez__request_prepare(&l->monitor_, room, r, &rwlock_ops))
		rc = ECANCELED;
	if (rc == EBUSY) {
		join(l, way, r);
		rc = vez__request_filed(&l->monitor_, r);
	}
	vez__monitor_leave(&l->monitor_, &rwlock_ops);
	return rc;
}

static VEZ__COLD int enter_waiting(vez_rwlock_t *l, const struct way *way, vez_deadline_t deadline,
				   vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, 0, cancel);
	int rc = file(l, way, &r);
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

/* One attempt without waiting, by the word alone. */
static int attempt(vez_rwlock_t *l, const struct way *way)
{
	uint64_t seen = vez__load(&l->monitor_.word_, relaxed);
	int rc;
	do
		rc = way->verdict(seen);
	while (rc == 0 && !vez__cas(&l->monitor_.word_, &seen, seen + way->takes, acquire));
	return rc;
}

static VEZ__COLD int enter_slow(vez_rwlock_t *l, const struct way *way, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (!vez__deadline_passed(deadline))
		return enter_waiting(l, way, deadline, cancel);
	return vez__no_time_left(attempt(l, way));
}

static int enter_async(vez_rwlock_t *l, const struct way *way, bool (*fast)(vez_rwlock_t *l), vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (rc == 0 && (vez__request_must_queue(r) || !fast(l)))
		rc = vez__async_waits(r) ? file(l, way, r) : vez__no_time_left(attempt(l, way));
	return vez__async_end(r, rc);
}

/* The fast paths: nobody waits, nobody is inside. They guess what the word reads when one thread uses the lock: an
 * exchange need not wait for a load of what the one before it has stored. Readers that only meet other readers
 * try again. */
static inline bool read_fast(vez_rwlock_t *l)
{
	uint64_t seen = l->free_;
	do
		if (VEZ__LIKELY(vez__cas(&l->monitor_.word_, &seen, seen + HOLD, acquire)))
			return true;
	while (seen < HOLDS && !(seen & (UPGRADERS | VEZ__LOCKED)));
	return false;
}

static inline bool write_fast(vez_rwlock_t *l)
{
	uint64_t seen = l->free_;
	return vez__cas(&l->monitor_.word_, &seen, seen + WRITING, acquire);
}

/* If rc says so the caller now writes, or is upgraded: inspection is to know. */
static VEZ__COLD int note(vez_rwlock_t *l, int rc)
{
	if (rc == 0 && vez__inspect_owns(l))
		vez__fetch_or(&l->monitor_.word_, NOTED, relaxed);
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
	return attempt(l, &reading);
}

int vez_rwlock_rdlock_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = cancel && vez_cancel_fired(cancel);
	return !fired && VEZ__LIKELY(read_fast(l)) ? 0 : enter_slow(l, &reading, deadline, cancel);
}

int vez_rwlock_wrlock(vez_rwlock_t *l)
{
	return alone(l, VEZ__LIKELY(write_fast(l)) ? 0 : enter_slow(l, &writing, VEZ_FOREVER, NULL));
}

int vez_rwlock_trywrlock(vez_rwlock_t *l)
{
	return alone(l, attempt(l, &writing));
}

int vez_rwlock_wrlock_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = cancel && vez_cancel_fired(cancel);
	return alone(l, !fired && VEZ__LIKELY(write_fast(l)) ? 0 : enter_slow(l, &writing, deadline, cancel));
}

int vez_rwlock_rdlock_async(vez_rwlock_t *l, vez_request_t *r)
{
	return enter_async(l, &reading, read_fast, r);
}

int vez_rwlock_wrlock_async(vez_rwlock_t *l, vez_request_t *r)
{
	return enter_async(l, &writing, write_fast, r);
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

static VEZ__COLD int give_back(vez_rwlock_t *l, bool (*after)(uint64_t seen, uint64_t *next))
{
	uint64_t seen = vez__load(&l->monitor_.word_, relaxed);
	uint64_t next;
	bool enters;
	if ((seen & NOTED) && after(seen, &next) && !(next & NOTED))
		vez__inspect_disowns(l);
	do {
		if (!after(seen, &next))
			return EPERM;
		enters = is_due(next) && !(seen & VEZ__LOCKED);
	} while (!vez__cas(&l->monitor_.word_, &seen, enters ? next | VEZ__LOCKED : next, acq_rel));
	if (enters)
		vez__monitor_leave(&l->monitor_, &rwlock_ops);
	return 0;
}

int vez_rwlock_rdunlock(vez_rwlock_t *l)
{
	uint64_t seen = l->free_ + HOLD;
	do
		if (VEZ__LIKELY(vez__cas(&l->monitor_.word_, &seen, seen - HOLD, release)))
			return 0;
	while (seen >= HOLD && seen < MARKED && !(seen & UPGRADERS));
	return give_back(l, after_rdunlock);
}

int vez_rwlock_wrunlock(vez_rwlock_t *l)
{
	uint64_t seen = l->free_ + WRITING;
	if (VEZ__LIKELY(vez__cas(&l->monitor_.word_, &seen, seen - WRITING, release)))
		return 0;
	return give_back(l, after_wrunlock);
}

int vez_rwlock_downgrade(vez_rwlock_t *l)
{
	return give_back(l, after_downgrade);
}

/* ---- upgrading ---- */

static inline bool upgrade_fast(vez_rwlock_t *l)
{
	uint64_t seen = vez__load(&l->monitor_.word_, relaxed);
	return seen / HOLD == 1 && !(seen & (UPGRADERS | VEZ__LOCKED)) &&
	       vez__cas(&l->monitor_.word_, &seen, seen + UPGRADED, acquire);
}

/* Inside: queues r until nobody is upgraded; false: nobody is. */
static bool join_returning(vez_rwlock_t *l, vez_request_t *r)
{
	uint64_t seen = vez__load(&l->monitor_.word_, relaxed);
	do {
		if (!(seen & UPGRADED))
			return false;
	} while (!vez__cas(&l->monitor_.word_, &seen, seen | RETURNING, acq_rel));
	vez__request_prepare(&l->monitor_, &l->returning_, r, &rwlock_ops);
	vez__request_insert(r);
	return true;
}

/* An upgrader that has given up may read on when nobody is upgraded (W5). */
static void read_on(vez_rwlock_t *l)
{
	vez_request_t r;
	if (!(vez__load(&l->monitor_.word_, acquire) & UPGRADED))
		return;
	vez__request_mine(&r, 0, NULL);
	vez__monitor_enter(&l->monitor_);
	bool waits = join_returning(l, &r);
	vez__monitor_leave(&l->monitor_, &rwlock_ops);
	if (waits)
		vez__request_await(&r, VEZ_FOREVER);
}

static VEZ__COLD int upgrade_waiting(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = enter_waiting(l, &upgrading, deadline, cancel);
	if (rc == ETIMEDOUT || rc == ECANCELED)
		read_on(l);
	return rc;
}

int vez_rwlock_upgrade_until(vez_rwlock_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (VEZ__LIKELY(upgrade_fast(l)))
		return alone(l, 0);
	if (!vez__deadline_passed(deadline))
		return alone(l, upgrade_waiting(l, deadline, cancel));
	return vez__no_time_left(vez_rwlock_try_upgrade(l));
}

int vez_rwlock_try_upgrade(vez_rwlock_t *l)
{
	int rc = attempt(l, &upgrading);
	if (VEZ__LIKELY(rc != EAGAIN))
		return alone(l, rc);
	vez__monitor_enter(&l->monitor_);
	rc = attempt_inside(l, &upgrading, false);
	vez__monitor_leave(&l->monitor_, &rwlock_ops);
	return alone(l, rc);
}

int vez_rwlock_undo_upgrade(vez_rwlock_t *l)
{
	return give_back(l, after_undo);
}

/* ---- the rest ---- */

size_t vez_rwlock_waiters(const vez_rwlock_t *l)
{
	uint64_t seen = vez__load(&l->monitor_.word_, acquire);
	if (!(seen & (READERS | WRITERS | UPGRADERS | RETURNING)))
		return 0;
	return vez_room_length(&l->readers_) + vez_room_length(&l->writers_) + vez_room_length(&l->upgraders_) +
	       vez_room_length(&l->returning_);
}

int vez_rwlock_init(vez_rwlock_t *l, unsigned policy)
{
	static const uint64_t policies[] = {
		[VEZ_RW_HOARE] = 0, [VEZ_RW_FIFO] = IN_ORDER, [VEZ_RW_READERS] = READERS_1ST,
	};
	if (policy >= sizeof policies / sizeof policies[0])
		return EINVAL;
	memset(l, 0, sizeof *l);
	l->monitor_.word_ = l->free_ = policies[policy];
	vez__inspect_left(l);
	return 0;
}

int vez_rwlock_destroy(vez_rwlock_t *l)
{
	vez__monitor_enter(&l->monitor_);
	bool held = vez__load(&l->monitor_.word_, relaxed) & (EXCLUSIVE | HOLDS);
	return vez__monitor_retire(&l->monitor_, &rwlock_ops, held);
}
