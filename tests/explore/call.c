/* SPDX-License-Identifier: MIT */
/* Scenarios of delegated and guarded calls (vez/call.h): a counter, a buffer of one place, limits, and batches. */
#include "vez/call.h"

#include <errno.h>
#include <string.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/sync/call.h"
#include "vez/sem.h"

static vez_monitor_t m;
static vez_cancel_t token;
static vez_request_t r;
static int count, full, told;
static int rc[X_THREADS];
static unsigned calls;

static void make(void)
{
	x_alive(&m, sizeof m);
	x_alive(&token, sizeof token);
	X_NAME(m);
	X_NAME(token);
	X_NAME(r);
	vez_monitor_init(&m, NULL);
	vez_cancel_init(&token);
	vez__call_batch = 64;
	count = full = told = 0;
	calls = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void make_batch_1(void)
{
	make();
	vez__call_batch = 1;
}

static void left(void)
{
	x_assert(!m.calls_ && m.core_.length_ == 0);
	x_assert(vez_monitor_destroy(&m) == 0);
}

static void counted_3(void)
{
	x_assert(count == 3);
	left();
}

static void counted_4(void)
{
	x_assert(count == 4);
	left();
}

static void increment(void *arg)
{
	(void)arg;
	count++;
}

static void call_increment(void)
{
	x_assert(vez_monitor_call(&m, increment, NULL) == 0);
}

static void call_increment_twice(void)
{
	call_increment();
	call_increment();
}

/* Bodies run one at a time, each once, and before their calls return (the counter is a plain variable). */
X_SCENARIO(call_three, .setup = make, .thread = { call_increment, call_increment, call_increment }, .check = counted_3);
X_SCENARIO(call_two_twice, .setup = make, .thread = { call_increment_twice, call_increment_twice }, .check = counted_4,
	   .stale = 1);

/* A body sees what came before its call, and its caller what the body did, whoever ran it. */
static void read_told(void *arg)
{
	*(int *)arg = told;
}

static void tell(void *arg)
{
	(void)arg;
	told = 1;
}

static bool is_told(void *arg)
{
	(void)arg;
	return told;
}

static void call_tell(void)
{
	x_assert(vez_monitor_call(&m, tell, NULL) == 0);
}

static void call_when_told(void)
{
	int seen = 0;
	x_assert(vez_monitor_call_when(&m, is_told, read_told, &seen, VEZ_FOREVER, NULL) == 0);
	x_assert(seen == 1);
}

/* The guard becomes true between the look at it and the queueing. */
X_SCENARIO(call_guard_or_queue, .setup = make, .thread = { call_when_told, call_tell }, .check = left);
X_SCENARIO(call_guard_two, .setup = make, .thread = { call_when_told, call_when_told, call_tell }, .check = left);

/* The one who changes the state is inside by vez_monitor_enter. */
static void enter_and_tell(void)
{
	vez_monitor_enter(&m);
	told = 1;
	vez_monitor_exit(&m);
}

X_SCENARIO(call_guard_entered, .setup = make, .thread = { call_when_told, enter_and_tell }, .check = left, .stale = 1);
X_SCENARIO(call_entered, .setup = make, .thread = { call_increment, call_increment, enter_and_tell }, .stale = 1);

/* A buffer of one place. */
static bool is_empty(void *arg)
{
	(void)arg;
	return !full;
}

static bool is_full(void *arg)
{
	(void)arg;
	return full;
}

static void fill(void *arg)
{
	(void)arg;
	x_assert(!full);
	full = 1;
}

static void empty(void *arg)
{
	(void)arg;
	x_assert(full);
	full = 0;
	count++;
}

static void put(void)
{
	x_assert(vez_monitor_call_when(&m, is_empty, fill, NULL, VEZ_FOREVER, NULL) == 0);
}

static void put_twice(void)
{
	put();
	put();
}

static void take(void)
{
	x_assert(vez_monitor_call_when(&m, is_full, empty, NULL, VEZ_FOREVER, NULL) == 0);
}

static void take_twice(void)
{
	take();
	take();
}

static void emptied(void)
{
	x_assert(!full && count == 2);
	left();
}

X_SCENARIO(call_buffer, .setup = make, .thread = { put_twice, take_twice }, .check = emptied);
X_SCENARIO(call_buffer_three, .setup = make, .thread = { put_twice, take, take }, .check = emptied);

/* The rest of a batch is left to a caller, who may be about to sleep. */
X_SCENARIO(call_batch, .setup = make_batch_1, .thread = { call_increment, call_increment, call_increment },
	   .check = counted_3);
X_SCENARIO(call_batch_twice, .setup = make_batch_1, .thread = { call_increment_twice, call_increment_twice },
	   .check = counted_4, .stale = 1);
X_SCENARIO(call_batch_guard, .setup = make_batch_1, .thread = { call_when_told, call_increment, call_tell },
	   .check = left);

/* Limits: a call that gives up has not run and never will; one that has run returns 0. */
static void call_soon(void)
{
	rc[0] = vez_monitor_call_when(&m, is_told, increment, NULL, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void call_with_token(void)
{
	rc[0] = vez_monitor_call_when(&m, is_told, increment, NULL, VEZ_FOREVER, &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

static void call_limited(void)
{
	rc[0] = vez_monitor_call_when(&m, NULL, increment, NULL, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

static void ran_or_not(void)
{
	x_assert(count == (rc[0] == 0));
	left();
	x_assert(vez_cancel_destroy(&token) == 0);
}

X_SCENARIO(call_give_up, .setup = make, .thread = { call_soon, call_tell }, .check = ran_or_not);
X_SCENARIO(call_token, .setup = make, .thread = { call_with_token, call_tell, fire }, .check = ran_or_not);
X_SCENARIO(call_limits, .setup = make, .thread = { call_limited, call_tell, fire }, .check = ran_or_not);

/* Who gives up is in the way of nobody, and runs what may run. */
static void call_never(void)
{
	x_assert(vez_monitor_call_when(&m, is_full, empty, NULL, x_soon(), NULL) == ETIMEDOUT);
}

X_SCENARIO(call_give_up_first, .setup = make, .thread = { call_never, call_when_told, call_tell }, .check = left);

/* The token fires before anybody knows of the call. */
static void call_never_token(void)
{
	x_assert(vez_monitor_call_when(&m, is_full, empty, NULL, VEZ_FOREVER, &token) == ECANCELED);
}

X_SCENARIO(call_token_never, .setup = make, .thread = { call_never_token, enter_and_tell, fire }, .check = left);

/* Without a thread. */
static void called(vez_request_t *request, int result, void *arg)
{
	(void)arg;
	x_assert(request == &r);
	rc[0] = result;
	vez__fetch_add(&calls, 1, relaxed);
	x_dead(&r, sizeof r);
}

static void make_async(void)
{
	make();
	x_alive(&r, sizeof r);
	vez_request_init(&r, called, NULL);
}

static void call_async(void)
{
	int filed = vez_monitor_call_async(&m, is_told, increment, NULL, &r);
	x_assert(filed == 0 || filed == EINPROGRESS);
	if (filed != 0)
		return;
	rc[0] = 0;
	vez__fetch_add(&calls, 1, relaxed);
}

static void completed(void)
{
	x_assert(calls == 1 && rc[0] == 0 && count == 1);
	left();
}

X_SCENARIO(call_async_guard, .setup = make_async, .thread = { call_async, call_tell }, .check = completed);
X_SCENARIO(call_async_busy, .setup = make_async, .thread = { call_async, call_tell, enter_and_tell },
	   .check = completed);

static void make_async_token(void)
{
	make_async();
	vez_request_set_limits(&r, VEZ_FOREVER, &token);
}

static void call_async_or_fired(void)
{
	int filed = vez_monitor_call_async(&m, is_told, increment, NULL, &r);
	x_assert(filed == 0 || filed == EINPROGRESS || filed == ECANCELED);
	if (filed == EINPROGRESS)
		return;
	rc[0] = filed;
	vez__fetch_add(&calls, 1, relaxed);
}

static void completed_or_not(void)
{
	x_assert(calls == 1);
	ran_or_not();
}

X_SCENARIO(call_async_token, .setup = make_async_token, .thread = { call_async_or_fired, call_tell, fire },
	   .check = completed_or_not);

/* Who cancels comes while the call has arrived, but is in no room yet. */
static void make_async_plain(void)
{
	make();
	x_alive(&r, sizeof r);
	vez_request_init(&r, NULL, NULL);
}

static void call_and_cancel(void)
{
	int filed = vez_monitor_call_async(&m, is_told, increment, NULL, &r);
	if (filed == EINPROGRESS && vez_request_cancel(&r) == EALREADY)
		x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0);
	rc[0] = vez_request_result(&r);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
}

X_SCENARIO(call_async_cancel, .setup = make_async_plain, .thread = { call_and_cancel, call_tell, enter_and_tell },
	   .check = ran_or_not);

/* Whoever leaves the monitor has gathered it, and tells the clock of its deadline. */
static void make_async_deadline(void)
{
	make_async_plain();
	x_make_alarm();
}

static void call_until_and_wait(void)
{
	vez_request_set_limits(&r, x_soon(), NULL);
	int filed = vez_monitor_call_async(&m, is_full, empty, NULL, &r);
	x_assert(filed == EINPROGRESS || filed == ETIMEDOUT);
	x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_result(&r) == ETIMEDOUT);
	x_dead(&r, sizeof r);
}

X_SCENARIO(call_gathered_by_exit, .setup = make_async_deadline,
	   .thread = { call_until_and_wait, enter_and_tell, x_alarm }, .check = left, .preemptions = 1);
X_SCENARIO(call_gathered_by_call, .setup = make_async_deadline,
	   .thread = { call_until_and_wait, call_tell, x_alarm }, .check = left, .preemptions = 1);

/* The monitor may go as soon as a call has returned, whoever ran its body. */
static void call_unmap(void)
{
	if (vez__fetch_add(&calls, 1, relaxed) == 1) {
		call_increment();
		x_await(vez__load(&calls, acquire) == 3);
		x_dead(&m, sizeof m);
	} else {
		call_increment();
		vez__fetch_add(&calls, 1, release);
	}
}

X_SCENARIO(call_and_unmap, .setup = make, .thread = { call_unmap, call_unmap }, .stale = 1);

/* Who is let go by a body may take the monitor away, while the pusher of that call is still on its way. */
static void let_go_and_unmap(vez_request_t *request, int result, void *arg)
{
	(void)request;
	(void)arg;
	x_assert(result == 0);
	if (vez__fetch_add(&calls, 1, acq_rel) == 1)
		x_dead(&m, sizeof m);
}

static vez_request_t each[2];

static void make_two_async(void)
{
	make();
	for (int i = 0; i < 2; i++)
		vez_request_init(&each[i], let_go_and_unmap, NULL);
}

static void call_async_at(int i)
{
	int filed = vez_monitor_call_async(&m, NULL, increment, NULL, &each[i]);
	x_assert(filed == 0 || filed == EINPROGRESS);
	if (filed == 0)
		let_go_and_unmap(&each[i], 0, NULL);
}

static void call_first(void)
{
	call_async_at(0);
}

static void call_second(void)
{
	call_async_at(1);
}

X_SCENARIO(call_async_unmap, .setup = make_two_async, .thread = { call_first, call_second }, .stale = 1);

/* Somebody else cancels while the call is being pushed. */
static void cancel(void)
{
	int canceled = vez_request_cancel(&r);
	x_assert(canceled == 0 || canceled == EALREADY);
	rc[1] = canceled;
}

static void call_and_wait(void)
{
	int filed = vez_monitor_call_async(&m, NULL, increment, NULL, &r);
	x_assert(filed == 0 || filed == EINPROGRESS);
	x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0);
	rc[0] = vez_request_result(&r);
}

static void ran_unless_cancelled(void)
{
	x_assert(rc[1] != 0 || rc[0] == ECANCELED);
	ran_or_not();
}

X_SCENARIO(call_async_cancel_arriving, .setup = make_async_plain, .thread = { call_and_wait, call_tell, cancel },
	   .check = ran_unless_cancelled);

/* ---- in which order ---- */

static int order[4];
static unsigned ordered;

static void put_down(void *number)
{
	order[ordered++] = *(int *)number;
}

static void make_order(void)
{
	make();
	ordered = 0;
	for (int i = 0; i < 2; i++)
		vez_request_init(&each[i], NULL, NULL);
}

/* One thread's calls are run in the order in which they were made, whoever was inside meanwhile. */
static void call_1_and_2(void)
{
	static int numbers[] = { 1, 2 };
	for (int i = 0; i < 2; i++) {
		int filed = vez_monitor_call_async(&m, NULL, put_down, &numbers[i], &each[i]);
		x_assert(filed == 0 || filed == EINPROGRESS);
	}
	for (int i = 0; i < 2; i++)
		x_assert(vez_request_result(&each[i]) == 0 || vez_request_wait(&each[i], VEZ_FOREVER, NULL) == 0);
}

static void in_order(void)
{
	x_assert(ordered == 2 && order[0] == 1 && order[1] == 2);
	left();
}

X_SCENARIO(call_order, .setup = make_order, .thread = { call_1_and_2, enter_and_tell }, .check = in_order, .stale = 1);
X_SCENARIO(call_order_three, .setup = make_order, .thread = { call_1_and_2, call_increment, enter_and_tell },
	   .check = in_order);

/* A call that comes when the rest of a batch is left to a caller, who is not there yet, is run after that rest. */
static void make_order_batch(void)
{
	make_order();
	vez__call_batch = 1;
	x_assert(vez_monitor_call_async(&m, is_told, increment, NULL, &each[1]) == EINPROGRESS);
}

static void call_1_when_told(void)
{
	static int numbers[] = { 1, 2 };
	int filed = vez_monitor_call_async(&m, is_told, put_down, &numbers[0], &each[0]);
	x_assert(filed == 0 || filed == EINPROGRESS);
	x_assert(vez_monitor_call_when(&m, is_told, put_down, &numbers[1], VEZ_FOREVER, NULL) == 0);
	x_assert(vez_request_wait(&each[0], VEZ_FOREVER, NULL) == 0);
}

X_SCENARIO(call_order_batch, .setup = make_order_batch, .thread = { call_1_when_told, call_when_told, enter_and_tell },
	   .check = in_order);

/* ---- an attempt ---- */

static void call_tell_now(void)
{
	x_assert(vez_monitor_call_when(&m, NULL, tell, NULL, VEZ_NOW, NULL) == 0);
}

static void call_now(void)
{
	rc[0] = vez_monitor_call_when(&m, is_told, increment, NULL, VEZ_NOW, NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

/* What it lets go is run; and it says ETIMEDOUT if it has not run. */
X_SCENARIO(call_attempt, .setup = make, .thread = { call_when_told, call_tell_now }, .check = left);
X_SCENARIO(call_attempt_two, .setup = make, .thread = { call_when_told, call_now, call_tell }, .check = ran_or_not);
X_SCENARIO(call_attempt_batch, .setup = make_batch_1, .thread = { call_when_told, call_when_told, call_tell_now },
	   .check = left);

/* ---- what a body settles ---- */

static vez_select_t any;
static vez_sem_t s;
static vez_request_t *winner;

static void make_any(void)
{
	make();
	x_alive(&r, sizeof r);
	x_alive(&s, sizeof s);
	X_NAME(s);
	winner = NULL;
	vez_select_init(&any);
	x_assert(vez_sem_init(&s, 0, 0, 0) == 0);
}

/* An operation of the caller's own that need not wait, and says so to its wait-for-any. */
static void settle_member(void *member)
{
	x_assert(vez_monitor_settle_unqueued(&m, member, 0));
}

static void call_and_choose(void)
{
	vez_select_case(&any, &r);
	x_assert(vez_monitor_call(&m, settle_member, &r) == 0);
	x_assert(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner) == 0);
	x_assert(winner == &r && vez_request_result(&r) == 0);
}

X_SCENARIO(call_body_settles, .setup = make_any, .thread = { call_and_choose, call_increment }, .check = left);

/* ---- one of several ---- */

static void choose(void)
{
	vez_monitor_call_async(&m, is_told, increment, NULL, vez_select_case(&any, &r));
	vez_sem_acquire_async(&s, 1, vez_select_case(&any, &each[0]));
	x_assert(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner) == 0);
}

static void release(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void one_is_taken(void)
{
	x_assert(count == (winner == &r));
	x_assert(vez_sem_permits(&s) == (winner == &r) && vez_sem_waiters(&s) == 0);
	left();
}

/* A call that loses is not run. */
X_SCENARIO(call_any, .setup = make_any, .thread = { choose, call_tell, release }, .check = one_is_taken);

/* ---- who gives up lets others go ---- */

static vez_room_t room;

static void tell_by_giving_up(vez_monitor_t *monitor, vez_room_t *of, vez_request_t *request)
{
	(void)request;
	x_assert(monitor == &m && of == &room);
	told = 1;
}

static void make_rule(void)
{
	make_batch_1();
	vez_monitor_init(&m, tell_by_giving_up);
	vez_room_init(&room);
	for (int i = 0; i < 2; i++)
		vez_request_init(&each[i], NULL, NULL);
	vez_monitor_enter(&m);
	x_assert(vez_monitor_wait_async(&m, &room, &each[0]) == EINPROGRESS);
}

static void cancel_in_room(void)
{
	x_assert(vez_request_cancel(&each[0]) == 0);
}

static void call_both_ways(void)
{
	int filed = vez_monitor_call_async(&m, NULL, increment, NULL, &each[1]);
	x_assert(filed == 0 || filed == EINPROGRESS);
	call_increment();
}

static void counted_2(void)
{
	x_assert(count == 2 && vez_request_result(&each[1]) == 0);
	left();
}

/* The rest of a batch is left to one caller; then the rule lets one go who waits before that one: who was told to come
 * is woken all the same. */
X_SCENARIO(call_rule_batch, .setup = make_rule, .thread = { call_when_told, call_both_ways, cancel_in_room },
	   .check = counted_2);

/* What it completes is called when the monitor has been left, in order. */
static void in_turn(vez_request_t *done, int result, void *arg)
{
	(void)done;
	x_assert(result == 0 && (int)++calls == *(int *)arg);
}

static void make_two_queued(void)
{
	static int numbers[] = { 1, 2 };
	make_any();
	for (int i = 0; i < 2; i++) {
		vez_request_init(&each[i], in_turn, &numbers[i]);
		x_assert(vez_sem_acquire_async(&s, 1, &each[i]) == EINPROGRESS);
	}
}

static void release_two(void *arg)
{
	(void)arg;
	x_assert(vez_sem_release(&s, 1) == 0);
	x_assert(vez_sem_release(&s, 1) == 0);
	x_assert(calls == 0);
}

static void call_release_two(void)
{
	x_assert(vez_monitor_call(&m, release_two, NULL) == 0);
}

static void called_twice(void)
{
	x_assert(calls == 2);
	left();
}

X_SCENARIO(call_body_completes, .setup = make_two_queued, .thread = { call_release_two, call_increment },
	   .check = called_twice);

/* The same, whatever brought the thread here that runs the body: a call of its own, or the end of one. */
static bool releasing;

static void when_left(vez_request_t *done, int result, void *arg)
{
	(void)done;
	(void)arg;
	x_assert(result == 0 && !releasing);
	calls++;
}

static void make_releasing(void)
{
	make_any();
	releasing = false;
	vez_request_init(&r, NULL, NULL);
	vez_request_init(&each[0], when_left, NULL);
	x_assert(vez_sem_acquire_async(&s, 1, &each[0]) == EINPROGRESS);
}

static void release_inside(void *arg)
{
	(void)arg;
	releasing = true;
	x_assert(vez_sem_release(&s, 1) == 0);
	releasing = false;
}

static void call_release(void)
{
	x_assert(vez_monitor_call(&m, release_inside, NULL) == 0);
}

static void call_async_and_wait(void)
{
	int filed = vez_monitor_call_async(&m, NULL, increment, NULL, &r);
	x_assert(filed == 0 || filed == EINPROGRESS);
	x_assert(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0);
}

static void call_never_async(void)
{
	int filed = vez_monitor_call_async(&m, is_full, empty, NULL, &r);
	x_assert(filed == EINPROGRESS);
	x_assert(vez_request_cancel(&r) == 0);
}

static void called_once(void)
{
	x_assert(calls == 1);
	left();
}

X_SCENARIO(call_async_completes, .setup = make_releasing, .thread = { call_async_and_wait, call_release },
	   .check = called_once);
X_SCENARIO(call_expired_completes, .setup = make_releasing, .thread = { call_never, call_release },
	   .check = called_once);
X_SCENARIO(call_cancel_completes, .setup = make_releasing, .thread = { call_never_async, call_release },
	   .check = called_once);
X_SCENARIO(call_fire_completes, .setup = make_releasing, .thread = { call_never_token, call_release, fire },
	   .check = called_once);
