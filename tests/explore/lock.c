/* SPDX-License-Identifier: MIT */
/* Scenarios of the short lock (src/futex/lock.h), alone. */
#include "src/futex/lock.h"

#include "scenario.h"

#define STATE (UINT64_C(1) << 32)

static uint64_t word;
static int count;
static uint32_t returned;

static void make(void)
{
	x_alive(&word, sizeof word);
	X_NAME(word);
	word = 0;
	count = 0;
	returned = 0;
}

static void enter_and_count(void)
{
	vez__lock_enter(&word);
	count++;
	vez__lock_exit(&word);
}

static void enter_and_count_twice(void)
{
	enter_and_count();
	enter_and_count();
}

static void free_again(void)
{
	x_assert(!(word & VEZ__LOCKED));
}

static void counted_2(void)
{
	x_assert(count == 2);
	free_again();
}

static void counted_3(void)
{
	x_assert(count == 3);
	free_again();
}

X_SCENARIO(lock_two, .setup = make, .thread = { enter_and_count, enter_and_count }, .check = counted_2, .stale = 2);
X_SCENARIO(lock_twice, .setup = make, .thread = { enter_and_count_twice, enter_and_count }, .check = counted_3,
	   .stale = 2);
X_SCENARIO(lock_three, .setup = make, .thread = { enter_and_count, enter_and_count, enter_and_count },
	   .check = counted_3, .preemptions = 3, .stale = 1);

static void make_spinning(void)
{
	x_spin(2);
	make();
}

X_SCENARIO(lock_spinning, .setup = make_spinning, .thread = { enter_and_count, enter_and_count }, .check = counted_2,
	   .cpus = 2);

/* The state above the lock changes while somebody is inside: who leaves must have seen it. */
static void enter_and_serve(void)
{
	uint64_t seen;
	vez__lock_enter(&word);
	do {
		seen = vez__load(&word, relaxed);
		count = (int)(seen / STATE);
	} while (!vez__lock_leave(&word, seen, seen));
}

static void add_state(void)
{
	uint64_t seen = vez__load(&word, relaxed);
	while (!vez__cas(&word, &seen, (seen + STATE) | VEZ__LOCKED, acq_rel)) {
	}
	if (seen & VEZ__LOCKED)
		return;
	do {
		seen = vez__load(&word, relaxed);
		count = (int)(seen / STATE);
	} while (!vez__lock_leave(&word, seen, seen));
}

static void served_all(void)
{
	x_assert(word / STATE == 2);
	x_assert(count == 2);
	free_again();
}

X_SCENARIO(lock_state_changes, .setup = make, .thread = { enter_and_serve, add_state, add_state }, .check = served_all,
	   .preemptions = 3, .stale = 1);

/* The leaving exchange is the last touch: the last one to have been inside may unmap the word. */
static void enter_and_unmap_last(void)
{
	vez__lock_enter(&word);
	bool last = ++count == 2;
	vez__lock_exit(&word);
	if (last)
		x_dead(&word, sizeof word);
}

X_SCENARIO(lock_unmap, .setup = make, .thread = { enter_and_unmap_last, enter_and_unmap_last }, .stale = 2);
