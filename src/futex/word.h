/* SPDX-License-Identifier: MIT */
/*
 * The request word: what one waiting thread sleeps on.
 *
 *	bit 0  SETTLED  the result is decided. Set inside the monitor, by who settles, or by the request's own thread
 *	                that has come and settled it itself.
 *	bit 1  COMING   the request's own thread is on its way into the monitor: its deadline has passed, or it was
 *	                poked to look again. Set by that thread, or by who pokes it (inside); only while free. Cleared
 *	                by that thread, inside.
 *	bit 2  FIRED    a token fired. Set by who fires. If it found none of SETTLED, FIRED, DONE and DEAF, the firing
 *	                thread will enter the monitor and end the request; otherwise it means nothing.
 *	bit 3  DONE     published: the result may be read, and the word's memory belongs to the request's thread again.
 *	                Set last, outside the monitor; the other bits mean nothing then.
 *	bit 4  DEAF     its limits apply no more: it was notified on a condition and now waits for the mutex only, or
 *	                its barrier's round is decided, or it is being taken. Set inside the monitor by who decided
 *	                that, at a moment when neither COMING nor FIRED was set, or by who was coming because of one of
 *	                them; FIRED means nothing from then on.
 *	bit 5  PARKED   its thread sleeps, or is about to. Set by that thread; whoever ends its wait owes it a wake. The
 *	                highest bit of a thread's word, so that FUTEX_WAKE_OP can ask for it by comparison.
 *	bit 6  ASYNC    no thread waits: the request is asynchronous, and has been filed. Set before it is queued.
 *	                COMING then is set by whoever ends it before its time: the alarm clock, or who cancels it. Never
 *	                PARKED; DEAF only for the moment before it is SETTLED.
 *
 * COMING and FIRED pin the monitor: while one of them is set on a request that was not settled before, the monitor
 * counts the request (pins_), is not destroyed, and the word is not published by who settles it: the last one to come
 * finds the result. If both are set, both come.
 */
#ifndef VEZ__WORD_H
#define VEZ__WORD_H

#include <stdbool.h>
#include <stdint.h>

#include "vez/deadline.h"

#define VEZ__SETTLED UINT32_C(1)
#define VEZ__COMING UINT32_C(2)
#define VEZ__FIRED UINT32_C(4)
#define VEZ__DONE UINT32_C(8)
#define VEZ__DEAF UINT32_C(16)
#define VEZ__PARKED UINT32_C(32)
#define VEZ__ASYNC UINT32_C(64)

/* Its own thread: spins a little, then sleeps, until one of the bits until is set or the deadline has passed. Acquires.
 * Returns the word: none of those bits in it means the deadline has passed. */
uint32_t vez__word_wait(uint32_t *word, uint32_t until, vez_deadline_t deadline);

/* The same, asleep with a cohort: all who sleep on one cohort word are woken by one system call. NULL: with none. */
uint32_t vez__word_wait_in(uint32_t *word, uint32_t *cohort, uint32_t until, vez_deadline_t deadline);

/* The cohort word of an object. It outlives every object; others may share it, and are then woken in vain. */
uint32_t *vez__word_cohort(const void *object);

/* Its own thread: announces that it is coming in. False: it is settled, another thread is coming for it, or it
 * is DEAF. */
bool vez__word_come(uint32_t *word);

/* Its own thread: comes in to look again by itself; DEAF or not. False: it is settled, or another thread is coming
 * for it. */
bool vez__word_look(uint32_t *word);

/* Whoever wants to end an asynchronous request: announces that it is coming in. False: it is settled or DEAF, somebody
 * else is coming for it, or it is not queued. */
bool vez__word_claim(uint32_t *word);

/* Its own thread, inside the monitor: has come, and is no more COMING: it stays, or leaves the request to who fired. */
void vez__word_go_back(uint32_t *word);

/* Inside the monitor: tells the thread to come in and look again. *wake tells whether it sleeps: its word's address is
 * to be woken after the monitor is left. False: somebody is coming already. */
bool vez__word_poke(uint32_t *word, bool *wake);

/* Inside the monitor: makes it DEAF, so that it can be moved. False: somebody is coming for it. */
bool vez__word_deafen(uint32_t *word);

/* Whether a word that reads so when it is settled is published by the settler; else who is coming sees to it. */
static inline bool vez__word_is_free(uint32_t seen)
{
	return !(seen & VEZ__COMING) && (!(seen & VEZ__FIRED) || (seen & VEZ__DEAF));
}

/* Inside the monitor, who comes (its own thread, or the one that fired) finds that the request stays although a limit
 * has passed: makes it DEAF, as soon as nobody comes any more because of a token. */
void vez__word_keep(uint32_t *word, bool own);

/* Publishes the words of a list in order, each the last touch of its memory, and wakes those that sleep. next: the word
 * published after this one (asked before this one is let go), NULL at the end. */
void vez__word_publish(uint32_t *first, uint32_t *(*next)(uint32_t *word));

/* The same for words whose threads all sleep with this cohort. */
void vez__word_publish_in(uint32_t *first, uint32_t *(*next)(uint32_t *word), uint32_t *cohort);

#endif
