/* SPDX-License-Identifier: MIT */
/*
 * Shared words.
 *
 * State: shared.h; links: the free ones.
 * Invariants
 *  F1 a word is used by one object at a time, or by followers that this object has let go and that have not left yet.
 *     Members are added inside that object, and only before they are let go.
 *  F2 so members falls to 0 once, and whoever makes it 0 gives the word back; nobody is asleep on it then: the object
 *     leaves after it has moved the turn on and woken those who slept.
 *  F3 turn never goes back: a thread that was going to sleep on an old one does not sleep.
 *  F4 a follower joins inside its object, while that is a member itself; result is written before the turn moves on,
 *     and every follower goes then. So a turn that is not the follower's means that result is its own, until it leaves.
 *  F5 a follower sleeps on a turn with bit 0, and only bit 0 of a turn changes while it lasts: whoever moves it on sees
 *     the bit, or the follower finds another turn.
 * Ordering: leaving (acq_rel) orders a follower's reading of result before the word is given back. Moving on in
 *  vez__shared_let_go (release) pairs with the loads in vez__shared_follow (acquire): result, and what came before it.
 */
#include "shared.h"

#include "atomic.h"
#include "fork.h"
#include "futex.h"
#include "pool.h"
#include "spin.h"

#define COUNT 1024

/* In a turn. */
#define FOLLOWER_SLEEPS UINT32_C(1)

static struct vez__shared words[COUNT];
static uint32_t links[COUNT];
static struct vez__pool pool = VEZ__POOL(links);

VEZ__HOT uint16_t vez__shared_take(void)
{
	return (uint16_t)vez__pool_take(&pool);
}

VEZ__HOT struct vez__shared *vez__shared_at(uint16_t number)
{
	return &words[number];
}

VEZ__HOT void vez__shared_join(struct vez__shared *s)
{
	vez__fetch_add(&s->members, 1, relaxed);
}

VEZ__HOT uint32_t vez__shared_join_follower(struct vez__shared *s)
{
	vez__shared_join(s);
	return vez__load(&s->turn, relaxed) & ~FOLLOWER_SLEEPS;
}

struct look {
	const struct vez__shared *shared;
	uint32_t turn;
};

static VEZ__HOT bool has_moved_on(void *arg)
{
	const struct look *look = arg;
	return (vez__load(&look->shared->turn, relaxed) & ~FOLLOWER_SLEEPS) != look->turn;
}

VEZ__HOT int vez__shared_follow(struct vez__shared *s, uint32_t turn)
{
	struct look look = { s, turn };
	uint32_t seen = vez__load(&s->turn, acquire);
	if ((seen & ~FOLLOWER_SLEEPS) == turn && vez__spin(VEZ__SPIN_WORD, 1, 1, has_moved_on, &look))
		seen = vez__load(&s->turn, acquire);
	while ((seen & ~FOLLOWER_SLEEPS) == turn) {
		if (seen == turn && !vez__cas(&s->turn, &seen, turn | FOLLOWER_SLEEPS, relaxed)) {
			seen = vez__load(&s->turn, acquire);
			continue;
		}
		vez__futex_wait(&s->turn, turn | FOLLOWER_SLEEPS, VEZ_FOREVER);
		seen = vez__load(&s->turn, acquire);
	}
	int result = s->result;
	vez__shared_leave(s);
	return result;
}

VEZ__HOT void vez__shared_let_go(struct vez__shared *s)
{
	uint32_t seen = vez__load(&s->turn, relaxed);
	while (!vez__cas(&s->turn, &seen, (seen | FOLLOWER_SLEEPS) + 1, release))
		;
	if (seen & FOLLOWER_SLEEPS)
		vez__futex_wake_all(&s->turn);
	vez__shared_leave(s);
}

VEZ__HOT bool vez__shared_leave(struct vez__shared *s)
{
	if (vez__fetch_add(&s->members, -1u, acq_rel) != 1)
		return false;
	vez__pool_give(&pool, (uint32_t)(s - words));
	return true;
}

/* Nobody sleeps. But a word that has members is not used in the child: those who followed are gone, and do not leave;
 * and the thread that forks, in a signal handler, may be just about to let them go. */
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
