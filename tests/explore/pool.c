/* SPDX-License-Identifier: MIT */
/* Scenarios of the pool (src/futex/pool.h) and of the shared words that are taken from one: a place is one owner's, and
 * a word comes back when the last has gone. Seen to fail with the faults mutants/pool-* and mutants/shared-*. */
#include "src/futex/pool.h"

#include <errno.h>

#include "scenario.h"
#include "src/futex/shared.h"
#include "vez/barrier.h"

/* ---- a place is one owner's ---- */

static uint32_t links[3];
static struct vez__pool pool;
static int owners[3]; /* plain: each is its owner's, and ordered with the one before */

/* Places that were given back are linked; those that were never taken are counted. */
static void make_unused(void)
{
	pool = (struct vez__pool)VEZ__POOL(links);
	links[1] = links[2] = 0;
	owners[1] = owners[2] = 0;
	X_NAME(pool);
	X_NAME(links);
	X_NAME(owners);
}

static void make_linked(void)
{
	make_unused();
	uint32_t first = vez__pool_take(&pool), second = vez__pool_take(&pool);
	vez__pool_give(&pool, first);
	vez__pool_give(&pool, second);
}

static uint32_t take(void)
{
	uint32_t place = vez__pool_take(&pool);
	x_assert(place <= 2);
	if (place != 0)
		x_assert(owners[place]++ == 0);
	return place;
}

static void give(uint32_t place)
{
	if (place == 0)
		return;
	x_assert(--owners[place] == 0);
	vez__pool_give(&pool, place);
}

static void take_two(void)
{
	uint32_t first = take(), second = take();
	give(second);
	give(first);
}

/* The first one is given back while the second is kept: it is free again, and what comes behind it is not. */
static void take_two_give_first(void)
{
	uint32_t first = take(), second = take();
	give(first);
	give(second);
}

static void take_and_give(void)
{
	give(take());
}

static void all_are_back(void)
{
	uint32_t first = take(), second = take();
	x_assert(first != 0 && second != 0 && first != second && take() == 0);
}

X_SCENARIO(pool_unused, .setup = make_unused, .thread = { take_two, take_two_give_first }, .check = all_are_back,
	   .stale = 1);
X_SCENARIO(pool_linked, .setup = make_linked, .thread = { take_two, take_two_give_first }, .check = all_are_back,
	   .stale = 1);
X_SCENARIO(pool_three, .setup = make_linked, .thread = { take_and_give, take_and_give, take_two_give_first },
	   .check = all_are_back, .stale = 1);

/* ---- a shared word comes back, once ---- */

static uint16_t free_word;

static uint16_t take_word(void)
{
	uint16_t word = vez__shared_take();
	x_assert(word != 0);
	vez__shared_join(vez__shared_at(word));
	return word;
}

static void give_word(uint16_t word)
{
	x_assert(vez__shared_leave(vez__shared_at(word)));
}

/* The word that is taken next is the one that was given back last. */
static void make_word(void)
{
	free_word = take_word();
	give_word(free_word);
}

static void word_is_back(void)
{
	uint16_t first = take_word(), second = take_word();
	x_assert(first == free_word && second != free_word);
	give_word(second);
	give_word(first);
}

static void no_word_is_back_twice(void)
{
	uint16_t first = take_word(), second = take_word(), third = take_word();
	x_assert(first != second && second != third && first != third);
	give_word(third);
	give_word(second);
	give_word(first);
}

/* Followers leave by themselves, some of them after whoever let them go. */
static vez_barrier_t b;

static void make_word_and_barrier(void)
{
	make_word();
	X_NAME(b);
	x_assert(vez_barrier_init(&b, 3, NULL, NULL) == 0);
}

static void meet(void)
{
	x_assert(vez_barrier_wait(&b, NULL) == 0);
}

X_SCENARIO(shared_given_back_by_followers, .setup = make_word_and_barrier, .thread = { meet, meet, meet },
	   .check = word_is_back, .stale = 1);

/* A word that followers have left is the next object's, whose result is another one. */
static vez_barrier_t other;

static void make_two_barriers(void)
{
	make_word();
	X_NAME(b);
	X_NAME(other);
	x_assert(vez_barrier_init(&b, 2, NULL, NULL) == 0);
	x_assert(vez_barrier_init(&other, 2, NULL, NULL) == 0);
}

static void wait_for_break(void)
{
	x_assert(vez_barrier_wait(&other, NULL) == VEZ_EBROKEN);
}

static void meet_then_break(void)
{
	meet();
	wait_for_break();
}

static void reset_other(void)
{
	x_await(vez_barrier_waiters(&other) == 1);
	x_assert(vez_barrier_reset(&other) == 0);
}

X_SCENARIO(shared_followed_in_turn, .setup = make_two_barriers, .thread = { meet, meet_then_break, reset_other },
	   .check = no_word_is_back_twice, .stale = 1);
