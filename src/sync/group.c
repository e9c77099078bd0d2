/* SPDX-License-Identifier: MIT */
/*
 * One group at a time: members share, groups exclude each other, first come first served.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       WAITING              somebody is queued. Inside; the exchange that lets the last one in clears it
 *	bits 3-34   group                the running group; with count 0, the last one. Set by the first to enter
 *	bits 35-63  count                how many members have entered, or were let in. Anybody
 *  queue_         FIFO; a request's value is its group
 * Invariants
 *  G1 all members that have entered are of the running group. The group changes only in an exchange that finds count =
 *     0.
 *  G2 whenever nobody is inside: WAITING exactly if somebody is queued; and then count > 0, and the first in the queue
 *     is of another group than the running one (or count is at its most). The last member to leave, where somebody
 *     waits, enters in the same exchange or finds somebody inside.
 *  G3 while WAITING, a newcomer enters only from inside, after all have been let in who can be. So when count falls to
 *     0 it is decided who comes next: the members of the longest waiter's group that are queued, before anyone can
 *     join them.
 * Ordering
 *  every exchange that lowers count releases, every one that raises it acquires (core.c): one that enters sees what
 *  came before every leave. Let in by another thread: that one's exchange (acq_rel), then publication (word.c).
 * Progress and fairness: leave is lock-free; it never waits for the one inside, which serves before it leaves. FIFO by
 * groups: see G3.
 * Lifetime: core.c C5. A leave's last touch is its exchange, or the leaving one.
 * Sources: Y.-J. Joung (2000); G. E. Blelloch, P. Cheng, P. B. Gibbons (2001); execution delegation: C. Martins (2009).
 */
#include "vez/group.h"

#include <string.h>

#include "../engine/filing.h"

#define WAITING UINT64_C(0x04)
#define ONE (UINT64_C(1) << 35)
#define COUNT_MOST (UINT64_MAX >> 35)
#define STATE_BITS (~UINT64_C(7))

static uint64_t count_in(uint64_t word)
{
	return word >> 35;
}

static uint32_t group_in(uint64_t word)
{
	return (uint32_t)(word >> 3);
}

static uint64_t with_state(uint64_t word, uint64_t count, uint32_t group)
{
	return (word & ~STATE_BITS) | count << 35 | (uint64_t)group << 3;
}

static vez_group_t *group_of(const struct vez__stay *in)
{
	return (vez_group_t *)in->core;
}

/* Whether a member of this group may enter, if it need not queue. */
static bool admits(uint64_t word, uint32_t id)
{
	return count_in(word) == 0 || (group_in(word) == id && count_in(word) < COUNT_MOST);
}

/* ---- inside ---- */

/* The next waiting member of r's group behind it; NULL: there is none. */
static vez_request_t *next_member(const vez_group_t *g, vez_request_t *r)
{
	uint64_t id = r->value_;
	do
		r = vez__queue_next(g->queue_, r);
	while (r && r->value_ != id);
	return r;
}

/* How many members of the first one's group wait, and are to be let in. 0: one of them has lost, and was dropped. */
static uint64_t win_members(struct vez__stay *in, uint64_t seen, uint64_t most)
{
	vez_group_t *g = group_of(in);
	uint64_t n = 0;
	for (vez_request_t *r = g->queue_; r && n < most; r = next_member(g, r), n++)
		if (!vez__win(r)) {
			vez__drop(in, seen, r);
			return 0;
		}
	return n;
}

/* The first n of the group are let in: they are counted already. */
static void settle_members(struct vez__stay *in, uint64_t n)
{
	vez_request_t *next;
	for (vez_request_t *r = group_of(in)->queue_; n > 0; n--, r = next) {
		next = next_member(group_of(in), r);
		vez__settle(in, r, 0);
	}
}

/* Lets in all members of the first one's group, where no member has entered; else the first alone, which is of the
 * running group: those who came later may have one of another group before them. */
static bool serve(struct vez__stay *in, uint64_t seen)
{
	vez_request_t *first = group_of(in)->queue_;
	if (!first || !admits(seen, (uint32_t)first->value_))
		return false;
	uint64_t n = win_members(in, seen, count_in(seen) == 0 ? COUNT_MOST : 1);
	if (n == 0)
		return true;
	uint64_t next = with_state(seen, count_in(seen) + n, (uint32_t)first->value_);
	if (n == in->core->length_)
		next &= ~WAITING;
	if (vez__change(in, seen, next))
		settle_members(in, n);
	return true;
}

static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	uint32_t id = (uint32_t)r->value_;
	if (!(seen & WAITING) && group_in(seen) == id && count_in(seen) == COUNT_MOST)
		return EOVERFLOW;
	if ((seen & WAITING) || vez__must_queue(r) || !admits(seen, id))
		return EBUSY;
	return vez__change(in, seen, with_state(seen, count_in(seen) + 1, id)) ? 0 : EAGAIN;
}

/* ---- enter ---- */

static const struct vez__rules group_rules;

/* One attempt without waiting: from the word alone, unless it is decided but not yet carried out who is next. */
static int attempt(struct vez__core *c, vez_request_t *r)
{
	uint32_t id = (uint32_t)r->value_;
	uint64_t seen = vez__load(&c->word_, relaxed);
	do {
		if ((seen & WAITING) && count_in(seen) == 0)
			return vez__attempt_inside(c, &group_rules, r);
		if ((seen & WAITING) || (count_in(seen) > 0 && group_in(seen) != id))
			return EBUSY;
		if (!admits(seen, id))
			return EOVERFLOW;
	} while (!vez__cas(&c->word_, &seen, with_state(seen, count_in(seen) + 1, id), acquire));
	return 0;
}

/* The fast path: nobody waits, nobody is inside, and no member of another group has entered. */
static inline bool enter_fast(vez_group_t *g, uint32_t id)
{
	uint64_t seen = vez__load(&g->core_.word_, relaxed);
	return !vez__checked() && !(seen & (WAITING | VEZ__LOCKED)) && admits(seen, id) &&
	       vez__cas_fast(&g->core_.word_, &seen, with_state(seen, count_in(seen) + 1, id), acquire);
}

static bool fast(struct vez__core *c, vez_request_t *r)
{
	return enter_fast((vez_group_t *)c, (uint32_t)r->value_);
}

static const struct vez__rules group_rules = {
	.type = VEZ__GROUP, .sleeps = VEZ__TOGETHER, .queue = offsetof(vez_group_t, queue_), .waiting = WAITING,
	.fast = fast, .attempt = attempt, .take = take, .serve = serve,
};

static VEZ__SLOW int enter_slow(vez_group_t *g, uint32_t id, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return vez__wait(&g->core_, &group_rules, &(vez_request_t){ .value_ = id, .cancel_ = cancel }, deadline);
}

int vez_group_enter(vez_group_t *g, uint32_t id)
{
	return VEZ__LIKELY(enter_fast(g, id)) ? 0 : enter_slow(g, id, VEZ_FOREVER, NULL);
}

int vez_group_try_enter(vez_group_t *g, uint32_t id)
{
	return vez__attempt(&g->core_, &group_rules, id);
}

int vez_group_enter_until(vez_group_t *g, uint32_t id, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	bool fired = vez__is_fired_fast(cancel);
	return !fired && VEZ__LIKELY(enter_fast(g, id)) ? 0 : enter_slow(g, id, deadline, cancel);
}

int vez_group_enter_async(vez_group_t *g, uint32_t id, vez_request_t *r)
{
	r->value_ = id;
	return vez__file_async(&g->core_, &group_rules, r);
}

/* ---- leave ---- */

/* Where somebody waits who can enter when this member has left, and nobody will see to it: enters. */
static uint64_t entering(uint64_t seen)
{
	bool lets_in = (seen & WAITING) && (count_in(seen) == 1 || count_in(seen) == COUNT_MOST);
	return lets_in && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
}

static VEZ__SLOW int leave_slow(vez_group_t *g)
{
	struct vez__stay in;
	uint64_t enters, seen = vez__load(&g->core_.word_, relaxed);
	do {
		while (count_in(seen) == 0) {
			if (!(seen & WAITING))
				return EPERM;
			/* It is decided who has entered, and another thread is about to count them. */
			vez__enter(&in, &g->core_);
			vez__leave(&in, &group_rules);
			seen = vez__load(&g->core_.word_, relaxed);
		}
		enters = entering(seen);
	} while (!vez__cas(&g->core_.word_, &seen, (seen | enters) - ONE, acq_rel));
	if (enters)
		vez__leave_entered(&g->core_, &group_rules);
	return 0;
}

int vez_group_leave(vez_group_t *g)
{
	uint64_t seen = vez__load(&g->core_.word_, relaxed);
	if (VEZ__LIKELY(!vez__checked() && !(seen & WAITING) && count_in(seen) > 0) &&
	    VEZ__LIKELY(vez__cas_fast(&g->core_.word_, &seen, seen - ONE, release)))
		return 0;
	return leave_slow(g);
}

/* ---- the rest ---- */

size_t vez_group_waiters(const vez_group_t *g)
{
	return vez__load(&g->core_.word_, acquire) & WAITING ? vez__load(&g->core_.length_, relaxed) : 0;
}

int vez_group_init(vez_group_t *g, unsigned flags)
{
	if (flags)
		return EINVAL;
	memset(g, 0, sizeof *g);
	return 0;
}

int vez_group_destroy(vez_group_t *g)
{
	return vez__destroy(&g->core_, &group_rules, COUNT_MOST << 35);
}
