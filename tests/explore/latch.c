/* SPDX-License-Identifier: MIT */
/* Scenarios of the latch. */
#include "vez/latch.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_latch_t l;
static vez_cancel_t token;
static int told[2];
static int rc[X_THREADS];

static void make(uint32_t count)
{
	x_alive(&l, sizeof l);
	X_NAME(l);
	x_alive(&token, sizeof token);
	X_NAME(token);
	vez_cancel_init(&token);
	x_assert(vez_latch_init(&l, count) == 0);
	told[0] = told[1] = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_1(void)
{
	make(1);
}

static void make_2(void)
{
	make(2);
}

static void left_open(void)
{
	x_assert(vez_latch_count(&l) == 0);
	x_assert(vez_latch_waiters(&l) == 0);
	x_assert(vez_latch_destroy(&l) == 0);
}

/* ---- what comes before each count_down is seen after the wait ---- */

static void wait_for_both(void)
{
	x_assert(vez_latch_wait(&l) == 0);
	x_assert(told[0] == 1 && told[1] == 1);
}

static void tell_0(void)
{
	told[0] = 1;
	x_assert(vez_latch_count_down(&l, 1) == 0);
}

static void tell_1(void)
{
	told[1] = 1;
	x_assert(vez_latch_count_down(&l, 1) == 0);
}

static void look_for_both(void)
{
	if (vez_latch_count(&l) == 0)
		x_assert(told[0] == 1 && told[1] == 1);
	if (vez_latch_wait_until(&l, VEZ_NOW, NULL) == 0)
		x_assert(told[0] == 1 && told[1] == 1);
}

static void make_spinning(void)
{
	x_spin(2);
	make(2);
}

X_SCENARIO(latch_two_count_down, .setup = make_2, .thread = { wait_for_both, tell_0, tell_1 }, .check = left_open,
	   .stale = 1);
X_SCENARIO(latch_two_wait, .setup = make_2, .thread = { wait_for_both, wait_for_both, tell_0, tell_1 },
	   .check = left_open);
X_SCENARIO(latch_spinning, .setup = make_spinning, .thread = { wait_for_both, tell_0, tell_1 }, .check = left_open,
	   .cpus = 2);
X_SCENARIO(latch_look, .setup = make_2, .thread = { look_for_both, tell_0, tell_1 }, .check = left_open, .stale = 1);

static void count_down(void)
{
	x_assert(vez_latch_count_down(&l, 5) == 0);
}

static void wait_once(void)
{
	x_assert(vez_latch_wait(&l) == 0);
}

X_SCENARIO(latch_stops_at_0, .setup = make_2, .thread = { wait_once, count_down, count_down }, .check = left_open);

/* ---- give-up meets opening ---- */

static void wait_until_0(void)
{
	rc[0] = vez_latch_wait_until(&l, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void wait_until_1(void)
{
	rc[1] = vez_latch_wait_until(&l, x_soon(), NULL);
	x_assert(rc[1] == 0 || rc[1] == ETIMEDOUT);
}

static void wait_with_token(void)
{
	rc[0] = vez_latch_wait_until(&l, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

X_SCENARIO(latch_deadline, .setup = make_1, .thread = { wait_until_0, count_down }, .check = left_open, .stale = 1);
X_SCENARIO(latch_deadlines, .setup = make_1, .thread = { wait_until_0, wait_until_1, count_down }, .check = left_open);
X_SCENARIO(latch_deadline_two, .setup = make_1, .thread = { wait_until_0, wait_once, count_down }, .check = left_open);
X_SCENARIO(latch_token, .setup = make_1, .thread = { wait_with_token, fire, count_down }, .check = left_open);
X_SCENARIO(latch_token_two, .setup = make_1, .thread = { wait_with_token, wait_once, fire, count_down },
	   .check = left_open);

/* ---- destroyed as soon as that is allowed ---- */

static void wait_and_destroy(void)
{
	x_assert(vez_latch_wait(&l) == 0);
	x_assert(vez_latch_destroy(&l) == 0);
	x_dead(&l, sizeof l);
}

static void wait_and_unmap(void)
{
	x_assert(vez_latch_wait(&l) == 0);
	x_dead(&l, sizeof l);
}

static void count_one(void)
{
	x_assert(vez_latch_count_down(&l, 1) == 0);
}

X_SCENARIO(latch_destroy, .setup = make_1, .thread = { wait_and_destroy, count_one }, .stale = 1);
X_SCENARIO(latch_unmap, .setup = make_1, .thread = { wait_and_unmap, count_one }, .stale = 2);
X_SCENARIO(latch_unmap_two, .setup = make_2, .thread = { wait_and_unmap, count_one, count_one });

/* A newcomer passes while the one that opened it has yet to leave, and unmaps it. */
static void pass_and_unmap(void)
{
	x_await(vez_latch_count(&l) == 0);
	wait_and_unmap();
}

static void count_when_one_waits(void)
{
	x_await(vez_latch_waiters(&l) == 1);
	count_one();
}

X_SCENARIO(latch_unmap_third, .setup = make_1, .thread = { wait_once, pass_and_unmap, count_when_one_waits });

static uint32_t returned;

static void make_two_destroy(void)
{
	returned = 0;
	make_1();
}

static void first_destroys(void)
{
	if (vez__fetch_add(&returned, 1, acq_rel) == 0) {
		x_assert(vez_latch_destroy(&l) == 0);
		x_dead(&l, sizeof l);
	}
}

static void wait_and_destroy_first(void)
{
	wait_once();
	first_destroys();
}

static void wait_until_and_destroy_first(void)
{
	if (vez_latch_wait_until(&l, x_soon(), NULL) == 0)
		first_destroys();
	else
		vez__store(&rc[1], 1, release);
}

static void count_when_two_wait(void)
{
	x_await(vez_latch_waiters(&l) == 2 || vez__load(&rc[1], acquire) == 1);
	count_one();
}

X_SCENARIO(latch_two_destroy, .setup = make_two_destroy,
	   .thread = { wait_and_destroy_first, wait_until_and_destroy_first, count_when_two_wait });
