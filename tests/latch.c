/* SPDX-License-Identifier: MIT */
/*
 * The latch.
 *
 * Each test carries the id of the behaviour it checks. What is the same for every wait is in lib/waits.h. "Seen to
 * fail" names a change of the library with which it did.
 */
#include <errno.h>
#include <string.h>

#include "engine/filing.h"
#include "waits.h"

static void with_requests(void)
{
	variant_async = true;
}

TestSuite(latch, .timeout = 120, .init = with_requests);

#define MS INT64_C(1000000)

/* ---- as something to wait for ---- */

static void make_1(void *object)
{
	vez_latch_init(object, 1);
}

static int count_down(void *object)
{
	return vez_latch_count_down(object, 1);
}

static int wait(void *object, uint32_t *index)
{
	(void)index;
	return vez_latch_wait(object);
}

static int wait_until(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	(void)index;
	return vez_latch_wait_until(object, deadline, cancel);
}

static int wait_async(void *object, vez_request_t *r)
{
	return vez_latch_wait_async(object, r);
}

static size_t waiters(const void *object)
{
	return vez_latch_waiters(object);
}

static int destroy(void *object)
{
	return vez_latch_destroy(object);
}

static const struct waitable latch[] = {
	{ sizeof(vez_latch_t), make_1, count_down, wait, wait_until, waiters, destroy, wait_async },
};

/* Seen to fail: count_down that does not enter where somebody waits. */
Test(latch, LAT_04_the_last_count_down_lets_go)
{
	check_let_go(latch);
}

/* Seen to fail: a fire that leaves the request to its thread. */
Test(latch, LAT_07_LAT_08_fire_ends_a_wait)
{
	check_fire_ends_a_wait(latch);
}

/* Seen to fail: wait_until that asks the latch first. */
Test(latch, LAT_14_a_fired_token_wins)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_latch_t open = VEZ_LATCH_INITIALIZER(0);
	check_fired_on_entry(latch);
	vez_cancel_fire(&token);
	EXPECT_EQ(vez_latch_wait_until(&open, VEZ_FOREVER, &token), ECANCELED);
	EXPECT_EQ(vez_latch_wait_until(&open, VEZ_NOW, &token), ECANCELED);
	EXPECT_EQ(wait_as(ASYNC_TOKEN, latch, &open, &token), ECANCELED);
	EXPECT_EMPTY(latch, &open);
}

/* Seen to fail: a wait without a token that takes the thread's own. */
Test(latch, ALL_05_who_names_no_token_keeps_waiting)
{
	check_no_token_no_cancel(latch);
}

/* Seen to fail: wait_slow that queues where the deadline has passed. */
Test(latch, H02_ALL_01_deadlines_that_have_passed)
{
	check_past_deadlines(latch);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(latch, H03_ALL_02_deadlines_too_far_to_count)
{
	check_far_deadlines(latch);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(latch, ALL_timed_out_not_before_the_deadline)
{
	check_timed_out(latch);
}

/* Seen to fail: ETIMEDOUT from the kernel that is believed. */
Test(latch, H03_timed_out_only_if_the_clock_says_so)
{
	check_clock_is_asked(latch);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(latch, A10_opened_and_then_cancelled_before_it_ran)
{
	check_let_go_then_cancelled(latch);
}

/* Seen to fail: a fire that leaves the request to its thread. */
Test(latch, A10_cancelled_and_then_opened_before_it_ran)
{
	check_cancelled_then_let_go(latch);
}

/* Seen to fail: await that asks the clock and not its request. */
Test(latch, C04_opened_after_the_deadline_passed_but_before_it_ran)
{
	check_let_go_after_the_deadline(latch);
}

/* Seen to fail: a wait with a deadline that ends when a signal comes. */
Test(latch, A15_signals_neither_end_nor_stretch_a_wait)
{
	check_signals(latch);
}

/* Seen to fail: destroy that does not look. */
Test(latch, B11_destroy_with_waiters_is_refused)
{
	check_destroy_is_refused(latch);
}

/* Seen to fail: await that enters the monitor once more after it was let go. */
Test(latch, LAT_16_A06_who_was_let_go_returns_without_the_object)
{
	check_returns_without_the_object(latch);
}

/* Seen to fail: vez__leave_pending that reads word_ after it has left. */
Test(latch, LAT_16_A06_the_object_may_go_before_the_wake_is_sent)
{
	check_gone_before_the_wake(latch);
}

/* Seen to fail: count_down that reads the word once more after its exchange. */
Test(latch, LAT_16_A06_destroyed_and_unmapped_by_who_was_let_go)
{
	check_destroyed_by_who_was_let_go(latch, 3000);
}

/* Seen to fail: vez__retire that returns after it has left. */
Test(latch, ALL_destroy_waits_for_who_comes_in)
{
	check_destroy_waits_for_who_comes_in(latch);
}

/* Seen to fail: a child in which init does nothing. */
Test(latch, ALL_10_fork)
{
	check_fork(latch);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(latch, K01_who_waits_on_one_processor_costs_nothing)
{
	check_no_cost_on_one_cpu(latch);
}

/* ---- the count ---- */

/* Seen to fail: count_down that takes one whatever n is, or that goes below 0. */
Test(latch, LAT_02_the_count_stops_at_0)
{
	static const struct {
		uint32_t count, n, left;
	} steps[] = { { 2, 1, 1 }, { 2, 2, 0 }, { 2, 3, 0 }, { 1, UINT32_MAX, 0 }, { UINT32_MAX, 1, UINT32_MAX - 1 },
		      { UINT32_MAX, UINT32_MAX, 0 }, { 5, 0, 5 }, { 0, 7, 0 }, { 0, 0, 0 } };
	for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		vez_latch_t l, same = VEZ_LATCH_INITIALIZER(steps[i].count);
		EXPECT_EQ(vez_latch_init(&l, steps[i].count), 0);
		EXPECT_EQ(memcmp(&l, &same, sizeof l), 0);
		EXPECT_EQ(vez_latch_count(&l), steps[i].count);
		EXPECT_EQ(vez_latch_count_down(&l, steps[i].n), 0);
		EXPECT_EQ(vez_latch_count(&l), steps[i].left);
		EXPECT_EQ(vez_latch_wait_until(&l, VEZ_NOW, NULL), steps[i].left ? ETIMEDOUT : 0);
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: is_open that asks for AWAITED. */
Test(latch, LAT_13_created_open)
{
	EACH_WAIT(v, ALL) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_latch_t l;
		memset(&l, 0, sizeof l);
		EXPECT_EQ(vez_latch_wait_until(&l, VEZ_NOW, NULL), 0);
		EXPECT_EQ(vez_latch_wait_until(&l, 0, &token), 0);
		EXPECT_EQ(wait_as(v->form, latch, &l, &token), 0);
		EXPECT_EQ(vez_latch_wait_until(&l, -1, &token), 0);
		EXPECT_EQ(inject_waits(), 0);
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: serve that takes 1 for open. */
Test(latch, LAT_04_LAT_05_not_before_the_last)
{
	EACH_WAIT(v, ALL) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(3);
		struct waiter w = WAITER(latch, &l, v->form);
		waiter_start(&w);
		EXPECT(waiter_blocked(&w));
		unsigned before = inject_wakes();
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(vez_latch_count_down(&l, 0), 0);
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(vez_latch_count(&l), 1);
		EXPECT_EQ(inject_wakes(), before);
		EXPECT_EQ(vez_latch_count_down(&l, 9), 0);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EQ(vez_latch_count(&l), 0);
		EXPECT_EQ(wait_as(v->form, latch, &l, &w.own), 0);
		EXPECT_EMPTY(latch, &l);
	}
}

enum { WAITERS = 12 };

/* Seen to fail: serve that settles the first only. */
Test(latch, LAT_11_mixed_waiters_some_cancelled)
{
	static const enum form forms[] = { UNTIMED, FAR, TOKEN, TOKEN_FAR };
	EACH_WAIT(v, ONE_FORM) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(3);
		struct waiter w[WAITERS];
		for (int i = 0; i < WAITERS; i++) {
			w[i] = (struct waiter)WAITER(latch, &l, forms[i % 4]);
			waiter_start(&w[i]);
		}
		for (int i = 0; i < WAITERS; i++)
			if (i % 3 == 0)
				vez_cancel_fire(&w[i].own);
		EXPECT_EQ(vez_latch_waiters(&l), WAITERS - 2);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT_EQ(vez_latch_waiters(&l), 0);
		for (int i = 0; i < WAITERS; i++)
			EXPECT_EQ(waiter_join(&w[i]), i % 3 == 0 && i % 4 >= 2 ? ECANCELED : 0);
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: vez__prepare that gives nobody a slot (a system call for each). */
Test(latch, LAT_17_opening_wakes_all_with_one_call)
{
	EACH_WAIT(v, BY_THREAD) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(1);
		struct waiter w[WAITERS];
		neighbours_from_now_on();
		for (int i = 0; i < WAITERS; i++) {
			w[i] = (struct waiter)WAITER(latch, &l, v->form);
			waiter_start(&w[i]);
			waiter_await_parked(&w[i]);
		}
		EXPECT_EQ(inject_wakes(), 0);
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT_EQ(inject_wakes(), 1);
		for (int i = 0; i < WAITERS; i++) {
			EXPECT_EQ(waiter_join(&w[i]), 0);
			EXPECT(w[i].waits <= 2);
		}
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: vez__roll_back that leaves AWAITED when the last gives up. */
Test(latch, ALL_nobody_waits_any_more)
{
	EACH_WAIT(v, WITH_TOKEN) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(1);
		struct waiter a = WAITER(latch, &l, v->form), b = a;
		waiter_start(&a);
		waiter_start(&b);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(waiter_join(&a), ECANCELED);
		EXPECT(waiter_blocked(&b));
		vez_cancel_fire(&b.own);
		EXPECT_EQ(waiter_join(&b), ECANCELED);
		EXPECT_EQ(l.core_.word_, UINT64_C(1) << 32);
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT_EQ(vez_latch_wait_until(&l, VEZ_NOW, NULL), 0);
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: vez__roll_back that does not look at the count. */
Test(latch, C04_opened_between_its_deadline_and_its_leaving)
{
	EACH_WAIT(v, WITH_DEADLINE) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(1);
		inject_clock(NOON);
		struct waiter a = WAITER(latch, &l, v->form), b = WAITER(latch, &l, UNTIMED);
		a.deadline = NOON + 1000;
		waiter_start(&a);
		waiter_start(&b);
		waiter_await_parked(&a);
		waiter_await_parked(&b);
		vez__lock_enter(&l.core_.word_);
		inject_clock(NOON + 5000);
		thread_kick(&a.thread);
		waiter_await_locked_out(&a);
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT_EQ(vez_latch_waiters(&l), 0);
		/* Leaves without serving: the one whose deadline has passed comes in first. */
		vez__lock_exit(&l.core_.word_);
		EXPECT_EQ(waiter_join(&a), 0);
		EXPECT_EQ(waiter_join(&b), 0);
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: count_down that waits for the one inside. */
Test(latch, ALL_07_nothing_but_a_wait_waits_for_the_one_inside)
{
	EACH_WAIT(v, ONE_FORM) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(2);
		vez__lock_enter(&l.core_.word_);
		EXPECT_EQ(vez_latch_waiters(&l), 0);
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT_EQ(vez_latch_count(&l), 1);
		EXPECT_EQ(vez_latch_wait_until(&l, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(vez_latch_count_down(&l, 1), 0);
		EXPECT_EQ(vez_latch_wait_until(&l, VEZ_NOW, NULL), 0);
		EXPECT_EQ(inject_waits(), 0);
		vez__lock_exit(&l.core_.word_);
		EXPECT_EMPTY(latch, &l);
	}
}

/* Seen to fail: is_open that does not look at LOCKED. */
Test(latch, LAT_16_a_wait_returns_when_the_opener_has_left)
{
	EACH_WAIT(v, ALL) {
		vez_latch_t l = VEZ_LATCH_INITIALIZER(0);
		struct waiter w = WAITER(latch, &l, v->form);
		vez__lock_enter(&l.core_.word_);
		waiter_run(&w);
		waiter_await_locked_out(&w);
		vez__lock_exit(&l.core_.word_);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(latch, &l);
	}
}

/* ---- races ---- */

struct worker {
	struct thread thread;
	vez_latch_t *start, *done;
	unsigned *sum;
	unsigned own;
};

static void work(void *arg)
{
	struct worker *w = arg;
	vez_latch_wait(w->start);
	w->own = *w->sum + 1;
	vez_latch_count_down(w->done, 1);
}

/* Seen to fail: count_down that does not enter where somebody waits. */
Test(latch, ALL_start_and_finish)
{
	enum { WORKERS = 4 };
	for (int round = 0; round < 200; round++) {
		unsigned sum = 0;
		vez_latch_t start = VEZ_LATCH_INITIALIZER(1), done = VEZ_LATCH_INITIALIZER(WORKERS);
		struct worker w[WORKERS];
		for (int i = 0; i < WORKERS; i++) {
			w[i] = (struct worker){ .start = &start, .done = &done, .sum = &sum };
			thread_start(&w[i].thread, work, &w[i]);
		}
		sum = 41;
		EXPECT_EQ(vez_latch_count_down(&start, 1), 0);
		EXPECT_EQ(vez_latch_wait(&done), 0);
		for (int i = 0; i < WORKERS; i++)
			EXPECT_EQ(w[i].own, 42);
		EXPECT_EMPTY(latch, &done);
		for (int i = 0; i < WORKERS; i++)
			thread_join(&w[i].thread);
		EXPECT_EMPTY(latch, &start);
	}
}

struct counter {
	struct thread thread;
	vez_latch_t *latch;
	unsigned steps;
	unsigned *ready;
};

static void count_often(void *arg)
{
	struct counter *c = arg;
	/* Both at once. */
	for (ADD(c->ready, 1); LOAD(c->ready) < 2;)
		;
	for (unsigned i = 0; i < c->steps; i++)
		vez_latch_count_down(c->latch, 1);
}

/* Seen to fail: count_down that stores the count with a plain load and store. */
Test(latch, A14_no_count_down_is_lost)
{
	enum { STEPS = 3000000 };
	vez_latch_t l = VEZ_LATCH_INITIALIZER(2 * STEPS);
	struct waiter w = WAITER(latch, &l, UNTIMED);
	unsigned ready = 0;
	struct counter c[2];
	c[0] = c[1] = (struct counter){ .latch = &l, .steps = STEPS, .ready = &ready };
	waiter_start(&w);
	thread_start(&c[0].thread, count_often, &c[0]);
	thread_start(&c[1].thread, count_often, &c[1]);
	thread_join(&c[0].thread);
	thread_join(&c[1].thread);
	EXPECT_EQ(vez_latch_count(&l), 0);
	EXPECT_EQ(waiter_join(&w), 0);
	EXPECT_EMPTY(latch, &l);
}
