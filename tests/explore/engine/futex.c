/* SPDX-License-Identifier: MIT */
/*
 * The kernel, as the explorer has it: src/futex/sys.h over the model.
 *
 * A wait compares and queues in one step. A wake may wake any waiter of the word. A wait may also end with EINTR, for
 * nothing, or at its deadline (sched.c). Addresses are compared and never read, but by a wait and by FUTEX_WAKE_OP.
 * These two find the newest value, as the lock of the bucket puts them and the wakes of a word in a row; else the
 * calls order nothing, although Linux has full barriers there: the library must not depend on what nobody promises.
 * Time is virtual: it moves when a deadline passes or a clock reading is chosen to be late.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"
#include "src/futex/sys.h"
#include "src/engine/clock.h"

/* More than the library's own intervals, and than x_soon. */
#define LATE_NS 2000000
#define SOON_NS 1000000

static const struct x__site wait_site = { "futex", "wait", "word", "kernel", 0, __ATOMIC_RELAXED };
static const struct x__site wake_op_site = { "futex", "wake_op", "second", "kernel", 0, __ATOMIC_ACQ_REL };

int vez__sys_futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared)
{
	(void)shared;
	ENTER();
	point();
	flush_all(SELF);
	touch((uintptr_t)word, sizeof *word, ATOMIC_READ, (struct place){ &wait_site, 0 });
	weak_newest_read(word);
	mix_history(*word);
	if (*word != expected) {
		TRACE("wait", NULL, word, 4, "EAGAIN: %#x, not %#x", *word, expected);
		return EAGAIN;
	}
	self->word = word;
	self->bits = bits;
	self->deadline = deadline;
	self->since = step;
	self->state = ASLEEP;
	rest(mix(mix(mix((uintptr_t)word, expected), bits), (uint64_t)deadline));
	TRACE("wait", NULL, word, 4, "sleeps while %#x", expected);
	block();
	TRACE("wait", NULL, word, 0, "returns %s", self->rc == 0 ? "0" : self->rc == EINTR ? "EINTR" : "ETIMEDOUT");
	return self->rc;
}

/* The k-th longest sleeper of the word with one of these bits. */
static struct thread *sleeper(const uint32_t *word, uint32_t bits, unsigned k)
{
	struct thread *found = NULL;
	for (unsigned after = 0, i = 0; i <= k; i++, after = found->since) {
		found = NULL;
		for (unsigned id = 1; id < THREADS; id++) {
			struct thread *t = &threads[id];
			if (t->state == ASLEEP && t->word == word && (t->bits & bits) && t->since > after &&
			    (!found || t->since < found->since))
				found = t;
		}
		if (!found)
			return NULL;
	}
	return found;
}

/* How many is not told: that would be one more thing that the caller has seen, and the library does not ask. */
static void wake(uint32_t *word, int count, uint32_t bits)
{
	int woken = 0;
	for (; woken < count && sleeper(word, bits, 0); woken++) {
		unsigned n = 0;
		while (sleeper(word, bits, n))
			n++;
		struct thread *t = sleeper(word, bits, decide_plain(n, 0));
		TRACE("wake", NULL, word, 0, "wakes T%u", (unsigned)(t - threads));
		ready(t, 0);
	}
	if (woken == 0)
		TRACE("wake", NULL, word, 0, "nobody there");
}

int vez__sys_futex_wake(uint32_t *word, int count, uint32_t bits, bool shared)
{
	(void)shared;
	ENTER();
	point();
	flush_all(SELF);
	wake(word, count, bits);
	return 0;
}

int vez__sys_futex_wake_op(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold, bool shared)
{
	(void)shared;
	ENTER();
	point();
	flush_all(SELF);
	if (decide_plain(2, 1) == 1) {
		TRACE("wake_op", NULL, second, 4, "ENOSYS");
		mix_history(ENOSYS);
		return ENOSYS;
	}
	uint32_t old = *second;
	rmw_word(second, sizeof *second, old, value, &wake_op_site);
	TRACE("wake_op", NULL, second, 4, "%#x -> %#x", old, value);
	wake(first, 1, UINT32_MAX);
	if (old >= threshold)
		wake(second, 1, UINT32_MAX);
	return 0;
}

int64_t vez__sys_now(void)
{
	ENTER();
	point();
	if (decide_plain(2, 1) == 1)
		now += LATE_NS;
	mix_history((uint64_t)now);
	TRACE("clock", NULL, NULL, 0, "%lld", (long long)now);
	return now;
}

int vez__sys_cpus(void)
{
	return scenario->cpus ? (int)scenario->cpus : 1;
}

vez_deadline_t x_soon(void)
{
	mix_history((uint64_t)now);
	return now + SOON_NS;
}

/* ---- the rest of the system ---- */

static unsigned ticks[X_EVENTFDS];

void vez__sys_tick(int efd)
{
	static const struct x__site site = { "eventfd", "tick", "ticks[efd]", "kernel", 0, __ATOMIC_RELEASE };
	x__rmw(&ticks[efd], sizeof ticks[efd], X__ADD, 1, &site);
}

int x_eventfd(unsigned i)
{
	return (int)i;
}

unsigned x_ticked(unsigned i)
{
	static const struct x__site site = { "eventfd", "read", "ticks[efd]", "kernel", 0, __ATOMIC_ACQUIRE };
	return (unsigned)x__load(&ticks[i], sizeof ticks[i], &site);
}

void x_eventfd_dead(unsigned i)
{
	x_dead(&ticks[i], sizeof ticks[i]);
}

/* The library's thread is not made: x_alarm runs it, if the scenario has it; else none can be made. */
static void *(*alarm_thread)(void *);
static bool makes_alarm; /* a scenario says so, whose thread calls it in a function of its own */

static bool has_alarm(void)
{
	if (makes_alarm)
		return true;
	for (unsigned i = 0; i < X_THREADS; i++)
		if (scenario->thread[i] == x_alarm)
			return true;
	return false;
}

int vez__sys_thread(pthread_t *thread, void *(*run)(void *))
{
	(void)thread;
	alarm_thread = run;
	return has_alarm() ? 0 : EAGAIN;
}

void x_make_alarm(void)
{
	makes_alarm = true;
	int rc = vez__clock_start();
	makes_alarm = false;
	x_assert(rc == 0);
}

void x_alarm(void)
{
	alarm_thread(NULL);
}

void vez__sys_join(pthread_t thread)
{
	(void)thread;
}

void vez__sys_detach(pthread_t thread)
{
	(void)thread;
}

void vez__sys_block_signals(sigset_t *before)
{
	(void)before;
}

void vez__sys_restore_signals(const sigset_t *before)
{
	(void)before;
}

/* In the scenario's handler only. */
bool vez__sys_blocks_signals(void)
{
	return false;
}

void vez__sys_yield(void)
{
	x_yield();
}

/* Nothing is refused here. */
void vez__sys_nap(int64_t until)
{
	(void)until;
	x_yield();
}

void vez__sys_stay_loaded(const void *address)
{
	(void)address;
}

void vez__sys_say(const char *line)
{
	(void)line;
}

void vez__sys_die(const char *line)
{
	x_failed(__FILE__, __LINE__, line);
	abort();
}

/* One handler for each signal, or none; nothing was there before. Whether there is one is a word, which changes by
 * steps. */
static void (*handlers[X_SIGNALS])(int);
static uint32_t handled[X_SIGNALS];

static uint32_t change_handled(int signo, uint32_t to)
{
	static const struct x__site site = { "signal", "handle", "handled[signo]", "kernel", 0, __ATOMIC_ACQ_REL };
	return (uint32_t)x__rmw(&handled[signo], sizeof handled[signo], X__EXCHANGE, to, &site);
}

int vez__sys_handle(int signo, void (*handler)(int), struct sigaction *before)
{
	(void)before;
	handlers[signo] = handler;
	change_handled(signo, 1);
	return 0;
}

void vez__sys_unhandle(int signo, void (*handler)(int), const struct sigaction *before)
{
	(void)handler;
	(void)before;
	change_handled(signo, 0);
}

bool x_raise(int signo)
{
	static const struct x__site site = { "signal", "raise", "handled[signo]", "kernel", 0, __ATOMIC_ACQUIRE };
	if (!x__load(&handled[signo], sizeof handled[signo], &site))
		return false;
	handlers[signo](signo);
	return true;
}
