/* SPDX-License-Identifier: MIT */
/*
 * Cancellation tokens: the part that blocking waits need.
 *
 * State
 *  arrivals_  bit 0 FIRED; the rest: a stack of requests that enlisted since the list was last put in order (links: the
 *             request's enlisted_[0]). Pushed by anybody, taken whole by the one inside the lock. Empty while FIRED.
 *  lock_      the short lock of enlisted_
 *  enlisted_  the other requests that wait with this token, oldest first
 * Invariants
 *  T1 a request is on the stack or the list from vez__cancel_enlist until it is taken off: by the fire that is to end it, under
 *     the lock, which then clears the request's cancel_; or by its own thread after it was settled.
 *  T2 so a request seen under the lock is alive; and one that a fire took off is alive until that fire completes it.
 *  T3 the lock is innermost: nothing is entered, woken or called inside it. Enlisting takes no lock at all, so that it may
 *     happen inside a monitor.
 * Ordering
 *  the push in vez__cancel_enlist (release) pairs with the exchange in arrivals_take (acquire): the request's fields.
 *  the exchange to FIRED in vez_cancel_fire (release) pairs with the loads in vez_cancel_fired and vez_cancel_clear (acquire).
 *  An enlisting and a firing meet on arrivals_: either the push comes first and the fire takes it, or it is refused.
 * Progress: enlisting is lock-free; a fire is linear in the requests it ends, and each leaves its room in constant time.
 * Lifetime: the fire's last touch of the token is leaving the lock; then it ends the requests, one by one. A wait that it ended
 *  does not touch the token again (cancel_ is clear), so the token may go as soon as that wait returns.
 * Sources: the linked-list stack of R. K. Treiber (1986), here only ever emptied whole; the token: cooperative cancellation
 *  as in Java's interruption and .NET's CancellationToken.
 */
#include "vez/cancel.h"

#include <errno.h>
#include <string.h>
#include <urcu/list.h>

#include "../futex/sys.h"
#include "engine.h"

#define FIRED ((uintptr_t)1)

static struct cds_list_head *list_of(vez_cancel_t *c)
{
	struct cds_list_head *list = (struct cds_list_head *)c->enlisted_;
	if (!list->next)
		CDS_INIT_LIST_HEAD(list);
	return list;
}

static struct cds_list_head *link_of(vez_request_t *r)
{
	return (struct cds_list_head *)r->enlisted_;
}

static vez_request_t *request_at(struct cds_list_head *link)
{
	return (vez_request_t *)((char *)link - offsetof(vez_request_t, enlisted_));
}

bool vez__cancel_enlist(vez_request_t *r)
{
	vez_cancel_t *c = r->cancel_;
	uintptr_t top = vez__load(&c->arrivals_, acquire);
	do {
		if (top & FIRED)
			return false;
		r->enlisted_[0] = (void *)top;
	} while (!vez__cas(&c->arrivals_, &top, (uintptr_t)r, release));
	return true;
}

/* Inside the lock: moves the arrivals to the end of the list, oldest first, and leaves mark in their place. Says whether the
 * token was fired before. */
static bool arrivals_take(vez_cancel_t *c, uintptr_t mark)
{
	uintptr_t top = vez__exchange(&c->arrivals_, mark, acq_rel);
	struct cds_list_head *end = list_of(c)->prev;
	vez_request_t *r = (vez_request_t *)(top & ~FIRED);
	while (r) {
		vez_request_t *older = r->enlisted_[0];
		cds_list_add(link_of(r), end);
		r = older;
	}
	return top & FIRED;
}

void vez__cancel_delist(vez_request_t *r)
{
	vez_cancel_t *c = r->cancel_;
	if (!c)
		return;
	vez__lock_enter(&c->lock_);
	if (vez__load(&c->arrivals_, relaxed) & ~FIRED)
		arrivals_take(c, 0);
	cds_list_del(link_of(r));
	vez__lock_exit(&c->lock_);
}

/* Inside the lock: takes off the list every request that is for this fire to end. */
static void claim_all(vez_cancel_t *c, struct cds_list_head *claimed)
{
	struct cds_list_head *link, *next;
	cds_list_for_each_safe(link, next, list_of(c)) {
		vez_request_t *r = request_at(link);
		uint32_t before = vez__fetch_or(&r->word_, VEZ__FIRED, relaxed);
		if (before & (VEZ__SETTLED | VEZ__COMING | VEZ__FIRED | VEZ__DONE | VEZ__DEAF))
			continue;
		r->cancel_ = NULL;
		cds_list_del(link);
		cds_list_add_tail(link, claimed);
	}
}

void vez_cancel_fire(vez_cancel_t *c)
{
	struct cds_list_head claimed, *link, *next;
	CDS_INIT_LIST_HEAD(&claimed);
	if (vez_cancel_fired(c))
		return;
	vez__lock_enter(&c->lock_);
	if (!arrivals_take(c, FIRED))
		claim_all(c, &claimed);
	vez__lock_exit(&c->lock_);
	cds_list_for_each_safe(link, next, &claimed)
		vez__request_cancel_fired(request_at(link));
}

bool vez_cancel_fired(const vez_cancel_t *c)
{
	return vez__load(&c->arrivals_, acquire) & FIRED;
}

bool vez_cancel_clear(vez_cancel_t *c)
{
	return vez__fetch_and(&c->arrivals_, ~FIRED, acq_rel) & FIRED;
}

void vez_cancel_init(vez_cancel_t *c)
{
	memset(c, 0, sizeof *c);
}

vez_cancel_t *vez_cancel_self(void)
{
	static __thread vez_cancel_t self;
	return &self;
}

bool vez__deadline_passed(vez_deadline_t deadline)
{
	return deadline != VEZ_FOREVER && (deadline <= 0 || vez__sys_now() >= deadline);
}

int vez__limits_refuse(vez_deadline_t deadline, const vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	return vez__deadline_passed(deadline) ? ETIMEDOUT : 0;
}
