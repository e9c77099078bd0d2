/* SPDX-License-Identifier: MIT */
/* Options, pinning, the measured region and its line of JSON. */
#include "perf.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* About 20 microseconds of pauses: as long as a thread takes that runs on another processor. */
#define LOOKS 1000

/* Seconds. */
#define PATIENCE 60

static bool one_processor;

void perf_fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* ---- options ---- */

static _Noreturn void usage(const char *program, const char *purpose, const struct perf_option *options, size_t count,
			    int status)
{
	fprintf(stderr, "%s: %s\n", program, purpose);
	for (size_t i = 0; i < count && options[i].name; i++)
		fprintf(stderr, "  --%s=%s\t%s\n", options[i].name, options[i].value, options[i].meaning);
	exit(status);
}

static struct perf_option *find(struct perf_option *options, const char *name, size_t length)
{
	for (; options->name; options++)
		if (strlen(options->name) == length && strncmp(options->name, name, length) == 0)
			return options;
	return NULL;
}

void perf_options(int argc, char **argv, const char *purpose, struct perf_option *options, size_t count)
{
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];
		const char *value = strchr(arg, '=');
		struct perf_option *option = NULL;
		if (value && strncmp(arg, "--", 2) == 0)
			option = find(options, arg + 2, (size_t)(value - arg) - 2);
		if (!option)
			usage(argv[0], purpose, options, count, strcmp(arg, "--help") == 0 ? 0 : 2);
		option->value = value + 1;
	}
}

const char *perf_option(const struct perf_option *options, const char *name)
{
	while (strcmp(options->name, name) != 0)
		options++;
	return options->value;
}

uint64_t perf_number(const struct perf_option *options, const char *name)
{
	const char *text = perf_option(options, name);
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	if (end == text || *end || *text == '-') {
		fprintf(stderr, "--%s=%s is not a number\n", name, text);
		exit(2);
	}
	return number;
}

/* ---- threads ---- */

void perf_pin(const char *cpu)
{
	cpu_set_t set;
	if (strcmp(cpu, "any") != 0) {
		CPU_ZERO(&set);
		CPU_SET((unsigned)atoi(cpu), &set);
		if (sched_setaffinity(0, sizeof set, &set) != 0)
			perf_fail("cannot run on processor %s", cpu);
	}
	one_processor = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

pthread_t perf_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	if (pthread_create(&thread, &attr, body, arg) != 0)
		perf_fail("cannot create a thread");
	pthread_attr_destroy(&attr);
	return thread;
}

static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static pthread_t sleeper;

static void *sleep_through(void *unused)
{
	pthread_mutex_lock(&bed);
	pthread_mutex_unlock(&bed);
	return unused;
}

void perf_sleeper_begin(void)
{
	pthread_mutex_lock(&bed);
	sleeper = perf_thread(sleep_through, NULL);
}

void perf_sleeper_end(void)
{
	pthread_mutex_unlock(&bed);
	pthread_join(sleeper, NULL);
}

void perf_until(bool (*ready)(void *), void *arg)
{
	for (unsigned looks = 0; !ready(arg); looks++) {
		if (one_processor || looks >= LOOKS)
			sched_yield();
		else
			perf_pause(1);
	}
}

/* ---- the region ---- */

double perf_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double perf_cpu_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

unsigned perf_steps_for(double ns)
{
	static volatile uint64_t result;
	const unsigned looks = 5, steps = 2000000;
	double best = 1e9;
	for (unsigned i = 0; i < looks; i++) {
		double start = perf_now();
		result = perf_compute(result, steps);
		double took = (perf_now() - start) * 1e9 / steps;
		best = took < best ? took : best;
	}
	return (unsigned)(ns / best + 0.5);
}

/* Tells perf stat, if it listens, and waits until it has done so. */
static void control(const char *command)
{
	const char *where = getenv("VEZ_PERF_CONTROL");
	int out, in;
	char answer[16];
	if (!where || sscanf(where, "%d,%d", &out, &in) != 2)
		return;
	if (write(out, command, strlen(command)) < 0 || read(in, answer, sizeof answer) <= 0)
		perf_fail("perf stat does not answer");
}

static void read_switches(struct perf_region *region)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	region->voluntary = (uint64_t)usage.ru_nvcsw - region->voluntary;
	region->involuntary = (uint64_t)usage.ru_nivcsw - region->involuntary;
}

static void give_up(int signal)
{
	static const char message[] = "no end after a minute: a wake is lost, or a count is wrong\n";
	(void)signal;
	if (write(STDERR_FILENO, message, sizeof message - 1) < 0)
		_exit(2);
	_exit(1);
}

void perf_begin(struct perf_region *region)
{
	signal(SIGALRM, give_up);
	alarm(PATIENCE);
	memset(region, 0, sizeof *region);
	control("enable\n");
	read_switches(region);
	region->seconds = perf_now();
}

void perf_end(struct perf_region *region)
{
	region->seconds = perf_now() - region->seconds;
	read_switches(region);
	control("disable\n");
}

void perf_print(const struct perf_result *r, const struct perf_region *region)
{
	double ops = (double)r->ops;
	printf("{\"scenario\": \"%s\", \"impl\": \"%s\", \"mode\": \"%s\", \"waiters\": %u, \"cpu\": \"%s\", ",
	       r->scenario, r->impl, r->mode, r->waiters, r->cpu);
	printf("\"ops\": %llu, \"seconds\": %.6f, \"ns_per_op\": %.2f, ", (unsigned long long)r->ops, region->seconds,
	       region->seconds * 1e9 / ops);
	printf("\"switches_per_op\": %.4f, \"voluntary\": %llu, \"involuntary\": %llu, \"futex_per_op\": null%s%s}\n",
	       (double)(region->voluntary + region->involuntary) / ops, (unsigned long long)region->voluntary,
	       (unsigned long long)region->involuntary, *r->extra ? ", " : "", r->extra);
}
