/* SPDX-License-Identifier: MIT */
/*
 * Waits with a guard, on a mutex and on a condition.
 *
 * Each test carries the id of the behaviour it checks. What is the same for every wait is in lib/waits.h: here a wait
 * is for a gate, a mutex and what it guards, to be opened. "Seen to fail" names a change of the library with which it
 * did.
 */
#include <errno.h>
#include <string.h>

#include "sync/barging.h"
#include "waits.h"

TestSuite(guard, .timeout = 120);

#define MS INT64_C(1000000)

/* ---- as something to wait for ---- */

struct gated {
	vez_mutex_t mutex;
	bool open;
};

static bool is_open(void *object)
{
	return ((struct gated *)object)->open;
}

static void make_with(void *object, unsigned flags)
{
	struct gated *g = object;
	vez_mutex_init(&g->mutex, flags);
	g->open = false;
}

static void make_default(void *object)
{
	make_with(object, 0);
}

static void make_fair(void *object)
{
	make_with(object, VEZ_FAIR);
}

static void make_recursive(void *object)
{
	make_with(object, VEZ_RECURSIVE);
}

static int open_it(void *object)
{
	struct gated *g = object;
	vez_mutex_lock(&g->mutex);
	g->open = true;
	return vez_mutex_unlock(&g->mutex);
}

static int when_until(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct gated *g = object;
	(void)index;
	int rc = vez_mutex_lock_when(&g->mutex, is_open, g, deadline, cancel);
	return rc == 0 ? vez_mutex_unlock(&g->mutex) : rc;
}

static int when(void *object, uint32_t *index)
{
	return when_until(object, index, VEZ_FOREVER, NULL);
}

static int await_until(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct gated *g = object;
	(void)index;
	vez_mutex_lock(&g->mutex);
	int rc = vez_mutex_await(&g->mutex, is_open, g, deadline, cancel);
	vez_mutex_unlock(&g->mutex);
	return rc;
}

static int await(void *object, uint32_t *index)
{
	return await_until(object, index, VEZ_FOREVER, NULL);
}

static size_t waiters(const void *object)
{
	return vez_mutex_waiters(&((const struct gated *)object)->mutex);
}

static int destroy(void *object)
{
	return vez_mutex_destroy(&((struct gated *)object)->mutex);
}

static const struct waitable kinds[] = {
	{ sizeof(struct gated), make_default, open_it, when, when_until, waiters, destroy, NULL },
	{ sizeof(struct gated), make_fair, open_it, when, when_until, waiters, destroy, NULL },
	{ sizeof(struct gated), make_default, open_it, await, await_until, waiters, destroy, NULL },
	{ sizeof(struct gated), make_recursive, open_it, await, await_until, waiters, destroy, NULL },
};

#define EACH_KIND(on) for (const struct waitable *on = kinds; on < kinds + 4; on++)

/* Seen to fail: an unlock that clears HELD outside although a guard is queued. */
Test(guard, ALL_what_makes_it_true_lets_a_wait_go)
{
	EACH_KIND(on)
		check_let_go(on);
}

/* Seen to fail: roll_back that leaves GUARDED and the count as they were. */
Test(guard, ALL_fire_ends_a_wait)
{
	EACH_KIND(on)
		check_fire_ends_a_wait(on);
}

/* Seen to fail: lock_when that does not look at its token on entry. */
Test(guard, ALL_a_fired_token_ends_it_on_entry)
{
	EACH_KIND(on)
		check_fired_on_entry(on);
}

/* Seen to fail: a wait without a token that takes the thread's own. */
Test(guard, ALL_05_who_names_no_token_keeps_waiting)
{
	EACH_KIND(on)
		check_no_token_no_cancel(on);
}

/* Seen to fail: lock_when that queues where the deadline has passed. */
Test(guard, H02_ALL_01_deadlines_that_have_passed)
{
	EACH_KIND(on)
		check_past_deadlines(on);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(guard, H03_ALL_02_deadlines_too_far_to_count)
{
	EACH_KIND(on)
		check_far_deadlines(on);
}

/* Seen to fail: roll_back that leaves GUARDED and the count as they were. */
Test(guard, ALL_timed_out_not_before_the_deadline)
{
	EACH_KIND(on)
		check_timed_out(on);
}

/* Seen to fail: ETIMEDOUT from the kernel that is believed. */
Test(guard, H03_timed_out_only_if_the_clock_says_so)
{
	EACH_KIND(on)
		check_clock_is_asked(on);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(guard, A10_B03_let_go_and_then_cancelled_before_it_ran)
{
	EACH_KIND(on)
		check_let_go_then_cancelled(on);
}

/* Of vez_mutex_lock_when: vez_mutex_await asks once more. Seen to fail: a fire that leaves the request to its
 * thread. */
Test(guard, A10_cancelled_and_then_let_go_before_it_ran)
{
	check_cancelled_then_let_go(&kinds[0]);
	check_cancelled_then_let_go(&kinds[1]);
}

/* Seen to fail: await that asks the clock and not its request. */
Test(guard, C04_let_go_after_the_deadline_passed_but_before_it_ran)
{
	EACH_KIND(on)
		check_let_go_after_the_deadline(on);
}

/* Seen to fail: a wait with a deadline that ends when a signal comes. */
Test(guard, A15_signals_neither_end_nor_stretch_a_wait)
{
	EACH_KIND(on)
		check_signals(on);
}

/* Seen to fail: a mark that a guard waits without that of the queue. */
Test(guard, B11_destroy_with_waiters_is_refused)
{
	EACH_KIND(on)
		check_destroy_is_refused(on);
}

/* Seen to fail: await that enters the mutex once more after it was let go. */
Test(guard, A06_the_object_may_go_before_the_wake_is_sent)
{
	EACH_KIND(on)
		check_gone_before_the_wake(on);
}

/* Seen to fail: let_go_guarded that reads the word after it has left. */
Test(guard, A06_destroyed_and_unmapped_by_who_was_let_go)
{
	EACH_KIND(on)
		check_destroyed_by_who_was_let_go(on, 1000);
}

/* Seen to fail: a child in which init does nothing. */
Test(guard, ALL_10_fork)
{
	EACH_KIND(on)
		check_fork(on);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(guard, K01_who_waits_on_one_processor_costs_nothing)
{
	EACH_KIND(on)
		check_no_cost_on_one_cpu(on);
}

/* ---- one wait in a thread of its own, whose guard counts ---- */

struct asks {
	int *state;
	int wanted;
	unsigned count;
};

static bool is_at_least(void *arg)
{
	struct asks *a = arg;
	a->count++;
	return *a->state >= a->wanted;
}

struct one {
	struct thread thread;
	vez_mutex_t *mutex;
	struct asks *asks; /* NULL: waits for the mutex alone */
	vez_cancel_t own;
	vez_deadline_t deadline;
	bool awaits;
	unsigned *turns;
	unsigned turn;
	struct gate go;
	bool keeps;
	bool has;
	int rc;
};

#define ONE(m, asks_) { .mutex = (m), .asks = (asks_), .deadline = VEZ_FOREVER }

static void run(void *arg)
{
	struct one *o = arg;
	if (o->awaits)
		vez_mutex_lock(o->mutex);
	if (!o->asks)
		o->rc = vez_mutex_lock_until(o->mutex, o->deadline, &o->own);
	else
		o->rc = (o->awaits ? vez_mutex_await : vez_mutex_lock_when)(o->mutex, is_at_least, o->asks, o->deadline,
									    &o->own);
	if (o->turns && o->rc == 0)
		o->turn = ++*o->turns;
	STORE(&o->has, true);
	if (o->keeps)
		gate_pass(&o->go);
	if (o->rc == 0 || o->awaits)
		vez_mutex_unlock(o->mutex);
}

/* Until it sleeps on its own word. */
static void one_sleeps(struct one *o)
{
	uintptr_t word = 0, lock = (uintptr_t)o->mutex;
	UNTIL(word != 0 && word - lock >= sizeof *o->mutex)
		word = thread_futex(&o->thread);
}

static void one_start(struct one *o)
{
	size_t before = vez_mutex_waiters(o->mutex);
	gate_init(&o->go);
	thread_start(&o->thread, run, o);
	UNTIL(vez_mutex_waiters(o->mutex) == before + 1)
		;
	one_sleeps(o);
}

static int one_join(struct one *o)
{
	thread_join(&o->thread);
	return o->rc;
}

static void set(vez_mutex_t *m, int *state, int to)
{
	EXPECT_EQ(vez_mutex_lock(m), 0);
	*state = to;
	EXPECT_EQ(vez_mutex_unlock(m), 0);
}

static bool yes(void *arg)
{
	(void)arg;
	return true;
}

static bool no(void *arg)
{
	(void)arg;
	return false;
}

#define EXPECT_QUIET(m) \
	do { \
		EXPECT_EQ(vez_mutex_waiters(m), 0); \
		EXPECT_EQ(vez_mutex_unlock(m), EPERM); \
		EXPECT_EQ(vez_mutex_destroy(m), 0); \
	} while (0)

/* It waits, its guard becomes true, and it does not run. */
static void one_is_true_frozen(struct one *o, int *state)
{
	one_start(o);
	thread_freeze(&o->thread);
	set(o->mutex, state, 1);
}

/* It runs, and was the only one. */
static void one_goes_on(struct one *o)
{
	thread_thaw(&o->thread);
	gate_open(&o->go);
	EXPECT_EQ(one_join(o), 0);
	EXPECT_QUIET(o->mutex);
}

/* ---- alone ---- */

/* Seen to fail: await without each of its checks; lock_when that keeps the mutex when the guard is false. */
Test(guard, ALL_who_may_not_wait_and_who_need_not)
{
	EACH_VARIANT(v, ONE_FORM) {
		EACH_MUTEX_KIND(kind) {
			vez_cancel_t fired = VEZ_CANCEL_INITIALIZER;
			vez_mutex_t m = make_mutex(fairness(v) | kind);
			vez_cancel_fire(&fired);
			EXPECT_EQ(vez_mutex_lock_when(&m, NULL, NULL, VEZ_FOREVER, NULL), EINVAL);
			EXPECT_EQ(vez_mutex_await(&m, NULL, NULL, VEZ_FOREVER, NULL), EINVAL);
			EXPECT_EQ(vez_mutex_await(&m, yes, NULL, VEZ_FOREVER, NULL), EPERM);
			EXPECT_EQ(vez_mutex_lock_when(&m, no, NULL, VEZ_NOW, NULL), ETIMEDOUT);
			EXPECT_EQ(vez_mutex_lock_when(&m, yes, NULL, VEZ_FOREVER, &fired), ECANCELED);
			EXPECT_QUIET(&m);
			m = make_mutex(fairness(v) | kind);
			EXPECT_EQ(vez_mutex_lock_when(&m, yes, NULL, VEZ_NOW, NULL), 0);
			EXPECT_EQ(vez_mutex_holds(&m), kind ? 1 : 0);
			EXPECT_EQ(vez_mutex_await(&m, yes, NULL, VEZ_NOW, &fired), 0);
			EXPECT_EQ(vez_mutex_await(&m, no, NULL, VEZ_NOW, NULL), ETIMEDOUT);
			EXPECT_EQ(vez_mutex_await(&m, no, NULL, VEZ_FOREVER, &fired), ECANCELED);
			EXPECT_EQ(vez_mutex_holds(&m), kind ? 1 : 0);
			EXPECT_EQ(vez_mutex_destroy(&m), EBUSY);
			EXPECT_EQ(vez_mutex_unlock(&m), 0);
			EXPECT_QUIET(&m);
			EXPECT_EQ(inject_waits(), 0);
		}
	}
}

/* Seen to fail: relock_when that keeps its hold; await that restores one. */
Test(guard, ALL_the_owner_waits_with_all_its_holds)
{
	vez_mutex_t m = make_mutex(VEZ_RECURSIVE);
	EXPECT_EQ(vez_mutex_lock(&m), 0);
	EXPECT_EQ(vez_mutex_lock_when(&m, yes, NULL, VEZ_FOREVER, NULL), 0);
	EXPECT_EQ(vez_mutex_holds(&m), 2);
	EXPECT_EQ(vez_mutex_lock_when(&m, no, NULL, vez_after_ms(1), NULL), ETIMEDOUT);
	EXPECT_EQ(vez_mutex_holds(&m), 2);
	int state = 0;
	struct asks other = { &state, 0, 0 };
	struct one o = ONE(&m, &other);
	one_start(&o); /* is let in while this one waits */
	EXPECT_EQ(vez_mutex_await(&m, no, NULL, vez_after_ms(50), NULL), ETIMEDOUT);
	EXPECT_EQ(one_join(&o), 0);
	EXPECT_EQ(vez_mutex_holds(&m), 2);
	EXPECT_EQ(vez_mutex_unlock(&m), 0);
	EXPECT_EQ(vez_mutex_unlock(&m), 0);
	EXPECT_QUIET(&m);
	m = make_mutex(VEZ_ERRORCHECK);
	EXPECT_EQ(vez_mutex_lock(&m), 0);
	EXPECT_EQ(vez_mutex_lock_when(&m, yes, NULL, VEZ_FOREVER, NULL), EDEADLK);
	EXPECT_EQ(vez_mutex_holds(&m), 1);
	EXPECT_EQ(vez_mutex_unlock(&m), 0);
	EXPECT_QUIET(&m);
}

/* ---- the queue ---- */

/* Seen to fail: mark_guarded that sets HANDOFF where the mutex is fair; first_plain that looks at the first only. */
Test(guard, ALL_a_false_guard_holds_nobody_back)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_mutex_t m = make_mutex(fairness(v));
		int state = 0;
		struct asks never = { &state, 1, 0 };
		struct one a = ONE(&m, &never), b = a, p = ONE(&m, NULL);
		one_start(&a);
		b.awaits = true;
		one_start(&b);
		EXPECT_EQ(vez_mutex_waiters(&m), 2);
		EXPECT_EQ(vez_mutex_trylock(&m), 0);
		one_start(&p);
		EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(one_join(&p), 0);
		EXPECT_EQ(vez_mutex_waiters(&m), 2);
		EXPECT_EQ(vez_mutex_trylock(&m), 0);
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		set(&m, &state, 1);
		EXPECT_EQ(one_join(&a), 0);
		EXPECT_EQ(one_join(&b), 0);
		EXPECT_QUIET(&m);
	}
}

/* Guards and plain lockers in one order. Seen to fail: first_to_go that begins with the last; hand_on that prefers
 * guards. */
Test(guard, ALL_in_the_order_of_arrival)
{
	enum { WAITERS = 5 };
	vez_mutex_t m = make_mutex(VEZ_FAIR);
	int state = 0;
	struct asks is1 = { &state, 1, 0 }, is2 = { &state, 2, 0 }, is0 = { &state, 0, 0 };
	struct asks *guards[WAITERS] = { &is2, NULL, &is1, NULL, &is0 };
	static const unsigned turn[WAITERS] = { 5, 1, 2, 3, 4 };
	struct one o[WAITERS];
	unsigned turns = 0;
	EXPECT_EQ(vez_mutex_lock(&m), 0);
	for (int i = 0; i < WAITERS; i++) {
		o[i] = (struct one)ONE(&m, guards[i]);
		o[i].turns = &turns;
		one_start(&o[i]);
	}
	state = 1;
	EXPECT_EQ(vez_mutex_unlock(&m), 0);
	EXPECT_EQ(one_join(&o[4]), 0);
	EXPECT_EQ(turns, 4);
	set(&m, &state, 2);
	for (int i = 0; i < WAITERS; i++) {
		EXPECT(i == 4 || one_join(&o[i]) == 0);
		EXPECT_EQ(o[i].turn, turn[i]);
	}
	EXPECT_QUIET(&m);
}

/* The thread that unlocks a fair mutex hands it over: it is never free in between. Seen to fail: hand_on that sets it
 * free. */
Test(guard, ALL_a_true_guard_is_handed_a_fair_mutex)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_mutex_t m = make_mutex(fairness(v));
		int state = 0;
		struct asks is1 = { &state, 1, 0 };
		struct one o = ONE(&m, &is1);
		o.keeps = true;
		one_is_true_frozen(&o, &state);
		EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
		EXPECT_EQ(vez_mutex_waiters(&m), 0);
		one_goes_on(&o);
	}
}

static bool is_asked(vez_mutex_t *m)
{
	return LOAD(&m->core_.word_) & VEZ__ASKED;
}

/* A thread that runs takes it first, and makes the guard false, twice within a millisecond: each time the wait goes on.
 * After that it is handed the mutex. Seen to fail: is_handed that says so of all guards; one that forgets the patience,
 * or has none; retry_guarded that does not ask. */
Test(guard, ALL_a_running_thread_overtakes_a_true_guard_for_a_while)
{
	EACH_MUTEX_KIND(kind) {
		vez_mutex_t m = make_mutex(kind);
		int state = 0;
		struct asks is1 = { &state, 1, 0 };
		struct one o = ONE(&m, &is1);
		o.keeps = true;
		inject_clock(NOON);
		one_start(&o);
		for (int again = 0; again < 2; again++) {
			thread_freeze(&o.thread);
			set(&m, &state, 1);
			EXPECT_EQ(vez_mutex_waiters(&m), 1);
			set(&m, &state, 0);
			EXPECT(is_asked(&m));
			thread_thaw(&o.thread);
			UNTIL(!is_asked(&m))
				;
			one_sleeps(&o);
		}
		thread_freeze(&o.thread);
		EXPECT(!LOAD(&o.has));
		inject_clock(NOON + VEZ__PATIENCE_NS);
		set(&m, &state, 1);
		EXPECT_EQ(vez_mutex_trylock(&m), EBUSY);
		EXPECT_EQ(vez_mutex_waiters(&m), 0);
		one_goes_on(&o);
		inject_clock(0);
	}
}

/* It is true again when the thread comes. Seen to fail: retry_guarded that hands the mutex to others only. */
Test(guard, ALL_a_true_guard_that_was_overtaken_is_let_in)
{
	vez_mutex_t m = make_mutex(0);
	int state = 0;
	struct asks is1 = { &state, 1, 0 };
	struct one o = ONE(&m, &is1);
	one_is_true_frozen(&o, &state);
	for (int i = 2; i <= 5; i++)
		set(&m, &state, i % 2);
	EXPECT_EQ(vez_mutex_waiters(&m), 1);
	one_goes_on(&o);
}

/* Seen to fail: first_to_go that forgets what it has asked. */
Test(guard, ALL_the_same_guard_is_asked_once)
{
	enum { WAITERS = 6 };
	EACH_VARIANT(v, ONE_FORM) {
		vez_mutex_t m = make_mutex(fairness(v));
		int state = 0;
		struct asks a = { &state, 1, 0 }, b = { &state, 1, 0 };
		struct one o[WAITERS];
		for (int i = 0; i < WAITERS; i++) {
			o[i] = (struct one)ONE(&m, i % 2 ? &b : &a);
			o[i].awaits = i > 2;
			one_start(&o[i]);
		}
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		a.count = b.count = 0;
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(a.count, 1);
		EXPECT_EQ(b.count, 1);
		set(&m, &state, 1);
		for (int i = 0; i < WAITERS; i++)
			EXPECT_EQ(one_join(&o[i]), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- giving up ---- */

/* The plain request before it is asked, and does not come: then it ends, or the guard's own token fires. Seen to fail:
 * without gave_up; without still_false. */
Test(guard, F02_a_guard_behind_one_who_was_asked)
{
	for (int which = 0; which < 2; which++) {
		vez_mutex_t m = make_mutex(0);
		int state = 0;
		struct asks is1 = { &state, 1, 0 };
		struct one p = ONE(&m, NULL), g = ONE(&m, &is1);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		one_start(&p);
		one_start(&g);
		thread_freeze(&p.thread);
		state = 1;
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		if (which == 0)
			vez_cancel_fire(&p.own);
		else
			vez_cancel_fire(&g.own);
		EXPECT_EQ(one_join(&g), 0);
		thread_thaw(&p.thread);
		EXPECT_EQ(one_join(&p), which == 0 ? ECANCELED : 0);
		EXPECT_QUIET(&m);
	}
}

/* Seen to fail: await that returns what the wait said. */
Test(guard, ALL_await_asks_once_more_when_it_has_the_mutex_back)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_mutex_t m = make_mutex(fairness(v));
		int state = 0;
		struct asks is1 = { &state, 1, 0 };
		struct one o = ONE(&m, &is1);
		o.awaits = true;
		one_start(&o);
		EXPECT_EQ(vez_mutex_lock(&m), 0);
		vez_cancel_fire(&o.own);
		state = 1;
		EXPECT_EQ(vez_mutex_unlock(&m), 0);
		EXPECT_EQ(one_join(&o), 0);
		EXPECT_QUIET(&m);
	}
}

/* ---- many at once ---- */

/* The i-th of so many: each kind of mutex, fair or not, on two processors and on one. */
#define CROWDS 12

static vez_mutex_t crowd_mutex(int i)
{
	inject_reset(FAULT_NONE);
	inject_cpus(i < CROWDS / 2 ? 2 : 1);
	return make_mutex((i & 1 ? VEZ_FAIR : 0) | mutex_kinds[i % 3]);
}

struct turnstile {
	vez_mutex_t mutex;
	int turn;
	long plain;
};

struct walker {
	struct thread thread;
	struct turnstile *t;
	int me, of, rounds;
	bool wrong;
};

static bool is_my_turn(void *arg)
{
	struct walker *w = arg;
	return w->t->turn == w->me;
}

static void walk(void *arg)
{
	struct walker *w = arg;
	for (int i = 0; i < w->rounds; i++) {
		w->wrong |= vez_mutex_lock(&w->t->mutex) != 0;
		while (w->t->turn != w->me) {
			int rc = vez_mutex_await(&w->t->mutex, is_my_turn, w, i % 3 ? VEZ_FOREVER : vez_after_us(20), NULL);
			w->wrong |= rc != 0 && (rc != ETIMEDOUT || w->t->turn == w->me);
		}
		w->t->turn = (w->t->turn + 1) % w->of;
		w->t->plain++;
		w->wrong |= vez_mutex_unlock(&w->t->mutex) != 0;
		if (i % 2) {
			w->wrong |= vez_mutex_lock(&w->t->mutex) != 0;
			w->t->plain++;
			w->wrong |= vez_mutex_unlock(&w->t->mutex) != 0;
		}
	}
}

/* Seen to fail: an unlock that goes past the guards where ASKED is set. */
Test(guard, D01_each_in_its_turn)
{
	enum { WALKERS = 4, ROUNDS = 2000 };
	for (int i = 0; i < CROWDS; i++) {
		struct turnstile t = { .mutex = crowd_mutex(i) };
		struct walker w[WALKERS];
		for (int k = 0; k < WALKERS; k++) {
			w[k] = (struct walker){ .t = &t, .me = k, .of = WALKERS, .rounds = ROUNDS };
			thread_start(&w[k].thread, walk, &w[k]);
		}
		for (int k = 0; k < WALKERS; k++) {
			thread_join(&w[k].thread);
			EXPECT(!w[k].wrong);
		}
		EXPECT_EQ(t.plain, WALKERS * (ROUNDS + ROUNDS / 2));
		EXPECT_QUIET(&t.mutex);
	}
}

/* ---- on a condition ---- */

struct told {
	struct gated gated;
	vez_cond_t cond;
	int state;       /* what guards ask for, one of which is is1 */
	struct asks is1; /* state is 1 */
};

static int tell(void *object)
{
	struct told *t = object;
	vez_mutex_lock(&t->gated.mutex);
	t->gated.open = true;
	vez_cond_broadcast(&t->cond);
	return vez_mutex_unlock(&t->gated.mutex);
}

static int tell_after(void *object)
{
	struct told *t = object;
	int rc = open_it(&t->gated);
	vez_cond_broadcast(&t->cond);
	return rc;
}

static int told_until(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct told *t = object;
	(void)index;
	vez_mutex_lock(&t->gated.mutex);
	int rc = vez_cond_wait_when(&t->cond, &t->gated.mutex, is_open, &t->gated, deadline, cancel);
	vez_mutex_unlock(&t->gated.mutex);
	return rc;
}

static int wait_told(void *object, uint32_t *index)
{
	return told_until(object, index, VEZ_FOREVER, NULL);
}

static size_t cond_waiters(const void *object)
{
	return vez_cond_waiters(&((const struct told *)object)->cond);
}

static int destroy_told(void *object)
{
	struct told *t = object;
	int rc = vez_cond_destroy(&t->cond);
	return rc ? rc : vez_mutex_destroy(&t->gated.mutex);
}

static void make_told_with(struct told *t, unsigned flags)
{
	vez_cond_init(&t->cond);
	make_with(&t->gated, flags);
	t->state = 0;
	t->is1 = (struct asks){ &t->state, 1, 0 };
}

static void make_told(void *object)
{
	make_told_with(object, 0);
}

static void make_told_fair(void *object)
{
	make_told_with(object, VEZ_FAIR | VEZ_ERRORCHECK);
}

static const struct waitable told_kinds[] = {
	{ sizeof(struct told), make_told, tell, wait_told, told_until, cond_waiters, destroy_told, NULL },
	{ sizeof(struct told), make_told_fair, tell_after, wait_told, told_until, cond_waiters, destroy_told, NULL },
};

#define EACH_TOLD(on) for (const struct waitable *on = told_kinds; on < told_kinds + 2; on++)

/* Seen to fail: vez__mutex_notify that does not mark the mutex; one that finds it free and leaves it so. */
Test(guard, ALL_told_what_is_told_lets_a_wait_go)
{
	EACH_TOLD(on) {
		check_let_go(on);
		check_no_token_no_cancel(on);
		check_far_deadlines(on);
	}
}

/* Seen to fail: join without its limits; roll_back_notified that leaves it asleep. */
Test(guard, ALL_told_what_ends_a_wait_untold)
{
	EACH_TOLD(on) {
		check_past_deadlines(on);
		check_timed_out(on);
		check_fired_on_entry(on);
		check_signals(on);
		check_clock_is_asked(on);
	}
}

/* Seen to fail: a notify that touches the condition after it has left. */
Test(guard, ALL_told_destroyed_and_unmapped_by_who_was_told)
{
	EACH_TOLD(on) {
		check_destroy_is_refused(on);
		check_no_cost_on_one_cpu(on);
		/* One who comes between the two steps of tell_after needs no telling, and may not destroy anything. */
		struct waitable at_once = *on;
		at_once.let_go = tell;
		check_destroyed_by_who_was_let_go(&at_once, 1000);
	}
}

struct hears {
	struct thread thread;
	struct told *told;
	struct asks *asks; /* NULL: without a guard */
	vez_cancel_t own;
	int64_t key; /* without a guard */
	int rc;
	bool over;
};

static void hear(void *arg)
{
	struct hears *h = arg;
	vez_mutex_t *m = &h->told->gated.mutex;
	vez_mutex_lock(m);
	h->rc = h->asks ? vez_cond_wait_when(&h->told->cond, m, is_at_least, h->asks, VEZ_FOREVER, &h->own) :
			  vez_cond_wait_key(&h->told->cond, m, h->key, VEZ_FOREVER, &h->own);
	STORE(&h->over, true);
	vez_mutex_unlock(m);
}

static void hear_start(struct hears *h)
{
	size_t before = vez_cond_waiters(&h->told->cond);
	thread_start(&h->thread, hear, h);
	UNTIL(vez_cond_waiters(&h->told->cond) == before + 1)
		;
	/* It has let the mutex go when this has it. */
	EXPECT_EQ(vez_mutex_lock(&h->told->gated.mutex), 0);
	EXPECT_EQ(vez_mutex_unlock(&h->told->gated.mutex), 0);
}

static int hear_join(struct hears *h)
{
	thread_join(&h->thread);
	return h->rc;
}

/* Sets the state and signals, with the mutex or after; how many were notified. */
static size_t change(struct told *t, int to, bool after, size_t (*how)(vez_cond_t *c))
{
	size_t count = 0;
	EXPECT_EQ(vez_mutex_lock(&t->gated.mutex), 0);
	t->state = to;
	if (!after)
		count = how(&t->cond);
	EXPECT_EQ(vez_mutex_unlock(&t->gated.mutex), 0);
	return after ? how(&t->cond) : count;
}

/* Seen to fail: wait_when whose request is not set aside. */
Test(guard, ALL_told_the_guard_is_asked_when_the_condition_is_notified)
{
	for (int after = 0; after < 2; after++) {
		struct told t;
		struct hears a = { .told = &t, .asks = &t.is1 }, b = a;
		make_told(&t);
		hear_start(&a);
		hear_start(&b);
		t.is1.count = 0;
		set(&t.gated.mutex, &t.state, 1);
		set(&t.gated.mutex, &t.state, 0);
		EXPECT_EQ(t.is1.count, 0);
		EXPECT_EQ(vez_mutex_waiters(&t.gated.mutex), 0);
		/* A signal that finds nobody's guard true is gone. */
		EXPECT_EQ(change(&t, 0, after, vez_cond_signal), 1);
		EXPECT_EQ(t.is1.count, 1);
		set(&t.gated.mutex, &t.state, 1);
		EXPECT_EQ(t.is1.count, 1);
		EXPECT_EQ(vez_cond_waiters(&t.cond), 2);
		EXPECT_EQ(vez_mutex_waiters(&t.gated.mutex), 0);
		EXPECT_EQ(change(&t, 1, after, vez_cond_signal), 1);
		EXPECT_EQ(hear_join(&a), 0);
		EXPECT_EQ(vez_cond_waiters(&t.cond), 1);
		EXPECT(!LOAD(&b.over));
		EXPECT_EQ(change(&t, 1, after, vez_cond_broadcast), 1);
		EXPECT_EQ(hear_join(&b), 0);
		EXPECT_EQ(change(&t, 1, after, vez_cond_broadcast), 0);
		EXPECT_EQ(destroy_told(&t), 0);
	}
}

/* Seen to fail: notify that moves the first; notify that leaves those behind it out; cond_wait that takes no place. */
Test(guard, ALL_told_a_signal_goes_to_the_first_whose_guard_is_true)
{
	for (int after = 0; after < 2; after++) {
		struct told t;
		struct asks is2 = { &t.state, 2, 0 };
		struct hears plain = { .told = &t }, two = { .told = &t, .asks = &is2 }, one = { .told = &t, .asks = &t.is1 },
			     last = plain;
		make_told(&t);
		hear_start(&plain);
		hear_start(&two);
		hear_start(&one);
		hear_start(&last);
		EXPECT_EQ(change(&t, 1, after, vez_cond_signal), 1);
		EXPECT_EQ(hear_join(&plain), 0);
		EXPECT_EQ(change(&t, 1, after, vez_cond_signal), 1);
		EXPECT_EQ(hear_join(&one), 0);
		EXPECT_EQ(change(&t, 1, after, vez_cond_signal), 1);
		EXPECT_EQ(hear_join(&last), 0);
		EXPECT_EQ(vez_cond_waiters(&t.cond), 1);
		EXPECT(!LOAD(&two.over));
		EXPECT_EQ(change(&t, 1, after, vez_cond_broadcast), 1);
		EXPECT(!LOAD(&two.over));
		EXPECT_EQ(change(&t, 2, after, vez_cond_broadcast), 1);
		EXPECT_EQ(hear_join(&two), 0);
		EXPECT_EQ(destroy_told(&t), 0);
	}
}

/* One that comes later and gives up before the mutex is let go takes no notification from one before it. Seen to fail:
 * a roll_back that takes it for a wait without a guard. */
Test(guard, ALL_told_who_gives_up_takes_nothing)
{
	struct told t;
	struct hears first = { .told = &t, .asks = &t.is1 }, later = { .told = &t };
	make_told(&t);
	hear_start(&first);
	hear_start(&later);
	EXPECT_EQ(vez_mutex_lock(&t.gated.mutex), 0);
	t.state = 1;
	EXPECT_EQ(vez_cond_signal(&t.cond), 1);
	vez_cancel_fire(&later.own);
	EXPECT_EQ(vez_mutex_unlock(&t.gated.mutex), 0);
	EXPECT_EQ(hear_join(&first), 0);
	EXPECT_EQ(hear_join(&later), ECANCELED);
	EXPECT_EQ(destroy_told(&t), 0);
}

/* Notifications for waits that have given up go with them. Seen to fail: notify that keeps them for those who come
 * after, and counts below zero. */
Test(guard, ALL_told_what_gave_up_counts_for_nothing)
{
	enum { LEAVE = 2, NEXT = 2 };
	struct told t;
	struct hears stays = { .told = &t, .asks = &t.is1 }, leave[LEAVE], next[NEXT];
	make_told(&t);
	hear_start(&stays);
	for (int i = 0; i < LEAVE; i++) {
		leave[i] = (struct hears){ .told = &t, .asks = &t.is1 };
		hear_start(&leave[i]);
	}
	EXPECT_EQ(vez_mutex_lock(&t.gated.mutex), 0);
	EXPECT_EQ(vez_cond_broadcast(&t.cond), 1 + LEAVE);
	for (int i = 0; i < LEAVE; i++)
		vez_cancel_fire(&leave[i].own);
	EXPECT_EQ(vez_cond_broadcast(&t.cond), 0);
	vez_cancel_fire(&stays.own);
	EXPECT_EQ(vez_mutex_unlock(&t.gated.mutex), 0);
	for (int i = 0; i < LEAVE; i++)
		EXPECT_EQ(hear_join(&leave[i]), ECANCELED);
	EXPECT_EQ(hear_join(&stays), ECANCELED);
	stays = (struct hears){ .told = &t, .asks = &t.is1 };
	hear_start(&stays);
	for (int i = 0; i < NEXT; i++) {
		next[i] = (struct hears){ .told = &t };
		hear_start(&next[i]);
	}
	EXPECT_EQ(change(&t, 0, false, vez_cond_signal), 1);
	EXPECT_EQ(hear_join(&next[0]), 0);
	EXPECT_EQ(vez_cond_waiters(&t.cond), 2);
	EXPECT_EQ(change(&t, 1, false, vez_cond_broadcast), 2);
	EXPECT_EQ(hear_join(&next[1]), 0);
	EXPECT_EQ(hear_join(&stays), 0);
	EXPECT_EQ(destroy_told(&t), 0);
}

/* Seen to fail: notify that looks at nobody behind those with guards. */
Test(guard, ALL_told_keys_come_after_guards)
{
	struct told t;
	struct hears by_key = { .told = &t, .key = 5 }, guarded = { .told = &t, .asks = &t.is1 };
	make_told(&t);
	hear_start(&by_key);
	hear_start(&guarded);
	EXPECT_EQ(vez_mutex_lock(&t.gated.mutex), 0);
	t.state = 1;
	EXPECT_EQ(vez_cond_signal(&t.cond), 1);
	EXPECT_EQ(vez_cond_signal(&t.cond), 1);
	EXPECT_EQ(vez_cond_signal(&t.cond), 0);
	EXPECT_EQ(vez_mutex_unlock(&t.gated.mutex), 0);
	EXPECT_EQ(hear_join(&guarded), 0);
	EXPECT_EQ(hear_join(&by_key), 0);
	EXPECT_EQ(destroy_told(&t), 0);
}

static void broadcast_by_another(void *arg)
{
	vez_cond_broadcast(arg);
}

/* While another thread has the mutex, its unlock is the moment. Seen to fail: notify that waits for the mutex. */
Test(guard, ALL_told_a_signal_waits_for_nobody)
{
	struct told t;
	struct hears a = { .told = &t, .asks = &t.is1 }, b = { .told = &t, .asks = &t.is1 };
	struct thread other = { .name = "other" };
	make_told(&t);
	hear_start(&a);
	hear_start(&b);
	EXPECT_EQ(vez_mutex_lock(&t.gated.mutex), 0);
	thread_start(&other, broadcast_by_another, &t.cond);
	thread_join(&other);
	EXPECT_EQ(vez_mutex_waiters(&t.gated.mutex), 2);
	vez_cancel_fire(&b.own); /* limits apply until the mutex is theirs: it is asked once more when it has it back */
	t.state = 1;
	EXPECT_EQ(vez_mutex_unlock(&t.gated.mutex), 0);
	EXPECT_EQ(hear_join(&a), 0);
	EXPECT_EQ(hear_join(&b), 0);
	EXPECT_EQ(destroy_told(&t), 0);
}

/* Seen to fail: wait_when without each of its checks. */
Test(guard, ALL_told_who_may_not_wait_and_who_need_not)
{
	struct told t;
	vez_mutex_t other = VEZ_MUTEX_INITIALIZER, checked = make_mutex(VEZ_ERRORCHECK);
	vez_cancel_t fired = VEZ_CANCEL_INITIALIZER;
	struct hears a = { .told = &t, .asks = &t.is1 };
	make_told(&t);
	vez_cancel_fire(&fired);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &other, NULL, NULL, VEZ_FOREVER, NULL), EINVAL);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &other, yes, NULL, VEZ_FOREVER, NULL), EPERM);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &checked, yes, NULL, VEZ_FOREVER, NULL), EPERM);
	EXPECT_EQ(vez_mutex_lock(&other), 0);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &other, yes, NULL, VEZ_NOW, &fired), 0);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &other, no, NULL, VEZ_FOREVER, &fired), ECANCELED);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &other, no, NULL, VEZ_NOW, NULL), ETIMEDOUT);
	hear_start(&a);
	EXPECT_EQ(vez_cond_wait_when(&t.cond, &other, no, NULL, VEZ_FOREVER, NULL), EINVAL);
	EXPECT_EQ(vez_cond_wait(&t.cond, &other), EINVAL);
	EXPECT_EQ(vez_mutex_unlock(&other), 0);
	EXPECT_EQ(vez_cond_destroy(&t.cond), EBUSY);
	EXPECT_EQ(change(&t, 1, false, vez_cond_signal), 1);
	EXPECT_EQ(hear_join(&a), 0);
	EXPECT_EQ(destroy_told(&t), 0);
}

/* A buffer of one, with two conditions, whose waits may time out. */
struct cell {
	vez_mutex_t mutex;
	vez_cond_t changed;
	bool full;
	long value;
};

struct mover {
	struct thread thread;
	struct cell *cell;
	bool puts;
	long rounds, sum;
	bool wrong;
};

static bool is_full(void *arg)
{
	return ((struct cell *)arg)->full;
}

static bool is_empty(void *arg)
{
	return !((struct cell *)arg)->full;
}

static void move(void *arg)
{
	struct mover *w = arg;
	struct cell *b = w->cell;
	for (long i = 1; i <= w->rounds; i++) {
		w->wrong |= vez_mutex_lock(&b->mutex) != 0;
		while (vez_cond_wait_when(&b->changed, &b->mutex, w->puts ? is_empty : is_full, b,
					  i % 3 ? VEZ_FOREVER : vez_after_us(30), NULL) != 0)
			w->wrong |= b->full != w->puts;
		w->wrong |= b->full == w->puts;
		if (w->puts)
			b->value = i;
		else
			w->sum += b->value;
		b->full = w->puts;
		if (i % 2)
			vez_cond_signal(&b->changed);
		w->wrong |= vez_mutex_unlock(&b->mutex) != 0;
		if (i % 2 == 0)
			vez_cond_signal(&b->changed);
	}
}

/* One signal for each change, one condition for both sides: it finds whom it is for. Seen to fail: notify that moves
 * the first. */
Test(guard, D01_a_buffer_with_one_condition)
{
	enum { MOVERS = 4, ROUNDS = 2000 };
	for (int i = 0; i < CROWDS; i++) {
		struct cell b = { .mutex = crowd_mutex(i) };
		struct mover w[MOVERS];
		long sum = 0;
		for (int k = 0; k < MOVERS; k++) {
			w[k] = (struct mover){ .cell = &b, .puts = k % 2, .rounds = ROUNDS };
			thread_start(&w[k].thread, move, &w[k]);
		}
		for (int k = 0; k < MOVERS; k++) {
			thread_join(&w[k].thread);
			EXPECT(!w[k].wrong);
			sum += w[k].sum;
		}
		EXPECT_EQ(sum, 2L * ROUNDS * (ROUNDS + 1) / 2);
		EXPECT_EQ(vez_cond_destroy(&b.changed), 0);
		EXPECT_QUIET(&b.mutex);
	}
}
