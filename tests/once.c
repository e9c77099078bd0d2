/* SPDX-License-Identifier: MIT */
/*
 * Once.
 *
 * Each test carries the id of the behaviour it checks and runs under every fault of tests/lib/inject.h. "Seen to fail"
 * names a change of the library with which it did. How many wait is read from the object's room, which is private.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vez.h>

#include "guard.h"
#include "engine/filing.h"
#include "thread.h"
#include "variant.h"

TestSuite(once, .timeout = 120);

#define UNTOUCHED 12345
#define MS INT64_C(1000000)

#define EACH_FAULT(v) EACH_VARIANT(v, FIFO_ONLY | ONE_FORM)

/* ---- a function that stops inside, and a call of it in a thread of its own ---- */

struct caller {
	struct thread thread;
	vez_once_t *once;
	int returns;       /* what its function returns */
	bool stops;        /* its function stops at the gate */
	struct gate gate;
	int runs;          /* how often its function has run */
	int nested;        /* what a call from inside returned */
	bool nests;
	int rc;
	int errno_after;
	unsigned waits;
};

static int running; /* functions that run now */

static int function(void *arg)
{
	struct caller *c = arg;
	cr_assert(ADD(&running, 1) == 1);
	c->runs++;
	if (c->nests)
		c->nested = vez_once(c->once, function, c);
	if (c->stops)
		gate_pass(&c->gate);
	cr_assert(ADD(&running, -1) == 0);
	return c->returns;
}

static void run(void *arg)
{
	struct caller *c = arg;
	errno = UNTOUCHED;
	c->rc = vez_once(c->once, function, c);
	c->errno_after = errno;
	c->waits = inject_own_waits();
}

static size_t waiting(const vez_once_t *o)
{
	return LOAD(&o->core_.length_);
}

/* Starts one whose function stops, and returns when it does. */
static void caller_start(struct caller *c, vez_once_t *o, int returns)
{
	*c = (struct caller){ .once = o, .returns = returns, .stops = true };
	gate_init(&c->gate);
	thread_start(&c->thread, run, c);
	gate_await(&c->gate, 1);
}

/* Starts one that waits for another's function. */
static void caller_start_waiting(struct caller *c, vez_once_t *o, int returns, bool stops)
{
	size_t before = waiting(o);
	*c = (struct caller){ .once = o, .returns = returns, .stops = stops };
	gate_init(&c->gate);
	thread_start(&c->thread, run, c);
	UNTIL(waiting(o) == before + 1)
		;
}

static uintptr_t caller_await_parked(struct caller *c)
{
	uintptr_t word = 0;
	UNTIL(word != 0 && word - (uintptr_t)c->once >= sizeof *c->once)
		word = thread_futex(&c->thread);
	return word;
}

static bool caller_blocked(struct caller *c)
{
	caller_await_parked(c);
	return !thread_done(&c->thread) && waiting(c->once) > 0;
}

static int caller_join(struct caller *c)
{
	thread_join(&c->thread);
	EXPECT_EQ(c->errno_after, UNTOUCHED);
	return c->rc;
}

/* A call in this thread. */
static int call(vez_once_t *o, int returns, int *runs)
{
	struct caller c = { .once = o, .returns = returns };
	int rc = vez_once(o, function, &c);
	*runs = c.runs;
	return rc;
}

/* ---- alone ---- */

/* Seen to fail: finish that marks DONE whatever the code; one that never does. */
Test(once, ALL_the_first_success_is_the_last)
{
	int runs;
	vez_once_t o = VEZ_ONCE_INITIALIZER, zero;
	memset(&zero, 0, sizeof zero);
	for (int i = 1; i <= 3; i++) {
		EXPECT_EQ(call(&o, i, &runs), i);
		EXPECT_EQ(runs, 1);
	}
	EXPECT_EQ(call(&o, -1, &runs), -1);
	EXPECT_EQ(call(&o, 0, &runs), 0);
	EXPECT_EQ(runs, 1);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(call(&o, 5, &runs), 0);
		EXPECT_EQ(runs, 0);
	}
	EXPECT_EQ(call(&zero, 0, &runs), 0);
	EXPECT_EQ(runs, 1);
	EXPECT_EQ(inject_waits() + inject_wakes(), 0);
}

/* Seen to fail: vez_once that does not compare the runner with the caller; finish that leaves it as it was. */
Test(once, ALL_from_inside_its_own_function)
{
	vez_once_t o = VEZ_ONCE_INITIALIZER;
	for (int fails = 1; fails >= 0; fails--) {
		struct caller c = { .once = &o, .nests = true, .returns = fails };
		EXPECT_EQ(vez_once(&o, function, &c), fails);
		EXPECT_EQ(c.nested, EDEADLK);
		EXPECT_EQ(c.runs, 1);
	}
}

static vez_once_t inner;

static int call_inner(void *arg)
{
	int runs;
	int rc = call(&inner, 0, &runs);
	*(int *)arg += runs;
	return rc;
}

/* Seen to fail: a runner that all objects share. */
Test(once, ALL_a_function_may_use_another_once)
{
	vez_once_t o = VEZ_ONCE_INITIALIZER, p = o;
	int runs = 0;
	inner = o;
	EXPECT_EQ(vez_once(&o, call_inner, &runs), 0);
	EXPECT_EQ(vez_once(&p, call_inner, &runs), 0);
	EXPECT_EQ(runs, 1);
}

/* ---- others wait ---- */

/* Seen to fail: finish that settles the first only; a take that does not wait. */
Test(once, ALL_others_wait_for_the_first)
{
	enum { N = 4 };
	EACH_FAULT(v) {
		vez_once_t o = VEZ_ONCE_INITIALIZER;
		struct caller first, m[N];
		caller_start(&first, &o, 0);
		for (int i = 0; i < N; i++)
			caller_start_waiting(&m[i], &o, 9, false);
		for (int i = 0; i < N; i++)
			EXPECT(caller_blocked(&m[i]));
		gate_open(&first.gate);
		EXPECT_EQ(caller_join(&first), 0);
		for (int i = 0; i < N; i++) {
			EXPECT_EQ(caller_join(&m[i]), 0);
			EXPECT_EQ(m[i].runs, 0);
			EXPECT(m[i].waits <= 2);
		}
		EXPECT_EQ(waiting(&o), 0);
	}
}

/* Seen to fail: finish that settles all with TURN; one that gives the turn to the last; slot_wake that wakes
 * all. */
Test(once, ALL_08_a_failure_hands_the_turn_to_the_longest_waiter)
{
	enum { N = 4 };
	EACH_FAULT(v) {
		vez_once_t o = VEZ_ONCE_INITIALIZER;
		struct caller m[N];
		uintptr_t word[N];
		caller_start(&m[0], &o, 1);
		for (int i = 1; i < N; i++) {
			caller_start_waiting(&m[i], &o, i < N - 1 ? i + 1 : 0, true);
			word[i] = caller_await_parked(&m[i]);
		}
		for (int i = 0; i < N - 1; i++) {
			unsigned before = inject_wakes();
			gate_open(&m[i].gate);
			EXPECT_EQ(caller_join(&m[i]), i + 1);
			EXPECT_EQ(m[i].runs, 1);
			EXPECT(m[i].waits <= 2); /* nobody else was woken: a fault of the test's may be one of them */
			gate_await(&m[i + 1].gate, 1);
			EXPECT_EQ(inject_wakes() - before, 1);
			EXPECT_EQ(inject_woken(before), word[i + 1]);
			EXPECT_EQ(waiting(&o), (size_t)(N - 2 - i));
			for (int k = i + 2; k < N; k++)
				EXPECT(caller_blocked(&m[k]));
		}
		gate_open(&m[N - 1].gate);
		EXPECT_EQ(caller_join(&m[N - 1]), 0);
		EXPECT(m[N - 1].waits <= 2);
		int runs;
		EXPECT_EQ(call(&o, 7, &runs), 0);
		EXPECT_EQ(runs, 0);
	}
}

/* Seen to fail: a turn that is given away, with the word as it was. */
Test(once, ALL_who_was_given_the_turn_is_inside_its_own_function)
{
	EACH_FAULT(v) {
		vez_once_t o = VEZ_ONCE_INITIALIZER;
		struct caller a, b;
		caller_start(&a, &o, 1);
		size_t before = waiting(&o);
		b = (struct caller){ .once = &o, .nests = true };
		thread_start(&b.thread, run, &b);
		UNTIL(waiting(&o) == before + 1)
			;
		gate_open(&a.gate);
		EXPECT_EQ(caller_join(&a), 1);
		EXPECT_EQ(caller_join(&b), 0);
		EXPECT_EQ(b.nested, EDEADLK);
	}
}

/* Seen to fail: a wait that returns for EINTR. */
Test(once, A15_signals)
{
	struct sigaction action = { .sa_handler = handle_nothing };
	sigaction(SIGUSR1, &action, NULL);
	vez_once_t o = VEZ_ONCE_INITIALIZER;
	struct caller a, b;
	caller_start(&a, &o, 0);
	caller_start_waiting(&b, &o, 9, false);
	for (int64_t end = real_now() + 20 * MS; real_now() < end; sched_yield())
		pthread_kill(b.thread.id, SIGUSR1);
	EXPECT(!thread_done(&b.thread));
	gate_open(&a.gate);
	EXPECT_EQ(caller_join(&a), 0);
	EXPECT_EQ(caller_join(&b), 0);
}

/* Seen to fail: finish that leaves the word to a thread that is gone, whose number another could have. */
Test(once, ALL_a_thread_that_failed_may_end)
{
	vez_once_t o = VEZ_ONCE_INITIALIZER;
	for (int i = 0; i < 20; i++) {
		struct caller a;
		caller_start(&a, &o, i < 19);
		gate_open(&a.gate);
		EXPECT_EQ(caller_join(&a), i < 19);
		EXPECT_EQ(a.runs, 1);
	}
}

/* ---- the object's end ---- */

/* Seen to fail: await that enters the monitor once more. */
Test(once, A06_who_waited_returns_without_the_object)
{
	EACH_FAULT(v) {
		vez_once_t *o = guard_new(sizeof *o);
		struct caller a, b;
		caller_start(&a, o, 0);
		caller_start_waiting(&b, o, 9, false);
		caller_await_parked(&b);
		thread_freeze(&b.thread);
		gate_open(&a.gate);
		EXPECT_EQ(caller_join(&a), 0);
		guard_close(o);
		thread_thaw(&b.thread);
		EXPECT_EQ(caller_join(&b), 0);
		guard_free(o);
	}
}

static void run_and_stop(void *arg)
{
	stops_before_wake = true;
	run(arg);
}

/* Seen to fail: vez__leave_pending that reads word_ after it has left. */
Test(once, A06_gone_before_the_wake)
{
	EACH_FAULT(v) {
		vez_once_t *o = guard_new(sizeof *o);
		struct caller a = { .once = o, .stops = true }, b;
		gate_init(&a.gate);
		gate_init(&before_wake);
		thread_start(&a.thread, run_and_stop, &a);
		gate_await(&a.gate, 1);
		caller_start_waiting(&b, o, 9, false);
		caller_await_parked(&b);
		inject_before_wake(stop_before_wake);
		gate_open(&a.gate);
		gate_await(&before_wake, 1);
		thread_kick(&b.thread);
		EXPECT_EQ(caller_join(&b), 0);
		guard_close(o);
		inject_before_wake(NULL);
		gate_open(&before_wake);
		EXPECT_EQ(caller_join(&a), 0);
		guard_free(o);
	}
}

struct racer {
	struct thread thread;
	vez_once_t *once;
	sem_t go, went;
	bool inside; /* its function has run */
	bool stop;
};

static int tell(void *arg)
{
	struct racer *r = arg;
	STORE(&r->inside, true);
	return 0;
}

static int never(void *arg)
{
	(void)arg;
	return 99;
}

static void race(void *arg)
{
	struct racer *r = arg;
	for (;;) {
		while (sem_wait(&r->go) != 0)
			;
		if (LOAD(&r->stop))
			return;
		cr_assert(vez_once(r->once, tell, r) == 0);
		sem_post(&r->went);
	}
}

/* Whoever sees that it is done, with or without having waited, may unmap it at once: the one who did it has left.
 * Seen to fail: a fast path that does not look at LOCKED. */
Test(once, A06_done_means_left)
{
	enum { ROUNDS = 10000 };
	vez_once_t *o = guard_new(sizeof *o);
	struct racer r = { .once = o };
	sem_init(&r.go, 0, 0);
	sem_init(&r.went, 0, 0);
	thread_start(&r.thread, race, &r);
	for (int round = 0; round < ROUNDS; round++) {
		STORE(&r.inside, false);
		sem_post(&r.go);
		while (!LOAD(&r.inside))
			sched_yield();
		for (volatile int i = 0; i < round % 64; i++)
			;
		EXPECT_EQ(vez_once(o, never, NULL), 0);
		guard_close(o);
		while (sem_wait(&r.went) != 0)
			;
		guard_open(o, sizeof *o);
	}
	STORE(&r.stop, true);
	sem_post(&r.go);
	thread_join(&r.thread);
	guard_free(o);
}

/* The one who has done it is stopped before it leaves the monitor: nobody returns 0 by the fast path.
 * Seen to fail: as above, each time. */
Test(once, A06_nobody_is_ahead_of_who_leaves)
{
	vez_once_t o = VEZ_ONCE_INITIALIZER;
	struct caller c = { .once = &o };
	int runs;
	EXPECT_EQ(call(&o, 0, &runs), 0);
	vez__lock_enter(&o.core_.word_);
	thread_start(&c.thread, run, &c);
	UNTIL(thread_futex(&c.thread) - (uintptr_t)&o < sizeof o)
		;
	vez__lock_exit(&o.core_.word_);
	EXPECT_EQ(caller_join(&c), 0);
	EXPECT_EQ(c.runs, 0);
}

/* ---- the rest ---- */

/* Seen to fail: numbers of threads that a fork renews. */
Test(once, ALL_10_fork)
{
	vez_once_t done = VEZ_ONCE_INITIALIZER, o = VEZ_ONCE_INITIALIZER;
	struct caller a;
	int runs;
	EXPECT_EQ(call(&done, 0, &runs), 0);
	caller_start(&a, &o, 0);
	pid_t child = fork();
	if (child == 0) {
		vez_once_t fresh = VEZ_ONCE_INITIALIZER;
		o = fresh;
		STORE(&running, 0);
		bool well = call(&done, 9, &runs) == 0 && call(&fresh, 4, &runs) == 4 && call(&o, 0, &runs) == 0;
		_exit(well ? 0 : 1);
	}
	int status = -1;
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	gate_open(&a.gate);
	EXPECT_EQ(caller_join(&a), 0);
}

/* ---- a fork in the function, while others wait ---- */

struct forker {
	vez_once_t once;
	struct caller waiting[3];
	pid_t child;
};

static int function_that_forks(void *arg)
{
	struct forker *f = arg;
	for (int i = 0; i < 3; i++)
		caller_start_waiting(&f->waiting[i], &f->once, 0, false);
	f->child = fork();
	return 0;
}

/* Seen to fail: finish that does not end the caller's turn. */
Test(once, ALL_10_fork_in_the_function)
{
	struct forker f = { .once = VEZ_ONCE_INITIALIZER };
	EXPECT_EQ(vez_once(&f.once, function_that_forks, &f), 0);
	if (f.child == 0)
		_exit(vez_once(&f.once, function_that_forks, &f) == 0 ? 0 : 1);
	int status = -1;
	EXPECT_EQ(waitpid(f.child, &status, 0), f.child);
	EXPECT_EQ(status, 0);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(caller_join(&f.waiting[i]), 0);
}

static struct {
	vez_once_t once;
	int tries;
	int value;
} shared;

static int fail_twice(void *arg)
{
	(void)arg;
	int tries = ++shared.tries;
	if (tries < 3)
		return tries;
	shared.value = 42;
	return 0;
}

static void use(void *arg)
{
	int rc = vez_once(&shared.once, fail_twice, NULL);
	cr_assert(rc != 0 || shared.value == 42);
	*(int *)arg = rc;
}

/* Seen to fail: a failure that counts as success (finish that marks DONE whatever the code); one that never does. */
Test(once, ALL_a_crowd_of_which_two_fail)
{
	enum { CROWD = 5, ROUNDS = 400 };
	for (int round = 0; round < ROUNDS; round++) {
		struct thread t[CROWD];
		int rc[CROWD], failed = 0;
		memset(&shared, 0, sizeof shared);
		for (int i = 0; i < CROWD; i++)
			thread_start(&t[i], use, &rc[i]);
		for (int i = 0; i < CROWD; i++) {
			thread_join(&t[i]);
			failed += rc[i] != 0;
		}
		EXPECT_EQ(shared.tries, 3);
		EXPECT_EQ(failed, 2);
	}
}
