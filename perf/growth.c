/* SPDX-License-Identifier: MIT */
/*
 * growth: what one costs when there are --size of them. What grows with their number is no use to whoever has many.
 *
 *	waiters   requests are queued at one semaphore, then granted one by one
 *	far       the same with deadlines in random order that never pass: setting and taking off
 *	expire    requests with deadlines in random order, a few microseconds apart, all of which pass
 *	near      requests with far deadlines wait; each operation is one more with a near deadline, which passes
 *	passing   the same, but what is near is granted before it passes
 *	keys      requests with keys in random order are queued, then granted one by one
 *	token     requests that name one token, which fires
 *	named     requests that name one token wait; each operation is one more that does, and is granted
 *	calls     calls are filed at a monitor while somebody is inside; who leaves, and the library's thread, run them
 *	guards    calls wait for a guard that is false; each operation is one more call, whose body changes nothing for
 *	          them: their guards are looked at again after it
 *	ring      objects, each related with the next by a synchronizer; an operation makes one and takes it down, in
 *	          the order of --order
 *
 * The time is that of one request, call or synchronizer. Done again until there were --ops of them; what takes longer
 * than --limit-ms ends with fewer, and then with fewer than --size, which "reached" tells. On one processor, the
 * processor time is without what else the machine does, and without the time that is slept until a deadline.
 *
 * Checked: that all complete, each as it should. Seen to fail: with deadlines that pass too early for far.
 */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vez.h>

#include "perf.h"

/* Nanoseconds between two deadlines of expire, and how far ahead a near one is. */
#define APART 5000
#define NEAR 200000

/* What filing requests with deadlines may take before the first passes, and 3 microseconds for each. */
#define FILING_MS 50

/* Looks at the clock once in so many. */
#define SLICE 64

static struct perf_option options[] = {
	{ "impl", "vez", "vez" },
	{ "mode", "waiters", "waiters, far, expire, near, passing, keys, token, named, calls, guards, ring" },
	{ "size", "1000", "how many there are at once" },
	{ "ops", "20000", "operations in all, at least" },
	{ "order", "made", "ring: they are taken down as they were made, in reverse, or random" },
	{ "limit-ms", "2000", "ends the run after about this time" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

static uint64_t size, ops;
static double until;
static uint64_t reached; /* the most that there were at once */
static uint64_t wrong;
static uint64_t completed[3]; /* granted, timed out, called off */

static vez_sem_t sem = VEZ_SEM_INITIALIZER(0), other = VEZ_SEM_INITIALIZER(0);
static vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
static vez_request_t *requests;

/* What is measured: the time, and the processor's, of the parts between. */
static struct perf_region region;
static double spent, spent_cpu;

static void part(int sign)
{
	spent += sign * perf_now();
	spent_cpu += sign * perf_cpu_now();
}

static bool late(uint64_t done)
{
	return done % SLICE == SLICE - 1 && perf_now() > until;
}

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252u;
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* ---- requests ---- */

/* Posted when so many have completed: the functions of the last ones may be left to the library's thread. */
static uint64_t goal;
static sem_t reached_goal;

static void count(vez_request_t *r, int result, void *arg)
{
	(void)r;
	(void)arg;
	unsigned which = result == 0 ? 0 : result == ETIMEDOUT ? 1 : 2;
	if (__atomic_add_fetch(&completed[which], 1, __ATOMIC_ACQ_REL) == goal)
		sem_post(&reached_goal);
}

static uint64_t counted(unsigned which)
{
	return __atomic_load_n(&completed[which], __ATOMIC_ACQUIRE);
}

struct limits {
	bool keys;
	bool far;
	bool expire;
	vez_cancel_t *cancel;
};

static vez_deadline_t deadline_of(const struct limits *l, vez_deadline_t base)
{
	if (l->far) /* between a thousand and two thousand seconds from now */
		return base + (int64_t)(next_random() % UINT64_C(1000000000000));
	if (l->expire)
		return base + (int64_t)(next_random() % (size * APART));
	return VEZ_FOREVER;
}

/* How many it filed. */
static uint64_t file(const struct limits *l)
{
	vez_deadline_t base = l->far ? vez_after_ms(1000000) : vez_after_us(FILING_MS * 1000 + (int64_t)size * 3);
	uint64_t n = 0;
	do {
		vez_request_t *r = &requests[n];
		vez_request_init(r, count, NULL);
		vez_request_set_limits(r, deadline_of(l, base), l->cancel);
		if (l->keys)
			vez_request_set_key(r, (int64_t)(next_random() >> 1));
		wrong += vez_sem_acquire_async(&sem, 1, r) != EINPROGRESS;
	} while (++n < size && !late(n));
	reached = n > reached ? n : reached;
	return n;
}

static void grant(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		wrong += vez_sem_release(&sem, 1) != 0;
	wrong += counted(0) != n;
	completed[0] = 0;
}

static uint64_t file_and_grant(const struct limits *l)
{
	part(-1);
	uint64_t n = file(l);
	grant(n);
	part(1);
	return n;
}

static uint64_t waiters_round(void)
{
	return file_and_grant(&(struct limits){ 0 });
}

static uint64_t far_round(void)
{
	return file_and_grant(&(struct limits){ .far = true });
}

static uint64_t keys_round(void)
{
	return file_and_grant(&(struct limits){ .keys = true });
}

static uint64_t token_round(void)
{
	part(-1);
	uint64_t n = file(&(struct limits){ .cancel = &token });
	goal = n;
	vez_cancel_fire(&token);
	while (sem_wait(&reached_goal) != 0)
		;
	part(1);
	goal = 0;
	wrong += counted(2) != n || !vez_cancel_clear(&token);
	completed[2] = 0;
	return n;
}

static void nap(double seconds)
{
	struct timespec ts = { (time_t)seconds, (long)(seconds * 1e9) % 1000000000 };
	nanosleep(&ts, NULL);
}

/* Sleeps until the last has passed: who looks meanwhile takes processor time, too. */
static uint64_t expire_round(void)
{
	double all = FILING_MS / 1e3 + (double)size * (3e-6 + APART / 1e9);
	part(-1);
	uint64_t n = file(&(struct limits){ .expire = true });
	nap(all);
	while (counted(1) < n && perf_now() < until + 10)
		nap(0.001);
	part(1);
	wrong += counted(1) != n;
	completed[1] = 0;
	return n;
}

/* ---- one more, while the others wait ---- */

static uint64_t standing;

static void stand(const struct limits *l)
{
	standing = file(l);
}

static void stand_far(void)
{
	stand(&(struct limits){ .far = true });
}

static void stand_named(void)
{
	stand(&(struct limits){ .cancel = &token });
}

static void leave(void)
{
	completed[0] = 0;
	grant(standing);
}

static sem_t passed;

static void tell(vez_request_t *r, int result, void *arg)
{
	(void)r;
	*(int *)arg = result;
	sem_post(&passed);
}

static uint64_t near_round(void)
{
	vez_request_t r;
	int result = 0;
	vez_request_init(&r, tell, &result);
	part(-1);
	vez_request_set_limits(&r, vez_after_ns(NEAR), NULL);
	wrong += vez_sem_acquire_async(&other, 1, &r) != EINPROGRESS;
	while (sem_wait(&passed) != 0)
		;
	part(1);
	wrong += result != ETIMEDOUT || vez_request_wait(&r, VEZ_FOREVER, NULL) != 0;
	return 1;
}

/* SLICE at a time: one is shorter than two looks at the clock. */
static uint64_t granted_round(vez_deadline_t ahead, vez_cancel_t *cancel)
{
	vez_request_t r;
	part(-1);
	for (unsigned i = 0; i < SLICE; i++) {
		vez_request_init(&r, count, NULL);
		vez_request_set_limits(&r, ahead == VEZ_FOREVER ? VEZ_FOREVER : vez_after_ns(ahead), cancel);
		wrong += vez_sem_acquire_async(&other, 1, &r) != EINPROGRESS;
		vez_sem_release(&other, 1);
	}
	part(1);
	wrong += counted(0) != SLICE;
	completed[0] = 0;
	return SLICE;
}

static uint64_t passing_round(void)
{
	return granted_round(50 * NEAR, NULL);
}

static uint64_t named_round(void)
{
	return granted_round(VEZ_FOREVER, &token);
}

/* ---- calls ---- */

static vez_monitor_t monitor = VEZ_MONITOR_INITIALIZER(NULL);
static sem_t enter, inside, filed, left;
static uint64_t ran;
static bool over;

static void run_it(void *arg)
{
	(void)arg;
	ran++;
}

static void *keep(void *arg)
{
	for (;;) {
		while (sem_wait(&enter) != 0)
			;
		vez_monitor_enter(&monitor);
		sem_post(&inside);
		while (sem_wait(&filed) != 0)
			;
		bool last = over;
		vez_monitor_exit(&monitor);
		sem_post(&left);
		if (last)
			return arg;
	}
}

static pthread_t keeper;

static void start_keeper(void)
{
	keeper = perf_thread(keep, NULL);
}

static void end_keeper(void)
{
	over = true;
	sem_post(&enter);
	while (sem_wait(&inside) != 0)
		;
	sem_post(&filed);
	pthread_join(keeper, NULL);
}

static uint64_t calls_round(void)
{
	uint64_t n = 0;
	ran = 0;
	sem_post(&enter);
	while (sem_wait(&inside) != 0)
		;
	part(-1);
	do {
		vez_request_init(&requests[n], NULL, NULL);
		wrong += vez_monitor_call_async(&monitor, NULL, run_it, NULL, &requests[n]) != EINPROGRESS;
	} while (++n < size && !late(n));
	sem_post(&filed);
	while (sem_wait(&left) != 0)
		;
	wrong += vez_request_wait(&requests[n - 1], VEZ_FOREVER, NULL) != 0;
	part(1);
	reached = n > reached ? n : reached;
	wrong += ran != n;
	for (uint64_t i = 0; i < n; i++)
		wrong += vez_request_result(&requests[i]) != 0;
	return n;
}

static bool may;

static bool they_may(void *arg)
{
	(void)arg;
	return may;
}

static void stand_guarded(void)
{
	do {
		vez_request_init(&requests[standing], NULL, NULL);
		wrong += vez_monitor_call_async(&monitor, they_may, run_it, NULL, &requests[standing]) != EINPROGRESS;
	} while (++standing < size && !late(standing));
	reached = standing;
}

static uint64_t guards_round(void)
{
	part(-1);
	for (unsigned i = 0; i < SLICE; i++)
		wrong += vez_monitor_call(&monitor, run_it, NULL) != 0;
	part(1);
	wrong += ran % SLICE != 0;
	return SLICE;
}

static void let_them(void *arg)
{
	(void)arg;
	may = true;
	ran = 0;
}

static void end_guarded(void)
{
	wrong += vez_monitor_call(&monitor, let_them, NULL) != 0;
	wrong += vez_request_wait(&requests[standing - 1], VEZ_FOREVER, NULL) != 0;
	wrong += ran != standing;
}

/* ---- a ring ---- */

static vez_object_t *objects;
static vez_synchronizer_t *synchronizers;
static vez_object_t *(*related)[2];
static uint64_t *order; /* in which they are taken down */

static void make_objects(void)
{
	objects = calloc(size, sizeof *objects);
	synchronizers = calloc(size, sizeof *synchronizers);
	related = calloc(size, sizeof *related);
	order = calloc(size, sizeof *order);
	if (!objects || !synchronizers || !related || !order)
		perf_fail("no memory");
	for (uint64_t i = 0; i < size; i++)
		wrong += vez_object_init(&objects[i], NULL, 0) != 0;
}

static void set_order(uint64_t n)
{
	const char *name = perf_option(options, "order");
	bool random = strcmp(name, "random") == 0, reverse = strcmp(name, "reverse") == 0;
	if (!random && !reverse && strcmp(name, "made") != 0)
		perf_fail("no --order=%s", name);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = random ? next_random() % (i + 1) : i;
		order[i] = order[at];
		order[at] = reverse ? n - 1 - i : i;
	}
}

/* The last one closes the ring, if it comes to that. */
static uint64_t ring_round(void)
{
	uint64_t n = 0;
	part(-1);
	do {
		related[n][0] = &objects[n];
		related[n][1] = &objects[(n + 1) % size];
		wrong += vez_synchronizer_init(&synchronizers[n], related[n], 2) != 0;
	} while (++n < size && !late(n));
	part(1);
	set_order(n);
	part(-1);
	for (uint64_t i = 0; i < n; i++)
		wrong += vez_synchronizer_destroy(&synchronizers[order[i]]) != 0;
	part(1);
	reached = n > reached ? n : reached;
	return n;
}

/* ---- which ---- */

static const struct run {
	const char *mode;
	void (*before)(void);
	uint64_t (*round)(void); /* how many operations it was */
	void (*after)(void);
} runs[] = {
	{ "waiters", NULL, waiters_round, NULL },
	{ "far", NULL, far_round, NULL },
	{ "expire", NULL, expire_round, NULL },
	{ "near", stand_far, near_round, leave },
	{ "passing", stand_far, passing_round, leave },
	{ "keys", NULL, keys_round, NULL },
	{ "token", NULL, token_round, NULL },
	{ "named", stand_named, named_round, leave },
	{ "calls", start_keeper, calls_round, end_keeper },
	{ "guards", stand_guarded, guards_round, end_guarded },
	{ "ring", make_objects, ring_round, NULL },
};

static const struct run *chosen(const char *mode)
{
	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
		if (strcmp(runs[i].mode, mode) == 0)
			return &runs[i];
	perf_fail("no --mode=%s", mode);
}

static double limit(void)
{
	return (double)perf_number(options, "limit-ms") / 1e3;
}

int main(int argc, char **argv)
{
	char extra[128];
	perf_options(argc, argv, "what one costs when there are many", options, sizeof options / sizeof *options);
	const struct run *run = chosen(perf_option(options, "mode"));
	if (strcmp(perf_option(options, "impl"), "vez") != 0)
		perf_fail("--impl is vez");
	size = perf_number(options, "size");
	ops = perf_number(options, "ops");
	if (size < 1 || ops < 1)
		perf_fail("--size and --ops are at least 1");
	requests = calloc(size, sizeof *requests);
	if (!requests)
		perf_fail("no memory");
	memset(requests, 1, size * sizeof *requests); /* so that no page is touched for the first time later */
	sem_init(&passed, 0, 0);
	sem_init(&enter, 0, 0);
	sem_init(&inside, 0, 0);
	sem_init(&filed, 0, 0);
	sem_init(&left, 0, 0);
	sem_init(&reached_goal, 0, 0);
	perf_pin(perf_option(options, "cpu"));
	until = perf_now() + limit();
	if (run->before)
		run->before();
	until = perf_now() + limit();
	uint64_t done = 0;
	perf_begin(&region);
	do
		done += run->round();
	while (done < ops && perf_now() < until);
	perf_end(&region);
	region.seconds = spent;
	if (run->after)
		run->after();
	if (wrong)
		perf_fail("%s: %llu wrong results", run->mode, (unsigned long long)wrong);
	snprintf(extra, sizeof extra, "\"reached\": %llu, \"processor_ns_per_op\": %.2f", (unsigned long long)reached,
		 spent_cpu * 1e9 / (double)done);
	perf_print(&(struct perf_result){ "growth", "vez", run->mode, (unsigned)size, perf_option(options, "cpu"), done,
					  extra },
		   &region);
	free(requests);
	free(order);
	free(related);
	free(synchronizers);
	free(objects);
	return 0;
}
