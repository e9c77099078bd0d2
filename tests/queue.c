/* SPDX-License-Identifier: MIT */
/*
 * The bounded queue.
 *
 * Each test carries the id of the behaviour it checks, runs in every form that applies and under every fault of
 * tests/lib/inject.h. "Seen to fail" names a change of the library with which it did.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <vez.h>

#include "engine/filing.h"
#include "thread.h"
#include "variant.h"
#include "waits.h"

static void with_requests(void)
{
	variant_async = true;
}

TestSuite(queue, .timeout = 120, .init = with_requests);

#define UNTOUCHED 12345
#define NOTHING (-1)
#define MOST 64

/* ---- a queue of ints ---- */

struct ints {
	vez_queue_t q;
	int items[MOST];
};

static void make(struct ints *i, size_t capacity)
{
	memset(i, 0xa5, sizeof *i);
	EXPECT_EQ(vez_queue_init(&i->q, capacity ? i->items : NULL, sizeof(int), capacity), 0);
}

static int put(struct ints *i, int item)
{
	return vez_queue_try_put(&i->q, &item);
}

static int taken(struct ints *i)
{
	int item = NOTHING;
	int rc = vez_queue_try_take(&i->q, &item);
	if (rc != 0)
		EXPECT_EQ(item, NOTHING);
	return rc == 0 ? item : -rc;
}

/* Puts count items, from this one on. */
static void fill(struct ints *i, int from, size_t count)
{
	for (size_t k = 0; k < count; k++)
		EXPECT_EQ(put(i, from + (int)k), 0);
}

static void expect_state(struct ints *i, size_t length, size_t putters, size_t takers)
{
	EXPECT_EQ(vez_queue_length(&i->q), length);
	EXPECT_EQ(vez_queue_putters(&i->q), putters);
	EXPECT_EQ(vez_queue_takers(&i->q), takers);
	EXPECT_EQ(vez_queue_waiters(&i->q), putters + takers);
}

static void expect_over(struct ints *i)
{
	expect_state(i, 0, 0, 0);
	EXPECT_EQ(vez_queue_destroy(&i->q), 0);
}

/* ---- a put or a take in a thread of its own ---- */

struct mover {
	struct thread thread;
	struct ints *on;
	bool puts;
	enum form form;
	int item; /* what it puts, or has taken */
	vez_deadline_t deadline;
	vez_cancel_t own;
	vez_cancel_t *self; /* its thread's own token */
	int rc;
	int errno_after;
	unsigned waits;
};

#define PUTTER(on_, form_, item_) { .on = (on_), .puts = true, .form = (form_), .item = (item_) }
#define TAKER(on_, form_) { .on = (on_), .form = (form_), .item = NOTHING }

static int move_async(struct mover *m)
{
	vez_queue_t *q = &m->on->q;
	vez_request_t r;
	request_as(&r, m->form, &m->own);
	int rc = m->puts ? vez_queue_put_async(q, &m->item, &r) : vez_queue_take_async(q, &m->item, &r);
	return await_request(&r, rc);
}

static int move(struct mover *m)
{
	vez_queue_t *q = &m->on->q;
	if (m->form >= ASYNC)
		return move_async(m);
	vez_deadline_t far = m->deadline ? m->deadline : vez_after_ms(INT64_C(3600000));
	vez_deadline_t deadline = form_has_deadline(m->form) ? far : VEZ_FOREVER;
	vez_cancel_t *token = form_has_token(m->form) ? &m->own : NULL;
	if (m->form == UNTIMED)
		return m->puts ? vez_queue_put(q, &m->item) : vez_queue_take(q, &m->item);
	if (m->puts)
		return vez_queue_put_until(q, &m->item, deadline, token);
	return vez_queue_take_until(q, &m->item, deadline, token);
}

static void run(void *arg)
{
	struct mover *m = arg;
	m->self = vez_cancel_self();
	errno = UNTOUCHED;
	m->rc = move(m);
	m->errno_after = errno;
	m->waits = inject_own_waits();
}

static void mover_start(struct mover *m)
{
	size_t before = vez_queue_waiters(&m->on->q);
	thread_start(&m->thread, run, m);
	UNTIL(vez_queue_waiters(&m->on->q) == before + 1)
		;
}

static uintptr_t mover_await_parked(struct mover *m)
{
	uintptr_t word = 0;
	UNTIL(word != 0 && word - (uintptr_t)&m->on->q >= sizeof m->on->q)
		word = thread_futex(&m->thread);
	return word;
}

static bool mover_blocked(struct mover *m)
{
	mover_await_parked(m);
	return !thread_done(&m->thread) && vez_queue_waiters(&m->on->q) > 0;
}

static int mover_join(struct mover *m)
{
	thread_join(&m->thread);
	EXPECT_EQ(m->errno_after, UNTOUCHED);
	if (m->rc != 0 && !m->puts)
		EXPECT_EQ(m->item, NOTHING);
	return m->rc;
}

#define EACH_FORM(v, which) \
	EACH_VARIANT(v, FIFO_ONLY | (which)) \
		if (v->form != KEYED)

/* ---- what is the same for every wait: four ways to wait on a queue ---- */

static int stored[1];

static void make_empty(void *q)
{
	EXPECT_EQ(vez_queue_init(q, stored, sizeof *stored, 1), 0);
}

static void make_full(void *q)
{
	int item = 1;
	make_empty(q);
	EXPECT_EQ(vez_queue_try_put(q, &item), 0);
}

static void make_rendezvous(void *q)
{
	EXPECT_EQ(vez_queue_init(q, NULL, sizeof *stored, 0), 0);
}

/* What lets go waits, so that it does so too when a wait has yet to be queued. */
static int put_one(void *q)
{
	int item = 2;
	return vez_queue_put(q, &item);
}

static int take_one(void *q)
{
	int item;
	return vez_queue_take(q, &item);
}

/* Where nobody waits any more there is no partner: a rendezvous that is refused lets nobody go. */
static int try_put_one(void *q)
{
	int item = 2;
	return vez_queue_takers(q) ? vez_queue_put(q, &item) : vez_queue_put_until(q, &item, vez_after_ms(500), NULL);
}

static int try_take_one(void *q)
{
	int item;
	if (vez_queue_putters(q))
		return vez_queue_take(q, &item);
	return vez_queue_take_until(q, &item, vez_after_ms(500), NULL);
}

static int wait_put(void *q, uint32_t *index)
{
	(void)index;
	return put_one(q);
}

static int wait_take(void *q, uint32_t *index)
{
	(void)index;
	return take_one(q);
}

static int wait_put_until(void *q, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int item = 3;
	(void)index;
	return vez_queue_put_until(q, &item, deadline, cancel);
}

static int wait_take_until(void *q, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int item;
	(void)index;
	return vez_queue_take_until(q, &item, deadline, cancel);
}

/* What they move: it outlives the request. */
static int moved[2];

static int wait_put_async(void *q, vez_request_t *r)
{
	return vez_queue_put_async(q, &moved[0], r);
}

static int wait_take_async(void *q, vez_request_t *r)
{
	return vez_queue_take_async(q, &moved[1], r);
}

static size_t waiters(const void *q)
{
	return vez_queue_waiters(q);
}

static int destroy(void *q)
{
	return vez_queue_destroy(q);
}

#define WAITABLE(make_, let_go_, side) \
	{ sizeof(vez_queue_t), make_, let_go_, wait_##side, wait_##side##_until, waiters, destroy, \
	  wait_##side##_async }

static const struct waitable ways[] = {
	WAITABLE(make_empty, put_one, take),
	WAITABLE(make_full, take_one, put),
	WAITABLE(make_rendezvous, try_put_one, take),
	WAITABLE(make_rendezvous, try_take_one, put),
};

#define EACH_WAY(way) for (const struct waitable *way = ways; way < ways + 4; way++)

/* Seen to fail: put that stores the item although a taker waits. */
Test(queue, HND_02_QUE_10_a_wait_and_its_partner)
{
	EACH_WAY(way)
		check_let_go(way);
}

/* Seen to fail: as in sem, fire that marks the word and does not wake. */
Test(queue, QUE_40_fire_ends_a_wait)
{
	EACH_WAY(way)
		check_fire_ends_a_wait(way);
}

/* Seen to fail: put_until and take_until that do not ask the token. */
Test(queue, QUE_08_QUE_13_QUE_17_QUE_40_fired_on_entry)
{
	EACH_WAY(way)
		check_fired_on_entry(way);
}

/* Seen to fail: put_until that waits whatever the deadline. */
Test(queue, ALL_01_H02_past_deadlines)
{
	EACH_WAY(way)
		check_past_deadlines(way);
}

/* Seen to fail: a wait with a deadline that ends when it is woken for nothing. */
Test(queue, ALL_02_H03_far_deadlines)
{
	EACH_WAY(way)
		check_far_deadlines(way);
}

/* Seen to fail: as ALL_02; a deadline that is taken for a distance. */
Test(queue, QUE_11_QUE_16_HND_05_timed_out)
{
	EACH_WAY(way)
		check_timed_out(way);
}

/* Seen to fail: vez__futex_wait that believes the kernel. */
Test(queue, QUE_16_the_clock_is_asked)
{
	EACH_WAY(way)
		check_clock_is_asked(way);
}

/* Seen to fail: await that returns ECANCELED for a fired token without asking whether it was settled. */
Test(queue, A10_F02_let_go_then_cancelled)
{
	EACH_WAY(way)
		check_let_go_then_cancelled(way);
}

/* Seen to fail: a fire that leaves the request to its thread. */
Test(queue, A10_cancelled_then_let_go)
{
	check_cancelled_then_let_go(&ways[0]);
	check_cancelled_then_let_go(&ways[1]);
}

/* Seen to fail: await that asks the clock and not its request. */
Test(queue, C04_F02_let_go_after_the_deadline)
{
	EACH_WAY(way)
		check_let_go_after_the_deadline(way);
}

/* Seen to fail: a wait that returns for EINTR. */
Test(queue, A15_signals)
{
	EACH_WAY(way)
		check_signals(way);
}

/* Seen to fail: destroy that does not look. */
Test(queue, B11_destroy_with_waiters_is_refused)
{
	EACH_WAY(way)
		check_destroy_is_refused(way);
}

/* Seen to fail: await that enters the monitor once more after it was granted. */
Test(queue, A06_returns_without_the_object)
{
	EACH_WAY(way)
		check_returns_without_the_object(way);
}

/* Seen to fail: vez__leave_pending that reads word_ after it has left. */
Test(queue, A06_gone_before_the_wake)
{
	EACH_WAY(way)
		check_gone_before_the_wake(way);
}

/* Seen to fail: put and take that read the word once more after they left. */
Test(queue, A06_destroyed_by_who_was_let_go)
{
	EACH_WAY(way)
		check_destroyed_by_who_was_let_go(way, 1000);
}

/* Seen to fail: destroy that does not wait for coming_. */
Test(queue, ALL_destroy_waits_for_who_comes_in)
{
	EACH_WAY(way)
		check_destroy_waits_for_who_comes_in(way);
}

/* Seen to fail: init that leaves the rooms as they were. */
Test(queue, ALL_10_fork)
{
	EACH_WAY(way)
		check_fork(way);
}

/* Seen to fail: a spin budget that does not ask for the processors. */
Test(queue, K01_no_cost_on_one_cpu)
{
	EACH_WAY(way)
		check_no_cost_on_one_cpu(way);
}

/* ---- alone ---- */

struct worker {
	struct thread thread;
	struct ints *on;
	int from, count;
	unsigned seed;
	int64_t sum;
	int items;
	int empty;
};

static void try_to_take(void *arg)
{
	struct worker *w = arg;
	w->items = taken(w->on);
}

/* Seen to fail: init without each of its three conditions. */
Test(queue, ALL_bad_arguments_are_refused)
{
	vez_queue_t q;
	char storage[8];
	EXPECT_EQ(vez_queue_init(&q, storage, 0, 1), EINVAL);
	EXPECT_EQ(vez_queue_init(&q, NULL, 0, 0), EINVAL);
	EXPECT_EQ(vez_queue_init(&q, NULL, 1, 1), EINVAL);
	EXPECT_EQ(vez_queue_init(&q, storage, 2, SIZE_MAX / 2 + 1), EINVAL);
	EXPECT_EQ(vez_queue_init(&q, storage, SIZE_MAX, 2), EINVAL);
	EXPECT_EQ(vez_queue_init(&q, storage, SIZE_MAX / 2 + 1, 4), EINVAL);
	EXPECT_EQ(vez_queue_init(&q, NULL, SIZE_MAX, 0), 0);
	EXPECT_EQ(vez_queue_init(&q, storage, 4, 2), 0);
}

/* Seen to fail: first_ that does not go back to 0; end_of that does not go round. */
Test(queue, QUE_04_QUE_07_length_and_order_across_the_wrap)
{
	for (size_t capacity = 1; capacity <= 5; capacity++) {
		struct ints i;
		int in = 0, out = 0;
		make(&i, capacity);
		for (size_t step = 0; step < 40; step++) {
			size_t more = step * 7 % (capacity + 1);
			while (vez_queue_length(&i.q) < more) {
				EXPECT_EQ(put(&i, in++), 0);
				EXPECT_EQ(vez_queue_length(&i.q), in - out);
			}
			while (vez_queue_length(&i.q) > more / 2) {
				EXPECT_EQ(taken(&i), out++);
				EXPECT_EQ(vez_queue_length(&i.q), in - out);
			}
		}
		while (out < in)
			EXPECT_EQ(taken(&i), out++);
		EXPECT_EQ(taken(&i), -EBUSY);
		expect_over(&i);
	}
}

/* Seen to fail: copies of a word, or of item_size_ rounded up. */
Test(queue, QUE_07_items_of_every_size)
{
	static const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 9, 16, 24, 1000 };
	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		enum { COUNT = 3 };
		size_t size = sizes[k];
		unsigned char *storage = malloc(1 + COUNT * size + 1), *item = malloc(size + 2);
		vez_queue_t q;
		memset(storage, 0x77, 1 + COUNT * size + 1);
		EXPECT_EQ(vez_queue_init(&q, storage + 1, size, COUNT), 0);
		for (int round = 0; round < 5; round++) {
			for (int n = 0; n < COUNT; n++) {
				memset(item, 16 * round + n, size);
				EXPECT_EQ(vez_queue_put(&q, item), 0);
			}
			EXPECT_EQ(vez_queue_try_put(&q, item), EBUSY);
			for (int n = 0; n < COUNT; n++) {
				memset(item, 0x66, size + 2);
				EXPECT_EQ(vez_queue_take(&q, item + 1), 0);
				for (size_t b = 1; b <= size; b++)
					EXPECT_EQ(item[b], 16 * round + n);
				EXPECT_EQ(item[0], 0x66);
				EXPECT_EQ(item[size + 1], 0x66);
			}
		}
		EXPECT_EQ(storage[0], 0x77);
		EXPECT_EQ(storage[1 + COUNT * size], 0x77);
		EXPECT_EQ(vez_queue_destroy(&q), 0);
		free(storage);
		free(item);
	}
}

/* Seen to fail: put that overwrites the oldest; take that copies before it looks. */
Test(queue, QUE_05_QUE_14_HND_01_try_changes_nothing_when_refused)
{
	for (size_t capacity = 0; capacity <= 3; capacity++) {
		struct ints i;
		make(&i, capacity);
		EXPECT_EQ(taken(&i), -EBUSY);
		fill(&i, 0, capacity);
		for (int k = 0; k < 3; k++)
			EXPECT_EQ(put(&i, 77), EBUSY);
		expect_state(&i, capacity, 0, 0);
		for (size_t k = 0; k < capacity; k++)
			EXPECT_EQ(taken(&i), k);
		EXPECT_EQ(taken(&i), -EBUSY);
		EXPECT_EQ(inject_waits(), 0);
		expect_over(&i);
	}
}

/* Somebody is inside the monitor, and stays there: what cannot be had is refused all the same.
 * Seen to fail: try_put and try_take that enter first. */
Test(queue, QUE_05_refused_without_entering)
{
	for (size_t capacity = 0; capacity <= 2; capacity++) {
		struct ints i;
		int item = NOTHING;
		make(&i, capacity);
		vez__lock_enter(&i.q.core_.word_);
		EXPECT_EQ(taken(&i), -EBUSY);
		EXPECT_EQ(vez_queue_take_until(&i.q, &item, VEZ_NOW, NULL), ETIMEDOUT);
		vez__lock_exit(&i.q.core_.word_);
		fill(&i, 0, capacity);
		vez__lock_enter(&i.q.core_.word_);
		EXPECT_EQ(put(&i, 9), EBUSY);
		EXPECT_EQ(vez_queue_put_until(&i.q, &item, 0, NULL), ETIMEDOUT);
		expect_state(&i, capacity, 0, 0);
		vez__lock_exit(&i.q.core_.word_);
		EXPECT_EQ(vez_queue_destroy(&i.q), 0);
	}
}

/* Somebody is inside the monitor: what can be had is waited for, not refused.
 * Seen to fail: a refusal where LOCKED is set. */
Test(queue, QUE_31_that_somebody_is_inside_is_no_refusal)
{
	struct ints i;
	make(&i, 1);
	fill(&i, 6, 1);
	struct worker w = { .on = &i };
	vez__lock_enter(&i.q.core_.word_);
	thread_start(&w.thread, try_to_take, &w);
	UNTIL(thread_futex(&w.thread) - (uintptr_t)&i < sizeof i)
		;
	vez__lock_exit(&i.q.core_.word_);
	thread_join(&w.thread);
	EXPECT_EQ(w.items, 6);
	expect_over(&i);
}

/* Seen to fail: put_until and take_until that ask the clock first. */
Test(queue, A02_QUE_16_a_past_deadline_takes_what_there_is)
{
	static const vez_deadline_t past[] = { 0, 1, -1, VEZ_NOW };
	for (unsigned k = 0; k < 4; k++) {
		struct ints i;
		int item = 5;
		make(&i, 1);
		EXPECT_EQ(vez_queue_put_until(&i.q, &item, past[k], NULL), 0);
		EXPECT_EQ(vez_queue_put_until(&i.q, &item, past[k], NULL), ETIMEDOUT);
		item = NOTHING;
		EXPECT_EQ(vez_queue_take_until(&i.q, &item, past[k], NULL), 0);
		EXPECT_EQ(item, 5);
		EXPECT_EQ(vez_queue_take_until(&i.q, &item, past[k], NULL), ETIMEDOUT);
		expect_over(&i);
	}
}

/* Seen to fail: as QUE_08, where there is an item and a place. */
Test(queue, QUE_34_A02_a_fired_token_wins_though_it_could_go)
{
	EACH_FORM(v, WITH_TOKEN) {
		struct ints i;
		struct mover p = PUTTER(&i, v->form, 7), t = TAKER(&i, v->form);
		make(&i, 2);
		fill(&i, 1, 1);
		vez_cancel_fire(&p.own);
		vez_cancel_fire(&t.own);
		EXPECT_EQ(move(&p), ECANCELED);
		EXPECT_EQ(move(&t), ECANCELED);
		EXPECT_EQ(t.item, NOTHING);
		EXPECT_EQ(vez_queue_put_until(&i.q, &p.item, VEZ_NOW, &p.own), ECANCELED);
		EXPECT_EQ(vez_queue_take_until(&i.q, &t.item, 0, &t.own), ECANCELED);
		EXPECT(vez_cancel_fired(&p.own) && vez_cancel_fired(&t.own));
		expect_state(&i, 1, 0, 0);
		EXPECT_EQ(taken(&i), 1);
		expect_over(&i);
	}
}

/* ---- hand-over ---- */

/* Seen to fail: take_stored that puts the waiting item first; one that counts it out. */
Test(queue, QUE_10_QUE_25_a_take_moves_a_waiting_item_in)
{
	EACH_FORM(v, ALL) {
		for (size_t capacity = 1; capacity <= 3; capacity++) {
			struct ints i;
			make(&i, capacity);
			fill(&i, 0, capacity);
			struct mover p = PUTTER(&i, v->form, (int)capacity);
			mover_start(&p);
			EXPECT(mover_blocked(&p));
			expect_state(&i, capacity, 1, 0);
			EXPECT_EQ(put(&i, 99), EBUSY);
			EXPECT_EQ(taken(&i), 0);
			expect_state(&i, capacity, 0, 0);
			EXPECT_EQ(put(&i, 99), EBUSY);
			EXPECT_EQ(mover_join(&p), 0);
			for (size_t k = 1; k <= capacity; k++)
				EXPECT_EQ(taken(&i), k);
			expect_over(&i);
		}
	}
}

/* Seen to fail: as HND_02; a put that leaves its item in the queue as well. */
Test(queue, QUE_26_a_put_hands_its_item_to_a_waiting_taker)
{
	EACH_FORM(v, ALL) {
		for (size_t capacity = 0; capacity <= 2; capacity++) {
			struct ints i;
			make(&i, capacity);
			struct mover t = TAKER(&i, v->form);
			mover_start(&t);
			EXPECT(mover_blocked(&t));
			EXPECT_EQ(taken(&i), -EBUSY);
			EXPECT_EQ(put(&i, 8), 0);
			expect_state(&i, 0, 0, 0);
			EXPECT_EQ(taken(&i), -EBUSY);
			EXPECT_EQ(mover_join(&t), 0);
			EXPECT_EQ(t.item, 8);
			expect_over(&i);
		}
	}
}

/* Seen to fail: a put that lets its item lie where the taker is to copy it when it runs. */
Test(queue, QUE_26_the_item_is_copied_before_put_returns)
{
	EACH_FORM(v, ALL) {
		struct ints i;
		make(&i, 0);
		struct mover t = TAKER(&i, v->form);
		mover_start(&t);
		mover_await_parked(&t);
		thread_freeze(&t.thread);
		int item = 8;
		EXPECT_EQ(vez_queue_try_put(&i.q, &item), 0);
		item = 9;
		thread_thaw(&t.thread);
		EXPECT_EQ(mover_join(&t), 0);
		EXPECT_EQ(t.item, 8);
		expect_over(&i);
	}
}

/* Seen to fail: serve_first that serves the last. */
Test(queue, HND_04_waiters_are_served_in_order_of_arrival)
{
	enum { N = 4 };
	EACH_FORM(v, ALL) {
		for (size_t capacity = 0; capacity <= 2; capacity++) {
			struct ints i;
			struct mover m[N];
			make(&i, capacity);
			fill(&i, 0, capacity);
			for (int k = 0; k < N; k++) {
				m[k] = (struct mover)PUTTER(&i, v->form, (int)capacity + k);
				mover_start(&m[k]);
			}
			for (size_t k = 0; k < capacity + N; k++)
				EXPECT_EQ(taken(&i), k);
			for (int k = 0; k < N; k++)
				EXPECT_EQ(mover_join(&m[k]), 0);
			for (int k = 0; k < N; k++) {
				m[k] = (struct mover)TAKER(&i, v->form);
				mover_start(&m[k]);
			}
			for (int k = 0; k < N; k++)
				EXPECT_EQ(put(&i, 10 + k), 0);
			for (int k = 0; k < N; k++) {
				EXPECT_EQ(mover_join(&m[k]), 0);
				EXPECT_EQ(m[k].item, 10 + k);
			}
			expect_over(&i);
		}
	}
}

/* Seen to fail: a wake of all who wait on a side. */
Test(queue, ALL_08_a_hand_over_wakes_that_one_alone)
{
	enum { N = 3 };
	EACH_FORM(v, ALL) {
		struct ints i;
		struct mover m[N];
		uintptr_t word[N];
		make(&i, 1);
		for (int k = 0; k < N; k++) {
			m[k] = (struct mover)TAKER(&i, v->form);
			mover_start(&m[k]);
			word[k] = mover_await_parked(&m[k]);
		}
		unsigned before = inject_wakes();
		for (unsigned k = 0; k < N; k++) {
			EXPECT_EQ(put(&i, (int)k), 0);
			EXPECT_EQ(inject_wakes() - before, k + 1);
			EXPECT_EQ(inject_woken(before + k), word[k]);
			EXPECT_EQ(mover_join(&m[k]), 0);
			EXPECT(m[k].waits <= 2);
		}
		EXPECT_EQ(put(&i, 5), 0);
		EXPECT_EQ(taken(&i), 5);
		EXPECT_EQ(inject_wakes() - before, N);
		expect_over(&i);
	}
}

/* Seen to fail: put that moves a waiting item in only where the queue is empty. */
Test(queue, QUE_28_drain_with_a_blocked_put)
{
	EACH_FORM(v, ALL) {
		struct ints i;
		make(&i, 3);
		fill(&i, 0, 3);
		struct mover p = PUTTER(&i, v->form, 3);
		mover_start(&p);
		int out = 0;
		while (taken(&i) == out)
			out++;
		EXPECT_EQ(out, 4);
		EXPECT_EQ(mover_join(&p), 0);
		expect_over(&i);
	}
}

/* ---- one gives up ---- */

/* Seen to fail: a put, or a take, without a token that takes its thread's own. */
Test(queue, ALL_05_QUE_35_who_names_no_token_keeps_waiting)
{
	EACH_FORM(v, WITHOUT_TOKEN) {
		struct ints i;
		make(&i, 1);
		struct mover t = TAKER(&i, v->form);
		mover_start(&t);
		vez_cancel_fire(t.self);
		EXPECT(mover_blocked(&t));
		EXPECT_EQ(put(&i, 1), 0);
		EXPECT_EQ(mover_join(&t), 0);
		fill(&i, 2, 1);
		struct mover p = PUTTER(&i, v->form, 3);
		mover_start(&p);
		vez_cancel_fire(p.self);
		EXPECT(mover_blocked(&p));
		EXPECT_EQ(taken(&i), 2);
		EXPECT_EQ(mover_join(&p), 0);
		EXPECT_EQ(taken(&i), 3);
		expect_over(&i);
	}
}

/* Of two takers the first is given the item and then loses its limit before it runs: it has the item, or the other.
 * Seen to fail: await that asks the clock and not its request. */
Test(queue, F02_a_taker_chosen_and_then_ended)
{
	EACH_FORM(v, ALL) {
		if (v->form == UNTIMED)
			continue;
		struct ints i;
		make(&i, 1);
		inject_clock(form_has_deadline(v->form) ? NOON : 0);
		struct mover a = TAKER(&i, v->form), b = TAKER(&i, UNTIMED);
		a.deadline = NOON + 1000;
		mover_start(&a);
		mover_start(&b);
		mover_await_parked(&a);
		thread_freeze(&a.thread);
		EXPECT_EQ(put(&i, 4), 0);
		vez_cancel_fire(&a.own);
		if (form_has_deadline(v->form))
			inject_clock(NOON + 2000);
		thread_thaw(&a.thread);
		EXPECT_EQ(mover_join(&a), 0);
		EXPECT_EQ(a.item, 4);
		EXPECT(mover_blocked(&b));
		EXPECT_EQ(put(&i, 5), 0);
		EXPECT_EQ(mover_join(&b), 0);
		EXPECT_EQ(b.item, 5);
		expect_over(&i);
	}
}

/* The mirror: a putter. Seen to fail: as F02. */
Test(queue, F02_a_putter_moved_in_and_then_ended)
{
	EACH_FORM(v, ALL) {
		if (v->form == UNTIMED)
			continue;
		struct ints i;
		make(&i, 1);
		fill(&i, 0, 1);
		inject_clock(form_has_deadline(v->form) ? NOON : 0);
		struct mover a = PUTTER(&i, v->form, 1), b = PUTTER(&i, UNTIMED, 2);
		a.deadline = NOON + 1000;
		mover_start(&a);
		mover_start(&b);
		mover_await_parked(&a);
		thread_freeze(&a.thread);
		EXPECT_EQ(taken(&i), 0);
		vez_cancel_fire(&a.own);
		if (form_has_deadline(v->form))
			inject_clock(NOON + 2000);
		thread_thaw(&a.thread);
		EXPECT_EQ(mover_join(&a), 0);
		EXPECT(mover_blocked(&b));
		EXPECT_EQ(taken(&i), 1);
		EXPECT_EQ(mover_join(&b), 0);
		EXPECT_EQ(taken(&i), 2);
		expect_over(&i);
	}
}

/* Seen to fail: a cancelled putter that stays in its room. */
Test(queue, QUE_11_QUE_37_who_was_cancelled_puts_and_takes_nothing)
{
	EACH_FORM(v, WITH_TOKEN) {
		for (size_t capacity = 0; capacity <= 1; capacity++) {
			struct ints i;
			make(&i, capacity);
			fill(&i, 0, capacity);
			struct mover p = PUTTER(&i, v->form, 1), p2 = PUTTER(&i, v->form, 2);
			mover_start(&p);
			mover_start(&p2);
			mover_await_parked(&p);
			thread_freeze(&p.thread);
			vez_cancel_fire(&p.own);
			expect_state(&i, capacity, 1, 0);
			if (capacity)
				EXPECT_EQ(taken(&i), 0);
			EXPECT_EQ(taken(&i), 2);
			EXPECT_EQ(mover_join(&p2), 0);
			thread_thaw(&p.thread);
			EXPECT_EQ(mover_join(&p), ECANCELED);
			struct mover t = TAKER(&i, v->form);
			mover_start(&t);
			mover_await_parked(&t);
			vez_cancel_fire(&t.own);
			EXPECT_EQ(mover_join(&t), ECANCELED);
			EXPECT_EQ(put(&i, 6), capacity ? 0 : EBUSY);
			EXPECT_EQ(taken(&i), capacity ? 6 : -EBUSY);
			expect_over(&i);
		}
	}
}

/* ---- close ---- */

/* Seen to fail: close that lets the items of waiting putters in; take that asks CLOSED first; close that settles
 * the first only. */
Test(queue, QUE_38_close_with_waiting_putters)
{
	EACH_FORM(v, ALL) {
		for (size_t capacity = 0; capacity <= 2; capacity++) {
			vez_cancel_t fired = VEZ_CANCEL_INITIALIZER;
			struct ints i;
			make(&i, capacity);
			fill(&i, 0, capacity);
			struct mover a = PUTTER(&i, v->form, 50), b = PUTTER(&i, v->form, 51);
			mover_start(&a);
			mover_start(&b);
			EXPECT_EQ(vez_queue_close(&i.q), 0);
			expect_state(&i, capacity, 0, 0);
			EXPECT_EQ(mover_join(&a), VEZ_ECLOSED);
			EXPECT_EQ(mover_join(&b), VEZ_ECLOSED);
			unsigned waits = inject_own_waits(); /* of close, for those who were still inside */
			EXPECT_EQ(put(&i, 9), VEZ_ECLOSED);
			EXPECT_EQ(move(&a), VEZ_ECLOSED);
			EXPECT_EQ(vez_queue_put_until(&i.q, &a.item, VEZ_NOW, NULL), VEZ_ECLOSED);
			vez_cancel_fire(&fired);
			EXPECT_EQ(vez_queue_put_until(&i.q, &a.item, VEZ_NOW, &fired), ECANCELED);
			EXPECT_EQ(vez_queue_close(&i.q), 0);
			for (size_t k = 0; k < capacity; k++) {
				EXPECT_EQ(taken(&i), k);
				EXPECT_EQ(put(&i, 9), VEZ_ECLOSED);
			}
			struct mover t = TAKER(&i, v->form);
			EXPECT_EQ(move(&t), VEZ_ECLOSED);
			EXPECT_EQ(taken(&i), -VEZ_ECLOSED);
			EXPECT_EQ(vez_queue_take_until(&i.q, &t.item, VEZ_NOW, NULL), VEZ_ECLOSED);
			EXPECT_EQ(vez_queue_take_until(&i.q, &t.item, VEZ_NOW, &fired), ECANCELED);
			EXPECT_EQ(inject_own_waits(), waits);
			expect_over(&i);
		}
	}
}

/* Seen to fail: close that forgets the takers. */
Test(queue, QUE_38_close_with_waiting_takers)
{
	EACH_FORM(v, ALL) {
		for (size_t capacity = 0; capacity <= 2; capacity++) {
			struct ints i;
			make(&i, capacity);
			struct mover a = TAKER(&i, v->form), b = TAKER(&i, v->form);
			mover_start(&a);
			mover_start(&b);
			mover_await_parked(&a);
			thread_freeze(&a.thread);
			EXPECT_EQ(put(&i, 3), 0);
			EXPECT_EQ(vez_queue_close(&i.q), 0);
			EXPECT_EQ(mover_join(&b), VEZ_ECLOSED);
			thread_thaw(&a.thread);
			EXPECT_EQ(mover_join(&a), 0);
			EXPECT_EQ(a.item, 3);
			EXPECT_EQ(vez_queue_close(&i.q), 0);
			expect_over(&i);
		}
	}
}

/* Seen to fail: destroy that refuses where items are left. */
Test(queue, ALL_destroy_drops_what_is_left)
{
	struct ints i;
	make(&i, 4);
	fill(&i, 0, 3);
	EXPECT_EQ(vez_queue_destroy(&i.q), 0);
	make(&i, 4);
	expect_over(&i);
}

/* ---- many at once ---- */

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

static void put_and_poll(void *arg)
{
	struct worker *w = arg;
	for (int k = 0; k < w->count; k++) {
		EXPECT_EQ(put(w->on, w->from + k), 0);
		w->empty += taken(w->on) < 0;
	}
}

/* Seen to fail: put that counts the item before it stores it, outside the monitor. */
Test(queue, QUE_31_what_was_put_is_seen_by_the_next_poll)
{
	enum { N = 4, ITEMS = 3000 };
	struct ints i;
	struct worker w[N];
	make(&i, N);
	for (int k = 0; k < N; k++) {
		w[k] = (struct worker){ .on = &i, .count = ITEMS };
		thread_start(&w[k].thread, put_and_poll, &w[k]);
	}
	for (int k = 0; k < N; k++) {
		thread_join(&w[k].thread);
		EXPECT_EQ(w[k].empty, 0);
	}
	expect_over(&i);
}

/* A limit that may or may not come before the other side. */
static vez_deadline_t near_limit(unsigned *seed)
{
	return vez_after_us(next_random(seed) % 60);
}

static void put_with_limits(void *arg)
{
	struct worker *w = arg;
	for (int k = 0; k < w->count; k++) {
		int item = w->from + k;
		int rc = vez_queue_put_until(&w->on->q, &item, near_limit(&w->seed), NULL);
		cr_assert(rc == 0 || rc == ETIMEDOUT);
		w->sum += rc == 0 ? item : 0;
		w->items += rc == 0;
	}
}

static void take_with_limits(void *arg)
{
	struct worker *w = arg;
	int rc, item;
	while ((rc = vez_queue_take_until(&w->on->q, &item, near_limit(&w->seed), NULL)) != VEZ_ECLOSED) {
		cr_assert(rc == 0 || rc == ETIMEDOUT);
		w->sum += rc == 0 ? item : 0;
		w->items += rc == 0;
	}
}

/* Seen to fail: until that queues the item once more after a timeout; give-up that says ETIMEDOUT for a
 * settled put. */
Test(queue, QUE_32_ALL_04_nothing_is_lost_or_doubled)
{
	enum { N = 3, ITEMS = 4000 };
	for (size_t capacity = 0; capacity <= 4; capacity += 2) {
		struct ints i;
		struct worker p[N], t[N];
		int64_t in = 0, out = 0;
		int count_in = 0, count_out = 0;
		make(&i, capacity);
		for (int k = 0; k < N; k++) {
			p[k] = (struct worker){ .on = &i, .from = k * ITEMS + 1, .count = ITEMS, .seed = (unsigned)k };
			t[k] = (struct worker){ .on = &i, .seed = 100u + (unsigned)k };
			thread_start(&p[k].thread, put_with_limits, &p[k]);
			thread_start(&t[k].thread, take_with_limits, &t[k]);
		}
		for (int k = 0; k < N; k++) {
			thread_join(&p[k].thread);
			in += p[k].sum;
			count_in += p[k].items;
		}
		EXPECT_EQ(vez_queue_close(&i.q), 0);
		for (int k = 0; k < N; k++) {
			thread_join(&t[k].thread);
			out += t[k].sum;
			count_out += t[k].items;
		}
		EXPECT_EQ(out, in);
		EXPECT_EQ(count_out, count_in);
		expect_over(&i);
	}
}
