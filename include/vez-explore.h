/* SPDX-License-Identifier: MIT */
/*
 * vez-explore.h - scenarios for the schedule explorer: what may happen to a synchronizer of one's own
 *
 * Stress finds what the scheduler happens to do. vez-explore(1) runs code on vez, and vez itself, under a scheduler
 * that tries every interleaving up to a bound, with deadlines that pass at any moment and wakes that come for nothing.
 * A lost wake, a double grant, a data race or a touch of memory that is gone is found, explained step by step, and
 * replayed.
 *
 * A scenario is a few threads that meet on a few objects, and what must hold. It keeps everything in static variables
 * that its setup makes anew. Plain variables are checked for data races, so what one thread tells another goes through
 * the object under test: a counter that is read and written without it is the test of mutual exclusion. The code under
 * test uses objects of vez and plain memory alone: no thread, no lock, no atomic access and no system call of its own.
 * Two or three threads with one or two calls each find most of what there is to find.
 *
 *	static void wait(void) { x_assert(acquire(&s, 1, VEZ_FOREVER, NULL) == 0); x_assert(told == 1); }
 *	static void tell(void) { told = 1; release(&s, 1); }
 *	X_SCENARIO(handoff, .setup = make, .thread = { wait, tell }, .check = nothing_left);
 */
#ifndef X_SCENARIO_H
#define X_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vez/deadline.h"

#ifdef __cplusplus
#error "scenarios are C"
#endif

#define X_THREADS 5

struct x_scenario {
	const char *name;
	const char *file;
	int line;
	void (*setup)(void);             /* alone, before the threads */
	void (*thread[X_THREADS])(void); /* run concurrently */
	void (*check)(void);             /* alone, after all of them */
	void (*signal)(void);            /* a handler that runs once, at any point of the first thread */
	unsigned preemptions;            /* the bound that is exhausted; 0: 3 for two threads, else 2 */
	unsigned faults;                 /* spurious returns, EINTR, clock jumps, delayed stores at a time; 0: 1 */
	unsigned cpus;                   /* processors the library is told of; 0: 1, so that it does not spin */
	const char *open;                /* why it fails at present */
	unsigned random;                 /* randomized schedules run besides, where the bound says little */
	unsigned stale;                  /* so many loads may return what was overwritten, in a search of its own */
	uint32_t outcomes;               /* a bit for each that x_outcome may be told, and is told in some schedule */
};

/* X_SCENARIO(name, .setup = f, .thread = { a, b }, .check = g); */
#define X_SCENARIO(id, ...) \
	static const struct x_scenario x_scenario_##id = { \
		.name = #id, .file = __FILE__, .line = __LINE__, __VA_ARGS__ \
	}; \
	static const struct x_scenario *x_entry_##id \
		__attribute__((used, section("x_scenarios"))) = &x_scenario_##id

/* Ends the schedule as failed unless it holds. */
#define x_assert(condition) ((condition) ? (void)0 : x_failed(__FILE__, __LINE__, #condition))
void x_failed(const char *file, int line, const char *condition);

/* How it ended, by a number below 32: the schedule fails unless .outcomes has that bit, the scenario unless its
 * schedules have reached all that it has. */
void x_outcome(unsigned n);

/* Waits until it holds. The condition only reads, and only what changes by steps: vez_sem_waiters(&s) == 1. */
#define x_await(condition) \
	do { \
		x_look(); \
		while (!(condition)) \
			x_yield(); \
		x_looked(); \
	} while (0)
void x_look(void);
void x_yield(void);
void x_looked(void);

/* The object may be destroyed and unmapped from here on: whoever touches it later, or has touched it without being
 * ordered before this, is at fault. */
void x_dead(void *object, size_t size);

/* It is made anew. */
void x_alive(void *object, size_t size);

/* A deadline that may pass at any moment. */
vez_deadline_t x_soon(void);

/* A thread of a scenario that is the library's own one, which keeps the deadlines of requests and the moments of
 * tokens; its set-up calls x_make_alarm. It need not end. */
void x_make_alarm(void);
void x_alarm(void);

/* In setup: an eventfd without ticks, one of X_EVENTFDS. How often it has ticked: who reads that it did comes after the
 * tick. Nobody may write to it any more. */
#define X_EVENTFDS 4
int x_eventfd(unsigned i);
unsigned x_ticked(unsigned i);
void x_eventfd_dead(unsigned i);

/* The signal comes to the calling thread: what the library has installed for it (vez_cancel_on_signal) runs there.
 * False: nothing is installed. */
#define X_SIGNALS 65
bool x_raise(int signo);

/* In setup: the longest spin, where there is more than one processor. */
void x_spin(unsigned pauses);

/* What the trace calls this memory. */
void x_name(const void *object, size_t size, const char *name);
#define X_NAME(object) x_name(&(object), sizeof(object), #object)

#endif
