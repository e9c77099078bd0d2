/* SPDX-License-Identifier: MIT */
/*
 * The mutex.
 *
 * Each test carries the id of the behaviour it checks, runs in every form that applies, as the default mutex and as a
 * fair one where both mean the same, tracked and untracked, and under every fault of tests/lib/inject.h. "Seen to
 * fail" names a change of the library with which it did. A variant called FIFO is VEZ_FAIR, one called barging
 * the default.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vez.h>

#include "bill.h"
#include "guard.h"
#include "engine/filing.h"
#include "instant.h"
#include "sync/barging.h"
#include "thread.h"
#include "variant.h"

TestSuite(mutex, .timeout = 120);

#define MS INT64_C(1000000)
#define UNTOUCHED 12345

/* ---- a lock in a thread of its own ---- */

struct locker {
	struct thread thread;
	vez_mutex_t *mutex;
	enum form form;
	vez_deadline_t deadline; /* of the forms with one; 0: an hour ahead */
	vez_cancel_t own;
	vez_cancel_t *self;      /* its thread's token, which no form names */
	bool keeps;              /* holds it until told to let go */
	unsigned *turns;         /* counts who has had it; may be NULL */
	struct gate go;
	int rc;
	int unlocked;
	int errno_after;
	unsigned turn;
	unsigned waits;
	bool has; /* it returned from the lock */
};

#define LOCKER(m, form_) { .mutex = (m), .form = (form_) }

static int lock_as(enum form form, vez_mutex_t *m, vez_deadline_t deadline, vez_cancel_t *token)
{
	vez_deadline_t far = deadline ? deadline : vez_after_ms(INT64_C(3600000));
	errno = UNTOUCHED;
	int rc;
	switch (form) {
	case FAR:
		rc = vez_mutex_lock_until(m, far, NULL);
		break;
	case TOKEN:
		rc = vez_mutex_lock_until(m, VEZ_FOREVER, token);
		break;
	case TOKEN_FAR:
	case KEYED:
		rc = vez_mutex_lock_until(m, far, token);
		break;
	default:
		rc = vez_mutex_lock(m);
	}
	EXPECT_EQ(errno, UNTOUCHED);
	return rc;
}

static void run(void *arg)
{
	struct locker *l = arg;
	l->self = vez_cancel_self();
	l->rc = lock_as(l->form, l->mutex, l->deadline, &l->own);
	l->waits = inject_own_waits();
	if (l->turns && l->rc == 0)
		l->turn = ++*l->turns;
	STORE(&l->has, true);
	if (l->keeps)
		gate_pass(&l->go);
	errno = UNTOUCHED;
	l->unlocked = l->rc == 0 ? vez_mutex_unlock(l->mutex) : 0;
	l->errno_after = errno;
}

static void lock_run(struct locker *l)
{
	gate_init(&l->go);
	STORE(&l->has, false);
	thread_start(&l->thread, run, l);
}

/* Returns when its request is queued. */
static void lock_start(struct locker *l)
{
	size_t before = vez_mutex_waiters(l->mutex);
	lock_run(l);
	UNTIL(vez_mutex_waiters(l->mutex) == before + 1);
}

static uintptr_t lock_await_parked(struct locker *l)
{
	uintptr_t word = 0, lock = (uintptr_t)l->mutex;
	UNTIL(word != 0 && word - lock >= sizeof *l->mutex)
		word = thread_futex(&l->thread);
	return word;
}

static bool lock_blocked(struct locker *l)
{
	lock_await_parked(l);
	return !LOAD(&l->has) && vez_mutex_waiters(l->mutex) > 0;
}

static void lock_await(struct locker *l)
{
	UNTIL(LOAD(&l->has));
}

static int lock_join(struct locker *l)
{
	thread_join(&l->thread);
	EXPECT_EQ(l->errno_after, UNTOUCHED);
	EXPECT_EQ(l->unlocked, 0);
	return l->rc;
}

/* It lets go, and ends. */
static int lock_finish(struct locker *l)
{
	gate_open(&l->go);
	return lock_join(l);
}

struct other {
	vez_mutex_t *mutex;
	int (*call)(vez_mutex_t *m);
	int rc;
};

static void call_it(void *arg)
{
	struct other *o = arg;
	o->rc = o->call(o->mutex);
}

/* What another thread gets from this call. */
static int elsewhere(int (*call)(vez_mutex_t *m), vez_mutex_t *m)
{
	struct other o = { m, call, -1 };
	struct thread t = { .name = "other" };
	thread_start(&t, call_it, &o);
	thread_join(&t);
	return o.rc;
}

static int holds_of(vez_mutex_t *m)
{
	return (int)vez_mutex_holds(m);
}

static int lock_expired(vez_mutex_t *m)
{
	return vez_mutex_lock_until(m, VEZ_NOW, NULL);
}

static int try_and_unlock(vez_mutex_t *m)
{
	int rc = vez_mutex_trylock(m);
	return rc ? rc : vez_mutex_unlock(m);
}

/* It is free, nobody waits, and all the calls say so. */
#define EXPECT_QUIET(m) \
	do { \
		EXPECT_EQ(vez_mutex_waiters(m), 0); \
		EXPECT_EQ(vez_mutex_holds(m), 0); \
		EXPECT_EQ(vez_mutex_unlock(m), EPERM); \
		EXPECT_EQ(elsewhere(try_and_unlock, (m)), 0); \
		EXPECT_EQ(vez_mutex_destroy(m), 0); \
	} while (0)

/* ---- alone ---- */

/* Seen to fail: init that accepts flag 1; one that accepts both kinds together. */
Test(mutex, ALL_bad_arguments_are_refused)
{
	vez_mutex_t m;
	EXPECT_EQ(vez_mutex_init(&m, VEZ_BARGING), EINVAL);
	EXPECT_EQ(vez_mutex_init(&m, 16), EINVAL);
	EXPECT_EQ(vez_mutex_init(&m, ~0u), EINVAL);
	EXPECT_EQ(vez_mutex_init(&m, VEZ_RECURSIVE | VEZ_ERRORCHECK), EINVAL);
	EXPECT_EQ(vez_mutex_init(&m, VEZ_RECURSIVE | VEZ_ERRORCHECK | VEZ_FAIR), EINVAL);
	EXPECT(VEZ_MUTEX_MAX_HOLDS >= 65535);
}

/* Seen to fail: an init that leaves a word as it was. */
Test(mutex, ALL_zero_bytes_are_a_mutex)
{
	vez_mutex_t m, fresh = VEZ_MUTEX_INITIALIZER;
	memset(&m, 0, sizeof m);
	EXPECT_EQ(memcmp(&m, &fresh, sizeof m), 0);
	EACH_VARIANT(v, FIFO_ONLY) {
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
		struct locker a = LOCKER(&m, v->form);
		lock_start(&a);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(lock_join(&a), 0);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: unlock that leaves owner_; holds that does not ask whose. */
Test(mutex, LCK_02_who_owns_it_and_how_often)
{
	EACH_VARIANT(v, ALL) {
		EACH_MUTEX_KIND(kind) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(vez_mutex_holds(&m), 0);
			EXPECT_EQ(lock_as(v->form, &m, 0, &token), 0);
			EXPECT_EQ(vez_mutex_holds(&m), kind ? 1 : 0);
			EXPECT_EQ(elsewhere(holds_of, &m), 0);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: unlock of a recursive mutex that frees it at the first; trylock that takes the owner for a stranger. */
Test(mutex, LCK_04_LCK_10_as_many_unlocks_as_locks)
{
	EACH_VARIANT(v, ALL) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_mutex_t m = make_mutex(fairness(v) | VEZ_RECURSIVE);
		EXPECT_EQ(vez_mutex_trylock(&m), 0);
		EXPECT_EQ(vez_mutex_trylock(&m), 0);
		EXPECT_EQ(lock_as(v->form, &m, 0, &token), 0);
		EXPECT_EQ(lock_expired(&m), 0);
		for (unsigned level = 4; level > 0; level--) {
			EXPECT_EQ(vez_mutex_holds(&m), level);
			EXPECT_EQ(elsewhere(vez_mutex_trylock, &m), EBUSY);
			EXPECT_EQ(elsewhere(lock_expired, &m), ETIMEDOUT);
			EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
		}
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: a trylock that takes an owned mutex. */
Test(mutex, LCK_05_try_by_another_thread)
{
	EACH_VARIANT(v, ONE_FORM) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			EXPECT_EQ(elsewhere(vez_mutex_trylock, &m), EBUSY);
			EXPECT_EQ(elsewhere(lock_expired, &m), ETIMEDOUT);
			EXPECT_EQ(vez_mutex_holds(&m), kind ? 1 : 0);
			EXPECT_EQ(inject_waits(), 0);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: relock without the comparison; one that counts and then says EOVERFLOW. */
Test(mutex, ALL_recursion_has_an_end)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_mutex_t m = make_mutex(fairness(v) | VEZ_RECURSIVE);
		for (unsigned i = 0; i < VEZ_MUTEX_MAX_HOLDS; i++)
			EXPECT_EQ(vez_mutex_lock(&m), 0);
		EXPECT_EQ(vez_mutex_lock(&m), EOVERFLOW);
		EXPECT_EQ(vez_mutex_trylock(&m), EOVERFLOW);
		EXPECT_EQ(lock_expired(&m), EOVERFLOW);
		EXPECT_EQ(vez_mutex_holds(&m), VEZ_MUTEX_MAX_HOLDS);
		for (unsigned i = 0; i < VEZ_MUTEX_MAX_HOLDS; i++)
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: a relock that waits; a trylock that says EDEADLK. */
Test(mutex, ALL_relock_of_an_error_checking_mutex)
{
	EACH_VARIANT(v, ALL) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_mutex_t m = make_mutex(fairness(v) | VEZ_ERRORCHECK);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		EXPECT_EQ(lock_as(v->form, &m, 0, &token), EDEADLK);
		EXPECT_EQ(lock_expired(&m), EDEADLK);
		EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
		EXPECT_EQ(vez_mutex_holds(&m), 1);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- whose it is ---- */

/* Seen to fail: unlock_tracked that does not ask; let_go that clears a clear HELD. */
Test(mutex, LCK_17_unlock_by_who_does_not_own_it)
{
	EACH_VARIANT(v, ALL) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(vez_mutex_unlock(&m), EPERM);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			struct locker a = LOCKER(&m, v->form);
			lock_start(&a);
			if (kind)
				EXPECT_EQ(elsewhere(vez_mutex_unlock, &m), EPERM);
			EXPECT(lock_blocked(&a));
			EXPECT_EQ(vez_mutex_holds(&m), kind ? 1 : 0);
			EXPECT_EQ(elsewhere(vez_mutex_trylock, &m), EBUSY);
			/* Where nobody is tracked anybody's unlock unlocks. */
			EXPECT_EQ(kind ? vez_mutex_unlock(&m) : elsewhere(vez_mutex_unlock, &m), 0);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_QUIET(&m);
		}
	}
}

static int lock_for_ever(vez_mutex_t *m)
{
	return vez_mutex_lock(m);
}

/* Seen to fail: an owner that is told by pthread_self, which the next thread gets again. */
Test(mutex, ALL_an_owner_that_exits_leaves_it_locked)
{
	EACH_VARIANT(v, ONE_FORM) {
		for (int i = 1; i < 3; i++) {
			vez_mutex_t m = make_mutex(fairness(v) | mutex_kinds[i]);
			EXPECT_EQ(elsewhere(lock_for_ever, &m), 0);
			for (int later = 0; later < 10; later++) {
				EXPECT_EQ(elsewhere(holds_of, &m), 0);
				EXPECT_EQ(elsewhere(vez_mutex_unlock, &m), EPERM);
				EXPECT_EQ(elsewhere(vez_mutex_trylock, &m), EBUSY);
				EXPECT_EQ(elsewhere(lock_expired, &m), ETIMEDOUT);
			}
			EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
			EXPECT_EQ(vez_mutex_waiters(&m), 0);
		}
	}
}

/* ---- tokens ---- */

/* Seen to fail: fire that marks the word and does not wake; give_up that leaves QUEUED. */
Test(mutex, LCK_07_LCK_08_fire_ends_a_queued_lock)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		EACH_MUTEX_KIND(kind) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(lock_as(v->form, &m, 0, &token), 0);
			struct locker a = LOCKER(&m, v->form);
			lock_start(&a);
			EXPECT(lock_blocked(&a));
			vez_cancel_fire(&a.own);
			EXPECT_EQ(lock_join(&a), ECANCELED);
			EXPECT(vez_cancel_fired(&a.own));
			EXPECT(!vez_cancel_fired(&token));
			EXPECT_EQ(vez_mutex_waiters(&m), 0);
			EXPECT_EQ(vez_mutex_holds(&m), kind ? 1 : 0);
			EXPECT_EQ(elsewhere(vez_mutex_trylock, &m), EBUSY);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: lock_until that tries the fast path before it asks the token; relock before the token. */
Test(mutex, LCK_19_A02_a_fired_token_wins)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		EACH_MUTEX_KIND(kind) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			vez_cancel_fire(&token);
			EXPECT_EQ(lock_as(v->form, &m, 0, &token), ECANCELED);
			EXPECT_EQ(vez_mutex_lock_until(&m, VEZ_NOW, &token), ECANCELED);
			EXPECT_EQ(vez_mutex_trylock(&m), 0);
			if (kind) {
				EXPECT_EQ(lock_as(v->form, &m, 0, &token), ECANCELED);
				EXPECT_EQ(vez_mutex_lock_until(&m, VEZ_NOW, &token), ECANCELED);
				EXPECT_EQ(vez_mutex_holds(&m), 1);
			}
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT(vez_cancel_fired(&token));
			EXPECT_EQ(inject_waits(), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: a lock without a token that takes the thread's own. */
Test(mutex, LCK_20_ALL_05_who_names_no_token_keeps_waiting)
{
	EACH_VARIANT(v, WITHOUT_TOKEN) {
		vez_mutex_t m = make_mutex(fairness(v));
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		struct locker a = LOCKER(&m, v->form);
		lock_start(&a);
		vez_cancel_fire(a.self);
		EXPECT(lock_blocked(&a));
		EXPECT(vez_cancel_fired(a.self));
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(lock_join(&a), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- the queue ---- */

/* Seen to fail: take_for that clears QUEUED though others are left; roll_back that forgets to. */
Test(mutex, LCK_11_the_queue_as_seen_from_outside)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_mutex_t m = make_mutex(fairness(v));
		EXPECT_EQ(vez_mutex_waiters(&m), 0);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		EXPECT_EQ(vez_mutex_waiters(&m), 0);
		struct locker a = LOCKER(&m, v->form), b = a, c = a;
		b.keeps = c.keeps = true;
		lock_start(&a);
		EXPECT_EQ(vez_mutex_waiters(&m), 1);
		lock_start(&b);
		EXPECT_EQ(vez_mutex_waiters(&m), 2);
		lock_start(&c);
		EXPECT_EQ(vez_mutex_waiters(&m), 3);
		EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(vez_mutex_waiters(&m), 2);
		EXPECT_EQ(lock_join(&a), ECANCELED);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		lock_await(&b);
		EXPECT_EQ(vez_mutex_waiters(&m), 1);
		EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
		EXPECT_EQ(lock_finish(&b), 0);
		lock_await(&c);
		EXPECT_EQ(vez_mutex_waiters(&m), 0);
		EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
		EXPECT_EQ(lock_finish(&c), 0);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: with_first without HANDOFF for FAIR; an unlock that does not enter. */
Test(mutex, LCK_22_fair_in_the_order_of_arrival)
{
	enum { WAITERS = 4 };
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_mutex_t m = make_mutex(VEZ_FAIR);
		struct locker a[WAITERS];
		unsigned turns = 0;
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		for (int i = 0; i < WAITERS; i++) {
			a[i] = (struct locker)LOCKER(&m, v->form);
			a[i].turns = &turns;
			a[i].keeps = true;
			lock_start(&a[i]);
		}
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		for (int i = 0; i < WAITERS; i++) {
			/* It is theirs though they may not have run: nobody overtakes. */
			EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
			EXPECT_EQ(lock_expired(&m), ETIMEDOUT);
			/* Who queued last may be inside yet: then that one carries the unlock out. */
			UNTIL(vez_mutex_waiters(&m) == WAITERS - 1u - (unsigned)i);
			lock_await(&a[i]);
			EXPECT_EQ(a[i].turn, i + 1);
			EXPECT_EQ(lock_finish(&a[i]), 0);
		}
		EXPECT_QUIET(&m);
	}
}

/* What the engine has of the mutex, from a request that is queued. */
static const struct vez__rules *rules_of(vez_mutex_t *m)
{
	return m->queue_->rules_;
}

/* Free for a moment: the one inside has yet to hand it over. Seen to fail: take that looks at HELD only; an unlock
 * that waits for who is inside; a leave that does not serve. */
Test(mutex, LCK_23_ALL_07_free_while_another_thread_is_inside)
{
	EACH_VARIANT(v, ALL) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			struct locker a = LOCKER(&m, v->form);
			lock_start(&a);
			lock_await_parked(&a);
			vez__lock_enter(&m.core_.word_);
			const struct vez__rules *rules = rules_of(&m);
			EXPECT_EQ(vez_mutex_waiters(&m), 1);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(vez_mutex_waiters(&m), 1);
			EXPECT_EQ(vez_mutex_unlock(&m), EPERM);
			EXPECT_EQ(vez_mutex_trylock(&m), v->flags ? 0 : EBUSY);
			EXPECT_EQ(elsewhere(lock_expired, &m), ETIMEDOUT);
			EXPECT_EQ(vez_mutex_unlock(&m), v->flags ? 0 : EPERM);
			EXPECT(lock_blocked(&a));
			vez__leave_entered(&m.core_, rules);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: a trylock, or an unlock, that asks for the monitor. */
Test(mutex, ALL_07_nobody_queued_and_another_thread_inside)
{
	EACH_VARIANT(v, ONE_FORM) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			vez__lock_enter(&m.core_.word_);
			EXPECT_EQ(vez_mutex_trylock(&m), 0);
			EXPECT_EQ(vez_mutex_waiters(&m), 0);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(lock_expired(&m), 0);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			vez__lock_exit(&m.core_.word_);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: a wait that polls; an unlock that wakes all, or the last, or wakes twice. */
Test(mutex, ALL_08_an_unlock_wakes_the_head_and_nobody_else)
{
	enum { WAITERS = 4 };
	EACH_VARIANT(v, ALL) {
		if (v->fault != FAULT_NONE && v->fault != FAULT_LATE)
			continue;
		vez_mutex_t m = make_mutex(fairness(v));
		struct locker a[WAITERS];
		uintptr_t word[WAITERS];
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		for (int i = 0; i < WAITERS; i++) {
			a[i] = (struct locker)LOCKER(&m, v->form);
			a[i].keeps = true;
			lock_start(&a[i]);
			word[i] = lock_await_parked(&a[i]);
		}
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		for (int i = 0; i < WAITERS; i++) {
			lock_await(&a[i]);
			EXPECT_EQ(inject_wakes(), i + 1);
			EXPECT_EQ(inject_woken(i), word[i]);
			EXPECT_EQ(a[i].waits, 1);
			for (int k = i + 1; k < WAITERS; k++)
				EXPECT(lock_blocked(&a[k]));
			EXPECT_EQ(lock_finish(&a[i]), 0);
		}
		EXPECT_EQ(inject_waits(), WAITERS);
		EXPECT_QUIET(&m);
	}
}

/* ---- barging, and its bound ---- */

/* Seen to fail: an unlock that hands over at once; vez__barging_entered that leaves ASKED. */
Test(mutex, D01_who_overtakes_does_not_lose_the_one_who_was_told)
{
	EACH_VARIANT(v, ALL) {
		if (!v->flags)
			continue;
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(kind);
			struct locker a = LOCKER(&m, v->form), b = a;
			inject_clock(NOON);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			lock_start(&a);
			lock_start(&b);
			lock_await_parked(&a);
			for (int round = 0; round < 3; round++) {
				thread_freeze(&a.thread);
				EXPECT_EQ(vez_mutex_unlock(&m), 0);
				unsigned wakes = inject_wakes();
				for (int i = 0; i < 3; i++) {
					EXPECT_EQ(vez_mutex_trylock(&m), 0);
					EXPECT_EQ(vez_mutex_unlock(&m), 0);
				}
				EXPECT_EQ(vez_mutex_lock(&m), 0);
				EXPECT_EQ(inject_wakes(), wakes);
				EXPECT_EQ(vez_mutex_waiters(&m), 2);
				thread_thaw(&a.thread);
				EXPECT(lock_blocked(&a));
				EXPECT(lock_blocked(&b));
			}
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_EQ(lock_join(&b), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* It has come in, looked in vain, and sleeps again: until this time, if it is not VEZ_FOREVER. */
static void looked_in_vain(struct locker *a)
{
	lock_await_parked(a);
	vez__lock_enter(&a->mutex->core_.word_);
	const struct vez__rules *rules = rules_of(a->mutex);
	EXPECT(!(LOAD(&a->mutex->core_.word_) & VEZ__ASKED));
	vez__leave_entered(&a->mutex->core_, rules);
}

/* Seen to fail: a first that never asks for the hand-over; one that asks at its first look. */
Test(mutex, ALL_the_first_is_passed_over_for_a_millisecond)
{
	EACH_VARIANT(v, ALL) {
		if (!v->flags)
			continue;
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(kind);
			struct locker a = LOCKER(&m, v->form), b = a;
			inject_clock(NOON);
			a.deadline = b.deadline = NOON + 3600000 * MS;
			a.keeps = true;
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			lock_start(&a);
			lock_start(&b);
			for (int64_t passed = 0; passed < MS; passed += MS / 4) {
				inject_clock(NOON + passed);
				lock_await_parked(&a);
				thread_freeze(&a.thread);
				EXPECT_EQ(vez_mutex_unlock(&m), 0);
				EXPECT_EQ(vez_mutex_lock(&m), 0);
				thread_thaw(&a.thread);
				looked_in_vain(&a);
			}
			inject_clock(NOON + 2 * MS);
			thread_kick(&a.thread);
			looked_in_vain(&a);
			thread_freeze(&a.thread);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
			EXPECT_EQ(lock_expired(&m), ETIMEDOUT);
			EXPECT_EQ(vez_mutex_waiters(&m), 1);
			thread_thaw(&a.thread);
			lock_await(&a);
			EXPECT_EQ(lock_finish(&a), 0);
			/* The next has not been passed over yet. */
			EXPECT_EQ(lock_join(&b), 0);
			EXPECT_EQ(vez_mutex_trylock(&m), 0);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* The one to whom it is to be handed gives up: the next is not owed it. Seen to fail: roll_back that leaves HANDOFF. */
Test(mutex, ALL_a_head_that_gives_up_takes_its_claim_along)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		if (!v->flags)
			continue;
		vez_mutex_t m = make_mutex(0);
		struct locker a = LOCKER(&m, v->form), b = LOCKER(&m, UNTIMED);
		inject_clock(NOON);
		a.deadline = NOON + 3600000 * MS;
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		lock_start(&a);
		lock_start(&b);
		lock_await_parked(&a);
		thread_freeze(&a.thread);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		thread_thaw(&a.thread);
		looked_in_vain(&a);
		inject_clock(NOON + 2 * MS);
		thread_kick(&a.thread);
		looked_in_vain(&a);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(lock_join(&a), ECANCELED);
		lock_await_parked(&b);
		thread_freeze(&b.thread);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(vez_mutex_trylock(&m), 0);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		thread_thaw(&b.thread);
		EXPECT_EQ(lock_join(&b), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- destroy ---- */

/* Seen to fail: destroy that looks at the queue only. */
Test(mutex, ALL_destroy_in_use_is_refused)
{
	EACH_VARIANT(v, ALL) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			for (int i = 0; i < 3; i++)
				EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
			struct locker a = LOCKER(&m, v->form);
			lock_start(&a);
			for (int i = 0; i < 3; i++)
				EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
			EXPECT(lock_blocked(&a));
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: await that enters the monitor once more after it was granted. */
Test(mutex, A06_who_was_cancelled_returns_without_the_object)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_mutex_t *m = guard_new(sizeof *m);
		EXPECT_EQ(vez_mutex_init(m, fairness(v)), 0);
		EXPECT_EQ(vez_mutex_lock(m), 0);
		struct locker a = LOCKER(m, v->form);
		lock_start(&a);
		lock_await_parked(&a);
		thread_freeze(&a.thread);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(vez_mutex_unlock(m), 0);
		EXPECT_EQ(vez_mutex_destroy(m), 0);
		guard_close(m);
		thread_thaw(&a.thread);
		EXPECT_EQ(lock_join(&a), ECANCELED);
		guard_free(m);
	}
}

/* An unlock whose wake is held back. */
struct giver {
	struct thread thread;
	vez_mutex_t *mutex;
	vez_cancel_t *token; /* fired just before; may be NULL */
	bool stops;          /* before it wakes */
	struct gate holds;
	int64_t at;
	int rc;
};

/* Holds the mutex until it is told, and then until the time has come. */
static void hold_until(void *arg)
{
	struct giver *g = arg;
	g->rc = vez_mutex_lock(g->mutex);
	gate_pass(&g->holds);
	while (real_now() < LOAD(&g->at))
		;
	if (g->token)
		vez_cancel_fire(g->token);
	stops_before_wake = g->stops;
	g->rc |= vez_mutex_unlock(g->mutex);
}

static void hold_start(struct giver *g)
{
	gate_init(&g->holds);
	thread_start(&g->thread, hold_until, g);
	gate_await(&g->holds, 1);
}

/* g unlocks, and a, which sleeps, returns from its call while g has yet to send the wake. */
static void let_in_without_a_wake(struct giver *g, struct locker *a)
{
	lock_await_parked(a);
	gate_init(&before_wake);
	inject_before_wake(stop_before_wake);
	gate_open(&g->holds);
	gate_await(&before_wake, 1);
	thread_kick(&a->thread);
	lock_await(a);
	EXPECT_EQ(a->rc, 0);
}

static void wake_at_last(struct giver *g)
{
	inject_before_wake(NULL);
	gate_open(&before_wake);
	thread_join(&g->thread);
	EXPECT_EQ(g->rc, 0);
}

/* Seen to fail: a leaver that reads the monitor after its leaving exchange. */
Test(mutex, A06_the_wake_comes_after_the_end_of_the_object)
{
	EACH_VARIANT(v, ALL) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t *m = guard_new(sizeof *m);
			EXPECT_EQ(vez_mutex_init(m, fairness(v) | kind), 0);
			struct locker a = LOCKER(m, v->form);
			struct giver g = { .mutex = m, .stops = true };
			hold_start(&g);
			lock_start(&a);
			let_in_without_a_wake(&g, &a);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_EQ(vez_mutex_destroy(m), 0);
			guard_close(m);
			wake_at_last(&g);
			guard_free(m);
		}
	}
}

struct user {
	struct thread thread;
	vez_mutex_t *mutex;
	sem_t go, went;
	bool stop;
	int wrong;
};

static void wait_for(sem_t *s)
{
	while (sem_wait(s) != 0)
		;
}

/* Owns it, lets go when told so. */
static void own_and_unlock(void *arg)
{
	struct user *u = arg;
	for (;;) {
		wait_for(&u->go);
		if (LOAD(&u->stop))
			return;
		u->wrong += vez_mutex_lock(u->mutex) != 0;
		sem_post(&u->went);
		u->wrong += vez_mutex_unlock(u->mutex) != 0;
		sem_post(&u->went);
	}
}

static int take_somehow(vez_mutex_t *m, int how)
{
	int rc;
	if (how == 0)
		return vez_mutex_lock(m);
	while ((rc = vez_mutex_trylock(m)) == EBUSY)
		sched_yield();
	return rc;
}

/* Seen to fail: an unlock that reads the word once more after its exchange. */
Test(mutex, A06_destroyed_and_unmapped_by_who_was_let_in)
{
	enum { ROUNDS = 3000 };
	vez_mutex_t *m = guard_new(sizeof *m);
	struct user u = { .mutex = m };
	sem_init(&u.go, 0, 0);
	sem_init(&u.went, 0, 0);
	thread_start(&u.thread, own_and_unlock, &u);
	for (int round = 0; round < ROUNDS; round++) {
		EXPECT_EQ(vez_mutex_init(m, (round & 2 ? VEZ_FAIR : 0) | mutex_kinds[round % 3]), 0);
		sem_post(&u.go);
		wait_for(&u.went);
		EXPECT_EQ(take_somehow(m, round & 1), 0);
		EXPECT_EQ(vez_mutex_unlock(m), 0);
		EXPECT_EQ(vez_mutex_destroy(m), 0);
		guard_close(m);
		wait_for(&u.went);
		guard_open(m, sizeof *m);
	}
	STORE(&u.stop, true);
	sem_post(&u.go);
	thread_join(&u.thread);
	EXPECT_EQ(u.wrong, 0);
	guard_free(m);
}

/* ---- a grant meets the end of a wait ---- */

/* a was let in and then ended, or ended first: it says which; the mutex is whole in both cases. */
static void expect_either(vez_mutex_t *m, struct locker *a, int else_rc, struct locker *b)
{
	int rc = lock_join(a);
	EXPECT(rc == 0 || rc == else_rc);
	EXPECT_EQ(lock_join(b), 0);
	EXPECT_QUIET(m);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(mutex, A10_B03_let_in_and_then_cancelled_before_it_ran)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			struct locker a = LOCKER(&m, v->form), b = LOCKER(&m, UNTIMED);
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			lock_start(&a);
			lock_start(&b);
			lock_await_parked(&a);
			thread_freeze(&a.thread);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			vez_cancel_fire(&a.own);
			if (!v->flags)
				EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
			thread_thaw(&a.thread);
			UNTIL(LOAD(&a.has));
			/* A fair unlock has given it the mutex; the default has only told it to look. */
			EXPECT(v->flags || a.rc == 0);
			expect_either(&m, &a, ECANCELED, &b);
		}
	}
}

/* Seen to fail: a fire that leaves the request to its thread; an unlock that asks whom a fire has claimed, and
 * no other. */
Test(mutex, A10_cancelled_and_then_unlocked_before_it_ran)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_mutex_t m = make_mutex(fairness(v));
		struct locker a = LOCKER(&m, v->form), b = LOCKER(&m, UNTIMED);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		lock_start(&a);
		lock_start(&b);
		lock_await_parked(&a);
		thread_freeze(&a.thread);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(vez_mutex_waiters(&m), 1);
		EXPECT(vez_cancel_clear(&a.own));
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(lock_join(&b), 0);
		thread_thaw(&a.thread);
		EXPECT_EQ(lock_join(&a), ECANCELED);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: await that asks the clock and not its request. */
Test(mutex, C04_let_in_after_its_deadline_passed_but_before_it_ran)
{
	EACH_VARIANT(v, WITH_DEADLINE) {
		vez_mutex_t m = make_mutex(fairness(v));
		struct locker a = LOCKER(&m, v->form), b = LOCKER(&m, UNTIMED);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		inject_clock(NOON);
		a.deadline = NOON + 1000;
		lock_start(&a);
		lock_start(&b);
		lock_await_parked(&a);
		thread_freeze(&a.thread);
		inject_clock(NOON + 5000);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		thread_thaw(&a.thread);
		expect_either(&m, &a, ETIMEDOUT, &b);
	}
}

/* Its deadline has passed, it is on its way in, and whoever is inside lets it have the mutex. Seen to fail:
 * take_result that gives up without asking whether it was settled. */
Test(mutex, C04_let_in_between_its_deadline_and_its_leaving)
{
	EACH_VARIANT(v, WITH_DEADLINE) {
		vez_mutex_t m = make_mutex(fairness(v));
		struct locker a = LOCKER(&m, v->form), b = LOCKER(&m, UNTIMED);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		inject_clock(NOON);
		a.deadline = NOON + 1000;
		lock_start(&a);
		lock_start(&b);
		lock_await_parked(&a);
		vez__lock_enter(&m.core_.word_);
		const struct vez__rules *rules = rules_of(&m);
		inject_clock(NOON + 5000);
		thread_kick(&a.thread);
		UNTIL(thread_futex(&a.thread) - (uintptr_t)&m < sizeof m);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(vez_mutex_waiters(&m), 2);
		vez__leave_entered(&m.core_, rules);
		UNTIL(LOAD(&a.has));
		EXPECT_EQ(a.rc, 0);
		expect_either(&m, &a, 0, &b);
	}
}

/* A head that leaves lets the next one go, who else would sleep: nobody unlocks any more. Seen to fail: a fire
 * that leaves the monitor without serving. */
Test(mutex, F02_a_head_that_leaves_while_the_mutex_is_free)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_mutex_t m = make_mutex(fairness(v));
		struct locker a = LOCKER(&m, v->form), b = LOCKER(&m, UNTIMED);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		lock_start(&a);
		lock_start(&b);
		lock_await_parked(&a);
		vez__lock_enter(&m.core_.word_);
		const struct vez__rules *rules = rules_of(&m);
		/* A fire has found it, and is not inside yet. */
		struct vez_request *first = m.queue_;
		vez_cancel_t *token = first->cancel_;
		struct thread fires = { .name = "fires" };
		thread_start(&fires, (void (*)(void *))vez_cancel_fire, token);
		UNTIL(LOAD(&first->word_) & VEZ__FIRED);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		vez__leave_entered(&m.core_, rules);
		thread_join(&fires);
		expect_either(&m, &a, ECANCELED, &b);
	}
}

/* Seen to fail: await that asks the clock and not its request. */
Test(mutex, ALL_04_let_in_and_timed_out_in_the_same_instant)
{
	struct instant instant = { .shift = 0 };
	for (int round = 0; instant_again(&instant, 600); round++) {
		vez_mutex_t m = make_mutex((round & 1 ? VEZ_FAIR : 0) | mutex_kinds[round % 3]);
		struct giver g = { .mutex = &m };
		hold_start(&g);
		int64_t start = vez_after_us(150);
		vez_deadline_t limit = start + instant_of_end(&instant);
		STORE(&g.at, start + instant_of_grant(&instant) + (round % 7 - 3) * 8000);
		gate_open(&g.holds);
		int rc = vez_mutex_lock_until(&m, limit, NULL);
		EXPECT(rc == 0 || (rc == ETIMEDOUT && real_now() >= limit));
		if (rc == 0)
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
		thread_join(&g.thread);
		EXPECT_EQ(g.rc, 0);
		instant_was(&instant, rc == 0);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: with_first that leaves HANDOFF. */
Test(mutex, TOK_13_cancel_and_unlock_race)
{
	for (int round = 0; round < 600; round++) {
		vez_mutex_t m = make_mutex((round & 1 ? VEZ_FAIR : 0) | mutex_kinds[round % 3]);
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		struct giver g = { .mutex = &m, .token = &token };
		struct locker b = LOCKER(&m, UNTIMED);
		hold_start(&g);
		lock_run(&b);
		STORE(&g.at, real_now() + 10000 + round % 5 * 20000);
		gate_open(&g.holds);
		int rc = vez_mutex_lock_until(&m, VEZ_FOREVER, &token);
		EXPECT(rc == 0 || rc == ECANCELED);
		if (rc == 0)
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
		thread_join(&g.thread);
		EXPECT_EQ(g.rc, 0);
		EXPECT_EQ(lock_join(&b), 0);
		EXPECT(vez_cancel_fired(&token));
		EXPECT_QUIET(&m);
	}
}

struct hopper {
	struct locker locker[2]; /* one after the other, by the thread of the first */
	int begun;
};

/* Both by the same call, so that their requests lie in the same place. */
static void lock_then_next(void *arg)
{
	struct hopper *h = arg;
	while (LOAD(&h->begun) < 2)
		run(&h->locker[ADD(&h->begun, 1) - 1]);
}

/* The request's place on the stack is used again, for another mutex, while the one that let it go has yet to wake it.
 * Seen to fail: a publication that writes to the request after its word says DONE. */
Test(mutex, I03_who_was_let_in_queues_elsewhere_before_its_wake)
{
	EACH_VARIANT(v, ALL) {
		vez_mutex_t m = make_mutex(fairness(v)), n = make_mutex(fairness(v));
		struct hopper h = { .locker = { LOCKER(&m, v->form), LOCKER(&n, v->form) } };
		struct locker *a = &h.locker[0];
		struct giver g = { .mutex = &m, .stops = true };
		hold_start(&g);
		EXPECT_EQ(vez_mutex_lock(&n), 0);
		thread_start(&a->thread, lock_then_next, &h);
		UNTIL(vez_mutex_waiters(&m) == 1);
		uintptr_t place = lock_await_parked(a), next = 0;
		let_in_without_a_wake(&g, a);
		UNTIL(vez_mutex_waiters(&n) == 1);
		UNTIL(next != 0 && next - (uintptr_t)&n >= sizeof n)
			next = thread_futex(&a->thread);
		EXPECT_EQ(next, place);
		wake_at_last(&g);
		EXPECT_EQ(vez_mutex_waiters(&n), 1);
		EXPECT_EQ(vez_mutex_unlock(&n), 0);
		EXPECT_EQ(lock_join(a), 0);
		EXPECT_EQ(h.locker[1].rc | h.locker[1].unlocked, 0);
		EXPECT_QUIET(&m);
		EXPECT_QUIET(&n);
	}
}

/* ---- deadlines ---- */

/* Seen to fail: a negative deadline that is taken for "for ever". */
Test(mutex, H02_ALL_01_deadlines_that_have_passed)
{
	EACH_VARIANT(v, ONE_FORM) {
		EACH_MUTEX_KIND(kind) {
			int64_t now = real_now();
			const vez_deadline_t years_ago = now - INT64_C(315360000) * 1000 * MS;
			const vez_deadline_t past[] = { 0, 1, -1, VEZ_NOW, now - 1, years_ago };
			for (unsigned i = 0; i < sizeof past / sizeof past[0]; i++) {
				vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
				vez_mutex_t m = make_mutex(fairness(v) | kind);
				EXPECT_EQ(vez_mutex_lock_until(&m, past[i], &token), 0);
				struct giver o = { .mutex = &m };
				EXPECT_EQ(elsewhere(lock_expired, o.mutex), ETIMEDOUT);
				EXPECT_EQ(vez_mutex_unlock(&m), 0);
				EXPECT_EQ(inject_waits(), 0);
				EXPECT(!vez_cancel_fired(&token));
				EXPECT_QUIET(&m);
			}
		}
	}
}

/* Seen to fail: a deadline that is taken for a distance; a timeout that leaves the request, or QUEUED. */
Test(mutex, ALL_timed_out_and_nothing_changed)
{
	EACH_VARIANT(v, WITH_DEADLINE) {
		vez_mutex_t m = make_mutex(fairness(v));
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		struct locker a = LOCKER(&m, v->form);
		a.deadline = vez_after_ms(3);
		lock_run(&a);
		EXPECT_EQ(lock_join(&a), ETIMEDOUT);
		EXPECT(real_now() >= a.deadline);
		EXPECT(!vez_cancel_fired(&a.own));
		EXPECT_EQ(vez_mutex_waiters(&m), 0);
		EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: a timespec whose seconds are cut to 32 bits. */
Test(mutex, LCK_31_H03_ALL_02_deadlines_too_far_to_count)
{
	int64_t now = real_now();
	const vez_deadline_t ahead[] = {
		VEZ_FOREVER, VEZ_FOREVER - 1, vez_after_ns(INT64_MAX), vez_after_ns(INT64_MAX - now + 1),
		vez_after_ms(INT64_MAX), INT64_C(1000000000) << 31, INT64_C(1000000000) << 32, INT64_MAX / 1000 * 999,
	};
	EACH_VARIANT(v, WITH_DEADLINE) {
		for (unsigned i = 0; i < sizeof ahead / sizeof ahead[0]; i++) {
			vez_mutex_t m = make_mutex(fairness(v));
			EXPECT_EQ(vez_mutex_lock(&m), 0);
			struct locker a = LOCKER(&m, v->form);
			a.deadline = ahead[i];
			lock_start(&a);
			EXPECT(lock_blocked(&a));
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_QUIET(&m);
		}
	}
}

/* Seen to fail: ETIMEDOUT from the kernel that is believed. */
Test(mutex, H03_timed_out_only_if_the_clock_says_so)
{
	EACH_VARIANT(v, WITH_DEADLINE) {
		vez_mutex_t m = make_mutex(fairness(v));
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		inject_reset(FAULT_TIMEDOUT);
		inject_clock(NOON);
		struct locker a = LOCKER(&m, v->form);
		a.deadline = NOON + 100;
		lock_start(&a);
		for (int64_t now = NOON; now < NOON + 100; now += 33) {
			inject_clock(now);
			lock_await_parked(&a);
			thread_kick(&a.thread);
			EXPECT(lock_blocked(&a));
		}
		inject_clock(NOON + 100);
		thread_kick(&a.thread);
		EXPECT_EQ(lock_join(&a), ETIMEDOUT);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- signals ---- */

/* Seen to fail: a wait that passes EINTR on; one that starts its time anew after it. */
Test(mutex, A15_signals_neither_end_nor_stretch_a_wait)
{
	for (int i = 0; i < 4; i++) {
		struct sigaction action;
		memset(&action, 0, sizeof action);
		action.sa_handler = handle_nothing;
		action.sa_flags = i % 2 ? SA_RESTART : 0;
		sigaction(SIGUSR1, &action, NULL);
		vez_mutex_t m = make_mutex(i < 2 ? 0 : VEZ_FAIR);
		struct locker untimed = LOCKER(&m, UNTIMED), timed = LOCKER(&m, FAR);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		lock_start(&untimed);
		pester(&untimed.thread, real_now() + 20 * MS);
		EXPECT(!thread_done(&untimed.thread));
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(lock_join(&untimed), 0);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		timed.deadline = vez_after_ms(60);
		lock_run(&timed);
		pester(&timed.thread, INT64_MAX);
		EXPECT(real_now() >= timed.deadline);
		EXPECT_EQ(lock_join(&timed), ETIMEDOUT);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- processor time ---- */

static int lock_and_unlock(void *m)
{
	int rc = vez_mutex_lock(m);
	return rc ? rc : vez_mutex_unlock(m);
}

static size_t waiters(const void *m)
{
	return vez_mutex_waiters(m);
}

static void unlock_once(void *m, unsigned all)
{
	(void)all; /* each unlocks for the next one */
	EXPECT_EQ(vez_mutex_unlock(m), 0);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(mutex, K01_who_waits_on_one_processor_costs_nothing)
{
	static const struct billable lock = { lock_and_unlock, waiters, unlock_once };
	for (unsigned flags = 0; flags <= VEZ_FAIR; flags += VEZ_FAIR) {
		vez_mutex_t m = make_mutex(flags);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		check_waits_cost_nothing(&lock, &m);
		EXPECT_QUIET(&m);
	}
}

/* ---- fork ---- */

static int hand_back(vez_mutex_t *m)
{
	int rc = vez_mutex_lock_until(m, vez_after_ms(10000), vez_cancel_self());
	return rc ? rc : vez_mutex_unlock(m);
}

/* The child's part: 0 if all is well. No assertion may be made here. held is owned by the thread that forked; in busy
 * others are queued. */
static int in_child(vez_mutex_t *held, unsigned kind, vez_mutex_t *busy)
{
	vez_mutex_t fresh = VEZ_MUTEX_INITIALIZER;
	if (vez_mutex_holds(held) != (kind ? 1 : 0) || elsewhere(vez_mutex_trylock, held) != EBUSY)
		return 1;
	if (kind && elsewhere(vez_mutex_unlock, held) != EPERM)
		return 2;
	if (vez_mutex_unlock(held) != 0 || elsewhere(hand_back, held) != 0 || vez_mutex_destroy(held) != 0)
		return 3;
	if (vez_mutex_init(busy, 0) != 0 || elsewhere(hand_back, busy) != 0)
		return 4;
	if (vez_mutex_lock(&fresh) != 0)
		return 5;
	struct thread t = { .name = "child's" };
	struct other o = { &fresh, hand_back, -1 };
	thread_start(&t, call_it, &o);
	UNTIL(vez_mutex_waiters(&fresh) == 1);
	if (vez_mutex_unlock(&fresh) != 0)
		return 6;
	thread_join(&t);
	return o.rc == 0 && vez_mutex_destroy(&fresh) == 0 ? 0 : 7;
}

/* Seen to fail: owners told by the kernel's thread id. */
Test(mutex, ALL_10_fork)
{
	EACH_VARIANT(v, ALL) {
		if (v->fault != FAULT_NONE && v->form != UNTIMED)
			continue;
		EACH_MUTEX_KIND(kind) {
			vez_mutex_t held = make_mutex(fairness(v) | kind), busy = make_mutex(fairness(v));
			EXPECT_EQ(vez_mutex_lock(&held), 0);
			EXPECT_EQ(vez_mutex_lock(&busy), 0);
			struct locker a = LOCKER(&busy, v->form);
			lock_start(&a);
			lock_await_parked(&a);
			pid_t child = fork();
			if (child == 0)
				_exit(in_child(&held, kind, &busy));
			int status = -1;
			EXPECT_EQ(waitpid(child, &status, 0), child);
			EXPECT_EQ(status, 0);
			EXPECT(lock_blocked(&a));
			EXPECT_EQ(vez_mutex_holds(&held), kind ? 1 : 0);
			EXPECT_EQ(vez_mutex_unlock(&held), 0);
			EXPECT_EQ(vez_mutex_unlock(&busy), 0);
			EXPECT_EQ(lock_join(&a), 0);
			EXPECT_QUIET(&held);
			EXPECT_QUIET(&busy);
		}
	}
}

/* ---- many at once ---- */

struct counter {
	struct thread thread;
	vez_mutex_t *mutex;
	unsigned kind;
	enum form form;
	vez_cancel_t own;
	unsigned rounds;
	unsigned had;
	bool wrong;
};

/* Guarded by the mutex, and by nothing else. */
static long plain_counter;

static void count(void *arg)
{
	struct counter *c = arg;
	for (unsigned i = 0; i < c->rounds; i++) {
		int rc = c->form == FAR ? vez_mutex_lock_until(c->mutex, vez_after_us(20), NULL) :
					  lock_as(c->form, c->mutex, 0, &c->own);
		if (rc != 0) {
			c->wrong |= rc != (c->form == FAR ? ETIMEDOUT : ECANCELED);
			continue;
		}
		if (c->kind == VEZ_RECURSIVE)
			c->wrong |= vez_mutex_trylock(c->mutex) != 0 || vez_mutex_unlock(c->mutex) != 0;
		plain_counter++;
		c->had++;
		c->wrong |= vez_mutex_unlock(c->mutex) != 0;
	}
}

/* Runs one thread for each of these forms at a time; fires the token of each with TOKEN_FAR. Returns how many were
 * let in. */
static long count_all(vez_mutex_t *m, unsigned kind, const enum form *forms, unsigned n, unsigned rounds)
{
	struct counter c[8];
	long had = 0;
	plain_counter = 0;
	for (unsigned i = 0; i < n; i++) {
		c[i] = (struct counter){ .mutex = m, .kind = kind, .form = forms[i], .rounds = rounds };
		thread_start(&c[i].thread, count, &c[i]);
	}
	for (unsigned i = 0; i < n; i++)
		if (forms[i] == TOKEN_FAR)
			vez_cancel_fire(&c[i].own);
	for (unsigned i = 0; i < n; i++) {
		thread_join(&c[i].thread);
		EXPECT(!c[i].wrong);
		EXPECT(forms[i] == FAR || forms[i] == TOKEN_FAR || c[i].had == rounds);
		had += c[i].had;
	}
	return had;
}

/* Seen to fail: a lock that loads and stores instead of exchanging; vez__barging_entered that leaves ASKED. */
Test(mutex, LCK_25_all_but_two_are_cancelled)
{
	static const enum form forms[] = { TOKEN_FAR, UNTIMED, TOKEN_FAR, TOKEN, TOKEN_FAR, TOKEN_FAR };
	for (int i = 0; i < 12; i++) {
		unsigned kind = mutex_kinds[i % 3];
		vez_mutex_t m = make_mutex((i & 1 ? VEZ_FAIR : 0) | kind);
		EXPECT_EQ(count_all(&m, kind, forms, 6, i & 1 ? 500 : 4000), plain_counter);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: a timeout that leaves its request in the room: the stack it lay on is used again. */
Test(mutex, LCK_26_D01_timeouts_over_and_over)
{
	static const enum form forms[] = { FAR, FAR, UNTIMED, FAR };
	for (int i = 0; i < 6; i++) {
		unsigned kind = mutex_kinds[i % 3];
		vez_mutex_t m = make_mutex((i & 1 ? VEZ_FAIR : 0) | kind);
		EXPECT_EQ(count_all(&m, kind, forms, 4, i & 1 ? 3000 : 10000), plain_counter);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: vez__barging_entered that leaves ASKED; take_for that clears QUEUED though others are left. */
Test(mutex, D01_nobody_is_left_behind)
{
	static const enum form forms[] = { UNTIMED, UNTIMED, TOKEN };
	for (int cpus = 2; cpus > 0; cpus--) {
		for (int i = 0; i < 3; i++) {
			vez_mutex_t m = make_mutex(mutex_kinds[i]);
			inject_cpus(cpus);
			EXPECT_EQ(count_all(&m, mutex_kinds[i], forms, 3, 100000), 300000);
			EXPECT_EQ(plain_counter, 300000);
			EXPECT_QUIET(&m);
		}
	}
}
