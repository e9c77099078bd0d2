/* SPDX-License-Identifier: MIT */
/*
 * Shared words: threads whose waits end together, with one result for all, sleep on one word and are woken by one
 * system call. Such a thread is a follower: it needs no request, sleeps until the turn moves, and then leaves by
 * itself. So what followers cost the thread that lets them go does not depend on how many they are.
 *
 * A word is taken when the first of them comes and given back when the last has gone, so that nobody else sleeps on it
 * meanwhile. It lies in static memory: who wakes them has left their object, which may be gone. While there are some,
 * their object is a member, too.
 */
#ifndef VEZ__SHARED_H
#define VEZ__SHARED_H

#include <stdbool.h>
#include <stdint.h>

struct vez__shared {
	uint32_t turn;    /* the futex; moves on when they are let go. Bit 0: one sleeps */
	uint32_t members; /* the followers that have not left yet; their object */
	int result;       /* the followers' */
};

/* The number of a word that nobody uses, never 0; or 0: there is none. */
uint16_t vez__shared_take(void);

/* The word with this number. */
struct vez__shared *vez__shared_at(uint16_t number);

/* One more member. By who has taken the word, or is ordered with whoever has. */
void vez__shared_join(struct vez__shared *s);

/* One more member, as by vez__shared_join, which is a follower. The turn with which it is to wait. */
uint32_t vez__shared_join_follower(struct vez__shared *s);

/* By a follower: waits until the turn is another one, and leaves. Its result. */
int vez__shared_follow(struct vez__shared *s, uint32_t turn);

/* By the object, which has written their result: lets its followers go, wakes those that sleep, and leaves. */
void vez__shared_let_go(struct vez__shared *s);

/* A member has gone: true, it was the last, and the word is given back. */
bool vez__shared_leave(struct vez__shared *s);

#endif
