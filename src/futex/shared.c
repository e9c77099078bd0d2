/* SPDX-License-Identifier: MIT */
/*
 * Shared words.
 *
 * State: shared.h; links: the free ones.
 * Invariants
 *  F1 a word is used by one object at a time, or by requests that this object has let go and that are not published
 *     yet. Members are added inside that object, and only before the first of them is let go.
 *  F2 so members falls to 0 once, and whoever makes it 0 gives the word back; nobody is asleep on it then.
 *  F3 turn never goes back: a thread that was going to sleep on an old one does not sleep.
 * Ordering: leaving (acq_rel) orders the publication of every member before the word is given back.
 */
#include "shared.h"

#include "atomic.h"
#include "fork.h"
#include "pool.h"

#define COUNT 1024

static struct vez__shared words[COUNT];
static uint32_t links[COUNT];
static struct vez__pool pool = VEZ__POOL(links);

uint16_t vez__shared_take(void)
{
	return (uint16_t)vez__pool_take(&pool);
}

struct vez__shared *vez__shared_at(uint16_t number)
{
	return &words[number];
}

uint32_t vez__shared_join(struct vez__shared *s)
{
	return vez__fetch_add(&s->members, 1, relaxed);
}

bool vez__shared_leave(struct vez__shared *s, uint32_t members)
{
	if (vez__fetch_add(&s->members, -members, acq_rel) != members)
		return false;
	vez__pool_give(&pool, (uint32_t)(s - words));
	return true;
}

/* Nobody sleeps. But a word that has members is not taken again: whoever lets them go may be here, such as the thread
 * that forked in the function of a once; it gives the word back then. */
static void in_child(void)
{
	uint32_t place = 1;
	while (place < COUNT && words[place].members == 0)
		place++;
	pool = (struct vez__pool)VEZ__POOL(links);
	pool.unused = place - 1;
	for (; place < COUNT; place++)
		if (words[place].members == 0)
			vez__pool_give(&pool, place);
}

VEZ__AT_FORK(NULL, NULL, in_child)
