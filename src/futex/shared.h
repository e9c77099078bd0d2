/* SPDX-License-Identifier: MIT */
/*
 * Shared words: threads that will go on together sleep on one word and are woken by one system call; but some of them
 * can be woken without the others.
 *
 * A word is taken when the first of them comes and given back when the last has gone, so that nobody else sleeps on it
 * meanwhile. It lies in static memory: who wakes them has left their object, which may be gone.
 */
#ifndef VEZ__SHARED_H
#define VEZ__SHARED_H

#include <stdbool.h>
#include <stdint.h>

struct vez__shared {
	uint32_t turn;    /* the futex; moves on whenever some of its threads are let go */
	uint32_t members; /* requests whose threads sleep here and were not published yet */
};

/* The number of a word that nobody uses, never 0; or 0: there is none. */
uint16_t vez__shared_take(void);

/* The word with this number. */
struct vez__shared *vez__shared_at(uint16_t number);

/* One more member. By who has taken the word, or is ordered with whoever has. How many there were: the number of this
 * one, which is no other's before one has left. */
uint32_t vez__shared_join(struct vez__shared *s);

/* The bit of the member with this number: who lets some of the members go wakes those alone, if they are not more than
 * there are bits. */
static inline uint32_t vez__shared_bit(uint32_t number)
{
	return UINT32_C(1) << (number % 32);
}

/* So many members have gone: true, those were the last, and the word is given back. */
bool vez__shared_leave(struct vez__shared *s, uint32_t members);

#endif
