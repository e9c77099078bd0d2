/* SPDX-License-Identifier: MIT */
/*
 * The request word.
 *
 * State: word.h; slots: slot.h.
 * Invariants
 *  U1 DONE is set once per wait, and nothing else is written to the word after it but by its own thread or, under the
 *     token's lock, by a thread that fires a token on which the request is still enlisted.
 *  U2 a thread sleeps only on a value that it saw without any bit it waits for and with PARKED; whoever sets such a bit
 *     does it by an exchange that returns PARKED, and then wakes. So no wake is lost, whatever comes between check
 *     and sleep.
 *  U3 a thread that sleeps in its slot reads the turn there before it exchanges PARKED into its own word; whoever
 *     publishes that word, or asks it, exchanges it before it moves the turn on. So a thread that sleeps on an old turn
 *     has been seen PARKED, and the wake follows.
 * Ordering: the exchange to DONE in vez__word_publish (release; or FUTEX_WAKE_OP's, a full barrier) pairs with the load
 * in wait_on (acquire): the result, and all that came before the release that granted it. So does the one in
 * vez__word_publish_only. The exchange in vez__word_ask_to_retry (release) pairs with the same load, and with the one
 * in announce: which core to enter, where the request has moved. The turn: vez__slot_wake (release) pairs with wait_on
 * (acquire): a thread that reads the new turn finds DONE, or ENTERING, in its word.
 * Progress: one wake per publication, and only if PARKED was seen. Stray wakes, EINTR and the like are absorbed here.
 * Lifetime: a word is on its thread's stack. vez__word_publish asks for the next one first, and uses the bare
 * address after.
 */
#include "word.h"

#include <errno.h>
#include <stddef.h>

#include "atomic.h"
#include "futex.h"
#include "slot.h"
#include "spin.h"

struct look {
	uint32_t *word;
	uint32_t until;
};

static VEZ__HOT bool has_come(void *arg)
{
	const struct look *look = arg;
	return vez__load(look->word, relaxed) & look->until;
}

/* As vez__word_wait says; asleep on turn with this bit, or on word itself where turn is NULL. */
static inline uint32_t wait_on(uint32_t *word, uint32_t *turn, uint32_t bit, uint32_t until, vez_deadline_t deadline)
{
	struct look look = { word, until };
	uint32_t seen = vez__load(word, acquire);
	if (!(seen & until) && vez__spin(VEZ__SPIN_WORD, 1, 1, has_come, &look))
		seen = vez__load(word, acquire);
	while (!(seen & until)) {
		uint32_t parked = seen | VEZ__PARKED;
		uint32_t at = turn ? vez__load_fast(turn, acquire) : 0; /* race checkers are not told: slot.c */
		/* The exchange also when PARKED is set already: it proves that the word reads so after the turn was
		 * read. */
		if ((turn || seen != parked) && !vez__cas(word, &seen, parked, relaxed)) {
			seen = vez__load(word, acquire);
			continue;
		}
		int rc = turn ? vez__futex_wait_bits(turn, at, bit, deadline) : vez__futex_wait(word, parked, deadline);
		seen = vez__load(word, acquire);
		if (rc == ETIMEDOUT)
			break;
	}
	return seen;
}

VEZ__HOT uint32_t vez__word_wait(uint32_t *word, uint32_t until, vez_deadline_t deadline)
{
	return wait_on(word, NULL, VEZ__ANY_BIT, until, deadline);
}

VEZ__HOT uint32_t vez__word_wait_at(uint32_t *word, uint32_t slot, uint32_t until, vez_deadline_t deadline)
{
	return wait_on(word, vez__slot_turn(slot), vez__slot_bit(slot), until, deadline);
}

static bool announce(uint32_t *word, uint32_t barring)
{
	uint32_t seen = vez__load(word, acquire);
	do {
		if (seen & VEZ__ENTERING)
			return vez__load(word, acquire) & VEZ__ENTERING;
		if ((seen & barring) || !vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, (seen & VEZ__UNCANCELLABLE) | VEZ__ENTERING, relaxed));
	return true;
}

bool vez__word_announce(uint32_t *word)
{
	return announce(word, VEZ__SETTLED | VEZ__DONE | VEZ__UNCANCELLABLE);
}

bool vez__word_announce_retry(uint32_t *word)
{
	return announce(word, VEZ__SETTLED | VEZ__DONE);
}

bool vez__word_announce_end(uint32_t *word)
{
	const uint32_t barring = VEZ__DONE | VEZ__SETTLED | VEZ__UNCANCELLABLE;
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (!(seen & VEZ__ASYNC) || (seen & barring) || !vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, seen | VEZ__ENTERING, acquire));
	return true;
}

static bool fired(uint32_t seen)
{
	return (seen & VEZ__FIRED) && !(seen & VEZ__UNCANCELLABLE);
}

void vez__word_entered(uint32_t *word)
{
	vez__fetch_and(word, ~VEZ__ENTERING, relaxed);
}

bool vez__word_ask_to_retry(uint32_t *word, bool *wake)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (!vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, (seen & VEZ__UNCANCELLABLE) | VEZ__ENTERING, release));
	*wake = seen & VEZ__PARKED;
	return true;
}

bool vez__word_make_uncancellable(uint32_t *word)
{
	uint32_t seen = vez__load(word, relaxed);
	do {
		if (!vez__word_is_free(seen))
			return false;
	} while (!vez__cas(word, &seen, seen | VEZ__UNCANCELLABLE, relaxed));
	return true;
}

void vez__word_keep(uint32_t *word, bool own)
{
	uint32_t seen = vez__load(word, relaxed);
	uint32_t next;
	do {
		next = own && fired(seen) ? seen : seen | VEZ__UNCANCELLABLE;
		if (own)
			next &= ~VEZ__ENTERING;
	} while (!vez__cas(word, &seen, next, relaxed));
}

VEZ__HOT void vez__word_publish(uint32_t *word, uint32_t *(*next)(uint32_t *word))
{
	uint32_t *asleep = NULL; /* published, but not woken yet */
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

VEZ__HOT bool vez__word_publish_only(uint32_t *word)
{
	bool asleep = vez__exchange(word, VEZ__DONE, release) & VEZ__PARKED;
	if (!asleep)
		vez__spin_met(VEZ__SPIN_WORD);
	return asleep;
}
