/* SPDX-License-Identifier: MIT */
/* Cancellation tokens, as far as blocking waits go. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <vez.h>

#include "acquire.h"
#include "guard.h"
#include "sync/engine.h"

TestSuite(cancel, .timeout = 120);

#define MS INT64_C(1000000)

static vez_sem_t make(unsigned flags)
{
	vez_sem_t s;
	EXPECT_EQ(vez_sem_init(&s, 0, 0, flags), 0);
	return s;
}

/* Seen to fail: fire that toggles; clear that always says true. */
Test(cancel, TOK_01_fired_once_and_for_all)
{
	vez_cancel_t c = VEZ_CANCEL_INITIALIZER;
	errno = 99;
	EXPECT(!vez_cancel_fired(&c));
	EXPECT(!vez_cancel_clear(&c));
	vez_cancel_fire(&c);
	EXPECT(vez_cancel_fired(&c));
	vez_cancel_fire(&c);
	EXPECT(vez_cancel_fired(&c));
	EXPECT(vez_cancel_clear(&c));
	EXPECT(!vez_cancel_fired(&c));
	EXPECT(!vez_cancel_clear(&c));
	vez_cancel_fire(&c);
	EXPECT(vez_cancel_fired(&c));
	EXPECT_EQ(errno, 99);
}

/* Seen to fail: init that leaves arrivals_. */
Test(cancel, ALL_zero_bytes_are_a_token)
{
	vez_cancel_t zero, made, initialized = VEZ_CANCEL_INITIALIZER;
	memset(&zero, 0, sizeof zero);
	memset(&made, 0xa5, sizeof made);
	vez_cancel_init(&made);
	EXPECT_EQ(memcmp(&made, &zero, sizeof zero), 0);
	EXPECT_EQ(memcmp(&initialized, &zero, sizeof zero), 0);
}

static void fire_own(void *arg)
{
	vez_cancel_t **seen = arg;
	*seen = vez_cancel_self();
	vez_cancel_fire(vez_cancel_self());
}

/* Seen to fail: one token for all threads. */
Test(cancel, ALL_each_thread_has_its_own)
{
	struct thread t = { 0 };
	vez_cancel_t *other = NULL;
	thread_start(&t, fire_own, &other);
	thread_join(&t);
	EXPECT(other != NULL && other != vez_cancel_self());
	EXPECT(!vez_cancel_fired(vez_cancel_self()));
	EXPECT(vez_cancel_self() == vez_cancel_self());
	vez_cancel_fire(vez_cancel_self());
	vez_sem_t s = make(0);
	EXPECT_EQ(vez_sem_acquire_until(&s, 1, VEZ_FOREVER, vez_cancel_self()), ECANCELED);
	EXPECT_EQ(vez_sem_release(&s, 1), 0);
	EXPECT_EQ(vez_sem_acquire(&s, 1), 0);
	EXPECT(vez_cancel_clear(vez_cancel_self()));
}

/* Seen to fail: claim_all that takes the first only. */
Test(cancel, TOK_14_one_fire_ends_all_waits_everywhere)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		enum { OBJECTS = 3, WAITERS = 6 };
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s[OBJECTS] = { make(v->flags), make(v->flags), make(v->flags) };
		struct acquire a[WAITERS], stranger = ACQUIRE(&s[0], 1, v->form);
		for (int i = 0; i < WAITERS; i++) {
			a[i] = (struct acquire){ .sem = &s[i % OBJECTS], .n = 1, .form = v->form, .token = &token };
			acquire_start(&a[i]);
		}
		acquire_start(&stranger);
		vez_cancel_fire(&token);
		for (int i = 1; i < OBJECTS; i++)
			EXPECT_EQ(vez_sem_waiters(&s[i]), 0);
		EXPECT_EQ(vez_sem_waiters(&s[0]), 1);
		for (int i = 0; i < WAITERS; i++)
			EXPECT_EQ(acquire_join(&a[i]), ECANCELED);
		EXPECT(vez_cancel_fired(&token));
		EXPECT(acquire_blocked(&stranger));
		EXPECT_EQ(vez_sem_release(&s[0], 1), 0);
		EXPECT_EQ(acquire_join(&stranger), 0);
		for (int i = 0; i < OBJECTS; i++)
			EXPECT_QUIET(&s[i], 0);
	}
}

/* Seen to fail: a fire that leaves the requests to their threads: cleared, they wait on. */
Test(cancel, ALL_what_was_queued_is_ended_though_the_token_is_cleared_at_once)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		enum { WAITERS = 3 };
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(v->flags);
		struct acquire a[WAITERS], late = { .sem = &s, .n = 1, .form = v->form, .token = &token };
		for (int i = 0; i < WAITERS; i++) {
			a[i] = late;
			acquire_start(&a[i]);
			acquire_await_parked(&a[i]);
			thread_freeze(&a[i].thread);
		}
		vez_cancel_fire(&token);
		EXPECT(vez_cancel_clear(&token));
		EXPECT_EQ(vez_sem_waiters(&s), 0);
		acquire_start(&late);
		EXPECT(acquire_blocked(&late));
		for (int i = 0; i < WAITERS; i++) {
			thread_thaw(&a[i].thread);
			EXPECT_EQ(acquire_join(&a[i]), ECANCELED);
		}
		EXPECT(!vez_cancel_fired(&token));
		EXPECT(acquire_blocked(&late));
		vez_cancel_fire(&token);
		EXPECT_EQ(acquire_join(&late), ECANCELED);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: a wait that clears its token; delist that is left out (the next fire meets a dead request). */
Test(cancel, ALL_05_a_token_fired_too_late_stays_fired)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(v->flags);
		for (int round = 0; round < 3; round++) {
			struct acquire a = { .sem = &s, .n = 1, .form = v->form, .token = &token };
			acquire_start(&a);
			EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT_EQ(acquire_join(&a), 0);
			memset(&a, 0xa5, sizeof a);
			EXPECT_EQ(vez_sem_acquire_until(&s, 1, vez_after_us(200), &token), ETIMEDOUT);
			EXPECT(!vez_cancel_fired(&token));
			vez_cancel_fire(&token);
			EXPECT(vez_cancel_clear(&token));
		}
		EXPECT_QUIET(&s, 0);
	}
}

static struct gate before_wake;
static __thread bool stops_before_wake;

static void stop_before_wake(uint32_t *word)
{
	(void)word;
	if (stops_before_wake) {
		stops_before_wake = false;
		gate_pass(&before_wake);
	}
}

static void fire_and_stop(void *arg)
{
	stops_before_wake = true;
	vez_cancel_fire(arg);
}

/* Seen to fail: a wait that takes itself off the token after the fire did; a fire that reads the token at its end. */
Test(cancel, A06_the_token_and_the_object_may_go_when_the_wait_has_returned)
{
	EACH_VARIANT(v, WITH_TOKEN) {
		vez_cancel_t *token = guard_new(sizeof *token);
		vez_sem_t *s = guard_new(sizeof *s);
		struct thread firing = { 0 };
		EXPECT_EQ(vez_sem_init(s, 0, 0, v->flags), 0);
		struct acquire a = { .sem = s, .n = 1, .form = v->form, .token = token };
		acquire_start(&a);
		acquire_await_parked(&a);
		gate_init(&before_wake);
		inject_before_wake(stop_before_wake);
		thread_start(&firing, fire_and_stop, token);
		gate_await(&before_wake, 1);
		thread_kick(&a.thread);
		EXPECT_EQ(acquire_join(&a), ECANCELED);
		EXPECT_EQ(vez_sem_destroy(s), 0);
		guard_close(token);
		guard_close(s);
		gate_open(&before_wake);
		thread_join(&firing);
		guard_free(token);
		guard_free(s);
	}
}

struct firing {
	struct thread thread;
	vez_cancel_t *token;
	struct gate *gate;
};

static void fire_at_the_gate(void *arg)
{
	struct firing *f = arg;
	gate_pass(f->gate);
	vez_cancel_fire(f->token);
}

/* Seen to fail: fire that takes the first only. */
Test(cancel, TOK_13_fires_meet_waits_that_begin)
{
	for (int round = 0; round < 500; round++) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(round % 2 ? VEZ_BARGING : 0);
		struct gate gate;
		struct firing f[2];
		gate_init(&gate);
		for (int i = 0; i < 2; i++) {
			f[i] = (struct firing){ .token = &token, .gate = &gate };
			thread_start(&f[i].thread, fire_at_the_gate, &f[i]);
		}
		struct acquire a = { .sem = &s, .n = 1, .form = TOKEN, .token = &token };
		gate_await(&gate, 2);
		gate_open(&gate);
		acquire_run(&a);
		gate_open(&gate);
		EXPECT_EQ(vez_sem_acquire_until(&s, 1, vez_after_ms(20000), &token), ECANCELED);
		EXPECT_EQ(acquire_join(&a), ECANCELED);
		thread_join(&f[0].thread);
		thread_join(&f[1].thread);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: give_up that reports what it was not: a fire and a deadline end the same wait. */
Test(cancel, TOK_13_fires_meet_deadlines)
{
	for (int round = 0; round < 400; round++) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(round % 2 ? VEZ_BARGING : 0);
		struct acquire a = { .sem = &s, .n = 1, .form = TOKEN_FAR, .token = &token };
		a.deadline = vez_after_us(round % 4 * 50 + 50);
		acquire_run(&a);
		while (real_now() < a.deadline - 5000)
			;
		vez_cancel_fire(&token);
		int rc = acquire_join(&a);
		EXPECT(rc == ECANCELED || (rc == ETIMEDOUT && real_now() >= a.deadline));
		EXPECT(vez_cancel_fired(&token));
		EXPECT_QUIET(&s, 0);
	}
}

struct passer_by {
	struct thread thread;
	vez_sem_t *sem;
	vez_cancel_t *token;
	bool *stop;
	bool wrong;
};

static void pass_by(void *arg)
{
	struct passer_by *p = arg;
	for (int i = 0; !LOAD(p->stop); i++) {
		int rc = vez_sem_acquire_until(p->sem, 1, vez_after_us(i % 20), p->token);
		p->wrong |= rc != ECANCELED && rc != ETIMEDOUT;
	}
}

/* Seen to fail: fire that takes requests off the list without the lock. */
Test(cancel, TOK_13_fires_and_leavers_share_the_list)
{
	for (unsigned flags = 0; flags <= VEZ_BARGING; flags++) {
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_sem_t s = make(flags);
		bool stop = false;
		struct passer_by p[3];
		for (int i = 0; i < 3; i++) {
			p[i] = (struct passer_by){ .sem = &s, .token = &token, .stop = &stop };
			thread_start(&p[i].thread, pass_by, &p[i]);
		}
		for (int64_t end = real_now() + 150 * MS; real_now() < end;) {
			vez_cancel_fire(&token);
			vez_cancel_clear(&token);
		}
		STORE(&stop, true);
		for (int i = 0; i < 3; i++) {
			thread_join(&p[i].thread);
			EXPECT(!p[i].wrong);
		}
		EXPECT_QUIET(&s, 0);
	}
}

static vez_cancel_t *asked_in_handler;
static volatile sig_atomic_t answered;

static void ask(int signo)
{
	(void)signo;
	answered = vez_cancel_fired(asked_in_handler);
}

/* Seen to fail: fired that enters the token's lock. */
Test(cancel, ALL_a_handler_may_ask)
{
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	asked_in_handler = &token;
	signal(SIGUSR1, ask);
	answered = -1;
	/* Whatever it interrupts. */
	vez__lock_enter(&token.lock_);
	raise(SIGUSR1);
	vez__lock_exit(&token.lock_);
	EXPECT_EQ(answered, 0);
	vez_cancel_fire(&token);
	raise(SIGUSR1);
	EXPECT_EQ(answered, 1);
}
