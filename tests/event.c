/* SPDX-License-Identifier: MIT */
/*
 * The event, with manual and automatic reset.
 *
 * Each test carries the id of the behaviour it checks. What is the same for every wait is in lib/waits.h. "Seen to
 * fail" names a change of the library with which it did.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "engine/filing.h"
#include "instant.h"
#include "waits.h"

static void with_requests(void)
{
	variant_async = true;
}

TestSuite(event, .timeout = 120, .init = with_requests);

#define MS INT64_C(1000000)

/* ---- as something to wait for ---- */

static void make_manual(void *object)
{
	vez_event_init(object, 0);
}

static void make_auto(void *object)
{
	vez_event_init(object, VEZ_AUTO_RESET);
}

static int set(void *object)
{
	return vez_event_set(object);
}

static int wait(void *object, uint32_t *index)
{
	(void)index;
	return vez_event_wait(object);
}

static int wait_until(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	(void)index;
	return vez_event_wait_until(object, deadline, cancel);
}

static int wait_async(void *object, vez_request_t *r)
{
	return vez_event_wait_async(object, r);
}

static size_t waiters(const void *object)
{
	return vez_event_waiters(object);
}

static int destroy(void *object)
{
	return vez_event_destroy(object);
}

static const struct waitable kinds[] = {
	{ sizeof(vez_event_t), make_manual, set, wait, wait_until, waiters, destroy, wait_async },
	{ sizeof(vez_event_t), make_auto, set, wait, wait_until, waiters, destroy, wait_async },
};
static const struct waitable *const manual = &kinds[0], *const automatic = &kinds[1];

#define EACH_KIND(on) for (const struct waitable *on = kinds; on < kinds + 2; on++)

/* Seen to fail: set that does not enter where somebody waits. */
Test(event, ALL_set_lets_a_wait_go)
{
	EACH_KIND(on)
		check_let_go(on);
}

/* Seen to fail: vez__roll_back that leaves the count as it was. */
Test(event, ALL_fire_ends_a_wait)
{
	EACH_KIND(on)
		check_fire_ends_a_wait(on);
}

/* Seen to fail: wait_until that asks the event first. */
Test(event, ALL_a_fired_token_ends_it_on_entry)
{
	EACH_KIND(on) {
		check_fired_on_entry(on);
		vez_event_t e;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		on->make(&e);
		vez_cancel_fire(&token);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_FOREVER, &token), ECANCELED);
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, &token), ECANCELED);
		EXPECT_EQ(wait_as(ASYNC_TOKEN, on, &e, &token), ECANCELED);
		EXPECT(vez_event_is_set(&e));
		EXPECT_EQ(wait_as(ASYNC, on, &e, NULL), 0);
	}
}

/* Seen to fail: a wait without a token that takes the thread's own. */
Test(event, ALL_05_who_names_no_token_keeps_waiting)
{
	EACH_KIND(on)
		check_no_token_no_cancel(on);
}

/* Seen to fail: wait_slow that queues where the deadline has passed. */
Test(event, H02_ALL_01_deadlines_that_have_passed)
{
	EACH_KIND(on) {
		check_past_deadlines(on);
		vez_event_t e;
		on->make(&e);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), 0);
		EXPECT_EQ(vez_event_wait_until(&e, -1, NULL), on == manual ? 0 : ETIMEDOUT);
	}
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(event, H03_ALL_02_deadlines_too_far_to_count)
{
	EACH_KIND(on)
		check_far_deadlines(on);
}

/* Seen to fail: vez__roll_back that leaves the count as it was; a wait that ends when it is woken for nothing. */
Test(event, ALL_timed_out_not_before_the_deadline)
{
	EACH_KIND(on)
		check_timed_out(on);
}

/* Seen to fail: ETIMEDOUT from the kernel that is believed. */
Test(event, H03_timed_out_only_if_the_clock_says_so)
{
	EACH_KIND(on)
		check_clock_is_asked(on);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(event, A10_B03_let_go_and_then_cancelled_before_it_ran)
{
	EACH_KIND(on)
		check_let_go_then_cancelled(on);
}

/* Seen to fail: a fire that leaves the request to its thread. */
Test(event, A10_cancelled_and_then_set_before_it_ran)
{
	EACH_KIND(on)
		check_cancelled_then_let_go(on);
}

/* Seen to fail: await that asks the clock and not its request. */
Test(event, C04_set_after_the_deadline_passed_but_before_it_ran)
{
	EACH_KIND(on)
		check_let_go_after_the_deadline(on);
}

/* Seen to fail: a wait with a deadline that ends when a signal comes. */
Test(event, A15_signals_neither_end_nor_stretch_a_wait)
{
	EACH_KIND(on)
		check_signals(on);
}

/* Seen to fail: destroy that does not look. */
Test(event, B11_destroy_with_waiters_is_refused)
{
	EACH_KIND(on)
		check_destroy_is_refused(on);
}

/* Seen to fail: await that enters the monitor once more after it was let go. */
Test(event, A06_who_was_let_go_returns_without_the_object)
{
	EACH_KIND(on)
		check_returns_without_the_object(on);
}

/* Seen to fail: vez__leave_pending that reads word_ after it has left. */
Test(event, A06_the_object_may_go_before_the_wake_is_sent)
{
	EACH_KIND(on)
		check_gone_before_the_wake(on);
}

/* Seen to fail: set that reads the word once more after its exchange. */
Test(event, A06_destroyed_and_unmapped_by_who_was_let_go)
{
	EACH_KIND(on)
		check_destroyed_by_who_was_let_go(on, 3000);
}

/* Seen to fail: destroy that does not wait (vez__retire that returns after it has left). */
Test(event, ALL_destroy_waits_for_who_comes_in)
{
	EACH_KIND(on)
		check_destroy_waits_for_who_comes_in(on);
}

/* Seen to fail: a child in which init does nothing. */
Test(event, ALL_10_fork)
{
	EACH_KIND(on)
		check_fork(on);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(event, K01_who_waits_on_one_processor_costs_nothing)
{
	EACH_KIND(on)
		check_no_cost_on_one_cpu(on);
}

/* ---- what it remembers ---- */

/* Seen to fail: init that accepts flag 1, or that drops VEZ_AUTO_RESET. */
Test(event, ALL_flags_and_zero_bytes)
{
	vez_event_t e, zero = VEZ_EVENT_INITIALIZER;
	EXPECT_EQ(vez_event_init(&e, VEZ_BARGING), EINVAL);
	EXPECT_EQ(vez_event_init(&e, VEZ_AUTO_RESET | 1u), EINVAL);
	EXPECT_EQ(vez_event_init(&e, ~0u), EINVAL);
	EXPECT_EQ(vez_event_init(&e, 0), 0);
	EXPECT_EQ(memcmp(&e, &zero, sizeof e), 0);
	memset(&e, 0, sizeof e);
	EXPECT_EQ(memcmp(&e, &zero, sizeof e), 0);
	EXPECT(!vez_event_is_set(&e));
	EXPECT_EMPTY(manual, &e);
}

/* Seen to fail: a manual wait that clears SET. */
Test(event, ALL_manual_stays_set_until_reset)
{
	EACH_WAIT(v, ALL) {
		vez_event_t e;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		make_manual(&e);
		for (int round = 0; round < 2; round++) {
			EXPECT(!vez_event_is_set(&e));
			EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), ETIMEDOUT);
			EXPECT_EQ(vez_event_set(&e), 0);
			EXPECT_EQ(vez_event_set(&e), 0);
			for (int i = 0; i < 3; i++)
				EXPECT_EQ(wait_as(v->form, manual, &e, &token), 0);
			EXPECT(vez_event_is_set(&e));
			EXPECT_EQ(vez_event_reset(&e), 0);
		}
		EXPECT_EQ(vez_event_reset(&e), 0);
		EXPECT_EQ(inject_waits(), 0);
		EXPECT_EMPTY(manual, &e);
	}
}

/* Seen to fail: an automatic wait that leaves SET; a set that counts; a reset that does nothing. */
Test(event, ALL_auto_keeps_one_set)
{
	EACH_WAIT(v, ALL) {
		vez_event_t e;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		make_auto(&e);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT(vez_event_is_set(&e));
		EXPECT_EQ(wait_as(v->form, automatic, &e, &token), 0);
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_reset(&e), 0);
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, &token), ETIMEDOUT);
		EXPECT_EMPTY(automatic, &e);
	}
}

/* ---- several waiters ---- */

enum { WAITERS = 5 };

static void start_all(struct waiter *w, const struct waitable *on, vez_event_t *e, enum form form)
{
	for (int i = 0; i < WAITERS; i++) {
		w[i] = (struct waiter)WAITER(on, e, form);
		waiter_start(&w[i]);
		waiter_await_parked(&w[i]);
	}
}

/* Seen to fail: vez__prepare that gives nobody a slot (a system call for each). */
Test(event, ALL_set_then_reset_lets_all_through_who_were_queued)
{
	EACH_WAIT(v, ALL) {
		vez_event_t e;
		struct waiter w[WAITERS], late = WAITER(manual, &e, v->form);
		make_manual(&e);
		neighbours_from_now_on();
		start_all(w, manual, &e, v->form);
		unsigned before = inject_wakes();
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_reset(&e), 0);
		EXPECT_EQ(vez_event_waiters(&e), 0);
		if (v->form < ASYNC)
			EXPECT_EQ(inject_wakes() - before, 1);
		for (int i = 0; i < WAITERS; i++) {
			EXPECT_EQ(waiter_join(&w[i]), 0);
			EXPECT(w[i].waits <= 2 || v->form >= ASYNC);
		}
		waiter_start(&late);
		EXPECT(waiter_blocked(&late));
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(waiter_join(&late), 0);
		EXPECT_EMPTY(manual, &e);
	}
}

/* Seen to fail: slot_wake that wakes all who sleep on the word. */
Test(event, ALL_a_set_wakes_nobody_who_waits_for_another_event)
{
	enum { EVENTS = 48 };
	vez_event_t e[EVENTS];
	struct waiter w[EVENTS];
	inject_reset(FAULT_NONE);
	for (int i = 0; i < EVENTS; i++) {
		make_manual(&e[i]);
		w[i] = (struct waiter)WAITER(manual, &e[i], UNTIMED);
		waiter_start(&w[i]);
		waiter_await_parked(&w[i]);
	}
	for (int i = 0; i < EVENTS; i++) {
		EXPECT_EQ(vez_event_set(&e[i]), 0);
		EXPECT_EQ(waiter_join(&w[i]), 0);
		EXPECT_EQ(w[i].waits, 1);
		EXPECT_EMPTY(manual, &e[i]);
	}
	EXPECT_EQ(inject_wakes(), EVENTS);
}

struct twice {
	struct thread thread;
	vez_event_t *first, *second;
};

static void wait_twice(void *arg)
{
	struct twice *t = arg;
	EXPECT_EQ(vez_event_wait(t->first), 0);
	EXPECT_EQ(vez_event_wait(t->second), 0);
}

/* One call for those of each word, also if others stand between them. Seen to fail: publish_slots that stops at
 * the first that sleeps on another word; one that wakes those of one word only. */
Test(event, ALL_neighbours_that_are_apart_in_the_queue)
{
	vez_event_t gate, e;
	struct twice late = { .first = &gate, .second = &e };
	struct waiter w[4];
	inject_reset(FAULT_NONE);
	make_manual(&gate);
	make_manual(&e);
	neighbours_from_now_on();
	thread_start(&late.thread, wait_twice, &late);
	UNTIL(vez_event_waiters(&gate) == 1);
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			neighbours_from_now_on();
		w[i] = (struct waiter)WAITER(manual, &e, UNTIMED);
		waiter_start(&w[i]);
		waiter_await_parked(&w[i]);
	}
	EXPECT_EQ(vez_event_set(&gate), 0);
	UNTIL(vez_event_waiters(&e) == 5);
	thread_await_parked(&late.thread);
	unsigned before = inject_wakes();
	EXPECT_EQ(vez_event_set(&e), 0);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(waiter_join(&w[i]), 0);
	thread_join(&late.thread);
	EXPECT_EQ(inject_wakes() - before, 2);
	EXPECT(inject_woken(before) != inject_woken(before + 1));
	EXPECT_EMPTY(manual, &e);
	EXPECT_EMPTY(manual, &gate);
}

/* Seen to fail: set that lets go the first only, the others by SET, which is gone; reset that counts them in again. */
Test(event, ALL_set_then_reset_while_another_is_inside)
{
	EACH_WAIT(v, ALL) {
		vez_event_t e;
		struct waiter w[WAITERS], late = WAITER(manual, &e, v->form);
		make_manual(&e);
		start_all(w, manual, &e, v->form);
		vez__lock_enter(&e.core_.word_);
		const struct vez__rules *rules = e.queue_->rules_;
		unsigned before = inject_wakes();
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_waiters(&e), 0);
		EXPECT(vez_event_is_set(&e));
		EXPECT_EQ(vez_event_reset(&e), 0);
		EXPECT_EQ(inject_wakes(), before);
		waiter_run(&late);
		waiter_await_locked_out(&late);
		vez__leave_entered(&e.core_, rules);
		for (int i = 0; i < WAITERS; i++)
			EXPECT_EQ(waiter_join(&w[i]), 0);
		EXPECT(waiter_blocked(&late));
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(waiter_join(&late), 0);
		EXPECT_EMPTY(manual, &e);
	}
}

/* Seen to fail: serve that settles the last; set that wakes all. */
Test(event, ALL_auto_first_come_first_served_each_woken_once)
{
	EACH_WAIT(v, ALL) {
		vez_event_t e;
		struct waiter w[WAITERS];
		uintptr_t word[WAITERS];
		make_auto(&e);
		start_all(w, automatic, &e, v->form);
		for (int i = 0; i < WAITERS; i++)
			word[i] = waiter_await_parked(&w[i]);
		for (int i = 0; i < WAITERS; i++) {
			EXPECT_EQ(vez_event_set(&e), 0);
			EXPECT_EQ(vez_event_waiters(&e), WAITERS - 1 - i);
			EXPECT_EQ(waiter_join(&w[i]), 0);
			if (v->form >= ASYNC)
				continue;
			EXPECT_EQ(inject_wakes(), (unsigned)i + 1);
			EXPECT_EQ(inject_woken(i), word[i]);
			EXPECT(w[i].waits <= 2);
		}
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EMPTY(automatic, &e);
	}
}

/* Seen to fail: set that leaves SET where it finds somebody inside, instead of taking one off the count. */
Test(event, ALL_auto_each_set_counts_while_another_is_inside)
{
	EACH_WAIT(v, ALL) {
		for (int sets = 1; sets <= 4; sets++) {
			vez_event_t e;
			struct waiter w[WAITERS];
			make_auto(&e);
			start_all(w, automatic, &e, v->form);
			vez_cancel_fire(&w[1].own);
			int left = form_has_token(v->form) ? WAITERS - 1 : WAITERS;
			vez__lock_enter(&e.core_.word_);
			const struct vez__rules *rules = e.queue_->rules_;
			for (int i = 0; i < sets; i++)
				EXPECT_EQ(vez_event_set(&e), 0);
			EXPECT_EQ(vez_event_waiters(&e), left - sets);
			EXPECT_EQ(vez_event_reset(&e), 0);
			EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), ETIMEDOUT);
			vez__leave_entered(&e.core_, rules);
			while (vez_event_waiters(&e) > 0)
				EXPECT_EQ(vez_event_set(&e), 0);
			for (int i = 0; i < WAITERS; i++)
				EXPECT_EQ(waiter_join(&w[i]), i == 1 && left < WAITERS ? ECANCELED : 0);
			EXPECT(!vez_event_is_set(&e));
			EXPECT_EMPTY(automatic, &e);
		}
	}
}

/* Seen to fail: set that keeps one although it let one go; one that drops what nobody waits for. */
Test(event, ALL_auto_one_set_too_many_is_kept)
{
	EACH_WAIT(v, ALL) {
		vez_event_t e;
		struct waiter w = WAITER(automatic, &e, v->form);
		make_auto(&e);
		waiter_start(&w);
		waiter_await_parked(&w);
		vez__lock_enter(&e.core_.word_);
		const struct vez__rules *rules = e.queue_->rules_;
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT(vez_event_is_set(&e));
		/* The first is decided: a newcomer has the second. */
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), 0);
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), ETIMEDOUT);
		vez__leave_entered(&e.core_, rules);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(automatic, &e);
	}
}

/* Seen to fail: vez__roll_back that takes the count of another: the second then never goes. */
Test(event, F02_who_gives_up_takes_no_set_along)
{
	EACH_WAIT(v, WITH_TOKEN) {
		vez_event_t e;
		struct waiter a = WAITER(automatic, &e, v->form), b = a;
		make_auto(&e);
		waiter_start(&a);
		waiter_start(&b);
		waiter_await_parked(&a);
		waiter_await_parked(&b);
		thread_freeze(&a.thread);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(vez_event_waiters(&e), 1);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(waiter_join(&b), 0);
		thread_thaw(&a.thread);
		EXPECT_EQ(waiter_join(&a), ECANCELED);
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EMPTY(automatic, &e);
	}
}

/* Seen to fail: withdraw that gives up although the set was decided; one that takes itself off the count before
 * it serves. */
Test(event, C04_set_between_its_deadline_and_its_leaving)
{
	EACH_KIND(on) EACH_WAIT(v, WITH_DEADLINE) {
		vez_event_t e;
		on->make(&e);
		inject_clock(NOON);
		struct waiter a = WAITER(on, &e, v->form), b = WAITER(on, &e, UNTIMED);
		a.deadline = NOON + 1000;
		waiter_start(&a);
		waiter_start(&b);
		waiter_await_parked(&a);
		waiter_await_parked(&b);
		vez__lock_enter(&e.core_.word_);
		inject_clock(NOON + 5000);
		thread_kick(&a.thread);
		waiter_await_locked_out(&a);
		EXPECT_EQ(vez_event_set(&e), 0);
		/* Leaves without serving: the one whose deadline has passed comes in first. */
		vez__lock_exit(&e.core_.word_);
		EXPECT_EQ(waiter_join(&a), 0);
		if (on == automatic) {
			EXPECT(waiter_blocked(&b));
			EXPECT_EQ(vez_event_set(&e), 0);
		}
		EXPECT_EQ(waiter_join(&b), 0);
		EXPECT_EMPTY(on, &e);
	}
}

/* Seen to fail: set that waits for the one inside; wait_slow that does not look where the deadline has passed. */
Test(event, ALL_07_nothing_but_a_wait_waits_for_the_one_inside)
{
	EACH_KIND(on) EACH_WAIT(v, ONE_FORM) {
		vez_event_t e;
		on->make(&e);
		vez__lock_enter(&e.core_.word_);
		EXPECT_EQ(vez_event_waiters(&e), 0);
		EXPECT_EQ(vez_event_wait_until(&e, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT(vez_event_is_set(&e));
		EXPECT_EQ(vez_event_wait_until(&e, 0, NULL), 0);
		EXPECT_EQ(vez_event_is_set(&e), on == manual);
		EXPECT_EQ(vez_event_reset(&e), 0);
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EQ(inject_waits(), 0);
		vez__lock_exit(&e.core_.word_);
		EXPECT_EMPTY(on, &e);
	}
}

/* Seen to fail: take that does not look at LOCKED: a wait then returns while the set that lets others go is
 * still inside. */
Test(event, A06_a_wait_returns_when_the_set_has_left)
{
	EACH_KIND(on) EACH_WAIT(v, ALL) {
		vez_event_t e;
		struct waiter w = WAITER(on, &e, v->form);
		on->make(&e);
		EXPECT_EQ(vez_event_set(&e), 0);
		vez__lock_enter(&e.core_.word_);
		waiter_run(&w);
		waiter_await_locked_out(&w);
		EXPECT(vez_event_is_set(&e));
		vez__lock_exit(&e.core_.word_);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &e);
	}
}

/* ---- races ---- */

struct setter {
	struct thread thread;
	vez_event_t *event;
	vez_cancel_t *token;
	int64_t at;
};

static void set_at(void *arg)
{
	struct setter *s = arg;
	while (real_now() < s->at)
		;
	if (s->token)
		vez_cancel_fire(s->token);
	vez_event_set(s->event);
}

/* Seen to fail: as C04 above. */
Test(event, ALL_04_set_and_timeout_in_the_same_instant)
{
	struct instant instant = { .shift = 0 };
	for (int round = 0; instant_again(&instant, 500); round++) {
		vez_event_t e;
		make_auto(&e);
		int64_t start = vez_after_us(150);
		vez_deadline_t limit = start + instant_of_end(&instant);
		struct setter s = { .event = &e, .at = start + instant_of_grant(&instant) + (round % 9 - 2) * 20000 };
		thread_start(&s.thread, set_at, &s);
		int rc = vez_event_wait_until(&e, limit, NULL);
		EXPECT(rc == 0 || (rc == ETIMEDOUT && real_now() >= limit));
		thread_join(&s.thread);
		instant_was(&instant, rc == 0);
		EXPECT_EQ(vez_event_is_set(&e), rc != 0);
		EXPECT_EMPTY(automatic, &e);
	}
}

/* Seen to fail: as A10. */
Test(event, A10_TOK_13_cancel_and_set_race)
{
	for (int round = 0; round < 700; round++) {
		vez_event_t e;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		make_auto(&e);
		struct setter s = { .event = &e, .token = &token, .at = real_now() + 20000 + round % 5 * 20000 };
		struct waiter b = WAITER(automatic, &e, UNTIMED);
		thread_start(&s.thread, set_at, &s);
		waiter_run(&b);
		int rc = vez_event_wait_until(&e, VEZ_FOREVER, &token);
		EXPECT(rc == 0 || rc == ECANCELED);
		thread_join(&s.thread);
		if (rc == 0)
			EXPECT_EQ(vez_event_set(&e), 0);
		EXPECT_EQ(waiter_join(&b), 0);
		EXPECT(!vez_event_is_set(&e));
		EXPECT_EMPTY(automatic, &e);
	}
}

/* ---- signal handlers ---- */

static vez_event_t *set_by_handler;
static unsigned handled;

static void set_in_handler(int signo)
{
	int saved = errno;
	(void)signo;
	errno = 4321;
	if (vez_event_set(set_by_handler) == 0 && errno == 4321)
		ADD(&handled, 1);
	(void)vez_event_waiters(set_by_handler);
	errno = saved;
}

static void handle(void)
{
	struct sigaction action = { .sa_handler = set_in_handler };
	sigaction(SIGUSR1, &action, NULL);
	STORE(&handled, 0);
}

/* Seen to fail: set that enters the monitor: the handler waits for what it interrupted. */
Test(event, A16_a_handler_sets_while_its_thread_is_inside)
{
	EACH_KIND(on) EACH_WAIT(v, ALL) {
		vez_event_t e;
		struct waiter w = WAITER(on, &e, v->form);
		on->make(&e);
		set_by_handler = &e;
		handle();
		waiter_start(&w);
		vez__lock_enter(&e.core_.word_);
		const struct vez__rules *rules = e.queue_->rules_;
		raise(SIGUSR1);
		EXPECT_EQ(handled, 1);
		vez__leave_entered(&e.core_, rules);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &e);
	}
}

struct looper {
	struct thread thread;
	vez_event_t *event;
	bool stop;
	unsigned went;
};

static void loop_waiting_and_setting(void *arg)
{
	struct looper *l = arg;
	while (!LOAD(&l->stop)) {
		l->went += vez_event_wait_until(l->event, vez_after_us(20), NULL) == 0;
		vez_event_set(l->event);
		vez_event_reset(l->event);
	}
}

/* Seen to fail: set that changes errno. */
Test(event, A16_signals_set_while_their_thread_does_everything)
{
	EACH_KIND(on) {
		vez_event_t e;
		struct looper l[2] = { { .event = &e }, { .event = &e } };
		on->make(&e);
		set_by_handler = &e;
		handle();
		for (int i = 0; i < 2; i++)
			thread_start(&l[i].thread, loop_waiting_and_setting, &l[i]);
		unsigned sent = 0;
		for (int64_t end = real_now() + 200 * MS; real_now() < end; sched_yield())
			if (LOAD(&handled) == sent && pthread_kill(l[0].thread.id, SIGUSR1) == 0)
				sent++;
		UNTIL(LOAD(&handled) == sent)
			;
		for (int i = 0; i < 2; i++) {
			STORE(&l[i].stop, true);
			thread_join(&l[i].thread);
		}
		EXPECT_EMPTY(on, &e);
	}
}

/* ---- many rounds ---- */

struct player {
	struct thread thread;
	vez_event_t *mine, *other;
	unsigned rounds;
	unsigned *ball;
};

static void play(void *arg)
{
	struct player *p = arg;
	for (unsigned i = 0; i < p->rounds; i++) {
		if (vez_event_wait(p->mine) != 0)
			return;
		++*p->ball;
		vez_event_set(p->other);
	}
}

/* Seen to fail: set that stores SET with a plain load and store (the ball stops). */
Test(event, I02_ping_pong)
{
	enum { ROUNDS = 50000 };
	vez_event_t a, b;
	unsigned ball = 0;
	make_auto(&a);
	make_auto(&b);
	struct player p = { .mine = &a, .other = &b, .rounds = ROUNDS, .ball = &ball };
	struct player q = { .mine = &b, .other = &a, .rounds = ROUNDS, .ball = &ball };
	thread_start(&p.thread, play, &p);
	thread_start(&q.thread, play, &q);
	EXPECT_EQ(vez_event_set(&a), 0);
	thread_join(&p.thread);
	thread_join(&q.thread);
	EXPECT_EQ(ball, 2 * ROUNDS);
	EXPECT(vez_event_is_set(&a) && !vez_event_is_set(&b));
	EXPECT_EMPTY(automatic, &a);
	EXPECT_EMPTY(automatic, &b);
}
