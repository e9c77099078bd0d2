/* SPDX-License-Identifier: MIT */
/*
 * Followers.
 *
 * State: *followers, how many there are; core.length_ counts them, too. *shared: the word on which they sleep; the
 *  object is a member of it while there are some. All inside.
 * Why: the thread that ends a round writes nothing for each of them, on as many stacks.
 * Ordering, lifetime: futex/shared.c. A follower does not touch its object after it has left it.
 */
#include "follow.h"

#include "../futex/probe.h"
#include "../futex/shared.h"
#include "record.h"

static void count(struct vez__core *c, uint32_t more)
{
	vez__store(&c->length_, c->length_ + more, relaxed);
}

VEZ__HOT bool vez__follow_begin(struct vez__stay *in, uint32_t *followers, uint16_t *shared)
{
	if (vez__inspecting())
		return false;
	if (*shared == 0)
		*shared = vez__shared_take();
	if (*shared == 0)
		return false;
	if ((*followers)++ == 0)
		vez__shared_join(vez__shared_at(*shared));
	count(in->core, 1);
	return true;
}

VEZ__HOT int vez__follow(struct vez__stay *in, const struct vez__rules *rules)
{
	/* For who looks at the stack (scripts/vez-gdb.py): in memory while it waits, whatever is optimised. */
	const void *object = vez__object_of(in->core, rules);
	enum vez__type type = rules->type;
	__asm__ __volatile__("" : : "r"(&object), "r"(&type) : "memory");
	struct vez__shared *s = vez__shared_at(*vez__shared_of(in->core, rules));
	uint32_t turn = vez__shared_join_follower(s);
	VEZ__PROBE4(queue, in->core, &turn, &s->turn, 0);
	vez__leave_pending(in, NULL);
	int rc = vez__shared_follow(s, turn);
	VEZ__PROBE4(grant, in->core, &turn, &s->turn, rc);
	return rc;
}

VEZ__HOT void vez__followers_end(struct vez__stay *in, uint32_t *followers, uint16_t *shared, int result)
{
	if (*followers == 0)
		return;
	in->followed = vez__shared_at(*shared);
	in->followed->result = result;
	count(in->core, -*followers);
	*followers = 0;
	*shared = 0;
}
