/* SPDX-License-Identifier: MIT */
/* Scenarios of pools of places, and of the shared words that are taken from one (src/futex/pool.h, shared.h). */
#include "src/futex/pool.h"

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/futex/shared.h"

#define PLACES 4

static uint32_t links[PLACES];
static struct vez__pool pool;
/* Written only by whoever has the place. */
static int users[PLACES];
static struct vez__shared *shared;
static int left[2], last;

static void make(void)
{
	x_alive(&pool, sizeof pool);
	X_NAME(pool);
	X_NAME(links);
	X_NAME(users);
	pool = (struct vez__pool)VEZ__POOL(links);
	for (int i = 0; i < PLACES; i++) {
		links[i] = 0;
		users[i] = 0;
	}
}

static uint32_t take(void)
{
	uint32_t place = vez__pool_take(&pool);
	x_assert(place > 0 && place < PLACES && users[place] == 0);
	users[place] = 1;
	return place;
}

static void give(uint32_t place)
{
	users[place] = 0;
	vez__pool_give(&pool, place);
}

static void use_one(void)
{
	give(take());
}

/* The place that another saw first is taken, the next one, too, and the first is given back. */
static void use_two(void)
{
	uint32_t first = take(), second = take();
	give(first);
	x_assert(users[second] == 1);
	give(second);
}

/* Two places were given back already. */
static void make_used(void)
{
	make();
	uint32_t first = take(), second = take();
	give(first);
	give(second);
}

/* All places are there, once. */
static void all_left(void)
{
	for (int i = 1; i < PLACES; i++)
		take();
	x_assert(vez__pool_take(&pool) == 0);
}

X_SCENARIO(pool_new, .setup = make, .thread = { use_one, use_two }, .check = all_left);
X_SCENARIO(pool_used, .setup = make_used, .thread = { use_one, use_two }, .check = all_left);

/* ---- a shared word is given back once, by the last that leaves it ---- */

static void make_shared(void)
{
	shared = vez__shared_at(vez__shared_take());
	X_NAME(left);
	vez__shared_join(shared);
	vez__shared_join(shared);
	left[0] = left[1] = last = 0;
}

/* The last knows what the other did before it left. */
static void leave(int i)
{
	left[i] = 1;
	if (!vez__shared_leave(shared, 1))
		return;
	x_assert(left[0] + left[1] == 2);
	last++;
}

static void leave_0(void)
{
	leave(0);
}

static void leave_1(void)
{
	leave(1);
}

static void one_was_last(void)
{
	x_assert(last == 1);
	struct vez__shared *again = vez__shared_at(vez__shared_take()), *other = vez__shared_at(vez__shared_take());
	x_assert(again == shared && other != shared);
	vez__shared_join(again);
	vez__shared_join(other);
	x_assert(vez__shared_leave(other, 1) && vez__shared_leave(again, 1));
}

X_SCENARIO(pool_shared_word, .setup = make_shared, .thread = { leave_0, leave_1 }, .check = one_was_last);
