/* SPDX-License-Identifier: MIT */
/*
 * What every perf program does alike: options, a measured region, one JSON object on one line.
 *
 * The region is bracketed twice. getrusage counts the switches of all threads, always. Where the environment names the
 * control descriptors of perf stat (VEZ_PERF_CONTROL=command,acknowledge), its counters are switched on and off at the
 * same two places, so that neither starting nor joining threads is counted. Both is done by the calling thread while
 * all others sleep.
 */
#ifndef PERF_H
#define PERF_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The command line: --NAME=VALUE, each at most once. Unknown names end the program. */
struct perf_option {
	const char *name;
	const char *value; /* in: the default */
	const char *meaning;
};

void perf_options(int argc, char **argv, const char *purpose, struct perf_option *options, size_t count);
const char *perf_option(const struct perf_option *options, const char *name);
uint64_t perf_number(const struct perf_option *options, const char *name);

/* Pins the process to one processor; "any" leaves it alone. Threads made later inherit it. */
void perf_pin(const char *cpu);

double perf_now(void);

/* The processor time of all threads. On one processor it is what the wall clock tells, without what else the machine
 * does. */
double perf_cpu_now(void);

/* Work that nothing shortens: so many steps, each after the one before it. */
static inline uint64_t perf_compute(uint64_t value, unsigned steps)
{
	for (; steps > 0; steps--)
		value = value * UINT64_C(6364136223846793005) + 1442695040888963407;
	return value;
}

/* How many steps take this long: the fastest of a few looks. */
unsigned perf_steps_for(double ns);

/* So many times what tells the processor that a loop waits. */
static inline void perf_pause(unsigned times)
{
	for (; times > 0; times--)
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#else
		__asm__ __volatile__("" ::: "memory");
#endif
}

/* Prints the message and ends with status 1: what is measured is wrong. */
void perf_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

pthread_t perf_thread(void *(*body)(void *), void *arg);

/* Between the two a second thread exists and sleeps: the C library's objects take shortcuts in a process that has one
 * thread only. At most one at a time. */
void perf_sleeper_begin(void);
void perf_sleeper_end(void);

struct perf_region {
	double seconds;
	uint64_t voluntary;
	uint64_t involuntary;
};

/* A run that has not ended a minute after it began is ended with status 1: a lost wake must not hang who measures. */
void perf_begin(struct perf_region *region);
void perf_end(struct perf_region *region);

/* One line. extra: further members of the object, or "". */
struct perf_result {
	const char *scenario;
	const char *impl;
	const char *mode;
	unsigned waiters;
	const char *cpu;
	uint64_t ops;
	const char *extra;
};

void perf_print(const struct perf_result *result, const struct perf_region *region);

/* Waits until ready(arg), as cheaply as the processors allow, for all implementations alike: with one processor it
 * yields at once, since nothing can change before another thread has run; with more it looks a while before
 * it yields. */
void perf_until(bool (*ready)(void *), void *arg);

#ifdef __cplusplus
}
#endif

#endif
