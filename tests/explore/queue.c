/* SPDX-License-Identifier: MIT */
/* Scenarios of the bounded queue. What an item says is told by a plain variable besides. */
#include "vez/queue.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"

static vez_queue_t q;
static vez_cancel_t token;
static int storage[2];
static int told;
static int waited; /* the putter was seen to wait */
static int rc[X_THREADS];
static int item[X_THREADS];

static void make(size_t capacity)
{
	x_alive(&q, sizeof q);
	X_NAME(q);
	X_NAME(token);
	X_NAME(storage);
	x_assert(vez_queue_init(&q, capacity ? storage : NULL, sizeof *storage, capacity) == 0);
	vez_cancel_init(&token);
	told = 0;
	waited = 0;
	for (int i = 0; i < X_THREADS; i++)
		rc[i] = item[i] = -1;
}

static void make_0(void)
{
	make(0);
}

static void make_1(void)
{
	make(1);
}

static void put_now(int value)
{
	x_assert(vez_queue_try_put(&q, &value) == 0);
}

static void make_1_full(void)
{
	make(1);
	put_now(1);
}

static void make_2_half(void)
{
	make(2);
	put_now(1);
}

/* Nobody is queued and this many items are stored. */
static void left(size_t length)
{
	x_assert(vez_queue_waiters(&q) == 0);
	x_assert(vez_queue_length(&q) == length);
	x_assert(vez_queue_destroy(&q) == 0);
}

static void left_0(void)
{
	left(0);
}

static void put(int value)
{
	x_assert(vez_queue_put(&q, &value) == 0);
}

static int take(void)
{
	int value = -1;
	x_assert(vez_queue_take(&q, &value) == 0);
	return value;
}

/* ---- one puts, one takes ---- */

static void tell_and_put(void)
{
	told = 7;
	put(7);
}

static void take_what_was_told(void)
{
	x_assert(take() == 7);
	x_assert(told == 7);
}

X_SCENARIO(queue_handoff, .setup = make_1, .thread = { tell_and_put, take_what_was_told }, .check = left_0, .stale = 2);
X_SCENARIO(queue_rendezvous, .setup = make_0, .thread = { tell_and_put, take_what_was_told }, .check = left_0,
	   .stale = 1);

static void put_1_2_3(void)
{
	for (int i = 1; i <= 3; i++)
		put(i);
}

static void take_1_2_3(void)
{
	for (int i = 1; i <= 3; i++)
		x_assert(take() == i);
}

X_SCENARIO(queue_order_1, .setup = make_1, .thread = { put_1_2_3, take_1_2_3 }, .check = left_0,
	   .preemptions = 2);
X_SCENARIO(queue_order_0, .setup = make_0, .thread = { put_1_2_3, take_1_2_3 }, .check = left_0,
	   .preemptions = 2);

static void take_1_then_more(void)
{
	for (int i = 1; i <= 4; i++)
		x_assert(take() == i);
}

static void put_2_3_4(void)
{
	for (int i = 2; i <= 4; i++)
		put(i);
}

X_SCENARIO(queue_order_wraps, .setup = make_2_half, .thread = { put_2_3_4, take_1_then_more }, .check = left_0,
	   .preemptions = 2);

/* ---- several on a side ---- */

static void take_0(void)
{
	item[0] = take();
}

static void take_1(void)
{
	item[1] = take();
}

static void put_10_then_20(void)
{
	put(10);
	put(20);
}

static void both_taken(void)
{
	x_assert(item[0] + item[1] == 30 && item[0] != item[1]);
	left(0);
}

X_SCENARIO(queue_two_takers, .setup = make_1, .thread = { take_0, take_1, put_10_then_20 }, .check = both_taken);
X_SCENARIO(queue_two_takers_rendezvous, .setup = make_0, .thread = { take_0, take_1, put_10_then_20 },
	   .check = both_taken);

static void put_10(void)
{
	put(10);
}

static void put_20(void)
{
	put(20);
}

static void take_both(void)
{
	item[0] = take();
	item[1] = take();
}

X_SCENARIO(queue_two_putters, .setup = make_1, .thread = { put_10, put_20, take_both }, .check = both_taken);
X_SCENARIO(queue_two_putters_rendezvous, .setup = make_0, .thread = { put_10, put_20, take_both }, .check = both_taken);
X_SCENARIO(queue_two_and_two, .setup = make_1, .thread = { put_10, put_20, take_0, take_1 }, .check = both_taken);

/* The first to wait is the first to be served. */
static void take_first(void)
{
	x_assert(take() == 10);
}

static void take_second(void)
{
	x_await(vez_queue_takers(&q) == 1);
	x_assert(take() == 20);
}

static void put_when_two_wait(void)
{
	x_await(vez_queue_takers(&q) == 2);
	put_10_then_20();
}

X_SCENARIO(queue_takers_in_order, .setup = make_1, .thread = { take_first, take_second, put_when_two_wait },
	   .check = left_0);

/* ---- try ---- */

/* A put that has returned is seen by the next try, whoever is inside. */
static void put_and_try_take(void)
{
	int value = -1;
	put_now(5);
	x_assert(vez_queue_try_take(&q, &value) == 0 && value == 5);
}

static void make_2(void)
{
	make(2);
}

X_SCENARIO(queue_try_never_busy, .setup = make_2, .thread = { put_and_try_take, put_and_try_take }, .check = left_0,
	   .stale = 1);

/* While a putter waits there is always an item: a try finds one, whatever the other take is doing. */
static void take_when_putter_waits(void)
{
	x_await(vez_queue_putters(&q) == 1);
	vez__store(&waited, 1, release);
	item[0] = take();
}

static void try_when_putter_waited(void)
{
	x_await(vez__load(&waited, acquire) == 1);
	x_assert(vez_queue_try_take(&q, &item[1]) == 0);
}

static void both_items(void)
{
	x_assert(item[0] + item[1] == 11 && item[0] != item[1]);
	left(0);
}

X_SCENARIO(queue_try_while_moved_in, .setup = make_1_full,
	   .thread = { put_10, take_when_putter_waits, try_when_putter_waited }, .check = both_items);

/* What a take makes room for, with a putter waiting, is that putter's. */
static void take_then_try_put(void)
{
	int value = 30;
	x_await(vez_queue_putters(&q) == 1);
	x_assert(take() == 1);
	x_assert(vez_queue_try_put(&q, &value) == EBUSY);
	x_assert(take() == 10);
}

X_SCENARIO(queue_newcomer, .setup = make_1_full, .thread = { put_10, take_then_try_put }, .check = left_0);

static void try_take_1(void)
{
	rc[1] = vez_queue_try_take(&q, &item[1]);
	x_assert(rc[1] == EBUSY || (rc[1] == 0 && item[1] == 10));
}

static void take_until_0(void)
{
	rc[0] = vez_queue_take_until(&q, &item[0], x_soon(), NULL);
	x_assert((rc[0] == 0 && item[0] == 10) || (rc[0] == ETIMEDOUT && item[0] == -1));
}

/* Exactly one has the item, or it is still there. */
static void one_item(void)
{
	x_assert(rc[0] != 0 || rc[1] != 0);
	left(rc[0] == 0 || rc[1] == 0 ? 0 : 1);
}

X_SCENARIO(queue_try_and_deadline, .setup = make_1, .thread = { take_until_0, try_take_1, put_10 }, .check = one_item);

/* ---- one gives up ---- */

static void take_until_1(void)
{
	rc[1] = vez_queue_take_until(&q, &item[1], x_soon(), NULL);
	x_assert((rc[1] == 0 && item[1] == 10) || (rc[1] == ETIMEDOUT && item[1] == -1));
}

X_SCENARIO(queue_two_deadlines, .setup = make_1, .thread = { take_until_0, take_until_1, put_10 }, .check = one_item);

static void put_until_0(void)
{
	int value = 2;
	rc[0] = vez_queue_put_until(&q, &value, x_soon(), NULL);
	x_assert(rc[0] == 0 || rc[0] == ETIMEDOUT);
}

static void take_stored(void)
{
	x_assert(take() == 1);
}

static void put_or_not(void)
{
	left(rc[0] == 0 ? 1 : 0);
}

X_SCENARIO(queue_putter_deadline, .setup = make_1_full, .thread = { put_until_0, take_stored }, .check = put_or_not,
	   .stale = 1);

static void put_until_rendezvous(void)
{
	int value = 10;
	rc[2] = vez_queue_put_until(&q, &value, x_soon(), NULL);
	x_assert(rc[2] == 0 || rc[2] == ETIMEDOUT);
}

/* Both or neither. */
static void met(void)
{
	x_assert(rc[0] == rc[2]);
	left(0);
}

X_SCENARIO(queue_rendezvous_deadlines, .setup = make_0, .thread = { put_until_rendezvous, take_until_0 }, .check = met);

static void take_cancellable(void)
{
	rc[0] = vez_queue_take_until(&q, &item[0], VEZ_FOREVER, &token);
	x_assert((rc[0] == 0 && item[0] == 10) || (rc[0] == ECANCELED && item[0] == -1));
}

static void fire(void)
{
	vez_cancel_fire(&token);
}

static void one_item_left(void)
{
	left(rc[0] == 0 ? 0 : 1);
}

X_SCENARIO(queue_token, .setup = make_1, .thread = { take_cancellable, fire, put_10 }, .check = one_item_left);

static void put_cancellable(void)
{
	int value = 2;
	rc[0] = vez_queue_put_until(&q, &value, x_soon(), &token);
	x_assert(rc[0] == 0 || rc[0] == ECANCELED || rc[0] == ETIMEDOUT);
}

X_SCENARIO(queue_putter_token, .setup = make_1_full, .thread = { put_cancellable, fire, take_stored },
	   .check = put_or_not);

/* ---- close ---- */

static void put_or_closed(void)
{
	int value = 2;
	rc[0] = vez_queue_put(&q, &value);
	x_assert(rc[0] == 0 || rc[0] == VEZ_ECLOSED);
}

static void close_it(void)
{
	int value = 3;
	x_assert(vez_queue_close(&q) == 0);
	x_assert(vez_queue_try_put(&q, &value) == VEZ_ECLOSED);
	x_assert(vez_queue_putters(&q) == 0);
}

static void take_all(void)
{
	int value, wanted = 1, code;
	while ((code = vez_queue_take(&q, &value)) == 0)
		x_assert(value == wanted++);
	x_assert(code == VEZ_ECLOSED);
	rc[1] = wanted - 1;
}

/* What was put came out; what was refused did not. */
static void all_taken(void)
{
	x_assert(rc[1] == (rc[0] == 0 ? 2 : 1));
	left(0);
}

X_SCENARIO(queue_close, .setup = make_1_full, .thread = { put_or_closed, close_it, take_all }, .check = all_taken);

static void take_or_closed(void)
{
	rc[1] = vez_queue_take(&q, &item[1]) == 0 ? 1 : 0;
}

static void met_or_closed(void)
{
	x_assert(rc[1] == (rc[0] == 0 ? 1 : 0));
	left(0);
}

X_SCENARIO(queue_close_rendezvous, .setup = make_0, .thread = { put_or_closed, close_it, take_or_closed },
	   .check = met_or_closed);

/* A try that is refused as if the queue were open: then it was open, and empty. */
static void put_and_close(void)
{
	put(10);
	close_it();
}

static void try_take_closed(void)
{
	rc[1] = vez_queue_try_take(&q, &item[1]);
	x_assert(rc[1] == 0 || rc[1] == EBUSY);
	if (rc[1] == EBUSY)
		x_assert(take() == 10);
	x_assert(vez_queue_take(&q, &item[1]) == VEZ_ECLOSED);
}

X_SCENARIO(queue_try_close, .setup = make_1, .thread = { try_take_closed, put_and_close }, .check = left_0);

/* ---- the object's end ---- */

static void take_and_destroy(void)
{
	x_assert(take() == 10);
	x_assert(vez_queue_destroy(&q) == 0);
	x_dead(&q, sizeof q);
}

static void nothing(void)
{
}

X_SCENARIO(queue_unmap_by_taker, .setup = make_1, .thread = { take_and_destroy, put_10 }, .check = nothing, .stale = 1);
X_SCENARIO(queue_unmap_by_taker_rendezvous, .setup = make_0, .thread = { take_and_destroy, put_10 }, .check = nothing);

static void put_and_destroy(void)
{
	put(2);
	x_assert(vez_queue_destroy(&q) == 0);
	x_dead(&q, sizeof q);
}

static void take_the_first(void)
{
	int value;
	x_await(vez_queue_putters(&q) == 1);
	x_assert(vez_queue_take(&q, &value) == 0 && value == 1);
}

X_SCENARIO(queue_unmap_by_putter, .setup = make_1_full, .thread = { put_and_destroy, take_the_first },
	   .check = nothing);

static void take_until_and_destroy(void)
{
	int value = -1;
	int code = vez_queue_take_until(&q, &value, x_soon(), NULL);
	if (code == ETIMEDOUT)
		code = vez_queue_take(&q, &value);
	x_assert(code == 0 && value == 10);
	x_assert(vez_queue_destroy(&q) == 0);
	x_dead(&q, sizeof q);
}

X_SCENARIO(queue_unmap_deadline, .setup = make_1, .thread = { take_until_and_destroy, put_10 }, .check = nothing);

static void take_closed_and_destroy(void)
{
	int value;
	x_assert(vez_queue_take(&q, &value) == VEZ_ECLOSED);
	x_assert(vez_queue_destroy(&q) == 0);
	x_dead(&q, sizeof q);
}

static void close_only(void)
{
	x_assert(vez_queue_close(&q) == 0);
}

X_SCENARIO(queue_unmap_closed, .setup = make_1, .thread = { take_closed_and_destroy, close_only }, .check = nothing);
