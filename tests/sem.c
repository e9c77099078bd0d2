/* SPDX-License-Identifier: MIT */
/*
 * The counting semaphore.
 *
 * Each test carries the id of the behaviour it checks, runs in every form that applies, FIFO and barging where both mean
 * the same, and under every fault of tests/lib/inject.h. "Seen to fail" names a change of the library with which it did.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acquire.h"
#include "guard.h"

TestSuite(sem, .timeout = 120);

#define MS INT64_C(1000000)
#define MAX VEZ_SEM_MAX

static vez_sem_t make(uint32_t permits, uint32_t max, unsigned flags)
{
	vez_sem_t s;
	memset(&s, 0xa5, sizeof s);
	EXPECT_EQ(vez_sem_init(&s, permits, max, flags), 0);
	return s;
}

/* ---- alone ---- */

/* Seen to fail: init that ignores permits; init that forgets BARGING (the second half). */
Test(sem, SEM_01_created_as_asked)
{
	static const uint32_t counts[] = { 0, 1, 42, MAX };
	EACH_VARIANT(v, ONE_FORM) {
		for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
			vez_sem_t s = make(counts[i], 0, v->flags);
			EXPECT_EQ(vez_sem_permits(&s), counts[i]);
			EXPECT_QUIET(&s, counts[i]);
		}
		vez_sem_t s = make(1, 3, v->flags);
		struct acquire big = ACQUIRE(&s, 3, UNTIMED);
		acquire_start(&big);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), v->flags ? 0 : EBUSY);
		EXPECT_EQ(vez_sem_release(&s, v->flags ? 3 : 2), 0);
		EXPECT_EQ(acquire_join(&big), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: init that accepts flag 2, permits above max, or a max above VEZ_SEM_MAX. */
Test(sem, ALL_bad_arguments_are_refused)
{
	vez_sem_t s;
	EXPECT_EQ(vez_sem_init(&s, 0, 0, 2), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, 0, 0, ~0u), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, 0, 0, VEZ_BARGING | 4), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, 5, 4, 0), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, MAX + 1u, 0, 0), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, 0, MAX + 1u, 0), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, 0, UINT32_MAX, 0), EINVAL);
	EXPECT_EQ(vez_sem_init(&s, 4, 4, 0), 0);
	EXPECT(MAX >= 2147483647u);
}

/* Seen to fail: max_of that reads below_max_ as the maximum. */
Test(sem, ALL_zero_bytes_are_a_semaphore)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_sem_t s;
		memset(&s, 0, sizeof s);
		EXPECT_EQ(vez_sem_permits(&s), 0);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), EBUSY);
		struct acquire a = ACQUIRE(&s, MAX, v->form);
		acquire_start(&a);
		EXPECT_EQ(vez_sem_release(&s, MAX), 0);
		EXPECT_EQ(acquire_join(&a), 0);
		EXPECT_QUIET(&s, 0);
		vez_sem_t three = VEZ_SEM_INITIALIZER(3);
		EXPECT_EQ(acquire_as(v->form, &three, 3, &a.own), 0);
		EXPECT_QUIET(&three, 0);
	}
}

/* Seen to fail: attempt that takes the permits before it compares. */
Test(sem, SEM_04_try_takes_what_there_is)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_sem_t s = make(2, 0, v->flags);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), 0);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), 0);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), EBUSY);
		EXPECT_EQ(vez_sem_permits(&s), 0);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), EBUSY);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: attempt that takes as many as there are. */
Test(sem, SEM_05_try_takes_all_or_nothing)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_sem_t s = make(2, 0, v->flags);
		EXPECT_EQ(vez_sem_try_acquire(&s, 3), EBUSY);
		EXPECT_QUIET(&s, 2);
	}
}

/* Seen to fail: acquire_fast that takes one permit whatever n is. */
Test(sem, SEM_07_release_and_acquire_in_one_and_in_many)
{
	EACH_VARIANT(v, ALL) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(1, 0, v->flags);
		for (uint32_t i = 1; i <= 5; i++) {
			EXPECT_EQ(vez_sem_release(&s, i), 0);
			EXPECT_EQ(acquire_as(v->form, &s, i, &token), 0);
			EXPECT_EQ(vez_sem_permits(&s), 1);
			for (uint32_t k = 0; k < i; k++)
				EXPECT_EQ(vez_sem_release(&s, 1), 0);
			for (uint32_t k = 0; k < i; k++)
				EXPECT_EQ(acquire_as(v->form, &s, 1, &token), 0);
			EXPECT_EQ(vez_sem_permits(&s), 1);
		}
		EXPECT_QUIET(&s, 1);
	}
}

/* Seen to fail: drain that leaves one. */
Test(sem, SEM_10_drain)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_sem_t s = make(0, 0, v->flags);
		EXPECT_EQ(vez_sem_drain(&s), 0);
		EXPECT_EQ(vez_sem_release(&s, 10), 0);
		EXPECT_EQ(vez_sem_drain(&s), 10);
		EXPECT_EQ(vez_sem_permits(&s), 0);
		EXPECT_EQ(vez_sem_drain(&s), 0);
		EXPECT_EQ(vez_sem_release(&s, MAX), 0);
		EXPECT_EQ(vez_sem_drain(&s), MAX);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: drain that gives up where somebody waits. */
Test(sem, SEM_10_drain_takes_what_does_not_suffice)
{
	EACH_VARIANT(v, ALL) {
		vez_sem_t s = make(2, 0, v->flags);
		struct acquire big = ACQUIRE(&s, 3, v->form);
		acquire_start(&big);
		EXPECT_EQ(vez_sem_permits(&s), 2);
		EXPECT_EQ(vez_sem_drain(&s), 2);
		EXPECT_EQ(vez_sem_permits(&s), 0);
		EXPECT_EQ(vez_sem_waiters(&s), 1);
		EXPECT_EQ(vez_sem_release(&s, 2), 0);
		EXPECT(acquire_blocked(&big));
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(acquire_join(&big), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: a deadline that is taken for a distance; a timeout that keeps the demand of the request. */
Test(sem, SEM_16_timed_out_and_nothing_changed)
{
	EACH_VARIANT(v, WITH_DEADLINE) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(2, 0, v->flags);
		vez_deadline_t limit = vez_after_ms(3);
		int rc = v->form == KEYED ? vez_sem_acquire_key(&s, 3, 7, limit, &token) :
					    vez_sem_acquire_until(&s, 3, limit, v->form == FAR ? NULL : &token);
		EXPECT_EQ(rc, ETIMEDOUT);
		EXPECT(real_now() >= limit);
		EXPECT(!vez_cancel_fired(&token));
		EXPECT_EQ(vez_sem_try_acquire(&s, 2), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* ---- tokens ---- */

/* Seen to fail: acquire_key that tries the fast path before it asks the token. */
Test(sem, SEM_17_A02_a_fired_token_wins)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		for (uint32_t permits = 0; permits <= 3; permits += 3) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			vez_sem_t s = make(permits, 0, v->flags);
			vez_cancel_fire(&token);
			EXPECT_EQ(acquire_as(v->form, &s, 1, &token), ECANCELED);
			EXPECT_EQ(acquire_as(v->form, &s, 3, &token), ECANCELED);
			EXPECT_EQ(acquire_as(v->form, &s, 0, &token), ECANCELED);
			EXPECT_EQ(vez_sem_acquire_until(&s, 1, VEZ_NOW, &token), ECANCELED);
			EXPECT_EQ(vez_sem_acquire_key(&s, 1, -1, 0, &token), ECANCELED);
			EXPECT_EQ(inject_waits(), 0);
			EXPECT(vez_cancel_fired(&token));
			EXPECT_QUIET(&s, permits);
		}
	}
}

/* Seen to fail: attempt after a past deadline that says ETIMEDOUT without looking. */
Test(sem, A02_a_past_deadline_takes_what_is_free)
{
	static const vez_deadline_t past[] = { 0, 1, -1, VEZ_NOW };
	EACH_VARIANT(v, ONE_FORM) {
		for (unsigned i = 0; i < sizeof past / sizeof past[0]; i++) {
			vez_sem_t s = make(2, 0, v->flags);
			EXPECT_EQ(vez_sem_acquire_until(&s, 1, past[i], NULL), 0);
			EXPECT_EQ(vez_sem_acquire_key(&s, 1, 3, past[i], NULL), 0);
			EXPECT_EQ(vez_sem_acquire_until(&s, 1, past[i], NULL), ETIMEDOUT);
			EXPECT_QUIET(&s, 0);
		}
	}
}

/* Fires the token of a blocked request for n permits. */
static void cancel_blocked(const struct variant *v, uint32_t n)
{
	vez_sem_t s = make(n - 1, 0, v->flags);
	struct acquire a = ACQUIRE(&s, n, v->form);
	acquire_start(&a);
	EXPECT(acquire_blocked(&a));
	vez_cancel_fire(&a.own);
	EXPECT_EQ(acquire_join(&a), ECANCELED);
	EXPECT(vez_cancel_fired(&a.own));
	EXPECT_QUIET(&s, n - 1);
}

/* Seen to fail: fire that marks the word and does not wake. */
Test(sem, SEM_18_fire_ends_a_blocked_acquire)
{
	EACH_VARIANT(v, WITH_TOKEN)
		cancel_blocked(v, 1);
}

/* Seen to fail: as SEM_18. */
Test(sem, SEM_19_fire_ends_a_blocked_acquire_of_three)
{
	EACH_VARIANT(v, WITH_TOKEN)
		cancel_blocked(v, 3);
}

/* Seen to fail: as SEM_18; EACH_VARIANT here leaves the timed forms. */
Test(sem, SEM_20_fire_ends_a_timed_acquire_far_from_its_limit)
{
	EACH_VARIANT(v, WITH_TOKEN | WITH_DEADLINE) {
		cancel_blocked(v, 1);
		cancel_blocked(v, 3);
	}
}

/* Seen to fail: an acquire without a token that takes the thread's own. */
Test(sem, SEM_22_ALL_05_who_names_no_token_keeps_waiting)
{
	EACH_VARIANT(v, WITHOUT_TOKEN) {
		vez_sem_t s = make(0, 0, v->flags);
		struct acquire a = ACQUIRE(&s, 1, v->form);
		acquire_start(&a);
		vez_cancel_fire(&a.own);
		EXPECT(acquire_blocked(&a));
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(acquire_join(&a), 0);
		EXPECT(vez_cancel_fired(&a.own));
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: serve that grants the first only. */
Test(sem, SEM_23_one_release_for_two)
{
	EACH_VARIANT(v, ALL) {
		vez_sem_t s = make(0, 0, v->flags);
		struct acquire a = ACQUIRE(&s, 1, v->form), b = a;
		acquire_start(&a);
		acquire_start(&b);
		if (!form_has_token(v->form))
			vez_cancel_fire(&a.own);
		EXPECT(acquire_blocked(&a));
		EXPECT(acquire_blocked(&b));
		EXPECT_EQ(vez_sem_release(&s, 2), 0);
		EXPECT_EQ(acquire_join(&a), 0);
		EXPECT_EQ(acquire_join(&b), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: a cancelled request that stays in the queue. */
Test(sem, SEM_25_SEM_26_the_queue_as_seen_from_outside)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_sem_t s = make(0, 0, v->flags);
		struct acquire a = ACQUIRE(&s, 1, v->form), b = a;
		EXPECT_EQ(vez_sem_waiters(&s), 0);
		acquire_start(&a);
		EXPECT_EQ(vez_sem_waiters(&s), 1);
		acquire_start(&b);
		EXPECT_EQ(vez_sem_waiters(&s), 2);
		vez_cancel_fire(&a.own);
		EXPECT_EQ(vez_sem_waiters(&s), 1);
		EXPECT_EQ(acquire_join(&a), ECANCELED);
		EXPECT(acquire_blocked(&b));
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(acquire_join(&b), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* ---- the queue ---- */

/* Seen to fail: a release that stores what is left instead of subtracting it. */
Test(sem, SEM_08_release_exactly_what_is_asked)
{
	EACH_VARIANT(v, ALL) {
		vez_sem_t s = make(0, 0, v->flags);
		for (int round = 0; round < 4; round++) {
			struct acquire a = ACQUIRE(&s, round % 2 ? 3 : 1, v->form);
			acquire_start(&a);
			EXPECT_EQ(vez_sem_release(&s, a.n), 0);
			EXPECT_EQ(acquire_join(&a), 0);
		}
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: attempt that looks at the permits only. */
Test(sem, SEM_28_SEM_29_an_expired_limit_respects_the_queue)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(1, 0, 0);
		struct acquire big = ACQUIRE(&s, 3, v->form);
		acquire_start(&big);
		EXPECT_EQ(vez_sem_acquire_until(&s, 1, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(vez_sem_acquire_until(&s, 1, 0, &token), ETIMEDOUT);
		EXPECT_EQ(vez_sem_acquire_key(&s, 1, 0, -1, NULL), ETIMEDOUT);
		EXPECT_EQ(vez_sem_try_acquire(&s, 1), EBUSY);
		EXPECT_EQ(vez_sem_permits(&s), 1);
		EXPECT_EQ(vez_sem_waiters(&s), 1);
		EXPECT_EQ(vez_sem_release(&s, 2), 0);
		EXPECT_EQ(acquire_join(&big), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: acquire_fast that does not look at the demand. */
Test(sem, SEM_32_a_newcomer_queues_behind_a_big_request)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_sem_t s = make(1, 0, 0);
		struct acquire big = ACQUIRE(&s, 3, v->form), small = ACQUIRE(&s, 1, v->form);
		acquire_start(&big);
		acquire_start(&small);
		EXPECT(acquire_blocked(&big));
		EXPECT(acquire_blocked(&small));
		EXPECT_EQ(vez_sem_waiters(&s), 2);
		EXPECT_EQ(vez_sem_permits(&s), 1);
		EXPECT_EQ(vez_sem_release(&s, 2), 0);
		EXPECT_EQ(acquire_join(&big), 0);
		EXPECT(acquire_blocked(&small));
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(acquire_join(&small), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: withdraw and leave that do not serve those behind. */
Test(sem, SEM_42_A01_a_cancelled_head_lets_the_others_go)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_sem_t s = make(1, 0, v->flags);
		struct acquire big = ACQUIRE(&s, 2, v->form), small = ACQUIRE(&s, 1, UNTIMED);
		acquire_start(&big);
		small.form = v->flags ? UNTIMED : v->form;
		if (v->flags) {
			/* A barging newcomer would pass: it queues while there is nothing to take. */
			EXPECT_EQ(vez_sem_drain(&s), 1);
			acquire_start(&small);
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
		} else {
			acquire_start(&small);
		}
		EXPECT(acquire_blocked(&big));
		EXPECT(acquire_blocked(&small));
		vez_cancel_fire(&big.own);
		EXPECT_EQ(acquire_join(&big), ECANCELED);
		EXPECT_EQ(acquire_join(&small), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: as SEM_42, where a deadline is what ends the head. */
Test(sem, SEM_43_A01_a_head_that_times_out_lets_the_others_go)
{
	EACH_VARIANT(v, WITH_DEADLINE | FIFO_ONLY) {
		vez_sem_t s = make(1, 0, 0);
		struct acquire big = ACQUIRE(&s, 2, v->form), small = ACQUIRE(&s, 1, UNTIMED);
		/* While the thread's deadline is near, the test may be slow: the small one is then granted at once. */
		big.deadline = vez_after_ms(10);
		acquire_run(&big);
		UNTIL(vez_sem_waiters(&s) == 1 || thread_done(&big.thread));
		acquire_run(&small);
		EXPECT_EQ(acquire_join(&small), 0);
		EXPECT_EQ(acquire_join(&big), ETIMEDOUT);
		EXPECT(real_now() >= big.deadline);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: as SEM_42; serve that stops after one. */
Test(sem, SEM_44_one_cancel_lets_two_go)
{
	EACH_VARIANT(v, WITH_TOKEN | FIFO_ONLY) {
		vez_sem_t s = make(3, 0, 0);
		struct acquire a = ACQUIRE(&s, 5, v->form), b = ACQUIRE(&s, 2, v->form), c = ACQUIRE(&s, 1, v->form);
		acquire_start(&a);
		acquire_start(&b);
		acquire_start(&c);
		acquire_await_parked(&a);
		uintptr_t word_b = acquire_await_parked(&b), word_c = acquire_await_parked(&c);
		unsigned before = inject_wakes();
		vez_cancel_fire(&a.own);
		EXPECT_EQ(inject_wakes() - before, 3);
		unsigned at_b = 0, at_c = 0;
		for (unsigned i = before; i < before + 3; i++) {
			at_b = inject_woken(i) == word_b ? i : at_b;
			at_c = inject_woken(i) == word_c ? i : at_c;
		}
		EXPECT(at_b < at_c);
		EXPECT_EQ(acquire_join(&a), ECANCELED);
		EXPECT_EQ(acquire_join(&b), 0);
		EXPECT_EQ(acquire_join(&c), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: withdraw that serves the first only if it is the last. */
Test(sem, A01_of_three_behind_a_cancelled_head_two_fit)
{
	EACH_VARIANT(v, WITH_TOKEN | FIFO_ONLY) {
		vez_sem_t s = make(2, 0, 0);
		struct acquire head = ACQUIRE(&s, 3, v->form), small[3];
		acquire_start(&head);
		for (int i = 0; i < 3; i++) {
			small[i] = (struct acquire)ACQUIRE(&s, 1, v->form);
			acquire_start(&small[i]);
		}
		vez_cancel_fire(&head.own);
		EXPECT_EQ(acquire_join(&head), ECANCELED);
		EXPECT_EQ(acquire_join(&small[0]), 0);
		EXPECT_EQ(acquire_join(&small[1]), 0);
		EXPECT(acquire_blocked(&small[2]));
		EXPECT_EQ(vez_sem_waiters(&s), 1);
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(acquire_join(&small[2]), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: acquire_slow that lets n > max wait. */
Test(sem, SEM_46_A03_more_than_the_maximum)
{
	EACH_VARIANT(v, ALL) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(1, 4, v->flags);
		EXPECT_EQ(acquire_as(v->form, &s, 5, &token), EINVAL);
		EXPECT_EQ(acquire_as(v->form, &s, MAX, &token), EINVAL);
		EXPECT_EQ(acquire_as(v->form, &s, UINT32_MAX, &token), EINVAL);
		EXPECT_EQ(vez_sem_try_acquire(&s, 5), EINVAL);
		EXPECT_EQ(vez_sem_acquire_until(&s, 5, VEZ_NOW, NULL), EINVAL);
		EXPECT_EQ(inject_waits(), 0);
		EXPECT_EQ(acquire_as(v->form, &s, 1, &token), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: take_inside that makes n = 0 wait behind the queue. */
Test(sem, A03_nothing_is_had_at_once)
{
	EACH_VARIANT(v, ALL) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(0, 0, v->flags);
		EXPECT_EQ(acquire_as(v->form, &s, 0, &token), 0);
		EXPECT_EQ(vez_sem_try_acquire(&s, 0), 0);
		struct acquire a = ACQUIRE(&s, 2, v->form);
		acquire_start(&a);
		EXPECT_EQ(acquire_as(v->form, &s, 0, &token), 0);
		EXPECT_EQ(vez_sem_try_acquire(&s, 0), 0);
		EXPECT_EQ(vez_sem_acquire_until(&s, 0, VEZ_NOW, NULL), 0);
		EXPECT_EQ(vez_sem_release(&s, 0), 0);
		EXPECT(acquire_blocked(&a));
		EXPECT_EQ(vez_sem_release(&s, 2), 0);
		EXPECT_EQ(acquire_join(&a), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: publish that wakes a word twice; one that wakes the last first; serve that grants one too many. */
Test(sem, SEM_55_a_release_wakes_those_it_lets_go_and_no_others)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		enum { WAITERS = 5 };
		vez_sem_t s = make(0, 0, 0);
		struct acquire a[WAITERS];
		uintptr_t word[WAITERS];
		for (int i = 0; i < WAITERS; i++) {
			a[i] = (struct acquire)ACQUIRE(&s, 1, v->form);
			acquire_start(&a[i]);
			word[i] = acquire_await_parked(&a[i]);
		}
		unsigned before = inject_wakes();
		EXPECT_EQ(vez_sem_release(&s, 3), 0);
		EXPECT_EQ(inject_wakes() - before, 3);
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(inject_woken(before + i), word[i]);
			EXPECT_EQ(acquire_join(&a[i]), 0);
			EXPECT(a[i].waits <= 2);
		}
		EXPECT_EQ(vez_sem_waiters(&s), 2);
		EXPECT(acquire_blocked(&a[3]));
		EXPECT(acquire_blocked(&a[4]));
		EXPECT_EQ(vez_sem_release(&s, 2), 0);
		EXPECT_EQ(acquire_join(&a[3]), 0);
		EXPECT_EQ(acquire_join(&a[4]), 0);
		EXPECT_EQ(inject_wakes() - before, 5);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: a release that wakes the head whatever it wants. */
Test(sem, SEM_56_a_release_too_small_for_the_head)
{
	EACH_VARIANT(v, ALL) {
		vez_sem_t s = make(0, 0, v->flags);
		struct acquire a = ACQUIRE(&s, 3, v->form);
		acquire_start(&a);
		acquire_await_parked(&a);
		for (uint32_t given = 1; given < 3; given++) {
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT_EQ(vez_sem_permits(&s), given);
			EXPECT_EQ(inject_wakes(), 0);
			EXPECT(acquire_blocked(&a));
		}
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(acquire_join(&a), 0);
		EXPECT_QUIET(&s, 0);
	}
}
