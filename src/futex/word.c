/* SPDX-License-Identifier: MIT */
/*
 * The request word.
 *
 * State: word.h.
 * Invariants:
 *  W1 DONE is set once per wait, and nothing else is written to the word after it but by its own thread or, under the
 *     token's lock, by who fires a token on which the request is still enlisted.
 *  W2 a thread sleeps only on a value that it saw without any bit it waits for and with PARKED; whoever sets such a bit
 *     does it by an exchange that returns PARKED, and then wakes. So no wake is lost, whatever comes between check
 *     and sleep.
 *  W3 the thread of a cohort reads the cohort's turn before it exchanges PARKED into its own word; who ends its wait
 *     exchanges that word before it moves the turn on. So a thread that sleeps on an old turn has been seen PARKED, and
 *     the wake follows.
 * Ordering: the exchange to DONE in vez__word_publish (release; or FUTEX_WAKE_OP's, a full barrier) pairs with the load
 * in vez__word_wait (acquire): the result, and all that came before the release that granted it. The poke in
 * vez__word_poke (release) pairs with the same load, and with the one in come: which monitor to enter, where the
 * request has moved. The turn: vez__word_publish_in (release) pairs with vez__word_wait_in (acquire): who reads the new
 * turn finds DONE in its word.
 * Progress: one wake per publication, and only if PARKED was seen. Stray wakes, EINTR and the like are absorbed here.
 * Lifetime: a word is on its thread's stack. vez__word_publish asks for the next one first, and uses the bare
 * address after.
 */
#include "word.h"

#include <errno.h>
#include <stddef.h>

#include "atomic.h"
#include "futex.h"
#include "spin.h"

static bool spin_for(uint32_t *word, uint32_t until)
{
	unsigned budget = vez__spin_budget(VEZ__SPIN_WORD);
	if (budget == 0)
		return false;
	unsigned spun = 0;
	bool came = false;
	for (; !came && spun < budget; spun++) {
		vez__pause();
		came = vez__load(word, relaxed) & until;
	}
	vez__spin_learn(VEZ__SPIN_WORD, spun, came);
	return came;
}

uint32_t vez__word_wait(uint32_t *word, uint32_t until, vez_deadline_t deadline)
{
	return vez__word_wait_in(word, NULL, until, deadline);
}

/* Sleeps, if the word still reads so. */
static int sleep_on(uint32_t *word, uint32_t *cohort, uint32_t turn, uint32_t parked, vez_deadline_t deadline)
{
	return cohort ? vez__futex_wait(cohort, turn, deadline) : vez__futex_wait(word, parked, deadline);
}

uint32_t vez__word_wait_in(uint32_t *word, uint32_t *cohort, uint32_t until, vez_deadline_t deadline)
{
	uint32_t seen = vez__load(word, acquire);
	if (!(seen & until) && spin_for(word, until))
		seen = vez__load(word, acquire);
	while (!(seen & until)) {
		uint32_t parked = seen | VEZ__PARKED;
		uint32_t turn = cohort ? vez__load(cohort, acquire) : 0;
		/* The exchange also when PARKED is set already: it proves that the word reads so after turn
		 * was read. */
		if ((cohort || seen != parked) && !vez__cas(word, &seen, parked, relaxed)) {
			seen = vez__load(word, acquire);
			continue;
		}
		int rc = sleep_on(word, cohort, turn, parked, deadline);
		seen = vez__load(word, acquire);
		if (rc == ETIMEDOUT)
			break;
	}
	return seen;
}

uint32_t *vez__word_cohort(const void *object)
{
	static uint32_t cohorts[1024];
	return &cohorts[((uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

static bool come(uint32_t *word, uint32_t barring)
{
	uint32_t seen = vez__load(word, acquire);
	do {
		if (seen & VEZ__COMING)
			return vez__load(word, acquire) & VEZ__COMING;
		if ((seen & barring) || !vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, (seen & VEZ__DEAF) | VEZ__COMING, relaxed));
	return true;
}

bool vez__word_come(uint32_t *word)
{
	return come(word, VEZ__SETTLED | VEZ__DONE | VEZ__DEAF);
}

bool vez__word_look(uint32_t *word)
{
	return come(word, VEZ__SETTLED | VEZ__DONE);
}

bool vez__word_claim(uint32_t *word)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if ((seen & (VEZ__ASYNC | VEZ__DONE | VEZ__SETTLED | VEZ__DEAF)) != VEZ__ASYNC || !vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, seen | VEZ__COMING, acquire));
	return true;
}

static bool fired(uint32_t seen)
{
	return (seen & VEZ__FIRED) && !(seen & VEZ__DEAF);
}

void vez__word_go_back(uint32_t *word)
{
	vez__fetch_and(word, ~VEZ__COMING, relaxed);
}

bool vez__word_poke(uint32_t *word, bool *wake)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (!vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, (seen & VEZ__DEAF) | VEZ__COMING, release));
	*wake = seen & VEZ__PARKED;
	return true;
}

bool vez__word_deafen(uint32_t *word)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (!vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, seen | VEZ__DEAF, relaxed));
	return true;
}

void vez__word_keep(uint32_t *word, bool own)
{
	uint32_t seen = vez__load(word, relaxed);
	uint32_t next;
	do {
		next = own && fired(seen) ? seen : seen | VEZ__DEAF;
		if (own)
			next &= ~VEZ__COMING;
	} while (!vez__cas(word, &seen, next, relaxed));
}

void vez__word_publish(uint32_t *word, uint32_t *(*next)(uint32_t *word))
{
	uint32_t *asleep = NULL; /* published, its wake still owed */
	while (word) {
		uint32_t *following = next(word);
		if (asleep && (vez__load(word, relaxed) & VEZ__PARKED)) {
			vez__futex_wake_and_set(asleep, word, VEZ__DONE, VEZ__PARKED);
			asleep = NULL;
		} else if (vez__exchange(word, VEZ__DONE, release) & VEZ__PARKED) {
			if (asleep)
				vez__futex_wake(asleep);
			asleep = word;
		} else {
			vez__spin_met(VEZ__SPIN_WORD);
		}
		word = following;
	}
	if (asleep)
		vez__futex_wake(asleep);
}

void vez__word_publish_in(uint32_t *word, uint32_t *(*next)(uint32_t *word), uint32_t *cohort)
{
	uint32_t parked = 0;
	while (word) {
		uint32_t *following = next(word);
		parked |= vez__exchange(word, VEZ__DONE, release) & VEZ__PARKED;
		word = following;
	}
	if (parked) {
		vez__fetch_add(cohort, 1, release);
		vez__futex_wake_all(cohort);
	}
}
