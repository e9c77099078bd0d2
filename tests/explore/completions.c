/* SPDX-License-Identifier: MIT */
/* Scenarios of lists of completions (vez/request.h): each request is taken out once, and nobody sleeps over it. Seen to
 * fail with the faults mutants/completion-*. */
#include "vez/request.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "vez/cancel.h"
#include "vez/sem.h"

static vez_completions_t list;
static vez_request_t r[3];
static vez_sem_t s[3];
static vez_cancel_t token;
static int told[3];
static int taken;
static int rc[X_THREADS];

static void make_on(int efd)
{
	x_alive(&list, sizeof list);
	x_alive(r, sizeof r);
	X_NAME(list);
	X_NAME(r);
	X_NAME(s);
	X_NAME(token);
	vez_completions_init(&list, efd);
	vez_cancel_init(&token);
	for (int i = 0; i < 3; i++) {
		x_assert(vez_sem_init(&s[i], 0, 0, 0) == 0);
		vez_request_init_completions(&r[i], &list);
		told[i] = 0;
	}
	taken = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = -1;
}

static void file(int i)
{
	x_assert(vez_sem_acquire_async(&s[i], 1, &r[i]) == EINPROGRESS);
}

static void make(void)
{
	make_on(-1);
	file(0);
	file(1);
}

static void make_ticking(void)
{
	make_on(x_eventfd(0));
	file(0);
	file(1);
}

static void make_one(void)
{
	make_on(x_eventfd(0));
	file(0);
}

static void release(int i)
{
	told[i] = 1;
	x_assert(vez_sem_release(&s[i], 1) == 0);
}

static void release_0(void)
{
	release(0);
}

static void release_1(void)
{
	release(1);
}

static void release_both(void)
{
	release(0);
	release(1);
}

/* The request that has completed, or NULL. It is the consumer's from then on. */
static vez_request_t *next(void)
{
	vez_request_t *done = vez_completions_next(&list);
	if (!done)
		return NULL;
	int i = (int)(done - r);
	x_assert(vez_request_result(done) == 0 && told[i] == 1);
	x_dead(done, sizeof *done);
	taken++;
	return done;
}

static void free_list(void)
{
	x_assert(!vez_completions_next(&list));
	x_dead(&list, sizeof list);
}

/* The list, and the eventfd, go when the last one has been taken out. */
static void free_all(void)
{
	free_list();
	x_eventfd_dead(0);
}

/* ---- the consumer waits ---- */

static void wait_for_two(void)
{
	while (taken < 2) {
		x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
		x_assert(next());
	}
	free_list();
}

static void wait_for_two_ticking(void)
{
	while (taken < 2) {
		x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
		x_assert(next());
	}
	free_all();
}

static void wait_for_one(void)
{
	x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
	x_assert(next());
	free_all();
}

X_SCENARIO(completions_wait_one, .setup = make_one, .thread = { wait_for_one, release_0 }, .stale = 1);
X_SCENARIO(completions_wait_both, .setup = make, .thread = { wait_for_two, release_both }, .stale = 1);
X_SCENARIO(completions_wait, .setup = make, .thread = { wait_for_two, release_0, release_1 });
X_SCENARIO(completions_wait_ticking, .setup = make_ticking, .thread = { wait_for_two_ticking, release_0, release_1 });

/* ---- it looks by itself, as soon as something is there ---- */

static void poll_for_two(void)
{
	while (taken < 2) {
		x_await(vez__load(&list.first_, relaxed) != NULL);
		x_assert(next());
	}
	free_all();
}

X_SCENARIO(completions_poll, .setup = make_ticking, .thread = { poll_for_two, release_0, release_1 });

/* ---- it sleeps on the eventfd: a tick for each time that the list ceases to be empty ---- */

static void tick_for_two(void)
{
	for (unsigned seen = 0; taken < 2;) {
		x_await(x_ticked(0) > seen);
		seen = x_ticked(0);
		while (next())
			;
	}
	free_all();
}

X_SCENARIO(completions_tick, .setup = make_ticking, .thread = { tick_for_two, release_0, release_1 });
X_SCENARIO(completions_tick_both, .setup = make_ticking, .thread = { tick_for_two, release_both });

/* Nobody takes anything out: one tick. */
static void ticked_once(void)
{
	x_assert(x_ticked(0) == 1);
	x_assert(next() && next());
	free_list();
}

X_SCENARIO(completions_one_tick, .setup = make_ticking, .thread = { release_0, release_1 }, .check = ticked_once,
	   .stale = 1);

/* The consumer takes the first before the second completes: two ticks. */
static void ticked_twice(void)
{
	x_assert(x_ticked(0) == 2);
	x_assert(next());
	free_list();
}

static void take_first_then_release(void)
{
	x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
	x_assert(next());
	release(1);
}

X_SCENARIO(completions_two_ticks, .setup = make_ticking, .thread = { take_first_then_release, release_0 },
	   .check = ticked_twice);

/* ---- in the order in which they completed ---- */

static void in_order(void)
{
	x_assert(next() == &r[0]);
	x_assert(next() == &r[1]);
	free_list();
}

static void await_and_release_1(void)
{
	x_await(vez_request_result(&r[0]) != EINPROGRESS && vez__load(&list.first_, relaxed));
	release(1);
}

X_SCENARIO(completions_order, .setup = make, .thread = { release_0, await_and_release_1 }, .check = in_order,
	   .stale = 2);

/* ---- the wait's own limits ---- */

static void wait_limited(void)
{
	rc[0] = vez_completions_wait(&list, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT || rc[0] == ECANCELED);
	if (rc[0] == 0)
		x_assert(next());
	else
		next();
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

static void rest(void)
{
	x_assert(taken == 1 || next());
	free_list();
}

X_SCENARIO(completions_limited, .setup = make_one, .thread = { wait_limited, release_0 }, .check = rest, .stale = 1);
X_SCENARIO(completions_limited_fire, .setup = make_one, .thread = { wait_limited, release_0, fire }, .check = rest);

/* ---- cancelled, and completed by whoever comes last ---- */

static void make_cancellable(void)
{
	make_on(x_eventfd(0));
	vez_request_set_limits(&r[0], VEZ_FOREVER, &token);
	file(0);
}

static void take_any(void)
{
	x_await(x_ticked(0) == 1);
	vez_request_t *done = vez_completions_next(&list);
	x_assert(done == &r[0]);
	rc[0] = vez_request_result(done);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED);
	x_dead(done, sizeof *done);
	free_all();
}

static void left_if_cancelled(void)
{
	x_assert(vez_sem_waiters(&s[0]) == 0);
	x_assert((int)vez_sem_permits(&s[0]) == (rc[0] != 0));
}

X_SCENARIO(completions_fire, .setup = make_cancellable, .thread = { take_any, release_0, fire },
	   .check = left_if_cancelled);

/* ---- taken out and queued anew at once ---- */

static void take_and_file(void)
{
	x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
	x_assert(vez_completions_next(&list) == &r[0]);
	vez_request_init_completions(&r[0], &list);
	int ended = vez_sem_acquire_async(&s[0], 1, &r[0]);
	if (ended == EINPROGRESS) {
		x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
		x_assert(vez_completions_next(&list) == &r[0]);
	} else {
		x_assert(ended == 0);
	}
	x_dead(&r[0], sizeof r[0]);
	free_list();
}

static void release_plainly(void)
{
	x_assert(vez_sem_release(&s[0], 1) == 0);
}

X_SCENARIO(completions_again, .setup = make_one, .thread = { take_and_file, release_plainly, release_plainly });

/* ---- a signal handler completes one while the consumer is inside ---- */

static void release_in_handler(void)
{
	x_assert(vez_sem_release(&s[0], 1) == 0);
}

static void wait_for_any(void)
{
	x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
	x_assert(vez_completions_next(&list));
	x_assert(vez_completions_wait(&list, VEZ_FOREVER, NULL) == 0);
	x_assert(vez_completions_next(&list));
	free_all();
}

X_SCENARIO(completions_signal, .setup = make_ticking, .thread = { wait_for_any, release_1 },
	   .signal = release_in_handler, .preemptions = 2);
