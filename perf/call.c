/* SPDX-License-Identifier: MIT */
/*
 * call: the operation is handed to whoever is inside, against entering to do it oneself.
 *
 *	body    all threads, for limit-ms: a body of that many nanoseconds, alone, and as long outside. share: the
 *	        operations of the thread that had the fewest, over the average
 *	          vez       vez_monitor_call
 *	          monitor   the same body between vez_monitor_enter and vez_monitor_exit
 *	          mutex     under a vez_mutex_t
 *	          pthread   under a pthread_mutex_t
 *	buffer  producers and consumers on a bounded buffer; an operation is an item passed on. Checked: every item
 *	        comes out once, in order
 *	          vez             vez_monitor_call_when, guards has-place and has-item
 *	          when            vez_mutex_lock_when, the same guards: each thread does its operation itself
 *	          await           the same by vez_mutex_lock and vez_mutex_await
 *	          cond            the classic: one mutex, two conditions; signal after unlocking, only if somebody waits
 *	          cond-locked     the same, signalled with the mutex held: how it is usually written
 *	          cond-broadcast  the same, broadcast
 *	        With --count=1 each call is bracketed by getrusage, which tells how often it slept (and costs time):
 *	          futile  per item: sleeps that ended though nothing had come of it. vez: all but one of a call whose
 *	                  body another thread ran. The others: returns of a pthread_cond_wait whose guard is false
 *	          delegated  per item: calls whose bodies other threads ran
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <vez/call.h>
#include <vez/mutex.h>

#include "perf.h"

#define MOST_THREADS 256

static struct perf_option options[] = {
	{ "impl", "vez", "body: vez, monitor, mutex, pthread; "
		       "buffer: vez, when, await, cond, cond-locked, cond-broadcast" },
	{ "mode", "body", "body, or buffer" },
	{ "threads", "4", "threads (body)" },
	{ "section", "10", "nanoseconds inside, and outside (body)" },
	{ "limit-ms", "1000", "how long all run (body)" },
	{ "producers", "4", "how many put (buffer)" },
	{ "consumers", "4", "how many take (buffer)" },
	{ "capacity", "16", "items (buffer)" },
	{ "ops", "200000", "items passed (buffer)" },
	{ "count", "0", "1: counts sleeps in vain (buffer)" },
	{ "cpu", "any", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

static struct {
	vez_monitor_t monitor;
	vez_mutex_t mutex;
	pthread_mutex_t pthread;
} lock __attribute__((aligned(128)));

static pthread_barrier_t begin, end;

struct worker {
	pthread_t thread;
	uint64_t ops;
	uint64_t value;
	uint64_t futile;
	uint64_t delegated;
	unsigned number;
} __attribute__((aligned(128)));

static struct worker workers[2 * MOST_THREADS];

/* ---- body ---- */

/* Guarded, on a line of its own. */
static struct {
	uint64_t value;
	uint64_t count;
} guarded __attribute__((aligned(128)));

static bool stop __attribute__((aligned(128)));
static unsigned steps;

static void body(void *arg)
{
	(void)arg;
	guarded.value = perf_compute(guarded.value, steps);
	guarded.count++;
}

static void by_call(void)
{
	vez_monitor_call(&lock.monitor, body, NULL);
}

static void by_monitor(void)
{
	vez_monitor_enter(&lock.monitor);
	body(NULL);
	vez_monitor_exit(&lock.monitor);
}

static void by_mutex(void)
{
	vez_mutex_lock(&lock.mutex);
	body(NULL);
	vez_mutex_unlock(&lock.mutex);
}

static void by_pthread(void)
{
	pthread_mutex_lock(&lock.pthread);
	body(NULL);
	pthread_mutex_unlock(&lock.pthread);
}

static const struct way {
	const char *name;
	void (*run)(void);
} ways[] = { { "vez", by_call }, { "monitor", by_monitor }, { "mutex", by_mutex }, { "pthread", by_pthread } };

static const struct way *way;

static void *run_bodies(void *arg)
{
	struct worker *w = arg;
	uint64_t value = 0, ops = 0;
	pthread_barrier_wait(&begin);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		way->run();
		value = perf_compute(value, steps);
		ops++;
	}
	pthread_barrier_wait(&end);
	w->value = value;
	w->ops = ops;
	return NULL;
}

static void sleep_ms(uint64_t ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	nanosleep(&ts, NULL);
}

static void start_threads(unsigned n, void *(*run)(void *))
{
	pthread_barrier_init(&begin, NULL, n + 1);
	pthread_barrier_init(&end, NULL, n + 1);
	for (unsigned i = 0; i < n; i++) {
		workers[i] = (struct worker){ .number = i };
		workers[i].thread = perf_thread(run, &workers[i]);
	}
	sleep_ms(2);
}

static void report_bodies(const struct perf_region *region, unsigned threads)
{
	uint64_t sum = 0, fewest = UINT64_MAX, most = 0;
	char extra[128];
	for (unsigned i = 0; i < threads; i++) {
		uint64_t ops = workers[i].ops;
		sum += ops;
		fewest = ops < fewest ? ops : fewest;
		most = ops > most ? ops : most;
	}
	if (sum != guarded.count)
		perf_fail("%s: %llu operations, but %llu bodies ran", way->name, (unsigned long long)sum,
			  (unsigned long long)guarded.count);
	sum = sum ? sum : 1;
	snprintf(extra, sizeof extra, "\"section\": %s, \"share\": %.3f, \"most\": %.3f", perf_option(options, "section"),
		 (double)fewest * threads / (double)sum, (double)most * threads / (double)sum);
	perf_print(&(struct perf_result){ "call", way->name, "body", threads, perf_option(options, "cpu"), sum, extra },
		   region);
}

static void measure_bodies(const char *impl)
{
	struct perf_region region;
	unsigned threads = (unsigned)perf_number(options, "threads");
	for (size_t i = 0; i < sizeof ways / sizeof *ways && !way; i++)
		if (strcmp(ways[i].name, impl) == 0)
			way = &ways[i];
	if (!way || threads < 1 || threads > MOST_THREADS)
		perf_fail("unknown --impl=%s, or --threads is not 1 to %d", impl, MOST_THREADS);
	steps = perf_steps_for((double)perf_number(options, "section"));
	guarded.count = 0;
	start_threads(threads, run_bodies);
	perf_begin(&region);
	pthread_barrier_wait(&begin);
	sleep_ms(perf_number(options, "limit-ms"));
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_barrier_wait(&end);
	perf_end(&region);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	report_bodies(&region, threads);
}

/* ---- buffer ---- */

/* Guarded by the lock of each. */
static struct {
	uint64_t *items;
	size_t capacity, first, length;
	unsigned putters, takers;
	pthread_cond_t not_full, not_empty;
} buffer __attribute__((aligned(128)));

/* One call: who makes it, and who ran it. */
struct call {
	uint64_t item;
	unsigned number;
	bool delegated;
};

static __thread unsigned self_number;
static bool counting;
static unsigned producers, consumers;
static uint64_t share;

static bool has_place(void *arg)
{
	(void)arg;
	return buffer.length < buffer.capacity;
}

static bool has_item(void *arg)
{
	(void)arg;
	return buffer.length > 0;
}

static void put_item(void *arg)
{
	struct call *c = arg;
	size_t at = buffer.first + buffer.length++;
	buffer.items[at < buffer.capacity ? at : at - buffer.capacity] = c->item;
	c->delegated = self_number != c->number;
}

static void take_item(void *arg)
{
	struct call *c = arg;
	c->item = buffer.items[buffer.first];
	buffer.length--;
	if (++buffer.first == buffer.capacity)
		buffer.first = 0;
	c->delegated = self_number != c->number;
}

static void call_put(struct worker *w, struct call *c)
{
	(void)w;
	vez_monitor_call_when(&lock.monitor, has_place, put_item, c, VEZ_FOREVER, NULL);
}

static void call_take(struct worker *w, struct call *c)
{
	(void)w;
	vez_monitor_call_when(&lock.monitor, has_item, take_item, c, VEZ_FOREVER, NULL);
}

static void when(bool (*guard)(void *), void (*operation)(void *), struct call *c)
{
	vez_mutex_lock_when(&lock.mutex, guard, NULL, VEZ_FOREVER, NULL);
	operation(c);
	vez_mutex_unlock(&lock.mutex);
}

static void when_put(struct worker *w, struct call *c)
{
	(void)w;
	when(has_place, put_item, c);
}

static void when_take(struct worker *w, struct call *c)
{
	(void)w;
	when(has_item, take_item, c);
}

static void lock_and_await(bool (*guard)(void *), void (*operation)(void *), struct call *c)
{
	vez_mutex_lock(&lock.mutex);
	vez_mutex_await(&lock.mutex, guard, NULL, VEZ_FOREVER, NULL);
	operation(c);
	vez_mutex_unlock(&lock.mutex);
}

static void await_put(struct worker *w, struct call *c)
{
	(void)w;
	lock_and_await(has_place, put_item, c);
}

static void await_take(struct worker *w, struct call *c)
{
	(void)w;
	lock_and_await(has_item, take_item, c);
}

/* With the mutex held: waits for the guard. */
static void await(struct worker *w, pthread_cond_t *cond, unsigned *waiting, bool (*guard)(void *))
{
	while (!guard(NULL)) {
		++*waiting;
		pthread_cond_wait(cond, &lock.pthread);
		--*waiting;
		w->futile += !guard(NULL);
	}
}

static void cond_put(struct worker *w, struct call *c)
{
	pthread_mutex_lock(&lock.pthread);
	await(w, &buffer.not_full, &buffer.putters, has_place);
	put_item(c);
	bool wanted = buffer.takers > 0;
	pthread_mutex_unlock(&lock.pthread);
	if (wanted)
		pthread_cond_signal(&buffer.not_empty);
}

static void cond_take(struct worker *w, struct call *c)
{
	pthread_mutex_lock(&lock.pthread);
	await(w, &buffer.not_empty, &buffer.takers, has_item);
	take_item(c);
	bool wanted = buffer.putters > 0;
	pthread_mutex_unlock(&lock.pthread);
	if (wanted)
		pthread_cond_signal(&buffer.not_full);
}

static void locked_put(struct worker *w, struct call *c)
{
	pthread_mutex_lock(&lock.pthread);
	await(w, &buffer.not_full, &buffer.putters, has_place);
	put_item(c);
	pthread_cond_signal(&buffer.not_empty);
	pthread_mutex_unlock(&lock.pthread);
}

static void locked_take(struct worker *w, struct call *c)
{
	pthread_mutex_lock(&lock.pthread);
	await(w, &buffer.not_empty, &buffer.takers, has_item);
	take_item(c);
	pthread_cond_signal(&buffer.not_full);
	pthread_mutex_unlock(&lock.pthread);
}

static void broadcast_put(struct worker *w, struct call *c)
{
	pthread_mutex_lock(&lock.pthread);
	await(w, &buffer.not_full, &buffer.putters, has_place);
	put_item(c);
	pthread_cond_broadcast(&buffer.not_empty);
	pthread_mutex_unlock(&lock.pthread);
}

static void broadcast_take(struct worker *w, struct call *c)
{
	pthread_mutex_lock(&lock.pthread);
	await(w, &buffer.not_empty, &buffer.takers, has_item);
	take_item(c);
	pthread_cond_broadcast(&buffer.not_full);
	pthread_mutex_unlock(&lock.pthread);
}

typedef void operation(struct worker *w, struct call *c);

static const struct passing {
	const char *name;
	operation *put, *take;
	bool delegates;
} passings[] = {
	{ "vez", call_put, call_take, true },
	{ "when", when_put, when_take, false },
	{ "await", await_put, await_take, false },
	{ "cond", cond_put, cond_take, false },
	{ "cond-locked", locked_put, locked_take, false },
	{ "cond-broadcast", broadcast_put, broadcast_take, false },
};

static const struct passing *passing;

static uint64_t sleeps(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw;
}

/* Does it once. Where bodies are delegated, one sleep of a call is what it takes, and no more. */
static inline void operate(struct worker *w, operation *op, struct call *c)
{
	uint64_t before = counting ? sleeps() : 0;
	op(w, c);
	w->delegated += c->delegated;
	if (!counting || !passing->delegates)
		return;
	uint64_t slept = sleeps() - before;
	w->futile += slept > c->delegated ? slept - c->delegated : 0;
}

static void produce(struct worker *w)
{
	struct call c = { 0, w->number, false };
	for (uint64_t i = 1; i <= share; i++) {
		c.item = (uint64_t)w->number << 48 | i;
		operate(w, passing->put, &c);
	}
}

static void consume(struct worker *w)
{
	uint64_t last[MOST_THREADS] = { 0 };
	uint64_t n = share * producers / consumers;
	struct call c = { 0, w->number, false };
	for (; w->ops < n; w->ops++) {
		operate(w, passing->take, &c);
		uint64_t producer = c.item >> 48, number = c.item & (UINT64_MAX >> 16);
		if (producer >= producers || number <= last[producer])
			perf_fail("%s: not FIFO: item %llu of producer %llu", passing->name, (unsigned long long)number,
				  (unsigned long long)producer);
		last[producer] = number;
		w->value += number;
	}
}

static void *pass_items(void *arg)
{
	struct worker *w = arg;
	self_number = w->number;
	pthread_barrier_wait(&begin);
	if (w->number < producers)
		produce(w);
	else
		consume(w);
	pthread_barrier_wait(&end);
	return NULL;
}

static void report_buffer(const struct perf_region *region)
{
	uint64_t ops = share * producers, sum = 0, futile = 0, delegated = 0;
	char mode[64], extra[128];
	for (unsigned i = 0; i < producers + consumers; i++) {
		sum += workers[i].value;
		futile += workers[i].futile;
		delegated += workers[i].delegated;
	}
	if (sum != producers * (share * (share + 1) / 2) || buffer.length != 0)
		perf_fail("%s: not conserved", passing->name);
	snprintf(mode, sizeof mode, "buffer-%u-%u-%zu", producers, consumers, buffer.capacity);
	int n = snprintf(extra, sizeof extra, "\"delegated\": %.4f", (double)delegated / (double)ops);
	if (counting)
		snprintf(extra + n, sizeof extra - (size_t)n, ", \"futile\": %.6f", (double)futile / (double)ops);
	perf_print(&(struct perf_result){ "call", passing->name, mode, producers + consumers, perf_option(options, "cpu"),
					  ops, extra },
		   region);
}

static void measure_buffer(const char *impl)
{
	struct perf_region region;
	for (size_t i = 0; i < sizeof passings / sizeof *passings && !passing; i++)
		if (strcmp(passings[i].name, impl) == 0)
			passing = &passings[i];
	producers = (unsigned)perf_number(options, "producers");
	consumers = (unsigned)perf_number(options, "consumers");
	buffer.capacity = perf_number(options, "capacity");
	counting = perf_number(options, "count");
	if (!passing || producers < 1 || producers > MOST_THREADS || consumers < 1 || consumers > MOST_THREADS)
		perf_fail("unknown --impl=%s, or not 1 to %d producers and consumers", impl, MOST_THREADS);
	/* Everybody passes as many as the other side needs. */
	share = perf_number(options, "ops") / producers / consumers * consumers;
	buffer.items = calloc(buffer.capacity, sizeof *buffer.items);
	if (!buffer.items)
		perf_fail("no memory");
	start_threads(producers + consumers, pass_items);
	perf_begin(&region);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	perf_end(&region);
	for (unsigned i = 0; i < producers + consumers; i++)
		pthread_join(workers[i].thread, NULL);
	report_buffer(&region);
	free(buffer.items);
}

int main(int argc, char **argv)
{
	perf_options(argc, argv, "operations that are handed over", options, sizeof options / sizeof *options);
	const char *impl = perf_option(options, "impl"), *mode = perf_option(options, "mode");
	perf_pin(perf_option(options, "cpu"));
	if (strcmp(mode, "body") == 0)
		measure_bodies(impl);
	else if (strcmp(mode, "buffer") == 0)
		measure_buffer(impl);
	else
		perf_fail("no --mode=%s", mode);
	return 0;
}
