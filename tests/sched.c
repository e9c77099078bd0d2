/* SPDX-License-Identifier: MIT */
/*
 * The scheduler.
 *
 * Each test carries the id of the behaviour it checks, runs in every form that applies and under every fault of
 * tests/lib/inject.h. "Seen to fail" names a change of the library with which it did.
 */
#include <errno.h>
#include <string.h>
#include <vez.h>

#include "futex/self.h"
#include "engine/filing.h"
#include "thread.h"
#include "variant.h"
#include "waits.h"

TestSuite(sched, .timeout = 120);

#define UNTOUCHED 12345
#define MS INT64_C(1000000)
#define GAP 1000

/* ---- jobs: the smaller one comes first, and those of one tens digit are equal ---- */

static bool before(const void *a, const void *b)
{
	return *(const int *)a / 10 < *(const int *)b / 10;
}

static vez_sched_t make(bool (*order)(const void *, const void *))
{
	vez_sched_t s;
	memset(&s, 0xa5, sizeof s);
	EXPECT_EQ(vez_sched_init(&s, order, 0), 0);
	return s;
}

/* ---- an enter in a thread of its own, which leaves when it is told ---- */

struct job {
	struct thread thread;
	vez_sched_t *sched;
	int what;
	enum form form;
	vez_deadline_t deadline;
	vez_cancel_t own;
	vez_cancel_t *self; /* its thread's own token */
	bool stays; /* until the gate is opened */
	struct gate gate;
	int rc;
	int left;
	int errno_after;
	unsigned waits;
};

#define JOB(sched_, what_, form_) { .sched = (sched_), .what = (what_), .form = (form_), .stays = true }

static int enter_as(struct job *j)
{
	vez_deadline_t far = j->deadline ? j->deadline : vez_after_ms(INT64_C(3600000));
	vez_deadline_t deadline = form_has_deadline(j->form) ? far : VEZ_FOREVER;
	if (j->form == UNTIMED)
		return vez_sched_enter(j->sched, &j->what);
	return vez_sched_enter_until(j->sched, &j->what, deadline, form_has_token(j->form) ? &j->own : NULL);
}

static void run(void *arg)
{
	struct job *j = arg;
	j->self = vez_cancel_self();
	errno = UNTOUCHED;
	j->rc = enter_as(j);
	j->errno_after = errno;
	j->waits = inject_own_waits();
	if (j->rc == 0 && j->stays)
		gate_pass(&j->gate);
	j->left = j->rc == 0 ? vez_sched_leave(j->sched) : 0;
}

static void job_run(struct job *j)
{
	gate_init(&j->gate);
	thread_start(&j->thread, run, j);
}

static void job_start(struct job *j)
{
	size_t waiting = vez_sched_waiters(j->sched);
	job_run(j);
	UNTIL(vez_sched_waiters(j->sched) == waiting + 1)
		;
}

static void job_start_as(struct job *j, vez_sched_t *s, int what, enum form form)
{
	*j = (struct job)JOB(s, what, form);
	job_start(j);
}

static uintptr_t job_await_parked(struct job *j)
{
	uintptr_t word = 0;
	UNTIL(word != 0 && word - (uintptr_t)j->sched >= sizeof *j->sched)
		word = thread_futex(&j->thread);
	return word;
}

static bool job_blocked(struct job *j)
{
	job_await_parked(j);
	return !thread_done(&j->thread) && LOAD(&j->gate.arrived) == 0 && vez_sched_waiters(j->sched) > 0;
}

/* Waits until it is inside. */
static void job_await_inside(struct job *j)
{
	gate_await(&j->gate, 1);
	EXPECT_EQ(j->rc, 0);
}

static int job_join(struct job *j)
{
	gate_open(&j->gate);
	thread_join(&j->thread);
	EXPECT_EQ(j->errno_after, UNTOUCHED);
	EXPECT_EQ(j->left, 0);
	return j->rc;
}

/* Nobody is inside and nobody waits. */
static void expect_over(vez_sched_t *s)
{
	EXPECT_EQ(vez_sched_waiters(s), 0);
	EXPECT_EQ(vez_sched_leave(s), EPERM);
	EXPECT_EQ(vez_sched_destroy(s), 0);
}

#define EACH_FORM(v, which) \
	EACH_VARIANT(v, FIFO_ONLY | (which)) \
		if (v->form != KEYED)

/* ---- what is the same for every wait: for one inside, and for a gap without end ---- */

static const int any_job = 5;

/* By a thread that the test does not have. */
static void make_held(void *object)
{
	vez_sched_t *s = object;
	EXPECT_EQ(vez_sched_init(s, before, 0), 0);
	EXPECT_EQ(vez_sched_enter(s, &any_job), 0);
	STORE(&s->owner_, UINT64_MAX);
}

/* Any thread of the test may have to let go: it makes itself the owner. */
static int leave_for_another(void *object)
{
	vez_sched_t *s = object;
	STORE(&s->owner_, vez__self());
	return vez_sched_leave(s);
}

static void make_in_gap(void *s)
{
	EXPECT_EQ(vez_sched_init(s, before, 0), 0);
	EXPECT_EQ(vez_sched_min_gap(s, INT64_MAX), 0);
	EXPECT_EQ(vez_sched_enter(s, &any_job), 0);
	EXPECT_EQ(vez_sched_leave(s), 0);
}

static int end_gap(void *s)
{
	return vez_sched_min_gap(s, 0);
}

static int pass(void *s, uint32_t *index)
{
	(void)index;
	int rc = vez_sched_enter(s, &any_job);
	return rc ? rc : vez_sched_leave(s);
}

static int pass_until(void *s, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	(void)index;
	int rc = vez_sched_enter_until(s, &any_job, deadline, cancel);
	return rc ? rc : vez_sched_leave(s);
}

static size_t waiters(const void *s)
{
	return vez_sched_waiters(s);
}

static int destroy(void *s)
{
	if (vez_sched_waiters(s) == 0)
		leave_for_another(s);
	return vez_sched_destroy(s);
}

static const struct waitable ways[] = {
	{ sizeof(vez_sched_t), make_held, leave_for_another, pass, pass_until, waiters, destroy, NULL },
	{ sizeof(vez_sched_t), make_in_gap, end_gap, pass, pass_until, waiters, destroy, NULL },
};

#define EACH_WAY(way) for (const struct waitable *way = ways; way < ways + 2; way++)

/* Seen to fail: a leave that never enters the monitor; min_gap that does not serve. */
Test(sched, ALL_let_go)
{
	EACH_WAY(way)
		check_let_go(way);
}

/* Seen to fail: fire that marks the word and does not wake. */
Test(sched, ALL_fire_ends_a_wait)
{
	EACH_WAY(way)
		check_fire_ends_a_wait(way);
}

/* Seen to fail: enter_until that does not ask the token. */
Test(sched, ALL_fired_on_entry)
{
	EACH_WAY(way)
		check_fired_on_entry(way);
}

/* Seen to fail: enter_slow that waits whatever the deadline. */
Test(sched, ALL_01_H02_past_deadlines)
{
	EACH_WAY(way)
		check_past_deadlines(way);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(sched, ALL_02_H03_far_deadlines)
{
	EACH_WAY(way)
		check_far_deadlines(way);
}

/* Seen to fail: as ALL_02; a deadline that is taken for a distance; vez__roll_back that leaves WAITING set. */
Test(sched, ALL_timed_out)
{
	EACH_WAY(way)
		check_timed_out(way);
}

/* Seen to fail: vez__futex_wait that believes the kernel. */
Test(sched, ALL_the_clock_is_asked)
{
	EACH_WAY(way)
		check_clock_is_asked(way);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(sched, A10_let_go_then_cancelled)
{
	EACH_WAY(way)
		check_let_go_then_cancelled(way);
}

/* Seen to fail: a fire that leaves the request to its thread. */
Test(sched, A10_cancelled_then_let_go)
{
	EACH_WAY(way)
		check_cancelled_then_let_go(way);
}

/* Seen to fail: await that asks the clock and not its request. */
Test(sched, C04_let_go_after_the_deadline)
{
	EACH_WAY(way)
		check_let_go_after_the_deadline(way);
}

/* Seen to fail: a wait that returns for EINTR. */
Test(sched, A15_signals)
{
	EACH_WAY(way)
		check_signals(way);
}

/* Seen to fail: destroy that looks at TAKEN only. */
Test(sched, B11_destroy_with_waiters_is_refused)
{
	EACH_WAY(way)
		check_destroy_is_refused(way);
}

/* Seen to fail: vez__leave_pending that reads word_ after it has left. */
Test(sched, A06_gone_before_the_wake)
{
	EACH_WAY(way)
		check_gone_before_the_wake(way);
}

/* Seen to fail: a leave that reads the word once more after its exchange. */
Test(sched, A06_destroyed_by_who_was_let_go)
{
	EACH_WAY(way)
		check_destroyed_by_who_was_let_go(way, 2000);
}

/* Seen to fail: init that leaves the room as it was. */
Test(sched, ALL_10_fork)
{
	EACH_WAY(way)
		check_fork(way);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(sched, K01_no_cost_on_one_cpu)
{
	EACH_WAY(way)
		check_no_cost_on_one_cpu(way);
}

/* ---- alone ---- */

/* Seen to fail: init that takes any flag; min_gap that takes any number. */
Test(sched, ALL_bad_arguments_are_refused)
{
	vez_sched_t s = make(NULL);
	EXPECT_EQ(vez_sched_init(&s, NULL, 1), EINVAL);
	EXPECT_EQ(vez_sched_init(&s, before, ~0u), EINVAL);
	EXPECT_EQ(vez_sched_min_gap(&s, -1), EINVAL);
	EXPECT_EQ(vez_sched_min_gap(&s, INT64_MIN), EINVAL);
	expect_over(&s);
}

/* Seen to fail: a LEFT that is set to begin with. */
Test(sched, ALL_zero_bytes_are_a_scheduler)
{
	vez_sched_t zero, s = VEZ_SCHED_INITIALIZER;
	memset(&zero, 0, sizeof zero);
	EXPECT_EQ(vez_sched_try_enter(&zero, NULL), 0);
	EXPECT_EQ(vez_sched_leave(&zero), 0);
	expect_over(&zero);
	EXPECT_EQ(vez_sched_min_gap(&s, INT64_MAX), 0);
	EXPECT_EQ(vez_sched_enter(&s, NULL), 0);
	EXPECT_EQ(vez_sched_destroy(&s), EBUSY);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	expect_over(&s);
}

/* Seen to fail: is_inside that is never true; leave that asks TAKEN only; an owner_ that stays after the leave. */
Test(sched, LCK_17_LCK_19_owned_by_the_one_inside)
{
	EACH_FORM(v, ALL) {
		vez_cancel_t fired = VEZ_CANCEL_INITIALIZER;
		vez_sched_t s = make(NULL);
		struct job other = JOB(&s, 1, v->form), own = other;
		EXPECT_EQ(vez_sched_leave(&s), EPERM);
		job_run(&other);
		job_await_inside(&other);
		EXPECT_EQ(vez_sched_leave(&s), EPERM);
		EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
		EXPECT_EQ(vez_sched_enter_until(&s, NULL, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(job_join(&other), 0);
		EXPECT_EQ(enter_as(&own), 0);
		EXPECT_EQ(enter_as(&own), EDEADLK);
		EXPECT_EQ(vez_sched_enter_until(&s, NULL, VEZ_NOW, NULL), EDEADLK);
		EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
		vez_cancel_fire(&fired);
		EXPECT_EQ(vez_sched_enter_until(&s, NULL, VEZ_FOREVER, &fired), ECANCELED);
		EXPECT_EQ(vez_sched_leave(&s), 0);
		expect_over(&s);
	}
}

/* ---- order ---- */

/* All wait; then each enters when the one before has left. */
static void expect_order(bool (*order)(const void *, const void *), const int *jobs, const int *entered, int n,
			 enum form form)
{
	vez_sched_t s = make(order);
	struct job j[8];
	EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
	for (int i = 0; i < n; i++)
		job_start_as(&j[i], &s, jobs[i], form);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	for (int i = 0; i < n; i++) {
		int next = 0;
		while (jobs[next] != entered[i])
			next++;
		job_await_inside(&j[next]);
		EXPECT_EQ(vez_sched_waiters(&s), (size_t)(n - 1 - i));
		EXPECT_EQ(job_join(&j[next]), 0);
	}
	expect_over(&s);
}

/* Seen to fail: best that takes the last; best that asks before(found, r). */
Test(sched, ALL_in_order_of_arrival_or_of_the_user)
{
	static const int jobs[] = { 31, 12, 33, 11, 52, 10, 51 };
	static const int ordered[] = { 12, 11, 10, 31, 33, 52, 51 };
	EACH_FORM(v, ALL) {
		expect_order(NULL, jobs, jobs, 7, v->form);
		expect_order(before, jobs, ordered, 7, v->form);
	}
}

/* Seen to fail: a room kept in the order of before at the moment of the leave before. */
Test(sched, ALL_a_better_one_that_comes_later_is_chosen)
{
	EACH_FORM(v, ALL) {
		vez_sched_t s = make(before);
		struct job worse, middle, better;
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		job_start_as(&worse, &s, 90, v->form);
		job_start_as(&middle, &s, 50, v->form);
		EXPECT_EQ(vez_sched_leave(&s), 0);
		job_await_inside(&middle);
		job_start_as(&better, &s, 10, v->form);
		EXPECT_EQ(job_join(&middle), 0);
		job_await_inside(&better);
		EXPECT(job_blocked(&worse));
		EXPECT_EQ(job_join(&better), 0);
		job_await_inside(&worse);
		EXPECT_EQ(job_join(&worse), 0);
		expect_over(&s);
	}
}

/* The leave happens while somebody is inside the monitor: who comes after it has returned cannot be chosen before who
 * waited. Seen to fail: take that takes a free resource although somebody waits. */
Test(sched, ALL_what_is_decided_while_the_monitor_is_busy)
{
	EACH_FORM(v, ALL) {
		vez_sched_t s = make(before);
		struct job waiting, late = JOB(&s, 1, v->form);
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		job_start_as(&waiting, &s, 90, v->form);
		job_await_parked(&waiting);
		vez__lock_enter(&s.core_.word_);
		EXPECT_EQ(vez_sched_leave(&s), 0);
		job_run(&late);
		UNTIL(thread_futex(&late.thread) - (uintptr_t)&s < sizeof s)
			;
		vez__lock_exit(&s.core_.word_);
		job_await_inside(&waiting);
		EXPECT(job_blocked(&late));
		EXPECT_EQ(job_join(&waiting), 0);
		job_await_inside(&late);
		EXPECT_EQ(job_join(&late), 0);
		expect_over(&s);
	}
}

/* Seen to fail: try_enter and leave that enter the monitor where there is nobody to let in. */
Test(sched, ALL_07_a_busy_monitor_delays_neither_try_nor_leave)
{
	vez_sched_t s = make(NULL);
	vez__lock_enter(&s.core_.word_);
	EXPECT_EQ(vez_sched_leave(&s), EPERM);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), 0);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	EXPECT_EQ(vez_sched_waiters(&s), 0);
	vez__lock_exit(&s.core_.word_);
	expect_over(&s);
}

/* Who lets somebody in has left the monitor before that one returns.
 * Seen to fail: enter_fast that does not mind LOCKED. */
Test(sched, A06_an_enter_waits_for_who_is_leaving)
{
	EACH_FORM(v, ALL) {
		vez_sched_t s = make(before);
		struct job j = JOB(&s, 1, v->form);
		vez__lock_enter(&s.core_.word_);
		job_run(&j);
		UNTIL(thread_futex(&j.thread) - (uintptr_t)&s < sizeof s)
			;
		vez__lock_exit(&s.core_.word_);
		job_await_inside(&j);
		EXPECT_EQ(job_join(&j), 0);
		expect_over(&s);
	}
}

/* Seen to fail: a leave that wakes all. */
Test(sched, ALL_08_a_leave_wakes_the_next_one_alone)
{
	enum { N = 3 };
	EACH_FORM(v, ALL) {
		vez_sched_t s = make(NULL);
		struct job j[N];
		uintptr_t word[N];
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		for (int i = 0; i < N; i++) {
			job_start_as(&j[i], &s, i, v->form);
			word[i] = job_await_parked(&j[i]);
		}
		unsigned wakes = inject_wakes();
		EXPECT_EQ(vez_sched_leave(&s), 0);
		for (unsigned i = 0; i < N; i++) {
			job_await_inside(&j[i]);
			EXPECT_EQ(inject_wakes() - wakes, i + 1);
			EXPECT_EQ(inject_woken(wakes + i), word[i]);
			EXPECT_EQ(job_join(&j[i]), 0);
			EXPECT(j[i].waits <= 2);
		}
		expect_over(&s);
	}
}

/* Seen to fail: enter_until that tries the fast path before it asks the token. */
Test(sched, A02_a_fired_token_wins_though_it_is_free)
{
	EACH_FORM(v, WITH_TOKEN) {
		vez_sched_t s = make(before);
		struct job j = JOB(&s, 1, v->form);
		vez_cancel_fire(&j.own);
		EXPECT_EQ(enter_as(&j), ECANCELED);
		EXPECT_EQ(vez_sched_enter_until(&s, &any_job, VEZ_NOW, &j.own), ECANCELED);
		EXPECT(vez_cancel_fired(&j.own));
		expect_over(&s);
	}
}

/* Seen to fail: an enter without a token that takes its thread's own. */
Test(sched, ALL_05_who_names_no_token_keeps_waiting)
{
	EACH_FORM(v, WITHOUT_TOKEN) {
		vez_sched_t s = make(before);
		struct job j;
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		job_start_as(&j, &s, 1, v->form);
		vez_cancel_fire(j.self);
		EXPECT(job_blocked(&j));
		EXPECT_EQ(vez_sched_leave(&s), 0);
		job_await_inside(&j);
		EXPECT_EQ(job_join(&j), 0);
		expect_over(&s);
	}
}

/* Seen to fail: vez__roll_back that leaves WAITING set when the last waiter has gone. */
Test(sched, A01_when_the_last_waiter_has_gone_a_try_enters_at_once)
{
	EACH_FORM(v, WITH_TOKEN) {
		vez_sched_t s = make(before);
		struct job j;
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		job_start_as(&j, &s, 1, v->form);
		vez_cancel_fire(&j.own);
		EXPECT_EQ(job_join(&j), ECANCELED);
		EXPECT_EQ(vez_sched_leave(&s), 0);
		vez__lock_enter(&s.core_.word_);
		EXPECT_EQ(vez_sched_try_enter(&s, NULL), 0);
		vez__lock_exit(&s.core_.word_);
		EXPECT_EQ(vez_sched_leave(&s), 0);
		expect_over(&s);
	}
}

/* ---- the gap ---- */

/* One has entered and left at noon. */
static vez_sched_t make_left_at_noon(int64_t gap)
{
	vez_sched_t s = make(before);
	inject_clock(NOON);
	EXPECT_EQ(vez_sched_min_gap(&s, gap), 0);
	EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	return s;
}

/* Seen to fail: in_gap that compares with <=; a gap from the enter; a first enter that waits for a gap. */
Test(sched, ALL_nobody_enters_in_the_gap)
{
	vez_sched_t s = make_left_at_noon(GAP);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	inject_clock(NOON + GAP - 1);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	EXPECT_EQ(vez_sched_enter_until(&s, NULL, VEZ_NOW, NULL), ETIMEDOUT);
	inject_clock(NOON + GAP);
	EXPECT_EQ(vez_sched_enter_until(&s, NULL, VEZ_NOW, NULL), 0);
	inject_clock(NOON + 5 * GAP);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	inject_clock(NOON + 6 * GAP);
	EXPECT_EQ(vez_sched_enter(&s, NULL), 0);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	EXPECT_EQ(inject_waits(), 0);
	expect_over(&s);
}

/* Seen to fail: begin_gaps that leaves left_at_ as it was; one that sets it while somebody is inside. */
Test(sched, ALL_a_gap_set_later)
{
	vez_sched_t s = make(NULL);
	inject_clock(NOON);
	EXPECT_EQ(vez_sched_enter(&s, NULL), 0);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	inject_clock(NOON + 500);
	EXPECT_EQ(vez_sched_min_gap(&s, GAP), 0);
	inject_clock(NOON + 500 + GAP - 1);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	inject_clock(NOON + 500 + GAP);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), 0);
	EXPECT_EQ(vez_sched_min_gap(&s, 0), 0);
	inject_clock(NOON + 3000);
	EXPECT_EQ(vez_sched_min_gap(&s, 2 * GAP), 0);
	inject_clock(NOON + 9000);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	inject_clock(NOON + 9000 + 2 * GAP - 1);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
	EXPECT_EQ(vez_sched_min_gap(&s, GAP), 0);
	EXPECT_EQ(vez_sched_try_enter(&s, NULL), 0);
	EXPECT_EQ(vez_sched_leave(&s), 0);
	expect_over(&s);
}

/* The better one comes in the gap, while the worse keeps the time.
 * Seen to fail: look that lets its own request in; a choice at the beginning of the gap; a keeper that is not told. */
Test(sched, ALL_the_next_one_is_chosen_at_the_end_of_the_gap)
{
	EACH_FORM(v, ALL) {
		vez_sched_t s = make_left_at_noon(GAP);
		struct job worse, better;
		job_start_as(&worse, &s, 90, v->form);
		job_await_parked(&worse);
		job_start_as(&better, &s, 10, v->form);
		job_await_parked(&better);
		inject_clock(NOON + GAP - 1);
		thread_kick(&worse.thread);
		thread_kick(&better.thread);
		EXPECT(job_blocked(&worse));
		EXPECT(job_blocked(&better));
		EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
		inject_clock(NOON + GAP);
		thread_kick(&worse.thread);
		job_await_inside(&better);
		EXPECT(job_blocked(&worse));
		inject_clock(NOON + 2 * GAP);
		EXPECT_EQ(job_join(&better), 0);
		EXPECT(job_blocked(&worse));
		inject_clock(NOON + 3 * GAP);
		thread_kick(&worse.thread);
		job_await_inside(&worse);
		EXPECT_EQ(job_join(&worse), 0);
		expect_over(&s);
	}
}

/* A newcomer that comes after the end of the gap, but before the keeper has run, cannot overtake who waited.
 * Seen to fail: take that takes the resource before it serves. */
Test(sched, ALL_who_comes_after_the_gap_comes_after_who_waited_in_it)
{
	EACH_FORM(v, ALL) {
		vez_sched_t s = make_left_at_noon(GAP);
		struct job waiting, late = JOB(&s, 1, v->form);
		job_start_as(&waiting, &s, 90, v->form);
		job_await_parked(&waiting);
		thread_freeze(&waiting.thread);
		inject_clock(NOON + GAP);
		EXPECT_EQ(vez_sched_try_enter(&s, NULL), EBUSY);
		EXPECT_EQ(vez_sched_waiters(&s), 0);
		job_start(&late);
		thread_thaw(&waiting.thread);
		job_await_inside(&waiting);
		EXPECT(job_blocked(&late));
		EXPECT_EQ(job_join(&waiting), 0);
		inject_clock(NOON + 2 * GAP);
		thread_kick(&late.thread);
		job_await_inside(&late);
		EXPECT_EQ(job_join(&late), 0);
		expect_over(&s);
	}
}

/* The real clock: whoever keeps the time when the other has gone wakes by itself.
 * Seen to fail: keep_no_more that leaves keeper_ to who is gone; serve that appoints nobody. */
Test(sched, ALL_the_time_is_kept_when_the_keeper_gives_up)
{
	EACH_FORM(v, ALL) {
		if (v->form == UNTIMED)
			continue;
		vez_sched_t s = make(before);
		struct job keeper = JOB(&s, 1, v->form), other;
		EXPECT_EQ(vez_sched_min_gap(&s, 12 * MS), 0);
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		int64_t left = real_now();
		EXPECT_EQ(vez_sched_leave(&s), 0);
		keeper.deadline = form_has_token(v->form) ? 0 : vez_after_ms(3);
		/* On a slow day the gap is over before its limit: then it has passed. */
		keeper.stays = false;
		job_run(&keeper);
		UNTIL(vez_sched_waiters(&s) == 1 || thread_done(&keeper.thread))
			;
		other = (struct job)JOB(&s, 9, UNTIMED);
		job_run(&other);
		UNTIL(vez_sched_waiters(&s) >= 1 || LOAD(&other.gate.arrived))
			;
		if (form_has_token(v->form))
			vez_cancel_fire(&keeper.own);
		job_await_inside(&other);
		EXPECT(real_now() >= left + 12 * MS);
		EXPECT_EQ(job_join(&other), 0);
		int rc = job_join(&keeper);
		EXPECT(rc == ECANCELED || rc == ETIMEDOUT || (rc == 0 && real_now() > left + 12 * MS));
		expect_over(&s);
	}
}

/* Seen to fail: min_gap that does not tell the keeper (the first half hangs for an hour). */
Test(sched, ALL_a_gap_that_is_changed_while_somebody_waits)
{
	EACH_FORM(v, ALL) {
		vez_sched_t s = make(before);
		struct job j;
		EXPECT_EQ(vez_sched_min_gap(&s, 3600000 * MS), 0);
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		int64_t left = real_now();
		EXPECT_EQ(vez_sched_leave(&s), 0);
		job_start_as(&j, &s, 1, v->form);
		job_await_parked(&j);
		EXPECT_EQ(vez_sched_min_gap(&s, 8 * MS), 0);
		job_await_inside(&j);
		EXPECT(real_now() >= left + 8 * MS);
		left = real_now();
		EXPECT_EQ(job_join(&j), 0);
		j = (struct job)JOB(&s, 1, v->form);
		job_run(&j);
		EXPECT_EQ(vez_sched_min_gap(&s, 15 * MS), 0);
		job_await_inside(&j);
		EXPECT(real_now() >= left + 8 * MS);
		EXPECT_EQ(job_join(&j), 0);
		expect_over(&s);
	}
}

/* In a gap nobody is woken but to keep the time, once, and to enter.
 * Seen to fail: an appoint for each who comes. */
Test(sched, ALL_08_wakes_in_a_gap)
{
	enum { N = 3 };
	EACH_FORM(v, ALL) {
		vez_sched_t s = make(before);
		struct job j[N];
		inject_clock(NOON);
		EXPECT_EQ(vez_sched_min_gap(&s, GAP), 0);
		EXPECT_EQ(vez_sched_enter(&s, &any_job), 0);
		for (int i = 0; i < N; i++) {
			job_start_as(&j[i], &s, 10 * i, v->form);
			job_await_parked(&j[i]);
		}
		unsigned wakes = inject_wakes();
		EXPECT_EQ(vez_sched_leave(&s), 0);
		EXPECT_EQ(inject_wakes() - wakes, 1);
		job_await_parked(&j[0]);
		inject_clock(NOON + GAP);
		thread_kick(&j[0].thread);
		job_await_inside(&j[0]);
		EXPECT_EQ(inject_wakes() - wakes, 1);
		EXPECT_EQ(job_join(&j[0]), 0);
		for (int i = 1; i < N; i++)
			EXPECT(job_blocked(&j[i]));
		EXPECT_EQ(vez_sched_min_gap(&s, 0), 0);
		for (int i = 1; i < N; i++) {
			job_await_inside(&j[i]);
			EXPECT_EQ(job_join(&j[i]), 0);
		}
		expect_over(&s);
	}
}

/* ---- many at once ---- */

static struct {
	vez_sched_t sched;
	int inside;
	int64_t gap;
	int64_t left; /* before the last leave */
} crowd;

struct visitor {
	struct thread thread;
	int what;
	unsigned seed;
	int rounds;
};

static bool enter_somehow(struct visitor *v)
{
	v->seed = v->seed * 1103515245 + 12345;
	v->what = v->seed >> 24;
	switch (v->seed >> 16 & 3) {
	case 0:
		return vez_sched_try_enter(&crowd.sched, &v->what) == 0;
	case 1:
		return vez_sched_enter_until(&crowd.sched, &v->what, vez_after_us(v->seed >> 20 & 127), NULL) == 0;
	default:
		return vez_sched_enter(&crowd.sched, &v->what) == 0;
	}
}

static void visit(void *arg)
{
	struct visitor *v = arg;
	for (int i = 0; i < v->rounds; i++) {
		if (!enter_somehow(v))
			continue;
		cr_assert(crowd.inside++ == 0);
		cr_assert(real_now() >= crowd.left + crowd.gap);
		crowd.inside--;
		crowd.left = real_now();
		cr_assert(vez_sched_leave(&crowd.sched) == 0);
	}
}

/* Seen to fail: in_gap that is never true; a keeper that is not appointed, or does not set its time (hangs). */
Test(sched, ALL_04_a_crowd)
{
	enum { N = 5 };
	for (int round = 0; round < 2; round++) {
		struct visitor v[N];
		memset(&crowd, 0, sizeof crowd);
		EXPECT_EQ(vez_sched_init(&crowd.sched, before, 0), 0);
		crowd.gap = round * 20000;
		EXPECT_EQ(vez_sched_min_gap(&crowd.sched, crowd.gap), 0);
		for (unsigned i = 0; i < N; i++) {
			v[i] = (struct visitor){ .seed = i, .rounds = round ? 300 : 2000 };
			thread_start(&v[i].thread, visit, &v[i]);
		}
		for (unsigned i = 0; i < N; i++)
			thread_join(&v[i].thread);
		expect_over(&crowd.sched);
	}
}
