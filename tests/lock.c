/* SPDX-License-Identifier: MIT */
/* The short lock in a state word. */
#include "futex/lock.h"

#include <errno.h>

#include "guard.h"
#include "inject.h"
#include "thread.h"
#include "variant.h"

TestSuite(lock, .timeout = 60);

#define STATE (UINT64_C(1) << 40 | 64)

struct visitor {
	struct thread thread;
	uint64_t *word;
	struct gate *inside;   /* stops there, if there is one */
	long *count;
	int rounds;
	bool entered;
};

static void visit(void *arg)
{
	struct visitor *v = arg;
	vez__lock_enter(v->word);
	STORE(&v->entered, true);
	if (v->inside)
		gate_pass(v->inside);
	vez__lock_exit(v->word);
}

static void visit_many_times(void *arg)
{
	struct visitor *v = arg;
	for (int i = 0; i < v->rounds; i++) {
		vez__lock_enter(v->word);
		++*v->count;
		vez__lock_exit(v->word);
	}
}

/* Seen to fail: leave that stores the state with CONTENDED in it; enter that clears the state. */
Test(lock, ALL_the_state_is_kept_and_replaced)
{
	uint64_t word = STATE;
	vez__lock_enter(&word);
	EXPECT_EQ(word, STATE | VEZ__LOCKED);
	vez__lock_exit(&word);
	EXPECT_EQ(word, STATE);
	vez__lock_enter(&word);
	EXPECT(!vez__lock_leave(&word, STATE, 0));
	EXPECT_EQ(word, STATE | VEZ__LOCKED);
	EXPECT(vez__lock_leave(&word, STATE | VEZ__LOCKED, STATE * 2 | VEZ__LOCKED));
	EXPECT_EQ(word, STATE * 2);
}

/* Seen to fail: leave that overwrites what has been added meanwhile. */
Test(lock, ALL_what_arrives_meanwhile_is_not_lost)
{
	uint64_t word = 0;
	vez__lock_enter(&word);
	uint64_t seen = LOAD(&word);
	ADD(&word, UINT64_C(1) << 32);
	EXPECT(!vez__lock_leave(&word, seen, seen));
	EXPECT_EQ(word, UINT64_C(1) << 32 | VEZ__LOCKED);
	vez__lock_exit(&word);
	EXPECT_EQ(word, UINT64_C(1) << 32);
}

/* Seen to fail: leave that wakes nobody. The one who waits sleeps; the state may change while it does. */
Test(lock, ALL_who_finds_it_busy_sleeps_until_it_is_left)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint64_t word = 0;
		struct visitor a = { .word = &word };
		vez__lock_enter(&word);
		thread_start(&a.thread, visit, &a);
		thread_await_parked(&a.thread);
		EXPECT(!LOAD(&a.entered));
		EXPECT_EQ(word, VEZ__LOCKED | VEZ__CONTENDED);
		ADD(&word, UINT64_C(1) << 32 | 64);
		thread_kick(&a.thread);
		thread_await_parked(&a.thread);
		EXPECT(!LOAD(&a.entered));
		vez__lock_exit(&word);
		thread_join(&a.thread);
		EXPECT_EQ(word, UINT64_C(1) << 32 | 64);
	}
}

/* Of several that sleep a leaver wakes one, which wakes the next one when it leaves. One that was woken besides would
 * find the lock busy, and sleep again. Seen to fail: leave that wakes all. */
Test(lock, ALL_08_leaving_wakes_one)
{
	enum { SLEEPERS = 4 };
	struct visitor v[SLEEPERS];
	struct gate inside;
	uint64_t word = 0;
	gate_init(&inside);
	vez__lock_enter(&word);
	for (int i = 0; i < SLEEPERS; i++) {
		v[i] = (struct visitor){ .word = &word, .inside = &inside };
		thread_start(&v[i].thread, visit, &v[i]);
		thread_await_parked(&v[i].thread);
	}
	unsigned waits = inject_waits();
	vez__lock_exit(&word);
	for (unsigned entered = 1; entered <= SLEEPERS; entered++) {
		gate_await(&inside, entered);
		for (int i = 0; i < SLEEPERS; i++)
			if (!LOAD(&v[i].entered))
				thread_await_parked(&v[i].thread);
		EXPECT_EQ(inject_waits(), waits);
		gate_open(&inside);
	}
	for (int i = 0; i < SLEEPERS; i++)
		thread_join(&v[i].thread);
	EXPECT_EQ(word, 0);
}

static void stop_any_before_wake(uint32_t *word)
{
	(void)word;
	inject_before_wake(NULL);
	gate_pass(&before_wake);
}

/* Seen to fail: enter_slow that enters without CONTENDED after it has slept (with C, who sleeps on behind B). */
Test(lock, D01_a_newcomer_between_leaving_and_waking)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint64_t word = 0;
		struct gate in_a, in_b;
		gate_init(&in_a);
		gate_init(&in_b);
		gate_init(&before_wake);
		struct visitor a = { .word = &word, .inside = &in_a }, b = { .word = &word, .inside = &in_b },
			       c = { .word = &word };
		thread_start(&a.thread, visit, &a);
		gate_await(&in_a, 1);
		thread_start(&b.thread, visit, &b);
		thread_start(&c.thread, visit, &c);
		thread_await_parked(&b.thread);
		thread_await_parked(&c.thread);
		inject_before_wake(stop_any_before_wake);
		gate_open(&in_a);
		gate_await(&before_wake, 1);
		/* A has left and not yet woken anybody: a newcomer comes and goes. */
		vez__lock_enter(&word);
		vez__lock_exit(&word);
		gate_open(&before_wake);
		gate_open(&in_b);
		thread_join(&a.thread);
		thread_join(&b.thread);
		thread_join(&c.thread);
		EXPECT_EQ(word & ~VEZ__CONTENDED, 0);
		if (word)
			vez__lock_enter(&word), vez__lock_exit(&word);
		EXPECT_EQ(word, 0);
	}
}

/* Seen to fail: leave that reads the word again after its exchange. */
Test(lock, A06_leaving_is_the_last_touch)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint64_t *word = guard_new(sizeof *word);
		struct gate in_a;
		gate_init(&in_a);
		gate_init(&before_wake);
		struct visitor a = { .word = word, .inside = &in_a }, b = { .word = word };
		thread_start(&a.thread, visit, &a);
		gate_await(&in_a, 1);
		thread_start(&b.thread, visit, &b);
		thread_await_parked(&b.thread);
		inject_before_wake(stop_any_before_wake);
		gate_open(&in_a);
		gate_await(&before_wake, 1);
		thread_kick(&b.thread);
		thread_join(&b.thread);
		guard_close(word);
		gate_open(&before_wake);
		thread_join(&a.thread);
		guard_free(word);
	}
}

/* Seen to fail: try_enter that sets LOCKED without looking. */
Test(lock, ALL_one_at_a_time)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		enum { THREADS = 4, ROUNDS = 4000 };
		uint64_t word = STATE;
		long count = 0;
		struct visitor visitors[THREADS];
		for (int i = 0; i < THREADS; i++) {
			visitors[i] = (struct visitor){ .word = &word, .count = &count, .rounds = ROUNDS };
			thread_start(&visitors[i].thread, visit_many_times, &visitors[i]);
		}
		for (int i = 0; i < THREADS; i++)
			thread_join(&visitors[i].thread);
		EXPECT_EQ(count, THREADS * ROUNDS);
		EXPECT_EQ(word & ~VEZ__CONTENDED, STATE);
	}
}
