/* SPDX-License-Identifier: MIT */
/* Who is served when: keys, the bound on overtaking, and what waiting costs. */
#include "stress.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* ---- keys ---- */

#define KEYED 6

static struct {
	const struct kind *kind;
	union object obj;
	int64_t keys[KEYED];
	atomic_uint next, served;
	int order[KEYED];
	atomic_bool over;
} keyed;

static void keyed_wait(void *arg)
{
	int me = (int)(intptr_t)arg;
	WAIT_UNTIL(atomic_load(&keyed.next) == (unsigned)me);
	EXPECT(keyed.kind->acquire(&keyed.obj, 1, keyed.keys[me], VEZ_FOREVER, NULL) == 0, "keyed");
	keyed.order[atomic_load(&keyed.served)] = me;
	atomic_fetch_add(&keyed.served, 1);
}

/* Requests that come and go at all keys, each wanting more than there ever is. */
static void keyed_churn(void *arg)
{
	(void)arg;
	while (!atomic_load(&keyed.over)) {
		int64_t key = (int64_t)rnd(7) - 3;
		int rc = keyed.kind->acquire(&keyed.obj, 1000, key, vez_after_us((int64_t)rnd(20)), NULL);
		EXPECT(rc == ETIMEDOUT, "churn: %d", rc);
	}
}

/* Queues the next one, however many others come and go: it is counted once its own thread sleeps or spins in there. */
static void keyed_queue(unsigned i, const struct kind *kind)
{
	atomic_store(&keyed.next, i);
	WAIT_UNTIL(kind->waiters(&keyed.obj) == i + 1);
}

static void keyed_check(void)
{
	for (int i = 1; i < KEYED; i++) {
		int a = keyed.order[i - 1], b = keyed.order[i];
		EXPECT(keyed.keys[a] < keyed.keys[b] || (keyed.keys[a] == keyed.keys[b] && a < b),
		       "key %lld, queued as %d, was served before key %lld, queued as %d", (long long)keyed.keys[a], a,
		       (long long)keyed.keys[b], b);
	}
}

/* Six queue one by one with random keys; then others come and go while permits are released one by one: served by
 * key, then by arrival. Seen to fail: with last_not_after comparing by >= in room.c. */
static void keys_test(const struct test *t)
{
	struct crew crew = { 0 }, churners = { 0 };
	unsigned long rounds = rounds_of(t);
	keyed.kind = t->kind;
	t->kind->init(&keyed.obj, 0);
	watch_object(t->kind, &keyed.obj);
	for (intptr_t i = 0; i < KEYED; i++)
		crew_add(&crew, "keyed", keyed_wait, (void *)i);
	crew_add(&churners, "churner", keyed_churn, NULL);
	for (unsigned long round = 0; round < rounds; round++) {
		atomic_store(&keyed.next, KEYED);
		atomic_store(&keyed.served, 0);
		atomic_store(&keyed.over, false);
		for (int i = 0; i < KEYED; i++)
			keyed.keys[i] = (int64_t)rnd(5) - 2;
		crew_begin(&crew);
		for (unsigned i = 0; i < KEYED; i++)
			keyed_queue(i, t->kind);
		if (round & 1)
			crew_begin(&churners);
		for (unsigned i = 0; i < KEYED; i++) {
			t->kind->release(&keyed.obj, 1);
			WAIT_UNTIL(atomic_load(&keyed.served) == i + 1);
		}
		atomic_store(&keyed.over, true);
		crew_end(&crew);
		if (round & 1)
			crew_end(&churners);
		keyed_check();
	}
	crew_dismiss(&crew);
	crew_dismiss(&churners);
}

/* ---- barging: how long the first is passed over ---- */

#define WAITS 100

static struct {
	union object obj;
	atomic_bool over;
	atomic_ulong passes;
	int64_t took[WAITS];
} barge;

static void burn(int64_t ns)
{
	int64_t end = now_ns() + ns;
	while (now_ns() < end)
		;
}

static void *hammer(void *arg)
{
	while (!atomic_load(&barge.over)) {
		barging.acquire(&barge.obj, 1, 0, VEZ_FOREVER, NULL);
		burn(1000000);
		barging.release(&barge.obj, 1);
		atomic_fetch_add(&barge.passes, 1);
	}
	return arg;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* One thread holds the permit for a millisecond and takes it again the moment it has given it back; another waits for
 * it, again and again. The first in the queue is passed over for about a millisecond and a hold; generously, where
 * other programs run too, nine waits in ten end within 60 ms and all within 200 ms. Seen to fail: with a PATIENCE_NS
 * of a minute in monitor.c. */
static void bound_test(const struct test *t)
{
	(void)t;
	barging.init(&barge.obj, 1);
	watch_object(&barging, &barge.obj);
	pthread_t hammering = spawn("hammer", hammer, NULL);
	for (int i = 0; i < WAITS; i++) {
		unsigned long passes = atomic_load(&barge.passes);
		WAIT_UNTIL(atomic_load(&barge.passes) > passes);
		int64_t start = now_ns();
		barging.acquire(&barge.obj, 1, 0, VEZ_FOREVER, NULL);
		barge.took[i] = now_ns() - start;
		barging.release(&barge.obj, 1);
		progress();
	}
	atomic_store(&barge.over, true);
	pthread_join(hammering, NULL);
	qsort(barge.took, WAITS, sizeof barge.took[0], by_value);
	int64_t most = barge.took[WAITS * 9 / 10], longest = barge.took[WAITS - 1];
	remark("nine in ten below %.2f ms, longest %.2f ms", (double)most / 1e6, (double)longest / 1e6);
#if !defined(UNDER_TSAN) && !defined(UNDER_ASAN)
	EXPECT(most < 60000000 && longest < 200000000, "the first in the queue is passed over too long");
#endif
}

/* ---- K01: waiting costs no processor time ---- */

#define SLEEPERS 8

static struct {
	const struct kind *kind;
	union object obj;
	int64_t spent[SLEEPERS];
} bill;

static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void *billed_wait(void *arg)
{
	int64_t *spent = arg, start = cpu_ns();
	EXPECT(bill.kind->acquire(&bill.obj, 1, 0, VEZ_FOREVER, NULL) == 0, "acquire");
	*spent = cpu_ns() - start;
	bill.kind->release(&bill.obj, 1);
	return NULL;
}

/* All on one processor: a holder works, eight wait; each is billed less than a millisecond (five under a
 * sanitizer, or an emulator). Seen to fail: with vez__futex_wait returning at once. */
static void bill_test(const struct test *t)
{
	pthread_t threads[SLEEPERS];
	cpu_set_t one;
	int64_t worst = 0;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	bill.kind = t->kind;
	t->kind->init(&bill.obj, 0);
	watch_object(t->kind, &bill.obj);
	for (int i = 0; i < SLEEPERS; i++)
		threads[i] = spawn("sleeper", billed_wait, &bill.spent[i]);
	WAIT_UNTIL(t->kind->waiters(&bill.obj) == SLEEPERS);
	burn(100000000);
	t->kind->release(&bill.obj, 1);
	for (int i = 0; i < SLEEPERS; i++) {
		pthread_join(threads[i], NULL);
		worst = bill.spent[i] > worst ? bill.spent[i] : worst;
	}
	progress();
	remark("worst %.3f ms", (double)worst / 1e6);
#if defined(UNDER_TSAN) || defined(UNDER_ASAN) || defined(UNDER_QEMU)
	EXPECT(worst < 5000000, "a waiter was billed %lld ns", (long long)worst);
#else
	EXPECT(worst < 1000000, "a waiter was billed %lld ns", (long long)worst);
#endif
}

const struct test order_tests[] = {
	{ "keys", keys_test, &fifo, 1, 0, 20 },
	{ "keys", keys_test, &user, 1, 0, 20 },
	{ "barging-bound", bound_test, NULL, 0, 0, 1 },
	{ "one-cpu", bill_test, &fifo, 1, 0, 1 },
	{ "one-cpu", bill_test, &barging, 1, 0, 1 },
	{ "one-cpu", bill_test, &user, 1, 0, 1 },
	{ 0 },
};
