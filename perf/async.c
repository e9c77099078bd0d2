/* SPDX-License-Identifier: MIT */
/*
 * async: requests without a thread, tokens, wait-for-any, deadlines.
 *
 *	pair      acquire and release, nobody else there; impl: vez: the asynchronous call, which is granted at once;
 *	          blocking: the blocking one; token, blocking-token: the same with a token that never fires
 *	callback  one request is queued and granted, and its function is called; no thread waits
 *	grant     --waiters requests are queued, then granted; the time is that of the grants; impl: vez: one by one;
 *	          at-once: by one release
 *	fire      --waiters requests are queued with one token, which fires; the time is that of the fire
 *	deadline  --waiters requests with far deadlines in random order are queued, then granted; the time is that of
 *	          both; impl: vez; none: the same without deadlines
 *	handoff   two threads let each other go in turn, asleep in between; an operation is a round trip; impl: vez: the
 *	          blocking call; token: with a token that never fires; select: one of them waits for any of 8 semaphores
 *
 * Each run tells its processor time, too, of all its threads: on one processor that is the time it takes, without what
 * else the machine does.
 *
 * Each run fails if a result is wrong or a request is not completed exactly once (seen to fail: a round that queues one
 * request less than it grants), and where neither a deadline nor the mode makes one, if there is a second thread (seen
 * to fail: one that sleeps).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez.h>

#include "perf.h"

#define MEMBERS 8

static struct perf_option options[] = {
	{ "impl", "vez", "pair: vez, token, blocking, blocking-token; grant: vez, at-once; deadline: vez, none; "
			 "handoff: vez, token, select" },
	{ "mode", "pair", "pair, callback, grant, fire, deadline, handoff" },
	{ "waiters", "1", "grant, fire, deadline: requests that wait at once" },
	{ "ops", "1000000", "pairs, round trips, requests" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

static vez_sem_t sem = VEZ_SEM_INITIALIZER(0);
static vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
static vez_request_t *requests;
static uint64_t waiters;
static uint64_t completed[2]; /* granted, otherwise */
static double spent, spent_cpu; /* in what a mode tells the time of, if that is a part of it */
static unsigned most_threads; /* while requests waited */

/* How many results were wrong. */
typedef uint64_t run_fn(uint64_t n);

static void part(int sign)
{
	spent += sign * perf_now();
	spent_cpu += sign * perf_cpu_now();
}

/* ---- pair ---- */

static uint64_t blocking_pairs(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += vez_sem_acquire(&sem, 1) != 0;
		wrong += vez_sem_release(&sem, 1) != 0;
	}
	return wrong;
}

static uint64_t blocking_token_pairs(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += vez_sem_acquire_until(&sem, 1, VEZ_FOREVER, &token) != 0;
		wrong += vez_sem_release(&sem, 1) != 0;
	}
	return wrong;
}

static uint64_t async_pairs(uint64_t n)
{
	vez_request_t r;
	uint64_t wrong = 0;
	vez_request_init(&r, NULL, NULL);
	for (; n > 0; n--) {
		wrong += vez_sem_acquire_async(&sem, 1, &r) != 0;
		wrong += vez_sem_release(&sem, 1) != 0;
	}
	return wrong;
}

static uint64_t async_token_pairs(uint64_t n)
{
	vez_request_t r;
	uint64_t wrong = 0;
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, VEZ_FOREVER, &token);
	for (; n > 0; n--) {
		wrong += vez_sem_acquire_async(&sem, 1, &r) != 0;
		wrong += vez_sem_release(&sem, 1) != 0;
	}
	return wrong;
}

/* ---- requests that wait ---- */

static void count(vez_request_t *r, int result, void *arg)
{
	(void)r, (void)arg;
	completed[result != 0]++;
}

static uint64_t callbacks(uint64_t n)
{
	uint64_t wrong = 0;
	vez_request_t r;
	for (uint64_t i = 0; i < n; i++) {
		vez_request_init(&r, count, NULL);
		wrong += vez_sem_acquire_async(&sem, 1, &r) != EINPROGRESS;
		vez_sem_release(&sem, 1);
		wrong += completed[0] != i + 1;
	}
	completed[0] = 0;
	return wrong;
}

static unsigned threads(void)
{
	unsigned found = 0;
	DIR *tasks = opendir("/proc/self/task");
	for (struct dirent *d; tasks && (d = readdir(tasks));)
		found += d->d_name[0] != '.';
	closedir(tasks);
	return found;
}

static uint64_t file(vez_cancel_t *cancel)
{
	uint64_t wrong = 0;
	completed[0] = completed[1] = 0;
	for (uint64_t i = 0; i < waiters; i++) {
		vez_request_init(&requests[i], count, NULL);
		vez_request_set_limits(&requests[i], VEZ_FOREVER, cancel);
		wrong += vez_sem_acquire_async(&sem, 1, &requests[i]) != EINPROGRESS;
	}
	if (most_threads == 0)
		most_threads = threads(); /* when it warms up: what it calls is not counted */
	return wrong;
}

static bool at_once;

/* A call runs some of the functions, the library's thread the rest, in order. */
static void await_all(void)
{
	vez_request_wait(&requests[waiters - 1], VEZ_FOREVER, NULL);
}

static void grant_all(void)
{
	if (at_once)
		vez_sem_release(&sem, (uint32_t)waiters);
	for (uint64_t i = 0; i < waiters && !at_once; i++)
		vez_sem_release(&sem, 1);
	await_all();
}

static uint64_t grants(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < n; i += waiters) {
		wrong += file(NULL);
		part(-1);
		grant_all();
		part(1);
		wrong += completed[0] != waiters || completed[1] != 0;
	}
	return wrong;
}

static uint64_t fires(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < n; i += waiters) {
		wrong += file(&token);
		part(-1);
		vez_cancel_fire(&token);
		await_all();
		part(1);
		wrong += completed[1] != waiters || completed[0] != 0 || !vez_cancel_clear(&token);
	}
	return wrong;
}

/* ---- deadlines ---- */

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static bool limited;

/* Between a thousand and two thousand seconds from now: none passes. */
static uint64_t deadlines(uint64_t n)
{
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < n; i += waiters) {
		vez_deadline_t later = vez_after_ms(1000000);
		completed[0] = completed[1] = 0;
		part(-1);
		for (uint64_t k = 0; k < waiters; k++) {
			int64_t at = later + (int64_t)(next_random() % 1000000000000u);
			vez_request_init(&requests[k], count, NULL);
			vez_request_set_limits(&requests[k], limited ? at : VEZ_FOREVER, NULL);
			wrong += vez_sem_acquire_async(&sem, 1, &requests[k]) != EINPROGRESS;
		}
		grant_all();
		part(1);
		wrong += completed[0] != waiters || completed[1] != 0;
	}
	return wrong;
}

/* ---- hand-off ---- */

static vez_sem_t answers[MEMBERS];
static vez_cancel_t *handed; /* NULL, or the token */
static bool any;
static bool ends;

static int wait_for(vez_sem_t *s)
{
	return handed ? vez_sem_acquire_until(s, 1, VEZ_FOREVER, handed) : vez_sem_acquire(s, 1);
}

static void *answer(void *arg)
{
	for (unsigned i = 0;; i++) {
		if (wait_for(&sem) != 0 || __atomic_load_n(&ends, __ATOMIC_RELAXED))
			return arg;
		vez_sem_release(&answers[any ? i % MEMBERS : 0], 1);
	}
}

static int wait_for_any(void)
{
	vez_request_t members[MEMBERS], *winner;
	vez_select_t s;
	vez_select_init(&s);
	for (int i = 0; i < MEMBERS; i++)
		vez_sem_acquire_async(&answers[i], 1, vez_select_case(&s, &members[i]));
	return vez_select_wait(&s, VEZ_FOREVER, NULL, &winner);
}

static uint64_t round_trips(uint64_t n)
{
	uint64_t wrong = 0;
	for (; n > 0; n--) {
		wrong += vez_sem_release(&sem, 1) != 0;
		wrong += (any ? wait_for_any() : wait_for(&answers[0])) != 0;
	}
	return wrong;
}

/* ---- which ---- */

static const struct run {
	const char *mode;
	const char *impl;
	run_fn *run;
	bool free;    /* a permit is there to begin with */
	bool threads; /* makes one */
} runs[] = {
	{ "pair", "blocking", blocking_pairs, true, false },
	{ "pair", "blocking-token", blocking_token_pairs, true, false },
	{ "pair", "vez", async_pairs, true, false },
	{ "pair", "token", async_token_pairs, true, false },
	{ "callback", "vez", callbacks, false, false },
	{ "grant", "vez", grants, false, false },
	{ "grant", "at-once", grants, false, false },
	{ "fire", "vez", fires, false, false },
	{ "deadline", "vez", deadlines, false, true },
	{ "deadline", "none", deadlines, false, false },
	{ "handoff", "vez", round_trips, false, true },
	{ "handoff", "token", round_trips, false, true },
	{ "handoff", "select", round_trips, false, true },
};

static const struct run *choose(const char *mode, const char *impl)
{
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		if (strcmp(runs[i].mode, mode) == 0 && strcmp(runs[i].impl, impl) == 0)
			return &runs[i];
	perf_fail("no --impl=%s with --mode=%s", impl, mode);
}

static void measure(const struct run *run, uint64_t ops, struct perf_region *region)
{
	uint64_t wrong = run->run(ops / 20 + 1);
	spent = spent_cpu = 0;
	double began = perf_cpu_now();
	perf_begin(region);
	wrong += run->run(ops);
	perf_end(region);
	if (spent > 0)
		region->seconds = spent;
	else
		spent_cpu = perf_cpu_now() - began;
	if (wrong)
		perf_fail("%s, %s: %llu wrong results", run->mode, run->impl, (unsigned long long)wrong);
	if (most_threads == 0)
		most_threads = threads();
	if (!run->threads && most_threads != 1)
		perf_fail("%s, %s: %u threads", run->mode, run->impl, most_threads);
}

static void measure_handoff(const struct run *run, uint64_t ops, struct perf_region *region)
{
	any = strcmp(run->impl, "select") == 0;
	handed = strcmp(run->impl, "token") == 0 ? &token : NULL;
	pthread_t partner = perf_thread(answer, NULL);
	measure(run, ops, region);
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	vez_sem_release(&sem, 1);
	pthread_join(partner, NULL);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	char extra[120];
	perf_options(argc, argv, "requests without a thread", options, sizeof options / sizeof *options);
	const struct run *run = choose(perf_option(options, "mode"), perf_option(options, "impl"));
	waiters = perf_number(options, "waiters");
	uint64_t ops = perf_number(options, "ops");
	if (waiters < 1 || ops < waiters || ops % waiters != 0)
		perf_fail("--ops must be a multiple of --waiters");
	at_once = strcmp(run->impl, "at-once") == 0;
	limited = strcmp(run->impl, "vez") == 0;
	requests = calloc(waiters, sizeof *requests);
	perf_pin(perf_option(options, "cpu"));
	vez_sem_release(&sem, run->free);
	if (run->run == round_trips)
		measure_handoff(run, ops, &region);
	else
		measure(run, ops, &region);
	snprintf(extra, sizeof extra, "\"threads\": %u, \"bytes\": %zu, \"processor_ns_per_op\": %.2f", most_threads,
		 sizeof *requests, spent_cpu * 1e9 / (double)ops);
	perf_print(&(struct perf_result){ "async", run->impl, run->mode, (unsigned)waiters,
					  perf_option(options, "cpu"), ops, extra },
		   &region);
	free(requests);
	return 0;
}
