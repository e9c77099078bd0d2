/* SPDX-License-Identifier: MIT */
/*
 * mechanisms: one short operation of a small object, by everything that can lie between the caller and its body.
 *
 *	get      one thread calls get, a chain of multiplications of about 10 ns, and nobody else is there
 *	          direct        a call of the function
 *	          pthread       between pthread_mutex_lock and unlock: a yardstick
 *	          monitor       between vez_monitor_enter and vez_monitor_exit
 *	          call          vez_monitor_call: handed over, and run by its caller, since nobody is inside
 *	          guarded       vez_monitor_call_when, with a guard that is true
 *	          queue         vez_monitor_call_async while another thread is inside: every call is filed as a request,
 *	                        found by the other one when it leaves, run and settled by it. --batch calls are filed
 *	                        at a time, so that the switches between the threads are hardly seen; nobody waits for
 *	                        a single one
 *	          object        vez_object_call, without rules
 *	          constraint    with one constraint, which is true
 *	          synchronizer  with a constraint of a synchronizer over two objects, which looks at both and is true
 *	          trigger       with a trigger of such a synchronizer, which counts in the other object
 *	waiting  a set waits for its synchronizer, which lets it go --hold-us microseconds after it has come; meanwhile
 *	         another thread calls get. The time is that of a get, and of reading the clock twice
 *	          parallel      the object's get need not wait for the set
 *	          serial        the object takes its calls in order: VEZ_SERIAL
 * Each run of get tells its processor time, too: without what else the machine does.
 *
 * Every result is checked (seen to fail: a body with a step less); that each call of queue is queued (seen to fail:
 * with nobody inside); that the trigger runs each time (seen to fail: without it); and that every get of parallel, and
 * none of serial, runs before the set (seen to fail: with each other's flag).
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vez/call.h>
#include <vez/constraint.h>

#include "perf.h"

#define STEPS 10
#define MULTIPLIER UINT64_C(6364136223846793005)

static struct perf_option options[] = {
	{ "impl", "call", "direct, pthread, monitor, call, guarded, queue, object, constraint, synchronizer, trigger; "
			  "waiting: parallel, serial" },
	{ "mode", "get", "get, waiting" },
	{ "ops", "5000000", "calls of get" },
	{ "hold-us", "1000", "how long the set waits (waiting)" },
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
static sem_t inside, filed, left, done;
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
		sem_wait(&done); /* the rest needs the monitor */
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
	for (uint64_t i = 0; i < n; i++) { /* the library's thread runs what is more than one call's share */
		wrong += vez_request_wait(&requests[i], VEZ_FOREVER, NULL) != 0;
		wrong += vez_request_result(&requests[i]) != 0 || results[i] != expected;
	}
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
		sem_post(&done);
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
	sem_init(&done, 0, 0);
}

/* ---- objects ---- */

static vez_object_t small, other;
static vez_object_t *const both[] = { &small, &other };
static vez_synchronizer_t synchronizer;
static vez_constraint_t constraint;
static vez_trigger_t trigger;
static uint64_t triggered;
static bool other_is_ready; /* the other object's state */

static void get_body(void *self, void *result)
{
	(void)self;
	get(result);
}

static const vez_operation_t get_it = { "get", get_body };

static bool small_is_there(void *arg, void *call)
{
	(void)call;
	return *(uint64_t *)arg != 0;
}

static bool both_are_there(void *arg, void *call)
{
	(void)call;
	return *(uint64_t *)arg != 0 && other_is_ready;
}

static void count(void *counter, void *call)
{
	(void)call;
	++*(uint64_t *)counter;
}

static void make_objects(unsigned flags)
{
	vez_object_init(&small, &object, flags);
	vez_object_init(&other, NULL, 0);
}

static uint64_t run_object(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t result = 0; n > 0; n--, result = 0)
		wrong += vez_object_call(&small, &get_it, &result) != 0 || result != expected;
	return wrong;
}

static uint64_t run_constraint(uint64_t n)
{
	uint64_t wrong = vez_constraint_add(&small, &get_it, small_is_there, &object.value, &constraint) != 0;
	return wrong + run_object(n) + (vez_constraint_remove(&constraint) != 0);
}

static uint64_t run_synchronizer(uint64_t n)
{
	uint64_t wrong = vez_synchronizer_init(&synchronizer, both, 2) != 0;
	other_is_ready = true;
	wrong += vez_synchronizer_constraint_add(&synchronizer, &small, &get_it, both_are_there, &object.value,
						 &constraint) != 0;
	return wrong + run_object(n) + (vez_synchronizer_destroy(&synchronizer) != 0);
}

static uint64_t run_trigger(uint64_t n)
{
	uint64_t wrong = vez_synchronizer_init(&synchronizer, both, 2) != 0;
	wrong += vez_synchronizer_trigger_add(&synchronizer, &small, &get_it, count, &triggered, &trigger) != 0;
	triggered = 0;
	wrong += run_object(n) + (vez_synchronizer_destroy(&synchronizer) != 0);
	return wrong + (triggered != n);
}

/* ---- waiting ---- */

static bool is_set; /* the small object's state */
static sem_t set_may_come, was_set, ready_may_come, was_ready;

static void set_body(void *self, void *arg)
{
	(void)self, (void)arg;
	is_set = true;
}

static void ready_body(void *self, void *arg)
{
	(void)self, (void)arg;
	other_is_ready = true;
}

struct look {
	uint64_t result;
	bool before_set;
};

static void look_body(void *self, void *arg)
{
	struct look *l = arg;
	get_body(self, &l->result);
	l->before_set = !is_set;
}

static const vez_operation_t set_it = { "set", set_body };
static const vez_operation_t make_ready = { "ready", ready_body };
static const vez_operation_t look = { "get", look_body };

static void *set_in_turn(void *n)
{
	for (uint64_t i = *(uint64_t *)n; i > 0; i--) {
		sem_wait(&set_may_come);
		if (vez_object_call(&small, &set_it, NULL) != 0)
			perf_fail("a set failed");
		sem_post(&was_set);
	}
	return NULL;
}

static void *ready_in_turn(void *n)
{
	useconds_t hold = (useconds_t)perf_number(options, "hold-us");
	for (uint64_t i = *(uint64_t *)n; i > 0; i--) {
		sem_wait(&ready_may_come);
		usleep(hold);
		if (vez_object_call(&other, &make_ready, NULL) != 0)
			perf_fail("the other object is not ready");
		sem_post(&was_ready);
	}
	return NULL;
}

static bool set_waits(void *arg)
{
	(void)arg;
	return vez_object_waiters(&small) > 0;
}

/* Seconds that one get takes while a set waits; whether it ran before the set. */
static double get_while_set_waits(bool *before_set)
{
	struct look l = { 0, false };
	is_set = other_is_ready = false;
	sem_post(&set_may_come);
	perf_until(set_waits, NULL);
	sem_post(&ready_may_come);
	double began = perf_now();
	if (vez_object_call(&small, &look, &l) != 0 || l.result != expected)
		perf_fail("a get failed");
	double taken = perf_now() - began;
	*before_set = l.before_set;
	sem_wait(&was_set);
	sem_wait(&was_ready);
	return taken;
}

static void init_turns(void)
{
	sem_init(&set_may_come, 0, 0);
	sem_init(&was_set, 0, 0);
	sem_init(&ready_may_come, 0, 0);
	sem_init(&was_ready, 0, 0);
}

static void run_waiting(struct perf_region *region, const char *impl, uint64_t n)
{
	bool serial = strcmp(impl, "serial") == 0, before_set;
	double seconds = 0;
	if (!serial && strcmp(impl, "parallel") != 0)
		perf_fail("no --impl=%s with --mode=waiting", impl);
	make_objects(serial ? VEZ_SERIAL : 0);
	init_turns();
	if (vez_synchronizer_init(&synchronizer, both, 2) != 0 ||
	    vez_synchronizer_constraint_add(&synchronizer, &small, &set_it, both_are_there, &object.value,
					    &constraint) != 0)
		perf_fail("no synchronizer");
	pthread_t setter = perf_thread(set_in_turn, &n), readier = perf_thread(ready_in_turn, &n);
	perf_begin(region);
	for (uint64_t i = 0; i < n; i++) {
		seconds += get_while_set_waits(&before_set);
		if (before_set == serial)
			perf_fail("%s: a get ran %s the set that waited", impl, serial ? "before" : "after");
	}
	perf_end(region);
	region->seconds = seconds;
	pthread_join(setter, NULL);
	pthread_join(readier, NULL);
	vez_synchronizer_destroy(&synchronizer);
}

/* ---- the program ---- */

static const struct impl {
	const char *name;
	run_fn *run;
} impls[] = {
	{ "direct", run_direct }, { "pthread", run_pthread }, { "monitor", run_monitor },
	{ "call", run_call }, { "guarded", run_guarded }, { "queue", run_queue },
	{ "object", run_object }, { "constraint", run_constraint }, { "synchronizer", run_synchronizer },
	{ "trigger", run_trigger },
};

static run_fn *chosen(const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, name) == 0)
			return impls[i].run;
	perf_fail("no --impl=%s", name);
}

static uint64_t run_get(struct perf_region *region, const char *impl, uint64_t n, double *spent)
{
	run_fn *run = chosen(impl);
	prepare_queue();
	make_objects(0);
	perf_sleeper_begin();
	uint64_t wrong = run(n / 100 + 1);
	perf_begin(region);
	*spent = -perf_cpu_now();
	wrong += run(n);
	*spent += perf_cpu_now();
	perf_end(region);
	perf_sleeper_end();
	return wrong;
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char extra[64] = "";
	double spent;
	perf_options(argc, argv, "one short operation", options, sizeof options / sizeof *options);
	const char *impl = perf_option(options, "impl"), *mode = perf_option(options, "mode");
	uint64_t ops = perf_number(options, "ops");
	batch = perf_number(options, "batch");
	perf_pin(perf_option(options, "cpu"));
	get(&expected);
	if (!is_right(expected))
		perf_fail("the object is wrong");
	if (strcmp(mode, "waiting") == 0) {
		run_waiting(&region, impl, ops);
	} else if (strcmp(mode, "get") == 0) {
		uint64_t wrong = run_get(&region, impl, ops, &spent);
		if (wrong)
			perf_fail("%s: %llu wrong results", impl, (unsigned long long)wrong);
		snprintf(extra, sizeof extra, "\"processor_ns_per_op\": %.2f", spent * 1e9 / (double)ops);
	} else {
		perf_fail("no --mode=%s", mode);
	}
	perf_print(&(struct perf_result){ "mechanisms", impl, mode, 0, perf_option(options, "cpu"), ops, extra },
		   &region);
	return 0;
}
