/* SPDX-License-Identifier: MIT */
/* Scenarios of conditions. No wait is in a loop that checks again. */
#include "vez/cond.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_mutex_t m;
static vez_cond_t c;
static vez_cancel_t token;
/* Guarded by the mutex, and by nothing else. */
static int told, back;
static int rc[X_THREADS];
static uint32_t returned;

static void make(unsigned flags)
{
	x_alive(&m, sizeof m);
	X_NAME(m);
	x_alive(&c, sizeof c);
	X_NAME(c);
	x_alive(&token, sizeof token);
	X_NAME(token);
	vez_cancel_init(&token);
	x_assert(vez_mutex_init(&m, flags) == 0);
	x_assert(vez_cond_init(&c) == 0);
	told = back = 0;
	vez__store(&returned, 0, relaxed);
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_default(void)
{
	make(0);
}

static void make_fair(void)
{
	make(VEZ_FAIR);
}

static void make_recursive(void)
{
	make(VEZ_RECURSIVE);
}

static void make_checked(void)
{
	make(VEZ_FAIR | VEZ_ERRORCHECK);
}

static void make_spinning(void)
{
	x_spin(2);
	make(0);
}

/* Those who are notified are asked all at once. */
static void make_together(void)
{
	make(0);
	m.together_ = 255;
}

/* Nobody waits, the mutex is free. */
static void left_quiet(void)
{
	x_assert(vez_cond_waiters(&c) == 0);
	x_assert(vez_cond_destroy(&c) == 0);
	x_assert(vez_mutex_waiters(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == EPERM);
	x_assert(vez_mutex_trylock(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_destroy(&m) == 0);
}

static void lock(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
}

static void unlock(void)
{
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void back_1(void)
{
	x_assert(back == 1);
	left_quiet();
}

static void back_2(void)
{
	x_assert(back == 2);
	left_quiet();
}

static void back_4(void)
{
	x_assert(back == 4);
	left_quiet();
}

static void back_3(void)
{
	x_assert(back == 3);
	left_quiet();
}

/* ---- with the mutex: under it the signal misses nobody ---- */

static void wait_till_told(void)
{
	lock();
	if (!told)
		x_assert(vez_cond_wait(&c, &m) == 0);
	x_assert(told);
	back++;
	unlock();
}

static void tell_one(void)
{
	lock();
	told = 1;
	x_assert(vez_cond_signal(&c) <= 1);
	unlock();
}

static void tell_all(void)
{
	lock();
	told = 1;
	vez_cond_broadcast(&c);
	unlock();
}

static void tell_after(void)
{
	lock();
	told = 1;
	unlock();
	vez_cond_broadcast(&c);
}

X_SCENARIO(cond_signal, .setup = make_default, .thread = { wait_till_told, tell_one }, .check = back_1, .stale = 1);
X_SCENARIO(cond_signal_fair, .setup = make_fair, .thread = { wait_till_told, tell_one }, .check = back_1);
X_SCENARIO(cond_signal_recursive, .setup = make_recursive, .thread = { wait_till_told, tell_one }, .check = back_1);
X_SCENARIO(cond_signal_checked, .setup = make_checked, .thread = { wait_till_told, tell_one }, .check = back_1);
X_SCENARIO(cond_signal_spinning, .setup = make_spinning, .thread = { wait_till_told, tell_one }, .check = back_1,
	   .cpus = 2);
X_SCENARIO(cond_broadcast, .setup = make_default, .thread = { wait_till_told, wait_till_told, tell_all },
	   .check = back_2);
X_SCENARIO(cond_broadcast_fair, .setup = make_fair, .thread = { wait_till_told, wait_till_told, tell_all },
	   .check = back_2);
X_SCENARIO(cond_broadcast_after, .setup = make_default, .thread = { wait_till_told, wait_till_told, tell_after },
	   .check = back_2);
/* The first of them waits alone, the others are neighbours. */
X_SCENARIO(cond_broadcast_together, .setup = make_together,
	   .thread = { wait_till_told, wait_till_told, wait_till_told, tell_all }, .check = back_3, .preemptions = 1,
	   .random = 30000);
X_SCENARIO(cond_broadcast_together_after, .setup = make_together,
	   .thread = { wait_till_told, wait_till_told, wait_till_told, tell_after }, .check = back_3, .preemptions = 1,
	   .random = 30000);
/* Their limits may end while they are asked. */
static void wait_limited_till_told(void)
{
	lock();
	if (!told) {
		int end = vez_cond_wait_until(&c, &m, x_soon(), &token);
		x_assert(end == 0 || end == ETIMEDOUT || end == ECANCELED);
	}
	back++;
	unlock();
}

static void fire_once(void)
{
	vez_cancel_fire(&token);
}

X_SCENARIO(cond_together_limited, .setup = make_together,
	   .thread = { wait_till_told, wait_limited_till_told, wait_limited_till_told, tell_all }, .check = back_3,
	   .preemptions = 1, .random = 30000);
X_SCENARIO(cond_together_fired, .setup = make_together,
	   .thread = { wait_till_told, wait_limited_till_told, wait_limited_till_told, tell_all, fire_once },
	   .check = back_3, .preemptions = 1, .random = 30000);

/* One waits for a guard besides. */
static bool is_told(void *arg)
{
	(void)arg;
	return told;
}

static void await_told(void)
{
	lock();
	x_assert(vez_mutex_await(&m, is_told, NULL, VEZ_FOREVER, NULL) == 0);
	x_assert(told);
	back++;
	unlock();
}

X_SCENARIO(cond_together_guard, .setup = make_together,
	   .thread = { await_told, wait_till_told, wait_till_told, wait_till_told, tell_all }, .check = back_4,
	   .preemptions = 1, .random = 30000);
X_SCENARIO(cond_broadcast_3, .setup = make_default,
	   .thread = { wait_till_told, wait_till_told, wait_till_told, tell_all }, .check = back_3, .preemptions = 1,
	   .random = 30000);

static void lock_and_unlock(void)
{
	lock();
	unlock();
}

/* Others want the mutex, too. */
X_SCENARIO(cond_signal_contended, .setup = make_default, .thread = { wait_till_told, tell_one, lock_and_unlock },
	   .check = back_1);
X_SCENARIO(cond_signal_contended_fair, .setup = make_fair, .thread = { wait_till_told, tell_one, lock_and_unlock },
	   .check = back_1);

X_SCENARIO(cond_broadcast_together_contended, .setup = make_together,
	   .thread = { wait_till_told, wait_till_told, wait_till_told, tell_all, lock_and_unlock }, .check = back_3,
	   .preemptions = 1, .random = 50000);

/* ---- without the mutex: whoever it says it notified returns ---- */

static void wait_once(void)
{
	lock();
	x_assert(vez_cond_wait(&c, &m) == 0);
	back++;
	unlock();
}

static void signal_one(void)
{
	x_await(vez_cond_waiters(&c) == 1);
	x_assert(vez_cond_signal(&c) == 1);
}

static void signal_two(void)
{
	x_await(vez_cond_waiters(&c) == 2);
	x_assert(vez_cond_signal(&c) == 1);
	x_assert(vez_cond_signal(&c) == 1);
	x_assert(vez_cond_signal(&c) == 0);
}

static void signal_both_ways(void)
{
	x_await(vez_cond_waiters(&c) == 2);
	x_assert(vez_cond_signal(&c) == 1);
	x_assert(vez_cond_broadcast(&c) == 1);
}

static void broadcast_two(void)
{
	x_await(vez_cond_waiters(&c) == 2);
	x_assert(vez_cond_broadcast(&c) == 2);
}

X_SCENARIO(cond_outside, .setup = make_default, .thread = { wait_once, signal_one }, .check = back_1, .stale = 2);
X_SCENARIO(cond_outside_fair, .setup = make_fair, .thread = { wait_once, signal_one }, .check = back_1);
X_SCENARIO(cond_outside_checked, .setup = make_checked, .thread = { wait_once, signal_one }, .check = back_1);
X_SCENARIO(cond_outside_2, .setup = make_default, .thread = { wait_once, wait_once, signal_two }, .check = back_2);
X_SCENARIO(cond_outside_2_fair, .setup = make_fair, .thread = { wait_once, wait_once, signal_two }, .check = back_2);
X_SCENARIO(cond_outside_both, .setup = make_default, .thread = { wait_once, wait_once, signal_both_ways },
	   .check = back_2);
X_SCENARIO(cond_outside_broadcast, .setup = make_default, .thread = { wait_once, wait_once, broadcast_two },
	   .check = back_2);
X_SCENARIO(cond_outside_broadcast_checked, .setup = make_checked, .thread = { wait_once, wait_once, broadcast_two },
	   .check = back_2);

/* Two who signal at once. */
static void signal_any(void)
{
	x_await(vez_cond_waiters(&c) >= 1);
	while (vez_cond_signal(&c) == 0)
		x_await(vez_cond_waiters(&c) >= 1);
}

X_SCENARIO(cond_two_signals, .setup = make_default, .thread = { wait_once, wait_once, signal_any, signal_any },
	   .check = back_2, .preemptions = 1, .random = 30000);

/* ---- keys ---- */

static void wait_late(void)
{
	lock();
	x_assert(vez_cond_wait_key(&c, &m, 5, VEZ_FOREVER, NULL) == 0);
	x_assert(back == 1);
	back++;
	unlock();
}

static void wait_early(void)
{
	lock();
	x_assert(vez_cond_wait_key(&c, &m, -5, VEZ_FOREVER, NULL) == 0);
	x_assert(back == 0);
	back++;
	unlock();
}

static void broadcast_to_both(void)
{
	x_await(vez_cond_waiters(&c) == 2);
	lock();
	x_assert(vez_cond_broadcast(&c) == 2);
	x_assert(vez_mutex_waiters(&m) == 2);
	unlock();
}

X_SCENARIO(cond_keys, .setup = make_default, .thread = { wait_late, wait_early, broadcast_to_both }, .check = back_2);
X_SCENARIO(cond_keys_fair, .setup = make_fair, .thread = { wait_late, wait_early, broadcast_to_both },
	   .check = back_2);

/* ---- deadlines and tokens ---- */

static void limited(int i, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	lock();
	rc[i] = vez_cond_wait_until(&c, &m, deadline, cancel);
	x_assert(rc[i] == 0 || rc[i] == (cancel ? ECANCELED : ETIMEDOUT) || rc[i] == ETIMEDOUT);
	back++;
	unlock();
	vez__store(&returned, 1, release);
}

static void until_0(void)
{
	limited(0, x_soon(), NULL);
}

static void until_1(void)
{
	limited(1, x_soon(), NULL);
}

static void token_0(void)
{
	limited(0, VEZ_FOREVER, &token);
}

static void token_until_0(void)
{
	limited(0, x_soon(), &token);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

/* What the signal says is what comes of it. */
static void signal_maybe(void)
{
	x_await(vez_cond_waiters(&c) == 1 || vez__load(&returned, acquire) == 1);
	told = (int)vez_cond_signal(&c);
}

static void as_told(void)
{
	x_assert((rc[0] == 0) == (told == 1));
	back_1();
}

X_SCENARIO(cond_deadline, .setup = make_default, .thread = { until_0, signal_maybe }, .check = as_told, .stale = 1);
X_SCENARIO(cond_deadline_fair, .setup = make_fair, .thread = { until_0, signal_maybe }, .check = as_told);
X_SCENARIO(cond_deadline_checked, .setup = make_checked, .thread = { until_0, signal_maybe }, .check = as_told);
X_SCENARIO(cond_deadline_recursive, .setup = make_recursive, .thread = { until_0, signal_maybe }, .check = as_told);
X_SCENARIO(cond_deadline_contended, .setup = make_default, .thread = { until_0, signal_maybe, lock_and_unlock },
	   .check = as_told);
X_SCENARIO(cond_token, .setup = make_default, .thread = { token_0, signal_maybe, fire }, .check = as_told);
X_SCENARIO(cond_token_checked, .setup = make_checked, .thread = { token_0, signal_maybe, fire }, .check = as_told);
X_SCENARIO(cond_token_deadline, .setup = make_default, .thread = { token_until_0, signal_maybe, fire },
	   .check = as_told);
X_SCENARIO(cond_token_deadline_contended, .setup = make_default,
	   .thread = { token_until_0, signal_maybe, fire, lock_and_unlock }, .check = as_told, .preemptions = 1,
	   .random = 50000);

/* The limits come while the notified one waits for the mutex: they change nothing. */
static void signal_inside(void)
{
	x_await(vez_cond_waiters(&c) == 1 || vez__load(&returned, acquire) == 1);
	lock();
	told = (int)vez_cond_signal(&c);
	unlock();
	lock();
	unlock();
}

X_SCENARIO(cond_deadline_inside, .setup = make_default, .thread = { until_0, signal_inside }, .check = as_told,
	   .faults = 2);
X_SCENARIO(cond_deadline_inside_fair, .setup = make_fair, .thread = { until_0, signal_inside }, .check = as_told,
	   .faults = 2);
X_SCENARIO(cond_token_inside, .setup = make_default, .thread = { token_0, signal_inside, fire }, .check = as_told);
X_SCENARIO(cond_token_inside_fair, .setup = make_fair, .thread = { token_0, signal_inside, fire }, .check = as_told);
X_SCENARIO(cond_all_inside, .setup = make_default, .thread = { token_until_0, signal_inside, fire },
	   .check = as_told, .random = 30000);

/* Two wait, one of them with a limit: one signal notifies one of the two, for sure. */
static void signal_between(void)
{
	x_await(vez_cond_waiters(&c) == 2 || vez__load(&returned, acquire) == 1);
	x_await(vez_cond_waiters(&c) >= 1);
	x_assert(vez_cond_signal(&c) == 1);
	if (vez__load(&returned, acquire) == 0)
		x_await(vez__load(&returned, acquire) == 1);
	/* The limited one is back: if it took the signal, the other is still owed one. */
	if (rc[0] == 0)
		x_assert(vez_cond_signal(&c) == 1);
}

static void wait_second(void)
{
	lock();
	x_assert(vez_cond_wait_key(&c, &m, 1, VEZ_FOREVER, NULL) == 0);
	back++;
	unlock();
}

X_SCENARIO(cond_not_lost_deadline, .setup = make_default, .thread = { until_0, wait_second, signal_between },
	   .check = back_2);
X_SCENARIO(cond_not_lost_token, .setup = make_default, .thread = { token_0, wait_second, signal_between, fire },
	   .check = back_2, .preemptions = 1, .random = 50000);

static void broadcast_maybe(void)
{
	x_await(vez_cond_waiters(&c) == 2 || vez__load(&returned, acquire) == 1);
	told = (int)vez_cond_broadcast(&c);
}

static void as_many_as_told(void)
{
	x_assert((rc[0] == 0) + (rc[1] == 0) == told);
	back_2();
}

X_SCENARIO(cond_broadcast_deadlines, .setup = make_default, .thread = { until_0, until_1, broadcast_maybe },
	   .check = as_many_as_told);
X_SCENARIO(cond_broadcast_deadlines_fair, .setup = make_fair, .thread = { until_0, until_1, broadcast_maybe },
	   .check = as_many_as_told);

/* ---- a recursive mutex is let go whole, and taken back whole ---- */

static void wait_twice_deep(void)
{
	lock();
	lock();
	rc[0] = vez_cond_wait_until(&c, &m, x_soon(), &token);
	x_assert(vez_mutex_holds(&m) == 2);
	back++;
	unlock();
	x_assert(vez_mutex_holds(&m) == 1);
	unlock();
	x_assert(vez_mutex_holds(&m) == 0);
	vez__store(&returned, 1, release);
}

X_SCENARIO(cond_recursive, .setup = make_recursive, .thread = { wait_twice_deep, signal_inside }, .check = as_told);
X_SCENARIO(cond_recursive_token, .setup = make_recursive, .thread = { wait_twice_deep, signal_inside, fire },
	   .check = as_told);

/* ---- destroyed as soon as that is allowed ---- */

/* Who was notified destroys the condition, though the one who notified it has not returned. */
static void wait_and_destroy(void)
{
	lock();
	x_assert(vez_cond_wait(&c, &m) == 0);
	unlock();
	x_assert(vez_cond_destroy(&c) == 0);
	x_dead(&c, sizeof c);
}

X_SCENARIO(cond_destroy, .setup = make_default, .thread = { wait_and_destroy, signal_one }, .stale = 1);
X_SCENARIO(cond_destroy_fair, .setup = make_fair, .thread = { wait_and_destroy, signal_one });

/* And the mutex with it. */
static void wait_and_destroy_all(void)
{
	lock();
	if (!told)
		x_assert(vez_cond_wait(&c, &m) == 0);
	unlock();
	x_assert(vez_cond_destroy(&c) == 0);
	x_dead(&c, sizeof c);
	x_assert(vez_mutex_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

static void signal_without_return(void)
{
	x_await(vez_cond_waiters(&c) == 1);
	x_assert(vez_cond_signal(&c) == 1);
}

X_SCENARIO(cond_destroy_all, .setup = make_default, .thread = { wait_and_destroy_all, tell_one });
X_SCENARIO(cond_destroy_all_fair, .setup = make_fair, .thread = { wait_and_destroy_all, tell_one });
X_SCENARIO(cond_destroy_all_checked, .setup = make_checked, .thread = { wait_and_destroy_all, tell_one });
X_SCENARIO(cond_destroy_all_outside, .setup = make_default,
	   .thread = { wait_and_destroy_all, signal_without_return });
X_SCENARIO(cond_destroy_all_outside_fair, .setup = make_fair,
	   .thread = { wait_and_destroy_all, signal_without_return });

static void destroy_both(void)
{
	x_assert(vez_cond_destroy(&c) == 0);
	x_dead(&c, sizeof c);
	x_assert(vez_mutex_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

/* Of two that end, by notification, deadline or token, the last destroys both. */
static void end(void)
{
	if (vez__fetch_add(&returned, 1, acq_rel) == 1)
		destroy_both();
}

static void limited_and_end(void)
{
	lock();
	vez_cond_wait_until(&c, &m, x_soon(), &token);
	unlock();
	end();
}

X_SCENARIO(cond_destroy_token, .setup = make_default, .thread = { limited_and_end, limited_and_end, fire });
X_SCENARIO(cond_destroy_token_fair, .setup = make_fair, .thread = { limited_and_end, limited_and_end, fire });

/* Of three that are notified together the last destroys both. */
static void wait_and_end_third(void)
{
	lock();
	x_assert(vez_cond_wait(&c, &m) == 0);
	unlock();
	if (vez__fetch_add(&returned, 1, acq_rel) == 2)
		destroy_both();
}

static void broadcast_to_three(void)
{
	x_await(vez_cond_waiters(&c) == 3);
	x_assert(vez_cond_broadcast(&c) == 3);
}

X_SCENARIO(cond_destroy_together, .setup = make_together,
	   .thread = { wait_and_end_third, wait_and_end_third, wait_and_end_third, broadcast_to_three },
	   .preemptions = 1, .random = 30000);

/* One wait is notified while its deadline passes or its token fires; another that was notified with it destroys. */
static void limited_and_leave(void)
{
	lock();
	rc[0] = vez_cond_wait_until(&c, &m, x_soon(), &token);
	unlock();
	vez__store(&returned, 1, release);
}

static void wait_then_destroy_quiet(void)
{
	lock();
	x_assert(vez_cond_wait(&c, &m) == 0);
	unlock();
	x_assert(vez_cond_destroy(&c) == 0);
	x_dead(&c, sizeof c);
}

static void broadcast_to_whom_is_there(void)
{
	x_await(vez_cond_waiters(&c) == 2 || vez__load(&returned, acquire) == 1);
	x_await(vez_cond_waiters(&c) >= 1);
	vez_cond_broadcast(&c);
}

X_SCENARIO(cond_destroy_collected, .setup = make_default,
	   .thread = { limited_and_leave, wait_then_destroy_quiet, broadcast_to_whom_is_there });
X_SCENARIO(cond_destroy_collected_token, .setup = make_default,
	   .thread = { limited_and_leave, wait_then_destroy_quiet, broadcast_to_whom_is_there, fire },
	   .preemptions = 1, .random = 50000);
