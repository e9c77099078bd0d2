/* SPDX-License-Identifier: MIT */
/* Scenarios of the request word (src/futex/word.h), alone: who is called, who comes, and who is published. */
#include "src/futex/word.h"

#include <stddef.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/futex/futex.h"
#include "src/futex/shared.h"
#include "src/futex/slot.h"

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

X_SCENARIO(word_publish, .setup = make, .thread = { wait_2, publish_one }, .stale = 2);
X_SCENARIO(word_publish_two, .setup = make, .thread = { wait_1, wait_2, publish_two }, .faults = 2, .stale = 2);
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

X_SCENARIO(word_publish_two_parked, .setup = make, .thread = { wait_1, wait_2, publish_two_parked }, .faults = 2,
	   .stale = 1);
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

static void wait_or_announce(void)
{
	struct item *item = &items[2];
	uint32_t seen = vez__word_wait(&item->word, VEZ__DONE, x_soon());
	came = !(seen & VEZ__DONE) && vez__word_announce(&item->word);
	if (came)
		return;
	seen = vez__word_wait(&item->word, VEZ__DONE, VEZ_FOREVER);
	x_assert(seen & VEZ__DONE);
	x_assert(item->result == 12);
	x_dead(item, sizeof *item);
}

/* As a settler does: publishes only if nobody is entering. */
static void settle_and_publish(void)
{
	struct item *item = &items[2];
	item->result = 12;
	published = vez__word_is_free(vez__fetch_or(&item->word, VEZ__SETTLED, relaxed));
	if (published)
		vez__word_publish(&item->word, next_item);
}

static void announced_or_done(void)
{
	x_assert(came != published);
}

X_SCENARIO(word_deadline, .setup = make_undecided, .thread = { wait_or_announce, settle_and_publish },
	   .check = announced_or_done, .stale = 2);

/* ---- a thread that is asked to retry does, stays, and is called again ---- */

#define ON_ITS_WORD VEZ__SLOTS

static int looked;

static void make_looked(void)
{
	looked = 0;
	make();
}

/* On its own word, or in this slot: whether it is not DONE yet, but asked. */
static bool is_asked(struct item *item, uint32_t slot)
{
	const uint32_t until = VEZ__DONE | VEZ__ENTERING;
	uint32_t seen = slot == ON_ITS_WORD ? vez__word_wait(&item->word, until, VEZ_FOREVER) :
					      vez__word_wait_at(&item->word, slot, until, VEZ_FOREVER);
	return !(seen & VEZ__DONE);
}

static void retry_until_done(struct item *item, uint32_t slot)
{
	while (is_asked(item, slot)) {
		looked++;
		vez__word_entered(&item->word);
	}
	x_dead(item, sizeof *item);
}

static void wait_and_retry(void)
{
	retry_until_done(&items[2], ON_ITS_WORD);
}

static void ask_then_publish(void)
{
	bool wake = false;
	x_assert(vez__word_ask_to_retry(&items[2].word, &wake));
	if (wake)
		vez__futex_wake(&items[2].word);
	x_await(!(vez__load(&items[2].word, relaxed) & VEZ__ENTERING));
	vez__word_publish(&items[2].word, next_item);
}

static void looked_once(void)
{
	x_assert(looked == 1);
}

X_SCENARIO(word_ask_to_retry, .setup = make_looked, .thread = { wait_and_retry, ask_then_publish },
	   .check = looked_once, .stale = 2);

/* ---- slots: neighbours are woken together, or apart ---- */

static void wait_at(struct item *item, uint32_t slot)
{
	uint32_t seen = vez__word_wait_at(&item->word, slot, VEZ__DONE, VEZ_FOREVER);
	x_assert(seen & VEZ__DONE);
	x_assert(item->result == 1);
	x_dead(item, sizeof *item);
}

static void wait_1_at_1(void)
{
	wait_at(&items[1], 1);
}

static void wait_2_at_2(void)
{
	wait_at(&items[2], 2);
}

static void add_in_slot(struct vez__neighbours *those, int i)
{
	items[i].result = 1;
	those->turn = vez__slot_turn((uint32_t)i);
	if (vez__word_publish_only(&items[i].word))
		those->bits |= vez__slot_bit((uint32_t)i);
}

static void publish_in_slot(bool first, bool second)
{
	struct vez__neighbours those = { NULL, 0 };
	if (first)
		add_in_slot(&those, 1);
	if (second)
		add_in_slot(&those, 2);
	if (those.bits)
		vez__slot_wake(those);
}

static void publish_both_in_slot(void)
{
	publish_in_slot(true, true);
}

static void publish_1_in_slot(void)
{
	publish_in_slot(true, false);
}

static void publish_2_in_slot(void)
{
	publish_in_slot(false, true);
}

X_SCENARIO(word_slots, .setup = make, .thread = { wait_1_at_1, wait_2_at_2, publish_both_in_slot }, .stale = 2);
/* The wake of one is not for the other. */
X_SCENARIO(word_slots_apart, .setup = make,
	   .thread = { wait_1_at_1, wait_2_at_2, publish_1_in_slot, publish_2_in_slot }, .stale = 2);

/* Asked to retry, the thread comes, and is called again. */
static void wait_and_retry_in_slot(void)
{
	retry_until_done(&items[1], 1);
}

static void ask_in_slot_then_publish(void)
{
	bool wake = false;
	x_assert(vez__word_ask_to_retry(&items[1].word, &wake));
	if (wake)
		vez__slot_wake((struct vez__neighbours){ vez__slot_turn(1), vez__slot_bit(1) });
	x_await(!(vez__load(&items[1].word, relaxed) & VEZ__ENTERING));
	publish_1_in_slot();
}

X_SCENARIO(word_slots_ask_to_retry, .setup = make_looked,
	   .thread = { wait_and_retry_in_slot, ask_in_slot_then_publish }, .check = looked_once, .stale = 2);

/* ---- followers: members that have no request ---- */

static struct vez__shared *shared;
static int told;
static uint32_t joined;

static void make_followed(void)
{
	shared = vez__shared_at(vez__shared_take());
	vez__shared_join(shared);
	shared->result = 0;
	told = 0;
	joined = 0;
	make();
}

static void follow(void)
{
	uint32_t turn = vez__shared_join_follower(shared);
	vez__fetch_add(&joined, 1, acq_rel);
	x_assert(vez__shared_follow(shared, turn) == 7);
	x_assert(told == 1);
}

static void let_go_followers(void)
{
	x_await(vez__load(&joined, acquire) == 2);
	told = 1;
	shared->result = 7;
	vez__shared_let_go(shared);
}

X_SCENARIO(word_followed, .setup = make_followed, .thread = { follow, follow, let_go_followers }, .stale = 2);
