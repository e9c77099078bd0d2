/* SPDX-License-Identifier: MIT */
/*
 * Wait-for-any: the first of several requests that is granted wins, and the others are withdrawn.
 *
 * State
 *  won_      winner.c
 *  members_  all members, the latest first, linked by then_.member_; its own thread's
 *  filed_    how many were passed to an X_async; its own thread's
 *  pending_  how many of those are not complete. Raised by its own thread, inside no matter what core; lowered, and
 *            looked at, inside core_
 *  queue_    the thread in vez_select_wait
 * Invariants
 *  E1 one member is granted at most (winner.c), and one that has lost leaves its queue as if it had given up: it takes
 *     nothing.
 *  E2 a member that is passed to an X_async is queued, even if it could be had at once, and then served; but not where
 *     nobody can take it after it has won: from a bounded queue, which changes only inside; at an open latch.
 *  E3 every member that was filed is complete, exactly once, before vez_select_wait returns.
 * Ordering: results travel by the cores (vez__member_decided -> vez_select_wait).
 * Progress: withdrawing is linear in the members.
 * Lifetime: completers touch the select last when they leave core_, and vez_select_wait returns from inside it.
 * Sources: Hoare, CSP (1978); winner.c.
 */
#include <errno.h>
#include <string.h>

#include "await.h"

void vez_select_init(vez_select_t *s)
{
	memset(s, 0, sizeof *s);
}

vez_request_t *vez_select_case(vez_select_t *s, vez_request_t *r)
{
	memset(r, 0, sizeof *r);
	r->how_ = VEZ__MEMBER;
	r->arg_ = s;
	r->then_.member_ = s->members_;
	s->members_ = r;
	return r;
}

static const struct vez__rules select_rules = {
	.type = VEZ__SELECT, .queue = offsetof(vez_select_t, queue_) - offsetof(vez_select_t, core_),
};

/* Waits until there is a winner or nothing is pending; won: until nothing is. 0, or why not. */
static int wait_until(vez_select_t *s, bool won, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__stay in;
	int rc = 0;
	for (;;) {
		vez__enter_holding(&in, &s->core_);
		if (rc != 0 || vez__load(&s->pending_, relaxed) == 0 || (!won && vez__winner_of(s)))
			break;
		rc = vez__wait_holding(&in, &select_rules, NULL, s, deadline, cancel);
	}
	vez__leave_holding(&in);
	return rc;
}

static void withdraw_all_but(vez_select_t *s, const vez_request_t *winner)
{
	vez__calls_begin(); /* of those whom the members held back: one call's */
	for (vez_request_t *r = s->members_; r; r = r->then_.member_)
		if (r != winner)
			vez_request_cancel(r);
	vez__calls_end();
	wait_until(s, true, VEZ_FOREVER, NULL);
}

int vez_select_wait(vez_select_t *s, vez_deadline_t deadline, vez_cancel_t *cancel, vez_request_t **winner)
{
	if (s->filed_ == 0)
		return EINVAL;
	int rc = wait_until(s, false, deadline, cancel);
	if (rc != 0)
		vez__winner_set(s, VEZ__NOBODY);
	vez_request_t *won = vez__winner_of(s);
	withdraw_all_but(s, won);
	if (won && won != VEZ__NOBODY) {
		if (winner)
			*winner = won;
		return won->at_.result_;
	}
	return rc ? rc : ECANCELED;
}
