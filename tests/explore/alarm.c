/* SPDX-License-Identifier: MIT */
/* Scenarios of the alarm clock (src/engine/alarm.h): no moment is overlooked, and nothing that is gone is touched; and
 * of tokens that fire at a moment, their hooks, and their children. Seen to fail with the faults mutants/alarm-*. */
#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/cancel.h"
#include "vez/request.h"
#include "vez/sem.h"

static vez_sem_t s;
static vez_request_t r[2];
static vez_cancel_t token, child;
static vez_cancel_hook_t hook;
static int calls;
static int told, chosen;
static int rc[X_THREADS];

static void make(void)
{
	x_alive(&s, sizeof s);
	x_alive(r, sizeof r);
	x_alive(&token, sizeof token);
	x_alive(&hook, sizeof hook);
	X_NAME(s);
	X_NAME(r);
	X_NAME(token);
	X_NAME(child);
	X_NAME(hook);
	x_make_alarm();
	x_assert(vez_sem_init(&s, 0, 0, 0) == 0);
	vez_cancel_init(&token);
	vez_request_init(&r[0], NULL, NULL);
	vez_request_init(&r[1], NULL, NULL);
	calls = told = chosen = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void left(uint32_t permits)
{
	x_assert(vez_sem_waiters(&s) == 0 && vez_sem_permits(&s) == permits);
	x_assert(vez_sem_destroy(&s) == 0);
}

static void left_0(void)
{
	left(0);
}

/* ---- a moment that is set is seen ---- */

static void expire(int i)
{
	vez_request_set_limits(&r[i], x_soon(), NULL);
	int ended = vez_sem_acquire_async(&s, 1, &r[i]);
	x_assert(ended == EINPROGRESS || ended == ETIMEDOUT);
	x_assert(vez_request_wait(&r[i], VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_result(&r[i]) == ETIMEDOUT);
	x_dead(&r[i], sizeof r[i]);
}

/* A member is granted at once, though its moment has been set; another thread's moment is seen all the same. */
static void choose_at_once(void)
{
	vez_sem_t one = VEZ_SEM_INITIALIZER(1);
	vez_select_t any;
	vez_request_t member, *won;
	vez_select_init(&any);
	vez_select_case(&any, &member);
	vez_request_set_limits(&member, x_soon(), NULL);
	vez_sem_acquire_async(&one, 1, &member);
	int ended = vez_select_wait(&any, VEZ_FOREVER, NULL, &won);
	x_assert(ended == 0 || ended == ETIMEDOUT);
	vez__store(&chosen, 1, release);
}

static void expire_after_choice(void)
{
	x_await(vez__load(&chosen, acquire) == 1);
	expire(0);
}

static void expire_0(void)
{
	expire(0);
}

static void expire_1(void)
{
	expire(1);
}

/* Lowers the moment at which the clock is to wake, too. */
static void file_1(void)
{
	vez_request_set_limits(&r[1], x_soon(), NULL);
	rc[1] = vez_sem_acquire_async(&s, 1, &r[1]);
	x_assert(rc[1] == EINPROGRESS || rc[1] == ETIMEDOUT);
}

static void left_one(void)
{
	rc[2] = vez_request_cancel(&r[1]);
	x_assert(rc[2] == 0 || rc[2] == EALREADY);
	left(0);
}

X_SCENARIO(alarm_member_at_once, .setup = make, .thread = { choose_at_once, expire_after_choice, x_alarm },
	   .check = left_0, .preemptions = 1, .random = 2000);
X_SCENARIO(alarm_set_one, .setup = make, .thread = { expire_0, x_alarm }, .check = left_0, .stale = 1);
X_SCENARIO(alarm_set_two, .setup = make, .thread = { expire_0, file_1, x_alarm }, .check = left_one, .preemptions = 1,
	   .random = 5000);
X_SCENARIO(alarm_set_both, .setup = make, .thread = { expire_0, expire_1, x_alarm }, .check = left_0,
	   .preemptions = 1, .random = 5000);

/* The second is due before the one for which the thread sleeps. */
static void expire_late_then_soon(void)
{
	vez_request_set_limits(&r[0], x_soon() + 1000000, NULL);
	int ended = vez_sem_acquire_async(&s, 1, &r[0]);
	x_assert(ended == EINPROGRESS || ended == ETIMEDOUT);
	vez_request_set_limits(&r[1], x_soon(), NULL);
	ended = vez_sem_acquire_async(&s, 1, &r[1]);
	x_assert(ended == EINPROGRESS || ended == ETIMEDOUT);
	x_assert(vez_request_wait(&r[1], VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_wait(&r[0], VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_result(&r[0]) == ETIMEDOUT && vez_request_result(&r[1]) == ETIMEDOUT);
}

X_SCENARIO(alarm_earlier, .setup = make, .thread = { expire_late_then_soon, x_alarm }, .check = left_0,
	   .preemptions = 1, .random = 5000);

/* ---- taken off again ---- */

static void release(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void acquire_until(void)
{
	vez_request_set_limits(&r[0], x_soon(), NULL);
	rc[0] = vez_sem_acquire_async(&s, 1, &r[0]);
	x_assert(rc[0] == 0 || rc[0] == EINPROGRESS || rc[0] == ETIMEDOUT);
	x_assert(vez_request_wait(&r[0], VEZ_FOREVER, NULL) == 0);
	rc[0] = vez_request_result(&r[0]);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	x_dead(&r[0], sizeof r[0]);
}

static void left_if_expired(void)
{
	left(rc[0] == 0 ? 0 : 1);
}

static void acquire_and_release(void)
{
	release();
	acquire_until();
}

/* Queued, and cancelled, by one thread: the clock may have taken it meanwhile. */
static void file_and_cancel(void)
{
	vez_request_set_limits(&r[0], x_soon(), NULL);
	rc[0] = vez_sem_acquire_async(&s, 1, &r[0]);
	x_assert(rc[0] == EINPROGRESS || rc[0] == ETIMEDOUT);
	if (rc[0] == EINPROGRESS && vez_request_cancel(&r[0]) == 0)
		x_assert(vez_request_result(&r[0]) == ECANCELED);
	else
		x_assert(vez_request_wait(&r[0], VEZ_FOREVER, NULL) == 0);
	x_dead(&r[0], sizeof r[0]);
}

X_SCENARIO(alarm_unset, .setup = make, .thread = { acquire_until, release, x_alarm }, .check = left_if_expired,
	   .preemptions = 1, .random = 5000);
X_SCENARIO(alarm_not_set, .setup = make, .thread = { acquire_and_release, x_alarm }, .check = left_if_expired);
X_SCENARIO(alarm_cancel, .setup = make, .thread = { file_and_cancel, x_alarm }, .check = left_0, .preemptions = 2,
	   .stale = 1);

/* ---- a token fires at a moment ---- */

static void fire_at_and_wait(void)
{
	vez_cancel_fire_at(&token, x_soon());
	x_assert(vez_sem_acquire_until(&s, 1, VEZ_FOREVER, &token) == ECANCELED);
	x_assert(vez_cancel_fired(&token));
	x_assert(vez_cancel_destroy(&token) == 0);
	x_dead(&token, sizeof token);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

/* Destroyed before its moment, or while it fires. */
static void fire_at_and_destroy(void)
{
	vez_cancel_fire_at(&token, x_soon());
	x_assert(vez_cancel_destroy(&token) == 0);
	x_dead(&token, sizeof token);
}

static void fire_at_then_never(void)
{
	vez_cancel_fire_at(&token, x_soon());
	vez_cancel_fire_at(&token, VEZ_FOREVER);
	vez_cancel_clear(&token);
	x_assert(!vez_cancel_fired(&token));
}

static void unfired(void)
{
	x_assert(!vez_cancel_fired(&token));
	x_assert(vez_cancel_destroy(&token) == 0);
}

/* A fire before the moment takes nothing back, and neither does a clear: the token fires again. */
static void fire_at_fire_and_wait(void)
{
	vez_cancel_fire_at(&token, x_soon());
	vez_cancel_fire(&token);
	vez_cancel_clear(&token);
	rc[0] = vez_sem_acquire_until(&s, 1, x_soon() + 5000000, &token);
	x_assert(rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

X_SCENARIO(alarm_token, .setup = make, .thread = { fire_at_and_wait, x_alarm }, .check = left_0, .preemptions = 2,
	   .stale = 1);
X_SCENARIO(alarm_token_destroy, .setup = make, .thread = { fire_at_and_destroy, x_alarm }, .preemptions = 2);
X_SCENARIO(alarm_token_never, .setup = make, .thread = { fire_at_then_never, x_alarm }, .check = unfired,
	   .preemptions = 2, .stale = 1);
X_SCENARIO(alarm_token_fire, .setup = make, .thread = { fire_at_fire_and_wait, x_alarm }, .check = left_0,
	   .preemptions = 1, .random = 5000);

static void wait_for_token(void)
{
	x_assert(vez_sem_acquire_until(&s, 1, VEZ_FOREVER, &token) == ECANCELED);
}

static void make_due(void)
{
	make();
	vez_cancel_fire_at(&token, x_soon());
}

static void left_fired(void)
{
	x_assert(vez_cancel_fired(&token));
	x_assert(vez_cancel_destroy(&token) == 0);
	left(0);
}

X_SCENARIO(alarm_token_two_fires, .setup = make_due, .thread = { wait_for_token, fire, x_alarm }, .check = left_fired,
	   .preemptions = 1, .random = 5000);

/* ---- hooks: detached while the token fires ---- */

static void count(void *arg)
{
	(void)arg;
	calls++;
}

static void make_hook(void)
{
	make();
	x_assert(vez_cancel_attach(&token, &hook, count, NULL) == 0);
}

/* It has run, or never will: either way it may go. */
static void detach(void)
{
	rc[0] = vez_cancel_detach(&token, &hook);
	x_assert(calls == (rc[0] == 0 ? 0 : 1));
	x_dead(&hook, sizeof hook);
}

static void try_detach(void)
{
	rc[0] = vez_cancel_try_detach(&token, &hook);
	if (rc[0] == 0)
		x_dead(&hook, sizeof hook);
}

static void ran_or_not(void)
{
	x_assert(calls == (rc[0] == 0 ? 0 : 1));
	x_assert(vez_cancel_destroy(&token) == 0);
}

static void attach(void)
{
	rc[0] = vez_cancel_attach(&token, &hook, count, NULL);
	x_assert(rc[0] == 0 || calls == 1);
}

static void ran_once(void)
{
	x_assert(calls == 1);
	x_assert(vez_cancel_destroy(&token) == 0);
}

X_SCENARIO(alarm_hook_detach, .setup = make_hook, .thread = { detach, fire }, .check = ran_or_not, .stale = 1);
X_SCENARIO(alarm_hook_detach_two_fires, .setup = make_hook, .thread = { detach, fire, fire }, .check = ran_or_not);
X_SCENARIO(alarm_hook_try_detach, .setup = make_hook, .thread = { try_detach, fire }, .check = ran_or_not);
X_SCENARIO(alarm_hook_attach, .setup = make, .thread = { attach, fire }, .check = ran_once, .stale = 1);

/* The hook frees itself. */
static void count_and_free(void *arg)
{
	calls++;
	x_dead(arg, sizeof(vez_cancel_hook_t));
}

static void make_freeing_hook(void)
{
	make();
	x_assert(vez_cancel_attach(&token, &hook, count_and_free, &hook) == 0);
}

X_SCENARIO(alarm_hook_free, .setup = make_freeing_hook, .thread = { fire, fire }, .check = ran_once, .stale = 1);

/* ---- a child is fired with its parent, or when it is made ---- */

static void adopt_and_wait(void)
{
	x_assert(vez_cancel_init_child(&child, &token) == 0);
	x_assert(vez_sem_acquire_until(&s, 1, VEZ_FOREVER, &child) == ECANCELED);
	x_assert(vez_cancel_destroy(&child) == 0);
}

X_SCENARIO(alarm_child, .setup = make, .thread = { adopt_and_wait, fire }, .check = left_fired, .preemptions = 2);
