/* SPDX-License-Identifier: MIT */
/*
 * The request word: what one waiting thread looks at, and sleeps on unless it sleeps in its slot (slot.h).
 *
 *	bit 0  SETTLED   the result is decided. Set inside the core, by the thread that settles the request, or by its
 *	                 own thread when that has entered and settled it itself.
 *	bit 1  ENTERING  the request's own thread is about to enter the core: its deadline has passed, or it was asked
 *	                 to retry. Set by that thread, or by the one inside that asks it; only while the word is free.
 *	                 Cleared by that thread, inside.
 *	bit 2  FIRED     a token fired. Set by the thread that fires. If it found none of SETTLED, FIRED, DONE and
 *	                 UNCANCELLABLE, the firing thread will enter the core and end the request; otherwise it means
 *	                 nothing.
 *	bit 3  DONE      published: the result may be read, and the word's memory belongs to the request's thread again.
 *	                 Set last, outside the core; the other bits mean nothing then.
 *	bit 4  UNCANCELLABLE  its limits apply no more: it was notified on a condition and now waits for the mutex only,
 *	                 or its barrier's round is decided, or a user's monitor keeps it, or it is being taken. Set
 *	                 inside the core by the thread that decided that, at a moment when neither ENTERING nor FIRED
 *	                 was set, or by the thread that entered because of one of them; FIRED means nothing from then
 *	                 on.
 *	bit 5  PARKED    its thread sleeps, or is about to. Set by that thread; whoever ends its wait must wake it. The
 *	                 highest bit of a thread's word, so that FUTEX_WAKE_OP can ask for it by comparison.
 *	bit 6  ASYNC     no thread waits: the request is asynchronous, and has been filed. Set before it is queued.
 *	                 ENTERING then is set by whoever ends it before its time: the library's thread, or a thread that
 *	                 cancels it. Never PARKED.
 *
 * ENTERING and FIRED keep the core: where one of them is set on a request before SETTLED, the core counts the request
 * until the thread in question has entered (coming_), is not destroyed before, and the word is not published by the
 * thread that settles it: the last one to enter finds the result. If both are set, both enter.
 */
#ifndef VEZ__WORD_H
#define VEZ__WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "vez/deadline.h"

#define VEZ__SETTLED UINT32_C(1)
#define VEZ__ENTERING UINT32_C(2)
#define VEZ__FIRED UINT32_C(4)
#define VEZ__DONE UINT32_C(8)
#define VEZ__UNCANCELLABLE UINT32_C(16)
#define VEZ__PARKED UINT32_C(32)
#define VEZ__ASYNC UINT32_C(64)

/* By the request's own thread: spins a little, then sleeps, until one of the bits until is set or the deadline has
 * passed. Acquires. Returns the word: none of those bits in it means the deadline has passed. */
uint32_t vez__word_wait(uint32_t *word, uint32_t until, vez_deadline_t deadline);

/* The same, asleep in this slot (slot.h), not on its own word. */
uint32_t vez__word_wait_at(uint32_t *word, uint32_t slot, uint32_t until, vez_deadline_t deadline);

/* By the request's own thread, whose limit has passed: announces that it is entering. False: the request is settled,
 * another thread is entering because of it, or it is UNCANCELLABLE. */
bool vez__word_announce(uint32_t *word);

/* By the request's own thread: announces that it is entering to retry; UNCANCELLABLE or not. False: the request is
 * settled, or another thread is entering because of it. */
bool vez__word_announce_retry(uint32_t *word);

/* By whoever wants to end an asynchronous request: announces that it is entering. False: the request is settled or
 * UNCANCELLABLE, somebody else is entering because of it, or it is not queued. */
bool vez__word_announce_end(uint32_t *word);

/* Inside the core, by the thread that announced: has entered. The request stays, or is left to the thread that
 * fired. */
void vez__word_entered(uint32_t *word);

/* Inside the core: asks the thread to enter and retry. *wake tells whether it sleeps: it is to be woken where it does,
 * after the core is left. False: somebody is entering already. */
bool vez__word_ask_to_retry(uint32_t *word, bool *wake);

/* Inside the core: makes it UNCANCELLABLE, so that it can be moved. False: somebody is entering because of it. */
bool vez__word_make_uncancellable(uint32_t *word);

/* Whether a word that reads so when it is settled is published by the settler; if not, a thread that is entering takes
 * the result. */
static inline bool vez__word_is_free(uint32_t seen)
{
	return !(seen & VEZ__ENTERING) && (!(seen & VEZ__FIRED) || (seen & VEZ__UNCANCELLABLE));
}

/* Inside the core, by a thread that has entered because of a limit (the request's own, or the one that fired) and finds
 * that the request stays all the same: makes it UNCANCELLABLE, as soon as nobody enters any more because of a token. */
void vez__word_keep(uint32_t *word, bool own);

/* Publishes the words of a list in order, each the last touch of its memory, and wakes those that sleep. next: the word
 * published after this one (asked before this one is let go), NULL at the end. */
void vez__word_publish(uint32_t *first, uint32_t *(*next)(uint32_t *word));

/* Publishes the word of a thread that sleeps in its slot. Whether it does: then it is to be woken there. */
bool vez__word_publish_only(uint32_t *word);

#endif
