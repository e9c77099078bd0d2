/* SPDX-License-Identifier: MIT */
/* The alarm clock: its agenda, and the library's own thread. */
#include "engine/alarm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vez.h>

#include "async.h"
#include "engine/agenda.h"

TestSuite(alarm, .timeout = 120);

#define MS INT64_C(1000000)
#define TIMERS 200

/* ---- the agenda, against an array ---- */

static struct {
	struct vez__agenda agenda;
	struct vez__timer timers[TIMERS];
	bool set[TIMERS];
	int64_t now;
	uint64_t random;
} model;

static uint64_t draw(void)
{
	model.random ^= model.random << 13;
	model.random ^= model.random >> 7;
	model.random ^= model.random << 17;
	return model.random;
}

/* Past, near, far, equal to others, or at one of the ends. */
static vez_deadline_t draw_moment(void)
{
	static const vez_deadline_t ends[] = { 0, 1, -1, VEZ_NOW, VEZ_FOREVER - 1, VEZ_FOREVER - 2, INT64_MAX / 2 };
	switch (draw() % 6) {
	case 0:
		return ends[draw() % (sizeof ends / sizeof ends[0])];
	case 1:
		return model.now - (int64_t)(draw() % 100);
	case 2:
		return model.now + 7;
	case 3:
		return model.now + (int64_t)(draw() >> (2 + draw() % 61)) % (VEZ_FOREVER - 1 - model.now);
	default:
		return model.now + (int64_t)(draw() % 1000);
	}
}

static vez_deadline_t earliest(void)
{
	vez_deadline_t first = VEZ_FOREVER;
	for (int i = 0; i < TIMERS; i++)
		if (model.set[i] && vez__timer_at(&model.timers[i]) < first)
			first = vez__timer_at(&model.timers[i]);
	return first;
}

static void set_or_unset(int i)
{
	if (model.set[i]) {
		vez__agenda_unset(&model.timers[i]);
	} else {
		vez__timer_to(&model.timers[i], draw_moment());
		vez__agenda_set(&model.agenda, &model.timers[i]);
	}
	model.set[i] = !model.set[i];
}

/* Some of what is due, or all. */
static void take_due(int most)
{
	struct vez__timer *t = NULL;
	for (; most > 0 && (t = vez__agenda_due(&model.agenda, model.now)); most--) {
		long i = t - model.timers;
		EXPECT(i >= 0 && i < TIMERS && model.set[i]);
		EXPECT(vez__timer_at(t) <= model.now);
		model.set[i] = false;
	}
	if (most > 0)
		EXPECT(earliest() > model.now);
}

/* With few timers it is exact. */
static void expect_next(void)
{
	vez_deadline_t next = vez__agenda_next(&model.agenda), first = earliest();
	unsigned count = 0;
	for (int i = 0; i < TIMERS; i++)
		count += model.set[i];
	int64_t past = (int64_t)model.agenda.past;
	EXPECT(next == first || (count > VEZ__AGENDA_FEW && (first <= past ? next == past : next > past && next < first)));
}

/* Seen to fail: highest_change counted from 0; move_on that leaves the highest bucket; next that looks at the first of
 * a bucket; negative moments that are not due. */
Test(alarm, ALL_the_agenda_is_a_sorted_array)
{
	static const int64_t begins[] = { 0, 1, INT64_C(86400) * 1000 * MS, INT64_MAX / 2 - 500 };
	for (int run = 0; run < 40; run++) {
		memset(&model, 0, sizeof model);
		model.random = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(run + 1);
		model.now = begins[run % 4];
		for (int step = 0; step < 3000; step++) {
			set_or_unset((int)(draw() % TIMERS));
			expect_next();
			if (draw() % 4 == 0) {
				model.now += (int64_t)(draw() >> (20 + draw() % 44)) % (INT64_MAX / 8000);
				take_due(draw() % 2 ? (int)(draw() % 4) : TIMERS);
			}
		}
		model.now = VEZ_FOREVER - 1;
		take_due(TIMERS + 1);
		EXPECT_EQ(vez__agenda_next(&model.agenda), VEZ_FOREVER);
	}
}

/* Asking when to look does not look at all timers that are far away; and each look moves on. Seen to fail: next that
 * goes through the whole bucket; a beginning that is the moment of the last look. */
Test(alarm, ALL_many_far_timers_cost_nothing)
{
	enum { MANY = 100000 };
	static struct vez__agenda agenda;
	struct vez__timer *t = calloc(MANY, sizeof *t);
	int64_t now = INT64_C(86400) * 1000 * MS, last = now, end = now + INT64_C(3600) * 1000 * MS;
	EXPECT(vez__agenda_due(&agenda, now) == NULL);
	for (int i = 0; i < MANY; i++) {
		vez__timer_to(&t[i], end + i);
		vez__agenda_set(&agenda, &t[i]);
	}
	int64_t before = own_cpu_ns();
	for (int i = 0; i < 1000; i++)
		last = vez__agenda_next(&agenda);
	EXPECT(own_cpu_ns() - before < 1000 * INT64_C(20000)); /* through all of them it takes 100 us and more */
	unsigned looks = 0;
	for (; vez__agenda_due(&agenda, now) == NULL; looks++) {
		last = vez__agenda_next(&agenda);
		EXPECT(last > now && last <= end);
		now = last;
	}
	EXPECT_EQ(now, end);
	EXPECT(looks <= 64);
	free(t);
}

/* Though another one has taken its place. Seen to fail: unset that leaves the links as they are. */
Test(alarm, ALL_one_that_was_due_may_be_taken_off)
{
	struct vez__timer t = { { 0, 0 }, 0 }, other = t;
	memset(&model, 0, sizeof model);
	EXPECT(vez__agenda_due(&model.agenda, 0) == NULL);
	EXPECT_EQ(vez__agenda_next(&model.agenda), VEZ_FOREVER);
	for (int i = 0; i < 3; i++) {
		vez__timer_to(&t, 5 + i);
		vez__agenda_set(&model.agenda, &t);
		EXPECT(vez__agenda_due(&model.agenda, 4 + i) == NULL);
		EXPECT(vez__agenda_due(&model.agenda, 5 + i) == &t);
		vez__timer_to(&other, 5 + i);
		vez__agenda_set(&model.agenda, &other);
		vez__agenda_unset(&t);
		EXPECT(vez__agenda_due(&model.agenda, 5 + i) == &other);
		EXPECT(vez__agenda_due(&model.agenda, 5 + i) == NULL);
	}
}

/* ---- deadlines of requests ---- */

struct timed {
	struct note note;
	vez_deadline_t deadline;
	int64_t called;
};

static void note_time(struct note *n)
{
	((struct timed *)n->arg)->called = real_now();
}

static void file_timed(struct timed *t, vez_sem_t *s, vez_deadline_t deadline, int rc)
{
	memset(t, 0, sizeof *t);
	note_init(&t->note);
	t->note.then = note_time;
	t->note.arg = t;
	t->deadline = deadline;
	vez_request_set_limits(&t->note.r, deadline, NULL);
	int got = vez_sem_acquire_async(s, 1, &t->note.r);
	EXPECT(got == rc || (rc == EINPROGRESS && got == ETIMEDOUT && real_now() >= deadline));
	if (got == ETIMEDOUT) {
		t->note.calls = 1;
		t->note.result = ETIMEDOUT;
		t->called = real_now();
	}
}

/* Seen to fail: end_due that looks a millisecond ahead; alarm_at that keeps a later moment (it hangs). */
Test(alarm, ALL_in_time_and_never_early)
{
	enum { REQUESTS = 400 };
	static struct timed t[REQUESTS];
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		vez_sem_t s = VEZ_SEM_INITIALIZER(0);
		struct timed far;
		model.random = 99;
		file_timed(&far, &s, vez_after_ms(3600000), EINPROGRESS);
		int64_t begin = real_now();
		for (int i = 0; i < REQUESTS; i++)
			file_timed(&t[i], &s, begin + (int64_t)(draw() % 20000) * 1000, EINPROGRESS);
		for (int i = 0; i < REQUESTS; i++) {
			EXPECT_EQ(vez_request_wait(&t[i].note.r, VEZ_FOREVER, NULL), 0);
			EXPECT_EQ(t[i].note.calls, 1);
			EXPECT_EQ(t[i].note.result, ETIMEDOUT);
			EXPECT(t[i].called >= t[i].deadline);
			EXPECT(t[i].called < t[i].deadline + 10000 * MS);
		}
		EXPECT_EQ(far.note.calls, 0);
		EXPECT_EQ(vez_request_cancel(&far.note.r), 0);
		EXPECT_EQ(vez_sem_destroy(&s), 0);
	}
}

static void call_nothing(vez_request_t *r, int result, void *arg)
{
	(void)r, (void)result, (void)arg;
}

/* Returns when the thread has looked at this moment, and called the functions of what was due before. */
static void clock_reaches(int64_t now)
{
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	vez_request_t r;
	vez_request_init(&r, call_nothing, NULL);
	vez_request_set_limits(&r, now, NULL);
	EXPECT_EQ(vez_sem_acquire_async(&s, 1, &r), EINPROGRESS);
	inject_clock(now);
	vez__alarm_ring();
	EXPECT_EQ(vez_request_wait(&r, VEZ_FOREVER, NULL), 0);
	EXPECT_EQ(vez_request_result(&r), ETIMEDOUT);
}

/* By a clock that stands: exactly those that are due. Seen to fail: end_due that looks a millisecond ahead. */
Test(alarm, ALL_exactly_those_that_are_due)
{
	enum { REQUESTS = 300, STEPS = 50 };
	static struct timed t[REQUESTS];
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	int64_t noon = real_now() + INT64_C(43200) * 1000 * MS;
	inject_clock(noon);
	model.random = 7;
	for (int i = 0; i < REQUESTS; i++)
		file_timed(&t[i], &s, noon + 1 + (int64_t)(draw() % (STEPS * 100)), EINPROGRESS);
	for (int step = 1; step <= STEPS; step++) {
		int64_t now = noon + step * 100;
		for (int i = step; i < REQUESTS; i += 37) /* withdrawn in between, some of them */
			if (t[i].note.calls == 0)
				EXPECT_EQ(vez_request_cancel(&t[i].note.r), 0);
		clock_reaches(now);
		clock_reaches(now + 1);
		for (int i = 0; i < REQUESTS; i++) {
			bool due = t[i].deadline <= now + 1;
			EXPECT(due ? t[i].note.calls == 1
				   : t[i].note.calls == 0 || t[i].note.result == ECANCELED);
		}
	}
	EXPECT_EQ(vez_sem_waiters(&s), 0);
	EXPECT_EQ(vez_sem_destroy(&s), 0);
}

/* ---- the thread ---- */

/* The library's: the one that is not among those that were there before. */
static pid_t library_thread(const pid_t *before, unsigned count)
{
	pid_t now[16], found = 0;
	unsigned threads = list_threads(now);
	EXPECT_EQ(threads, count + 1);
	for (unsigned i = 0; i < threads; i++) {
		bool known = false;
		for (unsigned j = 0; j < count; j++)
			known |= before[j] == now[i];
		found = known ? found : now[i];
	}
	return found;
}

/* The number after this name in the thread's status. */
static unsigned long long status_of(pid_t tid, const char *name, int base)
{
	char path[64], line[256];
	unsigned long long value = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoull(line + strlen(name), NULL, base);
	if (f)
		fclose(f);
	return value;
}

/* Seen to fail: async_begin that makes the thread for every request. */
Test(alarm, ALL_no_thread_before_the_first_deadline)
{
	enum { REQUESTS = 20 };
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	struct note n[REQUESTS];
	unsigned before = count_threads();
	memset(n, 0, sizeof n);
	for (int i = 0; i < REQUESTS; i++) {
		note_init(&n[i]);
		vez_request_set_limits(&n[i].r, i < REQUESTS / 2 ? VEZ_FOREVER : vez_after_ms(3600000), &token);
		EXPECT_EQ(vez_sem_acquire_async(&s, 1, &n[i].r), EINPROGRESS);
		EXPECT_EQ(count_threads(), i < REQUESTS / 2 ? before : before + 1);
	}
	vez_cancel_fire(&token);
	for (int i = 0; i < REQUESTS; i++)
		CHECK_COMPLETED(&n[i], ECANCELED);
	vez_cancel_fire_at(&token, vez_after_ms(3600000));
	EXPECT_EQ(count_threads(), before + 1);
	EXPECT_EQ(vez_cancel_destroy(&token), 0);
}

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

enum { KINDS = sizeof faults / sizeof faults[0] };

static bool is_fault(int signo)
{
	for (int i = 0; i < KINDS; i++)
		if (faults[i] == signo)
			return true;
	return false;
}

/* Seen to fail: sys_thread that leaves the mask as it is; that leaves its caller's signals blocked; that blocks those
 * of faults. */
Test(alarm, ALL_all_its_signals_are_blocked_but_those_of_faults)
{
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	struct timed t;
	unsigned long long own = status_of(own_tid(), "SigBlk:", 16);
	pid_t before[16];
	unsigned count = list_threads(before);
	file_timed(&t, &s, vez_after_ms(1), EINPROGRESS);
	EXPECT_EQ(status_of(own_tid(), "SigBlk:", 16), own);
	EXPECT_EQ(vez_request_wait(&t.note.r, VEZ_FOREVER, NULL), 0);
	struct thread clock = { .tid = library_thread(before, count) };
	UNTIL(thread_futex(&clock) != 0); /* pthread_create begins it with all signals blocked */
	unsigned long long blocked = status_of(clock.tid, "SigBlk:", 16);
	for (int signo = 1; signo <= SIGRTMAX; signo++) {
		bool cannot = signo == SIGKILL || signo == SIGSTOP || (signo >= 32 && signo < SIGRTMIN);
		EXPECT_EQ(cannot || (blocked >> (signo - 1) & 1) == !is_fault(signo), true);
	}
	EXPECT_EQ(vez_request_cancel(&t.note.r), EALREADY);
}

static volatile sig_atomic_t seen[KINDS];
static pthread_t seen_by;

static void see_fault(int signo)
{
	for (int i = 0; i < KINDS; i++)
		seen[i] += faults[i] == signo;
}

static void raise_faults(vez_request_t *r, int result, void *arg)
{
	(void)r, (void)result, (void)arg;
	seen_by = pthread_self();
	for (int i = 0; i < KINDS; i++)
		raise(faults[i]);
}

/* A function that the library's thread calls is at fault: the program's handler sees it. Seen to fail: sys_thread that
 * blocks all signals. */
Test(alarm, ALL_faults_on_its_thread_reach_the_handler)
{
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	vez_request_t r;
	struct sigaction handle = { .sa_handler = see_fault };
	for (int i = 0; i < KINDS; i++)
		EXPECT_EQ(sigaction(faults[i], &handle, NULL), 0);
	int rc = ETIMEDOUT;
	for (int64_t ms = 1; rc == ETIMEDOUT; ms *= 2) { /* until it is queued before its deadline */
		vez_request_init(&r, raise_faults, NULL);
		vez_request_set_limits(&r, vez_after_ms(ms), NULL);
		rc = vez_sem_acquire_async(&s, 1, &r);
	}
	EXPECT_EQ(rc, EINPROGRESS);
	EXPECT_EQ(vez_request_wait(&r, VEZ_FOREVER, NULL), 0);
	EXPECT(!pthread_equal(seen_by, pthread_self()));
	for (int i = 0; i < KINDS; i++)
		EXPECT_EQ(seen[i], 1);
}

static uint64_t switches_of(pid_t tid)
{
	return status_of(tid, "voluntary_ctxt_switches:", 10) + status_of(tid, "nonvoluntary_ctxt_switches:", 10);
}

/* With nothing due, for 40 ms. Seen to fail: a round that looks again after a millisecond. */
Test(alarm, ALL_idle_when_nothing_is_due)
{
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	struct timed t, far;
	pid_t others[16];
	unsigned count = list_threads(others);
	file_timed(&t, &s, vez_after_us(300), EINPROGRESS);
	file_timed(&far, &s, vez_after_ms(3600000), EINPROGRESS);
	EXPECT_EQ(vez_request_wait(&t.note.r, VEZ_FOREVER, NULL), 0);
	pid_t tid = library_thread(others, count);
	struct thread clock = { .tid = tid };
	UNTIL(thread_futex(&clock) != 0);
	uint64_t before = switches_of(tid);
	EXPECT(before > 0);
	usleep(40000);
	EXPECT_EQ(switches_of(tid), before);
	EXPECT_EQ(vez_request_cancel(&far.note.r), 0);
}

/* It is woken for a moment that is earlier than all others, and not for those that come after. Seen to fail: alarm_set
 * that always rings. */
Test(alarm, ALL_woken_only_for_what_comes_first)
{
	enum { REQUESTS = 100 };
	vez_sem_t s = VEZ_SEM_INITIALIZER(0);
	static struct timed t[REQUESTS];
	struct timed first;
	pid_t others[16];
	unsigned count = list_threads(others);
	file_timed(&first, &s, vez_after_ms(3600000), EINPROGRESS);
	struct thread clock = { .tid = library_thread(others, count) };
	UNTIL(thread_futex(&clock) != 0);
	inject_reset(FAULT_NONE);
	for (int i = 0; i < REQUESTS; i++)
		file_timed(&t[i], &s, vez_after_ms(3600001), EINPROGRESS);
	EXPECT_EQ(inject_wakes(), 0);
	struct timed earlier;
	file_timed(&earlier, &s, vez_after_ms(3599999), EINPROGRESS);
	EXPECT(inject_wakes() <= 1);
	EXPECT_EQ(vez_sem_release(&s, REQUESTS + 2), 0);
	EXPECT_EQ(vez_request_wait(&earlier.note.r, VEZ_FOREVER, NULL), 0);
	EXPECT_EQ(vez_sem_destroy(&s), 0);
}

/* Seen to fail: clock_start that says that there is a thread though none was made. */
Test(alarm, ALL_a_thread_that_cannot_be_made)
{
	EACH_KIND(kind) {
		union async_object o;
		struct note n = { .item = 0 };
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		kind->make(&o);
		inject_no_thread(true);
		note_init(&n);
		vez_request_set_limits(&n.r, vez_after_ms(3600000), &token);
		CHECK_EQ(kind->file(&o, &n), EAGAIN);
		CHECK_EQ(vez_request_result(&n.r), EAGAIN);
		CHECK_EQ(n.calls, 0);
		CHECK_EQ(kind->waiters(&o), 0);
		CHECK_EQ(vez_cancel_destroy(&token), 0);
		note_init(&n);
		CHECK_EQ(kind->file(&o, &n), EINPROGRESS);
		CHECK_EQ(vez_request_cancel(&n.r), 0);
		CHECK_EMPTY(kind, &o);
	}
	vez_sem_t s = VEZ_SEM_INITIALIZER(0), free = VEZ_SEM_INITIALIZER(1);
	struct timed t;
	vez_request_init(&t.note.r, NULL, NULL);
	vez_request_set_limits(&t.note.r, vez_after_ms(3600000), NULL);
	EXPECT_EQ(vez_sem_acquire_async(&free, 1, &t.note.r), EAGAIN);
	EXPECT_EQ(vez_sem_permits(&free), 1);
	inject_no_thread(false);
	file_timed(&t, &s, vez_after_us(200), EINPROGRESS);
	EXPECT_EQ(vez_request_wait(&t.note.r, VEZ_FOREVER, NULL), 0);
	EXPECT_EQ(t.note.result, ETIMEDOUT);
}

static struct gate inside_done;

static void stop_here(struct note *n)
{
	(void)n;
	gate_pass(&inside_done);
}

/* A function that blocks delays other deadlines, and nothing else. Seen to fail: complete that leaves a request with
 * the clock. */
Test(alarm, ALL_a_function_that_blocks_delays_deadlines_only)
{
	EACH_VARIANT(v, ONE_FORM) {
		vez_sem_t s;
		struct note blocks = { .then = stop_here }, late = { .item = 0 }, granted = late, cancelled = late;
		vez_sem_init(&s, 0, 0, v->flags);
		gate_init(&inside_done);
		note_init(&blocks);
		vez_request_set_limits(&blocks.r, vez_after_us(500), NULL);
		int rc = vez_sem_acquire_async(&s, 1, &blocks.r);
		if (rc == ETIMEDOUT)
			continue;
		gate_await(&inside_done, 1);
		note_init(&granted);
		note_init(&cancelled);
		note_init(&late);
		vez_request_set_limits(&granted.r, vez_after_ms(3600000), NULL);
		vez_request_set_limits(&cancelled.r, vez_after_ms(3600000), NULL);
		EXPECT_EQ(vez_sem_acquire_async(&s, 1, &granted.r), EINPROGRESS);
		EXPECT_EQ(vez_sem_acquire_async(&s, 1, &cancelled.r), EINPROGRESS);
		vez_request_set_limits(&late.r, vez_after_ms(1), NULL);
		rc = vez_sem_acquire_async(&s, 1, &late.r);
		EXPECT_EQ(vez_sem_release(&s, 1), 0);
		CHECK_COMPLETED(&granted, 0);
		EXPECT_EQ(vez_request_cancel(&cancelled.r), 0);
		EXPECT_EQ(vez_request_wait(&late.r, vez_after_ms(3), NULL), rc == EINPROGRESS ? ETIMEDOUT : 0);
		EXPECT_EQ(late.calls, 0);
		gate_open(&inside_done);
		EXPECT_EQ(vez_request_wait(&late.r, VEZ_FOREVER, NULL), 0);
		EXPECT_EQ(vez_request_result(&late.r), ETIMEDOUT);
		EXPECT_EQ(vez_request_wait(&blocks.r, VEZ_FOREVER, NULL), 0);
		EXPECT_EQ(vez_sem_waiters(&s), 0);
		EXPECT_EQ(vez_sem_destroy(&s), 0);
	}
}

/* ---- fork, exit ---- */

/* The child's status, or -1 if it has not ended after 20 s: then it is killed. */
static int end_of(pid_t child)
{
	int status = -1;
	int64_t begin = real_now();
	pid_t ended;
	while ((ended = waitpid(child, &status, WNOHANG)) == 0 && real_now() < begin + 20000 * MS)
		usleep(500);
	if (ended == child)
		return status;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return -1;
}

/* No assertion may be made here. */
static int in_child(struct note *inherited, vez_sem_t *s)
{
	struct note own = { .item = 0 };
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	alarm(30);
	if (inherited->calls != 0)
		return TOO_LATE;
	if (count_threads() != 1)
		return 1;
	vez_sem_init(s, 0, 0, 0);
	int rc = ETIMEDOUT; /* as long as making the thread takes longer than that */
	for (int64_t ms = 15; rc == ETIMEDOUT; ms *= 2) {
		note_init(&own);
		vez_request_set_limits(&own.r, vez_after_ms(ms), &token);
		rc = vez_sem_acquire_async(s, 1, &own.r);
	}
	if (rc != EINPROGRESS || count_threads() != 2)
		return 2;
	if (vez_request_wait(&own.r, VEZ_FOREVER, NULL) != 0 || own.calls != 1 || own.result != ETIMEDOUT)
		return 3;
	if (inherited->calls != 0)
		return 4;
	/* The very request of the parent, anew. */
	note_init(inherited);
	vez_request_set_limits(&inherited->r, VEZ_FOREVER, &token);
	if (vez_sem_acquire_async(s, 1, &inherited->r) != EINPROGRESS)
		return 5;
	vez_cancel_fire_at(&token, vez_after_ms(1));
	if (vez_request_wait(&inherited->r, VEZ_FOREVER, NULL) != 0 || inherited->result != ECANCELED)
		return 6;
	return vez_sem_destroy(s) == 0 ? 0 : 7;
}

/* Seen to fail: in_child that forgets nothing of the clock (the child's deadlines never pass); that leaves its agenda
 * (the parent's request completes there). */
Test(alarm, ALL_10_fork)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		int status = -1;
		for (int64_t ms = 10; status != 0; ms *= 2) {
			vez_sem_t s = VEZ_SEM_INITIALIZER(0);
			struct note n = { .item = 0 };
			note_init(&n);
			vez_deadline_t deadline = vez_after_ms(ms);
			vez_request_set_limits(&n.r, deadline, NULL);
			int rc = vez_sem_acquire_async(&s, 1, &n.r);
			if (rc != EINPROGRESS)
				continue;
			pid_t child = fork_when_quiet();
			if (child == 0)
				_exit(in_child(&n, &s));
			status = end_of(child);
			EXPECT(right_or_too_late(status));
			EXPECT_EQ(vez_request_wait(&n.r, VEZ_FOREVER, NULL), 0);
			CHECK_COMPLETED(&n, ETIMEDOUT);
			EXPECT(real_now() >= deadline);
			EXPECT_EQ(vez_sem_destroy(&s), 0);
		}
	}
}

static void block_for_ever(struct note *n)
{
	(void)n;
	STORE(&inside_done.arrived, 1);
	for (;;)
		pause();
}

static void exit_at_once(struct note *n)
{
	(void)n;
	exit(7);
}

enum leaving { PENDING, BLOCKS, EXITS, LEAVINGS };

/* No assertion may be made here. */
static void leave(enum leaving how)
{
	static vez_sem_t s;
	static struct note n, far;
	static vez_cancel_t token;
	alarm(30);
	note_init(&far);
	vez_request_set_limits(&far.r, vez_after_ms(3600000), &token);
	vez_sem_acquire_async(&s, 1, &far.r);
	vez_cancel_fire_at(&token, vez_after_ms(3600000));
	if (how == PENDING)
		exit(7);
	note_init(&n);
	n.then = how == BLOCKS ? block_for_ever : exit_at_once;
	do
		vez_request_set_limits(&n.r, vez_after_ms(2), NULL);
	while (vez_sem_acquire_async(&s, 1, &n.r) != EINPROGRESS);
	while (how == EXITS || LOAD(&inside_done.arrived) == 0)
		usleep(100);
	exit(7);
}

/* Seen to fail: stop that joins the thread whatever it does (it hangs). */
Test(alarm, ALL_exit)
{
	for (int round = 0; round < 3; round++) {
		for (enum leaving how = 0; how < LEAVINGS; how++) {
			inside_done.arrived = 0;
			pid_t child = fork();
			if (child == 0)
				leave(how);
			int status = end_of(child);
			EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		}
	}
}
