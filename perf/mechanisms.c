/* SPDX-License-Identifier: MIT */
/*
 * mechanisms: one short operation of a small object, by everything that can lie between the caller and its body.
 *
 * One thread calls get, a chain of multiplications of about 10 ns, and nobody else is there:
 *
 *	direct   a call of the function
 *	pthread  between pthread_mutex_lock and unlock: a yardstick
 *	monitor  between vez_monitor_enter and vez_monitor_exit
 *	call     vez_monitor_call: handed over, and run by its caller, since nobody is inside
 *	guarded  vez_monitor_call_when, with a guard that is true
 *	queue    vez_monitor_call_async while another thread is inside: every call is filed as a request, found by the
 *	         other one when it leaves, run and settled by it. --batch calls are filed each time, so that the two
 *	         switches between the threads are hardly seen; nobody waits for a single one
 *
 * Each run tells its processor time, too: without what else the machine does.
 *
 * Every result is checked (seen to fail: a body with a step less), and that each call of queue is queued (seen to fail:
 * with nobody inside).
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vez/call.h>

#include "perf.h"

#define STEPS 10
#define MULTIPLIER UINT64_C(6364136223846793005)

static struct perf_option options[] = {
	{ "impl", "call", "direct, pthread, monitor, call, guarded, queue" },
	{ "ops", "5000000", "calls" },
	{ "batch", "256", "calls filed at a time (queue)" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

/* ---- the object ---- */

static struct {
	uint64_t value, mask;
	vez_monitor_t monitor;
	pthread_mutex_t mutex;
} object = { 7, 0, VEZ_MONITOR_INITIALIZER(NULL), PTHREAD_MUTEX_INITIALIZER };

/* Begins when the last result is there: no mask is set. */
static __attribute__((noinline)) void get(void *result)
{
	uint64_t x = object.value + (*(uint64_t *)result & object.mask);
	for (int i = 0; i < STEPS; i++) {
		x = x * MULTIPLIER + 1;
		__asm__("" : "+r"(x)); /* as many steps as there are */
	}
	*(uint64_t *)result = x;
}

/* What get must say: computed from the end, so that it is another way. */
static bool is_right(uint64_t result)
{
	uint64_t inverse = 1;
	for (int i = 0; i < 6; i++)
		inverse *= 2 - MULTIPLIER * inverse;
	for (int i = 0; i < STEPS; i++)
		result = (result - 1) * inverse;
	return result == object.value;
}

static bool is_there(void *result)
{
	(void)result;
	return object.value != 0;
}

/* ---- the mechanisms ---- */

/* How many results were wrong. */
typedef uint64_t run_fn(uint64_t n);

static uint64_t expected;

static uint64_t run_direct(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t result = 0; n > 0; n--) {
		get(&result);
		wrong += result != expected;
	}
	return wrong;
}

static uint64_t run_pthread(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t result = 0; n > 0; n--, result = 0) {
		pthread_mutex_lock(&object.mutex);
		get(&result);
		pthread_mutex_unlock(&object.mutex);
		wrong += result != expected;
	}
	return wrong;
}

static uint64_t run_monitor(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t result = 0; n > 0; n--, result = 0) {
		vez_monitor_enter(&object.monitor);
		get(&result);
		vez_monitor_exit(&object.monitor);
		wrong += result != expected;
	}
	return wrong;
}

static uint64_t run_call(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t result = 0; n > 0; n--, result = 0)
		wrong += vez_monitor_call(&object.monitor, get, &result) != 0 || result != expected;
	return wrong;
}

static uint64_t run_guarded(uint64_t n)
{
	const vez_guarded_t guarded = { &object.monitor, is_there, get };
	uint64_t wrong = 0;
	for (uint64_t result = 0; n > 0; n--, result = 0)
		wrong += vez_guarded_call(guarded, &result) != 0 || result != expected;
	return wrong;
}

/* ---- queue ---- */

static uint64_t batch;
static vez_request_t *requests;
static uint64_t *results;
static sem_t inside, filed, left;
static bool over; /* before filed */

/* Is inside while the others file. */
static void *keep(void *arg)
{
	do {
		vez_monitor_enter(&object.monitor);
		sem_post(&inside);
		sem_wait(&filed);
		vez_monitor_exit(&object.monitor);
		sem_post(&left);
	} while (!over);
	return arg;
}

static uint64_t file(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < n; i++) {
		results[i] = 0;
		wrong += vez_monitor_call_async(&object.monitor, NULL, get, &results[i], &requests[i]) != EINPROGRESS;
	}
	return wrong;
}

static uint64_t check_results(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < n; i++)
		wrong += vez_request_result(&requests[i]) != 0 || results[i] != expected;
	return wrong;
}

static uint64_t run_queue(uint64_t n)
{
	uint64_t wrong = 0;
	over = false;
	pthread_t keeper = perf_thread(keep, NULL);
	for (uint64_t some; n > 0; n -= some) {
		some = n < batch ? n : batch;
		sem_wait(&inside);
		wrong += file(some);
		over = some == n;
		sem_post(&filed);
		sem_wait(&left);
		wrong += check_results(some);
	}
	pthread_join(keeper, NULL);
	return wrong;
}

static void prepare_queue(void)
{
	requests = calloc(batch, sizeof *requests);
	results = calloc(batch, sizeof *results);
	if (batch < 1 || !requests || !results)
		perf_fail("no memory, or no --batch");
	for (uint64_t i = 0; i < batch; i++)
		vez_request_init(&requests[i], NULL, NULL);
	sem_init(&inside, 0, 0);
	sem_init(&filed, 0, 0);
	sem_init(&left, 0, 0);
}

/* ---- the program ---- */

static double cpu_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static const struct impl {
	const char *name;
	run_fn *run;
} impls[] = {
	{ "direct", run_direct }, { "pthread", run_pthread }, { "monitor", run_monitor },
	{ "call", run_call },	  { "guarded", run_guarded }, { "queue", run_queue },
};

static run_fn *chosen(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			return impls[i].run;
	perf_fail("no --impl=%s", name);
}

static void *sleep_through(void *arg)
{
	sem_wait(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char extra[64];
	sem_t bed;
	perf_options(argc, argv, "one short operation", options, sizeof options / sizeof *options);
	const char *impl = perf_option(options, "impl");
	run_fn *run = chosen(impl);
	uint64_t ops = perf_number(options, "ops");
	batch = perf_number(options, "batch");
	perf_pin(perf_option(options, "cpu"));
	prepare_queue();
	get(&expected);
	if (!is_right(expected))
		perf_fail("the object is wrong");
	sem_init(&bed, 0, 0); /* the C library takes shortcuts in a process that has one thread only */
	pthread_t sleeper = perf_thread(sleep_through, &bed);
	uint64_t wrong = run(ops / 100 + 1);
	perf_begin(&region);
	double spent = -cpu_now();
	wrong += run(ops);
	spent += cpu_now();
	perf_end(&region);
	sem_post(&bed);
	pthread_join(sleeper, NULL);
	if (wrong)
		perf_fail("%s: %llu wrong results", impl, (unsigned long long)wrong);
	snprintf(extra, sizeof extra, "\"processor_ns_per_op\": %.2f", spent * 1e9 / (double)ops);
	perf_print(&(struct perf_result){ "mechanisms", impl, "get", 0, perf_option(options, "cpu"), ops, extra },
		   &region);
	return 0;
}
