/* SPDX-License-Identifier: MIT */
/* Scenarios of waiting for a moment or a token (vez/sleep.h). */
#include "vez/sleep.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_cancel_t token, other;
static vez_request_t request, member[2], *winner;
static vez_select_t any;
static int told;
static int rc[X_THREADS];
static int calls, result;

static void make(void)
{
	x_alive(&token, sizeof token);
	x_alive(&other, sizeof other);
	x_alive(&request, sizeof request);
	X_NAME(token);
	X_NAME(other);
	X_NAME(request);
	X_NAME(member);
	X_NAME(any);
	vez_cancel_init(&token);
	vez_cancel_init(&other);
	told = calls = 0;
	result = -1;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_with_alarm(void)
{
	make();
	x_make_alarm();
}

static void unused(void)
{
	x_assert(vez_cancel_destroy(&token) == 0 && vez_cancel_destroy(&other) == 0);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

static void tell_and_fire(void)
{
	told = 1;
	vez_cancel_fire(&token);
}

/* ---- threads ---- */

static void wait_told(void)
{
	x_assert(vez_cancel_wait(&token, VEZ_FOREVER) == 0);
	x_assert(told == 1);
}

X_SCENARIO(sleep_wait, .setup = make, .thread = { wait_told, tell_and_fire }, .check = unused, .stale = 1);
X_SCENARIO(sleep_wait_two, .setup = make, .thread = { wait_told, wait_told, tell_and_fire }, .check = unused);

/* The token, and the core on the stack of the thread that slept there, may go. */
static void wait_and_unmap(void)
{
	x_assert(vez_cancel_wait(&token, VEZ_FOREVER) == 0);
	x_dead(&token, sizeof token);
}

static void fire_awaited(void)
{
	x_await(vez__load(&token.arrivals_, relaxed) != 0);
	vez_cancel_fire(&token);
}

X_SCENARIO(sleep_wait_unmap, .setup = make, .thread = { wait_and_unmap, fire_awaited }, .stale = 1);

static void wait_until_soon(void)
{
	rc[0] = vez_cancel_wait(&token, x_soon());
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
	x_assert(rc[0] == ETIMEDOUT || told == 1);
}

static void sleep_until_soon(void)
{
	rc[0] = vez_sleep_until(x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	x_assert(rc[0] == 0 || told == 1);
}

X_SCENARIO(sleep_wait_or_deadline, .setup = make, .thread = { wait_until_soon, tell_and_fire }, .check = unused);
X_SCENARIO(sleep_until_or_token, .setup = make, .thread = { sleep_until_soon, tell_and_fire }, .check = unused,
	   .stale = 1);

/* Cleared at once, a fire ends the wait all the same: if it met it. */
static void wait_cleared(void)
{
	x_assert(vez_cancel_wait(&token, VEZ_FOREVER) == 0);
}

static void fire_clear_fire(void)
{
	vez_cancel_fire(&token);
	vez_cancel_clear(&token);
	vez_cancel_fire(&token);
}

X_SCENARIO(sleep_wait_cleared, .setup = make, .thread = { wait_cleared, fire_clear_fire }, .check = unused);

/* ---- requests ---- */

static void done(vez_request_t *r, int code, void *arg)
{
	(void)r;
	(void)arg;
	calls++;
	result = code;
}

static void file(vez_deadline_t deadline)
{
	vez_request_init(&request, done, NULL);
	vez_request_set_limits(&request, deadline, NULL);
	rc[0] = vez_cancel_wait_async(&token, &request);
}

static void watch(void)
{
	file(VEZ_FOREVER);
	x_assert(rc[0] == 0 || rc[0] == EINPROGRESS);
	x_assert(rc[0] == EINPROGRESS || told == 1);
	x_assert(vez_request_wait(&request, VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_result(&request) == 0 && told == 1);
	x_dead(&request, sizeof request);
	x_assert(vez_cancel_destroy(&token) == 0);
	x_dead(&token, sizeof token);
}

static void told_once(void)
{
	x_assert(calls == (rc[0] == EINPROGRESS));
	x_assert(calls == 0 || result == 0);
}

X_SCENARIO(sleep_watch, .setup = make, .thread = { watch, tell_and_fire }, .check = told_once);

/* It is withdrawn, or its deadline passes, while the token fires. */
static void watch_and_cancel(void)
{
	file(VEZ_FOREVER);
	if (rc[0] == EINPROGRESS) {
		rc[1] = vez_request_cancel(&request);
		x_assert(rc[1] == 0 || rc[1] == EALREADY);
		x_assert(vez_request_wait(&request, VEZ_FOREVER, NULL) == 0);
		/* EALREADY also where it was withdrawn while the thread that fires is still to enter because of it. */
		int code = vez_request_result(&request);
		x_assert(code == ECANCELED || (rc[1] == EALREADY && code == 0));
		x_dead(&request, sizeof request);
	}
}

static void watched_once(void)
{
	x_assert(calls == (rc[0] == EINPROGRESS));
	unused();
}

X_SCENARIO(sleep_watch_cancelled, .setup = make, .thread = { watch_and_cancel, fire }, .check = watched_once);

static void watch_until_soon(void)
{
	file(x_soon());
	x_assert(rc[0] == 0 || rc[0] == EINPROGRESS || rc[0] == ETIMEDOUT);
	x_assert(vez_request_wait(&request, VEZ_FOREVER, NULL) == 0);
	int code = vez_request_result(&request);
	x_assert(code == 0 || code == ETIMEDOUT);
	x_dead(&request, sizeof request);
}

X_SCENARIO(sleep_watch_deadline, .setup = make_with_alarm, .thread = { watch_until_soon, fire, x_alarm },
	   .check = watched_once);

/* ---- the first of two tokens ---- */

static void choose(void)
{
	vez_select_init(&any);
	int first = vez_cancel_wait_async(&token, vez_select_case(&any, &member[0]));
	int second = vez_cancel_wait_async(&other, vez_select_case(&any, &member[1]));
	x_assert(first == 0 || first == EINPROGRESS);
	x_assert(first == 0 ? second == ECANCELED : second == 0 || second == EINPROGRESS || second == ECANCELED);
	x_assert(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner) == 0);
	x_assert(vez_cancel_fired(winner == &member[0] ? &token : &other));
	x_assert(vez_request_result(winner) == 0);
	x_assert(vez_request_result(winner == &member[0] ? &member[1] : &member[0]) == ECANCELED);
}

static void fire_other(void)
{
	vez_cancel_fire(&other);
}

X_SCENARIO(sleep_first_of_two, .setup = make, .thread = { choose, fire, fire_other }, .check = unused);
X_SCENARIO(sleep_one_of_two, .setup = make, .thread = { choose, fire }, .check = unused);
