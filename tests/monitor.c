/* SPDX-License-Identifier: MIT */
/* Monitors and rooms: what who builds a synchronizer on them relies on. */
#include <errno.h>
#include <string.h>
#include <vez.h>

#include "futex/lock.h"
#include "futex/word.h"
#include "guard.h"
#include "thread.h"
#include "variant.h"

TestSuite(monitor, .timeout = 120);

#define HOUR INT64_C(3600000000000)

struct waiter {
	struct thread thread;
	vez_monitor_t *m;
	vez_room_t *room;
	enum form form;
	vez_request_t r;
	int64_t key;
	uint64_t value;
	vez_deadline_t deadline;
	vez_cancel_t own;
	int rc;
	int errno_after;
};

static void wait_in_room(void *arg)
{
	struct waiter *w = arg;
	vez_deadline_t far = w->deadline ? w->deadline : vez_after_ms(3600000);
	vez_request_init(&w->r, NULL, NULL);
	vez_request_set_key(&w->r, w->key);
	vez_request_set_value(&w->r, w, w->value);
	vez_monitor_enter(w->m);
	errno = 66;
	w->rc = vez_monitor_wait(w->m, w->room, &w->r, form_has_deadline(w->form) ? far : VEZ_FOREVER,
				 form_has_token(w->form) ? &w->own : NULL);
	w->errno_after = errno;
}

/* Starts it; returns when its request is queued. */
static void waiter_start(struct waiter *w)
{
	size_t before = vez_room_length(w->room);
	thread_start(&w->thread, wait_in_room, w);
	UNTIL(vez_room_length(w->room) == before + 1)
		;
}

static int waiter_join(struct waiter *w)
{
	thread_join(&w->thread);
	EXPECT_EQ(w->errno_after, 66);
	return w->rc;
}

static bool waiter_blocked(struct waiter *w)
{
	uintptr_t word = 0;
	UNTIL(word - (uintptr_t)&w->r < sizeof w->r)
		word = thread_futex(&w->thread);
	return !thread_done(&w->thread);
}

static void settle_first(vez_monitor_t *m, vez_room_t *room, int result)
{
	vez_monitor_enter(m);
	EXPECT(vez_monitor_settle(m, vez_room_first(room), result));
	vez_monitor_exit(m);
}

#define WAITER(m_, room_, form_) { .m = (m_), .room = (room_), .form = (form_) }

/* Seen to fail: init that leaves the lock bit. */
Test(monitor, ALL_zero_bytes_are_a_monitor_and_a_room)
{
	vez_monitor_t made, zero, initialized = VEZ_MONITOR_INITIALIZER(NULL);
	vez_room_t room, empty = VEZ_ROOM_INITIALIZER;
	memset(&made, 0xa5, sizeof made);
	memset(&zero, 0, sizeof zero);
	memset(&room, 0xa5, sizeof room);
	vez_monitor_init(&made, NULL);
	vez_room_init(&room);
	EXPECT_EQ(memcmp(&made, &zero, sizeof made), 0);
	EXPECT_EQ(memcmp(&initialized, &zero, sizeof made), 0);
	EXPECT_EQ(memcmp(&room, &empty, sizeof room), 0);
	EXPECT(vez_room_first(&room) == NULL);
	EXPECT_EQ(vez_room_length(&room), 0);
	EXPECT_EQ(vez_monitor_destroy(&made), 0);
}

/* Seen to fail: settle that fixes the result at 0; exit that publishes nothing. */
Test(monitor, ALL_a_wait_returns_what_was_settled)
{
	static const int results[] = { 0, 1, -1, EBUSY, INT32_MAX, INT32_MIN };
	EACH_VARIANT(v, FIFO_ONLY) {
		for (unsigned i = 0; i < sizeof results / sizeof results[0]; i++) {
			vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
			vez_room_t room = VEZ_ROOM_INITIALIZER;
			struct waiter w = WAITER(&m, &room, v->form);
			waiter_start(&w);
			EXPECT(waiter_blocked(&w));
			settle_first(&m, &room, results[i]);
			EXPECT_EQ(waiter_join(&w), results[i]);
			EXPECT_EQ(vez_room_length(&room), 0);
			EXPECT_EQ(vez_monitor_destroy(&m), 0);
		}
	}
}

/* Seen to fail: settle that publishes at once; settle that leaves the request in its room. */
Test(monitor, ALL_settled_inside_and_published_by_the_exit)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter a = WAITER(&m, &room, v->form), b = a;
		waiter_start(&a);
		waiter_start(&b);
		EXPECT(waiter_blocked(&a));
		EXPECT(waiter_blocked(&b));
		vez_monitor_enter(&m);
		vez_request_t *first = vez_room_first(&room), *second = vez_room_next(&room, first);
		EXPECT(first == &a.r && second == &b.r);
		EXPECT(vez_room_next(&room, second) == NULL);
		EXPECT(vez_monitor_settle(&m, first, 11));
		EXPECT(vez_room_first(&room) == second);
		EXPECT_EQ(vez_room_length(&room), 1);
		EXPECT(vez_monitor_settle(&m, second, 12));
		EXPECT(vez_room_first(&room) == NULL);
		EXPECT_EQ(vez_room_length(&room), 0);
		vez_cancel_fire(&a.own);
		EXPECT(waiter_blocked(&a));
		EXPECT(waiter_blocked(&b));
		EXPECT_EQ(inject_wakes(), 0);
		vez_monitor_exit(&m);
		EXPECT_EQ(waiter_join(&a), 11);
		EXPECT_EQ(waiter_join(&b), 12);
		EXPECT_EQ(inject_wakes(), 2);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* Seen to fail: settle that does not ask whether the request is queued. */
Test(monitor, ALL_settled_twice_is_settled_once)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter w = WAITER(&m, &room, v->form);
		waiter_start(&w);
		vez_monitor_enter(&m);
		EXPECT(!vez_monitor_settle_unqueued(&m, &w.r, 10));
		EXPECT_EQ(vez_room_length(&room), 1);
		EXPECT(vez_monitor_settle(&m, &w.r, 11));
		EXPECT(!vez_monitor_settle(&m, &w.r, 12));
		EXPECT(!vez_monitor_settle_unqueued(&m, &w.r, 13));
		vez_monitor_exit(&m);
		EXPECT_EQ(waiter_join(&w), 11);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* Seen to fail: settle_unqueued that decides what is complete anew when it is asked by settle. */
Test(monitor, ALL_what_is_queued_nowhere_is_settled_at_once)
{
	vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
	vez_request_t r;
	vez_request_init(&r, NULL, NULL);
	vez_monitor_enter(&m);
	EXPECT(vez_monitor_settle_unqueued(&m, &r, 7));
	EXPECT_EQ(vez_request_result(&r), 7);
	EXPECT(!vez_monitor_settle(&m, &r, 8));
	EXPECT_EQ(vez_request_result(&r), 7);
	vez_monitor_exit(&m);
	EXPECT_EQ(vez_monitor_destroy(&m), 0);
}

/* Seen to fail: settle_unqueued that begins a member which is complete anew. */
Test(monitor, ALL_a_member_is_settled_once)
{
	vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
	vez_select_t any;
	vez_request_t r, *winner = NULL;
	vez_select_init(&any);
	vez_monitor_enter(&m);
	EXPECT(vez_monitor_settle_unqueued(&m, vez_select_case(&any, &r), 0));
	EXPECT(!vez_monitor_settle_unqueued(&m, &r, 0));
	vez_monitor_exit(&m);
	EXPECT_EQ(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner), 0);
	EXPECT(winner == &r);
	EXPECT_EQ(vez_monitor_destroy(&m), 0);
}

static vez_monitor_t timed = VEZ_MONITOR_INITIALIZER(NULL);
static int made_outside;

static void note_where(void)
{
	made_outside += LOAD(&timed.core_.word_) & VEZ__LOCKED ? -100 : 1;
}

static void count_result(vez_request_t *r, int result, void *arg)
{
	(void)r;
	*(int *)arg += result;
}

/* No thread is made inside; while it is made another thread may use the monitor and let the request go. Seen to fail:
 * wait_async that makes the thread before it leaves. */
Test(monitor, ALL_the_librarys_thread_is_made_outside)
{
	vez_room_t room = VEZ_ROOM_INITIALIZER;
	vez_request_t r;
	int told = 0;
	inject_reset(FAULT_NONE);
	inject_before_thread(note_where);
	vez_request_init(&r, count_result, &told);
	vez_request_set_limits(&r, vez_after_ms(3600000), NULL);
	vez_monitor_enter(&timed);
	EXPECT_EQ(vez_monitor_wait_async(&timed, &room, &r), EINPROGRESS);
	EXPECT_EQ(made_outside, 1);
	EXPECT_EQ(vez_room_length(&room), 1);
	settle_first(&timed, &room, 5);
	EXPECT_EQ(vez_request_wait(&r, VEZ_FOREVER, NULL), 0);
	EXPECT_EQ(told, 5);
	EXPECT_EQ(vez_monitor_destroy(&timed), 0);
}

static vez_room_t timed_room = VEZ_ROOM_INITIALIZER;

static vez_request_t *awaited;
static struct thread awaiting;

static void await_it(void *r)
{
	EXPECT_EQ(vez_request_wait(r, VEZ_FOREVER, NULL), 0);
}

/* Another thread waits for the request when it is let go. */
static void settle_meanwhile(void)
{
	thread_start(&awaiting, await_it, awaited);
	thread_await_parked(&awaiting);
	vez_monitor_enter(&timed);
	vez_monitor_settle(&timed, vez_room_first(&timed_room), 6);
	vez_monitor_exit(&timed);
}

/* Then it is granted at once, and nothing is called. Seen to fail: a call that files it and does not
 * count as inside; one that does not tell those who wait for the request. */
Test(monitor, ALL_let_go_while_the_librarys_thread_is_made)
{
	for (int none = 1; none >= 0; none--) {
		vez_request_t r;
		int told = 0;
		inject_reset(FAULT_NONE);
		inject_no_thread(none);
		inject_before_thread(settle_meanwhile);
		vez_request_init(&r, count_result, &told);
		vez_request_set_limits(&r, vez_after_ms(3600000), NULL);
		awaited = &r;
		vez_monitor_enter(&timed);
		EXPECT_EQ(vez_monitor_wait_async(&timed, &timed_room, &r), 6);
		EXPECT_EQ(vez_request_wait(&r, VEZ_FOREVER, NULL), 0);
		thread_join(&awaiting);
		EXPECT_EQ(vez_request_result(&r), 6);
		EXPECT_EQ(told, 0);
		EXPECT_EQ(vez_room_length(&timed_room), 0);
	}
	EXPECT_EQ(vez_monitor_destroy(&timed), 0);
}

/* Seen to fail: settle that takes the first of the room, whatever it is given. */
Test(monitor, ALL_any_request_may_be_settled)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t rooms[2] = { VEZ_ROOM_INITIALIZER, VEZ_ROOM_INITIALIZER };
		struct waiter w[4];
		for (int i = 0; i < 4; i++) {
			w[i] = (struct waiter)WAITER(&m, &rooms[i / 3], v->form);
			waiter_start(&w[i]);
		}
		vez_monitor_enter(&m);
		EXPECT(vez_monitor_settle(&m, &w[1].r, 1));
		EXPECT(vez_monitor_settle(&m, &w[3].r, 3));
		vez_monitor_exit(&m);
		EXPECT_EQ(waiter_join(&w[1]), 1);
		EXPECT_EQ(waiter_join(&w[3]), 3);
		EXPECT_EQ(vez_room_length(&rooms[0]), 2);
		EXPECT_EQ(vez_room_length(&rooms[1]), 0);
		EXPECT(waiter_blocked(&w[0]));
		EXPECT(waiter_blocked(&w[2]));
		settle_first(&m, &rooms[0], 0);
		EXPECT_EQ(waiter_join(&w[0]), 0);
		settle_first(&m, &rooms[0], 2);
		EXPECT_EQ(waiter_join(&w[2]), 2);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* Seen to fail: last_not_after that compares with >=. */
Test(monitor, ALL_rooms_are_ordered_by_key_then_by_arrival)
{
	static const int64_t keys[] = { 0, 7, -7, 0, INT64_MAX, INT64_MIN, 7, -7 };
	static const int order[] = { 5, 2, 7, 0, 3, 1, 6, 4 };
	enum { WAITERS = 8 };
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter w[WAITERS];
		for (int i = 0; i < WAITERS; i++) {
			w[i] = (struct waiter)WAITER(&m, &room, v->form);
			w[i].key = keys[i];
			w[i].value = (uint64_t)i;
			waiter_start(&w[i]);
		}
		vez_monitor_enter(&m);
		vez_request_t *r = vez_room_first(&room);
		for (int i = 0; i < WAITERS; i++) {
			EXPECT_EQ(vez_request_value(r), order[i]);
			EXPECT(vez_request_ptr(r) == &w[order[i]]);
			vez_request_t *next = vez_room_next(&room, r);
			EXPECT(vez_monitor_settle(&m, r, i));
			r = next;
		}
		EXPECT(r == NULL);
		vez_monitor_exit(&m);
		for (int i = 0; i < WAITERS; i++)
			EXPECT_EQ(waiter_join(&w[order[i]]), i);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* ---- giving up ---- */

static int gave_up_calls;
static vez_request_t *gave_up_request;
static vez_room_t *gave_up_room;
static size_t gave_up_length;

/* Lets go the first of those that are left. */
static void let_the_next_go(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	gave_up_calls++;
	gave_up_request = r;
	gave_up_room = room;
	gave_up_length = vez_room_length(room);
	if (vez_room_first(room))
		vez_monitor_settle(m, vez_room_first(room), 100);
}

/* Seen to fail: wait that queues first and looks at its limits then; one that asks the deadline before the token. */
Test(monitor, ALL_01_a_wait_that_may_not_begin_leaves_the_monitor)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(let_the_next_go);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		vez_request_t r = VEZ_REQUEST_INITIALIZER;
		vez_cancel_t fired = VEZ_CANCEL_INITIALIZER, live = VEZ_CANCEL_INITIALIZER;
		struct waiter other = WAITER(&m, &room, v->form);
		vez_cancel_fire(&fired);
		gave_up_calls = 0;
		waiter_start(&other);
		for (vez_deadline_t limit = 0; limit >= -1; limit--) {
			vez_monitor_enter(&m);
			EXPECT_EQ(vez_monitor_wait(&m, &room, &r, limit, NULL), ETIMEDOUT);
			vez_monitor_enter(&m);
			EXPECT_EQ(vez_monitor_wait(&m, &room, &r, limit, &live), ETIMEDOUT);
			vez_monitor_enter(&m);
			EXPECT_EQ(vez_monitor_wait(&m, &room, &r, limit, &fired), ECANCELED);
		}
		vez_monitor_enter(&m);
		EXPECT_EQ(vez_monitor_wait(&m, &room, &r, VEZ_FOREVER, &fired), ECANCELED);
		vez_monitor_enter(&m);
		EXPECT_EQ(vez_monitor_wait(&m, &room, &r, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(gave_up_calls, 0);
		EXPECT_EQ(vez_room_length(&room), 1);
		EXPECT(waiter_blocked(&other));
		settle_first(&m, &room, 0);
		EXPECT_EQ(waiter_join(&other), 0);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* Seen to fail: a wait without the right to begin that does not publish what was settled before it. */
Test(monitor, ALL_a_refused_wait_publishes_what_was_settled)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		vez_request_t r = VEZ_REQUEST_INITIALIZER;
		struct waiter w = WAITER(&m, &room, v->form);
		waiter_start(&w);
		vez_monitor_enter(&m);
		EXPECT(vez_monitor_settle(&m, &w.r, 5));
		EXPECT_EQ(vez_monitor_wait(&m, &room, &r, VEZ_NOW, NULL), ETIMEDOUT);
		EXPECT_EQ(waiter_join(&w), 5);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

static void expect_let_go(struct waiter *leaving, int rc, struct waiter *next)
{
	EXPECT_EQ(waiter_join(leaving), rc);
	EXPECT_EQ(waiter_join(next), 100);
	EXPECT_EQ(gave_up_calls, 1);
	EXPECT(gave_up_request == &leaving->r);
	EXPECT(gave_up_room == leaving->room);
	EXPECT_EQ(gave_up_length, 1);
	EXPECT_EQ(vez_monitor_destroy(leaving->m), 0);
}

/* Seen to fail: give_up that does not call gave_up, or calls it before the request has left. */
Test(monitor, A01_who_is_cancelled_lets_the_next_go)
{
	EACH_VARIANT(v, FIFO_ONLY | WITH_TOKEN) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(let_the_next_go);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter a = WAITER(&m, &room, v->form), b = a;
		gave_up_calls = 0;
		waiter_start(&a);
		waiter_start(&b);
		vez_cancel_fire(&a.own);
		expect_let_go(&a, ECANCELED, &b);
	}
}

/* Seen to fail: as above. */
Test(monitor, A01_who_times_out_lets_the_next_go)
{
	EACH_VARIANT(v, FIFO_ONLY | WITH_DEADLINE) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(let_the_next_go);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter a = WAITER(&m, &room, v->form), b = WAITER(&m, &room, UNTIMED);
		inject_clock(NOON);
		gave_up_calls = 0;
		a.deadline = NOON + 50;
		waiter_start(&a);
		waiter_start(&b);
		EXPECT(waiter_blocked(&a));
		inject_clock(NOON + 50);
		thread_kick(&a.thread);
		expect_let_go(&a, ETIMEDOUT, &b);
	}
}

/* Seen to fail: await that asks the clock, or its token, and not its request. */
Test(monitor, B03_C04_what_was_settled_stands)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(let_the_next_go);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter a = WAITER(&m, &room, v->form), b = WAITER(&m, &room, UNTIMED);
		inject_clock(NOON);
		a.deadline = NOON + 50;
		gave_up_calls = 0;
		waiter_start(&a);
		waiter_start(&b);
		EXPECT(waiter_blocked(&a));
		thread_freeze(&a.thread);
		settle_first(&m, &room, 42);
		vez_cancel_fire(&a.own);
		inject_clock(NOON + 100);
		thread_thaw(&a.thread);
		EXPECT_EQ(waiter_join(&a), 42);
		EXPECT_EQ(gave_up_calls, 0);
		EXPECT(waiter_blocked(&b));
		settle_first(&m, &room, 43);
		EXPECT_EQ(waiter_join(&b), 43);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* The one who gives up, by deadline, finds the monitor busy, and is settled by the one inside. */
Test(monitor, C04_settled_on_the_way_in)
{
	/* Seen to fail: settle that publishes a request whose thread is coming in (its stack is used after). */
	EACH_VARIANT(v, FIFO_ONLY | WITH_DEADLINE) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(let_the_next_go);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		struct waiter a = WAITER(&m, &room, v->form);
		inject_clock(NOON);
		a.deadline = NOON + 50;
		gave_up_calls = 0;
		waiter_start(&a);
		EXPECT(waiter_blocked(&a));
		vez_monitor_enter(&m);
		inject_clock(NOON + 50);
		thread_kick(&a.thread);
		UNTIL(thread_futex(&a.thread) - (uintptr_t)&m < sizeof m)
			;
		EXPECT(vez_monitor_settle(&m, &a.r, 9));
		vez_monitor_exit(&m);
		EXPECT_EQ(waiter_join(&a), 9);
		EXPECT_EQ(gave_up_calls, 0);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* ---- a wait that lets go of something else as well ---- */

struct doorway {
	vez_monitor_t m, outer; /* outer, or mutex, is let go by who waits */
	vez_room_t room;
	vez_mutex_t mutex;
	bool by_mutex, found;
	struct gate let_go;
	int rc;
};

static void hold_other(struct doorway *d)
{
	if (d->by_mutex)
		EXPECT_EQ(vez_mutex_lock(&d->mutex), 0);
	else
		vez_monitor_enter(&d->outer);
}

static void let_other_go(struct doorway *d)
{
	if (d->by_mutex)
		EXPECT_EQ(vez_mutex_unlock(&d->mutex), 0);
	else
		vez_monitor_exit(&d->outer);
}

static void wait_letting_go(void *arg)
{
	struct doorway *d = arg;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	hold_other(d);
	vez_monitor_enter(&d->m);
	let_other_go(d);
	gate_pass(&d->let_go);
	d->rc = vez_monitor_wait(&d->m, &d->room, &r, VEZ_FOREVER, NULL);
}

/* Comes in as soon as it can. */
static void let_first_go(void *arg)
{
	struct doorway *d = arg;
	hold_other(d);
	let_other_go(d);
	vez_monitor_enter(&d->m);
	vez_request_t *first = vez_room_first(&d->room);
	d->found = first && vez_monitor_settle(&d->m, first, 5);
	vez_monitor_exit(&d->m);
}

/* What vez/monitor.h says of it: let go inside, right before the wait, nothing is missed. Seen to fail: wait_letting_go
 * that enters the monitor after it has let go (found is false). */
Test(monitor, ALL_a_wait_that_lets_go_of_something_else)
{
	for (int by_mutex = 0; by_mutex < 2; by_mutex++) {
		struct doorway d = { .m = VEZ_MONITOR_INITIALIZER(NULL), .outer = VEZ_MONITOR_INITIALIZER(NULL),
				     .by_mutex = by_mutex };
		struct thread waits = { 0 }, comes = { 0 };
		gate_init(&d.let_go);
		thread_start(&waits, wait_letting_go, &d);
		gate_await(&d.let_go, 1);
		thread_start(&comes, let_first_go, &d);
		UNTIL(thread_done(&comes) || thread_futex(&comes) - (uintptr_t)&d.m < sizeof d.m)
			;
		gate_open(&d.let_go);
		thread_join(&comes);
		EXPECT(d.found);
		thread_join(&waits);
		EXPECT_EQ(d.rc, 5);
		EXPECT_EQ(vez_monitor_destroy(&d.m), 0);
		EXPECT_EQ(vez_monitor_destroy(&d.outer), 0);
	}
}

/* ---- destroy ---- */

/* Seen to fail: destroy that does not look at the lock; one that does not look at the rooms. */
Test(monitor, ALL_destroy_while_in_use_is_refused)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t room = VEZ_ROOM_INITIALIZER;
		vez_monitor_enter(&m);
		EXPECT_EQ(vez_monitor_destroy(&m), EBUSY);
		vez_monitor_exit(&m);
		struct waiter w = WAITER(&m, &room, v->form);
		waiter_start(&w);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(vez_monitor_destroy(&m), EBUSY);
		EXPECT_EQ(vez_monitor_destroy(&m), EBUSY);
		settle_first(&m, &room, 3);
		EXPECT_EQ(waiter_join(&w), 3);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

static void settle_and_stop(void *arg)
{
	struct waiter *w = arg;
	stops_before_wake = true;
	vez_monitor_enter(w->m);
	vez_monitor_settle(w->m, &w->r, 4);
	vez_monitor_exit(w->m);
}

/* Seen to fail: vez__leave_pending that touches the monitor after it has left. */
Test(monitor, A06_I03_the_monitor_may_go_before_the_wake_is_sent)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		struct pair {
			vez_monitor_t m;
			vez_room_t room;
		} *one = guard_new(sizeof *one), *other = guard_new(sizeof *other);
		struct waiter w = WAITER(&one->m, &one->room, v->form);
		struct thread settler = { 0 };
		waiter_start(&w);
		EXPECT(waiter_blocked(&w));
		gate_init(&before_wake);
		inject_before_wake(stop_before_wake);
		thread_start(&settler, settle_and_stop, &w);
		gate_await(&before_wake, 1);
		thread_kick(&w.thread);
		EXPECT_EQ(waiter_join(&w), 4);
		EXPECT_EQ(vez_monitor_destroy(&one->m), 0);
		guard_close(one);
		/* The same request waits elsewhere at once; the late wake is no more than a stray one. */
		w = (struct waiter)WAITER(&other->m, &other->room, v->form);
		waiter_start(&w);
		EXPECT(waiter_blocked(&w));
		gate_open(&before_wake);
		thread_join(&settler);
		EXPECT(waiter_blocked(&w));
		EXPECT_EQ(vez_room_length(&other->room), 1);
		settle_first(&other->m, &other->room, 6);
		EXPECT_EQ(waiter_join(&w), 6);
		EXPECT_EQ(vez_monitor_destroy(&other->m), 0);
		guard_free(one);
		guard_free(other);
	}
}

/* ---- a semaphore built on it, used by many ---- */

struct user_sem {
	vez_monitor_t m;
	vez_room_t room;
	uint64_t permits;
};

/* Inside. */
static void user_grant(struct user_sem *s)
{
	vez_request_t *r;
	while ((r = vez_room_first(&s->room)) && vez_request_value(r) <= s->permits) {
		s->permits -= vez_request_value(r);
		vez_monitor_settle(&s->m, r, 0);
	}
}

static void user_gave_up(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	(void)room;
	(void)r;
	user_grant((struct user_sem *)m);
}

static int user_acquire(struct user_sem *s, uint64_t n, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_monitor_enter(&s->m);
	if (!vez_room_first(&s->room) && n <= s->permits) {
		s->permits -= n;
		vez_monitor_exit(&s->m);
		return 0;
	}
	vez_request_set_value(&r, NULL, n);
	return vez_monitor_wait(&s->m, &s->room, &r, deadline, cancel);
}

static void user_release(struct user_sem *s, uint64_t n)
{
	vez_monitor_enter(&s->m);
	s->permits += n;
	user_grant(s);
	vez_monitor_exit(&s->m);
}

struct user {
	struct thread thread;
	struct user_sem *s;
	unsigned number;
	uint64_t *in_use;
	uint64_t most;
	bool wrong;
};

static void use(void *arg)
{
	struct user *u = arg;
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t n = 1 + (i + u->number) % 3;
		int rc = user_acquire(u->s, n, i % 4 == 0 ? vez_after_us(5) : VEZ_FOREVER, NULL);
		u->wrong |= rc != 0 && (rc != ETIMEDOUT || i % 4 != 0);
		if (rc != 0)
			continue;
		uint64_t in_use = ADD(u->in_use, n);
		u->most = in_use > u->most ? in_use : u->most;
		ADD(u->in_use, -n);
		user_release(u->s, n);
	}
}

/* Seen to fail: leave_queue that does not shorten the room; as A01 (by hanging). */
Test(monitor, ALL_04_permits_are_conserved)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		struct user_sem s = { VEZ_MONITOR_INITIALIZER(user_gave_up), VEZ_ROOM_INITIALIZER, 4 };
		struct user u[4];
		uint64_t in_use = 0;
		for (unsigned i = 0; i < 4; i++) {
			u[i] = (struct user){ .s = &s, .number = i, .in_use = &in_use };
			thread_start(&u[i].thread, use, &u[i]);
		}
		for (int i = 0; i < 4; i++) {
			thread_join(&u[i].thread);
			EXPECT(!u[i].wrong);
			EXPECT(u[i].most <= 4);
		}
		EXPECT_EQ(s.permits, 4);
		EXPECT_EQ(vez_room_length(&s.room), 0);
		EXPECT_EQ(vez_monitor_destroy(&s.m), 0);
	}
}

/* ---- moved, and kept ---- */

static struct {
	vez_room_t *room;
	vez_request_t *r;
	int calls;
} left;

static void note_left(vez_monitor_t *m, vez_room_t *room, vez_request_t *r)
{
	(void)m;
	left.room = room;
	left.r = r;
	left.calls++;
}

/* Seen to fail: move that leaves it counted where it was. */
Test(monitor, ALL_moved_to_another_room)
{
	EACH_VARIANT(v, FIFO_ONLY) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
		vez_room_t from = VEZ_ROOM_INITIALIZER, to = VEZ_ROOM_INITIALIZER;
		struct waiter w[3];
		for (int i = 0; i < 3; i++) {
			w[i] = (struct waiter)WAITER(&m, i == 2 ? &to : &from, v->form);
			w[i].key = 3;
			waiter_start(&w[i]);
		}
		vez_monitor_enter(&m);
		EXPECT(vez_monitor_move(&m, &to, &w[0].r));
		EXPECT(vez_room_first(&from) == &w[1].r && vez_room_next(&from, &w[1].r) == NULL);
		EXPECT(vez_room_first(&to) == &w[2].r && vez_room_next(&to, &w[2].r) == &w[0].r);
		vez_request_set_key(&w[1].r, 2);
		EXPECT(vez_monitor_move(&m, &to, &w[1].r));
		EXPECT(vez_room_first(&to) == &w[1].r);
		vez_request_set_key(&w[1].r, 4);
		EXPECT(vez_monitor_move(&m, &to, &w[1].r)); /* the same */
		EXPECT(vez_room_next(&to, &w[0].r) == &w[1].r);
		EXPECT_EQ(vez_room_length(&from), 0);
		EXPECT_EQ(vez_room_length(&to), 3);
		vez_monitor_exit(&m);
		EXPECT_EQ(inject_wakes(), 0);
		for (int i = 0; i < 3; i++)
			EXPECT(waiter_blocked(&w[i]));
		EXPECT_EQ(vez_monitor_destroy(&m), EBUSY);
		vez_monitor_enter(&m);
		EXPECT(vez_monitor_settle(&m, &w[0].r, 10));
		EXPECT(!vez_monitor_move(&m, &from, &w[0].r));
		EXPECT(!vez_monitor_keep(&m, &w[0].r));
		EXPECT(vez_monitor_settle(&m, &w[1].r, 11));
		EXPECT(vez_monitor_settle(&m, &w[2].r, 12));
		vez_monitor_exit(&m);
		for (int i = 0; i < 3; i++)
			EXPECT_EQ(waiter_join(&w[i]), 10 + i);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* Its limits go with it. Seen to fail: move that makes it uncancellable. */
Test(monitor, ALL_moved_with_its_limits)
{
	EACH_VARIANT(v, FIFO_ONLY | WITH_TOKEN) {
		for (int by_deadline = 0; by_deadline <= form_has_deadline(v->form); by_deadline++) {
			vez_monitor_t m = VEZ_MONITOR_INITIALIZER(note_left);
			vez_room_t from = VEZ_ROOM_INITIALIZER, to = VEZ_ROOM_INITIALIZER;
			struct waiter w = WAITER(&m, &from, v->form);
			inject_clock(NOON);
			w.deadline = NOON + HOUR;
			waiter_start(&w);
			vez_monitor_enter(&m);
			EXPECT(vez_monitor_move(&m, &to, &w.r));
			vez_monitor_exit(&m);
			EXPECT(waiter_blocked(&w));
			left.calls = 0;
			if (by_deadline) {
				inject_clock(NOON + HOUR);
				thread_kick(&w.thread);
			} else {
				vez_cancel_fire(&w.own);
			}
			EXPECT_EQ(waiter_join(&w), by_deadline ? ETIMEDOUT : ECANCELED);
			EXPECT_EQ(left.calls, 1);
			EXPECT(left.room == &to && left.r == &w.r);
			EXPECT_EQ(vez_room_length(&to), 0);
			EXPECT_EQ(vez_monitor_destroy(&m), 0);
			inject_clock(0);
		}
	}
}

/* Whatever it has reached. Seen to fail: keep that does nothing. */
Test(monitor, ALL_kept_until_it_is_settled)
{
	EACH_VARIANT(v, FIFO_ONLY | WITH_TOKEN) {
		for (int by_deadline = 0; by_deadline <= form_has_deadline(v->form); by_deadline++) {
			vez_monitor_t m = VEZ_MONITOR_INITIALIZER(note_left);
			vez_room_t room = VEZ_ROOM_INITIALIZER;
			struct waiter w = WAITER(&m, &room, v->form);
			inject_clock(NOON);
			w.deadline = NOON + HOUR;
			waiter_start(&w);
			EXPECT(waiter_blocked(&w));
			left.calls = 0;
			vez_monitor_enter(&m);
			EXPECT(vez_monitor_keep(&m, &w.r));
			EXPECT(vez_monitor_keep(&m, &w.r));
			vez_monitor_exit(&m);
			if (by_deadline) {
				inject_clock(NOON + HOUR);
				thread_kick(&w.thread);
			} else {
				vez_cancel_fire(&w.own);
			}
			EXPECT(waiter_blocked(&w));
			EXPECT_EQ(vez_room_length(&room), 1);
			settle_first(&m, &room, 5);
			EXPECT_EQ(waiter_join(&w), 5);
			EXPECT_EQ(left.calls, 0);
			EXPECT_EQ(vez_monitor_destroy(&m), 0);
			inject_clock(0);
		}
	}
}

static void fire(void *token)
{
	vez_cancel_fire(token);
}

/* It is kept while its own thread, or the one that fires, stands before the monitor because of it. Seen to fail: keep
 * that does not note it (KEPT). */
Test(monitor, ALL_kept_from_who_is_about_to_end_it)
{
	EACH_VARIANT(v, FIFO_ONLY | WITH_TOKEN) {
		for (int by_deadline = 0; by_deadline <= form_has_deadline(v->form); by_deadline++) {
			vez_monitor_t m = VEZ_MONITOR_INITIALIZER(note_left);
			vez_room_t room = VEZ_ROOM_INITIALIZER, other = VEZ_ROOM_INITIALIZER;
			struct waiter w = WAITER(&m, &room, v->form);
			struct thread firing = { 0 };
			inject_clock(NOON);
			w.deadline = NOON + HOUR;
			left.calls = 0;
			waiter_start(&w);
			EXPECT(waiter_blocked(&w));
			vez_monitor_enter(&m);
			if (by_deadline) {
				inject_clock(NOON + HOUR);
				thread_kick(&w.thread);
			} else {
				thread_start(&firing, fire, &w.own);
			}
			UNTIL(LOAD(&w.r.word_) & (by_deadline ? VEZ__ENTERING : VEZ__FIRED));
			EXPECT(vez_monitor_keep(&m, &w.r));
			EXPECT(vez_monitor_move(&m, &other, &w.r));
			vez_monitor_exit(&m);
			if (!by_deadline)
				thread_join(&firing);
			EXPECT(waiter_blocked(&w));
			EXPECT_EQ(vez_room_length(&other), 1);
			settle_first(&m, &other, 5);
			EXPECT_EQ(waiter_join(&w), 5);
			EXPECT_EQ(left.calls, 0);
			EXPECT_EQ(vez_monitor_destroy(&m), 0);
			inject_clock(0);
		}
	}
}

/* Seen to fail: vez__end_announced that does not ask whether it is kept. */
Test(monitor, ALL_an_asynchronous_request_is_moved_and_kept)
{
	enum { MOVED, KEPT_BEFORE, KEPT_LATE, WAYS };
	for (int way = 0; way < WAYS; way++) {
		vez_monitor_t m = VEZ_MONITOR_INITIALIZER(note_left);
		vez_room_t room = VEZ_ROOM_INITIALIZER, other = VEZ_ROOM_INITIALIZER;
		vez_request_t r;
		int told = 0;
		left.calls = 0;
		vez_request_init(&r, count_result, &told);
		vez_request_set_limits(&r, way == KEPT_LATE ? vez_after_ms(3) : vez_after_s(3600), NULL);
		vez_monitor_enter(&m);
		int rc = vez_monitor_wait_async(&m, &room, &r);
		vez_monitor_enter(&m);
		if (rc != EINPROGRESS || vez_room_length(&room) == 0) { /* late */
			vez_monitor_exit(&m);
			way--;
			continue;
		}
		if (way == KEPT_LATE)
			UNTIL(LOAD(&r.word_) & VEZ__ENTERING);
		EXPECT(vez_monitor_move(&m, &other, &r));
		if (way != MOVED)
			EXPECT(vez_monitor_keep(&m, &r));
		vez_monitor_exit(&m);
		UNTIL(!(LOAD(&r.word_) & VEZ__ENTERING));
		EXPECT_EQ(vez_request_cancel(&r), way == MOVED ? 0 : EALREADY);
		EXPECT_EQ(vez_request_result(&r), way == MOVED ? ECANCELED : EINPROGRESS);
		EXPECT_EQ(left.calls, way == MOVED);
		if (way != MOVED)
			settle_first(&m, &other, 5);
		EXPECT_EQ(vez_request_wait(&r, VEZ_FOREVER, NULL), 0);
		EXPECT_EQ(told, way == MOVED ? ECANCELED : 5);
		EXPECT_EQ(vez_monitor_destroy(&m), 0);
	}
}

/* Seen to fail: keep that keeps a member. */
Test(monitor, ALL_a_member_is_moved_and_not_kept)
{
	vez_monitor_t m = VEZ_MONITOR_INITIALIZER(NULL);
	vez_room_t room = VEZ_ROOM_INITIALIZER, other = VEZ_ROOM_INITIALIZER;
	vez_event_t e = VEZ_EVENT_INITIALIZER;
	vez_request_t r, won, *winner = NULL;
	vez_select_t any;
	vez_select_init(&any);
	vez_monitor_enter(&m);
	EXPECT_EQ(vez_monitor_wait_async(&m, &room, vez_select_case(&any, &r)), EINPROGRESS);
	EXPECT_EQ(vez_event_wait_async(&e, vez_select_case(&any, &won)), EINPROGRESS);
	vez_monitor_enter(&m);
	EXPECT(!vez_monitor_keep(&m, &r));
	EXPECT(vez_monitor_move(&m, &other, &r));
	vez_monitor_exit(&m);
	vez_event_set(&e);
	EXPECT_EQ(vez_select_wait(&any, VEZ_FOREVER, NULL, &winner), 0);
	EXPECT(winner == &won);
	EXPECT_EQ(vez_room_length(&other), 0);
	EXPECT_EQ(vez_monitor_destroy(&m), 0);
}
