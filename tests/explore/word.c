/* SPDX-License-Identifier: MIT */
/* Scenarios of the request word (src/futex/word.h), alone: who is called, who comes, and who is published. */
#include "src/futex/word.h"

#include <stddef.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/futex/futex.h"

/* Two requests, as far as their words matter: dead as soon as their thread has seen DONE. */
static struct item {
	uint32_t word;
	int result;
	struct item *next;
} items[3];

static void make(void)
{
	for (int i = 0; i < 3; i++) {
		x_alive(&items[i], sizeof items[i]);
		items[i] = (struct item){ 0, 0, i < 2 ? &items[i + 1] : NULL };
	}
	X_NAME(items);
}

static uint32_t *next_item(uint32_t *word)
{
	struct item *next = ((struct item *)word)->next;
	return next ? &next->word : NULL;
}

static void wait_and_die(struct item *item, int result)
{
	uint32_t seen = vez__word_wait(&item->word, VEZ__DONE, VEZ_FOREVER);
	x_assert(seen & VEZ__DONE);
	x_assert(item->result == result);
	x_dead(item, sizeof *item);
}

static void wait_0(void)
{
	wait_and_die(&items[0], 10);
}

static void wait_1(void)
{
	wait_and_die(&items[1], 11);
}

static void wait_2(void)
{
	wait_and_die(&items[2], 12);
}

static void publish_from(int first)
{
	for (int i = first; i < 3; i++)
		items[i].result = 10 + i;
	vez__word_publish(&items[first].word, next_item);
}

static void publish_one(void)
{
	publish_from(2);
}

static void publish_two(void)
{
	publish_from(1);
}

static void publish_three(void)
{
	publish_from(0);
}

X_SCENARIO(word_publish, .setup = make, .thread = { wait_2, publish_one });
X_SCENARIO(word_publish_two, .setup = make, .thread = { wait_1, wait_2, publish_two }, .faults = 2);
X_SCENARIO(word_publish_three, .setup = make, .thread = { wait_0, wait_1, wait_2, publish_three });

/* All of them asleep: the wakes are merged. */
static bool parked(int first)
{
	for (int i = first; i < 3; i++)
		if (!(vez__load(&items[i].word, relaxed) & VEZ__PARKED))
			return false;
	return true;
}

static void publish_two_parked(void)
{
	x_await(parked(1));
	publish_from(1);
}

static void publish_three_parked(void)
{
	x_await(parked(0));
	publish_from(0);
}

X_SCENARIO(word_publish_two_parked, .setup = make, .thread = { wait_1, wait_2, publish_two_parked }, .faults = 2);
X_SCENARIO(word_publish_three_parked, .setup = make, .thread = { wait_0, wait_1, wait_2, publish_three_parked },
	   .preemptions = 2);

static void make_spinning(void)
{
	x_spin(2);
	make();
}

X_SCENARIO(word_publish_spinning, .setup = make_spinning, .thread = { wait_2, publish_one }, .cpus = 2);

/* ---- a deadline against a publication: exactly one ends the wait ---- */

static bool came, published;

static void make_undecided(void)
{
	came = published = false;
	make();
}

static void wait_or_come(void)
{
	struct item *item = &items[2];
	uint32_t seen = vez__word_wait(&item->word, VEZ__DONE, x_soon());
	came = !(seen & VEZ__DONE) && vez__word_come(&item->word);
	if (came)
		return;
	seen = vez__word_wait(&item->word, VEZ__DONE, VEZ_FOREVER);
	x_assert(seen & VEZ__DONE);
	x_assert(item->result == 12);
	x_dead(item, sizeof *item);
}

/* As who settles does: publishes only if nobody is coming. */
static void settle_and_publish(void)
{
	struct item *item = &items[2];
	item->result = 12;
	published = vez__word_is_free(vez__fetch_or(&item->word, VEZ__SETTLED, relaxed));
	if (published)
		vez__word_publish(&item->word, next_item);
}

static void come_or_done(void)
{
	x_assert(came != published);
}

X_SCENARIO(word_deadline, .setup = make_undecided, .thread = { wait_or_come, settle_and_publish },
	   .check = come_or_done);

/* ---- a poke: the thread looks, stays, and is called again ---- */

static int looked;

static void make_looked(void)
{
	looked = 0;
	make();
}

static void wait_and_look(void)
{
	struct item *item = &items[2];
	while (!(vez__word_wait(&item->word, VEZ__DONE | VEZ__COMING, VEZ_FOREVER) & VEZ__DONE)) {
		looked++;
		vez__word_go_back(&item->word);
	}
	x_dead(item, sizeof *item);
}

static void poke_then_publish(void)
{
	bool wake = false;
	x_assert(vez__word_poke(&items[2].word, &wake));
	if (wake)
		vez__futex_wake(&items[2].word);
	x_await(!(vez__load(&items[2].word, relaxed) & VEZ__COMING));
	vez__word_publish(&items[2].word, next_item);
}

static void looked_once(void)
{
	x_assert(looked == 1);
}

X_SCENARIO(word_poke, .setup = make_looked, .thread = { wait_and_look, poke_then_publish }, .check = looked_once);

/* ---- a cohort: all who sleep on one word are woken at once ---- */

static uint32_t cohort;

static void make_cohort(void)
{
	cohort = 0;
	X_NAME(cohort);
	make();
}

static void wait_in_cohort(struct item *item)
{
	uint32_t seen = vez__word_wait_in(&item->word, &cohort, VEZ__DONE, VEZ_FOREVER);
	x_assert(seen & VEZ__DONE);
	x_assert(item->result == 1);
	x_dead(item, sizeof *item);
}

static void cohort_1(void)
{
	wait_in_cohort(&items[1]);
}

static void cohort_2(void)
{
	wait_in_cohort(&items[2]);
}

static void publish_cohort(void)
{
	items[1].result = 1;
	items[2].result = 1;
	vez__word_publish_in(&items[1].word, next_item, &cohort);
}

X_SCENARIO(word_cohort, .setup = make_cohort, .thread = { cohort_1, cohort_2, publish_cohort });

/* Two objects may share the cohort word: the other's wakes are stray. */
static void publish_2_in_cohort(void)
{
	items[2].result = 1;
	vez__word_publish_in(&items[2].word, next_item, &cohort);
}

static void publish_1_in_cohort(void)
{
	items[1].result = 1;
	items[1].next = NULL;
	vez__word_publish_in(&items[1].word, next_item, &cohort);
}

X_SCENARIO(word_cohort_shared, .setup = make_cohort,
	   .thread = { cohort_1, cohort_2, publish_1_in_cohort, publish_2_in_cohort });
