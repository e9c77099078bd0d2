/* SPDX-License-Identifier: MIT */
/*
 * Inspection of a program that does not stand still: threads that wait for everything there is, end, lock in one order,
 * file requests and free them as they complete, are looked at all the time, while inspection is switched off and on.
 *
 * Nothing that is listed may be more than there is, and nothing is a deadlock; at the end the list is empty. Seen to
 * fail: where waits are not hidden, or requests not taken off, while inspection is off; and under the thread sanitizer
 * where a record is filled when the request's deadline is set already.
 */
#include "stress.h"

#include <stdlib.h>
#include <string.h>

#define LOCKS 4
#define FILERS 2

static struct {
	vez_mutex_t locks[LOCKS];
	vez_rwlock_t rwlock;
	vez_cond_t cond;
	vez_sem_t sem;
	vez_latch_t latch;
	vez_cancel_t token;
	atomic_ulong filed, freed, inspected, listed;
} s;

/* ---- what is looked at ---- */

static void lock_in_order(void *arg)
{
	(void)arg;
	unsigned held = 0;
	for (unsigned i = 0; i < LOCKS; i++)
		if (rnd(3) && vez_mutex_lock_until(&s.locks[i], VEZ_FOREVER, rnd(2) ? &s.token : NULL) == 0)
			held |= 1u << i;
	bool writes = rnd(2) && vez_rwlock_wrlock_until(&s.rwlock, vez_after_ns((int64_t)rnd(100000)), NULL) == 0;
	if (rnd(4) == 0)
		dawdle();
	if (writes)
		EXPECT(vez_rwlock_wrunlock(&s.rwlock) == 0, "wrunlock");
	for (unsigned i = LOCKS; i-- > 0;)
		if (held & 1u << i)
			EXPECT(vez_mutex_unlock(&s.locks[i]) == 0, "unlock");
}

/* Moved from the condition to the mutex, or not. */
static void wait_on_condition(void *arg)
{
	(void)arg;
	EXPECT(vez_mutex_lock(&s.locks[0]) == 0, "lock");
	vez_cond_wait_key(&s.cond, &s.locks[0], (int64_t)rnd(3), vez_after_ns((int64_t)rnd(50000)), NULL);
	EXPECT(vez_mutex_unlock(&s.locks[0]) == 0, "unlock");
	vez_cond_broadcast(&s.cond);
}

static void *wait_and_end(void *arg)
{
	EXPECT(vez_latch_wait_until(&s.latch, vez_after_ns((int64_t)rnd(30000)), NULL) != EINVAL, "latch");
	return arg;
}

static void thread_that_ends(void *arg)
{
	(void)arg;
	pthread_t t;
	EXPECT(pthread_create(&t, NULL, wait_and_end, NULL) == 0, "no thread");
	pthread_join(t, NULL);
}

static void free_it(vez_request_t *r, int result, void *arg)
{
	(void)result, (void)arg;
	memset(r, FILL, sizeof *r);
	free(r);
	atomic_fetch_add(&s.freed, 1);
}

static void file(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 20; i++) {
		vez_request_t *r = malloc(sizeof *r);
		vez_request_init(r, free_it, NULL);
		if (rnd(3) == 0)
			vez_request_set_limits(r, vez_after_ns((int64_t)rnd(50000)), rnd(2) ? &s.token : NULL);
		atomic_fetch_add(&s.filed, 1);
		int rc = vez_sem_acquire_async(&s.sem, 1, r);
		if (rc != EINPROGRESS)
			free_it(r, rc, NULL);
	}
	for (unsigned i = 0; i < 20; i++)
		EXPECT(vez_sem_release(&s.sem, 1) == 0, "release");
}

/* ---- who looks ---- */

static void inspect(void *arg)
{
	(void)arg;
	char name[16] = "a lock";
	name[0] += (char)rnd(26);
	for (unsigned i = 0; i < 5; i++) {
		int listed = vez_inspect(NULL);
		EXPECT(listed >= 0, "%d deadlocks", -listed);
		EXPECT(listed <= CREW_MAX + 1 + 20 * FILERS, "%d listed", listed);
		atomic_fetch_add(&s.inspected, 1);
		atomic_fetch_add(&s.listed, (unsigned long)listed);
	}
	EXPECT(vez_inspect_name(&s.locks[rnd(LOCKS)], rnd(3) ? name : NULL) == 0, "name");
	vez_inspect_enable(rnd(4) > 0);
	vez_cancel_fire(&s.token);
	vez_cancel_clear(&s.token);
}

static void inspect_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	vez_latch_init(&s.latch, 1);
	vez_inspect_enable(true);
	crew_add(&crew, "locker", lock_in_order, NULL);
	crew_add(&crew, "locker", lock_in_order, NULL);
	crew_add(&crew, "condition", wait_on_condition, NULL);
	crew_add(&crew, "ends", thread_that_ends, NULL);
	for (unsigned i = 0; i < FILERS; i++)
		crew_add(&crew, "filer", file, NULL);
	crew_add(&crew, "inspector", inspect, NULL);
	crew_add(&crew, "inspector", inspect, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		crew_begin(&crew);
		crew_end(&crew);
		vez_sem_drain(&s.sem);
		vez_request_t *r = malloc(sizeof *r);
		vez_request_init(r, free_it, NULL);
		atomic_fetch_add(&s.filed, 1);
		EXPECT(vez_sem_acquire_async(&s.sem, 1, r) == EINPROGRESS, "not queued");
		EXPECT(vez_sem_release(&s.sem, 1) == 0, "release");
		/* The library's thread may be about to complete one. */
		WAIT_UNTIL(atomic_load(&s.freed) == atomic_load(&s.filed));
		EXPECT(vez_inspect(NULL) == 0, "%d left", vez_inspect(NULL));
	}
	crew_dismiss(&crew);
	remark("%lu listed in %lu looks", atomic_load(&s.listed), atomic_load(&s.inspected));
}

const struct test inspect_tests[] = {
	{ "inspect", inspect_test, NULL, 0, 0, 2 },
	{ 0 },
};
