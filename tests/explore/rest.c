/* SPDX-License-Identifier: MIT */
/* Scenarios of what calls leave to the library's thread (src/engine/rest.h): each function is called once and in order,
 * each body runs once, and what may go is not touched. A batch is one. Seen to fail with the faults mutants/rest-*. */
#include "src/engine/rest.h"

#include <errno.h>

#include "scenario.h"
#include "src/engine/completion.h"
#include "src/sync/call.h"
#include "vez/call.h"
#include "vez/cancel.h"
#include "vez/request.h"
#include "vez/sem.h"

static vez_sem_t s, other;
static vez_request_t r[3];
static vez_cancel_t token;
static vez_monitor_t m;
static unsigned called;
static unsigned place[3];
static int rc[X_THREADS];
static bool open;
static int ran, order[3];
static unsigned arrived;

static void called_in_turn(vez_request_t *request, int result, void *arg)
{
	(void)arg;
	place[request - r] = vez__fetch_add(&called, 1, relaxed) + 1;
	rc[request - r] = result;
}

static void make(void)
{
	x_alive(&s, sizeof s);
	x_alive(&m, sizeof m);
	x_alive(r, sizeof r);
	X_NAME(s);
	X_NAME(other);
	X_NAME(r);
	X_NAME(token);
	X_NAME(m);
	x_make_alarm();
	vez__calls_batch = 1;
	vez__call_batch = 1;
	vez_sem_init(&s, 0, 0, 0);
	vez_sem_init(&other, 0, 0, 0);
	vez_cancel_init(&token);
	vez_monitor_init(&m, NULL);
	called = arrived = 0;
	open = false;
	ran = 0;
	for (int i = 0; i < 3; i++) {
		vez_request_init(&r[i], called_in_turn, NULL);
		place[i] = 0;
		rc[i] = -1;
	}
}

/* ---- functions ---- */

static void make_two(void)
{
	make();
	for (int i = 0; i < 2; i++) {
		vez_request_set_limits(&r[i], VEZ_FOREVER, &token);
		x_assert(vez_sem_acquire_async(&s, 1, &r[i]) == EINPROGRESS);
	}
	x_assert(vez_sem_acquire_async(&other, 1, &r[2]) == EINPROGRESS);
}

static void release_two(void)
{
	x_assert(vez_sem_release(&s, 2) == 0);
	x_assert(place[0] == 1);
}

static void await_second(void)
{
	x_assert(vez_request_wait(&r[1], VEZ_FOREVER, NULL) == 0);
	x_assert(place[1] == 2 && rc[1] == 0);
	x_dead(&r[1], sizeof r[1]);
}

X_SCENARIO(rest_function, .setup = make_two, .thread = { release_two, await_second, x_alarm });

/* What the same thread completes later is called later. */
static void release_two_then_other(void)
{
	release_two();
	x_assert(vez_sem_release(&other, 1) == 0);
	x_assert(vez_request_wait(&r[2], VEZ_FOREVER, NULL) == 0);
	x_assert(place[1] == 2 && place[2] == 3);
}

X_SCENARIO(rest_later, .setup = make_two, .thread = { release_two_then_other, x_alarm });

static void fire(void)
{
	vez_cancel_fire(&token);
	x_assert(place[0] == 1 && rc[0] == ECANCELED);
	x_assert(vez_request_wait(&r[1], VEZ_FOREVER, NULL) == 0);
	x_assert(place[1] == 2 && rc[1] == ECANCELED);
}

X_SCENARIO(rest_fire, .setup = make_two, .thread = { fire, x_alarm });

/* Two threads leave something at once. */
static void make_two_each(void)
{
	make();
	for (int i = 0; i < 3; i++)
		x_assert(vez_sem_acquire_async(i == 2 ? &other : &s, 1, &r[i]) == EINPROGRESS);
}

static void release_one(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void await_all(void)
{
	for (int i = 0; i < 2; i++)
		x_assert(vez_request_wait(&r[i], VEZ_FOREVER, NULL) == 0);
	x_assert(called == 2);
	x_assert(vez_sem_destroy(&s) == 0);
	x_dead(&s, sizeof s);
}

/* The object may go when its functions have been called, though the release has not returned. */
static void release_two_only(void)
{
	x_assert(vez_sem_release(&s, 2) == 0);
}

X_SCENARIO(rest_destroy, .setup = make_two_each, .thread = { release_two_only, await_all, x_alarm });

/* The first one's function files it again, and lets it go. */
static void again(vez_request_t *request, int result, void *arg)
{
	called_in_turn(request, result, arg);
	vez_request_init(request, called_in_turn, NULL);
	x_assert(vez_sem_acquire_async(&s, 1, request) == EINPROGRESS);
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void make_again(void)
{
	make();
	vez_request_init(&r[0], again, NULL);
	x_assert(vez_sem_acquire_async(&s, 1, &r[0]) == EINPROGRESS);
}

static void await_again(void)
{
	x_await(vez__load(&called, relaxed) == 2);
	x_assert(vez_request_wait(&r[0], VEZ_FOREVER, NULL) == 0);
	x_assert(place[0] == 2);
}

X_SCENARIO(rest_again, .setup = make_again, .thread = { release_one, await_again, x_alarm });

/* A handler leaves something while its thread is anywhere. */
static void release_in_handler(void)
{
	x_assert(vez_sem_release(&s, 2) == 0);
}

static void release_other_and_await(void)
{
	x_assert(vez_sem_release(&other, 1) == 0);
	for (int i = 0; i < 3; i++)
		x_assert(vez_request_wait(&r[i], VEZ_FOREVER, NULL) == 0);
	x_assert(called == 3 && place[0] < place[1]);
}

X_SCENARIO(rest_signal, .setup = make_two, .thread = { release_other_and_await, x_alarm },
	   .signal = release_in_handler, .preemptions = 1, .random = 5000);

/* Who cancels has its own called, also behind another one. */
static void make_big(void)
{
	make();
	x_assert(vez_sem_acquire_async(&s, 2, &r[0]) == EINPROGRESS);
	x_assert(vez_sem_acquire_async(&s, 1, &r[1]) == EINPROGRESS);
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void cancel_big(void)
{
	rc[3] = vez_request_cancel(&r[0]);
	x_assert(rc[3] == 0 || rc[3] == EALREADY);
	if (rc[3] == 0) {
		x_assert(place[0] > 0 && rc[0] == ECANCELED);
		x_dead(&r[0], sizeof r[0]);
	}
	x_assert(vez_request_wait(&r[1], VEZ_FOREVER, NULL) == 0);
}

X_SCENARIO(rest_cancel, .setup = make_big, .thread = { cancel_big, release_two_only, x_alarm }, .preemptions = 1,
	   .random = 5000);

/* ---- bodies ---- */

static bool is_open(void *arg)
{
	(void)arg;
	return open;
}

static void note(void *number)
{
	order[ran++] = *(int *)number;
}

static void open_it(void *arg)
{
	(void)arg;
	open = true;
}

static void make_calls(void)
{
	static int numbers[] = { 1, 2 };
	make();
	for (int i = 0; i < 2; i++) {
		vez_request_init(&r[i], NULL, NULL);
		x_assert(vez_monitor_call_async(&m, is_open, note, &numbers[i], &r[i]) == EINPROGRESS);
	}
}

static void enter_and_open(void)
{
	vez_monitor_enter(&m);
	open = true;
	vez_monitor_exit(&m);
}

static void await_both(void)
{
	for (int i = 0; i < 2; i++)
		x_assert(vez_request_wait(&r[i], VEZ_FOREVER, NULL) == 0);
}

static void call_and_open(void)
{
	x_assert(vez_monitor_call(&m, open_it, NULL) == 0);
	await_both();
}

static void in_order(void)
{
	x_assert(ran == 2 && order[0] == 1 && order[1] == 2);
}

static void gone(void)
{
	x_assert(vez_monitor_destroy(&m) == 0);
}

static void in_order_and_gone(void)
{
	in_order();
	gone();
}

/* Whoever learns that they have run may take the monitor away, though the library's thread was asked to come. */
static void await_both_and_unmap(void)
{
	await_both();
	in_order();
	x_await(vez__load(&arrived, acquire) == 1);
	x_assert(vez_monitor_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

static void enter_and_open_last(void)
{
	enter_and_open();
	vez__store(&arrived, 1, release);
}

static void enter_and_exit(void)
{
	vez_monitor_enter(&m);
	vez_monitor_exit(&m);
	vez__fetch_add(&arrived, 1, release);
}

static void await_both_and_unmap_two(void)
{
	await_both();
	x_await(vez__load(&arrived, acquire) == 1);
	x_assert(vez_monitor_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

/* The one that opens enters a second time, and runs the rest, unless the library's thread has. */
static void open_and_enter(void)
{
	enter_and_open();
	enter_and_exit();
}

X_SCENARIO(rest_bodies, .setup = make_calls, .thread = { call_and_open, x_alarm }, .check = in_order_and_gone,
	   .preemptions = 2, .stale = 1);
X_SCENARIO(rest_bodies_unmap, .setup = make_calls, .thread = { enter_and_open_last, await_both_and_unmap, x_alarm },
	   .preemptions = 1, .random = 5000);
X_SCENARIO(rest_bodies_entered, .setup = make_calls, .thread = { open_and_enter, await_both_and_unmap_two, x_alarm },
	   .preemptions = 1, .random = 5000);

/* A call, and an attempt, that come when the rest is left, come after it. */
static void open_and_call(void)
{
	static int last = 3;
	enter_and_open();
	x_assert(vez_monitor_call(&m, note, &last) == 0);
	x_assert(ran == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3);
}

static void open_and_attempt(void)
{
	static int last = 3;
	enter_and_open();
	x_assert(vez_monitor_call_when(&m, is_open, note, &last, VEZ_NOW, NULL) == 0);
	x_assert(ran == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3);
	x_assert(vez_monitor_destroy(&m) == 0);
	x_dead(&m, sizeof m);
}

X_SCENARIO(rest_bodies_call, .setup = make_calls, .thread = { open_and_call, x_alarm }, .check = gone,
	   .preemptions = 2);
X_SCENARIO(rest_bodies_attempt, .setup = make_calls, .thread = { open_and_attempt, x_alarm }, .preemptions = 2);

/* Where no thread can be made. */
static void open_alone(void)
{
	enter_and_open();
	await_both();
	in_order_and_gone();
}

static void make_calls_alone(void)
{
	static int numbers[] = { 1, 2 };
	vez__calls_batch = 1;
	vez__call_batch = 1;
	vez_monitor_init(&m, NULL);
	open = false;
	ran = 0;
	x_alive(&m, sizeof m);
	for (int i = 0; i < 2; i++) {
		vez_request_init(&r[i], NULL, NULL);
		x_assert(vez_monitor_call_async(&m, is_open, note, &numbers[i], &r[i]) == EINPROGRESS);
	}
}

X_SCENARIO(rest_bodies_alone, .setup = make_calls_alone, .thread = { open_alone });
