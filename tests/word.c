/* SPDX-License-Identifier: MIT */
/* The request word. */
#include "futex/word.h"

#include <errno.h>
#include <sched.h>

#include "futex/futex.h"
#include "futex/slot.h"
#include "guard.h"
#include "inject.h"
#include "thread.h"
#include "variant.h"

TestSuite(word, .timeout = 60);

#define WORDS 5
#define ON_ITS_WORD VEZ__SLOTS

struct sleeper {
	struct thread thread;
	uint32_t *word;
	uint32_t slot; /* or ON_ITS_WORD */
	uint32_t until;
	vez_deadline_t deadline;
	uint32_t seen;
	unsigned waits;
};

static void sleep_until(void *arg)
{
	struct sleeper *s = arg;
	s->seen = s->slot == ON_ITS_WORD ? vez__word_wait(s->word, s->until, s->deadline) :
					    vez__word_wait_at(s->word, s->slot, s->until, s->deadline);
	s->waits = inject_own_waits();
}

static void sleeper_start(struct sleeper *s, uint32_t *word, uint32_t slot)
{
	*s = (struct sleeper){ .word = word, .slot = slot, .until = VEZ__DONE | VEZ__ENTERING,
			       .deadline = VEZ_FOREVER };
	thread_start(&s->thread, sleep_until, s);
	thread_await_parked(&s->thread);
}

/* The words of a test lie in one array, and are published upwards. */
static uint32_t *words, *last_word;

static uint32_t *next_word(uint32_t *word)
{
	return word == last_word ? NULL : word + 1;
}

static uint32_t *no_next(uint32_t *word)
{
	(void)word;
	return NULL;
}

/* Seen to fail: a wait that sleeps before it looks. */
Test(word, ALL_what_has_come_is_not_waited_for)
{
	uint32_t word = VEZ__DONE;
	EXPECT_EQ(vez__word_wait(&word, VEZ__DONE, VEZ_FOREVER), VEZ__DONE);
	word = VEZ__ENTERING;
	EXPECT_EQ(vez__word_wait(&word, VEZ__DONE | VEZ__ENTERING, VEZ_NOW), VEZ__ENTERING);
	EXPECT_EQ(inject_waits(), 0);
}

/* Seen to fail: a wait that returns after the kernel's first word; one that does not return when it should. */
Test(word, H03_a_deadline_ends_the_wait_when_the_clock_says_so)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint32_t word = 0;
		struct sleeper s = { .word = &word, .slot = ON_ITS_WORD, .until = VEZ__DONE,
				     .deadline = NOON + 100 };
		inject_clock(NOON);
		thread_start(&s.thread, sleep_until, &s);
		thread_await_parked(&s.thread);
		EXPECT_EQ(word, VEZ__PARKED);
		inject_clock(NOON + 99);
		thread_kick(&s.thread);
		thread_await_parked(&s.thread);
		EXPECT(!thread_done(&s.thread));
		inject_clock(NOON + 100);
		thread_kick(&s.thread);
		thread_join(&s.thread);
		EXPECT_EQ(s.seen & VEZ__DONE, 0);
		inject_clock(0);
		vez_deadline_t limit = vez_after_ms(2);
		word = 0;
		EXPECT_EQ(vez__word_wait(&word, VEZ__DONE, limit) & VEZ__DONE, 0);
		EXPECT(real_now() >= limit);
	}
}

/* Seen to fail: publish without a wake; publish that wakes a thread that does not sleep. */
Test(word, SEM_55_those_that_sleep_are_woken_and_no_others)
{
	for (unsigned parked = 0; parked < 1u << WORDS; parked++) {
		uint32_t array[WORDS] = { 0 };
		struct sleeper s[WORDS];
		unsigned due = 0;
		inject_reset(parked % FAULTS);
		inject_wake_op_error(parked % 5 == 0 ? ENOSYS : 0);
		words = array;
		last_word = &array[WORDS - 1];
		for (int i = 0; i < WORDS; i++)
			if (parked >> i & 1)
				sleeper_start(&s[i], &array[i], ON_ITS_WORD);
		vez__word_publish(words, next_word);
		for (int i = 0; i < WORDS; i++) {
			EXPECT_EQ(LOAD(&array[i]) & ~VEZ__PARKED, VEZ__DONE);
			if (!(parked >> i & 1))
				continue;
			EXPECT_EQ(inject_woken(due), (uintptr_t)&array[i]);
			due++;
			thread_join(&s[i].thread);
			EXPECT_EQ(s[i].seen & VEZ__DONE, VEZ__DONE);
		}
		EXPECT_EQ(inject_wakes(), due);
	}
}

/* Each word on a page that is closed as soon as it says DONE: the sleeper's stack may be gone. */
static uint32_t *pages[3];

static uint32_t *next_page(uint32_t *word)
{
	for (int i = 0; i < 2; i++)
		if (pages[i] == word)
			return pages[i + 1];
	return NULL;
}

static void close_when_done(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++) {
		UNTIL(LOAD(pages[i]) & VEZ__DONE)
			;
		guard_close(pages[i]);
	}
}

static void publish_pages(void *arg)
{
	(void)arg;
	vez__word_publish(pages[0], next_page);
}

static void leave_time(uint32_t *word)
{
	/* Until the page of the word to be woken is closed, or all have been. */
	for (int i = 0; i < 200; i++)
		sched_yield();
	(void)word;
}

/* Seen to fail: publish that asks for the next word after it has let this one go. */
Test(word, A06_a_published_word_is_not_touched_again)
{
	for (int parked = 0; parked < 2; parked++) {
		struct thread closer = { 0 }, publisher = { 0 };
		for (int i = 0; i < 3; i++) {
			pages[i] = guard_new(sizeof *pages[i]);
			/* As if its thread slept: the wake finds nobody. */
			*pages[i] = parked ? VEZ__PARKED : 0;
		}
		inject_wake_op_error(ENOSYS);
		inject_before_wake(leave_time);
		thread_start(&closer, close_when_done, NULL);
		thread_start(&publisher, publish_pages, NULL);
		thread_join(&publisher);
		thread_join(&closer);
		inject_before_wake(NULL);
		for (int i = 0; i < 3; i++)
			guard_free(pages[i]);
	}
}

/* Seen to fail: vez__word_ask_to_retry without release of the sleeper; vez__word_announce that succeeds after
 * SETTLED. */
Test(word, ALL_who_comes_in_and_who_does_not)
{
	bool wake = true;
	uint32_t word = 0;
	EXPECT(vez__word_announce(&word));
	EXPECT_EQ(word, VEZ__ENTERING);
	EXPECT(vez__word_announce(&word));
	EXPECT(!vez__word_ask_to_retry(&word, &wake));
	vez__word_entered(&word);
	EXPECT_EQ(word, 0);
	EXPECT(vez__word_ask_to_retry(&word, &wake));
	EXPECT(!wake);
	EXPECT(vez__word_announce(&word));
	word = VEZ__ENTERING | VEZ__FIRED;
	vez__word_entered(&word);
	EXPECT_EQ(word, VEZ__FIRED);
	word = VEZ__SETTLED;
	EXPECT(!vez__word_announce(&word));
	word = VEZ__FIRED;
	EXPECT(!vez__word_announce(&word));
	EXPECT(!vez__word_ask_to_retry(&word, &wake));
	word = VEZ__DONE;
	EXPECT(!vez__word_announce(&word));
}

/* Seen to fail: vez__word_ask_to_retry that does not tell that the thread sleeps. */
Test(word, ALL_a_request_to_retry_reaches_a_sleeper)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint32_t word = 0;
		bool wake = false;
		struct sleeper s;
		sleeper_start(&s, &word, ON_ITS_WORD);
		EXPECT(vez__word_ask_to_retry(&word, &wake));
		EXPECT(wake);
		vez__futex_wake(&word);
		thread_join(&s.thread);
		EXPECT_EQ(s.seen & VEZ__ENTERING, VEZ__ENTERING);
	}
}

struct pair {
	struct thread thread;
	uint32_t word;
	struct gate *gate;
};

static void publish_one(void *arg)
{
	struct pair *p = arg;
	gate_pass(p->gate);
	vez__word_publish(&p->word, no_next);
}

/* Seen to fail: a wait that announces itself and does not look again. */
Test(word, I02_announcing_and_publishing_at_once)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		for (int round = 0; round < 300; round++) {
			struct gate gate;
			struct pair p = { .gate = &gate };
			gate_init(&gate);
			thread_start(&p.thread, publish_one, &p);
			gate_await(&gate, 1);
			gate_open(&gate);
			EXPECT_EQ(vez__word_wait(&p.word, VEZ__DONE, VEZ_FOREVER) & VEZ__DONE, VEZ__DONE);
			thread_join(&p.thread);
		}
	}
}

/* Publishes the word of one that sleeps in this slot, and adds it to those who are to be woken. */
static void publish_in_slot(struct vez__neighbours *those, uint32_t *word, uint32_t slot)
{
	those->turn = vez__slot_turn(slot);
	if (vez__word_publish_only(word))
		those->bits |= vez__slot_bit(slot);
}

/* Seen to fail: slot_wake that wakes one. */
Test(word, ALL_neighbours_are_woken_by_one_call)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint32_t array[WORDS] = { 0 };
		struct vez__neighbours those = { NULL, 0 };
		struct sleeper s[WORDS];
		for (uint32_t i = 0; i < WORDS; i++)
			sleeper_start(&s[i], &array[i], 64 + i);
		for (uint32_t i = 0; i < WORDS; i++)
			publish_in_slot(&those, &array[i], 64 + i);
		vez__slot_wake(those);
		for (int i = 0; i < WORDS; i++) {
			thread_join(&s[i].thread);
			EXPECT_EQ(s[i].seen & VEZ__DONE, VEZ__DONE);
		}
		EXPECT_EQ(inject_wakes(), 1);
	}
}

/* Each but one is woken alone; the last one waits as often as it would have by itself. Seen to fail: slot_wake that
 * wakes all; sys_futex_wait that heeds every wake. */
Test(word, ALL_a_neighbour_is_woken_alone)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint32_t array[WORDS] = { 0 };
		struct sleeper s[WORDS];
		for (uint32_t i = 0; i < WORDS; i++)
			sleeper_start(&s[i], &array[i], i);
		for (uint32_t i = 0; i < WORDS; i++) {
			struct vez__neighbours those = { NULL, 0 };
			publish_in_slot(&those, &array[i], i);
			vez__slot_wake(those);
			thread_join(&s[i].thread);
			EXPECT_EQ(s[i].seen & VEZ__DONE, VEZ__DONE);
			EXPECT(s[i].waits <= 2); /* by a fault of the test's it may look once more */
			for (uint32_t k = i + 1; k < WORDS; k++)
				thread_await_parked(&s[k].thread);
		}
		EXPECT_EQ(inject_wakes(), WORDS);
	}
}

/* A sandbox that lets no wake by bits pass: all who sleep on the word wake, and those that were not meant sleep again.
 * Seen to fail: wake that gives up. */
Test(word, ALL_wakes_by_bits_are_refused)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		uint32_t array[WORDS] = { 0 };
		struct sleeper s[WORDS];
		inject_bits_error(EPERM);
		for (uint32_t i = 0; i < WORDS; i++)
			sleeper_start(&s[i], &array[i], i);
		for (uint32_t i = WORDS; i-- > 0;) {
			struct vez__neighbours those = { NULL, 0 };
			publish_in_slot(&those, &array[i], i);
			vez__slot_wake(those);
			thread_join(&s[i].thread);
			EXPECT_EQ(s[i].seen & VEZ__DONE, VEZ__DONE);
			for (uint32_t k = 0; k < i; k++)
				thread_await_parked(&s[k].thread);
		}
		inject_bits_error(0);
	}
}

/* Of two that have the same slot the one that is meant is woken, though the other came first. That one sleeps again.
 * Seen to fail: slot_wake that tells the kernel of one thread. */
Test(word, ALL_two_that_have_the_same_slot)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		const uint32_t slot = VEZ__OWN_SLOTS + 5;
		uint32_t array[2] = { 0 };
		struct sleeper s[2];
		for (int i = 0; i < 2; i++)
			sleeper_start(&s[i], &array[i], slot);
		for (int i = 1; i >= 0; i--) {
			struct vez__neighbours those = { NULL, 0 };
			publish_in_slot(&those, &array[i], slot);
			vez__slot_wake(those);
			thread_join(&s[i].thread);
			EXPECT_EQ(s[i].seen & VEZ__DONE, VEZ__DONE);
			if (i == 1)
				thread_await_parked(&s[0].thread);
		}
	}
}

/* Seen to fail: slot_turn that has one word for all. */
Test(word, ALL_slots)
{
	for (uint32_t slot = 0; slot < VEZ__SLOTS; slot++) {
		EXPECT_EQ(vez__slot_turn(slot) == vez__slot_turn((slot + 32) % VEZ__SLOTS), false);
		EXPECT(vez__slot_turn(slot) == vez__slot_turn(slot / 32 * 32));
		EXPECT_EQ(vez__slot_bit(slot), UINT32_C(1) << slot % 32);
	}
}

static struct gate before_wait;

static void stop_before_wait(uint32_t *word)
{
	(void)word;
	inject_before_wait(NULL);
	gate_pass(&before_wait);
}

/* Its thread has looked and goes to sleep, when the wake is sent: it must not sleep, in its slot or on its word. Seen
 * to fail: slot_wake that does not move the turn on; publish that leaves the word to be changed by the sleeper. */
Test(word, I02_published_between_the_look_and_the_sleep)
{
	EACH_VARIANT(v, ONE_FORM | FIFO_ONLY) {
		for (unsigned in_slot = 0; in_slot < 2; in_slot++) {
			uint32_t word = 0;
			struct vez__neighbours those = { NULL, 0 };
			struct sleeper s = { .word = &word, .slot = in_slot ? 7 : ON_ITS_WORD, .until = VEZ__DONE,
					     .deadline = VEZ_FOREVER };
			gate_init(&before_wait);
			inject_before_wait(stop_before_wait);
			thread_start(&s.thread, sleep_until, &s);
			gate_await(&before_wait, 1);
			EXPECT_EQ(word, VEZ__PARKED);
			if (in_slot)
				publish_in_slot(&those, &word, 7);
			else
				vez__word_publish(&word, no_next);
			if (in_slot)
				vez__slot_wake(those);
			gate_open(&before_wait);
			thread_join(&s.thread);
			EXPECT_EQ(s.seen & VEZ__DONE, VEZ__DONE);
			EXPECT_EQ(inject_wakes(), in_slot + 1);
		}
	}
}
