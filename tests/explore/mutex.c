/* SPDX-License-Identifier: MIT */
/* Scenarios of the mutex. */
#include "vez/mutex.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_mutex_t m;
static vez_cancel_t token;
/* Guarded by the mutex, and by nothing else. */
static int count;
static int rc[X_THREADS];

static void make(unsigned flags)
{
	x_alive(&m, sizeof m);
	X_NAME(m);
	x_alive(&token, sizeof token);
	X_NAME(token);
	vez_cancel_init(&token);
	x_assert(vez_mutex_init(&m, flags) == 0);
	count = 0;
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
	make(VEZ_ERRORCHECK);
}

static void make_fair_checked(void)
{
	make(VEZ_FAIR | VEZ_ERRORCHECK);
}

/* With two processors it spins before it sleeps. */
static void make_spinning(void)
{
	x_spin(2);
	make(0);
}

/* It is free, nobody is queued. */
static void left_free(void)
{
	x_assert(vez_mutex_waiters(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == EPERM);
	x_assert(vez_mutex_trylock(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_destroy(&m) == 0);
}

static void counted(int times)
{
	x_assert(count == times);
	left_free();
}

static void counted_2(void)
{
	counted(2);
}

static void counted_3(void)
{
	counted(3);
}

static void counted_4(void)
{
	counted(4);
}

/* ---- mutual exclusion ---- */

static void lock_and_count(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	count++;
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void lock_and_count_twice(void)
{
	lock_and_count();
	lock_and_count();
}

X_SCENARIO(mutex_2, .setup = make_default, .thread = { lock_and_count, lock_and_count }, .check = counted_2,
	   .stale = 2);
X_SCENARIO(mutex_3, .setup = make_default, .thread = { lock_and_count, lock_and_count, lock_and_count },
	   .check = counted_3);
X_SCENARIO(mutex_4, .setup = make_default,
	   .thread = { lock_and_count, lock_and_count, lock_and_count, lock_and_count }, .check = counted_4);
X_SCENARIO(mutex_twice, .setup = make_default, .thread = { lock_and_count_twice, lock_and_count },
	   .check = counted_3, .stale = 1);
X_SCENARIO(mutex_twice_3, .setup = make_default, .thread = { lock_and_count_twice, lock_and_count, lock_and_count },
	   .check = counted_4);
X_SCENARIO(mutex_fair_2, .setup = make_fair, .thread = { lock_and_count, lock_and_count }, .check = counted_2);
X_SCENARIO(mutex_fair_3, .setup = make_fair, .thread = { lock_and_count, lock_and_count, lock_and_count },
	   .check = counted_3);
X_SCENARIO(mutex_fair_twice, .setup = make_fair, .thread = { lock_and_count_twice, lock_and_count },
	   .check = counted_3, .stale = 2);
X_SCENARIO(mutex_checked_2, .setup = make_checked, .thread = { lock_and_count, lock_and_count }, .check = counted_2);
X_SCENARIO(mutex_spinning, .setup = make_spinning, .thread = { lock_and_count, lock_and_count }, .check = counted_2,
	   .cpus = 2);
X_SCENARIO(mutex_spinning_twice, .setup = make_spinning, .thread = { lock_and_count_twice, lock_and_count },
	   .check = counted_3, .cpus = 2);

/* ---- try ---- */

static void try_and_count(void)
{
	rc[0] = vez_mutex_trylock(&m);
	x_assert(rc[0] == 0 || rc[0] == EBUSY);
	if (rc[0] != 0)
		return;
	count++;
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void counted_unless_tried(void)
{
	counted(rc[0] == 0 ? 3 : 2);
}

X_SCENARIO(mutex_try, .setup = make_default, .thread = { lock_and_count, lock_and_count, try_and_count },
	   .check = counted_unless_tried);
X_SCENARIO(mutex_fair_try, .setup = make_fair, .thread = { lock_and_count, lock_and_count, try_and_count },
	   .check = counted_unless_tried);
static void counted_1_or_tried(void)
{
	counted(rc[0] == 0 ? 2 : 1);
}

X_SCENARIO(mutex_checked_try, .setup = make_checked, .thread = { lock_and_count, try_and_count },
	   .check = counted_1_or_tried);

/* A fair mutex is never free while somebody is queued. */
static void unlock_then_try(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	x_await(vez_mutex_waiters(&m) == 1);
	x_assert(vez_mutex_unlock(&m) == 0);
	if (vez_mutex_trylock(&m) == 0) {
		/* The one that waited has had it, and is done. */
		x_assert(count == 1);
		x_assert(vez_mutex_unlock(&m) == 0);
	}
}

static void count_if_held(void)
{
	x_await(vez__load(&m.core_.word_, acquire) >> 32 & 1);
	lock_and_count();
}

static void counted_1(void)
{
	counted(1);
}

X_SCENARIO(mutex_fair_no_gap, .setup = make_fair, .thread = { unlock_then_try, count_if_held }, .check = counted_1);

/* ---- deadlines ---- */

static void until(int i)
{
	rc[i] = vez_mutex_lock_until(&m, x_soon(), NULL);
	x_assert(rc[i] == 0 || rc[i] == ETIMEDOUT);
	if (rc[i] != 0)
		return;
	count++;
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void until_0(void)
{
	until(0);
}

static void until_1(void)
{
	until(1);
}

static void counted_within_limits(void)
{
	counted(1 + (rc[0] == 0 ? 1 : 0) + (rc[1] == 0 ? 1 : 0));
}

static void counted_within_limits_2(void)
{
	counted(2 + (rc[0] == 0 ? 1 : 0));
}

X_SCENARIO(mutex_deadline, .setup = make_default, .thread = { until_0, lock_and_count },
	   .check = counted_within_limits, .stale = 1);
X_SCENARIO(mutex_deadline_3, .setup = make_default, .thread = { until_0, lock_and_count, lock_and_count },
	   .check = counted_within_limits_2);
X_SCENARIO(mutex_deadlines, .setup = make_default, .thread = { until_0, until_1, lock_and_count },
	   .check = counted_within_limits);
X_SCENARIO(mutex_fair_deadline, .setup = make_fair, .thread = { until_0, lock_and_count },
	   .check = counted_within_limits, .stale = 1);
X_SCENARIO(mutex_fair_deadline_3, .setup = make_fair, .thread = { until_0, lock_and_count, lock_and_count },
	   .check = counted_within_limits_2);
X_SCENARIO(mutex_fair_deadlines, .setup = make_fair, .thread = { until_0, until_1, lock_and_count },
	   .check = counted_within_limits);

/* Who queues behind another does not overtake it, not even if it enters because its deadline has passed. */
static void make_fair_and_hold(void)
{
	make_fair();
	x_assert(vez_mutex_lock(&m) == 0);
}

static void until_perhaps_behind(void)
{
	bool behind = vez_mutex_waiters(&m) == 1;
	rc[0] = vez_mutex_lock_until(&m, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	if (rc[0] != 0)
		return;
	x_assert(!behind || count == 1);
	count++;
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void unlock(void)
{
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void counted_1_or_until(void)
{
	counted(rc[0] == 0 ? 2 : 1);
}

X_SCENARIO(mutex_fair_deadline_behind, .setup = make_fair_and_hold,
	   .thread = { until_perhaps_behind, lock_and_count, unlock }, .check = counted_1_or_until);

/* One whose deadline has passed may be let in by the unlock all the same, and then owns it. */
static uint32_t left;

static void make_held(unsigned flags)
{
	make(flags);
	vez__store(&left, 0, relaxed);
}

static void make_held_checked(void)
{
	make_held(VEZ_ERRORCHECK);
}

static void make_held_fair_checked(void)
{
	make_held(VEZ_FAIR | VEZ_ERRORCHECK);
}

static void owns_or_not(void)
{
	rc[0] = vez_mutex_lock_until(&m, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == ECANCELED);
	x_assert(vez_mutex_holds(&m) == (rc[0] == 0 ? 1 : 0));
	x_assert(vez_mutex_unlock(&m) == (rc[0] == 0 ? 0 : EPERM));
	vez__store(&left, 1, release);
}

static void hold_until_queued(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	x_await(vez_mutex_waiters(&m) == 1 || vez__load(&left, acquire) == 1);
	x_assert(vez_mutex_holds(&m) == 1);
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_holds(&m) == 0);
}

static void fire(void)
{
	vez_cancel_fire(&token);
	x_assert(vez_cancel_fired(&token));
}

X_SCENARIO(mutex_owner_deadline, .setup = make_held_checked, .thread = { owns_or_not, hold_until_queued },
	   .check = left_free);
X_SCENARIO(mutex_fair_owner_deadline, .setup = make_held_fair_checked, .thread = { owns_or_not, hold_until_queued },
	   .check = left_free);
X_SCENARIO(mutex_owner_deadline_token, .setup = make_held_checked, .thread = { owns_or_not, hold_until_queued, fire },
	   .check = left_free);
X_SCENARIO(mutex_fair_owner_deadline_token, .setup = make_held_fair_checked,
	   .thread = { owns_or_not, hold_until_queued, fire }, .check = left_free);

/* ---- tokens ---- */

static void with_token(void)
{
	rc[0] = vez_mutex_lock_until(&m, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] != 0)
		return;
	count++;
	x_assert(vez_mutex_unlock(&m) == 0);
}

X_SCENARIO(mutex_token, .setup = make_default, .thread = { with_token, lock_and_count, fire },
	   .check = counted_within_limits, .stale = 1);
X_SCENARIO(mutex_fair_token, .setup = make_fair, .thread = { with_token, lock_and_count, fire },
	   .check = counted_within_limits);
X_SCENARIO(mutex_token_4, .setup = make_default, .thread = { with_token, lock_and_count, fire, lock_and_count },
	   .check = counted_within_limits_2);
X_SCENARIO(mutex_fair_token_4, .setup = make_fair, .thread = { with_token, lock_and_count, fire, lock_and_count },
	   .check = counted_within_limits_2);

/* ---- barging: who was told may come in vain, and is handed it after a while ---- */

static void overtake(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	x_await(vez_mutex_waiters(&m) == 1);
	for (int i = 0; i < 3; i++) {
		count++;
		x_assert(vez_mutex_unlock(&m) == 0);
		if (vez_mutex_trylock(&m) != 0)
			return;
	}
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void counted_2_to_4(void)
{
	x_assert(count >= 2 && count <= 4);
	left_free();
}

X_SCENARIO(mutex_overtaken, .setup = make_default, .thread = { count_if_held, overtake }, .check = counted_2_to_4,
	   .faults = 2, .stale = 1);
X_SCENARIO(mutex_overtaken_checked, .setup = make_checked, .thread = { count_if_held, overtake },
	   .check = counted_2_to_4, .faults = 2);

static void until_and_leave(void)
{
	until(0);
	vez__store(&left, 1, release);
}

static void overtake_until(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	x_await(vez_mutex_waiters(&m) == 1 || vez__load(&left, acquire) == 1);
	for (int i = 0; i < 2; i++) {
		x_assert(vez_mutex_unlock(&m) == 0);
		if (vez_mutex_trylock(&m) != 0)
			return;
	}
	x_assert(vez_mutex_unlock(&m) == 0);
}

static void make_held_default(void)
{
	make_held(0);
}

X_SCENARIO(mutex_overtaken_deadline, .setup = make_held_default, .thread = { until_and_leave, overtake_until },
	   .check = left_free, .faults = 2);
X_SCENARIO(mutex_overtaken_2, .setup = make_held_default, .thread = { until_and_leave, overtake_until, lock_and_count },
	   .check = left_free, .faults = 2, .random = 20000);

/* ---- recursion ---- */

static void lock_thrice(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	x_assert(vez_mutex_trylock(&m) == 0);
	x_assert(vez_mutex_lock(&m) == 0);
	x_assert(vez_mutex_holds(&m) == 3);
	count++;
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_holds(&m) == 1);
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_holds(&m) == 0);
}

X_SCENARIO(mutex_recursive, .setup = make_recursive, .thread = { lock_thrice, lock_thrice }, .check = counted_2,
	   .stale = 1);
X_SCENARIO(mutex_recursive_3, .setup = make_recursive, .thread = { lock_thrice, lock_and_count, lock_and_count },
	   .check = counted_3);

/* Who does not own it is told so, whatever the owners do meanwhile. */
static void unlock_anothers(void)
{
	x_assert(vez_mutex_holds(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == EPERM);
}

X_SCENARIO(mutex_not_mine, .setup = make_checked, .thread = { lock_and_count, lock_and_count, unlock_anothers },
	   .check = counted_2);
X_SCENARIO(mutex_fair_not_mine, .setup = make_fair_checked,
	   .thread = { lock_and_count, lock_and_count, unlock_anothers }, .check = counted_2);

/* ---- destroyed as soon as that is allowed ---- */

/* The second of two to have had it destroys it: nobody else will call it. */
static void lock_and_destroy(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	bool last = ++count == 2;
	x_assert(vez_mutex_unlock(&m) == 0);
	if (!last)
		return;
	x_assert(vez_mutex_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

X_SCENARIO(mutex_destroy, .setup = make_default, .thread = { lock_and_destroy, lock_and_destroy });
X_SCENARIO(mutex_fair_destroy, .setup = make_fair, .thread = { lock_and_destroy, lock_and_destroy });
X_SCENARIO(mutex_checked_destroy, .setup = make_checked, .thread = { lock_and_destroy, lock_and_destroy });
X_SCENARIO(mutex_spinning_destroy, .setup = make_spinning, .thread = { lock_and_destroy, lock_and_destroy },
	   .cpus = 2);

static void lock_and_destroy_third(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	bool last = ++count == 3;
	x_assert(vez_mutex_unlock(&m) == 0);
	if (!last)
		return;
	x_assert(vez_mutex_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

X_SCENARIO(mutex_destroy_3, .setup = make_default,
	   .thread = { lock_and_destroy_third, lock_and_destroy_third, lock_and_destroy_third });
X_SCENARIO(mutex_fair_destroy_3, .setup = make_fair,
	   .thread = { lock_and_destroy_third, lock_and_destroy_third, lock_and_destroy_third });

/* One leaves without it, by deadline or token; who saw it return, or had it after it, destroys. */
static uint32_t ended;

static void make_ended(unsigned flags)
{
	make(flags);
	vez__store(&ended, 0, relaxed);
}

static void make_ended_default(void)
{
	make_ended(0);
}

static void make_ended_fair(void)
{
	make_ended(VEZ_FAIR);
}

static void end(void)
{
	if (vez__fetch_add(&ended, 1, acq_rel) < 1)
		return;
	x_assert(vez_mutex_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

static void limited_and_end(void)
{
	if (vez_mutex_lock_until(&m, x_soon(), &token) == 0)
		x_assert(vez_mutex_unlock(&m) == 0);
	end();
}

static void lock_and_end(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == 0);
	end();
}

X_SCENARIO(mutex_destroy_deadline, .setup = make_ended_default, .thread = { limited_and_end, lock_and_end },
	   .stale = 1);
X_SCENARIO(mutex_fair_destroy_deadline, .setup = make_ended_fair, .thread = { limited_and_end, lock_and_end });
X_SCENARIO(mutex_destroy_token, .setup = make_ended_default, .thread = { limited_and_end, lock_and_end, fire });
X_SCENARIO(mutex_fair_destroy_token, .setup = make_ended_fair, .thread = { limited_and_end, lock_and_end, fire });
