/* SPDX-License-Identifier: MIT */
/*
 * Simulated threads: one schedule, from setup to check.
 *
 * Every thread has a stack of its own and runs on the program's only thread. Before each step it asks which thread goes
 * on (point); the others are switched to directly. A schedule ends when all have finished and check holds, when it
 * failed, or when the search knows its state already.
 * History: for each thread, a hash of what its steps have seen; equal histories of all threads and equal words mean an
 * equal state (search.c relies on it).
 */
#include "engine.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "src/futex/spin.h"

#define STEPS_MOST 4000
#define TICK_US 200000
#define TICKS_MOST 5

enum action { GO, TIMEOUT, STRAY, INTERRUPT, SIGNAL, FLUSH };

struct thread threads[THREADS];
struct thread *self = threads;
unsigned step;
int64_t now;
char stacks[THREADS][STACK_SIZE] __attribute__((aligned(4096)));
const struct x_scenario *scenario;
struct failure failure;
uint32_t outcomes;
uintptr_t tls_from, tls_to;

static void *outside;
static enum ending ended;
static char tls_fresh[TLS_MOST];
static unsigned default_spin;
static unsigned schedules_begun;
static volatile bool inside; /* a schedule runs */
volatile bool search_works;

uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2))) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ (h >> 32);
}

void mix_history(uint64_t what)
{
	self->history = mix(self->history, what);
}

/* ---- switching ---- */

static int find_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	/* The first is the program itself. */
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS) {
			tls_from = (uintptr_t)info->dlpi_tls_data;
			tls_to = tls_from + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

/* A crash of the library is a failed schedule. One that left its marks on the explorer itself ends that. */
static void on_crash(int signo)
{
	if (!inside) {
		signal(signo, SIG_DFL);
		return;
	}
	fail("crash", "%s", strsignal(signo));
}

/* So is a loop that never comes to a step: the same schedule has run for a while. */
static void on_tick(int signo)
{
	static unsigned seen, ticks;
	(void)signo;
	ticks = seen == schedules_begun && !search_works ? ticks + 1 : 0;
	seen = schedules_begun;
	if (ticks < TICKS_MOST || !inside)
		return;
	ticks = 0;
	fail("livelock", "a loop without a step");
}

static void handle(int signo, void (*handler)(int))
{
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = handler;
	sa.sa_flags = SA_NODEFER | SA_ONSTACK | SA_RESTART;
	sigaction(signo, &sa, NULL);
}

static void catch_crashes(void)
{
	static char stack[STACK_SIZE];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	struct itimerval tick = { { 0, TICK_US }, { 0, TICK_US } };
	sigaltstack(&alternate, NULL);
	handle(SIGSEGV, on_crash);
	handle(SIGBUS, on_crash);
	handle(SIGVTALRM, on_tick);
	setitimer(ITIMER_VIRTUAL, &tick, NULL);
}

static void init(void)
{
	if (tls_from)
		return;
	catch_crashes();
	dl_iterate_phdr(find_tls, NULL);
	if (tls_to - tls_from > TLS_MOST)
		abort();
	memcpy(tls_fresh, (void *)tls_from, tls_to - tls_from);
	default_spin = vez__spin_limit;
}

/* Thread-local variables stay where they are: their contents change with the thread. */
static void switch_to(struct thread *t)
{
	struct thread *from = self;
	if (t == from)
		return;
	memcpy(from->tls, (void *)tls_from, tls_to - tls_from);
	memcpy((void *)tls_from, t->tls, tls_to - tls_from);
	self = t;
	stack_switch(&from->sp, t->sp);
}

void leave_schedule(enum ending how)
{
	void *abandoned = NULL;
	ended = how;
	stack_switch(&abandoned, outside);
	abort();
}

void fail(const char *oracle, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	snprintf(failure.oracle, sizeof failure.oracle, "%s", oracle);
	vsnprintf(failure.text, sizeof failure.text, format, ap);
	failure.steps = step;
	va_end(ap);
	leave_schedule(FAILED);
}

void x_failed(const char *file, int line, const char *condition)
{
	fail("assertion", "%s:%d: %s", file, line, condition);
}

void x_outcome(unsigned n)
{
	if (!(scenario->outcomes >> n & 1))
		fail("outcome", "%u is none of those that are allowed (%#x)", n, scenario->outcomes);
	outcomes |= UINT32_C(1) << n;
}

/* ---- who goes on ---- */

static bool can_run(const struct thread *t)
{
	if (t->state == YIELDED)
		for (unsigned i = 0; i < t->looked; i++)
			if (t->looks[i].cell->mark != t->looks[i].mark)
				return true;
	return t->state == READY;
}

static void offer(struct option *options, unsigned *n, enum action action, unsigned who, unsigned preemptions,
		  unsigned faults)
{
	if (*n < OPTIONS_MOST)
		options[(*n)++] = (struct option){ (uint8_t)action, (uint8_t)who, (uint8_t)preemptions,
						   (uint8_t)faults, 0 };
}

/* The ways to go on, first those that always exist, last the faults. Returns how many are not faults. */
static unsigned list_options(struct option *options, unsigned *n)
{
	bool goes_on = can_run(self);
	*n = 0;
	if (goes_on)
		offer(options, n, GO, SELF, 0, 0);
	for (unsigned i = 1; i < THREADS; i++)
		if (&threads[i] != self && can_run(&threads[i]))
			offer(options, n, GO, i, goes_on, 0);
	for (unsigned i = 1; i < THREADS; i++) {
		struct thread *t = &threads[i];
		if (t->signal_due && !t->signal_now)
			offer(options, n, SIGNAL, i, t != self && goes_on, 0);
		if (t->state == ASLEEP && t->deadline != VEZ_FOREVER)
			offer(options, n, TIMEOUT, i, goes_on, 0);
		if (t->buffered > 0)
			offer(options, n, FLUSH, i, 0, 0);
	}
	unsigned regular = *n;
	for (unsigned i = 1; i < THREADS; i++)
		if (threads[i].state == ASLEEP) {
			offer(options, n, STRAY, i, goes_on, 1);
			offer(options, n, INTERRUPT, i, goes_on, 1);
		}
	return regular;
}

/* What was read of words and of the clock, and learned, is in the histories; what they hold now is not. */
static uint64_t state_key(void)
{
	uint64_t key = mix(memory_key, (uint64_t)now);
	for (unsigned i = 1; i < THREADS && threads[i].state != UNUSED; i++)
		key = mix(key, threads[i].history + threads[i].buffered);
	if (weak)
		key = mix(key, weak_key());
	return key ? key : 1;
}

void ready(struct thread *t, int rc)
{
	t->history = mix(t->history, (uint64_t)rc + 1);
	t->state = READY;
	t->rc = rc;
}

static void end_sleep(struct thread *t, int rc, const char *how)
{
	TRACE(how, NULL, t->word, 0, "T%u stops waiting", (unsigned)(t - threads));
	ready(t, rc);
}

static void expire(struct thread *t)
{
	if (now < t->deadline)
		now = t->deadline;
	end_sleep(t, ETIMEDOUT, "deadline");
}

static void handle_signal(void)
{
	self->signal_due = self->signal_now = false;
	self->stirred = true;
	mix_history(99);
	TRACE("signal", NULL, NULL, 0, "handler starts");
	scenario->signal();
	TRACE("signal", NULL, NULL, 0, "handler returns");
}

static void take(struct option o)
{
	struct thread *t = &threads[o.who];
	switch ((enum action)o.action) {
	case GO:
		break;
	case TIMEOUT:
		expire(t);
		break;
	case STRAY:
		end_sleep(t, 0, "stray wake");
		break;
	case INTERRUPT:
		end_sleep(t, EINTR, "EINTR");
		break;
	case SIGNAL:
		t->signal_now = true;
		if (t->state == ASLEEP)
			end_sleep(t, EINTR, "signal");
		t->state = READY;
		break;
	case FLUSH:
		flush_one(o.who);
		return;
	}
	switch_to(t);
}

void rest(uint64_t what)
{
	uint64_t in = mix(what, clock_key(self->clock));
	if (in == self->rested_in && !self->stirred) {
		self->history = self->rested_history;
		return;
	}
	self->rested_in = in;
	self->rested_history = self->history;
	self->stirred = false;
}

/* The library's thread need not end. */
static bool is_idle(const struct thread *t)
{
	return t->body == x_alarm && t->state == ASLEEP;
}

static bool all_finished(void)
{
	for (unsigned i = 1; i < THREADS; i++)
		if (threads[i].state != UNUSED && threads[i].state != FINISHED && !is_idle(&threads[i]))
			return false;
	return true;
}

static void deadlock(void)
{
	char text[300] = "nobody can go on:";
	size_t used = strlen(text);
	for (unsigned i = 1; i < THREADS; i++) {
		char name[80];
		if (threads[i].state != ASLEEP && threads[i].state != YIELDED)
			continue;
		name_memory(threads[i].word, name, sizeof name);
		bool asleep = threads[i].state == ASLEEP;
		int n = snprintf(text + used, sizeof text - used, " T%u %s%s;", i, asleep ? "sleeps on " : "awaits",
				 asleep ? name : "");
		used += n > 0 && (size_t)n < sizeof text - used ? (size_t)n : 0;
	}
	fail("deadlock", "%s", text);
}

/* Lets the one go on who is chosen; returns when that is self. */
static void choose(void)
{
	enum action action;
	if (SELF == 0)
		return;
	do {
		struct option options[OPTIONS_MOST];
		unsigned n;
		if (++step > STEPS_MOST)
			fail("livelock", "more than %d steps", STEPS_MOST);
		if (list_options(options, &n) == 0)
			deadlock();
		if (search_compares())
			search_passes(state_key(), can_run(self) ? SELF : 0);
		unsigned chosen = n == 1 ? 0 : decide(options, n);
		action = (enum action)options[chosen].action;
		take(options[chosen]);
	} while (action == FLUSH);
}

/* So that no two points of a thread have the same history: a state that was passed is not met again on the same way. */
static void went_on(void)
{
	mix_history(1);
}

void point(void)
{
	choose();
	while (self->signal_now) {
		handle_signal();
		choose();
	}
	went_on();
}

void block(void)
{
	if (SELF == 0)
		fail("deadlock", "setup or check waits for ever");
	if (all_finished())
		leave_schedule(PASSED);
	choose();
	went_on();
	if (self->state == YIELDED)
		self->state = READY;
	if (self->signal_now)
		handle_signal();
}

/* ---- waiting for a condition ---- */

static void look(void)
{
	self->looking = true;
	self->looked = 0;
}

void x_look(void)
{
	self->stirred = true;
	look();
}

void x_yield(void)
{
	ENTER();
	flush_all(SELF);
	self->state = YIELDED;
	self->looking = false;
	self->word = NULL;
	TRACE("await", NULL, NULL, 0, "until something changes");
	rest(0);
	block();
	look();
}

/* With one processor the library pauses only in a loop that waits for another thread: until what it read
 * has changed. */
void x__pause(void)
{
	ENTER();
	if (scenario->cpus > 1)
		return;
	self->looks[0] = self->last_read;
	self->looked = 1;
	x_yield();
	self->looking = false;
}

void x_looked(void)
{
	self->looking = false;
}

void x_spin(unsigned pauses)
{
	vez__spin_limit = pauses;
}

/* ---- one schedule ---- */

static void thread_main(void)
{
	went_on();
	if (self->signal_now)
		handle_signal();
	self->body();
	ENTER();
	if (self->signal_due)
		handle_signal();
	flush_all(SELF);
	visits_check((uintptr_t)stacks[SELF] + STACK_SIZE);
	self->state = FINISHED;
	if (SELF == 0 || all_finished())
		leave_schedule(PASSED);
	choose();
	abort();
}

static void thread_start(unsigned id, void (*body)(void))
{
	struct thread *t = &threads[id];
	t->state = READY;
	t->body = body;
	t->sp = stack_make(stacks[id], STACK_SIZE, thread_main);
	t->stack_end = (uintptr_t)stacks[id] + STACK_SIZE;
	t->visited = 0;
	t->clock[id]++;
}

/* Runs from outside until leave_schedule. */
static enum ending run(unsigned id)
{
	memcpy((void *)tls_from, threads[id].tls, tls_to - tls_from);
	self = &threads[id];
	inside = true;
	stack_switch(&outside, self->sp);
	inside = false;
	self = threads;
	return ended;
}

static void thread_reset(unsigned id)
{
	struct thread *t = &threads[id];
	memset(t, 0, offsetof(struct thread, visits));
	t->visited = 0;
	t->history = id + 1;
	memcpy(t->tls, tls_fresh, tls_to - tls_from);
}

/* Which of the threads begins is a choice like any other. */
static unsigned first_thread(unsigned count)
{
	struct option options[THREADS];
	for (unsigned i = 0; i < count; i++)
		options[i] = (struct option){ GO, (uint8_t)(i + 1), 0, 0, 0 };
	return count > 1 ? 1 + decide(options, count) : 1;
}

static enum ending run_threads(void)
{
	unsigned count = 0;
	threads[0].clock[0]++;
	for (unsigned i = 0; i < X_THREADS && scenario->thread[i]; i++, count++) {
		join_clock(threads[i + 1].clock, threads[0].clock);
		weak_join(&threads[i + 1].seen, &threads[0].seen);
		thread_start(i + 1, scenario->thread[i]);
	}
	threads[1].signal_due = scenario->signal;
	return run(first_thread(count));
}

enum ending run_schedule(void)
{
	init();
	schedules_begun++;
	memory_reset();
	weak_reset();
	names_reset();
	step = 0;
	now = 1000000000;
	memset(&failure, 0, sizeof failure);
	vez__spin_limit = default_spin;
	for (unsigned i = 0; i < THREADS; i++)
		thread_reset(i);
	thread_start(0, scenario->setup);
	enum ending how = run(0);
	if (how == PASSED)
		how = run_threads();
	if (how != PASSED)
		return how;
	for (unsigned i = 1; i < THREADS; i++) {
		join_clock(threads[0].clock, threads[i].clock);
		weak_join(&threads[0].seen, &threads[i].seen);
	}
	if (scenario->check) {
		thread_start(0, scenario->check);
		how = run(0);
	}
	return how;
}
