/* SPDX-License-Identifier: MIT */
/* Scenarios of the scheduler: what the one inside does is a plain variable. */
#include "vez/sched.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/futex/self.h"

static vez_sched_t s;
static vez_cancel_t token;
static int entered;          /* how often */
static int order[X_THREADS]; /* with what */
static int rc[X_THREADS];
static vez_deadline_t gap_end;
static int gone;             /* who waited in the gap has entered */

/* The smaller comes first. */
static bool before(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b;
}

static void make_ordered(bool (*by)(const void *, const void *))
{
	x_alive(&s, sizeof s);
	X_NAME(s);
	X_NAME(token);
	x_assert(vez_sched_init(&s, by, 0) == 0);
	vez_cancel_init(&token);
	entered = 0;
	gone = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make(void)
{
	make_ordered(before);
}

static void make_fifo(void)
{
	make_ordered(NULL);
}

static void left(void)
{
	x_assert(vez_sched_waiters(&s) == 0);
	x_assert(vez_sched_leave(&s) == EPERM);
	x_assert(vez_sched_destroy(&s) == 0);
}

static void note(int what)
{
	order[entered++] = what;
}

static void leave(void)
{
	x_assert(vez_sched_leave(&s) == 0);
}

static void pass(int what)
{
	x_assert(vez_sched_enter(&s, &what) == 0);
	note(what);
	leave();
}

static void pass_1(void)
{
	pass(1);
}

static void pass_2(void)
{
	pass(2);
}

static void pass_3(void)
{
	pass(3);
}

static void two_entered(void)
{
	x_assert(entered == 2);
	left();
}

static void three_entered(void)
{
	x_assert(entered == 3);
	left();
}

X_SCENARIO(sched_two, .setup = make_fifo, .thread = { pass_1, pass_2 }, .check = two_entered, .stale = 2);
X_SCENARIO(sched_three, .setup = make_fifo, .thread = { pass_1, pass_2, pass_3 }, .check = three_entered);
X_SCENARIO(sched_three_ordered, .setup = make, .thread = { pass_1, pass_2, pass_3 }, .check = three_entered);

/* ---- order ---- */

static void pass_2_after(void)
{
	x_await(vez_sched_waiters(&s) == 1);
	pass(2);
}

static void pass_1_after(void)
{
	x_await(vez_sched_waiters(&s) == 1);
	pass(1);
}

static void by_number(void)
{
	x_assert(entered == 3);
	x_assert(order[1] == 1 && order[2] == 2);
	left();
}

/* The thread that holds it does so from the start. */
static void hold(void)
{
	int what = 0;
	x_assert(vez_sched_enter(&s, &what) == 0);
	vez__store(&s.owner_, UINT64_MAX, relaxed);
	note(0);
}

static void make_held(void)
{
	make();
	hold();
}

static void leave_for_another(void)
{
	vez__store(&s.owner_, vez__self(), relaxed);
	leave();
}

static void leave_when_two_wait(void)
{
	x_await(vez_sched_waiters(&s) == 2);
	leave_for_another();
}

X_SCENARIO(sched_order, .setup = make_held, .thread = { pass_2, pass_1_after, leave_when_two_wait },
	   .check = by_number);
X_SCENARIO(sched_order_other, .setup = make_held, .thread = { pass_1, pass_2_after, leave_when_two_wait },
	   .check = by_number);

/* What is decided: when the leave has returned, the waiter is in. */
static void enter_1_and_stay(void)
{
	int what = 1;
	x_assert(vez_sched_enter(&s, &what) == 0);
}

static void leave_and_find_taken(void)
{
	int what = -1;
	x_await(vez_sched_waiters(&s) == 1);
	leave_for_another();
	x_assert(vez_sched_try_enter(&s, &what) == EBUSY);
	x_assert(vez_sched_enter_until(&s, &what, VEZ_NOW, NULL) == ETIMEDOUT);
}

static void disturb(void)
{
	int what = 5;
	x_assert(vez_sched_enter_until(&s, &what, VEZ_NOW, NULL) == ETIMEDOUT);
}

static void left_by_one(void)
{
	leave_for_another();
	left();
}

X_SCENARIO(sched_decided, .setup = make_held, .thread = { enter_1_and_stay, leave_and_find_taken, disturb },
	   .check = left_by_one);

/* ---- one gives up ---- */

static void pass_until_0(void)
{
	int what = 1;
	rc[0] = vez_sched_enter_until(&s, &what, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == ECANCELED);
	if (rc[0] == 0) {
		note(1);
		leave();
	}
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

static void conserved(void)
{
	x_assert(entered == 1 + (rc[0] == 0));
	left();
}

static void conserved_two(void)
{
	x_assert(entered == 2 + (rc[0] == 0));
	left();
}

X_SCENARIO(sched_deadline, .setup = make_held, .thread = { pass_until_0, leave_for_another }, .check = conserved,
	   .stale = 1);
X_SCENARIO(sched_token, .setup = make_held, .thread = { pass_until_0, leave_for_another, fire }, .check = conserved);
X_SCENARIO(sched_deadline_two, .setup = make_held, .thread = { pass_until_0, pass_2, leave_for_another },
	   .check = conserved_two);

/* ---- the gap ---- */

/* Somebody has left, and the next may enter at some moment. */
static void make_in_gap(void)
{
	int what = 0;
	make();
	x_assert(vez_sched_min_gap(&s, 1) == 0);
	x_assert(vez_sched_enter(&s, &what) == 0);
	note(0);
	leave();
	gap_end = x_soon();
	s.gap_ = 1;
	s.left_at_ = gap_end - 1;
}

static void pass_gap(int what)
{
	x_assert(vez_sched_enter(&s, &what) == 0);
	x_assert(vez_deadline_remaining_ns(gap_end) == 0);
	note(what);
	leave();
}

static void pass_gap_1(void)
{
	pass_gap(1);
}

static void pass_gap_2(void)
{
	pass_gap(2);
}

X_SCENARIO(sched_gap, .setup = make_in_gap, .thread = { pass_gap_1 }, .check = two_entered);
X_SCENARIO(sched_gap_two, .setup = make_in_gap, .thread = { pass_gap_1, pass_gap_2 }, .check = three_entered,
	   .preemptions = 2);

/* The keeper may give up: another keeps the time. */
X_SCENARIO(sched_gap_deadline, .setup = make_in_gap, .thread = { pass_until_0, pass_gap_2 }, .check = conserved_two,
	   .preemptions = 2);
X_SCENARIO(sched_gap_token, .setup = make_in_gap, .thread = { pass_until_0, pass_gap_2, fire }, .check = conserved_two,
	   .preemptions = 1, .random = 20000);

/* Whoever finds it left knows when that was: nobody enters in the gap that begins then. */
static void make_after_gap(void)
{
	make_in_gap();
	s.gap_ = INT64_MAX / 2;
	s.left_at_ = -s.gap_;
}

static void pass_and_tell(void)
{
	int what = 1;
	x_assert(vez_sched_enter(&s, &what) == 0);
	note(1);
	vez__store(&gone, 1, relaxed);
	leave();
}

static void try_when_told(void)
{
	int what = 2;
	x_await(vez__load(&gone, relaxed) == 1);
	x_assert(vez_sched_enter_until(&s, &what, VEZ_NOW, NULL) == ETIMEDOUT);
	x_assert(vez_sched_try_enter(&s, &what) == EBUSY);
}

X_SCENARIO(sched_gap_after_leave, .setup = make_after_gap, .thread = { pass_and_tell, try_when_told },
	   .check = two_entered, .stale = 1);

/* A gap without end, which is taken back. */
static void make_in_long_gap(void)
{
	make_in_gap();
	s.gap_ = INT64_MAX;
	gap_end = 0;
}

static void end_gap(void)
{
	x_assert(vez_sched_min_gap(&s, 0) == 0);
}

X_SCENARIO(sched_gap_ends, .setup = make_in_long_gap, .thread = { pass_1, end_gap }, .check = two_entered, .stale = 1);
X_SCENARIO(sched_gap_ends_two, .setup = make_in_long_gap, .thread = { pass_1, pass_2, end_gap },
	   .check = three_entered);
X_SCENARIO(sched_gap_ends_token, .setup = make_in_long_gap, .thread = { pass_until_0, end_gap, fire },
	   .check = conserved);

/* A gap that is made shorter: the keeper has another time to keep. */
static void shorten_gap(void)
{
	x_assert(vez_sched_min_gap(&s, 1) == 0);
}

X_SCENARIO(sched_gap_shortened, .setup = make_in_long_gap, .thread = { pass_1, shorten_gap }, .check = two_entered,
	   .preemptions = 2, .stale = 1);

/* Who waited in the gap comes before one who comes after it. */
static void come_after_2(void)
{
	int what = 1;
	x_await(vez_sched_waiters(&s) == 1 || vez__load(&gone, relaxed) == 1);
	rc[1] = vez_sched_enter_until(&s, &what, VEZ_NOW, NULL);
	x_assert(rc[1] == ETIMEDOUT || rc[1] == 0);
	if (rc[1] == 0) {
		x_assert(entered == 2);
		leave();
	}
}

static void wait_2(void)
{
	int what = 2;
	x_assert(vez_sched_enter(&s, &what) == 0);
	note(2);
	vez__store(&gone, 1, relaxed);
	leave();
}

X_SCENARIO(sched_gap_newcomer, .setup = make_in_gap, .thread = { wait_2, come_after_2 }, .check = two_entered,
	   .preemptions = 2);

/* A gap that is set while somebody is inside or has just left: the leave counts. */
static void begin_gap(void)
{
	x_assert(vez_sched_min_gap(&s, INT64_MAX) == 0);
	end_gap();
}

X_SCENARIO(sched_gap_begins, .setup = make_held, .thread = { pass_1, leave_for_another, begin_gap },
	   .check = two_entered);

/* ---- the object's end ---- */

static void nothing(void)
{
}

static void pass_and_destroy(void)
{
	pass(1);
	x_assert(vez_sched_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

static void pass_and_unmap(void)
{
	pass(1);
	x_dead(&s, sizeof s);
}

X_SCENARIO(sched_destroy, .setup = make_held, .thread = { pass_and_destroy, leave_for_another }, .check = nothing);
X_SCENARIO(sched_unmap, .setup = make_held, .thread = { pass_and_unmap, leave_for_another }, .check = nothing,
	   .stale = 1);

/* The one who ended the gap lets it in. */
X_SCENARIO(sched_unmap_after_gap, .setup = make_in_long_gap, .thread = { pass_and_unmap, end_gap }, .check = nothing);

static void try_and_destroy(void)
{
	int what = 1;
	x_await(vez_sched_try_enter(&s, &what) == 0);
	leave();
	x_assert(vez_sched_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

X_SCENARIO(sched_destroy_after_try, .setup = make_held, .thread = { try_and_destroy, leave_for_another },
	   .check = nothing);

static void give_up_and_destroy(void)
{
	int what = 1;
	if (vez_sched_enter_until(&s, &what, x_soon(), NULL) != 0)
		x_assert(vez_sched_enter(&s, &what) == 0);
	leave();
	x_assert(vez_sched_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

X_SCENARIO(sched_destroy_after_give_up, .setup = make_held, .thread = { give_up_and_destroy, leave_for_another },
	   .check = nothing);
X_SCENARIO(sched_destroy_after_gap, .setup = make_in_long_gap, .thread = { give_up_and_destroy, end_gap },
	   .check = nothing);
