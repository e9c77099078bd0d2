/* SPDX-License-Identifier: MIT */
/* Scenarios of the barrier. */
#include "vez/barrier.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_barrier_t b;
static vez_cancel_t token;
static int written[X_THREADS];
static int acted, acting;
static int rc[X_THREADS];
static uint32_t returned;

static void make(uint32_t parties, int (*action)(void *))
{
	x_alive(&b, sizeof b);
	X_NAME(b);
	x_alive(&token, sizeof token);
	X_NAME(token);
	vez_cancel_init(&token);
	x_assert(vez_barrier_init(&b, parties, action, NULL) == 0);
	acted = acting = 0;
	returned = 0;
	for (int i = 0; i < X_THREADS; i++) {
		written[i] = 0;
		rc[i] = -1;
	}
}

static void left(bool broken)
{
	x_assert(vez_barrier_waiters(&b) == 0);
	x_assert(vez_barrier_broken(&b) == broken);
	x_assert(vez_barrier_destroy(&b) == 0);
}

static void left_whole(void)
{
	left(false);
}

/* ---- rounds ---- */

static void make_2(void)
{
	make(2, NULL);
}

static void make_3(void)
{
	make(3, NULL);
}

/* Each party writes, and after the round reads what the other wrote. */
static void meet(int me, int other, int rounds)
{
	for (int round = 1; round <= rounds; round++) {
		uint32_t index = 7;
		written[me] = round;
		x_assert(vez_barrier_wait(&b, &index) == 0);
		x_assert(index <= 1);
		x_assert(written[other] == round);
		x_assert(vez_barrier_wait(&b, NULL) == 0);
	}
}

static void meet_0(void)
{
	meet(0, 1, 1);
}

static void meet_1(void)
{
	meet(1, 0, 1);
}

X_SCENARIO(barrier_two, .setup = make_2, .thread = { meet_0, meet_1 }, .check = left_whole, .stale = 1);

static void make_2_spinning(void)
{
	x_spin(2);
	make(2, NULL);
}

X_SCENARIO(barrier_two_spinning, .setup = make_2_spinning, .thread = { meet_0, meet_1 }, .check = left_whole,
	   .cpus = 2);

static void pass_index(void)
{
	uint32_t index = 7;
	x_assert(vez_barrier_wait(&b, &index) == 0);
	x_assert(index <= 2);
	vez__fetch_add(&returned, UINT32_C(1) << (8 * index), relaxed);
}

static void left_each_once(void)
{
	x_assert(returned == 0x010101);
	left(false);
}

X_SCENARIO(barrier_three, .setup = make_3, .thread = { pass_index, pass_index, pass_index }, .check = left_each_once);

/* ---- parties without limits follow ---- */

static void make_4(void)
{
	make(4, NULL);
}

static void left_4_each_once(void)
{
	x_assert(returned == 0x01010101);
	left(false);
}

static void pass_index_of_4(void)
{
	uint32_t index = 7;
	x_assert(vez_barrier_wait(&b, &index) == 0);
	x_assert(index <= 3);
	vez__fetch_add(&returned, UINT32_C(1) << (8 * index), relaxed);
}

X_SCENARIO(barrier_four, .setup = make_4,
	   .thread = { pass_index_of_4, pass_index_of_4, pass_index_of_4, pass_index_of_4 }, .check = left_4_each_once,
	   .preemptions = 1);

/* A round and the next: nobody who follows in one is let go by the other. */
static void write_twice(int me)
{
	for (int round = 1; round <= 2; round++) {
		written[me] = round;
		x_assert(vez_barrier_wait(&b, NULL) == 0);
		for (int other = 0; other < 3; other++)
			x_assert(written[other] == round);
		x_assert(vez_barrier_wait(&b, NULL) == 0);
	}
}

static void write_twice_0(void)
{
	write_twice(0);
}

static void write_twice_1(void)
{
	write_twice(1);
}

static void write_twice_2(void)
{
	write_twice(2);
}

X_SCENARIO(barrier_followed_twice, .setup = make_3, .thread = { write_twice_0, write_twice_1, write_twice_2 },
	   .check = left_whole, .preemptions = 1);

/* One that has a deadline, and a request, sleeps on the same word: they go on together, or none of them. */
static void pass_until_untold_0(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void pass_or_not(int me)
{
	rc[me] = vez_barrier_wait(&b, NULL);
	x_assert(rc[me] == 0 || rc[me] == VEZ_EBROKEN);
}

static void pass_or_not_1(void)
{
	pass_or_not(1);
}

static void pass_or_not_2(void)
{
	pass_or_not(2);
}

static void left_all_or_none(void)
{
	x_assert((rc[0] == 0) == (rc[1] == 0) && (rc[1] == 0) == (rc[2] == 0));
	left(rc[0] != 0);
}

X_SCENARIO(barrier_followers_mixed, .setup = make_3, .thread = { pass_until_untold_0, pass_or_not_1, pass_or_not_2 },
	   .check = left_all_or_none, .preemptions = 2);

/* The same, spinning: the request's thread may be awake when it is published, and a follower asleep. */
static void make_3_spinning(void)
{
	x_spin(2);
	make(3, NULL);
}

X_SCENARIO(barrier_followers_mixed_spinning, .setup = make_3_spinning,
	   .thread = { pass_until_untold_0, pass_or_not_1, pass_or_not_2 }, .check = left_all_or_none,
	   .preemptions = 2, .cpus = 2);

/* One that has a deadline gives up: those who follow are told that the round is broken. */
static void pass_broken(int me)
{
	rc[me] = vez_barrier_wait(&b, NULL);
	x_assert(rc[me] == VEZ_EBROKEN);
}

static void pass_broken_0(void)
{
	pass_broken(0);
}

static void pass_broken_1(void)
{
	pass_broken(1);
}

static void pass_until_2(void)
{
	rc[2] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[2] == ETIMEDOUT);
}

static void left_broken(void)
{
	left(true);
}

X_SCENARIO(barrier_followers_broken, .setup = make_4, .thread = { pass_broken_0, pass_broken_1, pass_until_2 },
	   .check = left_broken, .preemptions = 2);

/* Reset ends followers, too, and those who come after it are of another round. */
static void pass_or_broken(int me)
{
	rc[me] = vez_barrier_wait(&b, NULL);
	x_assert(rc[me] == 0 || rc[me] == VEZ_EBROKEN);
	if (rc[me] != 0)
		rc[me] = vez_barrier_wait(&b, NULL);
	x_assert(rc[me] == 0);
}

static void pass_or_broken_0(void)
{
	pass_or_broken(0);
}

static void pass_or_broken_1(void)
{
	pass_or_broken(1);
}

static void reset_then_pass(void)
{
	x_await(vez_barrier_waiters(&b) > 0);
	x_assert(vez_barrier_reset(&b) == 0);
	x_assert(vez_barrier_wait(&b, NULL) == 0);
}

X_SCENARIO(barrier_followers_reset, .setup = make_3, .thread = { pass_or_broken_0, pass_or_broken_1, reset_then_pass },
	   .check = left_whole, .preemptions = 2);

/* ---- the action sees all, and all see it ---- */

static int act(void *arg)
{
	(void)arg;
	x_assert(!acting);
	acting = 1;
	x_assert(vez_barrier_wait(&b, NULL) == EDEADLK);
	acted++;
	acting = 0;
	return 0;
}

static int act_on_both(void *arg)
{
	x_assert(written[0] == 1 && written[1] == 1);
	return act(arg);
}

static void make_2_acting(void)
{
	make(2, act_on_both);
}

static void pass_acted(int me)
{
	written[me] = 1;
	x_assert(vez_barrier_wait(&b, NULL) == 0);
	x_assert(acted == 1);
}

static void pass_acted_0(void)
{
	pass_acted(0);
}

static void pass_acted_1(void)
{
	pass_acted(1);
}

X_SCENARIO(barrier_action, .setup = make_2_acting, .thread = { pass_acted_0, pass_acted_1 }, .check = left_whole,
	   .stale = 1);

/* Rounds of one party: each waits for its turn to act. */
static void make_1_acting(void)
{
	make(1, act);
}

static void pass(void)
{
	x_assert(vez_barrier_wait(&b, NULL) == 0);
}

static void acted_two(void)
{
	x_assert(acted == 2);
	left(false);
}

static void acted_three(void)
{
	x_assert(acted == 3);
	left(false);
}

X_SCENARIO(barrier_turns_2, .setup = make_1_acting, .thread = { pass, pass }, .check = acted_two);
X_SCENARIO(barrier_turns_3, .setup = make_1_acting, .thread = { pass, pass, pass }, .check = acted_three);

/* Two rounds of two parties by four threads: the second may be complete while the action of the first runs. */
static void make_2_acting_often(void)
{
	make(2, act);
}

X_SCENARIO(barrier_two_rounds_at_once, .setup = make_2_acting_often, .thread = { pass, pass, pass, pass },
	   .check = acted_two, .preemptions = 1, .random = 20000);

/* Neither deadline nor token touches a decided round; before, they break it. */
static int act_simply(void *arg)
{
	(void)arg;
	acted++;
	return 0;
}

static void make_2_acting_simply(void)
{
	make(2, act_simply);
}

static void pass_until_0(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == VEZ_EBROKEN);
	if (rc[0] == 0)
		x_assert(acted == 1);
}

static void pass_with_token_0(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == VEZ_EBROKEN);
	if (rc[0] == 0)
		x_assert(acted == 1);
}

static void pass_until_with_token_0(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT || rc[0] == VEZ_EBROKEN);
	if (rc[0] == 0)
		x_assert(acted == 1);
}

static void pass_1(void)
{
	rc[1] = vez_barrier_wait(&b, NULL);
	x_assert(rc[1] == 0 || rc[1] == VEZ_EBROKEN);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

/* Both or none; one action, or none; broken, or not. */
static void left_both_or_none(void)
{
	bool passed = rc[0] == 0;
	x_assert(passed == (rc[1] == 0));
	x_assert(acted == passed);
	left(!passed);
}

X_SCENARIO(barrier_deadline, .setup = make_2_acting_simply, .thread = { pass_until_0, pass_1 },
	   .check = left_both_or_none);
X_SCENARIO(barrier_token, .setup = make_2_acting_simply, .thread = { pass_with_token_0, pass_1, fire },
	   .check = left_both_or_none);
X_SCENARIO(barrier_deadline_and_token, .setup = make_2_acting_simply,
	   .thread = { pass_until_with_token_0, pass_1, fire }, .check = left_both_or_none);

/* Without an action the round is over at once. */
static void pass_until_plain(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT || rc[0] == VEZ_EBROKEN);
}

static void left_both_or_none_plain(void)
{
	bool passed = rc[0] == 0;
	x_assert(passed == (rc[1] == 0));
	left(!passed);
}

X_SCENARIO(barrier_plain_deadline, .setup = make_2, .thread = { pass_until_plain, pass_1 },
	   .check = left_both_or_none_plain);
X_SCENARIO(barrier_plain_token, .setup = make_2, .thread = { pass_until_plain, pass_1, fire },
	   .check = left_both_or_none_plain);

/* Two tokens, one break: one has its own cause, the others are told that it is broken. */
static void pass_until_1(void)
{
	rc[1] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[1] == ETIMEDOUT || rc[1] == VEZ_EBROKEN);
}

static void pass_until_alone_0(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[0] == ETIMEDOUT || rc[0] == VEZ_EBROKEN);
}

static void left_broken_once(void)
{
	x_assert((rc[0] == ETIMEDOUT) + (rc[1] == ETIMEDOUT) == 1);
	left(true);
}

X_SCENARIO(barrier_broken_once, .setup = make_3, .thread = { pass_until_alone_0, pass_until_1 },
	   .check = left_broken_once, .preemptions = 2);

/* ---- reset ---- */

static void reset(void)
{
	x_assert(vez_barrier_reset(&b) == 0);
}

static void pass_or_reset_0(void)
{
	rc[0] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == VEZ_EBROKEN);
	if (rc[0] != 0)
		reset();
}

static void pass_or_reset_1(void)
{
	rc[1] = vez_barrier_wait_until(&b, NULL, x_soon(), NULL);
	x_assert(rc[1] == 0 || rc[1] == ETIMEDOUT || rc[1] == VEZ_EBROKEN);
	if (rc[1] != 0)
		reset();
}

static void left_both_or_neither(void)
{
	x_assert((rc[0] == 0) == (rc[1] == 0));
	left(vez_barrier_broken(&b));
}

X_SCENARIO(barrier_reset, .setup = make_2_acting_simply, .thread = { pass_or_reset_0, pass_or_reset_1, reset },
	   .check = left_both_or_neither);

/* ---- an action that fails ---- */

static int fail(void *arg)
{
	(void)arg;
	acted++;
	return 42;
}

static void make_2_failing(void)
{
	make(2, fail);
}

static void pass_failing_0(void)
{
	rc[0] = vez_barrier_wait(&b, NULL);
}

static void pass_failing_1(void)
{
	rc[1] = vez_barrier_wait(&b, NULL);
}

static void left_failed(void)
{
	x_assert(acted == 1);
	x_assert((rc[0] == 42 && rc[1] == VEZ_EBROKEN) || (rc[1] == 42 && rc[0] == VEZ_EBROKEN));
	left(true);
}

X_SCENARIO(barrier_action_fails, .setup = make_2_failing, .thread = { pass_failing_0, pass_failing_1 },
	   .check = left_failed);

static void make_1_failing(void)
{
	make(1, fail);
}

/* The second may find the action of the first running, and waits for a turn that never comes. */
static void left_failed_alone(void)
{
	x_assert(acted == 1);
	x_assert((rc[0] == 42) != (rc[1] == 42));
	left(true);
}

X_SCENARIO(barrier_turn_never_comes, .setup = make_1_failing, .thread = { pass_failing_0, pass_failing_1 },
	   .check = left_failed_alone);

/* ---- the first to return destroys it ---- */

static void first_destroys(void)
{
	if (vez__fetch_add(&returned, 1, acq_rel) == 0) {
		x_assert(vez_barrier_destroy(&b) == 0);
		x_dead(&b, sizeof b);
	}
}

static void pass_and_destroy(void)
{
	pass();
	first_destroys();
}

/* Who times out or is cancelled returns, too; but the other may not have come yet. */
static void pass_until_and_destroy(void)
{
	if (vez_barrier_wait_until(&b, NULL, x_soon(), &token) == 0)
		first_destroys();
}

static void pass_1_and_destroy(void)
{
	if (vez_barrier_wait(&b, NULL) == 0)
		first_destroys();
}

X_SCENARIO(barrier_destroy_2, .setup = make_2, .thread = { pass_and_destroy, pass_and_destroy }, .stale = 1);
X_SCENARIO(barrier_destroy_3, .setup = make_3, .thread = { pass_and_destroy, pass_and_destroy, pass_and_destroy });
X_SCENARIO(barrier_destroy_acting, .setup = make_2_acting_simply, .thread = { pass_and_destroy, pass_and_destroy });
X_SCENARIO(barrier_destroy_deadline, .setup = make_2, .thread = { pass_until_and_destroy, pass_1_and_destroy });
X_SCENARIO(barrier_destroy_acting_deadline, .setup = make_2_acting_simply,
	   .thread = { pass_until_and_destroy, pass_1_and_destroy });
X_SCENARIO(barrier_destroy_token, .setup = make_2_acting_simply,
	   .thread = { pass_until_and_destroy, pass_1_and_destroy, fire });
