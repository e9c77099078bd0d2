/* SPDX-License-Identifier: MIT */
/*
 * A core, and what its leaver publishes.
 *
 * State
 *  core     word_     bits 0-1 the lock (futex/lock.h), the rest its synchronizer's
 *           length_   how many wait in it, queued or as followers (follow.c); written inside, read anywhere
 *           coming_   bits 0-30: how many settled requests are still to be taken by a thread that is entering because
 *                     of them; inside. Bit 31: a thread that destroys the object sleeps here until they are 0
 *  pending  last_     the last of the requests settled in this stay, a ring linked by next_; by the one inside
 *           wake_     the word of a thread that is to be woken, or NULL; by the one inside
 *  asked     those who were asked to retry, if they sleep in their slots; by the one inside
 *  followed  the shared word whose followers are let go when the core has been left, or NULL; by the one inside
 * Invariants
 *  C1 what is pending belongs to the leaver from its leaving exchange on, and each request on the list is alive until
 *     its own word is published.
 *  C2 in a stay one thread at most is to be woken on its own word, and threads in slots of one word only: a thread is
 *     asked to retry only while requests are queued, one in a stay (barging.h; mutex.c: is_handed), with some of its
 *     neighbours (mutex.c: ask_more) or without, and a destroyer sleeps only while none is, and nobody uses the object
 *     any more but those it waits for.
 *  C3 the object is not destroyed while coming_ counts a request. Every thread that enters because of a request that is
 *     settled is counted: it announced itself in the request's word before SETTLED, so before the settler looked.
 *  C4 what a synchronizer says of "while nobody is inside", the leaver made so: it leaves by the very word by which
 *     nothing was left to serve.
 *  C5 a blocking call is let through at once only by a word that says that nobody is inside, or inside: so the thread
 *     which made that possible has left, and the object may go. (A mutex's need not: mutex.c.) Calls that try, or have
 *     no time, do not wait for that thread; who destroys the object enters, and thereby waits for it.
 * Ordering: leaving (release) pairs with entering (acquire): all that is "inside". A core's word is only changed by
 *  read-modify-write, so its changes are one release sequence: an exchange that acquires sees what came before every
 *  one before it that released.
 * Lifetime: vez__lock_leave is the last touch of the core. A destroyer that was woken enters once more, so whoever woke
 *  it has left; waking uses only the address.
 */
#include "core.h"

#include "../futex/futex.h"
#include "../futex/probe.h"
#include "winner.h"

#define DESTROYER UINT32_C(0x80000000)

static VEZ__HOT uint32_t *next_word(uint32_t *word)
{
	vez_request_t *r = (vez_request_t *)((char *)word - offsetof(vez_request_t, word_));
	return r->next_ ? &r->next_->word_ : NULL;
}

VEZ__HOT void vez__publish_list(vez_request_t *first)
{
	if (first)
		vez__word_publish(&first->word_, next_word);
}

VEZ__HOT void vez__publish_slots(vez_request_t *list)
{
	uint32_t bits[VEZ__SLOTS / 32];
	uint64_t rows = 0; /* those whose bits are set */
	_Static_assert(VEZ__SLOTS / 32 <= 64, "each row has a bit");
	for (vez_request_t *next; list; list = next) {
		uint32_t slot = vez__slot_of(list), row = slot / 32;
		next = list->next_;
		if (!vez__word_publish_only(&list->word_))
			continue;
		VEZ__PROBE2(wake, &list->word_, 1);
		bits[row] = vez__slot_bit(slot) | (rows >> row & 1 ? bits[row] : 0);
		rows |= UINT64_C(1) << row;
	}
	for (; rows; rows &= rows - 1) {
		uint32_t row = (uint32_t)__builtin_ctzll(rows);
		vez__slot_wake((struct vez__neighbours){ vez__slot_turn(row * 32), bits[row] });
	}
}

void vez__serve_all(struct vez__stay *in, const struct vez__rules *rules)
{
	while (rules->serve && rules->serve(in, vez__word_of(in)))
		;
}

VEZ__HOT void vez__leave_pending(struct vez__stay *in, const struct vez__rules *rules)
{
	struct vez__pending *pending = in->pending;
	for (;;) {
		uint64_t seen = vez__word_of(in);
		if (rules && rules->serve && rules->serve(in, seen))
			continue;
		if (pending != &in->own) {
			in->own = *pending;
			*pending = (struct vez__pending){ NULL, NULL };
		}
		if (VEZ__LIKELY(vez__lock_leave(&in->core->word_, seen, seen)))
			return;
		if (pending != &in->own)
			*pending = in->own;
	}
}

VEZ__HOT void vez__leave_threads(struct vez__stay *in)
{
	vez__leave_pending(in, NULL);
	if (in->own.wake_)
		vez__futex_wake(in->own.wake_);
	vez__publish_list(vez__pending_take(&in->own));
}

void vez__expect(struct vez__stay *in)
{
	vez__fetch_add(&in->core->coming_, 1, relaxed);
}

void vez__came(struct vez__stay *in)
{
	uint32_t *coming = &in->core->coming_;
	if (VEZ__UNLIKELY(vez__fetch_add(coming, UINT32_MAX, relaxed) == (DESTROYER | 1)))
		in->pending->wake_ = coming;
}

uint32_t vez__expected(struct vez__stay *in)
{
	uint32_t *coming = &in->core->coming_;
	uint32_t count = vez__load(coming, relaxed) & ~DESTROYER;
	vez__store(coming, count ? count | DESTROYER : 0, relaxed);
	return count;
}

void vez__await_none(struct vez__core *c)
{
	uint32_t seen;
	while ((seen = vez__load(&c->coming_, relaxed)) != DESTROYER)
		vez__futex_wait(&c->coming_, seen, VEZ_FOREVER);
}
