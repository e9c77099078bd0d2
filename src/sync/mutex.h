/* SPDX-License-Identifier: MIT */
/* What conditions need of a mutex, and guards. */
#ifndef VEZ__MUTEX_H
#define VEZ__MUTEX_H

#include "../engine/core.h"
#include "../futex/foreign.h"
#include "vez/mutex.h"

/* What a request waits for that has a guard: its pointer. On its thread's stack. */
struct vez__guard {
	bool (*fn)(void *arg); /* NULL: always true, if it has tickets */
	void *arg;
	/* Of one who waits on a condition: where the notifications that nobody has had yet are counted, in the upper
	 * half; whether it is asked for none of them now. Inside the mutex. */
	uint64_t *tickets;
	bool asleep;
	/* Of one whose thread was asked to retry, and came in vain: until when it may be passed over. Else 0. Inside the
	 * mutex. */
	vez_deadline_t patience;
};

/* Under the mutex. */
static inline bool vez__guard_ask(const struct vez__guard *g)
{
	bool is;
	VEZ__FOREIGN(is = g->fn(g->arg));
	return is;
}

/* A wait with a guard on a condition. */
struct vez__when {
	vez_request_t place; /* in the condition's queue: it waits for nothing */
	vez_request_t r;     /* waits for the mutex, when it is notified */
	struct vez__guard guard;
	struct vez__when *next;
};

#define VEZ__TICKET (UINT64_C(1) << 32)

/* Inside the condition's core, by the owner: w waits, asleep; for inspection on this condition. False: its token
 * is fired. */
bool vez__mutex_doze(vez_mutex_t *m, struct vez__when *w, const void *condition);

/* Inside the condition's core: at most so many of these, in this order, are to be let in; how many can be. If the mutex
 * is free they are asked at once; what is settled then is to be published from *in when the condition has been left. */
size_t vez__mutex_notify(struct vez__stay *in, vez_mutex_t *m, struct vez__when *first, size_t most);

/* Whether the calling thread may unlock it, as far as that is known. */
bool vez__mutex_is_mine(const vez_mutex_t *m);

/* Gives up all the caller's holds at once, and says how many they were. */
uint32_t vez__mutex_release_all(vez_mutex_t *m);

/* The caller has so many holds again: it was granted the mutex when its wait ended, or it locks it. */
void vez__mutex_take_back(vez_mutex_t *m, uint32_t holds, bool granted);

/* Queues requests that were taken out of a condition's queue (linked by with_.ptr_, NULL at the end; value_: the number
 * of each request's thread; it will own the mutex once when its wait ends). */
void vez__mutex_queue(vez_mutex_t *m, vez_request_t *first);

/* Whether r, which has waited, was granted a mutex so. */
bool vez__mutex_was_queued(const vez_request_t *r);

#endif
