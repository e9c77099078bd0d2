/* SPDX-License-Identifier: MIT */
/* Scenarios of groups: what a group does to the plain variables of another is a race if both are inside. */
#include "vez/group.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_group_t g;
static vez_cancel_t token;
static int plain;    /* by group 1 written, by group 2 read */
static int inside;   /* members of group 2 */
static int rc[X_THREADS];

static void make(void)
{
	x_alive(&g, sizeof g);
	X_NAME(g);
	X_NAME(token);
	x_assert(vez_group_init(&g, 0) == 0);
	vez_cancel_init(&token);
	plain = 0;
	inside = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

/* Group 1 is inside. */
static void make_held(void)
{
	make();
	x_assert(vez_group_enter(&g, 1) == 0);
}

static void left(void)
{
	x_assert(vez_group_waiters(&g) == 0);
	x_assert(vez_group_leave(&g) == EPERM);
	x_assert(vez_group_destroy(&g) == 0);
}

static void leave(void)
{
	x_assert(vez_group_leave(&g) == 0);
}

static void write_alone(void)
{
	x_assert(vez_group_enter(&g, 1) == 0);
	plain++;
	leave();
}

static void write_3(void)
{
	x_assert(vez_group_enter(&g, 3) == 0);
	plain++;
	leave();
}

static void read_together(void)
{
	x_assert(vez_group_enter(&g, 2) == 0);
	x_assert(plain >= 0);
	leave();
}

X_SCENARIO(group_two_groups, .setup = make, .thread = { write_alone, read_together }, .check = left, .stale = 2);
X_SCENARIO(group_one_and_two, .setup = make, .thread = { write_alone, read_together, read_together }, .check = left);
X_SCENARIO(group_three_groups, .setup = make, .thread = { write_alone, read_together, write_3 }, .check = left);

static void read_twice(void)
{
	read_together();
	read_together();
}

static void write_twice(void)
{
	write_alone();
	write_alone();
}

X_SCENARIO(group_again, .setup = make, .thread = { write_twice, read_twice }, .check = left, .preemptions = 2,
	   .stale = 1);

/* All members that wait enter by one leave, and meet inside. */
static void meet_inside(void)
{
	x_assert(vez_group_enter(&g, 2) == 0);
	vez__fetch_add(&inside, 1, relaxed);
	x_await(vez__load(&inside, relaxed) == 2);
	leave();
}

static void leave_when_two_wait(void)
{
	x_await(vez_group_waiters(&g) == 2);
	leave();
}

X_SCENARIO(group_together, .setup = make_held, .thread = { meet_inside, meet_inside, leave_when_two_wait },
	   .check = left);
X_SCENARIO(group_together_anyhow, .setup = make_held, .thread = { meet_inside, meet_inside, leave }, .check = left);

/* The same with another group queued between them. */
static void meet_inside_after_3(void)
{
	x_await(vez_group_waiters(&g) == 2);
	meet_inside();
}

static void pass_3_after_2(void)
{
	x_await(vez_group_waiters(&g) == 1);
	write_3();
}

static void leave_when_three_wait(void)
{
	x_await(vez_group_waiters(&g) == 3);
	leave();
}

X_SCENARIO(group_together_past_another, .setup = make_held,
	   .thread = { meet_inside, pass_3_after_2, meet_inside_after_3, leave_when_three_wait }, .check = left,
	   .preemptions = 1, .random = 5000);

/* ---- fair ---- */

/* While group 2 waits, a newcomer of group 1 does not enter. */
static void newcomer_then_leave(void)
{
	x_await(vez_group_waiters(&g) == 1);
	x_assert(vez_group_try_enter(&g, 1) == EBUSY);
	x_assert(vez_group_enter_until(&g, 1, VEZ_NOW, NULL) == ETIMEDOUT);
	leave();
}

X_SCENARIO(group_newcomer, .setup = make_held, .thread = { read_together, newcomer_then_leave }, .check = left);

/* Once the leave has returned, group 2 is in: its newcomer enters, one of group 1 does not. */
static void enter_and_stay(void)
{
	x_assert(vez_group_enter(&g, 2) == 0);
}

static void leave_and_try(void)
{
	x_await(vez_group_waiters(&g) == 1);
	leave();
	x_assert(vez_group_try_enter(&g, 1) == EBUSY);
	x_assert(vez_group_try_enter(&g, 2) == 0);
	leave();
}

static void disturb(void)
{
	x_assert(vez_group_enter_until(&g, 3, VEZ_NOW, NULL) == ETIMEDOUT);
}

static void left_by_one(void)
{
	x_assert(vez_group_waiters(&g) == 0);
	leave();
	left();
}

X_SCENARIO(group_decided, .setup = make_held, .thread = { enter_and_stay, leave_and_try, disturb },
	   .check = left_by_one);

/* A thread that gives up while the leave comes: the monitor is busy, and the leave is decided all the same. */
static void give_up_3(void)
{
	rc[2] = vez_group_enter_until(&g, 3, x_soon(), NULL);
	x_assert(rc[2] == 0 || rc[2] == ETIMEDOUT);
	if (rc[2] == 0)
		leave();
}

static void leave_for_the_other(void)
{
	x_await(vez_group_waiters(&g) >= 1);
	leave();
}

static void enter_2_and_leave(void)
{
	x_assert(vez_group_enter(&g, 2) == 0);
	leave();
}

X_SCENARIO(group_busy_leave, .setup = make_held, .thread = { enter_2_and_leave, give_up_3, leave_for_the_other },
	   .check = left);

/* ---- one gives up ---- */

/* Group 1 runs, group 2 waits and gives up: the newcomer of group 1 behind it enters, though nobody leaves. */
static void wait_and_give_up(void)
{
	rc[0] = vez_group_enter_until(&g, 2, x_soon(), NULL);
	x_assert(rc[0] == ETIMEDOUT);
}

static void follow(void)
{
	x_assert(vez_group_enter(&g, 1) == 0);
	leave();
}

static void left_held(void)
{
	leave();
	left();
}

X_SCENARIO(group_give_up, .setup = make_held, .thread = { wait_and_give_up, follow }, .check = left_held);
X_SCENARIO(group_give_up_two, .setup = make_held, .thread = { wait_and_give_up, follow, follow }, .check = left_held);

static void wait_cancelled(void)
{
	rc[0] = vez_group_enter_until(&g, 2, x_soon(), &token);
	x_assert(rc[0] == ETIMEDOUT || rc[0] == ECANCELED);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

X_SCENARIO(group_token, .setup = make_held, .thread = { wait_cancelled, follow, fire }, .check = left_held);

/* The leave, the deadline and the token at once: inside or not, and conserved. */
static void wait_maybe(void)
{
	rc[0] = vez_group_enter_until(&g, 2, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == ECANCELED);
	if (rc[0] == 0)
		leave();
}

X_SCENARIO(group_leave_or_give_up, .setup = make_held, .thread = { wait_maybe, leave }, .check = left);
X_SCENARIO(group_leave_or_token, .setup = make_held, .thread = { wait_maybe, leave, fire }, .check = left);

static void wait_maybe_3(void)
{
	rc[1] = vez_group_enter_until(&g, 3, x_soon(), NULL);
	x_assert(rc[1] == 0 || rc[1] == ETIMEDOUT);
	if (rc[1] == 0)
		leave();
}

X_SCENARIO(group_two_give_up, .setup = make_held, .thread = { wait_maybe, wait_maybe_3, leave }, .check = left);

/* ---- the object's end ---- */

static void enter_and_destroy(void)
{
	x_assert(vez_group_enter(&g, 2) == 0);
	leave();
	x_assert(vez_group_destroy(&g) == 0);
	x_dead(&g, sizeof g);
}

static void enter_and_unmap(void)
{
	x_assert(vez_group_enter(&g, 2) == 0);
	leave();
	x_dead(&g, sizeof g);
}

static void try_and_destroy(void)
{
	x_await(vez_group_try_enter(&g, 2) == 0);
	leave();
	x_assert(vez_group_destroy(&g) == 0);
	x_dead(&g, sizeof g);
}

static void give_up_and_destroy(void)
{
	if (vez_group_enter_until(&g, 2, x_soon(), NULL) != 0)
		x_assert(vez_group_enter(&g, 2) == 0);
	leave();
	x_assert(vez_group_destroy(&g) == 0);
	x_dead(&g, sizeof g);
}

X_SCENARIO(group_destroy, .setup = make_held, .thread = { enter_and_destroy, leave });
X_SCENARIO(group_unmap, .setup = make_held, .thread = { enter_and_unmap, leave }, .stale = 1);
X_SCENARIO(group_destroy_after_try, .setup = make_held, .thread = { try_and_destroy, leave });
X_SCENARIO(group_destroy_after_give_up, .setup = make_held, .thread = { give_up_and_destroy, leave });

/* The one that was held back may unmap it once the other has given up. */
static void follow_and_unmap(void)
{
	x_assert(vez_group_enter(&g, 1) == 0);
	leave();
	leave();
	x_dead(&g, sizeof g);
}

static void give_up_first(void)
{
	x_assert(vez_group_enter_until(&g, 2, x_soon(), NULL) == ETIMEDOUT);
	vez__store(&inside, 1, release);
}

static void follow_when_given_up(void)
{
	x_await(vez__load(&inside, acquire) == 1 || vez_group_waiters(&g) == 1);
	follow_and_unmap();
}

X_SCENARIO(group_unmap_after_give_up, .setup = make_held, .thread = { give_up_first, follow_when_given_up });
