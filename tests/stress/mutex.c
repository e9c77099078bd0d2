/* SPDX-License-Identifier: MIT */
/*
 * Mutexes of every kind and their conditions: threads that lock, try, wait, give up and are cancelled as they come.
 *
 * What the mutex guards is counted by plain variables, so that the thread sanitizer sees a hole in it. A signal says
 * how many it notified: as many waits return 0. In the lifetime tests the last one out destroys mutex and condition
 * and overwrites their memory, which is looked at when everybody has returned. Seen to fail: with an unlock that does
 * not see the queue, with a move that forgets whose deadline has passed, with take_out that does not look at FIRED,
 * and with an unlock that reads the word after its exchange.
 */
#include "stress.h"

#include <string.h>

#define LIMITED 1u
#define KINDS 6

static const unsigned kind_flags[KINDS] = { 0, VEZ_FAIR, VEZ_RECURSIVE, VEZ_FAIR | VEZ_RECURSIVE, VEZ_ERRORCHECK,
					    VEZ_FAIR | VEZ_ERRORCHECK };

static struct {
	vez_mutex_t mutex;
	vez_cond_t cond[2];
	char end; /* of what is overwritten */
	vez_cancel_t token;
	unsigned flags;
	unsigned long rounds;
	unsigned long count, waited, inside; /* guarded by the mutex */
	atomic_ulong locks, notified;
	atomic_uint going, out;
} s;

static void make(unsigned round)
{
	s.flags = kind_flags[round % KINDS];
	EXPECT(vez_mutex_init(&s.mutex, s.flags) == 0, "init");
	for (int i = 0; i < 2; i++)
		EXPECT(vez_cond_init(&s.cond[i]) == 0, "init");
	vez_cancel_init(&s.token);
	s.count = s.waited = 0;
	atomic_store(&s.locks, 0);
	atomic_store(&s.notified, 0);
	atomic_store(&s.out, 0);
}

static void unmake(void)
{
	EXPECT(vez_mutex_waiters(&s.mutex) == 0, "%zu queued", vez_mutex_waiters(&s.mutex));
	EXPECT(vez_mutex_unlock(&s.mutex) == EPERM, "locked");
	for (int i = 0; i < 2; i++)
		EXPECT(vez_cond_destroy(&s.cond[i]) == 0, "destroy of the condition");
	EXPECT(vez_mutex_destroy(&s.mutex) == 0, "destroy of the mutex");
}

/* ---- the mutex ---- */

/* One of the ways to lock; true if it is held. */
static bool take(void)
{
	vez_deadline_t soon = vez_after_ns((int64_t)rnd(8000));
	int rc;
	switch (rnd(8)) {
	case 0:
		rc = vez_mutex_trylock(&s.mutex);
		EXPECT(rc == 0 || rc == EBUSY, "try: %d", rc);
		return rc == 0;
	case 1:
		rc = vez_mutex_lock_until(&s.mutex, soon, NULL);
		EXPECT(rc == 0 || (rc == ETIMEDOUT && now_ns() >= soon), "until: %d", rc);
		return rc == 0;
	case 2:
		rc = vez_mutex_lock_until(&s.mutex, VEZ_FOREVER, &s.token);
		EXPECT(rc == 0 || rc == ECANCELED, "token: %d", rc);
		return rc == 0;
	case 3:
		rc = vez_mutex_lock_until(&s.mutex, soon, &s.token);
		EXPECT(rc == 0 || rc == ECANCELED || (rc == ETIMEDOUT && now_ns() >= soon), "both: %d", rc);
		return rc == 0;
	default:
		rc = vez_mutex_lock(&s.mutex);
		EXPECT(rc == 0, "lock: %d", rc);
		return true;
	}
}

static void again_if_recursive(void)
{
	if (!(s.flags & VEZ_RECURSIVE))
		return;
	EXPECT(vez_mutex_lock(&s.mutex) == 0 && vez_mutex_holds(&s.mutex) == 2, "relock");
	EXPECT(vez_mutex_unlock(&s.mutex) == 0 && vez_mutex_holds(&s.mutex) == 1, "unlock of two");
}

static void hammer(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100; i++) {
		if (!take())
			continue;
		s.count++;
		again_if_recursive();
		if (rnd(4) == 0)
			dawdle();
		EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
		atomic_fetch_add(&s.locks, 1);
		if (rnd(4) == 0)
			dawdle();
	}
	atomic_fetch_sub(&s.going, 1);
}

/* Fires the token, and arms it anew. */
static void fire_until_done(void *arg)
{
	(void)arg;
	while (atomic_load(&s.going) > 0) {
		dawdle();
		vez_cancel_fire(&s.token);
		dawdle();
		vez_cancel_clear(&s.token);
	}
}

static void mutex_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "locks", hammer, NULL);
	crew_add(&crew, "fires", fire_until_done, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		make((unsigned)i);
		atomic_store(&s.going, t->n);
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(s.count == atomic_load(&s.locks), "%lu inside, %lu locks", s.count, atomic_load(&s.locks));
		unmake();
	}
	crew_dismiss(&crew);
}

/* ---- conditions ---- */

/* A wait with these limits; counts it if it was notified. */
static void wait_once(vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc;
	EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
	unsigned holds = vez_mutex_holds(&s.mutex);
	if (deadline == VEZ_FOREVER && !cancel)
		rc = vez_cond_wait(&s.cond[0], &s.mutex);
	else
		rc = vez_cond_wait_key(&s.cond[0], &s.mutex, (int64_t)rnd(3), deadline, cancel);
	EXPECT(rc == 0 || (cancel && rc == ECANCELED) || (rc == ETIMEDOUT && now_ns() >= deadline), "wait: %d", rc);
	EXPECT(vez_mutex_holds(&s.mutex) == holds, "%u holds", vez_mutex_holds(&s.mutex));
	s.waited += rc == 0;
	s.count++;
	EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
}

static void wait_often(void *arg)
{
	const struct test *t = arg;
	for (int i = 0; i < 30; i++) {
		vez_deadline_t soon = rnd(2) ? vez_after_ns((int64_t)rnd(20000)) : VEZ_FOREVER;
		wait_once(t->flags & LIMITED ? soon : VEZ_FOREVER, t->flags & LIMITED && rnd(2) ? &s.token : NULL);
	}
	atomic_fetch_sub(&s.going, 1);
}

static void notify_until_done(void *arg)
{
	(void)arg;
	while (atomic_load(&s.going) > 0) {
		bool inside = rnd(2);
		if (inside)
			EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
		atomic_fetch_add(&s.notified, rnd(3) ? vez_cond_signal(&s.cond[0]) : vez_cond_broadcast(&s.cond[0]));
		if (inside) {
			s.inside++;
			EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
		}
		dawdle();
	}
}

static void cond_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "waits", wait_often, (void *)(uintptr_t)t);
	crew_add(&crew, "notifies", notify_until_done, NULL);
	crew_add(&crew, "notifies", notify_until_done, NULL);
	if (t->flags & LIMITED)
		crew_add(&crew, "fires", fire_until_done, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		make((unsigned)i);
		atomic_store(&s.going, t->n);
		crew_begin(&crew);
		crew_end(&crew);
		unsigned long notified = atomic_load(&s.notified);
		EXPECT(s.waited == notified, "%lu notified, %lu returned 0", notified, s.waited);
		EXPECT(s.count == 30 * t->n, "%lu waits", s.count);
		unmake();
	}
	crew_dismiss(&crew);
}

/* ---- guards ---- */

static bool is_there(void *arg)
{
	(void)arg;
	return s.inside > 0;
}

/* Waits for it, in one of the three ways. */
static int take_it(vez_deadline_t deadline, vez_cancel_t *cancel)
{
	unsigned way = rnd(3);
	if (way == 0)
		return vez_mutex_lock_when(&s.mutex, is_there, NULL, deadline, cancel);
	EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
	int rc = way == 1 ? vez_mutex_await(&s.mutex, is_there, NULL, deadline, cancel) :
			    vez_cond_wait_when(&s.cond[0], &s.mutex, is_there, NULL, deadline, cancel);
	EXPECT((rc == 0) == is_there(NULL), "%d, and %lu are there", rc, s.inside);
	if (rc != 0)
		EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
	return rc;
}

/* One thing goes round: who has it puts it back. */
static void pass_it_on(void *arg)
{
	const struct test *t = arg;
	for (int i = 0; i < 60; i++) {
		bool limited = (t->flags & LIMITED) && rnd(2);
		vez_deadline_t soon = limited ? vez_after_ns((int64_t)rnd(20000)) : VEZ_FOREVER;
		vez_cancel_t *cancel = (t->flags & LIMITED) && rnd(2) ? &s.token : NULL;
		int rc = take_it(soon, cancel);
		EXPECT(rc == 0 || (cancel && rc == ECANCELED) || (rc == ETIMEDOUT && now_ns() >= soon), "take: %d", rc);
		if (rc != 0)
			continue;
		EXPECT(s.inside-- == 1, "none, or two");
		EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
		dawdle();
		bool outside = rnd(2);
		EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
		s.inside++;
		if (!outside)
			vez_cond_signal(&s.cond[0]);
		EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
		if (outside)
			vez_cond_signal(&s.cond[0]);
	}
	atomic_fetch_sub(&s.going, 1);
}

/* Others who want the mutex alone. */
static void hammer_until_done(void *arg)
{
	(void)arg;
	while (atomic_load(&s.going) > 0) {
		if (!take())
			continue;
		s.count++;
		EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
		dawdle();
	}
}

static void guard_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "passes", pass_it_on, (void *)(uintptr_t)t);
	crew_add(&crew, "locks", hammer_until_done, NULL);
	if (t->flags & LIMITED)
		crew_add(&crew, "fires", fire_until_done, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		make((unsigned)i);
		s.inside = 1;
		atomic_store(&s.going, t->n);
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(s.inside == 1, "%lu are there", s.inside);
		unmake();
	}
	crew_dismiss(&crew);
}

/* ---- lifetimes ---- */

/* Who is the last out takes all of it away. */
static void leave(unsigned members)
{
	if (atomic_fetch_add(&s.out, 1) + 1 < members)
		return;
	unmake();
	memset(&s, FILL, offsetof(__typeof__(s), end));
}

static void lock_and_leave(void *arg)
{
	const struct test *t = arg;
	if (t->flags & LIMITED) {
		if (vez_mutex_lock_until(&s.mutex, vez_after_ns((int64_t)rnd(5000)), &s.token) == 0)
			EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
	} else {
		EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
		EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
	}
	leave(t->n);
}

/* All but one wait until the last has come, which notifies them with the mutex held. */
static void meet_and_leave(void *arg)
{
	const struct test *t = arg;
	EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
	if (++s.count == t->n)
		vez_cond_broadcast(&s.cond[0]);
	else if (t->flags & LIMITED)
		vez_cond_wait_until(&s.cond[0], &s.mutex, vez_after_ns((int64_t)rnd(20000)), &s.token);
	else
		EXPECT(vez_cond_wait(&s.cond[0], &s.mutex) == 0, "wait");
	EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
	leave(t->n);
}

static bool all_are_here(void *arg)
{
	const struct test *t = arg;
	return s.count == t->n;
}

/* The same with guards: the last one only unlocks. */
static void gather_and_leave(void *arg)
{
	const struct test *t = arg;
	EXPECT(vez_mutex_lock(&s.mutex) == 0, "lock");
	s.count++;
	if (t->flags & LIMITED)
		vez_mutex_await(&s.mutex, all_are_here, arg, vez_after_ns((int64_t)rnd(20000)), &s.token);
	else
		EXPECT(vez_mutex_await(&s.mutex, all_are_here, arg, VEZ_FOREVER, NULL) == 0, "await");
	EXPECT(vez_mutex_unlock(&s.mutex) == 0, "unlock");
	leave(t->n);
}

static void fire_once(void *arg)
{
	(void)arg;
	dawdle();
	vez_cancel_fire(&s.token);
}

static void lifetime_test(const struct test *t, void (*member)(void *))
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "uses", member, (void *)(uintptr_t)t);
	if (t->flags & LIMITED)
		crew_add(&crew, "fires", fire_once, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		make((unsigned)i);
		crew_begin(&crew);
		crew_end(&crew);
		for (size_t k = 0; k < offsetof(__typeof__(s), end); k++)
			EXPECT(((unsigned char *)&s)[k] == FILL, "byte %zu was written after the end", k);
	}
	crew_dismiss(&crew);
}

static void mutex_lifetime_test(const struct test *t)
{
	lifetime_test(t, lock_and_leave);
}

static void cond_lifetime_test(const struct test *t)
{
	lifetime_test(t, meet_and_leave);
}

static void guard_lifetime_test(const struct test *t)
{
	lifetime_test(t, gather_and_leave);
}

const struct test mutex_tests[] = {
	{ "mutex-2", mutex_test, NULL, 2, 0, 100 },
	{ "mutex-4", mutex_test, NULL, 4, 0, 100 },
	{ "cond-1", cond_test, NULL, 1, 0, 100 },
	{ "cond-3", cond_test, NULL, 3, 0, 100 },
	{ "cond-limited-1", cond_test, NULL, 1, LIMITED, 100 },
	{ "cond-limited-4", cond_test, NULL, 4, LIMITED, 100 },
	{ "guard-2", guard_test, NULL, 2, 0, 100 },
	{ "guard-4", guard_test, NULL, 4, 0, 100 },
	{ "guard-limited-4", guard_test, NULL, 4, LIMITED, 100 },
	{ "guard-destroy-2", guard_lifetime_test, NULL, 2, 0, 2 },
	{ "guard-destroy-3", guard_lifetime_test, NULL, 3, 0, 2 },
	{ "guard-destroy-limited-3", guard_lifetime_test, NULL, 3, LIMITED, 2 },
	{ "mutex-destroy-2", mutex_lifetime_test, NULL, 2, 0, 2 },
	{ "mutex-destroy-3", mutex_lifetime_test, NULL, 3, 0, 2 },
	{ "mutex-destroy-limited-3", mutex_lifetime_test, NULL, 3, LIMITED, 2 },
	{ "cond-destroy-2", cond_lifetime_test, NULL, 2, 0, 2 },
	{ "cond-destroy-3", cond_lifetime_test, NULL, 3, 0, 2 },
	{ "cond-destroy-limited-3", cond_lifetime_test, NULL, 3, LIMITED, 2 },
	{ 0 },
};
