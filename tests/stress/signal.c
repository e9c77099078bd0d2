/* SPDX-License-Identifier: MIT */
/* Signals: a storm of them changes no result, and a release in a handler may interrupt anything. fork, too. */
#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void only_here(int how, int signo)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, signo);
	pthread_sigmask(how, &set, NULL);
}

static void handle(int signo, void (*fn)(int), int flags)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = fn;
	action.sa_flags = flags;
	sigaction(signo, &action, NULL);
}

/* ---- A15: a storm ---- */

static struct {
	const struct kind *kind;
	union object obj;
	atomic_ulong signals;
	atomic_bool over;
} storm;

static void on_storm(int signo)
{
	(void)signo;
	atomic_fetch_add(&storm.signals, 1);
}

static void *storm_timed(void *arg)
{
	while (!atomic_load(&storm.over)) {
		vez_deadline_t deadline = vez_after_us(300 + (int64_t)rnd(700));
		errno = 12345;
		int rc = storm.kind->acquire(&storm.obj, 2, 0, deadline, NULL);
		EXPECT(rc == ETIMEDOUT, "timed: %d", rc);
		EXPECT(now_ns() >= deadline, "ETIMEDOUT before the deadline");
		EXPECT(errno == 12345, "errno is %d", errno);
		progress();
	}
	return arg;
}

static void *storm_untimed(void *arg)
{
	int *result = arg;
	*result = storm.kind->acquire(&storm.obj, 1, 1, VEZ_FOREVER, NULL);
	return NULL;
}

/* Two threads wait, one with and one without a deadline, under a storm of signals, with SA_RESTART and without.
 * Seen to fail: with vez__word_wait taking a return of the futex call for the end of the wait. */
static void storm_test(const struct test *t)
{
	pthread_t timed, untimed;
	int result = -1;
	storm.kind = t->kind;
	t->kind->init(&storm.obj, 0);
	watch_object(t->kind, &storm.obj);
	handle(SIGUSR2, on_storm, 0);
	untimed = spawn("untimed", storm_untimed, &result);
	WAIT_UNTIL(t->kind->waiters(&storm.obj) == 1);
	timed = spawn("timed", storm_timed, NULL);
	int64_t end = now_ns() + opt.seconds * INT64_C(1000000000) / 2;
	for (unsigned i = 0; now_ns() < end; i++) {
		if (i % 1000 == 0)
			handle(SIGUSR2, on_storm, i % 2000 ? SA_RESTART : 0);
		pthread_kill(i & 1 ? timed : untimed, SIGUSR2);
		for (volatile uint64_t k = rnd(2000); k > 0; k--)
			;
	}
	atomic_store(&storm.over, true);
	pthread_join(timed, NULL);
	EXPECT(t->kind->waiters(&storm.obj) == 1, "the wait without a deadline ended");
	t->kind->release(&storm.obj, 1);
	pthread_join(untimed, NULL);
	EXPECT(result == 0 && t->kind->drain(&storm.obj) == 0, "result %d", result);
	remark("%lu signals", atomic_load(&storm.signals));
}

/* ---- A16: release in a handler ---- */

static struct {
	const struct kind *kind;
	union object obj;
	atomic_ulong released, inside;
	atomic_bool over;
	unsigned long kept, others;
} handler;

static void on_alarm(int signo)
{
	(void)signo;
	/* Bit 0: somebody is inside. Only a figure: it shows that handlers run there, too. */
	if (__atomic_load_n(&handler.obj.sem.core_.word_, __ATOMIC_RELAXED) & 1)
		atomic_fetch_add(&handler.inside, 1);
	EXPECT(vez_sem_release(&handler.obj.sem, 1) == 0, "release in a handler");
	vez_sem_permits(&handler.obj.sem);
	vez_sem_waiters(&handler.obj.sem);
	atomic_fetch_add(&handler.released, 1);
}

/* Interrupted anywhere in these calls; keeps one permit for each that the handler gave. */
static void interrupted_round(void)
{
	void *obj = &handler.obj;
	const struct kind *kind = handler.kind;
	switch (rnd(4)) {
	case 0:
		handler.kept += kind->try_acquire(obj, 1) == 0;
		return;
	case 1:
		handler.kept += kind->acquire(obj, 1, (int64_t)rnd(3) - 1, vez_after_us((int64_t)rnd(50)), NULL) == 0;
		return;
	case 2:
		if (kind->acquire(obj, 2, 0, vez_after_us((int64_t)rnd(50)), NULL) == 0)
			kind->release(obj, 2);
		return;
	default:
		if (kind->acquire(obj, 1, 0, vez_after_us(100), NULL) == 0)
			kind->release(obj, 1);
	}
}

static void *interrupted(void *arg)
{
	only_here(SIG_UNBLOCK, SIGALRM);
	while (!atomic_load(&handler.over)) {
		interrupted_round();
		progress();
	}
	only_here(SIG_BLOCK, SIGALRM);
	return arg;
}

static void *other_waiter(void *arg)
{
	while (!atomic_load(&handler.over))
		if (handler.kind->acquire(&handler.obj, 1, 0, vez_after_ms(1), NULL) == 0) {
			dawdle();
			handler.kind->release(&handler.obj, 1);
		}
	return arg;
}

/* An interval timer, and another thread, interrupt a thread in its calls on the semaphore, on which two others
 * wait; the handler releases a permit there. Nothing is lost or hangs. Seen to hang: with release entering the
 * monitor by vez_monitor_enter. */
static void handler_test(const struct test *t)
{
	struct itimerval every = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t threads[3];
	handler.kind = t->kind;
	t->kind->init(&handler.obj, 1);
	watch_object(t->kind, &handler.obj);
	only_here(SIG_BLOCK, SIGALRM);
	handle(SIGALRM, on_alarm, 0);
	threads[0] = spawn("interrupted", interrupted, NULL);
	threads[1] = spawn("other", other_waiter, NULL);
	threads[2] = spawn("other", other_waiter, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	int64_t end = now_ns() + opt.seconds * INT64_C(1000000000);
	while (now_ns() < end) { /* the timer's rate is the kernel's; these come at any moment */
		pthread_kill(threads[0], SIGALRM);
		for (unsigned i = 0; i < 10; i++)
			dawdle();
	}
	setitimer(ITIMER_REAL, &never, NULL);
	atomic_store(&handler.over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	unsigned long released = atomic_load(&handler.released);
	EXPECT(t->kind->waiters(&handler.obj) == 0, "still queued");
	uint32_t left = t->kind->drain(&handler.obj);
	EXPECT(left + handler.kept == released + 1, "%u left, %lu kept, %lu released", left, handler.kept, released);
	remark("%lu handlers, %lu with somebody inside", released, atomic_load(&handler.inside));
}

/* ---- fork ---- */

static struct {
	const struct kind *kind;
	union object obj, fresh;
	atomic_bool over;
} forked;

static void *busy(void *arg)
{
	while (!atomic_load(&forked.over)) {
		forked.kind->acquire(&forked.obj, 1, 0, vez_after_us((int64_t)rnd(30)), vez_cancel_self());
		forked.kind->release(&forked.obj, 1);
	}
	return arg;
}

static void *child_waits(void *arg)
{
	EXPECT(forked.kind->acquire(&forked.fresh, 2, 0, VEZ_FOREVER, vez_cancel_self()) == 0, "in the child");
	return arg;
}

/* In the child: fresh objects, and a thread that waits. */
static void child_main(const struct kind *kind)
{
	pthread_t thread;
	alarm(30);
	kind->init(&forked.fresh, 1);
	EXPECT(kind->acquire(&forked.fresh, 2, 0, vez_after_us(50), NULL) == ETIMEDOUT, "in the child");
	if (!THREADS_IN_CHILD)
		_exit(kind->destroy(&forked.fresh) == 0 ? 0 : 1);
	EXPECT(pthread_create(&thread, NULL, child_waits, NULL) == 0, "no thread in the child");
	WAIT_UNTIL(kind->waiters(&forked.fresh) == 1);
	kind->release(&forked.fresh, 1);
	pthread_join(thread, NULL);
	_exit(kind->waiters(&forked.fresh) == 0 && kind->destroy(&forked.fresh) == 0 ? 0 : 1);
}

/* Forks while other threads are anywhere in vez. Seen to fail: with the child using the parent's busy object. */
static void fork_test(const struct test *t)
{
	pthread_t threads[3];
	unsigned long rounds = rounds_of(t);
	forked.kind = t->kind;
	t->kind->init(&forked.obj, 1);
	watch_object(t->kind, &forked.obj);
	for (int i = 0; i < 3; i++)
		threads[i] = spawn("busy", busy, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		int status = -1;
		pid_t pid = fork();
		EXPECT(pid >= 0, "fork");
		if (pid == 0)
			child_main(t->kind);
		waitpid(pid, &status, 0);
		EXPECT(status == 0, "the child ended with %x", status);
		progress();
	}
	atomic_store(&forked.over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT(t->kind->waiters(&forked.obj) == 0, "still queued");
}

const struct test signal_tests[] = {
	{ "signal-storm", storm_test, &fifo, 1, 0, 1 },
	{ "signal-storm", storm_test, &barging, 1, 0, 1 },
	{ "signal-storm", storm_test, &user, 1, 0, 1 },
	{ "release-in-handler", handler_test, &fifo, 1, 0, 1 },
	{ "release-in-handler", handler_test, &barging, 1, 0, 1 },
	{ "fork", fork_test, &fifo, 1, 0, 1000 },
	{ "fork", fork_test, &barging, 1, 0, 1000 },
	{ "fork", fork_test, &user, 1, 0, 1000 },
	{ 0 },
};
