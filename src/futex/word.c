/* SPDX-License-Identifier: MIT */
/*
 * The request word.
 *
 * State: word.h.
 * Invariants:
 *  W1 DONE is set once per wait, and nothing else is written to the word after it but by its own thread or, under the
 *     token's lock, by who fires a token on which the request is still enlisted.
 *  W2 a thread sleeps only on a value that it saw without any bit it waits for and with PARKED; whoever sets such a bit does it
 *     by an exchange that returns PARKED, and then wakes. So no wake is lost, whatever comes between check and sleep.
 * Ordering: the exchange to DONE in vez__word_publish (release; or FUTEX_WAKE_OP's, a full barrier) pairs with the load
 * in vez__word_wait (acquire): the result, and all that came before the release that granted it. The poke in vez__word_poke
 * needs no order of its own: who is poked enters the monitor.
 * Progress: one wake per publication, and only if PARKED was seen. Stray wakes, EINTR and the like are absorbed here.
 * Lifetime: a word is on its thread's stack. vez__word_publish asks for the next one first, and uses the bare address after.
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
	uint32_t seen = vez__load(word, acquire);
	if (!(seen & until) && spin_for(word, until))
		seen = vez__load(word, acquire);
	while (!(seen & until)) {
		uint32_t parked = seen | VEZ__PARKED;
		if (seen != parked && !vez__cas(word, &seen, parked, relaxed)) {
			seen = vez__load(word, acquire);
			continue;
		}
		int rc = vez__futex_wait(word, parked, deadline);
		seen = vez__load(word, acquire);
		if (rc == ETIMEDOUT)
			break;
	}
	return seen;
}

bool vez__word_come(uint32_t *word)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (seen & VEZ__COMING)
			return true;
		if (seen & (VEZ__SETTLED | VEZ__FIRED | VEZ__DONE))
			return false;
	} while (!vez__cas(word, &seen, VEZ__COMING, relaxed));
	return true;
}

bool vez__word_stay(uint32_t *word)
{
	uint32_t seen = VEZ__COMING;
	return vez__cas(word, &seen, 0, relaxed);
}

bool vez__word_poke(uint32_t *word, bool *wake)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (seen & (VEZ__COMING | VEZ__FIRED))
			return false;
	} while (!vez__cas(word, &seen, VEZ__COMING, relaxed));
	*wake = seen & VEZ__PARKED;
	return true;
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
		}
		word = following;
	}
	if (asleep)
		vez__futex_wake(asleep);
}
