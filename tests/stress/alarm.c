/* SPDX-License-Identifier: MIT */
/* The alarm clock: deadlines that are set, reached and taken back at the same time. None is missed or comes early. */
#include "stress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3

static struct {
	vez_sem_t sem;
	atomic_ulong queued, ended, timed_out, taken_back;
	atomic_llong latest;
	uint64_t within;
} s;

static void note_lateness(int64_t deadline)
{
	int64_t late = now_ns() - deadline;
	long long seen = atomic_load(&s.latest);
	EXPECT(late >= 0, "%lld ns early", (long long)-late);
	while (late > seen && !atomic_compare_exchange_weak(&s.latest, &seen, late))
		;
}

static void begin(void)
{
	memset(&s, 0, sizeof s);
	vez_sem_init(&s.sem, 0, 0, 0);
}

static void finish(void)
{
	EXPECT(vez_sem_waiters(&s.sem) == 0 && vez_sem_destroy(&s.sem) == 0, "still queued");
	remark("at most %lld us late", atomic_load(&s.latest) / 1000);
}

/* ---- one deadline of each of some threads, while the clock goes to sleep ---- */

static void one_deadline(void *arg)
{
	vez_request_t r;
	(void)arg;
	meet(4000);
	vez_deadline_t at = vez_after_ns((int64_t)rnd(s.within));
	vez_request_init(&r, NULL, NULL);
	vez_request_set_limits(&r, at, NULL);
	int rc = vez_sem_acquire_async(&s.sem, 1, &r);
	if (rc == EINPROGRESS) {
		EXPECT(vez_request_wait(&r, VEZ_FOREVER, NULL) == 0, "wait");
		rc = vez_request_result(&r);
	}
	EXPECT(rc == ETIMEDOUT, "result %d", rc);
	note_lateness(at);
}

/* Nothing else wakes the clock, so a deadline that it does not see is never reached. Seen to fail: with a round that
 * raises next after it has taken the stack, and with a vez__alarm_at that rings only for the first (one of these tests
 * hangs), and with an agenda that takes what is due 20 us ahead for due (early). */
static void ring_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	begin();
	s.within = t->flags;
	for (unsigned i = 0; i < t->n; i++)
		crew_add(&crew, "waiter", one_deadline, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		crew_begin(&crew);
		crew_end(&crew);
	}
	crew_dismiss(&crew);
	finish();
}

/* ---- many, near and far ---- */

#define BATCH 40

struct timed {
	vez_request_t r;
	vez_deadline_t at;
};

static void timed_done(vez_request_t *r, int result, void *arg)
{
	struct timed *timed = arg;
	EXPECT(r == &timed->r, "another request");
	EXPECT(result == 0 || result == ETIMEDOUT || result == ECANCELED, "result %d", result);
	if (result == ETIMEDOUT) {
		note_lateness(timed->at);
		atomic_fetch_add(&s.timed_out, 1);
	}
	free(timed);
	atomic_fetch_add(&s.ended, 1);
}

/* From the past to in an hour. */
static vez_deadline_t some_moment(void)
{
	static const int64_t most[] = { 1000, 20000, 300000, INT64_C(3600000000000) };
	return rnd(16) == 0 ? vez_after_ns(-(int64_t)rnd(1000)) : vez_after_ns((int64_t)rnd((uint64_t)most[rnd(4)]));
}

static void ask_until(vez_deadline_t at)
{
	struct timed *timed = malloc(sizeof *timed);
	timed->at = at;
	vez_request_init(&timed->r, timed_done, timed);
	vez_request_set_limits(&timed->r, at, NULL);
	atomic_fetch_add(&s.queued, 1);
	int rc = vez_sem_acquire_async(&s.sem, 1, &timed->r);
	if (rc == EINPROGRESS)
		return;
	EXPECT(rc == ETIMEDOUT || rc == 0, "result %d", rc);
	atomic_fetch_sub(&s.queued, 1);
	if (rc == 0)
		vez_sem_release(&s.sem, 1);
	free(timed);
}

static void many_deadlines(void *arg)
{
	(void)arg;
	for (int i = 0; i < BATCH; i++)
		ask_until(some_moment());
	if (rnd(2))
		vez_sem_release(&s.sem, (uint32_t)rnd(BATCH)); /* for whoever is first; the others' timers stay */
}

/* Those that remain are let go. Every request is freed by its function. Seen to crash: with a completion that leaves
 * the timer in the agenda. */
static void many_test(const struct test *t)
{
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	begin();
	for (unsigned i = 0; i < THREADS; i++)
		crew_add(&crew, "setter", many_deadlines, NULL);
	for (unsigned long i = 0; i < rounds; i++) {
		crew_begin(&crew);
		crew_end(&crew);
		if (i % 8 == 7) {
			idle(400000);
			vez_sem_drain(&s.sem);
			while (vez_sem_waiters(&s.sem) > 0)
				vez_sem_release(&s.sem, 1);
			WAIT_UNTIL(atomic_load(&s.ended) == atomic_load(&s.queued));
			vez_sem_drain(&s.sem);
		}
	}
	crew_dismiss(&crew);
	vez_sem_drain(&s.sem);
	unsigned long queued = atomic_load(&s.queued), timed_out = atomic_load(&s.timed_out);
	/* In few rounds no deadline may have been reached. Nobody releases any more. */
	for (int64_t us = 200; atomic_load(&s.queued) == queued; us *= 2)
		ask_until(vez_after_us(us));
	WAIT_UNTIL(atomic_load(&s.timed_out) > timed_out);
	while (vez_sem_waiters(&s.sem) > 0)
		vez_sem_release(&s.sem, 1);
	WAIT_UNTIL(atomic_load(&s.ended) == atomic_load(&s.queued));
	finish();
}

/* ---- tokens that fire by themselves ---- */

struct timed_token {
	vez_cancel_t token;
	vez_deadline_t at;
};

/* Set, set anew; waited for, taken back, or destroyed while it is due. */
static void fire_at(void *arg)
{
	struct timed_token *mine = arg;
	enum { WAITS, TAKES_BACK, GOES } then = (int)rnd(3);
	vez_cancel_init(&mine->token);
	meet(4000);
	if (rnd(2))
		vez_cancel_fire_at(&mine->token, vez_after_ms(3600000));
	vez_deadline_t at = vez_after_ns((int64_t)rnd(30000));
	vez_cancel_fire_at(&mine->token, at);
	if (then != WAITS)
		dawdle();
	if (then == TAKES_BACK) {
		vez_cancel_fire_at(&mine->token, VEZ_FOREVER);
		atomic_fetch_add(&s.taken_back, !vez_cancel_fired(&mine->token));
	} else if (then == WAITS) {
		int rc = vez_sem_acquire_until(&s.sem, 1, VEZ_FOREVER, &mine->token);
		EXPECT(rc == ECANCELED, "result %d", rc);
	}
	if (vez_cancel_fired(&mine->token))
		note_lateness(at);
	EXPECT(vez_cancel_destroy(&mine->token) == 0, "the token is still in use");
	memset(&mine->token, FILL, sizeof mine->token);
}

/* Seen to fail: with a vez_cancel_destroy that leaves the token on the clock (it is written later), and with a
 * vez_cancel_fire_at that does not lower the clock's moment (it hangs). */
static void token_test(const struct test *t)
{
	static struct timed_token tokens[THREADS];
	struct crew crew = { 0 };
	unsigned long rounds = rounds_of(t);
	begin();
	for (unsigned i = 0; i < THREADS; i++)
		crew_add(&crew, "token", fire_at, &tokens[i]);
	for (unsigned long i = 0; i < rounds; i++) {
		crew_begin(&crew);
		crew_end(&crew);
		for (unsigned k = 0; k < THREADS; k++) {
			const unsigned char *bytes = (const unsigned char *)&tokens[k].token;
			for (size_t b = 0; b < sizeof tokens[k].token; b++)
				EXPECT(bytes[b] == FILL, "byte %zu of a destroyed token was written", b);
		}
	}
	crew_dismiss(&crew);
	EXPECT(atomic_load(&s.taken_back) > 0 || rounds < 100, "none was taken back");
	finish();
}

const struct test alarm_tests[] = {
	{ "alarm-one", ring_test, NULL, 1, 20000, 10 },
	{ "alarm-three", ring_test, NULL, THREADS, 20000, 10 },
	{ "alarm-three-apart", ring_test, NULL, THREADS, 200000, 20 },
	{ "alarm-many", many_test, NULL, 0, 0, 20 },
	{ "alarm-tokens", token_test, NULL, 0, 0, 10 },
	{ 0 },
};
