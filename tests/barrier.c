/* SPDX-License-Identifier: MIT */
/*
 * The cyclic barrier.
 *
 * Each test carries the id of the behaviour it checks. What is the same for every wait is in lib/waits.h. "Seen to
 * fail" names a change of the library with which it did.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "engine/filing.h"
#include "futex/shared.h"
#include "instant.h"
#include "waits.h"

TestSuite(barrier, .timeout = 120);

#define MS INT64_C(1000000)

/* ---- as something to wait for: the second of two parties lets it go ---- */

static void make_2(void *object)
{
	vez_barrier_init(object, 2, NULL, NULL);
}

static int arrive(void *object)
{
	return vez_barrier_wait(object, NULL);
}

static int wait_untimed(void *object, uint32_t *index)
{
	return vez_barrier_wait(object, index);
}

static int wait_until(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez_barrier_wait_until(object, index, deadline, cancel);
}

static size_t waiters(const void *object)
{
	return vez_barrier_waiters(object);
}

static int destroy(void *object)
{
	return vez_barrier_destroy(object);
}

static const struct waitable barrier[] = {
	{ sizeof(vez_barrier_t), make_2, arrive, wait_untimed, wait_until, waiters, destroy, NULL },
};

/* Seen to fail: complete that settles nobody. */
Test(barrier, ALL_the_last_party_lets_go)
{
	check_let_go(barrier);
}

/* Seen to fail: a fire that leaves the request in the queue. */
Test(barrier, ALL_fire_ends_a_wait)
{
	check_fire_ends_a_wait(barrier);
}

/* Seen to fail: arrive that does not ask the token. */
Test(barrier, ALL_a_fired_token_ends_it_on_entry)
{
	check_fired_on_entry(barrier);
}

/* Seen to fail: a wait without a token that takes the thread's own. */
Test(barrier, ALL_05_who_names_no_token_keeps_waiting)
{
	check_no_token_no_cancel(barrier);
}

/* Seen to fail: arrive that queues although the deadline has passed. */
Test(barrier, H02_ALL_01_deadlines_that_have_passed)
{
	check_past_deadlines(barrier);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(barrier, H03_ALL_02_deadlines_too_far_to_count)
{
	check_far_deadlines(barrier);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(barrier, BAR_08_timed_out_not_before_the_deadline)
{
	check_timed_out(barrier);
}

/* Seen to fail: ETIMEDOUT from the kernel that is believed. */
Test(barrier, H03_timed_out_only_if_the_clock_says_so)
{
	check_clock_is_asked(barrier);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(barrier, A10_let_go_and_then_cancelled_before_it_ran)
{
	check_let_go_then_cancelled(barrier);
}

/* Seen to fail: a fire that leaves the request in the queue. */
Test(barrier, A10_cancelled_and_then_completed_before_it_ran)
{
	check_cancelled_then_let_go(barrier);
}

/* Seen to fail: await that asks the clock and not its request. */
Test(barrier, C04_completed_after_the_deadline_passed_but_before_it_ran)
{
	check_let_go_after_the_deadline(barrier);
}

/* Seen to fail: a wait with a deadline that ends when a signal comes. */
Test(barrier, A15_signals_neither_end_nor_stretch_a_wait)
{
	check_signals(barrier);
}

/* Seen to fail: destroy that does not look. */
Test(barrier, E02_destroy_with_waiters_is_refused)
{
	check_destroy_is_refused(barrier);
}

/* Seen to fail: await that enters the core once more after it was let go. */
Test(barrier, E02_who_was_let_go_returns_without_the_object)
{
	check_returns_without_the_object(barrier);
}

/* Seen to fail: vez__leave_pending that reads shared_ after it has left. */
Test(barrier, E02_the_object_may_go_before_the_wake_is_sent)
{
	check_gone_before_the_wake(barrier);
}

/* Seen to fail: a wait that writes shared_ after it has left. */
Test(barrier, E02_destroyed_and_unmapped_by_who_was_let_go)
{
	check_destroyed_by_who_was_let_go(barrier, 3000);
}

/* Seen to fail: vez__retire that returns after it has left. */
Test(barrier, E02_destroy_waits_for_who_comes_in)
{
	check_destroy_waits_for_who_comes_in(barrier);
}

/* Seen to fail: a child in which init does nothing. */
Test(barrier, ALL_10_fork)
{
	check_fork(barrier);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(barrier, K01_who_waits_on_one_processor_costs_nothing)
{
	check_no_cost_on_one_cpu(barrier);
}

/* ---- parties and rounds ---- */

enum { PARTIES = 5 };

static vez_barrier_t make(uint32_t parties, int (*action)(void *), void *arg)
{
	vez_barrier_t b;
	memset(&b, 0xa5, sizeof b);
	EXPECT_EQ(vez_barrier_init(&b, parties, action, arg), 0);
	return b;
}

/* Nobody waits, and it is whole. */
static void expect_whole(vez_barrier_t *b)
{
	EXPECT(!vez_barrier_broken(b));
	EXPECT_EMPTY(barrier, b);
}

static void start_some(struct waiter *w, vez_barrier_t *b, enum form form, int n)
{
	for (int i = 0; i < n; i++) {
		w[i] = (struct waiter)WAITER(barrier, b, form);
		waiter_start(&w[i]);
		waiter_await_parked(&w[i]);
	}
}

static void join_some(struct waiter *w, int n, int rc)
{
	for (int i = 0; i < n; i++)
		EXPECT_EQ(waiter_join(&w[i]), rc);
}

/* Seen to fail: init that accepts 0. */
Test(barrier, BAR_01_BAR_02_created_as_asked)
{
	vez_barrier_t b;
	EXPECT_EQ(vez_barrier_init(&b, 0, NULL, NULL), EINVAL);
	EXPECT_EQ(vez_barrier_init(&b, VEZ_BARRIER_MAX + 1u, NULL, NULL), EINVAL);
	EXPECT_EQ(vez_barrier_init(&b, UINT32_MAX, NULL, NULL), EINVAL);
	EXPECT(VEZ_BARRIER_MAX >= 65536);
	b = make(VEZ_BARRIER_MAX, NULL, NULL);
	struct waiter w = WAITER(barrier, &b, UNTIMED);
	waiter_start(&w);
	EXPECT_EQ(vez_barrier_reset(&b), 0);
	EXPECT_EQ(waiter_join(&w), VEZ_EBROKEN);
	expect_whole(&b);
}

/* Seen to fail: an index that counts up. */
Test(barrier, BAR_34_the_index_tells_the_order_of_arrival)
{
	EACH_WAIT(v, ALL) {
		vez_barrier_t b = make(PARTIES, NULL, NULL);
		for (int round = 0; round < 3; round++) {
			struct waiter w[PARTIES - 1];
			uint32_t last = NO_INDEX;
			start_some(w, &b, v->form, PARTIES - 1);
			EXPECT_EQ(vez_barrier_waiters(&b), PARTIES - 1);
			EXPECT_EQ(vez_barrier_wait(&b, &last), 0);
			EXPECT_EQ(last, 0);
			join_some(w, PARTIES - 1, 0);
			for (int i = 0; i < PARTIES - 1; i++)
				EXPECT_EQ(w[i].index, PARTIES - 1 - i);
		}
		expect_whole(&b);
	}
}

/* Seen to fail: barrier_rules without VEZ__TOGETHER; without the shared word. */
Test(barrier, ALL_08_a_round_wakes_all_with_one_call)
{
	EACH_WAIT(v, ALL) {
		vez_barrier_t b = make(PARTIES, NULL, NULL);
		struct waiter w[PARTIES - 1];
		neighbours_from_now_on();
		start_some(w, &b, v->form, PARTIES - 1);
		for (int i = 0; i < PARTIES - 1; i++)
			waiter_await_parked(&w[i]);
		EXPECT_EQ(inject_wakes(), 0);
		EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
		EXPECT_EQ(inject_wakes(), 1);
		join_some(w, PARTIES - 1, 0);
		for (int i = 0; i < PARTIES - 1; i++)
			EXPECT(w[i].waits <= 2);
		expect_whole(&b);
	}
}

struct party {
	struct thread thread;
	vez_barrier_t *barrier;
	unsigned *counts;   /* one of each party */
	unsigned me, parties, rounds;
	bool timed, destroys;
	unsigned leads;
	unsigned places[3]; /* how often each index was its own */
	bool wrong;
	int destroyed;
};

static void go_round(void *arg)
{
	struct party *p = arg;
	for (unsigned round = 1; round <= p->rounds; round++) {
		uint32_t index = NO_INDEX;
		p->counts[p->me] = round;
		int rc = p->timed ? vez_barrier_wait_until(p->barrier, &index, vez_after_ms(60000), NULL) :
				    vez_barrier_wait(p->barrier, &index);
		p->wrong |= rc != 0 || index >= p->parties;
		p->leads += index == 0;
		/* Before anybody can write again, all must have read. */
		for (unsigned i = 0; i < p->parties; i++)
			p->wrong |= p->counts[i] != round;
		p->wrong |= vez_barrier_wait(p->barrier, NULL) != 0;
	}
}

static void go_round_together(unsigned parties, unsigned rounds, int (*action)(void *), void *arg)
{
	vez_barrier_t b = make(parties, action, arg);
	struct party p[8];
	unsigned counts[8] = { 0 }, leads = 0;
	for (unsigned i = 0; i < parties; i++) {
		p[i] = (struct party){ .barrier = &b, .counts = counts, .me = i, .parties = parties, .rounds = rounds,
				       .timed = i % 2 };
		thread_start(&p[i].thread, go_round, &p[i]);
	}
	for (unsigned i = 0; i < parties; i++) {
		thread_join(&p[i].thread);
		EXPECT(!p[i].wrong);
		leads += p[i].leads;
	}
	EXPECT_EQ(leads, rounds);
	expect_whole(&b);
}

static int count_rounds(void *arg)
{
	++*(unsigned *)arg;
	return 0;
}

/* Seen to fail: a round that is complete with one party too few. */
Test(barrier, BAR_05_BAR_07_BAR_28_E01_rounds_do_not_mix)
{
	for (unsigned parties = 1; parties <= 8; parties++) {
		unsigned ran = 0;
		go_round_together(parties, 2000, NULL, NULL);
		go_round_together(parties, 1000, count_rounds, &ran);
		EXPECT_EQ(ran, 2 * 1000);
	}
}

/* In the child a word is not used whose members were of the parent. Seen to fail: a child in which all are free. */
Test(barrier, ALL_10_fork_while_parties_follow)
{
	vez_barrier_t b = make(3, NULL, NULL);
	struct waiter first = WAITER(barrier, &b, UNTIMED), second = first;
	inject_reset(FAULT_NONE);
	waiter_start(&first);
	waiter_await_parked(&first);
	waiter_start(&second);
	waiter_await_parked(&second);
	pid_t child = fork_when_quiet();
	if (child == 0) {
		uint16_t word;
		while ((word = vez__shared_take()) != 0 && vez__shared_at(word)->members == 0)
			;
		_exit(word == 0 ? 0 : 1);
	}
	int status = -1;
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
	EXPECT_EQ(waiter_join(&first), 0);
	EXPECT_EQ(waiter_join(&second), 0);
	EXPECT_EQ(vez_barrier_destroy(&b), 0);
}

/* Without a shared word that is free each makes a request, and sleeps in its slot. Seen to fail: a follower that takes
 * the word 0 for one. */
Test(barrier, ALL_more_objects_than_shared_words)
{
	vez_barrier_t b = make(3, NULL, NULL);
	struct waiter first = WAITER(barrier, &b, UNTIMED), second = first;
	inject_reset(FAULT_NONE);
	while (vez__shared_take() != 0)
		;
	waiter_start(&first);
	waiter_await_parked(&first);
	neighbours_from_now_on(); /* no neighbour of the first */
	waiter_start(&second);
	waiter_await_parked(&second);
	EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
	EXPECT_EQ(waiter_join(&first), 0);
	EXPECT_EQ(waiter_join(&second), 0);
	EXPECT_EQ(inject_wakes(), 2);
	EXPECT_EQ(vez_barrier_destroy(&b), 0);
}

/* Seen to fail: an index that is 0 for all. */
Test(barrier, E01_a_party_that_sleeps_through_the_next_round)
{
	EACH_WAIT(v, ALL) {
		vez_barrier_t b = make(3, NULL, NULL);
		struct waiter slow = WAITER(barrier, &b, v->form), a = slow, c = slow;
		waiter_start(&slow);
		waiter_await_parked(&slow);
		waiter_start(&a);
		thread_freeze(&slow.thread);
		EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
		EXPECT_EQ(waiter_join(&a), 0);
		waiter_start(&a);
		waiter_start(&c);
		EXPECT(waiter_blocked(&a));
		thread_thaw(&slow.thread);
		EXPECT_EQ(waiter_join(&slow), 0);
		EXPECT_EQ(slow.index, 2);
		EXPECT(waiter_blocked(&a));
		EXPECT(waiter_blocked(&c));
		EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
		EXPECT_EQ(waiter_join(&a), 0);
		EXPECT_EQ(waiter_join(&c), 0);
		expect_whole(&b);
	}
}

/* ---- broken ---- */

/* Seen to fail: gave_up that leaves BROKEN, or the others, as they were. */
Test(barrier, BAR_10_BAR_16_BAR_17_BAR_19_who_gives_up_breaks_it)
{
	EACH_WAIT(v, WITH_TOKEN) {
		vez_barrier_t b = make(4, NULL, NULL);
		for (int round = 0; round < 4; round++) {
			struct waiter w[3];
			bool by_token = round % 2;
			start_some(w, &b, v->form, 1);
			start_some(w + 2, &b, UNTIMED, 1);
			w[1] = (struct waiter)WAITER(barrier, &b, by_token ? TOKEN : TOKEN_FAR);
			w[1].deadline = by_token ? 0 : vez_after_ms(2);
			waiter_run(&w[1]);
			if (by_token) {
				UNTIL(vez_barrier_waiters(&b) == 3)
					;
				vez_cancel_fire(&w[1].own);
			}
			EXPECT_EQ(waiter_join(&w[1]), by_token ? ECANCELED : ETIMEDOUT);
			EXPECT(vez_barrier_broken(&b));
			EXPECT_EQ(vez_barrier_waiters(&b), 0);
			EXPECT_EQ(waiter_join(&w[0]), VEZ_EBROKEN);
			EXPECT_EQ(waiter_join(&w[2]), VEZ_EBROKEN);
			EXPECT_EQ(wait_as(v->form, barrier, &b, &w[0].own), VEZ_EBROKEN);
			EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_NOW, NULL), VEZ_EBROKEN);
			EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_FOREVER, &w[1].own), VEZ_EBROKEN);
			EXPECT_EQ(vez_barrier_waiters(&b), 0);
			EXPECT_EQ(vez_barrier_reset(&b), 0);
			EXPECT(!vez_barrier_broken(&b));
			EXPECT_EQ(vez_barrier_waiters(&b), 0);
		}
		struct waiter w[3];
		start_some(w, &b, v->form, 3);
		EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
		join_some(w, 3, 0);
		expect_whole(&b);
	}
}

/* Seen to fail: arrive that says ETIMEDOUT and breaks nothing. */
Test(barrier, BAR_20_a_limit_that_has_passed_on_entry_breaks_it)
{
	EACH_WAIT(v, ALL) {
		vez_barrier_t b = make(3, NULL, NULL);
		struct waiter w = WAITER(barrier, &b, v->form);
		waiter_start(&w);
		EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT(vez_barrier_broken(&b));
		EXPECT_EQ(waiter_join(&w), VEZ_EBROKEN);
		EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_NOW, NULL), VEZ_EBROKEN);
		EXPECT_EQ(vez_barrier_reset(&b), 0);
		expect_whole(&b);
	}
}

/* Seen to fail: arrive that asks the deadline before it counts the parties. */
Test(barrier, BAR_26_the_last_party_need_not_wait)
{
	static const vez_deadline_t past[] = { 0, -1, VEZ_NOW };
	EACH_WAIT(v, ALL) {
		vez_barrier_t b = make(2, NULL, NULL);
		for (int i = 0; i < 3; i++) {
			struct waiter w = WAITER(barrier, &b, v->form);
			uint32_t index = NO_INDEX;
			waiter_start(&w);
			EXPECT_EQ(vez_barrier_wait_until(&b, &index, past[i], NULL), 0);
			EXPECT_EQ(index, 0);
			EXPECT_EQ(waiter_join(&w), 0);
		}
		expect_whole(&b);
	}
}

/* Seen to fail: arrive that counts the parties before it asks the token. */
Test(barrier, BAR_25_a_fired_token_of_the_last_party)
{
	EACH_WAIT(v, ALL) {
		unsigned ran = 0;
		vez_cancel_t fired = VEZ_CANCEL_INITIALIZER;
		vez_barrier_t b = make(2, count_rounds, &ran);
		struct waiter w = WAITER(barrier, &b, v->form);
		vez_cancel_fire(&fired);
		waiter_start(&w);
		EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_FOREVER, &fired), ECANCELED);
		EXPECT_EQ(waiter_join(&w), VEZ_EBROKEN);
		EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_FOREVER, &fired), VEZ_EBROKEN);
		EXPECT_EQ(ran, 0);
		EXPECT(vez_barrier_broken(&b));
		EXPECT_EMPTY(barrier, &b);
	}
}

/* Seen to fail: reset that leaves BROKEN as it was, sets it, or leaves who waits. */
Test(barrier, BAR_11_BAR_13_reset)
{
	EACH_WAIT(v, ALL) {
		vez_barrier_t b = make(3, NULL, NULL);
		struct waiter w[2];
		EXPECT_EQ(vez_barrier_reset(&b), 0);
		for (int round = 0; round < 3; round++) {
			start_some(w, &b, v->form, 2);
			if (round % 2)
				EXPECT_EQ(vez_barrier_wait(&b, NULL), 0);
			else
				EXPECT_EQ(vez_barrier_reset(&b), 0);
			EXPECT_EQ(vez_barrier_waiters(&b), 0);
			EXPECT(!vez_barrier_broken(&b));
			join_some(w, 2, round % 2 ? 0 : VEZ_EBROKEN);
		}
		EXPECT_EQ(vez_barrier_wait_until(&b, NULL, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT(vez_barrier_broken(&b));
		EXPECT_EQ(vez_barrier_reset(&b), 0);
		expect_whole(&b);
	}
}

struct breaker {
	struct thread thread;
	vez_barrier_t *barrier;
	vez_cancel_t token;
	unsigned cancelled;
	bool wrong;
};

static void wait_until_cancelled_4_times(void *arg)
{
	struct breaker *k = arg;
	while (k->cancelled < 4) {
		while (vez_barrier_broken(k->barrier))
			vez_barrier_reset(k->barrier);
		int rc = vez_barrier_wait_until(k->barrier, NULL, VEZ_FOREVER, &k->token);
		k->wrong |= rc != VEZ_EBROKEN && rc != ECANCELED;
		if (rc == ECANCELED) {
			vez_cancel_clear(&k->token);
			k->cancelled++;
		}
	}
}

/* Seen to fail: arrive that takes the last but one for the last. */
Test(barrier, BAR_14_one_alone_never_gets_through)
{
	vez_barrier_t b = make(2, NULL, NULL);
	struct breaker k = { .barrier = &b };
	thread_start(&k.thread, wait_until_cancelled_4_times, &k);
	while (!thread_done(&k.thread)) {
		vez_cancel_fire(&k.token);
		sched_yield();
	}
	thread_join(&k.thread);
	EXPECT(!k.wrong);
	EXPECT_EMPTY(barrier, &b);
}

struct firing {
	struct thread thread;
	vez_cancel_t *token;
};

static void fire(void *arg)
{
	struct firing *f = arg;
	vez_cancel_fire(f->token);
}

/* Seen to fail: break_round that leaves the others: each then breaks it with its own cause. */
Test(barrier, BAR_23_many_tokens_at_once_break_it_once)
{
	enum { N = 8 };
	EACH_WAIT(v, WITH_TOKEN) {
		vez_barrier_t b = make(N + 1, NULL, NULL);
		struct waiter w[N];
		struct firing f[N / 2];
		start_some(w, &b, v->form, N);
		for (int i = 0; i < N / 2; i++) {
			f[i].token = &w[2 * i].own;
			thread_start(&f[i].thread, fire, &f[i]);
		}
		int cancelled = 0;
		for (int i = 0; i < N; i++) {
			int rc = waiter_join(&w[i]);
			cancelled += rc == ECANCELED;
			EXPECT(rc == VEZ_EBROKEN || (rc == ECANCELED && i % 2 == 0));
		}
		EXPECT_EQ(cancelled, 1);
		for (int i = 0; i < N / 2; i++)
			thread_join(&f[i].thread);
		for (int i = 0; i < N; i++)
			EXPECT_EQ(vez_cancel_fired(&w[i].own), i % 2 == 0);
		EXPECT(vez_barrier_broken(&b));
		EXPECT_EMPTY(barrier, &b);
	}
}

/* One token for all: seen to fail as BAR_23. */
Test(barrier, BAR_23_one_token_for_all)
{
	EACH_WAIT(v, WITH_TOKEN) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_barrier_t b = make(4, NULL, NULL);
		struct waiter w[3];
		int cancelled = 0;
		for (int i = 0; i < 3; i++) {
			w[i] = (struct waiter)WAITER(barrier, &b, v->form);
			w[i].token = &token;
			waiter_start(&w[i]);
		}
		vez_cancel_fire(&token);
		EXPECT_EQ(vez_barrier_waiters(&b), 0);
		for (int i = 0; i < 3; i++) {
			int rc = waiter_join(&w[i]);
			cancelled += rc == ECANCELED;
			EXPECT(rc == ECANCELED || rc == VEZ_EBROKEN);
		}
		EXPECT_EQ(cancelled, 1);
		EXPECT_EMPTY(barrier, &b);
	}
}

/* Seen to fail: reset that breaks it. */
Test(barrier, BAR_37_resets_between_rounds)
{
	vez_barrier_t b = make(3, NULL, NULL);
	for (int round = 0; round < 8; round++) {
		struct waiter w[2] = { WAITER(barrier, &b, UNTIMED), WAITER(barrier, &b, FAR) };
		waiter_start(&w[0]);
		waiter_start(&w[1]);
		EXPECT_EQ(vez_barrier_wait_until(&b, NULL, vez_after_ms(60000), NULL), 0);
		join_some(w, 2, 0);
		if (round >= 4)
			EXPECT_EQ(vez_barrier_reset(&b), 0);
		EXPECT_EQ(vez_barrier_waiters(&b), 0);
		EXPECT(!vez_barrier_broken(&b));
	}
	expect_whole(&b);
}

/* ---- the action ---- */

static struct act {
	vez_barrier_t barrier;
	struct gate gate;
	unsigned ran, running;
	int rc;
	bool overlapped, wrong;
	size_t waiters;
} act;

static int stop_in_action(void *arg)
{
	struct act *a = arg;
	a->overlapped |= ADD(&a->running, 1) != 1;
	a->wrong |= vez_barrier_wait(&a->barrier, NULL) != EDEADLK || vez_barrier_reset(&a->barrier) != EDEADLK ||
		    vez_barrier_wait_until(&a->barrier, NULL, VEZ_NOW, NULL) != EDEADLK ||
		    vez_barrier_destroy(&a->barrier) != EBUSY;
	a->waiters = vez_barrier_waiters(&a->barrier);
	gate_pass(&a->gate);
	a->overlapped |= ADD(&a->running, -1) != 0;
	ADD(&a->ran, 1);
	return LOAD(&a->rc);
}

static void make_acting(uint32_t parties)
{
	memset(&act, 0, sizeof act);
	gate_init(&act.gate);
	act.barrier = make(parties, stop_in_action, &act);
}

static void expect_well_acted(unsigned ran)
{
	EXPECT(!act.wrong && !act.overlapped);
	EXPECT_EQ(act.ran, ran);
}

/* All parties of a round: the last of them is in the action when it returns. */
static void start_round(struct waiter *w, enum form form, unsigned arrived)
{
	for (int i = 0; i < PARTIES; i++)
		w[i] = (struct waiter)WAITER(barrier, &act.barrier, form);
	for (int i = 0; i < PARTIES - 1; i++)
		waiter_start(&w[i]);
	waiter_run(&w[PARTIES - 1]);
	gate_await(&act.gate, arrived);
}

/* Seen to fail: complete_with_action that settles the round before it acts; wait without the question of
 * inside_own_action (it hangs). */
Test(barrier, BAR_04_BAR_29_the_action)
{
	EACH_WAIT(v, ALL) {
		struct waiter w[PARTIES];
		make_acting(PARTIES);
		for (unsigned round = 1; round <= 2; round++) {
			start_round(w, v->form, round);
			EXPECT_EQ(act.waiters, PARTIES - 1);
			for (int i = 0; i < PARTIES - 1; i++)
				EXPECT(waiter_blocked(&w[i]));
			EXPECT_EQ(vez_barrier_destroy(&act.barrier), EBUSY);
			gate_open(&act.gate);
			join_some(w, PARTIES, 0);
			for (int i = 0; i < PARTIES; i++)
				EXPECT_EQ(w[i].index, PARTIES - 1 - i);
			expect_well_acted(round);
		}
		expect_whole(&act.barrier);
	}
}

/* Seen to fail: complete that does not keep the requests: those whose limits pass break the round. */
Test(barrier, BAR_22_limits_and_resets_do_not_touch_a_decided_round)
{
	EACH_WAIT(v, WITH_TOKEN) {
		struct waiter w[PARTIES];
		make_acting(PARTIES);
		inject_clock(NOON);
		for (int i = 0; i < PARTIES; i++) {
			w[i] = (struct waiter)WAITER(barrier, &act.barrier, i % 2 ? FAR : v->form);
			w[i].deadline = NOON + 100;
			(i < PARTIES - 1 ? waiter_start : waiter_run)(&w[i]);
		}
		gate_await(&act.gate, 1);
		vez_cancel_fire(&w[0].own);
		vez_cancel_fire(&w[2].own);
		inject_clock(NOON + 200);
		for (int i = 0; i < PARTIES - 1; i++)
			thread_kick(&w[i].thread);
		EXPECT_EQ(vez_barrier_reset(&act.barrier), 0);
		EXPECT_EQ(vez_barrier_waiters(&act.barrier), PARTIES - 1);
		for (int i = 0; i < PARTIES - 1; i++)
			EXPECT(waiter_blocked(&w[i]));
		gate_open(&act.gate);
		join_some(w, PARTIES, 0);
		for (int i = 0; i < PARTIES; i++)
			EXPECT_EQ(vez_cancel_fired(&w[i].own), i == 0 || i == 2);
		expect_well_acted(1);
		expect_whole(&act.barrier);
	}
}

/* The deadline of the first and the token of the second have ended their waits, but who is to take them out comes too
 * late: the round has been decided. Seen to fail: vez__keep that leaves out who is entering; take_result and
 * vez__end_fired that do not ask for KEPT. */
Test(barrier, BAR_22_decided_while_they_were_coming_in)
{
	EACH_WAIT(v, WITH_TOKEN) {
		struct waiter w[3];
		struct firing f = { .token = &w[1].own };
		make_acting(3);
		inject_clock(NOON);
		w[0] = (struct waiter)WAITER(barrier, &act.barrier, TOKEN_FAR);
		w[0].deadline = NOON + 100;
		w[1] = (struct waiter)WAITER(barrier, &act.barrier, v->form);
		w[2] = (struct waiter)WAITER(barrier, &act.barrier, UNTIMED);
		w[1].deadline = NOON + 1000 * MS;
		waiter_start(&w[0]);
		waiter_start(&w[1]);
		waiter_await_parked(&w[0]);
		waiter_await_parked(&w[1]);
		vez__lock_enter(&act.barrier.core_.word_);
		inject_clock(NOON + 200);
		thread_kick(&w[0].thread);
		waiter_await_locked_out(&w[0]);
		thread_start(&f.thread, fire, &f);
		UNTIL(thread_futex(&f.thread) - (uintptr_t)&act.barrier < sizeof act.barrier)
			;
		/* Both are stopped on their way in, and the last party comes before them. */
		thread_freeze(&w[0].thread);
		thread_freeze(&f.thread);
		waiter_run(&w[2]);
		waiter_await_locked_out(&w[2]);
		vez__lock_exit(&act.barrier.core_.word_);
		gate_await(&act.gate, 1);
		bool late = v->fault == FAULT_EINTR || v->fault == FAULT_LATE;
		if (!late) {
			thread_thaw(&w[0].thread);
			thread_thaw(&f.thread);
			thread_join(&f.thread);
			EXPECT(waiter_blocked(&w[0]));
			EXPECT(waiter_blocked(&w[1]));
		}
		vez_cancel_fire(&w[0].own);
		EXPECT_EQ(vez_barrier_waiters(&act.barrier), 2);
		EXPECT(!vez_barrier_broken(&act.barrier));
		gate_open(&act.gate);
		EXPECT_EQ(waiter_join(&w[2]), 0);
		if (late) {
			thread_thaw(&w[0].thread);
			thread_thaw(&f.thread);
			thread_join(&f.thread);
		}
		EXPECT_EQ(waiter_join(&w[0]), 0);
		EXPECT_EQ(waiter_join(&w[1]), 0);
		EXPECT_EQ(w[0].index, 2);
		expect_well_acted(1);
		expect_whole(&act.barrier);
	}
}

/* Seen to fail: end_round that settles whoever is queued; complete that has newcomers share their word. */
Test(barrier, ALL_who_comes_while_the_action_runs_belongs_to_the_next_round)
{
	EACH_WAIT(v, ALL) {
		struct waiter w[PARTIES], next[PARTIES];
		make_acting(PARTIES);
		start_round(w, v->form, 1);
		for (int i = 0; i < PARTIES; i++)
			next[i] = (struct waiter)WAITER(barrier, &act.barrier, v->form);
		for (int i = 0; i < 2; i++) {
			waiter_start(&next[i]);
			waiter_await_parked(&next[i]);
		}
		EXPECT_EQ(vez_barrier_waiters(&act.barrier), PARTIES - 1 + 2);
		gate_open(&act.gate);
		join_some(w, PARTIES, 0);
		EXPECT(waiter_blocked(&next[0]));
		EXPECT(waiter_blocked(&next[1]));
		for (int i = 2; i < PARTIES - 1; i++)
			waiter_start(&next[i]);
		waiter_run(&next[PARTIES - 1]);
		gate_await(&act.gate, 2);
		gate_open(&act.gate);
		join_some(next, PARTIES, 0);
		for (int i = 0; i < PARTIES; i++)
			EXPECT_EQ(next[i].index, PARTIES - 1 - i);
		/* The round before did not wake them. */
		for (int i = 0; i < 2 && (v->fault == FAULT_NONE || v->fault == FAULT_LATE); i++)
			EXPECT_EQ(next[i].waits, 1);
		expect_well_acted(2);
		expect_whole(&act.barrier);
	}
}

/* Seen to fail: complete_with_action that acts at once; end_round that lets ACTING go. */
Test(barrier, ALL_two_actions_never_run_at_once)
{
	enum { ROUNDS = 3, MORE };
	EACH_WAIT(v, ALL) {
		struct waiter w[MORE][PARTIES];
		make_acting(PARTIES);
		start_round(w[0], v->form, 1);
		for (int round = 1; round < ROUNDS; round++)
			start_some(w[round], &act.barrier, v->form, PARTIES);
		EXPECT_EQ(vez_barrier_waiters(&act.barrier), ROUNDS * PARTIES - 1);
		EXPECT_EQ(vez_barrier_reset(&act.barrier), 0);
		for (int round = 1; round < ROUNDS; round++)
			for (int i = 0; i < PARTIES; i++)
				vez_cancel_fire(&w[round][i].own);
		EXPECT_EQ(vez_barrier_waiters(&act.barrier), ROUNDS * PARTIES - 1);
		for (int round = 0; round < MORE; round++) {
			gate_await(&act.gate, round + 1);
			EXPECT_EQ(act.ran, (unsigned)round);
			/* The last one is decided while the turn is another's who was told. */
			if (round + 1 == ROUNDS)
				start_some(w[ROUNDS], &act.barrier, v->form, PARTIES);
			if (round + 1 < MORE)
				EXPECT(waiter_blocked(&w[round + 1][PARTIES - 1]));
			gate_open(&act.gate);
			join_some(w[round], PARTIES, 0);
			for (int i = 0; i < PARTIES; i++)
				EXPECT_EQ(w[round][i].index, PARTIES - 1 - i);
		}
		expect_well_acted(MORE);
		expect_whole(&act.barrier);
	}
}

/* Seen to fail: break_round that begins with the first in the queue: it ends the decided round. */
Test(barrier, ALL_what_breaks_the_next_round_leaves_the_decided_one)
{
	EACH_WAIT(v, WITH_TOKEN) {
		for (int how = 0; how < 3; how++) {
			struct waiter w[PARTIES], next[2];
			make_acting(PARTIES);
			start_round(w, v->form, 1);
			start_some(next, &act.barrier, v->form, 2);
			if (how == 0)
				vez_cancel_fire(&next[1].own);
			else if (how == 1)
				EXPECT_EQ(vez_barrier_wait_until(&act.barrier, NULL, VEZ_NOW, NULL), ETIMEDOUT);
			else
				EXPECT_EQ(vez_barrier_reset(&act.barrier), 0);
			EXPECT_EQ(vez_barrier_broken(&act.barrier), how < 2);
			EXPECT_EQ(waiter_join(&next[0]), VEZ_EBROKEN);
			EXPECT_EQ(waiter_join(&next[1]), how == 0 ? ECANCELED : VEZ_EBROKEN);
			EXPECT_EQ(vez_barrier_waiters(&act.barrier), PARTIES - 1);
			gate_open(&act.gate);
			join_some(w, PARTIES, 0);
			EXPECT_EQ(vez_barrier_broken(&act.barrier), how < 2);
			expect_well_acted(1);
			EXPECT_EMPTY(barrier, &act.barrier);
		}
	}
}

/* Seen to fail: end_round that says 0 to the others; one that leaves the next rounds to wait. */
Test(barrier, ALL_an_action_that_fails_breaks_it)
{
	EACH_WAIT(v, ALL) {
		struct waiter w[PARTIES], next[PARTIES], third[2];
		make_acting(PARTIES);
		start_round(w, v->form, 1);
		start_some(next, &act.barrier, v->form, PARTIES);
		start_some(third, &act.barrier, v->form, 2);
		STORE(&act.rc, 77);
		gate_open(&act.gate);
		EXPECT_EQ(waiter_join(&w[PARTIES - 1]), 77);
		join_some(w, PARTIES - 1, VEZ_EBROKEN);
		join_some(next, PARTIES, VEZ_EBROKEN);
		join_some(third, 2, VEZ_EBROKEN);
		EXPECT(vez_barrier_broken(&act.barrier));
		EXPECT_EQ(wait_as(v->form, barrier, &act.barrier, &w[0].own), VEZ_EBROKEN);
		STORE(&act.rc, 0);
		EXPECT_EQ(vez_barrier_reset(&act.barrier), 0);
		start_round(w, v->form, 2);
		gate_open(&act.gate);
		join_some(w, PARTIES, 0);
		expect_well_acted(2);
		expect_whole(&act.barrier);
	}
}

/* Seen to fail: complete_with_action that asks ACTING after it has set it. */
Test(barrier, BAR_04_a_party_of_one)
{
	EACH_WAIT(v, ALL) {
		struct waiter w[3];
		unsigned ran = 0;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_barrier_t b = make(1, count_rounds, &ran);
		for (unsigned i = 1; i <= 2; i++) {
			uint32_t index = NO_INDEX;
			EXPECT_EQ(vez_barrier_wait_until(&b, &index, VEZ_NOW, &token), 0);
			EXPECT_EQ(index, 0);
			EXPECT_EQ(ran, i);
		}
		expect_whole(&b);
		make_acting(1);
		w[0] = w[1] = w[2] = (struct waiter)WAITER(barrier, &act.barrier, v->form);
		waiter_run(&w[0]);
		gate_await(&act.gate, 1);
		EXPECT_EQ(act.waiters, 0);
		waiter_start(&w[1]);
		waiter_start(&w[2]);
		for (unsigned i = 0; i < 3; i++) {
			gate_await(&act.gate, i + 1);
			gate_open(&act.gate);
			EXPECT_EQ(waiter_join(&w[i]), 0);
		}
		expect_well_acted(3);
		expect_whole(&act.barrier);
	}
}

/* ---- the first to return destroys it ---- */

static void wait_and_destroy(void *arg)
{
	struct party *p = arg;
	p->wrong = vez_barrier_wait(p->barrier, NULL) != 0;
	/* counts: who is first. */
	if (ADD(p->counts, 1) == 1) {
		p->destroyed = vez_barrier_destroy(p->barrier);
		guard_close(p->barrier);
	}
}

/* Seen to fail: vez__leave_pending that reads the core after it has left. */
Test(barrier, E02_the_first_to_return_destroys_it)
{
	vez_barrier_t *b = guard_new(sizeof *b);
	for (int round = 0; round < 1500; round++) {
		unsigned first = 0, ran = 0, parties = 2 + round % 3;
		struct party p[4];
		EXPECT_EQ(vez_barrier_init(b, parties, round % 2 ? count_rounds : NULL, &ran), 0);
		for (unsigned i = 0; i < parties; i++) {
			p[i] = (struct party){ .barrier = b, .counts = &first };
			thread_start(&p[i].thread, wait_and_destroy, &p[i]);
		}
		for (unsigned i = 0; i < parties; i++) {
			thread_join(&p[i].thread);
			EXPECT(!p[i].wrong);
			EXPECT_EQ(p[i].destroyed, 0);
		}
		guard_open(b, sizeof *b);
	}
	guard_free(b);
}

/* ---- a round and the end of a wait at the same instant ---- */

struct racer {
	struct thread thread;
	vez_barrier_t *barrier;
	vez_cancel_t *token;
	int64_t at; /* 0: is told later */
	int rc;
};

static void race(void *arg)
{
	struct racer *r = arg;
	while (LOAD(&r->at) == 0)
		sched_yield();
	while (real_now() < r->at)
		;
	if (r->token)
		vez_cancel_fire(r->token);
	else
		r->rc = vez_barrier_wait(r->barrier, NULL);
}

/* Seen to fail: gave_up that does not break it. */
Test(barrier, ALL_04_a_round_and_a_timeout_in_the_same_instant)
{
	struct instant instant = { .shift = 0 };
	for (int round = 0; instant_again(&instant, 500); round++) {
		vez_barrier_t b = make(2, NULL, NULL);
		int64_t start = vez_after_us(150);
		vez_deadline_t limit = start + instant_of_end(&instant);
		struct racer r = { .barrier = &b, .at = start + instant_of_grant(&instant) + (round % 9 - 2) * 20000 };
		thread_start(&r.thread, race, &r);
		int rc = vez_barrier_wait_until(&b, NULL, limit, NULL);
		EXPECT(rc == 0 || (rc == ETIMEDOUT && real_now() >= limit));
		thread_join(&r.thread);
		EXPECT_EQ(r.rc, rc == 0 ? 0 : VEZ_EBROKEN);
		EXPECT_EQ(vez_barrier_broken(&b), rc != 0);
		instant_was(&instant, rc == 0);
		EXPECT_EMPTY(barrier, &b);
	}
}

/* Seen to fail: as above. */
Test(barrier, A10_TOK_13_a_round_and_a_token_in_the_same_instant)
{
	struct instant instant = { .shift = 0 };
	for (int round = 0; instant_again(&instant, 500); round++) {
		unsigned ran = 0;
		vez_barrier_t b = make(2, round % 2 ? count_rounds : NULL, &ran);
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		struct racer r = { .barrier = &b }, f = { .token = &token };
		thread_start(&r.thread, race, &r);
		thread_start(&f.thread, race, &f);
		int64_t at = real_now() + 60000;
		STORE(&r.at, at + instant_of_grant(&instant));
		STORE(&f.at, at + instant_of_end(&instant) + (round % 9 - 4) * 10000);
		int rc = vez_barrier_wait_until(&b, NULL, VEZ_FOREVER, &token);
		EXPECT(rc == 0 || rc == ECANCELED);
		thread_join(&r.thread);
		thread_join(&f.thread);
		EXPECT_EQ(r.rc, rc == 0 ? 0 : VEZ_EBROKEN);
		EXPECT_EQ(ran, rc == 0 && round % 2);
		instant_was(&instant, rc == 0);
		EXPECT_EMPTY(barrier, &b);
	}
}

static void reset_often(void *arg)
{
	struct party *p = arg;
	for (unsigned i = 0; i < p->rounds; i++) {
		vez_barrier_reset(p->barrier);
		sched_yield();
	}
}

static void wait_often(void *arg)
{
	struct party *p = arg;
	for (unsigned i = 0; i < p->rounds; i++) {
		uint32_t index;
		int rc = vez_barrier_wait(p->barrier, &index);
		p->wrong |= (rc != 0 && rc != VEZ_EBROKEN) || (rc == 0 && index > 2);
		if (rc == 0 && index <= 2)
			p->places[index]++;
	}
}

/* Seen to fail: reset that leaves one of the parties to the next round. */
Test(barrier, BAR_32_a_reset_ends_whole_rounds)
{
	enum { THREADS = 3 };
	unsigned ran = 0, places[THREADS] = { 0 };
	vez_barrier_t b = make(THREADS, count_rounds, &ran);
	struct party p[THREADS], r = { .barrier = &b, .rounds = 300 };
	for (int i = 0; i < THREADS; i++) {
		p[i] = (struct party){ .barrier = &b, .rounds = 3000 };
		thread_start(&p[i].thread, wait_often, &p[i]);
	}
	thread_start(&r.thread, reset_often, &r);
	thread_join(&r.thread);
	/* Those of them that are left alone by the others are let go. */
	UNTIL(thread_done(&p[0].thread) && thread_done(&p[1].thread) && thread_done(&p[2].thread))
		vez_barrier_reset(&b);
	for (int i = 0; i < THREADS; i++) {
		thread_join(&p[i].thread);
		EXPECT(!p[i].wrong);
		for (int place = 0; place < THREADS; place++)
			places[place] += p[i].places[place];
	}
	EXPECT(ran > 0);
	for (int place = 0; place < THREADS; place++)
		EXPECT_EQ(places[place], ran);
	expect_whole(&b);
}
