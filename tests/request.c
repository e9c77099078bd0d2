/* SPDX-License-Identifier: MIT */
/* A request's public fields, its use for one wait after another, and requests that no thread waits for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vez.h>

#include "async.h"
#include "guard.h"
#include "sync/alarm.h"

TestSuite(request, .timeout = 120);

#define MS INT64_C(1000000)

/* The clock stands, later than ever before: the library's own thread does not expect it to go back. */
static int64_t stop_the_clock(void)
{
	static int64_t noon;
	noon = noon ? noon + 1000 : real_now() + INT64_C(43200) * 1000 * MS;
	inject_clock(noon);
	return noon;
}

/* Seen to fail: init that leaves the key. */
Test(request, ALL_init_makes_what_zero_bytes_are)
{
	vez_request_t made, zero, initialized = VEZ_REQUEST_INITIALIZER;
	memset(&made, 0xa5, sizeof made);
	memset(&zero, 0, sizeof zero);
	vez_request_init(&made, NULL, NULL);
	EXPECT_EQ(memcmp(&made, &zero, sizeof made), 0);
	EXPECT_EQ(memcmp(&initialized, &zero, sizeof zero), 0);
	EXPECT(vez_request_ptr(&made) == NULL);
	EXPECT_EQ(vez_request_word(&made), 0);
}

/* Seen to fail: set_value that keeps 32 bits. */
Test(request, ALL_values_are_kept)
{
	int here;
	vez_request_t r = VEZ_REQUEST_INITIALIZER;
	vez_request_set_value(&r, &here, UINT64_C(0xfedcba9876543210));
	vez_request_set_key(&r, INT64_MIN);
	EXPECT(vez_request_ptr(&r) == &here);
	EXPECT_EQ(vez_request_word(&r), UINT64_C(0xfedcba9876543210));
	vez_request_set_value(&r, NULL, 0);
	EXPECT(vez_request_ptr(&r) == NULL);
	EXPECT_EQ(vez_request_word(&r), 0);
}

struct waiter {
	struct thread thread;
	vez_monitor_t m;
	vez_room_t room;
	vez_request_t r;
	int results[3];
	int places[3];
};

static void wait_three_times(void *arg)
{
	struct waiter *w = arg;
	for (int i = 0; i < 3; i++) {
		vez_monitor_enter(&w->m);
		vez_request_set_value(&w->r, &w->places[i], 10 + (uint64_t)i);
		w->results[i] = vez_monitor_wait(&w->m, &w->room, &w->r, VEZ_FOREVER, NULL);
	}
}

/* Seen to fail: prepare that leaves DONE in the word: the second wait returns at once. */
Test(request, ALL_one_wait_after_another)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		struct waiter w = { .m = VEZ_MONITOR_INITIALIZER(NULL) };
		thread_start(&w.thread, wait_three_times, &w);
		for (int i = 0; i < 3; i++) {
			UNTIL(vez_room_length(&w.room) == 1)
				;
			vez_monitor_enter(&w.m);
			vez_request_t *first = vez_room_first(&w.room);
			EXPECT(first == &w.r);
			EXPECT_EQ(vez_request_word(first), 10 + i);
			*(int *)vez_request_ptr(first) = i + 1;
			EXPECT(vez_monitor_settle(&w.m, first, 20 + i));
			vez_monitor_exit(&w.m);
		}
		thread_join(&w.thread);
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(w.results[i], 20 + i);
			EXPECT_EQ(w.places[i], i + 1);
		}
		EXPECT_EQ(vez_monitor_destroy(&w.m), 0);
	}
}

/* ---- without a thread: every call that offers it ---- */

/* Makes the object where no byte was zero before, and a note for it. */
static void prepare(const struct async_kind *kind, union async_object *o, struct note *n)
{
	memset(o, 0xa5, sizeof *o);
	kind->make(o);
	memset(n, 0, sizeof *n);
	note_init(n);
}

/* Files it: it has to wait. */
static void file(const struct async_kind *kind, union async_object *o, struct note *n)
{
	size_t before = kind->waiters(o);
	errno = 99;
	CHECK_EQ(kind->file(o, n), EINPROGRESS);
	CHECK_EQ(errno, 99);
	CHECK_EQ(vez_request_result(&n->r), EINPROGRESS);
	CHECK_EQ(kind->waiters(o), before + 1);
	CHECK_EQ(n->calls, 0);
}

/* What is there was not taken by who gave up: the next one gets it. */
static void check_nothing_taken(const struct async_kind *kind, union async_object *o)
{
	struct note next = { .item = 5 };
	CHECK_EQ(kind->waiters(o), 0);
	if (!kind->keeps)
		return;
	note_init(&next);
	CHECK_EQ(kind->let_go(o), 0);
	CHECK_EQ(kind->file(o, &next), 0);
	CHECK_EQ(next.calls, 0);
}

/* Seen to fail: async_end that leaves the result EINPROGRESS; a queue that calls done for what it granted at once. */
Test(request, ALL_granted_at_once)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		if (!kind->keeps)
			continue;
		prepare(kind, &o, &n);
		CHECK_EQ(kind->let_go(&o), 0);
		errno = 99;
		CHECK_EQ(kind->file(&o, &n), 0);
		CHECK_EQ(errno, 99);
		CHECK_EQ(vez_request_result(&n.r), 0);
		CHECK_EQ(vez_request_wait(&n.r, VEZ_NOW, NULL), 0);
		CHECK_EQ(vez_request_cancel(&n.r), EALREADY);
		CHECK_EQ(n.calls, 0);
		CHECK_EMPTY(kind, &o);
		CHECK_EQ(n.calls, 0);
	}
}

/* Seen to fail: complete that tells before it publishes; append that keeps the last of several only (no call). */
Test(request, ALL_granted_later_calls_a_function)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		prepare(kind, &o, &n);
		file(kind, &o, &n);
		CHECK_EQ(kind->destroy(&o), EBUSY);
		errno = 99;
		CHECK_EQ(kind->let_go(&o), 0);
		CHECK_EQ(errno, 99);
		CHECK_COMPLETED(&n, 0);
		CHECK_EQ(n.by, own_tid());
		CHECK_EQ(vez_request_cancel(&n.r), EALREADY);
		CHECK_EQ(vez_request_wait(&n.r, VEZ_NOW, NULL), 0);
		CHECK_EMPTY(kind, &o);
		CHECK_EQ(n.calls, 1);
	}
}

/* Seen to fail: call that calls a function that is not there. */
Test(request, ALL_granted_later_calls_nothing)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		prepare(kind, &o, &n);
		vez_request_init(&n.r, NULL, NULL);
		file(kind, &o, &n);
		CHECK_EQ(vez_request_wait(&n.r, VEZ_NOW, NULL), ETIMEDOUT);
		CHECK_EQ(kind->let_go(&o), 0);
		CHECK_EQ(vez_request_wait(&n.r, VEZ_NOW, NULL), 0);
		CHECK_EQ(vez_request_result(&n.r), 0);
		CHECK_EMPTY(kind, &o);
	}
}

/* Seen to fail: tell that ticks twice; a tick for what was granted at once. */
Test(request, ASY_07_one_tick)
{
	int efd = new_eventfd();
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n, at_once;
		prepare(kind, &o, &n);
		vez_request_init_eventfd(&n.r, efd);
		file(kind, &o, &n);
		CHECK_EQ(ticks_in(efd), 0);
		CHECK_EQ(kind->let_go(&o), 0);
		CHECK_EQ(ticks_in(efd), 1);
		CHECK_EQ(vez_request_result(&n.r), 0);
		CHECK_EQ(vez_request_cancel(&n.r), EALREADY);
		vez_request_init_eventfd(&at_once.r, efd);
		if (kind->keeps) {
			prepare(kind, &o, &n);
			CHECK_EQ(kind->let_go(&o), 0);
			CHECK_EQ(kind->file(&o, &at_once), 0);
		}
		CHECK_EQ(ticks_in(efd), 0);
		prepare(kind, &o, &n);
		vez_request_init_eventfd(&n.r, efd);
		file(kind, &o, &n);
		CHECK_EQ(vez_request_cancel(&n.r), 0);
		CHECK_EQ(ticks_in(efd), 1);
		CHECK_EQ(vez_request_result(&n.r), ECANCELED);
		CHECK_EMPTY(kind, &o);
	}
	close(efd);
}

/* Seen to fail: completions_add that puts first. */
Test(request, ALL_joins_a_list)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n[3];
		vez_completions_t list;
		vez_completions_init(&list, -1);
		prepare(kind, &o, &n[0]);
		for (int i = 0; i < 3; i++) {
			memset(&n[i], 0, sizeof n[i]);
			vez_request_init_completions(&n[i].r, &list);
			file(kind, &o, &n[i]);
		}
		CHECK(vez_completions_next(&list) == NULL);
		CHECK_EQ(vez_request_cancel(&n[1].r), 0);
		for (int i = 0; i < 3; i++)
			kind->let_go(&o);
		CHECK(vez_completions_next(&list) == &n[1].r);
		CHECK(vez_completions_next(&list) == &n[0].r);
		CHECK(vez_completions_next(&list) == &n[2].r);
		CHECK(vez_completions_next(&list) == NULL);
		CHECK_EQ(vez_request_result(&n[0].r), 0);
		CHECK_EQ(vez_request_result(&n[1].r), ECANCELED);
		CHECK_EQ(vez_request_result(&n[2].r), 0);
		CHECK_EMPTY(kind, &o);
	}
}

struct blocked {
	struct thread thread;
	const struct async_kind *kind;
	union async_object *o;
	int item;
	int rc;
	int place; /* in the order of all that were let go */
};

static int served;

static void block(void *arg)
{
	struct blocked *b = arg;
	b->rc = b->kind->block(b->o, &b->item);
	b->place = ADD(&served, 1);
}

static void count_served(struct note *n)
{
	n->place = ADD(&served, 1);
}

static void start_blocked(struct blocked *b, const struct async_kind *kind, union async_object *o)
{
	size_t before = kind->waiters(o);
	memset(b, 0, sizeof *b);
	b->kind = kind;
	b->o = o;
	thread_start(&b->thread, block, b);
	UNTIL(kind->waiters(o) == before + 1);
}

/* Seen to fail: insert that puts asynchronous requests first; complete that calls functions in reverse order. */
Test(request, ALL_one_queue_with_threads)
{
	enum { PAIRS = 3 };
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n[PAIRS];
		struct blocked b[PAIRS];
		if (!kind->serial)
			continue;
		prepare(kind, &o, &n[0]);
		STORE(&served, 0);
		for (int i = 0; i < PAIRS; i++) {
			memset(&n[i], 0, sizeof n[i]);
			note_init(&n[i]);
			n[i].then = count_served;
			file(kind, &o, &n[i]);
			start_blocked(&b[i], kind, &o);
		}
		for (int i = 0; i < PAIRS; i++) {
			CHECK_EQ(kind->let_go(&o), 0);
			CHECK_COMPLETED(&n[i], 0);
			CHECK_EQ(n[i].place, 2 * i + 1);
			CHECK_EQ(kind->waiters(&o), 2 * (PAIRS - i) - 1);
			CHECK_EQ(kind->let_go(&o), 0);
			thread_join(&b[i].thread);
			CHECK_EQ(b[i].rc, 0);
			CHECK_EQ(b[i].place, 2 * i + 2);
		}
		CHECK_EMPTY(kind, &o);
	}
}

/* Seen to fail: place_before that ignores the key. */
Test(request, ALL_keys_order)
{
	enum { REQUESTS = 6 };
	static const int64_t keys[REQUESTS] = { 5, -3, 0, INT64_MAX, -3, INT64_MIN };
	static const int places[REQUESTS] = { 5, 2, 4, 6, 3, 1 };
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n[REQUESTS];
		if (!kind->serial)
			continue;
		prepare(kind, &o, &n[0]);
		notes_reset();
		for (int i = 0; i < REQUESTS; i++) {
			memset(&n[i], 0, sizeof n[i]);
			note_init(&n[i]);
			vez_request_set_key(&n[i].r, keys[i]);
			file(kind, &o, &n[i]);
		}
		for (int i = 0; i < REQUESTS; i++)
			CHECK_EQ(kind->let_go(&o), 0);
		for (int i = 0; i < REQUESTS; i++) {
			CHECK_COMPLETED(&n[i], 0);
			CHECK_EQ(n[i].place, places[i]);
		}
		CHECK_EMPTY(kind, &o);
	}
}

/* ---- limits ---- */

/* Seen to fail: is_late that takes 0 for never; async_end that says EINPROGRESS of what was not queued. */
Test(request, H02_deadline_past_on_entry)
{
	const vez_deadline_t past[] = { 0, 1, -1, VEZ_NOW, real_now() - 1, real_now() - INT64_C(315360000) * 1000 * MS };
	EACH_ASYNC(kind) {
		for (unsigned i = 0; i < sizeof past / sizeof past[0]; i++) {
			union async_object o;
			struct note n;
			prepare(kind, &o, &n);
			vez_request_set_limits(&n.r, past[i], NULL);
			CHECK_EQ(kind->file(&o, &n), ETIMEDOUT);
			CHECK_EQ(vez_request_result(&n.r), ETIMEDOUT);
			CHECK_EQ(vez_request_wait(&n.r, VEZ_NOW, NULL), 0);
			CHECK_EQ(vez_request_cancel(&n.r), EALREADY);
			CHECK_EQ(n.calls, 0);
			check_nothing_taken(kind, &o);
			CHECK_EMPTY(kind, &o);
			/* What can be had is had all the same. */
			prepare(kind, &o, &n);
			vez_request_set_limits(&n.r, past[i], NULL);
			if (kind->keeps) {
				CHECK_EQ(kind->let_go(&o), 0);
				CHECK_EQ(kind->file(&o, &n), 0);
				CHECK_EQ(vez_request_result(&n.r), 0);
			}
			CHECK_EMPTY(kind, &o);
		}
	}
}

/* Seen to fail: async_begin that does not ask for the token. */
Test(request, A02_token_fired_on_entry)
{
	EACH_ASYNC(kind) {
		for (int free_too = 0; free_too < 2; free_too++) {
			union async_object o;
			struct note n;
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			vez_cancel_fire(&token);
			prepare(kind, &o, &n);
			if (free_too && kind->keeps)
				CHECK_EQ(kind->let_go(&o), 0);
			vez_request_set_limits(&n.r, free_too ? VEZ_NOW : VEZ_FOREVER, &token);
			CHECK_EQ(kind->file(&o, &n), ECANCELED);
			CHECK_EQ(vez_request_result(&n.r), ECANCELED);
			CHECK_EQ(vez_request_wait(&n.r, VEZ_NOW, NULL), 0);
			CHECK_EQ(n.calls, 0);
			CHECK(vez_cancel_fired(&token));
			CHECK_EQ(vez_cancel_destroy(&token), 0);
			CHECK_EQ(kind->waiters(&o), 0);
			if (free_too && kind->keeps) {
				note_init(&n);
				CHECK_EQ(kind->file(&o, &n), 0);
			}
			CHECK_EMPTY(kind, &o);
		}
	}
}

/* Seen to fail: cancel_fired that leaves it to the next release. */
Test(request, ALL_token_fired_later)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		prepare(kind, &o, &n);
		vez_request_set_limits(&n.r, VEZ_FOREVER, &token);
		file(kind, &o, &n);
		CHECK_EQ(vez_cancel_destroy(&token), EBUSY);
		vez_cancel_fire(&token);
		CHECK_COMPLETED(&n, ECANCELED);
		CHECK_EQ(n.by, own_tid());
		CHECK(vez_cancel_clear(&token));
		CHECK_EQ(vez_cancel_destroy(&token), 0);
		check_nothing_taken(kind, &o);
		CHECK_EMPTY(kind, &o);
	}
}

/* Seen to fail: complete that leaves the request with its token (the fire crashes, destroy says EBUSY). */
Test(request, ALL_05_token_fired_too_late)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		prepare(kind, &o, &n);
		vez_request_set_limits(&n.r, vez_after_ms(3600000), &token);
		file(kind, &o, &n);
		CHECK_EQ(kind->let_go(&o), 0);
		CHECK_COMPLETED(&n, 0);
		memset(&n, 0xa5, sizeof n);
		CHECK_EQ(vez_cancel_destroy(&token), 0);
		vez_cancel_fire(&token);
		CHECK(vez_cancel_fired(&token));
		CHECK_EMPTY(kind, &o);
	}
}

/* Seen to fail: end_due that looks for what is due a millisecond early; alarm_set that does not lower next. */
Test(request, ALL_deadline_passes)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
		prepare(kind, &o, &n);
		vez_deadline_t deadline = vez_after_us(500);
		vez_request_set_limits(&n.r, deadline, &token);
		int rc = kind->file(&o, &n);
		if (rc == EINPROGRESS) {
			CHECK_EQ(vez_request_wait(&n.r, VEZ_FOREVER, NULL), 0);
			CHECK_COMPLETED(&n, ETIMEDOUT);
			CHECK(n.by != own_tid());
		} else {
			CHECK_EQ(rc, ETIMEDOUT);
		}
		CHECK(real_now() >= deadline);
		CHECK_EQ(vez_cancel_destroy(&token), 0);
		check_nothing_taken(kind, &o);
		CHECK_EMPTY(kind, &o);
	}
}

/* Seen to fail: a clock that believes the kernel's word for it. */
Test(request, ALL_deadline_by_the_clock)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		int64_t noon = stop_the_clock();
		prepare(kind, &o, &n);
		vez_request_set_limits(&n.r, noon + 100, NULL);
		file(kind, &o, &n);
		inject_clock(noon + 99);
		vez__alarm_ring();
		sched_yield();
		CHECK_EQ(LOAD(&n.calls), 0);
		inject_clock(noon + 100);
		vez__alarm_ring();
		note_await(&n);
		CHECK_EQ(vez_request_wait(&n.r, VEZ_FOREVER, NULL), 0);
		CHECK_COMPLETED(&n, ETIMEDOUT);
		check_nothing_taken(kind, &o);
		CHECK_EMPTY(kind, &o);
	}
}

/* Seen to fail: a far deadline that wraps. */
Test(request, H03_far_deadlines)
{
	const vez_deadline_t far[] = {
		VEZ_FOREVER, VEZ_FOREVER - 1, vez_after_ns(INT64_MAX), vez_after_ns(INT64_MAX - real_now() + 1),
		vez_after_ms(INT64_MAX), INT64_C(1000000000) << 31, INT64_C(1000000000) << 32, INT64_MAX / 1000 * 999,
	};
	EACH_ASYNC(kind) {
		for (unsigned i = 0; i < sizeof far / sizeof far[0]; i++) {
			union async_object o;
			struct note n;
			prepare(kind, &o, &n);
			vez_request_set_limits(&n.r, far[i], NULL);
			file(kind, &o, &n);
			CHECK_EQ(vez_request_wait(&n.r, vez_after_us(20), NULL), ETIMEDOUT);
			CHECK_EQ(kind->let_go(&o), 0);
			CHECK_COMPLETED(&n, 0);
			CHECK_EMPTY(kind, &o);
		}
	}
}

/* ---- cancelled ---- */

/* Seen to fail: cancel that says 0 before done has run; end_inside that leaves it in its room. */
Test(request, ASY_04_cancelled)
{
	EACH_ASYNC(kind) {
		union async_object o;
		struct note n;
		prepare(kind, &o, &n);
		CHECK_EQ(vez_request_cancel(&n.r), EALREADY);
		file(kind, &o, &n);
		CHECK_EQ(vez_request_cancel(&n.r), 0);
		CHECK_COMPLETED(&n, ECANCELED);
		CHECK_EQ(n.by, own_tid());
		CHECK_EQ(vez_request_cancel(&n.r), EALREADY);
		check_nothing_taken(kind, &o);
		CHECK_EQ(n.calls, 1);
		CHECK_EMPTY(kind, &o);
	}
}

enum way_out { BY_CANCEL, BY_TOKEN, BY_DEADLINE, WAYS_OUT };

/* The first of three gives up; what comes next is for the one behind it. */
static void give_up(struct note *n, vez_cancel_t *token, enum way_out way)
{
	if (way == BY_CANCEL)
		CHECK_EQ(vez_request_cancel(&n->r), 0);
	else if (way == BY_TOKEN)
		vez_cancel_fire(token);
	else
		vez__alarm_ring();
	CHECK_EQ(vez_request_wait(&n->r, VEZ_FOREVER, NULL), 0);
	CHECK_COMPLETED(n, way == BY_DEADLINE ? ETIMEDOUT : ECANCELED);
}

/* Seen to fail: settle that leaves the room's length as it was. */
Test(request, ALL_who_gives_up_is_passed_over)
{
	for (enum way_out way = 0; way < WAYS_OUT; way++) {
		EACH_ASYNC(kind) {
			union async_object o;
			struct note n[3];
			vez_cancel_t token = VEZ_CANCEL_INITIALIZER;
			int64_t noon = stop_the_clock();
			prepare(kind, &o, &n[0]);
			for (int i = 0; i < 3; i++) {
				memset(&n[i], 0, sizeof n[i]);
				note_init(&n[i]);
				if (i == 0)
					vez_request_set_limits(&n[i].r, noon + 100, &token);
				file(kind, &o, &n[i]);
			}
			if (way == BY_DEADLINE)
				inject_clock(noon + 200);
			give_up(&n[0], &token, way);
			CHECK_EQ(n[1].calls + n[2].calls, 0);
			CHECK_EQ(kind->waiters(&o), 2);
			CHECK_EQ(kind->let_go(&o), 0);
			CHECK_COMPLETED(&n[1], 0);
			CHECK_EQ(n[2].calls, kind->serial ? 0 : 1);
			if (kind->serial)
				CHECK_EQ(kind->let_go(&o), 0);
			CHECK_COMPLETED(&n[2], 0);
			CHECK_EMPTY(kind, &o);
		}
	}
}
