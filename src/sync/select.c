/* SPDX-License-Identifier: MIT */
/*
 * Wait-for-any: the first of several requests that is granted wins, and the others are withdrawn.
 *
 * State
 *  won_      NULL; the member that has won; TAKING, while two members are about to win together; NOBODY, when the wait
 *            was abandoned. Set by exchange, by whoever is inside the monitor of the member's object. Final but
 *            for TAKING
 *  members_  all members, the latest first, linked by then_.member_; its own thread's
 *  filed_    how many were passed to an X_async; its own thread's
 *  pending_  how many of those are not complete. Raised by its own thread, inside no matter what monitor; lowered, and
 *            looked at, inside monitor_
 *  room_     the thread in vez_select_wait
 * Invariants
 *  E1 a member is granted, or fails, only after it has won (vez__request_claim in monitor.c); who is inside its object
 *     asks when nothing but that can keep it from being granted. So one member is granted at most, and who is lost
 *     leaves its room as if it had given up: it takes nothing.
 *  E2 a member that is passed to an X_async is queued, even if it could be had at once, and then served: only from a
 *     room is it certain that what is there will not be taken by somebody else after it has won.
 *  E3 every member that was filed is complete, exactly once, before vez_select_wait returns.
 * Two that meet (a queue without capacity): both must win or neither. The arriving member's own wait is marked TAKING,
 *  then the other wins, then this one; if the other is lost, or is TAKING itself, the mark is taken back. Who finds
 *  TAKING waits, a few instructions, inside a monitor. The one who took it has its signals blocked, so that no handler
 *  of its thread waits for it; and holds no second mark, so that two never wait for each other.
 * Ordering
 *  won_ (acq_rel) decides; results travel by the monitors (select_decided -> vez_select_wait).
 * Progress: a claim is one exchange, safe in a signal handler. Withdrawing is linear in the members.
 * Lifetime: completers touch the select last when they leave monitor_, and vez_select_wait returns from inside it.
 * Sources: Hoare, CSP (1978); the claimed state of two that meet: J. Reppy, C. Russo, Y. Xiao, "Parallel Concurrent
 *  ML" (2009).
 */
#include "select.h"

#include <errno.h>
#include <string.h>

#include "../futex/sys.h"
#include "completion.h"
#include "engine.h"

#define PATIENCE 100 /* pauses */

static char marks[2];
#define TAKING ((vez_request_t *)&marks[0])
#define NOBODY ((vez_request_t *)&marks[1])

static vez_select_t *select_of(const vez_request_t *r)
{
	return r->arg_;
}

/* What won_ is, once nobody is TAKING. */
static vez_request_t *winner_of(const vez_select_t *s)
{
	vez_request_t *seen;
	for (unsigned n = 1; (seen = vez__load(&s->won_, acquire)) == TAKING; n++) {
		if (n % PATIENCE == 0)
			vez__sys_yield();
		else
			vez__pause();
	}
	return seen;
}

static bool win(vez_select_t *s, vez_request_t *r)
{
	vez_request_t *seen = NULL;
	while (!vez__cas(&s->won_, &seen, r, acq_rel)) {
		if (winner_of(s))
			return false;
		seen = NULL;
	}
	return true;
}

bool vez__select_claim(vez_request_t *r)
{
	return win(select_of(r), r);
}

bool vez__select_same(const vez_request_t *a, const vez_request_t *b)
{
	return a->kind_ == VEZ__MEMBER && b->kind_ == VEZ__MEMBER && a->arg_ == b->arg_;
}

/* One attempt. EAGAIN is told by *again: the other is TAKING. */
static enum vez__lost claim_both(vez_request_t *first, vez_request_t *second, bool *again)
{
	vez_select_t *mine = select_of(first);
	vez_request_t *seen = NULL;
	*again = false;
	if (!win(mine, TAKING))
		return VEZ__FIRST;
	bool won = vez__cas(&select_of(second)->won_, &seen, second, acq_rel);
	vez__store(&mine->won_, won ? first : NULL, release);
	*again = !won && seen == TAKING;
	return won ? VEZ__NEITHER : VEZ__SECOND;
}

enum vez__lost vez__select_claim_both(vez_request_t *first, vez_request_t *second)
{
	enum vez__lost lost;
	sigset_t before;
	bool again;
	vez__sys_block_signals(&before);
	do {
		lost = claim_both(first, second, &again);
		if (again)
			winner_of(select_of(second));
	} while (again);
	vez__sys_restore_signals(&before);
	return lost;
}

bool vez__select_file(vez_request_t *r)
{
	vez_select_t *s = select_of(r);
	s->filed_++;
	vez__fetch_add(&s->pending_, 1, relaxed);
	return winner_of(s) != NULL;
}

void vez__select_decided(vez_request_t *r)
{
	vez_select_t *s = select_of(r);
	vez__enter_holding(&s->monitor_);
	uint32_t before = vez__fetch_add(&s->pending_, UINT32_MAX, relaxed);
	vez_request_t *waiting = vez_room_first(&s->room_);
	if (waiting && (before == 1 || vez__load(&s->won_, relaxed) == r))
		vez_monitor_settle(&s->monitor_, waiting, 0);
	vez__exit_holding(&s->monitor_);
}

void vez_select_init(vez_select_t *s)
{
	memset(s, 0, sizeof *s);
}

vez_request_t *vez_select_case(vez_select_t *s, vez_request_t *r)
{
	memset(r, 0, sizeof *r);
	r->kind_ = VEZ__MEMBER;
	r->arg_ = s;
	r->then_.member_ = s->members_;
	s->members_ = r;
	return r;
}

static const struct vez__ops select_ops = { .type = VEZ__SELECT };

/* Waits until there is a winner or nothing is pending; won: until nothing is. 0, or why not. */
static int wait_until(vez_select_t *s, bool won, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = 0;
	for (;;) {
		vez__enter_holding(&s->monitor_);
		if (rc != 0 || vez__load(&s->pending_, relaxed) == 0 || (!won && winner_of(s)))
			break;
		rc = vez__wait_holding(&s->monitor_, &s->room_, NULL, &select_ops, s, deadline, cancel);
	}
	vez__exit_holding(&s->monitor_);
	return rc;
}

static void withdraw_all_but(vez_select_t *s, const vez_request_t *winner)
{
	for (vez_request_t *r = s->members_; r; r = r->then_.member_)
		if (r != winner)
			vez_request_cancel(r);
	wait_until(s, true, VEZ_FOREVER, NULL);
}

int vez_select_wait(vez_select_t *s, vez_deadline_t deadline, vez_cancel_t *cancel, vez_request_t **winner)
{
	if (s->filed_ == 0)
		return EINVAL;
	int rc = wait_until(s, false, deadline, cancel);
	if (rc != 0)
		win(s, NOBODY);
	vez_request_t *won = winner_of(s);
	withdraw_all_but(s, won);
	if (won && won != NOBODY) {
		if (winner)
			*winner = won;
		return won->result_;
	}
	return rc ? rc : ECANCELED;
}
