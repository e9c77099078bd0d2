/* SPDX-License-Identifier: MIT */
/* Sleeping and waking: what of the kernel's answers reaches a caller. The spin policy. The tests' own instruments. */
#include "futex/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acquire.h"
#include "futex/spin.h"
#include "futex/sys.h"
#include "futex/word.h"
#include "guard.h"

TestSuite(futex, .timeout = 60);

struct sleeper {
	struct thread thread;
	uint32_t *word;
	vez_deadline_t deadline;
	int rc;
	int errno_after;
};

static void sleep_once(void *arg)
{
	struct sleeper *s = arg;
	errno = 55;
	s->rc = vez__futex_wait(s->word, 1, s->deadline);
	s->errno_after = errno;
}

static void sleeper_start(struct sleeper *s, uint32_t *word)
{
	*s = (struct sleeper){ .word = word, .deadline = VEZ_FOREVER, .rc = -1 };
	thread_start(&s->thread, sleep_once, s);
	thread_await_parked(&s->thread);
}

static void sleeper_join(struct sleeper *s)
{
	thread_join(&s->thread);
	EXPECT_EQ(s->rc, 0);
	EXPECT_EQ(s->errno_after, 55);
}

/* Seen to fail: thread_futex that knows the call's first number only. */
Test(futex, ALL_a_signal_that_is_ignored_ends_no_wait)
{
	uint32_t word = 1;
	struct sleeper s = { .word = &word, .deadline = vez_after_ms(3600000), .rc = -1 };
	thread_start(&s.thread, sleep_once, &s);
	thread_await_parked(&s.thread);
	sigset_t child, before;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &before);
	kill(getpid(), SIGCHLD); /* for the other thread, then */
	unsigned long call[7] = { 0 };
	UNTIL(thread_syscall(&s.thread, call) && call[0] == CALL_RESTART_SYSCALL);
	EXPECT_EQ(thread_futex(&s.thread), (uintptr_t)&word);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	vez__futex_wake(&word);
	sleeper_join(&s);
}

/* Seen to fail: a wait that returns the kernel's EAGAIN; sys.c without restoring errno. */
Test(futex, ALL_a_changed_word_is_not_slept_on)
{
	uint32_t word = 2;
	errno = 55;
	EXPECT_EQ(vez__futex_wait(&word, 1, VEZ_FOREVER), 0);
	EXPECT_EQ(vez__futex_wait(&word, 1, vez_after_ms(60000)), 0);
	EXPECT_EQ(errno, 55);
}

/* Seen to fail: as above, with EINTR and the others. */
Test(futex, ALL_every_answer_means_look_again)
{
	for (enum fault fault = FAULT_EINTR; fault <= FAULT_TIMEDOUT; fault++) {
		uint32_t word = 1;
		inject_reset(fault);
		if (inject_own_waits() % 2)
			EXPECT_EQ(vez__futex_wait(&word, 2, VEZ_FOREVER), 0);
		EXPECT_EQ(vez__futex_wait(&word, 1, VEZ_FOREVER), 0);
		EXPECT_EQ(vez__futex_wait(&word, 2, VEZ_FOREVER), 0);
		EXPECT_EQ(vez__futex_wait(&word, 1, vez_after_ms(60000)), 0);
	}
}

/* Seen to fail: a negative time that is passed to the kernel; a deadline that is not compared with the clock. */
Test(futex, H02_H03_timeouts_are_the_clocks)
{
	static const vez_deadline_t past[] = { VEZ_NOW, -1, 0, 1, NOON - 1, NOON };
	uint32_t word = 1;
	errno = 55;
	inject_clock(NOON);
	for (unsigned i = 0; i < sizeof past / sizeof past[0]; i++)
		EXPECT_EQ(vez__futex_wait(&word, 1, past[i]), ETIMEDOUT);
	inject_clock(0);
	for (unsigned i = 0; i < 4; i++)
		EXPECT_EQ(vez__futex_wait(&word, 1, past[i]), ETIMEDOUT);
	vez_deadline_t limit = vez_after_ms(3);
	EXPECT_EQ(vez__futex_wait(&word, 1, limit), ETIMEDOUT);
	EXPECT(real_now() >= limit);
	EXPECT_EQ(errno, 55);
}

/* Seen to fail: a wake of two. */
Test(futex, ALL_a_wake_wakes_one_and_wake_all_wakes_all)
{
	uint32_t word = 1;
	struct sleeper s[3];
	for (int i = 0; i < 3; i++)
		sleeper_start(&s[i], &word);
	errno = 55;
	vez__futex_wake(&word);
	EXPECT_EQ(errno, 55);
	UNTIL(thread_done(&s[0].thread) + thread_done(&s[1].thread) + thread_done(&s[2].thread) == 1)
		;
	for (int i = 0; i < 3; i++)
		if (!thread_done(&s[i].thread))
			thread_await_parked(&s[i].thread);
	EXPECT_EQ(thread_done(&s[0].thread) + thread_done(&s[1].thread) + thread_done(&s[2].thread), 1);
	vez__futex_wake_all(&word);
	for (int i = 0; i < 3; i++)
		sleeper_join(&s[i]);
}

/* Seen to fail: sys_futex_wake that leaves the error in errno, or returns it as a count. */
Test(futex, A06_waking_where_nothing_is_any_more)
{
	uint32_t *gone = guard_new(sizeof *gone);
	guard_close(gone);
	errno = 55;
	vez__futex_wake(gone);
	guard_free(gone);
	vez__futex_wake(gone);
	EXPECT_EQ(vez__sys_futex_wake(gone, 1, VEZ__ANY_BIT, false), 0);
	EXPECT_EQ(vez__sys_futex_wake(gone, 1, VEZ__ANY_BIT, true), 0);
	EXPECT_EQ(errno, 55);
}

/* Two sleepers, one call; and one of whom the second is not due. */
static void wake_two_with_one_call(void)
{
	uint32_t first = 1, second = 1;
	struct sleeper a, b;
	errno = 55;
	sleeper_start(&a, &first);
	sleeper_start(&b, &second);
	vez__futex_wake_and_set(&first, &second, 8, 1);
	EXPECT_EQ(second, 8);
	sleeper_join(&a);
	sleeper_join(&b);
	second = 1;
	sleeper_start(&a, &first);
	sleeper_start(&b, &second);
	vez__futex_wake_and_set(&first, &second, 1, 2);
	EXPECT_EQ(second, 1);
	sleeper_join(&a);
	thread_await_parked(&b.thread);
	EXPECT(!thread_done(&b.thread));
	vez__futex_wake(&second);
	sleeper_join(&b);
	EXPECT_EQ(errno, 55);
}

/* Seen to fail: a threshold that is compared with <=; a fallback that forgets the second wake. */
Test(futex, ALL_two_wakes_in_one_call_or_in_two)
{
	static const int errors[] = { 0, ENOSYS, EFAULT };
	for (int i = 0; i < 3; i++) {
		inject_wake_op_error(errors[i]);
		wake_two_with_one_call();
	}
}

static void lock_inheriting(void *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}

/* The thread of the first word has gone, and a lock that inherits priorities lies there, for which somebody waits: the
 * kernel sets the second word and then refuses. Seen to fail: a fallback for every error, which finds nobody. */
Test(futex, ALL_a_wake_of_memory_that_is_a_lock_by_now)
{
	for (int round = 0; round < 20; round++) {
		pthread_mutexattr_t inherits;
		pthread_mutex_t mutex;
		struct thread waiter;
		struct sleeper s;
		uint32_t second = 1, *word = (uint32_t *)&mutex.__data.__lock;
		pthread_mutexattr_init(&inherits);
		pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
		pthread_mutex_init(&mutex, &inherits);
		pthread_mutex_lock(&mutex);
		thread_start(&waiter, lock_inheriting, &mutex);
		UNTIL(LOAD(word) & FUTEX_WAITERS);
		sleeper_start(&s, &second);
		vez__futex_wake_and_set(word, &second, 0, 1);
		sleeper_join(&s);
		EXPECT_EQ(second, 0);
		pthread_mutex_unlock(&mutex);
		thread_join(&waiter);
	}
}

/* ---- the spin policy ---- */

/* Seen to fail: a budget that is not 0 where one processor is allowed. */
Test(futex, K01_one_processor_never_spins)
{
	inject_cpus(1);
	for (int i = 0; i < 1000; i++)
		EXPECT_EQ(vez__spin_budget(VEZ__SPIN_WORD), 0);
	thread_pin_to_one_cpu();
	inject_cpus(0);
	EXPECT_EQ(vez__sys_cpus(), 1);
	for (int i = 0; i < 1000; i++)
		EXPECT_EQ(vez__spin_budget(VEZ__SPIN_LOCK), 0);
}

/* Seen to fail: learn that does not lower the average; a budget without the limit. */
Test(futex, K01_spins_are_bounded_and_cease_when_they_are_in_vain)
{
	inject_cpus(2);
	unsigned most = 0, sum = 0;
	for (int i = 0; i < 320; i++) {
		unsigned budget = vez__spin_budget(VEZ__SPIN_WORD);
		most = budget > most ? budget : most;
		sum += budget;
		vez__spin_learn(VEZ__SPIN_WORD, budget, false);
	}
	EXPECT(most <= vez__spin_limit);
	EXPECT(sum <= 320 / 32 * vez__spin_limit + 200);
	for (int i = 0; i < 320; i++)
		vez__spin_learn(VEZ__SPIN_WORD, 20, true);
	unsigned budget = vez__spin_budget(VEZ__SPIN_WORD);
	EXPECT(budget >= 20 && budget <= vez__spin_limit);
	for (int i = 0; i < 320; i++)
		vez__spin_learn(VEZ__SPIN_WORD, 1000000, true);
	EXPECT(vez__spin_budget(VEZ__SPIN_WORD) <= vez__spin_limit);
}

/* ---- the instruments ---- */

static void ignore(int signo)
{
	(void)signo;
}

static const int refusals[] = { EPERM, ENOSYS, EACCES };

static int64_t processor_time(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* In a sandbox that refuses all of it: a deadline is kept, a grant and a token end a wait, and nobody spins. Seen to
 * fail: a refusal that means "look again" (no deadline ends, and it takes all the processor time there is); a wake that
 * is refused and ends the process. */
Test(futex, ALL_a_kernel_that_refuses_to_let_sleep)
{
	for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		vez_sem_t s = VEZ_SEM_INITIALIZER(0);
		vez_cancel_t c = VEZ_CANCEL_INITIALIZER;
		inject_refusals(refusals[i], refusals[i]);
		errno = 55;
		int64_t used = processor_time();
		vez_deadline_t at = vez_after_ms(30);
		EXPECT_EQ(vez_sem_acquire_until(&s, 1, at, NULL), ETIMEDOUT);
		EXPECT(real_now() >= at);
		EXPECT(processor_time() - used < 15000000);
		EXPECT_EQ(errno, 55);
		for (int fires = 0; fires < 2; fires++) {
			struct acquire a = { .sem = &s, .n = 1, .form = TOKEN, .token = &c };
			acquire_start(&a);
			UNTIL(vez_sem_waiters(&s) == 1);
			if (fires)
				vez_cancel_fire(&c);
			else
				EXPECT_EQ(vez_sem_release(&s, 1), 0);
			EXPECT_EQ(acquire_join(&a), fires ? ECANCELED : 0);
		}
		EXPECT_EQ(vez_cancel_destroy(&c), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: a wake that is refused and forgotten (the sleeper would never know). */
Test(futex, ALL_a_kernel_that_refuses_to_wake)
{
	static const char sentence[] = "vez: the kernel lets threads sleep (futex) but refuses to wake them\n";
	for (unsigned i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		char said[sizeof sentence] = "";
		int ends[2], status = 0;
		EXPECT_EQ(pipe(ends), 0);
		pid_t child = fork();
		if (child == 0) {
			uint32_t word = 0;
			signal(SIGABRT, SIG_DFL);
			dup2(ends[1], STDERR_FILENO);
			inject_refusals(0, refusals[i]);
			vez__futex_wake(&word);
			_exit(0);
		}
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		EXPECT_EQ(read(ends[0], said, sizeof said - 1), (ssize_t)sizeof sentence - 1);
		EXPECT_EQ(strcmp(said, sentence), 0);
		close(ends[0]);
		close(ends[1]);
	}
}

/* Seen to fail: without the lost wake, and with a wait loop that does not look again after EINTR. */
Test(futex, I01_a_lost_wake_shows_as_a_changed_word_and_a_signal_cures_it)
{
	signal(SIGUSR1, ignore);
	EACH_VARIANT(v, ALL) {
		vez_sem_t s;
		vez_sem_init(&s, 0, 0, v->flags);
		struct acquire a = ACQUIRE(&s, 1, v->form);
		acquire_start(&a);
		uintptr_t word = acquire_await_parked(&a);
		uint32_t before = LOAD((uint32_t *)word);
		inject_drop_wakes(1);
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		EXPECT_EQ(inject_wakes(), 1);
		EXPECT_EQ(thread_futex(&a.thread), word);
		EXPECT(LOAD((uint32_t *)word) != before);
		pthread_kill(a.thread.id, SIGUSR1);
		EXPECT_EQ(acquire_join(&a), 0);
		EXPECT_QUIET(&s, 0);
	}
}

/* Seen to fail: a watch without its limit. */
Test(futex, I01_who_waits_in_vain_is_told, .signal = SIGABRT)
{
	struct watch watch = watch_start("the end of time", __FILE__, __LINE__);
	watch.waited += INT64_C(1000000000000);
	watch_look(&watch);
}

/* Seen to fail: a look that counts all the time since the one before. */
Test(futex, I01_time_without_a_turn_does_not_count)
{
	struct watch watch = watch_start("its turn", __FILE__, __LINE__);
	watch.last -= INT64_C(1000000000000);
	watch_look(&watch);
	EXPECT(watch.waited < INT64_C(10000000));
}
