/* SPDX-License-Identifier: MIT */
/*
 * What the kernel says to the library, as a test wants it. The test programs are linked so that every call to the
 * library's system layer (src/futex/sys.h) comes here first.
 */
#ifndef TEST_INJECT_H
#define TEST_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

/* What every second futex wait of each thread does, the first one included; LATE: every wait and wake. */
enum fault {
	FAULT_NONE,
	FAULT_EINTR,     /* a signal came */
	FAULT_EAGAIN,    /* the word has changed, it is said */
	FAULT_SPURIOUS,  /* returns 0 for nothing */
	FAULT_TIMEDOUT,  /* says that the deadline has passed, whatever the clock reads */
	FAULT_LATE,      /* wakes are sent late, and sleepers are late to run */
	FAULTS,
};

extern const char *const fault_names[FAULTS];

/* All of it back to plain, counters included. */
void inject_reset(enum fault fault);

/* Futex waits of the process, the library's own thread apart, and of the calling thread; wakes: words for which a wake
 * was asked, but by threads that end: these meet where their own tokens go. */
unsigned inject_waits(void);
unsigned inject_own_waits(void);
unsigned inject_wakes(void);
/* Words whose wakes were asked, in order: the i-th since the reset, of at most 256. */
uintptr_t inject_woken(unsigned i);

/* Called before the library makes the call; NULL: nothing. The word may be gone when a wake is asked. */
void inject_before_wait(void (*hook)(uint32_t *word));
void inject_before_wake(void (*hook)(uint32_t *word));

/* Such a hook: a thread of which stops_before_wake is true stops at this gate before its next wake, once. */
extern struct gate before_wake;
extern __thread bool stops_before_wake;
void stop_before_wake(uint32_t *word);
/* Called once, when the library next asks for the time. */
void inject_before_now(void (*hook)(void));

/* The next this many wakes are lost. */
void inject_drop_wakes(unsigned count);

/* The clock stands at this time; 0: it is the real one. A wait whose deadline it has not reached then sleeps without
 * one: after the clock is set on, thread_kick makes it look. */
void inject_clock(int64_t now);

/* A time at which it may stand: later than any machine has been up, so that what has this for a deadline never ends
 * by the real clock. */
#define NOON INT64_C(1000000000000000000)

/* How many processors the library may run on; 0: as it is. */
void inject_cpus(int cpus);

/* Called when the library is about to make a thread; NULL: nothing. */
void inject_before_thread(void (*hook)(void));

/* The library cannot make a thread. */
void inject_no_thread(bool none);

/* Every futex wait, wake (FUTEX_WAKE_OP included) fails with this error; 0: as it is. */
void inject_refusals(int waits, int wakes);

/* Every wake by bits fails with this error; 0: as it is. */
void inject_bits_error(int error);

/* FUTEX_WAKE_OP fails with this error; 0: as it is. */
void inject_wake_op_error(int error);

#endif
