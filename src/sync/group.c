/* SPDX-License-Identifier: MIT */
/*
 * One group at a time: members share, groups exclude each other, first come first served.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       WAITING              somebody is queued. Set inside before the first is queued; cleared inside, in
 *	                                 the exchange that lets the last one in or just before the last one is taken out
 *	bits 3-34   group                the running group, if count > 0; else what it was last. Anybody who
 *	                                 enters first
 *	bits 35-63  count                how many are inside, or let in. Anybody
 *  room_          FIFO; a request's value is its group
 * Invariants
 *  G1 all who are inside are of the running group. The group changes only in an exchange that finds count = 0.
 *  G2 whenever nobody is inside the monitor: WAITING exactly if the room is not empty; and then count > 0, and the
 *     first in the queue is of another group than the running one (or count is at its most). Who leaves the monitor
 *     made it so, by the word that its leaving exchange expects; and the last member to leave, where somebody waits,
 *     enters the monitor in the same exchange or finds somebody inside.
 *  G3 while WAITING, a newcomer enters only from inside, after all have been let in who can be. So when count falls to
 *     0 it is decided who comes next: the members of the longest waiter's group that are queued, before anyone can
 *     join them.
 *  G4 enters wait until nobody is inside the monitor, so that who lets them in has left. try_enter does not:
 *     vez_group_destroy waits for that one.
 * Ordering
 *  every exchange that lowers count releases, every one that raises it acquires; all are read-modify-write and so one
 *  release sequence: who enters sees what came before every leave. Let in by another thread: that one's exchange
 *  (acq_rel), then vez__word_publish and vez__request_await.
 * Progress and fairness: leave is lock-free; it never waits for the one inside, who serves before it leaves. FIFO by
 * groups: see G3.
 * Lifetime: a leave's last touch is its exchange, or the monitor's leaving one.
 * Sources: Y.-J. Joung (2000); G. E. Blelloch, P. Cheng, P. B. Gibbons (2001); execution delegation: C. Martins (2009).
 */
#include "vez/group.h"

#include <errno.h>
#include <string.h>

#include "engine.h"

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

static vez_group_t *group_of(vez_monitor_t *m)
{
	return (vez_group_t *)((char *)m - offsetof(vez_group_t, monitor_));
}

/* Whether a member of this group may enter, if it need not queue. */
static bool admits(uint64_t word, uint32_t id)
{
	return count_in(word) == 0 || (group_in(word) == id && count_in(word) < COUNT_MOST);
}

/* ---- inside ---- */

static uint64_t members_waiting(const vez_group_t *g, uint32_t id)
{
	uint64_t n = 0;
	for (vez_request_t *r = vez_room_first(&g->room_); r && n < COUNT_MOST; r = vez_room_next(&g->room_, r))
		n += r->value_ == id;
	return n;
}

/* The first n of the group are let in: they are counted already. */
static void settle_members(vez_group_t *g, uint32_t id, uint64_t n)
{
	vez_request_t *next;
	for (vez_request_t *r = vez_room_first(&g->room_); n > 0; r = next) {
		next = vez_room_next(&g->room_, r);
		if (r->value_ != id)
			continue;
		vez_monitor_settle(&g->monitor_, r, 0);
		n--;
	}
}

/* The first n of the group are to be let in. False: one of them was lost, and has left. */
static bool claim_members(vez_group_t *g, uint64_t seen, uint32_t id, uint64_t n)
{
	for (vez_request_t *r = vez_room_first(&g->room_); n > 0; r = vez_room_next(&g->room_, r)) {
		if (r->value_ != id)
			continue;
		if (!vez__request_claim(r))
			return !vez__request_drop(&g->monitor_, seen, r);
		n--;
	}
	return true;
}

/* Lets in all members of the first one's group, where nobody is inside; else the first alone, which is of the running
 * group: those who came later may have one of another group before them. */
static bool serve(vez_monitor_t *m, uint64_t seen)
{
	vez_group_t *g = group_of(m);
	vez_request_t *first = vez_room_first(&g->room_);
	if (!first || !admits(seen, (uint32_t)first->value_))
		return false;
	uint32_t id = (uint32_t)first->value_;
	uint64_t n = count_in(seen) == 0 ? members_waiting(g, id) : 1;
	if (!claim_members(g, seen, id, n))
		return true;
	uint64_t next = with_state(seen, count_in(seen) + n, id);
	if (n == g->room_.length_)
		next &= ~WAITING;
	if (vez__cas(&m->word_, &seen, next, acq_rel))
		settle_members(g, id, n);
	return true;
}

/* r leaves without having entered. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	return r->room_->length_ > 1 || vez__cas(&m->word_, &seen, seen & ~WAITING, acq_rel);
}

static const struct vez__ops group_ops = { .type = VEZ__GROUP, .serve = serve, .take_back = take_back };

/* Lets in those who wait, then a newcomer, if it can and need not queue: 0. EOVERFLOW. EBUSY: it would have to wait. */
static int enter_inside(vez_group_t *g, uint32_t id, bool queues)
{
	for (;;) {
		uint64_t seen = vez__load(&g->monitor_.word_, relaxed);
		if (serve(&g->monitor_, seen))
			continue;
		if (!(seen & WAITING) && group_in(seen) == id && count_in(seen) == COUNT_MOST)
			return EOVERFLOW;
		if ((seen & WAITING) || queues || !admits(seen, id))
			return EBUSY;
		if (vez__cas(&g->monitor_.word_, &seen, with_state(seen, count_in(seen) + 1, id), acquire))
			return 0;
	}
}

/* ---- enter ---- */

/* 0, EOVERFLOW or ECANCELED; EINPROGRESS: r is queued. */
static VEZ__COLD int file(vez_group_t *g, uint32_t id, vez_request_t *r)
{
	r->value_ = id;
	vez__monitor_enter(&g->monitor_);
	int rc = enter_inside(g, id, vez__request_must_queue(r));
	if (rc == EBUSY && !vez__request_prepare(&g->monitor_, &g->room_, r, &group_ops))
		rc = ECANCELED;
	if (rc == EBUSY) {
		vez__fetch_or(&g->monitor_.word_, WAITING, relaxed);
		vez__request_insert(r);
		rc = vez__request_filed(&g->monitor_, r);
	}
	vez__monitor_leave(&g->monitor_, &group_ops);
	return rc;
}

static VEZ__COLD int enter_waiting(vez_group_t *g, uint32_t id, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, 0, cancel);
	int rc = file(g, id, &r);
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

static VEZ__COLD int attempt_inside(vez_group_t *g, uint32_t id)
{
	vez__monitor_enter(&g->monitor_);
	int rc = enter_inside(g, id, false);
	vez__monitor_leave(&g->monitor_, &group_ops);
	return rc;
}

/* One attempt without waiting: from the word alone, unless it is decided but not yet carried out who is next. */
static int attempt(vez_group_t *g, uint32_t id)
{
	uint64_t seen = vez__load(&g->monitor_.word_, relaxed);
	do {
		if ((seen & WAITING) && count_in(seen) == 0)
			return attempt_inside(g, id);
		if ((seen & WAITING) || (count_in(seen) > 0 && group_in(seen) != id))
			return EBUSY;
		if (!admits(seen, id))
			return EOVERFLOW;
	} while (!vez__cas(&g->monitor_.word_, &seen, with_state(seen, count_in(seen) + 1, id), acquire));
	return 0;
}

/* The fast path: nobody waits, nobody is inside the monitor, and no other group is inside. */
static inline bool enter_fast(vez_group_t *g, uint32_t id)
{
	uint64_t seen = vez__load(&g->monitor_.word_, relaxed);
	return !(seen & (WAITING | VEZ__LOCKED)) && admits(seen, id) &&
	       vez__cas(&g->monitor_.word_, &seen, with_state(seen, count_in(seen) + 1, id), acquire);
}

int vez_group_enter(vez_group_t *g, uint32_t id)
{
	return VEZ__LIKELY(enter_fast(g, id)) ? 0 : enter_waiting(g, id, VEZ_FOREVER, NULL);
}

int vez_group_try_enter(vez_group_t *g, uint32_t id)
{
	return attempt(g, id);
}

int vez_group_enter_until(vez_group_t *g, uint32_t id, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	if (VEZ__LIKELY(enter_fast(g, id)))
		return 0;
	if (!vez__deadline_passed(deadline))
		return enter_waiting(g, id, deadline, cancel);
	return vez__no_time_left(attempt(g, id));
}

int vez_group_enter_async(vez_group_t *g, uint32_t id, vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (rc == 0 && (vez__request_must_queue(r) || !enter_fast(g, id)))
		rc = vez__async_waits(r) ? file(g, id, r) : vez__no_time_left(attempt(g, id));
	return vez__async_end(r, rc);
}

/* ---- leave ---- */

/* Where somebody waits who can enter when this member has left, and nobody will see to it: enters the monitor. */
static uint64_t entering(uint64_t seen)
{
	bool lets_in = (seen & WAITING) && (count_in(seen) == 1 || count_in(seen) == COUNT_MOST);
	return lets_in && !(seen & VEZ__LOCKED) ? VEZ__LOCKED : 0;
}

int vez_group_leave(vez_group_t *g)
{
	uint64_t enters;
	uint64_t seen = vez__load(&g->monitor_.word_, relaxed);
	do {
		while (count_in(seen) == 0) {
			if (!(seen & WAITING))
				return EPERM;
			/* It is decided who is inside, and another thread is about to count them. */
			vez__monitor_enter(&g->monitor_);
			vez__monitor_leave(&g->monitor_, &group_ops);
			seen = vez__load(&g->monitor_.word_, relaxed);
		}
		enters = entering(seen);
	} while (!vez__cas(&g->monitor_.word_, &seen, (seen | enters) - ONE, acq_rel));
	if (enters)
		vez__monitor_leave(&g->monitor_, &group_ops);
	return 0;
}

/* ---- the rest ---- */

size_t vez_group_waiters(const vez_group_t *g)
{
	return vez__load(&g->monitor_.word_, acquire) & WAITING ? vez_room_length(&g->room_) : 0;
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
	vez__monitor_enter(&g->monitor_);
	bool held = count_in(vez__load(&g->monitor_.word_, relaxed)) > 0;
	return vez__monitor_retire(&g->monitor_, &group_ops, held);
}
