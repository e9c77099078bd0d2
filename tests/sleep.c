/* SPDX-License-Identifier: MIT */
/* Waiting for a moment or for a token; two reasons to stop; the same signal twice. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vez.h>

#include "async.h"
#include "guard.h"

TestSuite(sleep, .timeout = 120);

#define MS INT64_C(1000000)

/* A thread that sleeps until a moment, or waits for the token. */
struct sleeper {
	struct thread thread;
	bool for_token;
	vez_deadline_t until;
	vez_cancel_t *token;
	int rc;
	int errno_after;
};

static void sleep_or_wait(void *arg)
{
	struct sleeper *s = arg;
	errno = 66;
	s->rc = s->for_token ? vez_cancel_wait(s->token, s->until) : vez_sleep_until(s->until, s->token);
	s->errno_after = errno;
}

/* Returns when it sleeps. */
static void sleeper_start(struct sleeper *s)
{
	s->rc = -1;
	thread_start(&s->thread, sleep_or_wait, s);
	thread_await_parked(&s->thread);
}

static int sleeper_join(struct sleeper *s)
{
	thread_join(&s->thread);
	EXPECT_EQ(s->errno_after, 66);
	return s->rc;
}

static const vez_deadline_t *untils(void)
{
	static vez_deadline_t far[3];
	far[0] = VEZ_FOREVER;
	far[1] = vez_after_s(3600);
	return far;
}

#define EACH_UNTIL(at) for (const vez_deadline_t *at = untils(); *at; at++)

/* ---- a thread waits for a token ---- */

/* Seen to fail: vez_cancel_wait that returns what its wait came to (ECANCELED). */
Test(sleep, TOK_18_a_fire_ends_the_wait_for_it)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		EACH_UNTIL(until) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			struct sleeper s[3];
			for (int i = 0; i < 3; i++) {
				s[i] = (struct sleeper){ .for_token = true, .until = *until, .token = &token };
				sleeper_start(&s[i]);
			}
			EXPECT_EQ(vez_cancel_destroy(&token), EBUSY);
			for (int i = 0; i < 3; i++) {
				thread_kick(&s[i].thread);
				EXPECT(!thread_done(&s[i].thread));
			}
			vez_cancel_fire(&token);
			EXPECT(vez_cancel_clear(&token)); /* which changes nothing for those who waited */
			for (int i = 0; i < 3; i++)
				EXPECT_EQ(sleeper_join(&s[i]), 0);
			EXPECT_EQ(vez_cancel_destroy(&token), 0);
		}
	}
}

/* Seen to fail: a wait that looks at its deadline first. */
Test(sleep, H02_a_fired_token_is_not_waited_for)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		errno = 66;
		EXPECT_EQ(vez_cancel_wait(&token, VEZ_NOW), ETIMEDOUT);
		EXPECT_EQ(vez_cancel_wait(&token, vez_after_ms(-1)), ETIMEDOUT);
		vez_cancel_fire(&token);
		EXPECT_EQ(vez_cancel_wait(&token, VEZ_NOW), 0);
		EXPECT_EQ(vez_cancel_wait(&token, VEZ_FOREVER), 0);
		EXPECT(vez_cancel_fired(&token));
		EXPECT_EQ(errno, 66);
		EXPECT_EQ(inject_waits(), 0);
	}
}

/* Seen to fail: a wait that ends 3 ms before. */
Test(sleep, ALL_a_wait_for_a_token_is_not_cut_short)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_deadline_t until = vez_after_ms(5);
		EXPECT_EQ(vez_cancel_wait(&token, until), ETIMEDOUT);
		EXPECT(real_now() >= until);
		EXPECT_EQ(vez_cancel_destroy(&token), 0);
	}
}

static void fire_and_stop(void *arg)
{
	stops_before_wake = true;
	vez_cancel_fire(arg);
}

/* The token, and the stack of the thread that slept. Seen to fail: a fire that looks at its token when it has ended
 * the waits. */
Test(sleep, A06_the_token_may_go_when_the_wait_has_returned)
{
	for (int for_token = 0; for_token < 2; for_token++) {
		vez_cancel_t *token = guard_new(sizeof *token);
		struct thread firing = { 0 };
		struct sleeper s = { .for_token = for_token, .until = VEZ_FOREVER, .token = token };
		vez_cancel_init(token);
		sleeper_start(&s);
		gate_init(&before_wake);
		inject_before_wake(stop_before_wake);
		thread_start(&firing, fire_and_stop, token);
		gate_await(&before_wake, 1);
		thread_kick(&s.thread);
		EXPECT_EQ(sleeper_join(&s), for_token ? 0 : ECANCELED);
		EXPECT_EQ(vez_cancel_destroy(token), 0);
		guard_close(token);
		gate_open(&before_wake);
		thread_join(&firing);
		inject_before_wake(NULL);
		guard_free(token);
	}
}

/* ---- a thread sleeps ---- */

/* Seen to fail: vez_sleep_until that returns ETIMEDOUT; one that asks for the moment before the token. */
Test(sleep, H02_past_moments_and_fired_tokens)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		errno = 66;
		EXPECT_EQ(vez_sleep_until(VEZ_NOW, NULL), 0);
		EXPECT_EQ(vez_sleep_until(0, &token), 0);
		EXPECT_EQ(vez_sleep_until(vez_after_ns(-1), &token), 0);
		vez_cancel_fire(&token);
		EXPECT_EQ(vez_sleep_until(VEZ_NOW, &token), ECANCELED);
		EXPECT_EQ(vez_sleep_until(VEZ_FOREVER, &token), ECANCELED);
		EXPECT(vez_cancel_clear(&token));
		EXPECT_EQ(vez_sleep_until(VEZ_NOW, &token), 0);
		EXPECT_EQ(errno, 66);
		EXPECT_EQ(inject_waits(), 0);
	}
}

/* Seen to fail: a sleep that ends 3 ms before. */
Test(sleep, ALL_no_sleep_ends_early)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		for (int with_token = 0; with_token < 2; with_token++) {
			vez_deadline_t until = vez_after_ms(5);
			EXPECT_EQ(vez_sleep_until(until, with_token ? &token : NULL), 0);
			EXPECT(real_now() >= until);
		}
		EXPECT_EQ(vez_cancel_destroy(&token), 0);
	}
}

/* Seen to fail: a sleep that does not name its token. */
Test(sleep, ALL_a_fire_ends_a_sleep)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		EACH_UNTIL(until) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			struct sleeper s = { .until = *until, .token = &token };
			sleeper_start(&s);
			thread_kick(&s.thread);
			EXPECT(!thread_done(&s.thread));
			EXPECT_EQ(vez_cancel_destroy(&token), EBUSY);
			vez_cancel_fire(&token);
			EXPECT_EQ(sleeper_join(&s), ECANCELED);
			EXPECT_EQ(vez_cancel_destroy(&token), 0);
		}
	}
}

/* Seen to fail: a wait that shows its own core instead of the token. */
Test(sleep, ALL_inspection_shows_who_sleeps_and_who_waits_for_what)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	struct sleeper asleep = { .until = VEZ_FOREVER, .token = &token };
	struct sleeper waits = { .for_token = true, .until = VEZ_FOREVER, .token = &token };
	struct note n = { .item = 0 };
	char *text = NULL, wanted[3][64];
	size_t size;
	vez_inspect_enable(true);
	sleeper_start(&asleep);
	sleeper_start(&waits);
	note_init(&n);
	EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EINPROGRESS);
	FILE *out = open_memstream(&text, &size);
	EXPECT_EQ(vez_inspect(out), 3);
	fclose(out);
	snprintf(wanted[0], sizeof wanted[0], "cancel %p: thread ", (void *)&token);
	snprintf(wanted[1], sizeof wanted[1], "cancel %p: async %p", (void *)&token, (void *)&n.r);
	snprintf(wanted[2], sizeof wanted[2], "vez: sleep 0x");
	for (int i = 0; i < 3; i++)
		cr_assert(strstr(text, wanted[i]), "no \"%s\" in:\n%s", wanted[i], text);
	free(text);
	vez_cancel_fire(&token);
	EXPECT_EQ(sleeper_join(&asleep), ECANCELED);
	EXPECT_EQ(sleeper_join(&waits), 0);
	EXPECT_EQ(vez_inspect(NULL), 0);
}

/* ---- a request waits for a token ---- */

/* Seen to fail: give_up that ends a watch with ECANCELED. */
Test(sleep, TOK_18_a_fire_completes_who_waits_for_it)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t parent = VEZ_CANCEL_INITIALIZER, token;
		struct note n[3] = { { .item = 0 } };
		EXPECT_EQ(vez_cancel_init_child(&token, &parent), 0);
		notes_reset();
		for (int i = 0; i < 3; i++) {
			note_init(&n[i]);
			vez_request_set_key(&n[i].r, -i);
			if (i == 1)
				vez_request_set_limits(&n[i].r, vez_after_s(3600), NULL);
			EXPECT_EQ(vez_cancel_wait_async(&token, &n[i].r), EINPROGRESS);
			EXPECT_EQ(vez_request_result(&n[i].r), EINPROGRESS);
		}
		EXPECT_EQ(vez_cancel_destroy(&token), EBUSY);
		vez_cancel_fire(&parent);
		for (int i = 0; i < 3; i++) {
			CHECK_COMPLETED(&n[i], 0);
			EXPECT_EQ(n[i].by, own_tid());
			EXPECT_EQ(n[i].place, i + 1);
		}
		note_init(&n[0]);
		EXPECT_EQ(vez_cancel_wait_async(&token, &n[0].r), 0);
		EXPECT_EQ(vez_request_result(&n[0].r), 0);
		EXPECT_EQ(n[0].calls, 0);
		EXPECT_EQ(vez_cancel_destroy(&token), 0);
		EXPECT_EQ(vez_cancel_destroy(&parent), 0);
	}
}

/* The token of the limits is replaced. Seen to fail: a watch that keeps it. */
Test(sleep, ALL_the_token_of_the_limits_is_the_one_that_is_waited_for)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER, other = VEZ_CANCEL_INITIALIZER;
	struct note n = { .item = 0 };
	note_init(&n);
	vez_cancel_fire(&other);
	vez_request_set_limits(&n.r, VEZ_FOREVER, &other);
	EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EINPROGRESS);
	EXPECT_EQ(vez_cancel_destroy(&other), 0);
	vez_cancel_fire(&token);
	CHECK_COMPLETED(&n, 0);
	EXPECT_EQ(vez_cancel_destroy(&token), 0);
}

/* Seen to fail: a watch that is filed though its deadline has passed. */
Test(sleep, ALL_deadlines_of_watches)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		struct note n = { .item = 0 };
		note_init(&n);
		vez_request_set_limits(&n.r, VEZ_NOW, NULL);
		EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), ETIMEDOUT);
		EXPECT_EQ(vez_request_result(&n.r), ETIMEDOUT);
		note_init(&n);
		vez_deadline_t until = vez_after_ms(3);
		vez_request_set_limits(&n.r, until, NULL);
		EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EINPROGRESS);
		EXPECT_EQ(vez_request_wait(&n.r, VEZ_FOREVER, NULL), 0);
		EXPECT(real_now() >= until);
		CHECK_COMPLETED(&n, ETIMEDOUT);
		vez_cancel_fire(&token);
		note_init(&n);
		vez_request_set_limits(&n.r, VEZ_NOW, NULL);
		EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), 0);
		EXPECT_EQ(vez_cancel_destroy(&token), 0);
	}
}

/* Seen to fail: vez_cancel_wait_async that does not say why it has no thread. */
Test(sleep, ALL_no_thread_for_the_deadline)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	struct note n = { .item = 0 };
	note_init(&n);
	inject_no_thread(true);
	vez_request_set_limits(&n.r, vez_after_s(3600), NULL);
	EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EAGAIN);
	inject_no_thread(false);
	EXPECT_EQ(vez_request_result(&n.r), EAGAIN);
	EXPECT_EQ(vez_cancel_destroy(&token), 0);
}

/* Seen to fail: give_up that takes every cause for a fire. */
Test(sleep, ASY_04_a_watch_is_cancelled)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		struct note n = { .item = 0 };
		note_init(&n);
		EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EINPROGRESS);
		EXPECT_EQ(vez_request_cancel(&n.r), 0);
		CHECK_COMPLETED(&n, ECANCELED);
		EXPECT_EQ(vez_request_cancel(&n.r), EALREADY);
		vez_cancel_fire(&token);
		EXPECT_EQ(n.calls, 1);
		EXPECT_EQ(vez_cancel_destroy(&token), 0);
	}
}

static void note_place(void *arg)
{
	struct note *n = arg;
	EXPECT_EQ(n->calls, 1);
}

/* Seen to fail: a fire that runs its hooks first. */
Test(sleep, TOK_18_watches_complete_before_hooks_run)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_cancel_hook_t hook;
	struct note n = { .item = 0 };
	EXPECT_EQ(vez_cancel_attach(&token, &hook, note_place, &n), 0);
	note_init(&n);
	EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EINPROGRESS);
	vez_cancel_fire(&token);
	CHECK_COMPLETED(&n, 0);
}

/* An event loop learns of a token: a tick, a list. Seen to fail: a watch that calls only functions. */
Test(sleep, ASY_07_an_event_loop_is_told)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	vez_completions_t list;
	vez_request_t ticks, listed;
	int efd = new_eventfd();
	vez_completions_init(&list, -1);
	vez_request_init_eventfd(&ticks, efd);
	vez_request_init_completions(&listed, &list);
	EXPECT_EQ(vez_cancel_wait_async(&token, &ticks), EINPROGRESS);
	EXPECT_EQ(vez_cancel_wait_async(&token, &listed), EINPROGRESS);
	EXPECT_EQ(ticks_in(efd), 0);
	EXPECT(vez_completions_next(&list) == NULL);
	EXPECT_EQ(vez_cancel_on_signal(&token, SIGUSR1), 0);
	raise(SIGUSR1);
	EXPECT_EQ(vez_completions_wait(&list, VEZ_FOREVER, NULL), 0);
	EXPECT(vez_completions_next(&list) == &listed);
	EXPECT_EQ(vez_request_wait(&ticks, VEZ_FOREVER, NULL), 0);
	EXPECT_EQ(ticks_in(efd), 1);
	EXPECT_EQ(vez_request_result(&ticks), 0);
	EXPECT_EQ(vez_cancel_destroy(&token), 0);
	close(efd);
}

static void watch_own(void *arg)
{
	struct note *n = arg;
	EXPECT_EQ(vez_cancel_wait_async(vez_cancel_self(), &n->r), EINPROGRESS);
}

/* Seen to fail: end_waits that leaves them queued. */
Test(sleep, ALL_a_threads_own_token_counts_as_fired_when_it_goes)
{
	struct note n = { .item = 0 };
	struct thread t = { 0 };
	note_init(&n);
	thread_start(&t, watch_own, &n);
	thread_join(&t);
	CHECK_COMPLETED(&n, 0);
}

/* No assertion may be made in the child. Seen to fail: in_child of engine/sleep.c left out (with the lock taken, the
 * child hangs: so it is taken here). */
Test(sleep, ALL_10_watches_in_a_child)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	struct note n = { .item = 0 };
	int status = -1;
	note_init(&n);
	EXPECT_EQ(vez_cancel_wait_async(&token, &n.r), EINPROGRESS);
	pid_t child = fork_when_quiet();
	if (child == 0) {
		alarm(30);
		vez_cancel_init(&token);
		note_init(&n);
		int rc = vez_cancel_wait_async(&token, &n.r);
		vez_cancel_fire(&token);
		if (rc != EINPROGRESS || n.calls != 1 || n.result != 0)
			_exit(1);
		_exit(vez_sleep_until(VEZ_FOREVER, &token) == ECANCELED ? 0 : 2);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	vez_cancel_fire(&token);
	CHECK_COMPLETED(&n, 0);
}

/* ---- two reasons ---- */

/* Seen to fail: a watch whose fire need not win (both are complete with 0). */
Test(sleep, ASY_08_the_first_of_two_tokens_wins)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		for (int first = 0; first < 2; first++) {
			vez_cancel_t token[2] = { VEZ_CANCEL_INITIALIZER, VEZ_CANCEL_INITIALIZER };
			vez_request_t member[3], *winner = NULL;
			vez_sem_t s = VEZ_SEM_INITIALIZER(0);
			vez_select_t any;
			vez_select_init(&any);
			EXPECT_EQ(vez_sem_acquire_async(&s, 1, vez_select_case(&any, &member[2])), EINPROGRESS);
			for (int i = 0; i < 2; i++)
				EXPECT_EQ(vez_cancel_wait_async(&token[i], vez_select_case(&any, &member[i])),
					  EINPROGRESS);
			vez_cancel_fire(&token[first]);
			vez_cancel_fire(&token[!first]);
			EXPECT_EQ(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner), 0);
			EXPECT(winner == &member[first]);
			EXPECT_EQ(vez_request_result(&member[!first]), ECANCELED);
			EXPECT_EQ(vez_request_result(&member[2]), ECANCELED);
			EXPECT_EQ(vez_sem_waiters(&s), 0);
			EXPECT_EQ(vez_cancel_destroy(&token[0]), 0);
			EXPECT_EQ(vez_cancel_destroy(&token[1]), 0);
		}
	}
}

/* Seen to fail: a fired token that refuses who waits for it. */
Test(sleep, ASY_08_what_a_wait_for_any_finds_of_tokens)
{
	vez_cancel_t fired = VEZ_CANCEL_INITIALIZER, quiet = VEZ_CANCEL_INITIALIZER;
	vez_request_t member[3], *winner = NULL;
	vez_select_t any;
	vez_cancel_fire(&fired);
	vez_select_init(&any);
	EXPECT_EQ(vez_cancel_wait_async(&quiet, vez_select_case(&any, &member[0])), EINPROGRESS);
	EXPECT_EQ(vez_cancel_wait_async(&fired, vez_select_case(&any, &member[1])), 0);
	EXPECT_EQ(vez_cancel_wait_async(&fired, vez_select_case(&any, &member[2])), ECANCELED);
	EXPECT_EQ(vez_select_wait(&any, VEZ_NOW, NULL, &winner), 0);
	EXPECT(winner == &member[1]);
	/* None: withdrawn, or late. */
	vez_select_init(&any);
	EXPECT_EQ(vez_cancel_wait_async(&quiet, vez_select_case(&any, &member[0])), EINPROGRESS);
	EXPECT_EQ(vez_select_wait(&any, vez_after_ms(1), NULL, NULL), ETIMEDOUT);
	EXPECT_EQ(vez_request_result(&member[0]), ECANCELED);
	vez_select_init(&any);
	vez_request_t *late = vez_select_case(&any, &member[0]);
	vez_request_set_limits(late, VEZ_NOW, NULL);
	EXPECT_EQ(vez_cancel_wait_async(&quiet, late), ETIMEDOUT);
	EXPECT_EQ(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner), ETIMEDOUT);
	EXPECT(winner == &member[0]);
	EXPECT_EQ(vez_cancel_destroy(&quiet), 0);
}

static void fire_hooked(void *token)
{
	vez_cancel_fire(token);
}

/* As vez/sleep.h tells. Seen to fail: a child that is not its parent's. */
Test(sleep, ALL_which_of_two_reasons)
{
	for (unsigned reasons = 1; reasons < 4; reasons++) {
		vez_cancel_t shutdown = VEZ_CANCEL_INITIALIZER, client = VEZ_CANCEL_INITIALIZER, either;
		vez_cancel_hook_t hook;
		struct sleeper s = { .until = VEZ_FOREVER, .token = &either };
		EXPECT_EQ(vez_cancel_init_child(&either, &shutdown), 0);
		EXPECT_EQ(vez_cancel_attach(&client, &hook, fire_hooked, &either), 0);
		sleeper_start(&s);
		if (reasons & 1)
			vez_cancel_fire(&client);
		if (reasons & 2)
			vez_cancel_fire(&shutdown);
		EXPECT_EQ(sleeper_join(&s), ECANCELED);
		EXPECT_EQ(vez_cancel_fired(&client), (reasons & 1) != 0);
		EXPECT_EQ(vez_cancel_fired(&shutdown), (reasons & 2) != 0);
		EXPECT_EQ(vez_cancel_try_detach(&client, &hook), reasons & 1 ? EALREADY : 0);
		EXPECT_EQ(vez_cancel_destroy(&either), 0);
	}
}

static struct {
	vez_cancel_t soon, now;
	vez_cancel_hook_t hook;
	bool bound;
} stops;

static void bind_now(void *arg)
{
	(void)arg;
	vez_cancel_on_signal(&stops.now, SIGTERM);
	STORE(&stops.bound, true);
}

static void (*handler(void))(int)
{
	struct sigaction action;
	sigaction(SIGTERM, NULL, &action);
	return action.sa_handler;
}

/* By a thread that waits for the first; by a hook of the first. Seen to fail: take_over that keeps the token there
 * was. */
Test(sleep, ALL_the_same_signal_a_second_time)
{
	for (int by_hook = 0; by_hook < 2; by_hook++) {
		void (*before)(int) = handler();
		vez_cancel_init(&stops.soon);
		vez_cancel_init(&stops.now);
		stops.bound = false;
		EXPECT_EQ(vez_cancel_on_signal(&stops.soon, SIGTERM), 0);
		if (by_hook)
			EXPECT_EQ(vez_cancel_attach(&stops.soon, &stops.hook, bind_now, NULL), 0);
		raise(SIGTERM);
		EXPECT_EQ(vez_cancel_wait(&stops.soon, VEZ_FOREVER), 0);
		if (!by_hook)
			bind_now(NULL);
		UNTIL(LOAD(&stops.bound));
		EXPECT(!vez_cancel_fired(&stops.now));
		raise(SIGTERM);
		EXPECT_EQ(vez_sleep_until(VEZ_FOREVER, &stops.now), ECANCELED);
		EXPECT_EQ(vez_cancel_destroy(&stops.soon), 0);
		EXPECT(handler() != before);
		EXPECT_EQ(vez_cancel_destroy(&stops.now), 0);
		EXPECT(handler() == before);
	}
}
