/* SPDX-License-Identifier: MIT */
/* Lists of completions. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vez.h>

#include "async.h"
#include "guard.h"

TestSuite(completions, .timeout = 120);

static void file(vez_completions_t *l, vez_sem_t *s, vez_request_t *r)
{
	vez_request_init_completions(r, l);
	EXPECT_EQ(vez_sem_acquire_async(s, 1, r), EINPROGRESS);
}

/* Seen to fail: put_last that puts first. */
Test(completions, ALL_in_the_order_of_completion)
{
	EACH_VARIANT(v, ONE_FORM) {
		enum { REQUESTS = 6 };
		static const int order[REQUESTS] = { 3, 0, 5, 1, 4, 2 };
		vez_completions_t l;
		vez_sem_t s[REQUESTS];
		vez_request_t r[REQUESTS];
		memset(&l, 0xa5, sizeof l);
		vez_completions_init(&l, -1);
		for (int i = 0; i < REQUESTS; i++) {
			vez_sem_init(&s[i], 0, 0, v->flags);
			file(&l, &s[i], &r[i]);
		}
		EXPECT(vez_completions_next(&l) == NULL);
		for (int i = 0; i < REQUESTS; i++)
			EXPECT_EQ(vez_sem_release(&s[order[i]], 1), 0);
		for (int i = 0; i < REQUESTS; i++) {
			EXPECT_EQ(vez_completions_wait(&l, VEZ_NOW, NULL), 0);
			EXPECT(vez_completions_next(&l) == &r[order[i]]);
			EXPECT_EQ(vez_request_result(&r[order[i]]), 0);
			EXPECT_EQ(vez_request_wait(&r[order[i]], VEZ_NOW, NULL), 0);
			EXPECT_EQ(vez_request_cancel(&r[order[i]]), EALREADY);
		}
		EXPECT(vez_completions_next(&l) == NULL);
	}
}

/* Granted at once: it joins nothing. Seen to fail: async_end that tells the list. */
Test(completions, ALL_what_was_granted_at_once_does_not_join)
{
	int efd = new_eventfd();
	vez_completions_t l;
	vez_request_t r;
	vez_sem_t s = VEZ_SEM_INITIALIZER(1);
	vez_completions_init(&l, efd);
	vez_request_init_completions(&r, &l);
	EXPECT_EQ(vez_sem_acquire_async(&s, 1, &r), 0);
	EXPECT(vez_completions_next(&l) == NULL);
	vez_request_set_limits(&r, VEZ_NOW, NULL);
	EXPECT_EQ(vez_sem_acquire_async(&s, 1, &r), ETIMEDOUT);
	EXPECT(vez_completions_next(&l) == NULL);
	EXPECT_EQ(vez_completions_wait(&l, VEZ_NOW, NULL), ETIMEDOUT);
	EXPECT_EQ(ticks_in(efd), 0);
	close(efd);
}

/* Seen to fail: a tick for every request; none after the list was empty for the second time. */
Test(completions, ASY_07_a_tick_when_it_ceases_to_be_empty)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		int efd = new_eventfd();
		vez_completions_t l;
		vez_request_t r[3];
		vez_sem_t s = VEZ_SEM_INITIALIZER(0);
		vez_completions_init(&l, efd);
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < 3; i++)
				file(&l, &s, &r[i]);
			EXPECT_EQ(ticks_in(efd), 0);
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT_EQ(ticks_in(efd), 1);
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT_EQ(ticks_in(efd), 0);
			EXPECT(vez_completions_next(&l) == &r[0]);
			/* One is left: it is not empty yet. */
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT_EQ(ticks_in(efd), 0);
			EXPECT(vez_completions_next(&l) == &r[1]);
			EXPECT(vez_completions_next(&l) == &r[2]);
			EXPECT(vez_completions_next(&l) == NULL);
			EXPECT_EQ(ticks_in(efd), 0);
		}
		/* Three by one act: one. */
		for (int i = 0; i < 3; i++)
			file(&l, &s, &r[i]);
		EXPECT_EQ(vez_sem_release(&s, 3), 0);
		EXPECT_EQ(ticks_in(efd), 1);
		for (int i = 0; i < 3; i++)
			EXPECT(vez_completions_next(&l) == &r[i]);
		EXPECT_EQ(vez_sem_destroy(&s), 0);
		close(efd);
	}
}

/* A tick that cannot be written is dropped, and nothing waits for it. Seen to fail: sys_tick that tries again. */
Test(completions, ALL_a_full_eventfd)
{
	const uint64_t full = UINT64_MAX - 1;
	int efd = new_eventfd();
	vez_completions_t l;
	vez_request_t r;
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	EXPECT_EQ(write(efd, &full, sizeof full), sizeof full);
	vez_completions_init(&l, efd);
	file(&l, &s, &r);
	errno = 99;
	EXPECT_EQ(vez_sem_release(&s, 1), 0);
	EXPECT_EQ(errno, 99);
	EXPECT(vez_completions_next(&l) == &r);
	EXPECT_EQ(ticks_in(efd), full);
	close(efd);
}

/* Seen to fail: wait that does not ask for the token. */
Test(completions, ALL_01_limits_of_the_wait)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		static const vez_deadline_t past[] = { 0, 1, -1, VEZ_NOW };
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_completions_t l;
		vez_request_t r;
		vez_sem_t s = VEZ_SEM_INITIALIZER(0);
		vez_completions_init(&l, -1);
		for (int i = 0; i < 4; i++)
			EXPECT_EQ(vez_completions_wait(&l, past[i], &token), ETIMEDOUT);
		vez_deadline_t deadline = vez_after_us(300);
		EXPECT_EQ(vez_completions_wait(&l, deadline, &token), ETIMEDOUT);
		EXPECT(real_now() >= deadline);
		vez_cancel_fire(&token);
		EXPECT_EQ(vez_completions_wait(&l, VEZ_NOW, &token), ECANCELED);
		EXPECT_EQ(vez_completions_wait(&l, VEZ_FOREVER, &token), ECANCELED);
		file(&l, &s, &r);
		EXPECT_EQ(vez_completions_wait(&l, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(vez_completions_wait(&l, VEZ_FOREVER, &token), ECANCELED);
		for (int i = 0; i < 4; i++)
			EXPECT_EQ(vez_completions_wait(&l, past[i], NULL), 0);
		EXPECT(vez_cancel_fired(&token));
		EXPECT_EQ(vez_cancel_destroy(&token), 0);
		EXPECT(vez_completions_next(&l) == &r);
		EXPECT_EQ(vez_completions_wait(&l, VEZ_NOW, NULL), ETIMEDOUT);
	}
}

struct consumer {
	struct thread thread;
	vez_completions_t *l;
	vez_deadline_t deadline;
	vez_cancel_t *token;
	int rc;
	vez_request_t *got;
};

static void consume(void *arg)
{
	struct consumer *c = arg;
	c->rc = vez_completions_wait(c->l, c->deadline, c->token);
	if (c->rc == 0)
		c->got = vez_completions_next(c->l);
}

static void start_consumer(struct consumer *c, vez_completions_t *l, vez_cancel_t *token)
{
	memset(c, 0, sizeof *c);
	c->l = l;
	c->deadline = VEZ_FOREVER;
	c->token = token;
	thread_start(&c->thread, consume, c);
	thread_await_parked(&c->thread);
}

/* Seen to fail: put_last that wakes nobody (it hangs). */
Test(completions, ALL_the_consumer_sleeps_until_there_is_one)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		for (int ticks = 0; ticks < 2; ticks++) {
			int efd = ticks ? new_eventfd() : -1;
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			vez_completions_t l;
			vez_request_t r;
			vez_sem_t s = VEZ_SEM_INITIALIZER(0);
			struct consumer c;
			vez_completions_init(&l, efd);
			file(&l, &s, &r);
			start_consumer(&c, &l, &token);
			EXPECT(!thread_done(&c.thread));
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			thread_join(&c.thread);
			EXPECT_EQ(c.rc, 0);
			EXPECT(c.got == &r);
			start_consumer(&c, &l, &token);
			vez_cancel_fire(&token);
			thread_join(&c.thread);
			EXPECT_EQ(c.rc, ECANCELED);
			EXPECT(vez_completions_next(&l) == NULL);
			if (ticks) {
				EXPECT_EQ(ticks_in(efd), 1);
				close(efd);
			}
		}
	}
}

struct producer {
	struct thread thread;
	vez_sem_t *s;
	int count;
	vez_cancel_t *token;
};

static void produce(void *arg)
{
	struct producer *p = arg;
	for (int i = 0; i < p->count; i++)
		vez_sem_release(p->s, 1);
	if (p->token)
		vez_cancel_fire(p->token);
}

enum { PRODUCERS = 3, EACH = 300 };

static struct {
	vez_completions_t l;
	vez_sem_t s[PRODUCERS];
	vez_request_t r[PRODUCERS][EACH + 20];
} many;

static void start_producers(struct producer *p, vez_cancel_t *tokens, int efd)
{
	memset(&many, 0, sizeof many);
	vez_completions_init(&many.l, efd);
	for (int i = 0; i < PRODUCERS; i++) {
		vez_cancel_init(&tokens[i]);
		for (int j = 0; j < EACH + 20; j++) {
			vez_request_init_completions(&many.r[i][j], &many.l);
			vez_request_set_limits(&many.r[i][j], VEZ_FOREVER, &tokens[i]);
			EXPECT_EQ(vez_sem_acquire_async(&many.s[i], 1, &many.r[i][j]), EINPROGRESS);
		}
		p[i] = (struct producer){ .s = &many.s[i], .count = EACH, .token = &tokens[i] };
	}
	for (int i = 0; i < PRODUCERS; i++)
		thread_start(&p[i].thread, produce, &p[i]);
}

/* Waits for a tick; returns how many there were: the list may have ceased to be empty again since the first. */
static int await_ticks(int efd)
{
	struct pollfd ready = { .fd = efd, .events = POLLIN };
	EXPECT_EQ(poll(&ready, 1, 20000), 1);
	return (int)ticks_in(efd);
}

/* One consumer, which polls the eventfd or waits: everything comes, and of each producer in order; before what is taken
 * from a list that was found empty came a tick. Seen to fail: put_last that puts first; no tick for the second time. */
Test(completions, ALL_several_producers)
{
	for (int round = 0; round < 12; round++) {
		int efd = round % 2 ? new_eventfd() : -1;
		int seen[PRODUCERS] = { 0 }, ticks = 0;
		struct producer p[PRODUCERS];
		vez_cancel_t tokens[PRODUCERS];
		start_producers(p, tokens, efd);
		for (int got = 0; got < PRODUCERS * (EACH + 20);) {
			if (efd >= 0)
				ticks += await_ticks(efd);
			else
				EXPECT_EQ(vez_completions_wait(&many.l, VEZ_FOREVER, NULL), 0);
			for (vez_request_t *r; (r = vez_completions_next(&many.l)); got++) {
				int of = (int)((r - many.r[0]) / (EACH + 20));
				EXPECT(r == &many.r[of][seen[of]]);
				EXPECT_EQ(vez_request_result(r), seen[of] < EACH ? 0 : ECANCELED);
				seen[of]++;
			}
		}
		EXPECT_EQ(vez_completions_wait(&many.l, VEZ_NOW, NULL), ETIMEDOUT);
		for (int i = 0; i < PRODUCERS; i++) {
			thread_join(&p[i].thread);
			EXPECT_EQ(vez_sem_destroy(&many.s[i]), 0);
			EXPECT_EQ(vez_cancel_destroy(&tokens[i]), 0);
		}
		if (efd >= 0) {
			ticks += (int)ticks_in(efd);
			EXPECT(ticks >= 1 && ticks <= PRODUCERS * (EACH + 20));
			close(efd);
		}
	}
}

static void release_one(void *arg)
{
	vez_sem_release(arg, 1);
}

/* The eventfd is full, and blocks: the consumer gets nothing before the tick is written, for it may close the eventfd
 * then. Seen to fail: next that does not ask whether a tick is owed. */
Test(completions, A06_none_before_its_tick)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		const uint64_t full = UINT64_MAX - 1;
		int efd = eventfd(0, EFD_CLOEXEC);
		unsigned long call[7];
		struct thread releasing = { 0 };
		struct consumer c = { .deadline = VEZ_FOREVER };
		vez_completions_t l;
		vez_request_t r;
		vez_sem_t s = VEZ_SEM_INITIALIZER(0);
		EXPECT_EQ(write(efd, &full, sizeof full), sizeof full);
		vez_completions_init(&l, efd);
		file(&l, &s, &r);
		thread_start(&releasing, release_one, &s);
		UNTIL(thread_syscall(&releasing, call) && call[0] == CALL_WRITE);
		c.l = &l;
		thread_start(&c.thread, consume, &c);
		thread_await_parked(&c.thread);
		EXPECT(!thread_done(&c.thread) && !thread_done(&releasing));
		EXPECT_EQ(ticks_in(efd), full);
		thread_join(&c.thread);
		EXPECT_EQ(c.rc, 0);
		EXPECT(c.got == &r);
		EXPECT_EQ(ticks_in(efd), 1);
		close(efd);
		thread_join(&releasing);
	}
}

/* Who took the last request may take the list away, and the eventfd with it, though the release has not returned; and
 * the request too. Seen to fail: next that lets a request go before its tick is written. */
Test(completions, A06_the_list_may_go_with_its_last_request)
{
	vez_completions_t *l = guard_new(sizeof *l);
	vez_request_t *r = guard_new(sizeof *r);
	for (int round = 0; round < 600; round++) {
		int efd = round % 2 ? new_eventfd() : -1;
		struct thread releasing = { 0 };
		vez_sem_t s = VEZ_SEM_INITIALIZER(0);
		vez_completions_init(l, efd);
		file(l, &s, r);
		thread_start(&releasing, release_one, &s);
		if (round % 4 < 2)
			EXPECT_EQ(vez_completions_wait(l, VEZ_FOREVER, NULL), 0);
		vez_request_t *got;
		while (!(got = vez_completions_next(l)))
			sched_yield();
		EXPECT(got == r);
		if (efd >= 0) {
			EXPECT_EQ(ticks_in(efd), 1);
			close(efd);
		}
		guard_close(l);
		guard_close(r);
		thread_join(&releasing);
		EXPECT_EQ(vez_sem_destroy(&s), 0);
		guard_open(l, sizeof *l);
		guard_open(r, sizeof *r);
	}
	guard_free(l);
	guard_free(r);
}

static void release_and_stop(void *arg)
{
	stops_before_wake = true;
	vez_sem_release(arg, 1);
}

/* Who releases is stopped before it wakes the consumer, which wakes by itself, and takes everything away. Seen to fail:
 * tell that looks at the request when it has joined its list; join_list that looks at the list then. */
Test(completions, A06_the_list_may_go_before_the_wake)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		for (int ticks = 0; ticks < 2; ticks++) {
			vez_completions_t *l = guard_new(sizeof *l);
			vez_request_t *r = guard_new(sizeof *r);
			struct thread releasing = { 0 };
			struct consumer c;
			vez_sem_t s = VEZ_SEM_INITIALIZER(0);
			int efd = ticks ? new_eventfd() : -1;
			vez_completions_init(l, efd);
			file(l, &s, r);
			gate_init(&before_wake);
			start_consumer(&c, l, NULL);
			inject_before_wake(stop_before_wake);
			thread_start(&releasing, release_and_stop, &s);
			gate_await(&before_wake, 1);
			thread_kick(&c.thread);
			thread_join(&c.thread);
			EXPECT_EQ(c.rc, 0);
			EXPECT(c.got == r);
			guard_close(l);
			guard_close(r);
			if (ticks)
				close(efd);
			inject_before_wake(NULL);
			gate_open(&before_wake);
			thread_join(&releasing);
			guard_free(l);
			guard_free(r);
		}
	}
}

/* Taken out, it may be used again, for the same list. Seen to fail: next that leaves it in the list. */
Test(completions, ALL_queued_anew_when_taken_out)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_completions_t l;
		vez_request_t r[2];
		vez_sem_t s;
		vez_sem_init(&s, 0, 0, v->flags);
		vez_completions_init(&l, -1);
		file(&l, &s, &r[0]);
		file(&l, &s, &r[1]);
		for (int i = 0; i < 20; i++) {
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT(vez_completions_next(&l) == &r[i % 2]);
			file(&l, &s, &r[i % 2]);
		}
		EXPECT_EQ(vez_request_cancel(&r[1]), 0);
		EXPECT_EQ(vez_request_cancel(&r[0]), 0);
		EXPECT(vez_completions_next(&l) == &r[1]);
		EXPECT(vez_completions_next(&l) == &r[0]);
		EXPECT_EQ(vez_sem_destroy(&s), 0);
	}
}
