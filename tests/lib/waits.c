/* SPDX-License-Identifier: MIT */
/* What is the same for every wait. */
#include "waits.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bill.h"
#include "guard.h"
#include "sanitizer.h"
#include "engine/filing.h"

#define UNTOUCHED 12345
#define MS INT64_C(1000000)

union object {
	vez_barrier_t barrier;
	vez_event_t event;
	vez_latch_t latch;
	vez_queue_t queue;
	vez_rwlock_t rwlock;
	char bytes[256];
};

static vez_deadline_t far(void)
{
	return vez_after_ms(INT64_C(3600000));
}

void request_as(vez_request_t *r, enum form form, vez_cancel_t *token)
{
	vez_request_init(r, NULL, NULL);
	vez_request_set_limits(r, form == ASYNC_FAR ? far() : VEZ_FOREVER, form == ASYNC_TOKEN ? token : NULL);
}

int await_request(vez_request_t *r, int rc)
{
	if (rc != EINPROGRESS)
		return rc;
	EXPECT_EQ(vez_request_wait(r, VEZ_FOREVER, NULL), 0);
	return vez_request_result(r);
}

static int call_async(const struct waiter *w, vez_cancel_t *token)
{
	vez_request_t r;
	request_as(&r, w->form, token);
	return await_request(&r, w->on->wait_async(w->object, &r));
}

static int call(struct waiter *w, vez_cancel_t *token)
{
	vez_deadline_t deadline = w->deadline ? w->deadline : far();
	switch (w->form) {
	case ASYNC:
	case ASYNC_FAR:
	case ASYNC_TOKEN:
		return call_async(w, token);
	case FAR:
		return w->on->wait_until(w->object, &w->index, deadline, NULL);
	case TOKEN:
		return w->on->wait_until(w->object, &w->index, VEZ_FOREVER, token);
	case TOKEN_FAR:
		return w->on->wait_until(w->object, &w->index, deadline, token);
	default:
		return w->on->wait(w->object, &w->index);
	}
}

int wait_as(enum form form, const struct waitable *on, void *object, vez_cancel_t *token)
{
	struct waiter w = WAITER(on, object, form);
	errno = UNTOUCHED;
	int rc = call(&w, token);
	EXPECT_EQ(errno, UNTOUCHED);
	return rc;
}

static void run(void *arg)
{
	struct waiter *w = arg;
	w->self = vez_cancel_self();
	if (w->eager)
		spin_eagerly();
	errno = UNTOUCHED;
	w->rc = call(w, w->token ? w->token : &w->own);
	w->errno_after = errno;
	w->waits = inject_own_waits();
}

void waiter_run(struct waiter *w)
{
	w->index = NO_INDEX;
	thread_start(&w->thread, run, w);
}

void waiter_start(struct waiter *w)
{
	size_t before = w->on->waiters(w->object);
	waiter_run(w);
	UNTIL(w->on->waiters(w->object) == before + 1)
		;
}

static bool in_object(const struct waiter *w, uintptr_t word)
{
	return word - (uintptr_t)w->object < w->on->size;
}

uintptr_t waiter_await_parked(struct waiter *w)
{
	uintptr_t word = 0;
	UNTIL(word != 0 && !in_object(w, word))
		word = thread_futex(&w->thread);
	return word;
}

void waiter_await_locked_out(struct waiter *w)
{
	UNTIL(in_object(w, thread_futex(&w->thread)))
		;
}

bool waiter_blocked(struct waiter *w)
{
	waiter_await_parked(w);
	return !thread_done(&w->thread) && w->on->waiters(w->object) > 0;
}

int waiter_join(struct waiter *w)
{
	thread_join(&w->thread);
	EXPECT_EQ(w->errno_after, UNTOUCHED);
	if (w->rc != 0)
		EXPECT_EQ(w->index, NO_INDEX);
	return w->rc;
}

static void made(union object *o, const struct waitable *on)
{
	EXPECT(on->size <= sizeof *o);
	memset(o, 0xa5, sizeof *o);
	on->make(o);
}

/* ---- let go, and not ---- */

void check_let_go(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, ALL) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(on->let_go(&o), 0);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &o);
	}
}

/* ---- tokens ---- */

void check_fire_ends_a_wait(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_TOKEN) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		EXPECT(waiter_blocked(&w));
		vez_cancel_fire(&w.own);
		EXPECT_EQ(on->waiters(&o), 0);
		EXPECT_EQ(waiter_join(&w), ECANCELED);
		EXPECT(vez_cancel_fired(&w.own));
		EXPECT_EMPTY(on, &o);
	}
}

void check_fired_on_entry(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_TOKEN) {
		union object o;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		vez_cancel_fire(&token);
		made(&o, on);
		EXPECT_EQ(wait_as(v->form, on, &o, &token), ECANCELED);
		made(&o, on);
		EXPECT_EQ(on->wait_until(&o, NULL, VEZ_NOW, &token), ECANCELED);
		EXPECT_EQ(inject_waits(), 0);
		EXPECT(vez_cancel_fired(&token));
		EXPECT_EMPTY(on, &o);
	}
}

void check_no_token_no_cancel(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITHOUT_TOKEN) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		vez_cancel_fire(w.self);
		EXPECT(waiter_blocked(&w));
		EXPECT(vez_cancel_fired(w.self));
		EXPECT_EQ(on->let_go(&o), 0);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &o);
	}
}

/* ---- deadlines ---- */

void check_past_deadlines(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, ONE_FORM) {
		int64_t now = real_now();
		const vez_deadline_t past[] = { 0, 1, -1, VEZ_NOW, now - 1, now - INT64_C(315360000) * 1000 * MS };
		for (unsigned i = 0; i < sizeof past / sizeof past[0]; i++) {
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			union object o;
			made(&o, on);
			EXPECT_EQ(on->wait_until(&o, NULL, past[i], i % 2 ? NULL : &token), ETIMEDOUT);
			EXPECT_EQ(inject_waits(), 0);
			EXPECT(!vez_cancel_fired(&token));
			EXPECT_EMPTY(on, &o);
		}
	}
}

void check_far_deadlines(const struct waitable *on)
{
	int64_t now = real_now();
	const vez_deadline_t ahead[] = {
		VEZ_FOREVER, VEZ_FOREVER - 1, vez_after_ns(INT64_MAX), vez_after_ns(INT64_MAX - now + 1),
		vez_after_ms(INT64_MAX / 1000000), vez_after_ms(INT64_MAX), INT64_C(1000000000) << 31,
		INT64_C(1000000000) << 32, vez_after_us(INT64_MAX / 1000), INT64_MAX / 1000 * 999,
	};
	EACH_WAIT_ON(on, v, WITH_DEADLINE) {
		for (unsigned i = 0; i < sizeof ahead / sizeof ahead[0]; i++) {
			union object o;
			made(&o, on);
			struct waiter w = WAITER(on, &o, v->form);
			w.deadline = ahead[i];
			waiter_start(&w);
			EXPECT(waiter_blocked(&w));
			EXPECT_EQ(on->let_go(&o), 0);
			EXPECT_EQ(waiter_join(&w), 0);
			EXPECT_EMPTY(on, &o);
		}
	}
}

void check_timed_out(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_DEADLINE) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		w.deadline = vez_after_ms(3);
		waiter_run(&w);
		EXPECT_EQ(waiter_join(&w), ETIMEDOUT);
		EXPECT(real_now() >= w.deadline);
		EXPECT(!vez_cancel_fired(&w.own));
		EXPECT_EMPTY(on, &o);
	}
}

void check_clock_is_asked(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_DEADLINE) {
		union object o;
		made(&o, on);
		inject_reset(FAULT_TIMEDOUT);
		inject_clock(NOON);
		struct waiter w = WAITER(on, &o, v->form);
		w.deadline = NOON + 100;
		waiter_start(&w);
		for (int64_t now = NOON; now < NOON + 100; now += 33) {
			inject_clock(now);
			thread_kick(&w.thread);
			EXPECT(waiter_blocked(&w));
		}
		inject_clock(NOON + 100);
		thread_kick(&w.thread);
		EXPECT_EQ(waiter_join(&w), ETIMEDOUT);
		EXPECT_EMPTY(on, &o);
	}
}

/* ---- let go and given up at once ---- */

void check_let_go_then_cancelled(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_TOKEN) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		waiter_await_parked(&w);
		thread_freeze(&w.thread);
		EXPECT_EQ(on->let_go(&o), 0);
		vez_cancel_fire(&w.own);
		thread_thaw(&w.thread);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT(vez_cancel_fired(&w.own));
		EXPECT_EMPTY(on, &o);
	}
}

void check_cancelled_then_let_go(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_TOKEN) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		waiter_await_parked(&w);
		thread_freeze(&w.thread);
		vez_cancel_fire(&w.own);
		EXPECT(vez_cancel_clear(&w.own));
		EXPECT_EQ(on->waiters(&o), 0);
		on->let_go(&o);
		thread_thaw(&w.thread);
		EXPECT_EQ(waiter_join(&w), ECANCELED);
		EXPECT_EMPTY(on, &o);
	}
}

void check_let_go_after_the_deadline(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_DEADLINE) {
		union object o;
		made(&o, on);
		inject_clock(NOON);
		struct waiter w = WAITER(on, &o, v->form);
		w.deadline = NOON + 1000;
		waiter_start(&w);
		waiter_await_parked(&w);
		thread_freeze(&w.thread);
		inject_clock(NOON + 5000);
		EXPECT_EQ(on->let_go(&o), 0);
		thread_thaw(&w.thread);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &o);
	}
}

/* ---- signals ---- */

void check_signals(const struct waitable *on)
{
	for (int i = 0; i < 4; i++) {
		struct sigaction action = { .sa_handler = handle_nothing, .sa_flags = i % 2 ? SA_RESTART : 0 };
		sigaction(SIGUSR1, &action, NULL);
		union object o;
		made(&o, on);
		struct waiter untimed = WAITER(on, &o, i < 2 ? UNTIMED : TOKEN), timed = WAITER(on, &o, FAR);
		waiter_start(&untimed);
		pester(&untimed.thread, real_now() + 15 * MS);
		EXPECT(!thread_done(&untimed.thread));
		EXPECT_EQ(on->let_go(&o), 0);
		EXPECT_EQ(waiter_join(&untimed), 0);
		EXPECT_EMPTY(on, &o);
		made(&o, on);
		timed.deadline = vez_after_ms(40);
		waiter_run(&timed);
		pester(&timed.thread, INT64_MAX);
		EXPECT(real_now() >= timed.deadline && real_now() < timed.deadline + 2000 * MS);
		EXPECT_EQ(waiter_join(&timed), ETIMEDOUT);
		EXPECT_EMPTY(on, &o);
	}
}

/* ---- destroy ---- */

void check_destroy_is_refused(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, ALL) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(on->destroy(&o), EBUSY);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(on->let_go(&o), 0);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &o);
	}
}

void check_returns_without_the_object(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, ALL) {
		void *o = guard_new(on->size);
		on->make(o);
		struct waiter w = WAITER(on, o, v->form);
		waiter_start(&w);
		waiter_await_parked(&w);
		thread_freeze(&w.thread);
		EXPECT_EQ(on->let_go(o), 0);
		EXPECT_EMPTY(on, o);
		guard_close(o);
		thread_thaw(&w.thread);
		EXPECT_EQ(waiter_join(&w), 0);
		guard_free(o);
	}
}

/* Who lets go, and may be held back before the wake or wait for its turn each round. */
struct opener {
	struct thread thread;
	const struct waitable *on;
	void *object;
	sem_t go, went;
	bool stop;
	int rc;
};

static void let_go_and_stop(void *arg)
{
	struct opener *p = arg;
	stops_before_wake = true;
	p->rc = p->on->let_go(p->object);
}

void check_gone_before_the_wake(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, ALL) {
		void *o = guard_new(on->size);
		on->make(o);
		struct waiter w = WAITER(on, o, v->form);
		struct opener p = { .on = on, .object = o };
		gate_init(&before_wake);
		waiter_start(&w);
		waiter_await_parked(&w);
		inject_before_wake(stop_before_wake);
		thread_start(&p.thread, let_go_and_stop, &p);
		gate_await(&before_wake, 1);
		thread_kick(&w.thread);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, o);
		guard_close(o);
		inject_before_wake(NULL);
		gate_open(&before_wake);
		thread_join(&p.thread);
		EXPECT_EQ(p.rc, 0);
		guard_free(o);
	}
}

static void let_go_in_turn(void *arg)
{
	struct opener *p = arg;
	for (;;) {
		while (sem_wait(&p->go) != 0)
			;
		if (LOAD(&p->stop))
			return;
		p->on->let_go(p->object);
		sem_post(&p->went);
	}
}

void check_destroyed_by_who_was_let_go(const struct waitable *on, int rounds)
{
	void *o = guard_new(on->size);
	struct opener p = { .on = on, .object = o };
	vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
	static const enum form forms[] = { UNTIMED, FAR, TOKEN, TOKEN_FAR, ASYNC, ASYNC_FAR, ASYNC_TOKEN };
	unsigned count = on->wait_async ? 7 : 4;
	sem_init(&p.go, 0, 0);
	sem_init(&p.went, 0, 0);
	thread_start(&p.thread, let_go_in_turn, &p);
	for (int round = 0; round < rounds; round++) {
		on->make(o);
		sem_post(&p.go);
		EXPECT_EQ(wait_as(forms[(unsigned)round % count], on, o, &token), 0);
		EXPECT_EQ(on->destroy(o), 0);
		guard_close(o);
		while (sem_wait(&p.went) != 0)
			;
		guard_open(o, on->size);
	}
	STORE(&p.stop, true);
	sem_post(&p.go);
	thread_join(&p.thread);
	guard_free(o);
}

static void destroy_it(void *arg)
{
	struct opener *p = arg;
	p->rc = p->on->destroy(p->object);
}

/* The deadline of a wait has passed, its thread is on its way into the monitor, and then it is let go: until it has
 * been there, the object must stay. */
void check_destroy_waits_for_who_comes_in(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, WITH_DEADLINE) {
		void *o = guard_new(on->size);
		on->make(o);
		inject_clock(NOON);
		struct waiter w = WAITER(on, o, v->form);
		struct opener p = { .on = on, .object = o }, d = p;
		w.deadline = NOON + 1000;
		waiter_start(&w);
		waiter_await_parked(&w);
		vez__lock_enter(o); /* its core comes first */
		inject_clock(NOON + 5000);
		thread_kick(&w.thread);
		waiter_await_locked_out(&w);
		thread_freeze(&w.thread);
		/* One of these is first to enter when the other is let in: the wait is let go, for its thread
		 * is stopped. */
		stops_before_wake = false;
		thread_start(&p.thread, let_go_and_stop, &p);
		UNTIL(thread_done(&p.thread) || thread_futex(&p.thread) - (uintptr_t)o < on->size)
			;
		vez__lock_exit(o);
		thread_join(&p.thread);
		EXPECT_EQ(p.rc, 0);
		EXPECT_EQ(on->waiters(o), 0);
		thread_start(&d.thread, destroy_it, &d);
		thread_await_parked(&d.thread);
		thread_thaw(&w.thread);
		thread_join(&d.thread);
		EXPECT_EQ(d.rc, 0);
		guard_close(o);
		EXPECT_EQ(waiter_join(&w), 0);
		guard_free(o);
	}
}

/* ---- the rest ---- */

/* The child's part: 0 if all is well. No assertion may be made here. */
static int in_child(const struct waitable *on, void *inherited)
{
	struct waiter w = WAITER(on, inherited, TOKEN_FAR);
	on->make(inherited);
	if (!THREADS_IN_CHILD) {
		int rc = on->wait_until(inherited, NULL, vez_after_ms(1), NULL);
		return rc == ETIMEDOUT && on->destroy(inherited) == 0 ? 0 : 3;
	}
	waiter_start(&w);
	if (on->let_go(inherited) != 0)
		return 1;
	thread_join(&w.thread);
	return w.rc == 0 && on->waiters(inherited) == 0 && on->destroy(inherited) == 0 ? 0 : 2;
}

void check_fork(const struct waitable *on)
{
	EACH_WAIT_ON(on, v, ALL) {
		union object o;
		made(&o, on);
		struct waiter w = WAITER(on, &o, v->form);
		waiter_start(&w);
		waiter_await_parked(&w);
		pid_t child = fork();
		if (child == 0)
			_exit(in_child(on, &o));
		int status = -1;
		EXPECT_EQ(waitpid(child, &status, 0), child);
		EXPECT_EQ(status, 0);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(on->let_go(&o), 0);
		EXPECT_EQ(waiter_join(&w), 0);
		EXPECT_EMPTY(on, &o);
	}
}

void check_no_cost_on_one_cpu(const struct waitable *on)
{
	enum { WAITERS = 8 };
	union object o[WAITERS];
	struct waiter w[WAITERS];
	thread_pin_to_one_cpu();
	for (int i = 0; i < WAITERS; i++) {
		made(&o[i], on);
		w[i] = (struct waiter)WAITER(on, &o[i], UNTIMED);
		w[i].eager = true;
		waiter_start(&w[i]);
	}
	burn();
	for (int i = 0; i < WAITERS; i++) {
		EXPECT(waiter_blocked(&w[i]));
		EXPECT(thread_cpu_ns(&w[i].thread) < NEXT_TO_NOTHING_NS);
		EXPECT_EQ(on->let_go(&o[i]), 0);
		EXPECT_EQ(waiter_join(&w[i]), 0);
		EXPECT(w[i].waits <= 2);
		EXPECT_EMPTY(on, &o[i]);
	}
}
