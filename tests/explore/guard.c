/* SPDX-License-Identifier: MIT */
/* Scenarios of waits with a guard, on a mutex and on a condition. No wait is in a loop that checks again. */
#include "vez/cond.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_mutex_t m;
static vez_cond_t c;
static vez_cancel_t token;
/* Guarded by the mutex, and by nothing else. */
static int state, count, asked;
static int rc[X_THREADS];
static uint32_t ended;

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
	state = count = asked = 0;
	vez__store(&ended, 0, relaxed);
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

static void counted(int times)
{
	x_assert(count == times);
	x_assert(vez_cond_waiters(&c) == 0);
	x_assert(vez_cond_destroy(&c) == 0);
	x_assert(vez_mutex_waiters(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == EPERM);
	x_assert(vez_mutex_trylock(&m) == 0);
	x_assert(vez_mutex_unlock(&m) == 0);
	x_assert(vez_mutex_destroy(&m) == 0);
}

static void counted_1(void)
{
	counted(1);
}

static void counted_2(void)
{
	counted(2);
}

static void counted_3(void)
{
	counted(3);
}

static void lock(void)
{
	x_assert(vez_mutex_lock(&m) == 0);
}

static void unlock(void)
{
	x_assert(vez_mutex_unlock(&m) == 0);
}

static int numbers[] = { 0, 1, 2, 3 };

/* Writes, so that two who ask at once are found. */
static bool has_come(void *arg)
{
	asked++;
	return state >= *(int *)arg;
}

static bool is_exactly(void *arg)
{
	asked++;
	return state == *(int *)arg;
}

/* ---- until it is so ---- */

static void when(int number)
{
	x_assert(vez_mutex_lock_when(&m, has_come, &numbers[number], VEZ_FOREVER, NULL) == 0);
	x_assert(state >= number);
	count++;
	unlock();
}

static void when_1(void)
{
	when(1);
}

static void when_2(void)
{
	when(2);
}

static void await_1(void)
{
	lock();
	x_assert(vez_mutex_await(&m, has_come, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(state >= 1);
	count++;
	unlock();
}

static void set_next(void)
{
	lock();
	state++;
	unlock();
}

static void set_next_twice(void)
{
	set_next();
	set_next();
}

static void lock_and_unlock(void)
{
	lock();
	unlock();
}

static void try_once(void)
{
	int got = vez_mutex_trylock(&m);
	x_assert(got == 0 || got == EBUSY);
	if (got == 0)
		unlock();
}

X_SCENARIO(mutex_when, .setup = make_default, .thread = { when_1, set_next }, .check = counted_1, .stale = 1);
X_SCENARIO(mutex_when_fair, .setup = make_fair, .thread = { when_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_when_recursive, .setup = make_recursive, .thread = { when_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_when_checked, .setup = make_checked, .thread = { when_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_when_spinning, .setup = make_spinning, .thread = { when_1, set_next }, .check = counted_1, .cpus = 2);
X_SCENARIO(mutex_await, .setup = make_default, .thread = { await_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_await_fair, .setup = make_fair, .thread = { await_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_await_recursive, .setup = make_recursive, .thread = { await_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_await_checked, .setup = make_checked, .thread = { await_1, set_next }, .check = counted_1);
X_SCENARIO(mutex_when_2, .setup = make_default, .thread = { when_1, when_1, set_next }, .check = counted_2);
X_SCENARIO(mutex_when_2_fair, .setup = make_fair, .thread = { when_1, await_1, set_next }, .check = counted_2);
X_SCENARIO(mutex_when_different, .setup = make_default, .thread = { when_2, when_1, set_next_twice },
	   .check = counted_2);
X_SCENARIO(mutex_when_different_fair, .setup = make_fair, .thread = { when_2, when_1, set_next_twice },
	   .check = counted_2);

/* Who is let in lets the next one in. */
static void when_1_then_2(void)
{
	x_assert(vez_mutex_lock_when(&m, is_exactly, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(state == 1);
	state = 2;
	x_assert(vez_mutex_await(&m, is_exactly, &numbers[3], VEZ_FOREVER, NULL) == 0);
	count++;
	unlock();
}

static void when_2_then_3(void)
{
	x_assert(vez_mutex_lock_when(&m, is_exactly, &numbers[2], VEZ_FOREVER, NULL) == 0);
	x_assert(state == 2);
	state = 3;
	count++;
	unlock();
}

X_SCENARIO(mutex_when_turns, .setup = make_default, .thread = { when_1_then_2, when_2_then_3, set_next },
	   .check = counted_2);
X_SCENARIO(mutex_when_turns_fair, .setup = make_fair, .thread = { when_1_then_2, when_2_then_3, set_next },
	   .check = counted_2);

/* ---- among those who wait for nothing else ---- */

static void lock_and_count(void)
{
	lock();
	count++;
	unlock();
}

X_SCENARIO(mutex_when_contended, .setup = make_default, .thread = { when_1, set_next, lock_and_unlock },
	   .check = counted_1);
X_SCENARIO(mutex_when_contended_fair, .setup = make_fair, .thread = { when_1, set_next, lock_and_unlock },
	   .check = counted_1);
X_SCENARIO(mutex_await_contended, .setup = make_default, .thread = { await_1, set_next, lock_and_unlock },
	   .check = counted_1);
X_SCENARIO(mutex_when_try, .setup = make_default, .thread = { when_1, set_next, try_once }, .check = counted_1);
X_SCENARIO(mutex_when_try_fair, .setup = make_fair, .thread = { when_1, set_next, try_once }, .check = counted_1);

/* One who is false for ever holds nobody back. */
static void never(void)
{
	rc[0] = vez_mutex_lock_when(&m, has_come, &numbers[3], VEZ_FOREVER, &token);
	x_assert(rc[0] == ECANCELED);
}

static void count_twice_and_fire(void)
{
	lock_and_count();
	lock_and_count();
	vez_cancel_fire(&token);
}

X_SCENARIO(mutex_when_never, .setup = make_default, .thread = { never, lock_and_count, count_twice_and_fire },
	   .check = counted_3);
X_SCENARIO(mutex_when_never_fair, .setup = make_fair, .thread = { never, lock_and_count, count_twice_and_fire },
	   .check = counted_3);

/* The mutex passes from false guard to plain to true guard. */
static void lock_count_and_tell(void)
{
	lock_and_count();
	vez__store(&ended, 1, release);
}

static bool is_queued_or_over(void)
{
	return vez_mutex_waiters(&m) == 2 || (vez__load(&ended, acquire) && vez_mutex_waiters(&m) == 1);
}

static void await_queued_and_set(void)
{
	lock();
	x_await(is_queued_or_over());
	state = 1;
	unlock();
}

X_SCENARIO(mutex_when_behind, .setup = make_default, .thread = { lock_count_and_tell, when_1, await_queued_and_set },
	   .check = counted_2);
X_SCENARIO(mutex_when_behind_fair, .setup = make_fair, .thread = { lock_count_and_tell, when_1, await_queued_and_set },
	   .check = counted_2);

/* A running thread takes the mutex of one whose guard was true, and makes that false, and true again at last. */
static void set_and_take_back(void)
{
	set_next();
	lock();
	state = 0;
	unlock();
	set_next();
}

static void when_exactly_1(void)
{
	x_assert(vez_mutex_lock_when(&m, is_exactly, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(state == 1);
	count++;
	unlock();
}

static void await_exactly_1(void)
{
	lock();
	x_assert(vez_mutex_await(&m, is_exactly, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(state == 1);
	count++;
	unlock();
}

X_SCENARIO(mutex_when_overtaken, .setup = make_default, .thread = { when_exactly_1, set_and_take_back },
	   .check = counted_1);
X_SCENARIO(mutex_await_overtaken, .setup = make_default, .thread = { await_exactly_1, set_and_take_back },
	   .check = counted_1);
X_SCENARIO(mutex_await_overtaken_recursive, .setup = make_recursive, .thread = { await_exactly_1, set_and_take_back },
	   .check = counted_1);

/* Whoever takes it makes it false: the one who came later may not take it before, though it may have been true for that
 * one alone, and so have been asked first. */
static void when_first_2(void)
{
	x_assert(vez_mutex_lock_when(&m, has_come, &numbers[2], VEZ_FOREVER, NULL) == 0);
	x_assert(state == 2);
	state = 1;
	count++;
	unlock();
}

static void when_second_1(void)
{
	x_await(vez_mutex_waiters(&m) == 1);
	x_assert(vez_mutex_lock_when(&m, has_come, &numbers[1], VEZ_FOREVER, NULL) == 0);
	rc[1] = count;
	state--;
	count++;
	unlock();
}

static void set_to_2(void)
{
	x_await(vez_mutex_waiters(&m) == 2);
	lock();
	state = 1;
	unlock();
	lock();
	if (count == 0) {
		state = 2;
		rc[2] = 0;
	} else {
		state += 2;
	}
	unlock();
}

/* Unless the second had it when it was true for that one alone, the first had it first. */
static void first_was_first(void)
{
	x_assert(rc[2] != 0 || rc[1] == 1);
	counted_2();
}

X_SCENARIO(mutex_when_in_order, .setup = make_default, .thread = { when_first_2, when_second_1, set_to_2 },
	   .check = first_was_first);

/* ---- limits ---- */


static void await_limited(int i, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	lock();
	rc[i] = vez_mutex_await(&m, has_come, &numbers[1], deadline, cancel);
	x_assert((rc[i] == 0) == (state >= 1));
	count++;
	unlock();
}

static void when_until(void)
{
	lock();
	unlock();
	rc[0] = vez_mutex_lock_when(&m, has_come, &numbers[1], x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	if (rc[0] != 0)
		lock();
	count++;
	unlock();
}

static void when_token(void)
{
	rc[0] = vez_mutex_lock_when(&m, has_come, &numbers[1], VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] != 0)
		lock();
	count++;
	unlock();
}

static void when_both(void)
{
	rc[0] = vez_mutex_lock_when(&m, has_come, &numbers[1], x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
	if (rc[0] != 0)
		lock();
	count++;
	unlock();
}

static void await_until(void)
{
	await_limited(0, x_soon(), NULL);
}

static void await_token(void)
{
	await_limited(0, VEZ_FOREVER, &token);
}

static void await_both(void)
{
	await_limited(0, x_soon(), &token);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

X_SCENARIO(mutex_when_deadline, .setup = make_default, .thread = { when_until, set_next }, .check = counted_1);
X_SCENARIO(mutex_when_deadline_fair, .setup = make_fair, .thread = { when_until, set_next }, .check = counted_1);
X_SCENARIO(mutex_when_deadline_behind, .setup = make_default, .thread = { when_until, set_next, lock_and_unlock },
	   .check = counted_1);
X_SCENARIO(mutex_when_token, .setup = make_default, .thread = { when_token, set_next, fire }, .check = counted_1);
X_SCENARIO(mutex_when_token_fair, .setup = make_fair, .thread = { when_token, set_next, fire }, .check = counted_1);
X_SCENARIO(mutex_when_both, .setup = make_default, .thread = { when_both, set_next, fire }, .check = counted_1);
X_SCENARIO(mutex_await_deadline, .setup = make_default, .thread = { await_until, set_next }, .check = counted_1);
X_SCENARIO(mutex_await_deadline_fair, .setup = make_fair, .thread = { await_until, set_next }, .check = counted_1);
X_SCENARIO(mutex_await_deadline_checked, .setup = make_checked, .thread = { await_until, set_next },
	   .check = counted_1);
X_SCENARIO(mutex_await_token, .setup = make_default, .thread = { await_token, set_next, fire }, .check = counted_1);
X_SCENARIO(mutex_await_token_fair, .setup = make_fair, .thread = { await_token, set_next, fire }, .check = counted_1);
X_SCENARIO(mutex_await_both, .setup = make_default, .thread = { await_both, set_next, fire }, .check = counted_1);
X_SCENARIO(mutex_await_both_recursive, .setup = make_recursive, .thread = { await_both, set_next, fire },
	   .check = counted_1);

/* With limits: 0 is with the guard true, whichever comes first; an await that ends otherwise finds it false. */
static void when_exactly_limited(void)
{
	rc[0] = vez_mutex_lock_when(&m, is_exactly, &numbers[1], x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
	if (rc[0] != 0)
		lock();
	x_assert(rc[0] != 0 || state == 1);
	count++;
	unlock();
}

static void await_exactly_limited(void)
{
	lock();
	rc[0] = vez_mutex_await(&m, is_exactly, &numbers[1], x_soon(), &token);
	x_assert((rc[0] == 0) == (state == 1));
	count++;
	unlock();
}

static void when_exactly_token(void)
{
	rc[0] = vez_mutex_lock_when(&m, is_exactly, &numbers[1], VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] != 0)
		lock();
	x_assert(rc[0] != 0 || state == 1);
	count++;
	unlock();
}

X_SCENARIO(mutex_when_overtaken_deadline, .setup = make_default, .thread = { when_exactly_limited, set_and_take_back },
	   .check = counted_1);
X_SCENARIO(mutex_await_overtaken_deadline, .setup = make_default,
	   .thread = { await_exactly_limited, set_and_take_back }, .check = counted_1);
X_SCENARIO(mutex_when_overtaken_token, .setup = make_default,
	   .thread = { when_exactly_token, set_and_take_back, fire }, .check = counted_1, .preemptions = 1, .random = 20000);
X_SCENARIO(mutex_await_overtaken_both, .setup = make_default,
	   .thread = { await_exactly_limited, set_and_take_back, fire }, .check = counted_1, .preemptions = 1,
	   .random = 20000);

/* Two wait for the same, one with limits: the other is not forgotten. */
X_SCENARIO(mutex_when_not_lost, .setup = make_default, .thread = { when_token, when_1, set_next, fire },
	   .check = counted_2, .preemptions = 1, .random = 30000);
X_SCENARIO(mutex_when_not_lost_deadline, .setup = make_default, .thread = { when_until, when_1, set_next },
	   .check = counted_2, .preemptions = 1, .random = 30000);

/* A plain request before a guard that is true is asked, and ends: the guard must not be forgotten. */
static void plain_token(void)
{
	rc[0] = vez_mutex_lock_until(&m, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	if (rc[0] == 0)
		unlock();
	vez__store(&ended, 1, release);
}

static void await_queued_set_and_fire(void)
{
	lock();
	x_await(is_queued_or_over());
	state = 1;
	unlock();
	vez_cancel_fire(&token);
}

X_SCENARIO(mutex_when_behind_token, .setup = make_default,
	   .thread = { plain_token, when_1, await_queued_set_and_fire }, .check = counted_1);
X_SCENARIO(mutex_when_behind_token_fair, .setup = make_fair,
	   .thread = { plain_token, when_1, await_queued_set_and_fire }, .check = counted_1);

static void plain_until(void)
{
	rc[0] = vez_mutex_lock_until(&m, x_soon(), NULL);
	if (rc[0] == 0)
		unlock();
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void await_guard_and_set(void)
{
	lock();
	x_await(vez_mutex_waiters(&m) >= 1);
	state = 1;
	unlock();
}

X_SCENARIO(mutex_when_behind_deadline, .setup = make_default,
	   .thread = { plain_until, when_1, await_guard_and_set }, .check = counted_1);

/* ---- all holds, and back ---- */

static void await_twice_deep(void)
{
	lock();
	lock();
	rc[0] = vez_mutex_await(&m, has_come, &numbers[1], x_soon(), &token);
	x_assert((rc[0] == 0) == (state >= 1));
	x_assert(vez_mutex_holds(&m) == 2);
	count++;
	unlock();
	x_assert(vez_mutex_holds(&m) == 1);
	unlock();
	x_assert(vez_mutex_holds(&m) == 0);
}

static void relock_when(void)
{
	lock();
	rc[0] = vez_mutex_lock_when(&m, has_come, &numbers[1], x_soon(), NULL);
	x_assert((rc[0] == 0) == (state >= 1));
	x_assert(vez_mutex_holds(&m) == (rc[0] == 0 ? 2 : 1));
	if (rc[0] == 0)
		unlock();
	count++;
	unlock();
}

X_SCENARIO(mutex_await_twice_deep, .setup = make_recursive, .thread = { await_twice_deep, set_next, fire },
	   .check = counted_1);
X_SCENARIO(mutex_when_relock, .setup = make_recursive, .thread = { relock_when, set_next }, .check = counted_1);

/* ---- destroyed as soon as that is allowed ---- */

static void end_object(void)
{
	x_assert(vez_mutex_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

static void when_and_destroy(void)
{
	x_assert(vez_mutex_lock_when(&m, has_come, &numbers[1], VEZ_FOREVER, NULL) == 0);
	unlock();
	end_object();
}

static void await_and_destroy(void)
{
	lock();
	x_assert(vez_mutex_await(&m, has_come, &numbers[1], VEZ_FOREVER, NULL) == 0);
	unlock();
	end_object();
}

/* Only a guard that waits can be let in by this. */
static void set_for_the_last(void)
{
	x_await(vez_mutex_waiters(&m) == 1);
	lock();
	state = 1;
	unlock();
}

X_SCENARIO(mutex_when_destroy, .setup = make_default, .thread = { when_and_destroy, set_for_the_last });
X_SCENARIO(mutex_when_destroy_fair, .setup = make_fair, .thread = { when_and_destroy, set_for_the_last });
X_SCENARIO(mutex_await_destroy, .setup = make_default, .thread = { await_and_destroy, set_for_the_last });
X_SCENARIO(mutex_await_destroy_checked, .setup = make_checked, .thread = { await_and_destroy, set_for_the_last });

/* Of two that end, by the guard, deadline or token, the last destroys it. */
static void end(void)
{
	if (vez__fetch_add(&ended, 1, acq_rel) < 1)
		return;
	end_object();
}

static void limited_and_end(void)
{
	if (vez_mutex_lock_when(&m, has_come, &numbers[1], x_soon(), &token) == 0)
		unlock();
	end();
}

static void set_and_end(void)
{
	set_next();
	end();
}

X_SCENARIO(mutex_when_destroy_token, .setup = make_default, .thread = { limited_and_end, set_and_end, fire });
X_SCENARIO(mutex_when_destroy_deadline_fair, .setup = make_fair, .thread = { limited_and_end, set_and_end });

/* ---- on a condition ---- */

static void told(int number)
{
	lock();
	x_assert(vez_cond_wait_when(&c, &m, has_come, &numbers[number], VEZ_FOREVER, NULL) == 0);
	x_assert(state >= number);
	count++;
	unlock();
}

static void told_1(void)
{
	told(1);
}

static void told_2(void)
{
	told(2);
}

static void set_and_signal(void)
{
	lock();
	state++;
	x_assert(vez_cond_signal(&c) <= 1);
	unlock();
}

static void signal_and_set(void)
{
	lock();
	vez_cond_signal(&c);
	state++;
	unlock();
}

static void set_then_signal(void)
{
	set_next();
	vez_cond_signal(&c);
}

static void set_and_broadcast(void)
{
	lock();
	state++;
	vez_cond_broadcast(&c);
	unlock();
}

static void set_then_broadcast(void)
{
	set_next();
	vez_cond_broadcast(&c);
}

static void set_twice_and_signal(void)
{
	set_and_signal();
	set_and_signal();
}

X_SCENARIO(cond_when, .setup = make_default, .thread = { told_1, set_and_signal }, .check = counted_1, .stale = 1);
X_SCENARIO(cond_when_fair, .setup = make_fair, .thread = { told_1, set_and_signal }, .check = counted_1);
X_SCENARIO(cond_when_recursive, .setup = make_recursive, .thread = { told_1, set_and_signal }, .check = counted_1);
X_SCENARIO(cond_when_checked, .setup = make_checked, .thread = { told_1, set_and_signal }, .check = counted_1);
X_SCENARIO(cond_when_before, .setup = make_default, .thread = { told_1, signal_and_set }, .check = counted_1);
X_SCENARIO(cond_when_outside, .setup = make_default, .thread = { told_1, set_then_signal }, .check = counted_1);
X_SCENARIO(cond_when_outside_fair, .setup = make_fair, .thread = { told_1, set_then_signal }, .check = counted_1);
X_SCENARIO(cond_when_contended, .setup = make_default, .thread = { told_1, set_and_signal, lock_and_unlock },
	   .check = counted_1);
X_SCENARIO(cond_when_contended_outside, .setup = make_default, .thread = { told_1, set_then_signal, lock_and_unlock },
	   .check = counted_1);
X_SCENARIO(cond_when_broadcast, .setup = make_default, .thread = { told_1, told_1, set_and_broadcast },
	   .check = counted_2);
X_SCENARIO(cond_when_broadcast_outside, .setup = make_default, .thread = { told_1, told_1, set_then_broadcast },
	   .check = counted_2);
X_SCENARIO(cond_when_different, .setup = make_default, .thread = { told_2, told_1, set_twice_and_signal },
	   .check = counted_2);
X_SCENARIO(cond_when_different_fair, .setup = make_fair, .thread = { told_2, told_1, set_twice_and_signal },
	   .check = counted_2);

/* What is notified is taken by a running thread, once. */
static void told_exactly_1(void)
{
	lock();
	x_assert(vez_cond_wait_when(&c, &m, is_exactly, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(state == 1);
	count++;
	unlock();
}

static void signal_take_back_and_signal(void)
{
	set_and_signal();
	lock();
	state = 0;
	unlock();
	set_and_signal();
}

/* One signal for two who wait for the same lets one in; the other has the next. */
static void told_to_take(void)
{
	lock();
	x_assert(vez_cond_wait_when(&c, &m, has_come, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(state >= 1);
	state--;
	count++;
	unlock();
}

X_SCENARIO(cond_when_overtaken, .setup = make_default, .thread = { told_exactly_1, signal_take_back_and_signal },
	   .check = counted_1);
X_SCENARIO(cond_when_shared_out, .setup = make_default, .thread = { told_to_take, told_to_take, set_twice_and_signal },
	   .check = counted_2, .preemptions = 1, .random = 20000);

/* Whose guard is false is passed over, and does not wake: the one behind, who waits without, is notified. */
static void never_told(void)
{
	lock();
	rc[0] = vez_cond_wait_when(&c, &m, has_come, &numbers[3], VEZ_FOREVER, &token);
	x_assert(rc[0] == ECANCELED);
	unlock();
}

static void told_anyway(void)
{
	lock();
	if (state == 0)
		x_assert(vez_cond_wait(&c, &m) == 0);
	x_assert(state == 1);
	count++;
	unlock();
	vez_cancel_fire(&token);
}

X_SCENARIO(cond_when_passed_over, .setup = make_default, .thread = { never_told, told_anyway, set_and_signal },
	   .check = counted_1);
X_SCENARIO(cond_when_passed_over_fair, .setup = make_fair, .thread = { never_told, told_anyway, set_and_signal },
	   .check = counted_1);

static void told_limited(void)
{
	lock();
	rc[0] = vez_cond_wait_when(&c, &m, has_come, &numbers[1], x_soon(), NULL);
	x_assert((rc[0] == 0) == (state >= 1));
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	count++;
	unlock();
}

static void told_token(void)
{
	lock();
	rc[0] = vez_cond_wait_when(&c, &m, has_come, &numbers[1], VEZ_FOREVER, &token);
	x_assert((rc[0] == 0) == (state >= 1));
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	count++;
	unlock();
}

X_SCENARIO(cond_when_deadline, .setup = make_default, .thread = { told_limited, set_and_signal }, .check = counted_1);
X_SCENARIO(cond_when_deadline_outside, .setup = make_checked, .thread = { told_limited, set_then_signal },
	   .check = counted_1);
X_SCENARIO(cond_when_token, .setup = make_default, .thread = { told_token, set_and_signal, fire },
	   .check = counted_1);
X_SCENARIO(cond_when_not_lost, .setup = make_default, .thread = { told_limited, told_1, set_and_broadcast },
	   .check = counted_2, .preemptions = 1, .random = 30000);

static void told_and_destroy(void)
{
	lock();
	x_assert(vez_cond_wait_when(&c, &m, has_come, &numbers[1], VEZ_FOREVER, NULL) == 0);
	unlock();
	x_assert(vez_cond_destroy(&c) == 0);
	x_dead(&c, sizeof c);
	end_object();
}

static void set_and_signal_the_last(void)
{
	x_await(vez_cond_waiters(&c) == 1);
	lock();
	state = 1;
	x_assert(vez_cond_signal(&c) == 1);
	unlock();
}

static void set_before_signalling_the_last(void)
{
	x_await(vez_cond_waiters(&c) == 1);
	lock();
	state = 1;
	unlock();
	x_assert(vez_cond_signal(&c) == 1);
}

X_SCENARIO(cond_when_destroy, .setup = make_default, .thread = { told_and_destroy, set_and_signal_the_last });
X_SCENARIO(cond_when_destroy_fair, .setup = make_fair, .thread = { told_and_destroy, set_and_signal_the_last });
X_SCENARIO(cond_when_destroy_outside, .setup = make_default,
	   .thread = { told_and_destroy, set_before_signalling_the_last });
