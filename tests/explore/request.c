/* SPDX-License-Identifier: MIT */
/* Scenarios of asynchronous requests (vez/request.h): each completes exactly once, and takes what its result says. Seen
 * to fail with the faults mutants/request-*, async-* and completion-*. */
#include "vez/request.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/futex/stack.h"
#include "vez/cancel.h"
#include "vez/event.h"
#include "vez/latch.h"
#include "vez/rwlock.h"
#include "vez/sem.h"

static vez_sem_t s;
static vez_cancel_t token, waits;
static vez_request_t r[3];
static int calls[3], how[3];
static int told;
static int rc[X_THREADS];

/* A request's function: counts, and says with which result. */
static void note(vez_request_t *done, int result, void *arg)
{
	int i = (int)(intptr_t)arg;
	x_assert(done == &r[i]);
	x_assert(vez_request_result(done) == result);
	calls[i]++;
	how[i] = result;
}

static void name(void)
{
	X_NAME(s);
	X_NAME(token);
	X_NAME(waits);
	X_NAME(r);
}

static void make(uint32_t permits, unsigned flags)
{
	x_alive(&s, sizeof s);
	x_alive(&token, sizeof token);
	x_alive(r, sizeof r);
	name();
	x_assert(vez_sem_init(&s, permits, 0, flags) == 0);
	vez_cancel_init(&token);
	vez_cancel_init(&waits);
	for (int i = 0; i < 3; i++) {
		vez_request_init(&r[i], note, (void *)(intptr_t)i);
		calls[i] = how[i] = 0;
	}
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
	told = 0;
}

static void make_0(void)
{
	make(0, 0);
}

static void make_barging(void)
{
	make(0, VEZ_BARGING);
}

static void file(int i, uint32_t n)
{
	x_assert(vez_sem_acquire_async(&s, n, &r[i]) == EINPROGRESS);
}

/* Its deadline may pass before it is queued. */
static void file_limited(int i, uint32_t n, vez_cancel_t *cancel)
{
	vez_request_set_limits(&r[i], x_soon(), cancel);
	int ended = vez_sem_acquire_async(&s, n, &r[i]);
	x_assert(ended == EINPROGRESS || ended == ETIMEDOUT);
	if (ended == ETIMEDOUT)
		note(&r[i], ended, r[i].arg_);
}

static void make_queued(void)
{
	make_0();
	file(0, 1);
}

static void make_with_token(void)
{
	make_0();
	vez_request_set_limits(&r[0], VEZ_FOREVER, &token);
	file(0, 1);
}

static void make_with_deadline(void)
{
	x_make_alarm();
	make_0();
	file_limited(0, 1, NULL);
}

static void make_with_limits(void)
{
	x_make_alarm();
	make_0();
	file_limited(0, 1, &token);
}

static void release_one(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void tell_and_release(void)
{
	told = 1;
	release_one();
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

static void cancel(void)
{
	rc[0] = vez_request_cancel(&r[0]);
	x_assert(rc[0] == 0 || rc[0] == EALREADY);
}

static void wait(void)
{
	x_assert(vez_request_wait(&r[0], VEZ_FOREVER, NULL) == 0);
}

static void cancel_and_wait(void)
{
	cancel();
	wait();
}

static void left(uint32_t permits)
{
	x_assert(vez_sem_waiters(&s) == 0 && vez_sem_permits(&s) == permits);
	x_assert(vez_sem_destroy(&s) == 0);
	x_assert(vez_cancel_destroy(&token) == 0);
}

/* Completed once, and one permit was released: it is there unless the request has it. */
static void completed_once(void)
{
	x_assert(calls[0] == 1 && how[0] == vez_request_result(&r[0]));
	x_assert(how[0] == 0 || how[0] == ECANCELED || how[0] == ETIMEDOUT);
	x_assert(rc[0] != 0 || how[0] == ECANCELED);
	left(how[0] == 0 ? 0 : 1);
}

static void ended_once(void)
{
	x_assert(calls[0] == 1);
	x_assert(how[0] == ECANCELED || how[0] == ETIMEDOUT);
	left(0);
}

/* ---- grant, cancel, token and deadline meet ---- */

/* One that calls nothing is complete when it says how it ended. */
static void make_quiet(void)
{
	make_0();
	vez_request_init(&r[0], NULL, NULL);
	x_assert(vez_sem_acquire_async(&s, 1, &r[0]) == EINPROGRESS);
}

static void wait_when_told(void)
{
	x_await(vez_request_result(&r[0]) != EINPROGRESS);
	x_assert(vez_request_wait(&r[0], VEZ_NOW, NULL) == 0);
	x_assert(vez_request_result(&r[0]) == 0);
	x_dead(&r[0], sizeof r[0]);
}

static void release_quiet(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void wait_quiet(void)
{
	x_assert(vez_request_wait(&r[0], VEZ_FOREVER, NULL) == 0);
}

X_SCENARIO(request_quiet, .setup = make_quiet, .thread = { wait_when_told, release_quiet });
X_SCENARIO(request_quiet_wait, .setup = make_quiet, .thread = { wait_quiet, wait_quiet, release_quiet },
	   .preemptions = 1);

X_SCENARIO(request_grant_cancel, .setup = make_queued, .thread = { release_one, cancel_and_wait },
	   .check = completed_once, .stale = 1);
X_SCENARIO(request_grant_deadline, .setup = make_with_deadline, .thread = { release_one, wait, x_alarm },
	   .check = completed_once);
X_SCENARIO(request_grant_cancel_deadline, .setup = make_with_deadline,
	   .thread = { release_one, cancel_and_wait, x_alarm }, .check = completed_once);
X_SCENARIO(request_grant_fire_cancel, .setup = make_with_token, .thread = { release_one, fire, cancel_and_wait },
	   .check = completed_once);
X_SCENARIO(request_fire_deadline, .setup = make_with_limits, .thread = { fire, wait, x_alarm }, .check = ended_once);
X_SCENARIO(request_fire_cancel, .setup = make_with_token, .thread = { fire, cancel_and_wait }, .check = ended_once,
	   .stale = 1);

/* Filed while the others are at it already. */
static void file_and_wait(void)
{
	rc[1] = vez_sem_acquire_async(&s, 1, &r[0]);
	if (rc[1] == EINPROGRESS)
		wait();
}

static void file_with_token(void)
{
	vez_request_set_limits(&r[0], VEZ_FOREVER, &token);
	file_and_wait();
}

static void file_with_limits(void)
{
	vez_request_set_limits(&r[0], x_soon(), &token);
	file_and_wait();
}

static void filed(uint32_t released)
{
	int result = vez_request_result(&r[0]);
	x_assert(calls[0] == (rc[1] == EINPROGRESS));
	x_assert(result == (rc[1] == EINPROGRESS ? how[0] : rc[1]));
	left(result == 0 ? released - 1 : released);
}

static void filed_0(void)
{
	filed(0);
}

static void filed_1(void)
{
	filed(1);
}

static void make_alarm_0(void)
{
	x_make_alarm();
	make_0();
}

X_SCENARIO(request_file_grant, .setup = make_0, .thread = { file_and_wait, release_one }, .check = filed_1, .stale = 2);
X_SCENARIO(request_file_grant_fire, .setup = make_0, .thread = { file_with_token, release_one, fire },
	   .check = filed_1);
X_SCENARIO(request_file_fire, .setup = make_0, .thread = { file_with_token, fire }, .check = filed_0, .stale = 1);
X_SCENARIO(request_file_limits, .setup = make_alarm_0, .thread = { file_with_limits, fire, x_alarm },
	   .check = filed_0, .preemptions = 1, .random = 5000);

/* ---- waiting for it ---- */

static void tell_more(vez_request_t *done, int result, void *arg)
{
	x_assert(told == 1);
	note(done, result, arg);
	told = 2;
}

static void make_telling(void)
{
	make_0();
	vez_request_init(&r[0], tell_more, NULL);
	file(0, 1);
}

/* Until the function has returned, whatever moment this begins at. */
static void wait_told(void)
{
	wait();
	x_assert(told == 2);
}

X_SCENARIO(request_wait_call, .setup = make_telling, .thread = { wait_told, tell_and_release }, .stale = 1);
X_SCENARIO(request_wait_call_two, .setup = make_telling, .thread = { wait_told, wait_told, tell_and_release });

/* A wait's own limit leaves the request as it was. */
static void wait_limited(void)
{
	rc[1] = vez_request_wait(&r[0], x_soon(), &token);
	x_assert(rc[1] == 0 || rc[1] == ETIMEDOUT || rc[1] == ECANCELED);
	if (rc[1] != 0)
		wait();
	x_assert(told == 2);
}

X_SCENARIO(request_wait_limited, .setup = make_telling, .thread = { wait_limited, tell_and_release, fire });

/* The function frees the request under the eyes of who waits for it. */
static void free_it(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	x_dead(done, sizeof *done);
	told = 2;
}

static void make_freeing(void)
{
	make_0();
	vez_request_init(&r[0], free_it, NULL);
	file(0, 1);
}

static void wait_seen(void)
{
	x_assert(vez_request_wait(&r[0], VEZ_FOREVER, &waits) == 0);
	x_assert(told == 2);
}

/* Who waits has enlisted with its token. */
static void release_when_seen(void)
{
	x_await(vez__load(&waits.arrivals_, relaxed) != 0);
	release_one();
}

X_SCENARIO(request_wait_freed, .setup = make_freeing, .thread = { wait_seen, release_when_seen }, .stale = 1);

/* Freed by who has waited, or seen the result: nobody touches it after that. */
static void wait_and_free(void)
{
	wait();
	x_assert(told == 1 && vez_request_result(&r[0]) == 0);
	x_dead(&r[0], sizeof r[0]);
	x_dead(&s, sizeof s);
}

static void make_silent(void)
{
	make_0();
	vez_request_init(&r[0], NULL, NULL);
	file(0, 1);
}

static void make_ticking(void)
{
	make_0();
	vez_request_init_eventfd(&r[0], x_eventfd(0));
	file(0, 1);
}

static void ticked_once(void)
{
	x_assert(x_ticked(0) == 1);
}

static void result_and_free(void)
{
	x_await(vez_request_result(&r[0]) != EINPROGRESS);
	x_assert(told == 1);
	x_dead(&r[0], sizeof r[0]);
}

static void tick_and_free(void)
{
	x_await(x_ticked(0) == 1);
	x_assert(vez_request_result(&r[0]) == 0 && told == 1);
	x_dead(&r[0], sizeof r[0]);
	x_eventfd_dead(0);
}

X_SCENARIO(request_wait_free, .setup = make_silent, .thread = { wait_and_free, tell_and_release });
X_SCENARIO(request_wait_eventfd, .setup = make_ticking, .thread = { wait_and_free, tell_and_release },
	   .check = ticked_once);
X_SCENARIO(request_result_free, .setup = make_ticking, .thread = { result_and_free, tell_and_release },
	   .check = ticked_once, .stale = 1);
X_SCENARIO(request_tick_free, .setup = make_ticking, .thread = { tick_and_free, tell_and_release }, .stale = 1);

/* The tick comes once, and after it nobody touches the semaphore either. */
static void tick_and_free_both(void)
{
	tick_and_free();
	x_dead(&s, sizeof s);
}

static void make_ticking_token(void)
{
	make_0();
	vez_request_init_eventfd(&r[0], x_eventfd(0));
	vez_request_set_limits(&r[0], VEZ_FOREVER, &token);
	file(0, 1);
}

static void tick_and_free_three(void)
{
	x_await(x_ticked(0) == 1);
	rc[1] = vez_request_result(&r[0]);
	x_assert(rc[1] == 0 || rc[1] == ECANCELED);
	x_dead(&r[0], sizeof r[0]);
	x_eventfd_dead(0);
}

static void left_if_cancelled(void)
{
	left(rc[1] == 0 ? 0 : 1);
}

X_SCENARIO(request_tick_unmap, .setup = make_ticking, .thread = { tick_and_free_both, tell_and_release });
X_SCENARIO(request_tick_fire, .setup = make_ticking_token, .thread = { tick_and_free_three, release_one, fire },
	   .check = left_if_cancelled);

/* ---- what a function does ---- */

static __thread int nested;

/* Frees its request, uses the semaphore, and queues the request anew. */
static void again(vez_request_t *done, int result, void *arg)
{
	int i = (int)(intptr_t)arg;
	x_assert(nested++ == 0);
	x_assert(result == 0);
	release_one();
	if (calls[i]++ == 0) {
		vez_request_init(done, again, arg);
		how[i] = vez_sem_acquire_async(&s, 1, done);
		if (how[i] == 0) {
			calls[i]++;
			release_one();
		}
	}
	nested--;
}

static void make_again(void)
{
	make_0();
	for (int i = 0; i < 2; i++) {
		vez_request_init(&r[i], again, (void *)(intptr_t)i);
		file(i, 1);
	}
}

static void called_twice(void)
{
	x_assert(calls[0] == 2 && calls[1] == 2);
	left(1);
}

static void called_twice_2(void)
{
	x_assert(calls[0] == 2 && calls[1] == 2);
	left(2);
}

X_SCENARIO(request_again, .setup = make_again, .thread = { release_one }, .check = called_twice);
X_SCENARIO(request_again_two, .setup = make_again, .thread = { release_one, release_one }, .check = called_twice_2);

/* Its memory is another request's before its function has returned: who waits for that one sees it completed. */
static vez_sem_t next;
static int stage;

static void use_anew(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	vez_request_init(done, note, arg);
	rc[2] = vez_sem_acquire_async(&next, 1, done);
	vez__store(&stage, 1, release);
}

static void make_anew_with(uint32_t permits)
{
	make_0();
	X_NAME(next);
	stage = 0;
	x_assert(vez_sem_init(&next, permits, 0, 0) == 0);
	vez_request_init(&r[0], use_anew, NULL);
	file(0, 1);
}

static void make_anew(void)
{
	make_anew_with(0);
}

static void make_anew_at_once(void)
{
	make_anew_with(1);
}

static void wait_for_next(void)
{
	x_await(vez__load(&stage, acquire) == 1);
	wait();
	x_assert(told == 1 && calls[0] == 2);
}

static void wait_for_next_at_once(void)
{
	x_await(vez__load(&stage, acquire) == 1);
	x_assert(rc[2] == 0);
	wait();
	x_assert(calls[0] == 1);
}

static void release_next(void)
{
	x_await(vez__load(&stage, acquire) == 1);
	told = 1;
	x_assert(vez_sem_release(&next, 1) == 0);
}

/* The function itself waits for it: it is not the request whose function runs. */
static void use_anew_and_wait(vez_request_t *done, int result, void *arg)
{
	use_anew(done, result, arg);
	x_await(vez_request_result(done) != EINPROGRESS);
	wait();
}

static void make_anew_inside(void)
{
	make_anew_with(0);
	r[0].then_.done_ = use_anew_and_wait;
}

static void make_anew_at_once_inside(void)
{
	make_anew_with(1);
	r[0].then_.done_ = use_anew_and_wait;
}

X_SCENARIO(request_anew, .setup = make_anew, .thread = { release_one, wait_for_next, release_next });
X_SCENARIO(request_anew_two, .setup = make_anew, .thread = { release_one, wait_for_next, wait_for_next, release_next },
	   .preemptions = 1);
X_SCENARIO(request_anew_at_once, .setup = make_anew_at_once, .thread = { release_one, wait_for_next_at_once });
X_SCENARIO(request_anew_inside, .setup = make_anew_inside, .thread = { release_one, release_next });
X_SCENARIO(request_anew_at_once_inside, .setup = make_anew_at_once_inside, .thread = { release_one });

/* In the order in which they were settled. */
static void in_order(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	x_assert(told == (int)(intptr_t)arg);
	told++;
}

static void make_order(void)
{
	make_0();
	for (int i = 0; i < 3; i++) {
		vez_request_init(&r[i], in_order, (void *)(intptr_t)i);
		file(i, 1);
	}
}

static void release_three(void)
{
	x_assert(vez_sem_release(&s, 3) == 0);
}

static void called_three(void)
{
	x_assert(told == 3);
	left(0);
}

X_SCENARIO(request_order, .setup = make_order, .thread = { release_three }, .check = called_three);

/* When the threads that the same release let go have been woken: so it may wait for one of them, unless it is that one.
 */
static uint32_t went_on;
static __thread bool acquires;

static void await_thread(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	if (!acquires)
		x_await(vez__load(&went_on, relaxed) == 1);
}

static void make_awaiting(void)
{
	make_0();
	went_on = 0;
	vez_request_init(&r[0], await_thread, NULL);
	file(0, 1);
}

static void acquire_and_go_on(void)
{
	acquires = true;
	x_assert(vez_sem_acquire(&s, 1) == 0);
	vez__store(&went_on, 1, relaxed);
}

static void release_to_two(void)
{
	x_await(vez_sem_waiters(&s) == 2);
	x_assert(vez_sem_release(&s, 2) == 0);
}

static void called_0(void)
{
	x_assert(calls[0] == 1);
	left(0);
}

X_SCENARIO(request_after_wakes, .setup = make_awaiting, .thread = { acquire_and_go_on, release_to_two },
	   .check = called_0);

/* Destroys the semaphore while who released it returns, or while the call that queued its request does. */
static void destroy_it(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	x_assert(told == 1);
	x_assert(vez_sem_destroy(&s) == 0);
	x_dead(&s, sizeof s);
	x_dead(done, sizeof *done);
}

static void make_destroying(void)
{
	make_0();
	vez_request_init(&r[0], destroy_it, NULL);
}

static void file_destroying(void)
{
	int got = vez_sem_acquire_async(&s, 1, &r[0]);
	x_assert(got == 0 || got == EINPROGRESS);
	if (got == 0)
		destroy_it(&r[0], 0, NULL);
}

static void make_destroying_queued(void)
{
	make_destroying();
	file(0, 1);
}

X_SCENARIO(request_destroy, .setup = make_destroying, .thread = { file_destroying, tell_and_release });
X_SCENARIO(request_destroy_queued, .setup = make_destroying_queued, .thread = { tell_and_release });

/* Two, queued for the second of two releases: whoever serves calls. */
static void release_rest(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	x_assert(vez_sem_release(&s, 1) == 0);
}

static void make_chain(void)
{
	make_0();
	vez_request_init(&r[0], release_rest, (void *)0);
	vez_request_init(&r[1], release_rest, (void *)1);
	file(0, 2);
	file(1, 1);
}

static void called_both(void)
{
	x_assert(calls[0] == 1 && calls[1] == 1 && how[0] == 0 && how[1] == 0);
	left(2 - 3 + 2);
}

X_SCENARIO(request_chain, .setup = make_chain, .thread = { release_one, release_one }, .check = called_both);

/* ---- with blocking calls in one queue ---- */

static void pass_on(vez_request_t *done, int result, void *arg)
{
	note(done, result, arg);
	told = 2;
	if (result == 0)
		release_one();
}

static void make_pass_on(void)
{
	make_0();
	vez_request_init(&r[0], pass_on, NULL);
	file(0, 1);
}

static void acquire_after(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
	x_assert(told == 2);
}

static void release_when_two(void)
{
	x_await(vez_sem_waiters(&s) == 2);
	release_one();
}

static void acquire_one(void)
{
	x_assert(vez_sem_acquire(&s, 1) == 0);
}

/* The head, which wants more than there is, goes: the one behind it is served. */
static void make_big_head(void)
{
	make(1, 0);
	file(0, 2);
}

static void make_big_head_deadline(void)
{
	x_make_alarm();
	make(1, 0);
	file_limited(0, 2, NULL);
}

static void make_big_head_token(void)
{
	make(1, 0);
	vez_request_set_limits(&r[0], VEZ_FOREVER, &token);
	file(0, 2);
}

static void cancel_head(void)
{
	x_assert(vez_request_cancel(&r[0]) == 0);
}

static void gone(void)
{
	x_assert(calls[0] == 1 && (how[0] == ECANCELED || how[0] == ETIMEDOUT));
	left(0);
}

static void fifo_left(void)
{
	x_assert(calls[0] == 1 && how[0] == 0);
	left(0);
}

X_SCENARIO(request_fifo, .setup = make_pass_on, .thread = { acquire_after, release_when_two }, .check = fifo_left);
X_SCENARIO(request_head_cancelled, .setup = make_big_head, .thread = { acquire_one, cancel_head }, .check = gone,
	   .stale = 1);
X_SCENARIO(request_head_fired, .setup = make_big_head_token, .thread = { acquire_one, fire }, .check = gone);

static void acquire_and_wait(void)
{
	acquire_one();
	wait();
}

X_SCENARIO(request_head_expires, .setup = make_big_head_deadline, .thread = { acquire_and_wait, x_alarm },
	   .check = gone);

/* Barging: the first has no thread that could come and look. */
static void make_barging_queued(void)
{
	make_barging();
	vez_request_init(&r[0], pass_on, NULL);
	file(0, 1);
}

static void acquire_and_release(void)
{
	acquire_one();
	release_one();
}

static void barged(void)
{
	x_assert(calls[0] == 1);
	left(1);
}

static void acquire_and_release_until(void)
{
	rc[1] = vez_sem_acquire_until(&s, 1, x_soon(), NULL);
	if (rc[1] == 0)
		release_one();
	else
		x_assert(rc[1] == ETIMEDOUT);
}

X_SCENARIO(request_barging, .setup = make_barging_queued, .thread = { acquire_and_release, release_one },
	   .check = barged, .stale = 1);
X_SCENARIO(request_barging_until, .setup = make_barging_queued, .thread = { acquire_and_release_until, release_one },
	   .check = barged);
X_SCENARIO(request_barging_cancel, .setup = make_barging_queued,
	   .thread = { acquire_and_release, release_one, cancel_and_wait }, .check = barged);

/* ---- latch, event, readers: threads that sleep in their slots, and a request without a thread ---- */

static vez_latch_t l;
static vez_event_t e;
static vez_rwlock_t w;

static void note_told(vez_request_t *done, int result, void *arg)
{
	x_assert(told == 1 && result == 0);
	note(done, result, arg);
}

static void called(void)
{
	x_assert(calls[0] == 1);
}

static void make_latch(void)
{
	make_0();
	X_NAME(l);
	x_assert(vez_latch_init(&l, 1) == 0);
	vez_request_init(&r[0], note_told, NULL);
	x_assert(vez_latch_wait_async(&l, &r[0]) == EINPROGRESS);
}

static void latch_wait(void)
{
	x_assert(vez_latch_wait(&l) == 0);
	x_assert(told == 1);
}

static void latch_open(void)
{
	told = 1;
	x_assert(vez_latch_count_down(&l, 1) == 0);
}

X_SCENARIO(request_latch, .setup = make_latch, .thread = { latch_wait, latch_wait, latch_open }, .check = called);

static void make_event(void)
{
	make_0();
	X_NAME(e);
	x_assert(vez_event_init(&e, 0) == 0);
	vez_request_init(&r[0], note_told, NULL);
	x_assert(vez_event_wait_async(&e, &r[0]) == EINPROGRESS);
}

static void event_wait(void)
{
	x_assert(vez_event_wait(&e) == 0);
	x_assert(told == 1);
}

static void event_set(void)
{
	told = 1;
	x_assert(vez_event_set(&e) == 0);
}

X_SCENARIO(request_event, .setup = make_event, .thread = { event_wait, event_wait, event_set }, .check = called);

static void make_rwlock(void)
{
	make_0();
	X_NAME(w);
	x_assert(vez_rwlock_init(&w, VEZ_RW_HOARE) == 0);
	x_assert(vez_rwlock_wrlock(&w) == 0);
	vez_request_init(&r[0], note_told, NULL);
	x_assert(vez_rwlock_rdlock_async(&w, &r[0]) == EINPROGRESS);
}

static void rwlock_read(void)
{
	x_assert(vez_rwlock_rdlock(&w) == 0);
	x_assert(told == 1);
	x_assert(vez_rwlock_rdunlock(&w) == 0);
}

static void rwlock_wrote(void)
{
	told = 1;
	x_assert(vez_rwlock_wrunlock(&w) == 0);
}

static void read_left(void)
{
	called();
	x_assert(vez_rwlock_rdunlock(&w) == 0);
	x_assert(vez_rwlock_destroy(&w) == 0);
}

X_SCENARIO(request_readers, .setup = make_rwlock, .thread = { rwlock_read, rwlock_read, rwlock_wrote },
	   .check = read_left);

/* ---- a monitor is destroyed ---- */

static vez_monitor_t m;
static vez_room_t room;

static void make_monitor(void)
{
	x_alive(&m, sizeof m);
	x_alive(&room, sizeof room);
	make_0();
	X_NAME(m);
	X_NAME(room);
	vez_monitor_init(&m, NULL);
	vez_room_init(&room);
	vez_request_set_limits(&r[0], VEZ_FOREVER, &token);
	vez_monitor_enter(&m);
	x_assert(vez_monitor_wait_async(&m, &room, &r[0]) == EINPROGRESS);
}

static void settle(void)
{
	vez_monitor_enter(&m);
	if (vez_room_first(&room))
		vez_monitor_settle(&m, vez_room_first(&room), 0);
	vez_monitor_exit(&m);
}

static void cancel_or_late(void)
{
	int got = vez_request_cancel(&r[0]);
	x_assert(got == 0 || got == EALREADY);
}

/* Settles what is there, and destroys the monitor though another is coming in to cancel. */
static void settle_and_destroy(void)
{
	settle();
	if (vez_monitor_destroy(&m) == 0) {
		x_dead(&m, sizeof m);
		x_dead(&room, sizeof room);
	}
}

X_SCENARIO(request_monitor_destroy, .setup = make_monitor, .thread = { settle_and_destroy, cancel_or_late },
	   .check = called, .stale = 1);
X_SCENARIO(request_monitor_destroy_fire, .setup = make_monitor, .thread = { settle_and_destroy, fire },
	   .check = called);
X_SCENARIO(request_monitor_destroy_both, .setup = make_monitor, .thread = { settle_and_destroy, fire, cancel_or_late },
	   .check = called);

/* ---- a signal handler releases ---- */

static void release_in_handler(void)
{
	x_assert(vez_sem_release(&s, 1) == 0);
}

/* The thread is inside what completing needs: the token's lock, the waits for completion, the release of another. */
static void fire_and_wait(void)
{
	fire();
	wait();
}

static void wait_and_release(void)
{
	wait();
}

static void make_two_queued(void)
{
	make_0();
	file(0, 1);
	file(1, 1);
}

static void release_and_wait(void)
{
	release_one();
	wait();
}

static void signalled(void)
{
	x_assert(calls[0] == 1);
	left(how[0] == 0 ? 0 : 1);
}

static void signalled_two(void)
{
	x_assert(calls[0] == 1 && calls[1] == 1);
	left(0);
}

X_SCENARIO(request_signal_wait, .setup = make_queued, .thread = { wait_and_release }, .signal = release_in_handler,
	   .check = signalled);
X_SCENARIO(request_signal_fire, .setup = make_with_token, .thread = { fire_and_wait }, .signal = release_in_handler,
	   .check = signalled);
X_SCENARIO(request_signal_cancel, .setup = make_with_token, .thread = { cancel_and_wait, fire },
	   .signal = release_in_handler, .check = signalled, .preemptions = 2);
X_SCENARIO(request_signal_release, .setup = make_two_queued, .thread = { release_and_wait },
	   .signal = release_in_handler, .check = signalled_two);

/* What the handler completes meets other requests where its thread completes one: both are kept in the same shard of
 * engine/completion.c. */
#define SHARD_BITS 6

static struct {
	char bytes[4096];
} beside __attribute__((aligned(8)));
static vez_request_t *twin;
static vez_sem_t one;

/* A request in the same shard as this one, which waits for a permit, too; and calls nothing, so that it completes at
 * once. */
static void make_twin_of(const vez_request_t *of)
{
	char *at = beside.bytes;
	while (vez__hash_of(at, SHARD_BITS) != vez__hash_of(of, SHARD_BITS))
		at += 8;
	x_assert(at + sizeof *twin <= beside.bytes + sizeof beside);
	twin = (vez_request_t *)at;
	vez_request_init(twin, NULL, NULL);
	x_assert(vez_sem_acquire_async(&s, 1, twin) == EINPROGRESS);
}

static void make_twins(void)
{
	make_queued();
	make_twin_of(&r[0]);
}

static void signalled_twins(void)
{
	x_assert(calls[0] == 1 && vez_request_result(twin) == 0);
	left(0);
}

X_SCENARIO(request_signal_same_shard, .setup = make_twins, .thread = { release_and_wait },
	   .signal = release_in_handler, .check = signalled_twins);

/* A member of a wait-for-any that has got what it wants before the call that files it has returned. */
static void make_member_twins(void)
{
	make_0();
	x_assert(vez_sem_init(&one, 1, 0, 0) == 0);
	make_twin_of(&r[0]);
}

static void choose(void)
{
	vez_select_t any;
	vez_request_t *winner = NULL;
	vez_select_init(&any);
	x_assert(vez_sem_acquire_async(&one, 1, vez_select_case(&any, &r[0])) == 0);
	x_assert(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner) == 0 && winner == &r[0]);
}

static void signalled_twin(void)
{
	x_assert(vez_request_result(twin) == 0);
	left(0);
}

X_SCENARIO(request_signal_member, .setup = make_member_twins, .thread = { choose }, .signal = release_in_handler,
	   .check = signalled_twin);
