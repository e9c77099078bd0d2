/* SPDX-License-Identifier: MIT */
/* Scenarios of the event. */
#include "vez/event.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_event_t e;
static vez_cancel_t token;
static int told;
static int rc[X_THREADS];

static void make(unsigned flags)
{
	x_alive(&e, sizeof e);
	X_NAME(e);
	x_alive(&token, sizeof token);
	X_NAME(token);
	vez_cancel_init(&token);
	x_assert(vez_event_init(&e, flags) == 0);
	told = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_manual(void)
{
	make(0);
}

static void make_auto(void)
{
	make(VEZ_AUTO_RESET);
}

static void left(bool set)
{
	x_assert(vez_event_waiters(&e) == 0);
	x_assert(vez_event_is_set(&e) == set);
	x_assert(vez_event_destroy(&e) == 0);
}

static void left_set(void)
{
	left(true);
}

static void left_reset(void)
{
	left(false);
}

/* ---- what comes before the set is seen after the wait ---- */

static void wait_told(void)
{
	x_assert(vez_event_wait(&e) == 0);
	x_assert(told == 1);
}

static void tell(void)
{
	told = 1;
	x_assert(vez_event_set(&e) == 0);
}

static void make_spinning(void)
{
	x_spin(2);
	make(VEZ_AUTO_RESET);
}

X_SCENARIO(event_manual, .setup = make_manual, .thread = { wait_told, tell }, .check = left_set, .stale = 2);
X_SCENARIO(event_manual_two, .setup = make_manual, .thread = { wait_told, wait_told, tell }, .check = left_set);
X_SCENARIO(event_auto, .setup = make_auto, .thread = { wait_told, tell }, .check = left_reset, .stale = 2);
X_SCENARIO(event_auto_spinning, .setup = make_spinning, .thread = { wait_told, tell }, .check = left_reset, .cpus = 2);

static void wait_expired(void)
{
	if (vez_event_wait_until(&e, VEZ_NOW, NULL) == 0)
		x_assert(told == 1);
}

static void look_told(void)
{
	if (vez_event_is_set(&e))
		x_assert(told == 1);
}

/* A reset comes after the set, or leaves it: who resets and then finds nothing to do may wait. */
static void reset_and_wait(void)
{
	x_assert(vez_event_reset(&e) == 0);
	if (vez__load(&rc[0], relaxed) != 1)
		x_assert(vez_event_wait(&e) == 0);
	x_assert(vez__load(&rc[0], relaxed) == 1);
}

static void do_and_set(void)
{
	vez__store(&rc[0], 1, relaxed);
	x_assert(vez_event_set(&e) == 0);
}

static void left_anyhow(void)
{
	left(vez_event_is_set(&e));
}

X_SCENARIO(event_expired, .setup = make_manual, .thread = { wait_expired, tell }, .check = left_set);
X_SCENARIO(event_is_set, .setup = make_manual, .thread = { look_told, tell }, .check = left_set);
X_SCENARIO(event_reset_then_wait, .setup = make_manual, .thread = { reset_and_wait, do_and_set }, .check = left_anyhow);
X_SCENARIO(event_reset_then_wait_auto, .setup = make_auto, .thread = { reset_and_wait, do_and_set },
	   .check = left_anyhow);

/* ---- as many go as were set ---- */

static void wait_once(void)
{
	x_assert(vez_event_wait(&e) == 0);
}

static void set_one(void)
{
	x_assert(vez_event_set(&e) == 0);
}

/* Both are queued: neither set is lost, whoever is inside. */
static void set_one_of_two(void)
{
	x_await(vez_event_waiters(&e) == 2 || vez__load(&rc[0], relaxed) == 1);
	vez__store(&rc[0], 1, relaxed);
	set_one();
}

X_SCENARIO(event_auto_two_sets, .setup = make_auto, .thread = { wait_once, wait_once, set_one_of_two, set_one_of_two },
	   .check = left_reset, .preemptions = 1, .random = 20000);

static void set_twice_when_two_wait(void)
{
	x_await(vez_event_waiters(&e) == 2);
	set_one();
	set_one();
	x_assert(vez_event_waiters(&e) == 0);
}

X_SCENARIO(event_auto_set_twice, .setup = make_auto, .thread = { wait_once, wait_once, set_twice_when_two_wait },
	   .check = left_reset);

/* As a lock. */
static void make_auto_set(void)
{
	make_auto();
	set_one();
}

static void lock_and_count(void)
{
	x_assert(vez_event_wait(&e) == 0);
	told++;
	x_assert(vez_event_set(&e) == 0);
}

static void counted_two(void)
{
	x_assert(told == 2);
	left(true);
}

static void counted_three(void)
{
	x_assert(told == 3);
	left(true);
}

X_SCENARIO(event_auto_lock_2, .setup = make_auto_set, .thread = { lock_and_count, lock_and_count },
	   .check = counted_two, .stale = 1);
X_SCENARIO(event_auto_lock_3, .setup = make_auto_set, .thread = { lock_and_count, lock_and_count, lock_and_count },
	   .check = counted_three);

/* ---- a set then a reset lets through who was queued ---- */

static void pulse(void)
{
	x_await(vez_event_waiters(&e) == 1);
	x_assert(vez_event_set(&e) == 0);
	x_assert(vez_event_reset(&e) == 0);
	x_assert(vez_event_waiters(&e) == 0);
}

X_SCENARIO(event_pulse, .setup = make_manual, .thread = { wait_once, pulse }, .check = left_reset);

static void pulse_two(void)
{
	x_await(vez_event_waiters(&e) == 2);
	x_assert(vez_event_set(&e) == 0);
	x_assert(vez_event_reset(&e) == 0);
}

X_SCENARIO(event_pulse_two, .setup = make_manual, .thread = { wait_once, wait_once, pulse_two }, .check = left_reset);

static void wait_until_0(void)
{
	rc[0] = vez_event_wait_until(&e, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void wait_until_1(void)
{
	int got = vez_event_wait_until(&e, x_soon(), NULL);
	vez__store(&rc[1], got, relaxed);
	x_assert(got == 0 || got == ETIMEDOUT);
}

/* One of them gives up meanwhile. */
static void pulse_busy(void)
{
	x_await(vez_event_waiters(&e) == 2 || vez__load(&rc[1], relaxed) == ETIMEDOUT);
	x_await(vez_event_waiters(&e) >= 1);
	x_assert(vez_event_set(&e) == 0);
	x_assert(vez_event_reset(&e) == 0);
}

X_SCENARIO(event_pulse_busy, .setup = make_manual, .thread = { wait_once, wait_until_1, pulse_busy });

/* ---- give-up meets set ---- */

static void left_if_expired(void)
{
	left(rc[0] == ETIMEDOUT);
}

static void left_by_the_second(void)
{
	x_assert(rc[0] == 0 || rc[1] == 0 || vez_event_is_set(&e));
	left(rc[0] != 0 && rc[1] != 0);
}

X_SCENARIO(event_auto_deadline, .setup = make_auto, .thread = { wait_until_0, set_one }, .check = left_if_expired,
	   .stale = 1);
X_SCENARIO(event_auto_deadlines, .setup = make_auto, .thread = { wait_until_0, wait_until_1, set_one },
	   .check = left_by_the_second);
X_SCENARIO(event_manual_deadline, .setup = make_manual, .thread = { wait_until_0, set_one }, .check = left_set);
X_SCENARIO(event_manual_deadlines, .setup = make_manual, .thread = { wait_until_0, wait_until_1, set_one },
	   .check = left_set);

static void wait_with_token(void)
{
	rc[0] = vez_event_wait_until(&e, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

/* The set that follows the fire goes to the other, or, if this one has it, is passed on. */
static void fire_then_set(void)
{
	fire();
	set_one();
}

static void wait_with_token_then_set(void)
{
	wait_with_token();
	if (rc[0] == 0)
		set_one();
}

static void left_if_cancelled(void)
{
	left(rc[0] == ECANCELED);
}

X_SCENARIO(event_auto_token, .setup = make_auto, .thread = { wait_with_token, fire, set_one },
	   .check = left_if_cancelled);
X_SCENARIO(event_auto_token_two, .setup = make_auto,
	   .thread = { wait_with_token_then_set, wait_once, fire_then_set }, .check = left_reset);
X_SCENARIO(event_manual_token, .setup = make_manual, .thread = { wait_with_token, fire, set_one }, .check = left_set);

/* ---- destroyed as soon as that is allowed ---- */

static void wait_and_destroy(void)
{
	x_assert(vez_event_wait(&e) == 0);
	x_assert(vez_event_destroy(&e) == 0);
	x_dead(&e, sizeof e);
}

static void wait_and_unmap(void)
{
	x_assert(vez_event_wait(&e) == 0);
	x_dead(&e, sizeof e);
}

static void expired_and_destroy(void)
{
	x_await(vez_event_is_set(&e));
	x_assert(vez_event_wait_until(&e, VEZ_NOW, NULL) == 0);
	x_assert(vez_event_destroy(&e) == 0);
	x_dead(&e, sizeof e);
}

X_SCENARIO(event_manual_destroy, .setup = make_manual, .thread = { wait_and_destroy, set_one });
X_SCENARIO(event_manual_unmap, .setup = make_manual, .thread = { wait_and_unmap, set_one }, .stale = 1);
X_SCENARIO(event_auto_destroy, .setup = make_auto, .thread = { wait_and_destroy, set_one });
X_SCENARIO(event_auto_unmap, .setup = make_auto, .thread = { wait_and_unmap, set_one });
X_SCENARIO(event_expired_destroy, .setup = make_manual, .thread = { expired_and_destroy, set_one });

/* A newcomer passes while the set that lets another go has yet to leave, and unmaps it. */
static void pass_and_unmap(void)
{
	x_await(vez_event_is_set(&e));
	wait_and_unmap();
}

static void set_when_one_waits(void)
{
	x_await(vez_event_waiters(&e) == 1);
	set_one();
}

X_SCENARIO(event_manual_unmap_third, .setup = make_manual, .thread = { wait_once, pass_and_unmap, set_when_one_waits });

/* Two were let go, one by a set that found it on its way in; the first to return destroys it. */
static uint32_t returned;

static void make_two_destroy(void)
{
	returned = 0;
	make_manual();
}

static void first_destroys(void)
{
	if (vez__fetch_add(&returned, 1, acq_rel) == 0) {
		x_assert(vez_event_destroy(&e) == 0);
		x_dead(&e, sizeof e);
	}
}

static void wait_and_destroy_first(void)
{
	x_assert(vez_event_wait(&e) == 0);
	first_destroys();
}

static void wait_until_and_destroy_first(void)
{
	if (vez_event_wait_until(&e, x_soon(), NULL) == 0)
		first_destroys();
	else
		vez__store(&rc[1], 1, release);
}

static void set_when_two_wait(void)
{
	x_await(vez_event_waiters(&e) == 2 || vez__load(&rc[1], acquire) == 1);
	set_one();
}

X_SCENARIO(event_two_destroy, .setup = make_two_destroy,
	   .thread = { wait_and_destroy_first, wait_until_and_destroy_first, set_when_two_wait });

/* ---- set in a signal handler ---- */

static void set_in_handler(void)
{
	x_assert(vez_event_set(&e) == 0);
	(void)vez_event_waiters(&e);
}

static void wait_or_expire(void)
{
	rc[0] = vez_event_wait_until(&e, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

/* The handler sets once, at any point; what the first does not take is there for the second. */
static void wait_or_expire_then_set(void)
{
	wait_or_expire();
	if (rc[0] == 0)
		set_one();
}

X_SCENARIO(event_auto_signal, .setup = make_auto, .thread = { wait_or_expire_then_set, wait_once },
	   .signal = set_in_handler, .check = left_reset, .preemptions = 2);
X_SCENARIO(event_manual_signal, .setup = make_manual, .thread = { wait_or_expire, wait_once }, .signal = set_in_handler,
	   .check = left_set, .preemptions = 2);
