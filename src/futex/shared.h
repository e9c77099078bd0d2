/* SPDX-License-Identifier: MIT */
/*
 * Shared words: threads that will go on together sleep on one word and are woken by one system call; but some of them
 * can be woken without the others.
 *
 * A word is taken when the first of them comes and given back when the last has gone, so that nobody else sleeps on it
 * meanwhile. It lies in static memory: who wakes them has left their object, which may be gone.
 *
 * A follower is a member without a request: a thread whose wait ends only when all members go, with one result for all.
 * It sleeps until the turn moves, and then leaves by itself. So what followers cost the thread that lets them go does
 * not depend on how many they are. While there are some, their object is a member, too.
 */
#ifndef VEZ__SHARED_H
#define VEZ__SHARED_H

#include <stdbool.h>
#include <stdint.h>

struct vez__shared {
	uint32_t turn;    /* the futex; moves on whenever some of its threads are let go. Bit 0: a follower sleeps */
	uint32_t members; /* requests whose threads sleep here and were not published yet; followers; their object */
	int result;       /* the followers' */
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

/* One more member, as by vez__shared_join, which is a follower. The turn with which it is to wait. */
uint32_t vez__shared_join_follower(struct vez__shared *s);

/* By a follower: waits until the turn is another one, and leaves. Its result. */
int vez__shared_follow(struct vez__shared *s, uint32_t turn);

/* Lets members go: requests that have been published, or the followers, whose result has been written. Moves the turn
 * on, wakes whoever sleeps of the followers and of those with these bits (0: they are awake), and leaves for so many
 * members: the requests, or the object. */
void vez__shared_let_go(struct vez__shared *s, uint32_t members, uint32_t bits);

/* So many members have gone: true, those were the last, and the word is given back. */
bool vez__shared_leave(struct vez__shared *s, uint32_t members);

#endif
