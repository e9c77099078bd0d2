/* SPDX-License-Identifier: MIT */
/*
 * Once: threads that come at the same time with functions that fail now and then.
 *
 * What the functions do is done with plain variables, so that the thread sanitizer sees two that run at the same time,
 * or a return that is not ordered after the function. In the lifetime tests the first who returns takes the object
 * away, while the thread that ran the function is still on its way out.
 */
#include "stress.h"

#include <string.h>

#define FAILS 1u /* the first function fails, and the longest waiter's is run */
#define QUEUED 2u /* the first function ends when all the others wait for it */
#define FAILURE 4711

static struct {
	vez_once_t once;
	unsigned long runs, failures; /* in the functions */
	unsigned long made;           /* by the one that succeeded */
	unsigned long round;
	atomic_ulong failed, all_failed;
} s;

static int try_to_make(void *arg)
{
	unsigned odds = *(unsigned *)arg;
	unsigned long run = ++s.runs;
	EXPECT(s.made != s.round, "run again");
	EXPECT(vez_once(&s.once, try_to_make, arg) == EDEADLK, "entered from inside");
	if (rnd(2))
		idle(3000);
	EXPECT(s.runs == run, "two run at the same time");
	if (rnd(odds) != 0) {
		s.failures++;
		return FAILURE;
	}
	s.made = s.round;
	return 0;
}

static void make_once(void *arg)
{
	int rc;
	(void)arg;
	unsigned odds = 1 + (unsigned)rnd(4);
	if (rnd(2))
		idle(4000);
	while ((rc = vez_once(&s.once, try_to_make, &odds)) != 0) {
		EXPECT(rc == FAILURE, "result %d", rc);
		atomic_fetch_add(&s.failed, 1);
	}
	EXPECT(s.made == s.round, "done, though no function has succeeded");
}

/* Seen to fail: with a caller that does not look whether another runs, and (it hangs) with a failure
 * that gives the turn to nobody and with a success that lets one go. */
static void load_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "comes", make_once, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		memset(&s.once, 0, sizeof s.once);
		s.round++;
		s.runs = s.failures = 0;
		atomic_store(&s.failed, 0);
		crew_begin(&crew);
		crew_end(&crew);
		EXPECT(s.failures == atomic_load(&s.failed), "%lu failed, %lu were told", s.failures,
		       atomic_load(&s.failed));
		EXPECT(s.runs == s.failures + 1, "%lu runs, %lu failed", s.runs, s.failures);
		atomic_fetch_add(&s.all_failed, s.failures);
	}
	crew_dismiss(&crew);
	remark("%lu failures", atomic_load(&s.all_failed));
}

/* ---- lifetime ---- */

static struct {
	vez_once_t *once;
	atomic_bool runs;
} first;

static size_t life_waiters(const void *obj)
{
	return __atomic_load_n(&((const vez_once_t *)obj)->core_.length_, __ATOMIC_RELAXED);
}

static int run_first(void *arg)
{
	const struct test *t = arg;
	atomic_store(&first.runs, true);
	if (t->flags & (QUEUED | LATE))
		WAIT_UNTIL(life_waiters(first.once) == t->n - !!(t->flags & LATE));
	life_late_comes();
	dawdle();
	return t->flags & FAILS ? FAILURE : 0;
}

static int run_after(void *arg)
{
	return *(int *)arg;
}

static void life_make(void *obj, const struct test *t)
{
	(void)t;
	memset(obj, 0, sizeof(vez_once_t));
	first.once = obj;
	atomic_store(&first.runs, false);
}

/* Comes when the first function runs. All return 0, for the one that is run after a failure succeeds. */
static bool life_wait(void *obj, const struct test *t)
{
	int rc = t->flags & FAILS ? 0 : FAILURE;
	WAIT_UNTIL(atomic_load(&first.runs));
	rc = vez_once(obj, run_after, &rc);
	EXPECT(rc == 0, "result %d", rc);
	return true;
}

static void life_let_go(void *obj, const struct test *t)
{
	int rc = vez_once(obj, run_first, (void *)(uintptr_t)t);
	EXPECT(rc == (t->flags & FAILS ? FAILURE : 0), "result %d", rc);
}

/* Bit 3: done. */
static bool life_is_open(const void *obj)
{
	return __atomic_load_n(&((const vez_once_t *)obj)->core_.word_, __ATOMIC_RELAXED) & 8;
}

/* Seen to fail: with vez__leave_pending touching the monitor when it has left, with a failure that gives the turn to
 * all, and, late, with a fast path that does not look whether somebody is inside. */
static void unmap_test(const struct test *t)
{
	static const struct life life = { sizeof(vez_once_t), life_make, life_wait, life_waiters, life_let_go, NULL,
					  life_is_open };
	life_run(t, &life);
}

const struct test once_tests[] = {
	{ "once-2", load_test, NULL, 2, 0, 2 },
	{ "once-5", load_test, NULL, 5, 0, 5 },
	{ "once-unmap-racing", unmap_test, NULL, 1, RACES, 2 },
	{ "once-unmap-late", unmap_test, NULL, 7, RACES | LATE, 2 },
	{ "once-unmap-3", unmap_test, NULL, 3, RACES | QUEUED, 2 },
	{ "once-unmap-failed-racing", unmap_test, NULL, 1, RACES | FAILS, 2 },
	{ "once-unmap-failed-3", unmap_test, NULL, 3, RACES | QUEUED | FAILS, 2 },
	{ 0 },
};
