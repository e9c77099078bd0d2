/* SPDX-License-Identifier: MIT */
/* Scenarios of winning (src/engine/winner.h): one member of each select wins, and two that meet win both or neither.
 * Seen to fail with the faults mutants/winner-*. */
#include "src/engine/winner.h"

#include "scenario.h"
#include "src/futex/atomic.h"

#define SELECTS 4

static vez_select_t s[SELECTS];
/* Two members of each select. */
static vez_request_t a[SELECTS], b[SELECTS];
static bool met[X_THREADS], won[X_THREADS];

static void make(void)
{
	X_NAME(s);
	X_NAME(a);
	X_NAME(b);
	x_alive(s, sizeof s);
	for (int i = 0; i < SELECTS; i++) {
		vez_select_init(&s[i]);
		vez_select_case(&s[i], &a[i]);
		vez_select_case(&s[i], &b[i]);
	}
	for (int i = 0; i < X_THREADS; i++)
		met[i] = won[i] = false;
}

/* Whether they have met. If not, the one that is said to have lost has: its select is won by another. */
static bool meet(vez_request_t *first, vez_request_t *second)
{
	enum vez__lost lost = vez__winner_take_both(first, second);
	const vez_request_t *loser = lost == VEZ__FIRST ? first : second;
	vez_request_t *winner = vez__winner_of(vez__select_of(loser));
	x_assert(lost == VEZ__NEITHER || (winner && winner != loser));
	return lost == VEZ__NEITHER;
}

static void meet_0_1(void)
{
	met[0] = meet(&a[0], &a[1]);
}

static void meet_1_0(void)
{
	met[1] = meet(&b[1], &b[0]);
}

static void win_0(void)
{
	won[0] = vez__winner_take(&b[0]);
}

static void win_1(void)
{
	won[1] = vez__winner_take(&b[1]);
}

/* In the same place as the meeting before. */
static void meet_0_1_then_2_3(void)
{
	meet_0_1();
	met[2] = meet(&a[2], &a[3]);
}

static void one_has_won(void)
{
	x_assert(won[0] == !met[0]);
	x_assert(vez__winner_of(&s[0]) == (met[0] ? &a[0] : &b[0]));
	x_assert(vez__winner_of(&s[1]) == (met[0] ? &a[1] : NULL));
}

static void neither_is_left(void)
{
	x_assert(met[0] ? !won[0] && !won[1] : won[0] || won[1]);
	x_assert(vez__winner_of(&s[0]) == (met[0] ? &a[0] : won[0] ? &b[0] : NULL));
	x_assert(vez__winner_of(&s[1]) == (met[0] ? &a[1] : won[1] ? &b[1] : NULL));
}

static void one_pair_has_met(void)
{
	x_assert(met[0] + met[1] == 1);
	x_assert(vez__winner_of(&s[0]) == (met[0] ? &a[0] : &b[0]));
	x_assert(vez__winner_of(&s[1]) == (met[0] ? &a[1] : &b[1]));
}

static void the_others_have_met(void)
{
	one_has_won();
	x_assert(met[2] && vez__winner_of(&s[2]) == &a[2] && vez__winner_of(&s[3]) == &a[3]);
}

X_SCENARIO(winner_first, .setup = make, .thread = { meet_0_1, win_0 }, .check = one_has_won, .stale = 2);
X_SCENARIO(winner_either, .setup = make, .thread = { meet_0_1, win_0, win_1 }, .check = neither_is_left, .stale = 2);
X_SCENARIO(winner_crosswise, .setup = make, .thread = { meet_0_1, meet_1_0 }, .check = one_pair_has_met, .stale = 2);
X_SCENARIO(winner_place_again, .setup = make, .thread = { meet_0_1_then_2_3, win_0 }, .check = the_others_have_met,
	   .stale = 2);
