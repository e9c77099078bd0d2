/* SPDX-License-Identifier: MIT */
/* What the kernel says to the library, as a test wants it. */
#include "inject.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "futex/sys.h"

#define LOG_LENGTH 256

const char *const fault_names[FAULTS] = {
	[FAULT_NONE] = "no fault", [FAULT_EINTR] = "EINTR", [FAULT_EAGAIN] = "EAGAIN",
	[FAULT_SPURIOUS] = "spurious returns", [FAULT_TIMEDOUT] = "early timeouts", [FAULT_LATE] = "late wakes",
};

static struct {
	enum fault fault;
	unsigned waits;
	unsigned wakes;
	uintptr_t log[LOG_LENGTH];
	void (*before_wait)(uint32_t *word);
	void (*before_wake)(uint32_t *word);
	void (*before_now)(void);
	void (*before_thread)(void);
	unsigned drops;
	int64_t clock;
	int cpus;
	int wake_op_error;
	int bits_error;
	int refuse_waits;
	int refuse_wakes;
	bool no_thread;
} now;

static __thread unsigned own_waits;
static __thread bool is_librarys;
static void *(*librarys_run)(void *);

int __real_vez__sys_futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared);
int __real_vez__sys_futex_wake(uint32_t *word, int count, uint32_t bits, bool shared);
int __real_vez__sys_futex_wake_op(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold, bool shared);
int64_t __real_vez__sys_now(void);
int __real_vez__sys_cpus(void);
int __real_vez__sys_thread(pthread_t *thread, void *(*run)(void *));
int __wrap_vez__sys_futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared);
int __wrap_vez__sys_futex_wake(uint32_t *word, int count, uint32_t bits, bool shared);
int __wrap_vez__sys_futex_wake_op(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold, bool shared);
int64_t __wrap_vez__sys_now(void);
int __wrap_vez__sys_cpus(void);
int __wrap_vez__sys_thread(pthread_t *thread, void *(*run)(void *));

void inject_reset(enum fault fault)
{
	memset(&now, 0, sizeof now);
	STORE(&now.fault, fault);
}

unsigned inject_waits(void)
{
	return LOAD(&now.waits);
}

unsigned inject_own_waits(void)
{
	return own_waits;
}

unsigned inject_wakes(void)
{
	return LOAD(&now.wakes);
}

uintptr_t inject_woken(unsigned i)
{
	return LOAD(&now.log[i % LOG_LENGTH]);
}

void inject_before_wait(void (*hook)(uint32_t *word))
{
	STORE(&now.before_wait, hook);
}

void inject_before_wake(void (*hook)(uint32_t *word))
{
	STORE(&now.before_wake, hook);
}

struct gate before_wake;
__thread bool stops_before_wake;

void stop_before_wake(uint32_t *word)
{
	(void)word;
	if (stops_before_wake) {
		stops_before_wake = false;
		gate_pass(&before_wake);
	}
}

void inject_before_now(void (*hook)(void))
{
	STORE(&now.before_now, hook);
}

void inject_before_thread(void (*hook)(void))
{
	STORE(&now.before_thread, hook);
}

void inject_drop_wakes(unsigned count)
{
	STORE(&now.drops, count);
}

void inject_clock(int64_t time)
{
	STORE(&now.clock, time);
}

void inject_cpus(int cpus)
{
	STORE(&now.cpus, cpus);
}

void inject_wake_op_error(int error)
{
	STORE(&now.wake_op_error, error);
}

void inject_bits_error(int error)
{
	STORE(&now.bits_error, error);
}

void inject_refusals(int waits, int wakes)
{
	STORE(&now.refuse_waits, waits);
	STORE(&now.refuse_wakes, wakes);
}

void inject_no_thread(bool none)
{
	STORE(&now.no_thread, none);
}

static void dawdle(void)
{
	for (int i = 0; i < 20; i++)
		sched_yield();
}

/* Where the clock stands still, a deadline passes by decree: its thread looks when it is kicked. */
static int sleep_on(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared)
{
	int64_t clock = LOAD(&now.clock);
	if (clock && clock >= deadline)
		return ETIMEDOUT;
	return __real_vez__sys_futex_wait(word, expected, clock ? VEZ_FOREVER : deadline, bits, shared);
}

int __wrap_vez__sys_futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared)
{
	enum fault fault = LOAD(&now.fault);
	void (*hook)(uint32_t *) = LOAD(&now.before_wait);
	if (!is_librarys)
		ADD(&now.waits, 1);
	if (hook)
		hook(word);
	int refused = LOAD(&now.refuse_waits);
	if (refused)
		return refused;
	if (own_waits++ % 2 == 0 && fault != FAULT_LATE && fault != FAULT_NONE)
		return fault == FAULT_EINTR    ? EINTR :
		       fault == FAULT_EAGAIN   ? EAGAIN :
		       fault == FAULT_TIMEDOUT ? ETIMEDOUT :
						 0;
	int rc = sleep_on(word, expected, deadline, bits, shared);
	if (fault == FAULT_LATE)
		dawdle();
	return rc;
}

/* Says whether the wake is to be sent. */
static bool wake_of(uint32_t *word)
{
	void (*hook)(uint32_t *) = LOAD(&now.before_wake);
	if (!thread_ends())
		STORE(&now.log[(ADD(&now.wakes, 1) - 1) % LOG_LENGTH], (uintptr_t)word);
	if (hook)
		hook(word);
	if (LOAD(&now.fault) == FAULT_LATE)
		dawdle();
	if (LOAD(&now.drops) == 0)
		return true;
	ADD(&now.drops, -1);
	return false;
}

int __wrap_vez__sys_futex_wake(uint32_t *word, int count, uint32_t bits, bool shared)
{
	int refused = LOAD(&now.refuse_wakes);
	if (!refused && bits != UINT32_MAX)
		refused = LOAD(&now.bits_error);
	if (refused)
		return -refused;
	return wake_of(word) ? __real_vez__sys_futex_wake(word, count, bits, shared) : 0;
}

int __wrap_vez__sys_futex_wake_op(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold, bool shared)
{
	int error = LOAD(&now.wake_op_error) ? LOAD(&now.wake_op_error) : LOAD(&now.refuse_wakes);
	if (error)
		return error;
	wake_of(first);
	wake_of(second);
	return __real_vez__sys_futex_wake_op(first, second, value, threshold, shared);
}

int64_t __wrap_vez__sys_now(void)
{
	int64_t clock = LOAD(&now.clock);
	void (*hook)(void) = LOAD(&now.before_now);
	if (hook) {
		STORE(&now.before_now, NULL);
		hook();
	}
	return clock ? clock : __real_vez__sys_now();
}

int __wrap_vez__sys_cpus(void)
{
	int cpus = LOAD(&now.cpus);
	return cpus ? cpus : __real_vez__sys_cpus();
}

/* The library's own thread: when it goes to sleep says nothing of a test. */
static void *run_librarys(void *arg)
{
	is_librarys = true;
	return librarys_run(arg);
}

int __wrap_vez__sys_thread(pthread_t *thread, void *(*run)(void *))
{
	void (*hook)(void) = LOAD(&now.before_thread);
	librarys_run = run;
	if (hook)
		hook();
	return LOAD(&now.no_thread) ? EAGAIN : __real_vez__sys_thread(thread, run_librarys);
}
