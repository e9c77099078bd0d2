/* SPDX-License-Identifier: MIT */
/*
 * The cyclic barrier: all parties go on when the last one has come.
 *
 * State: everything changes inside the monitor.
 *  room_     those who wait, in order of arrival: first those of decided rounds, then those of the round that fills.
 *            A request's value is its index
 *  arrived_  how many of them are of the round that fills; less than parties_
 *  decided_  how many are of decided rounds: the parties_ - 1 for whom the action is running, if it is; then round by
 *            round parties_ requests whose action is still to be run, each by its last one
 *  acting_   an action is running, or about to be, by a thread that is not queued
 *  actor_    the number of the thread whose action is running, 0 outside it; written by that thread alone, read by
 *            anybody to compare with itself
 *  broken_   no round is complete until reset; written inside, read anywhere
 *  parties_, action_, arg_  constant
 * Invariants
 *  B1 a round is decided inside, by its last party. From then on its requests keep their places whatever their limits
 *     (vez__request_keep); only the end of an action settles them.
 *  B2 what breaks the round that fills settles all of it at once: no request of a broken round stays queued, so
 *     arrived_ is exact and the index is counted without gaps.
 *  B3 acting_ is handed on, not let go, where another decided round waits: one action at a time, in the order
 *     of decision.
 *  B4 without an action, or without a round that waits for one, decided_ is 0.
 * Ordering
 *  All through the monitor: what a party did before it came is released by its leaving, and acquired by the last one's
 *  entering; what the actor did is released by its leaving when it has settled the round, and published (word.c).
 *  broken_: the stores in break_round and reset (release) pair with vez_barrier_broken (acquire).
 *  actor_ needs no order: a thread finds its own number there only if it wrote it itself.
 * Progress and fairness
 *  Nobody waits for an action but the decided rounds. The parties of a round are released by one leaver. They sleep as
 *  a cohort, woken by one system call; those who come while an action runs sleep alone, so as not to be woken with the
 *  round before.
 * Lifetime: the leaving exchange of who ends the round is its last touch. vez_barrier_destroy enters, so that one has
 *  left; and it waits for those whose deadline or token has them come in, though their round
 *  is over (vez__monitor_retire).
 * Sources: Jordan (1978); the broken barrier, the index and the action: D. Lea, java.util.concurrent (2004).
 */
#include "vez/barrier.h"

#include <errno.h>
#include <string.h>

#include "../futex/self.h"
#include "engine.h"

/* The result of a wait for an action's turn: it has come. Not an errno. */
#define TURN (-1)

static vez_barrier_t *barrier_of(vez_monitor_t *m)
{
	return (vez_barrier_t *)((char *)m - offsetof(vez_barrier_t, monitor_));
}

/* ---- inside ---- */

static vez_request_t *first_undecided(const vez_barrier_t *b)
{
	vez_request_t *r = vez_room_first(&b->room_);
	for (uint64_t n = b->decided_; n > 0; n--)
		r = vez_room_next(&b->room_, r);
	return r;
}

/* Settles r and the n - 1 behind it; returns the one behind those. */
static vez_request_t *settle_all(vez_barrier_t *b, vez_request_t *r, uint64_t n, int result)
{
	for (; n > 0; n--) {
		vez_request_t *next = vez_room_next(&b->room_, r);
		vez_monitor_settle(&b->monitor_, r, result);
		r = next;
	}
	return r;
}

/* Ends the round that fills, for all of its parties but one, which has its own result; NULL: for all. */
static void end_filling(vez_barrier_t *b, const vez_request_t *but)
{
	vez_request_t *r = b->arrived_ > 0 ? first_undecided(b) : NULL;
	for (; b->arrived_ > 0; b->arrived_--) {
		vez_request_t *next = vez_room_next(&b->room_, r);
		if (r != but)
			vez_monitor_settle(&b->monitor_, r, VEZ_EBROKEN);
		r = next;
	}
}

static void break_round(vez_barrier_t *b, const vez_request_t *but)
{
	vez__store(&b->broken_, 1, release);
	end_filling(b, but);
}

/* r gives up: the round that fills is broken. */
static bool take_back(vez_monitor_t *m, uint64_t seen, vez_request_t *r)
{
	(void)seen;
	break_round(barrier_of(m), r);
	return true;
}

static const struct vez__ops barrier_ops = { .type = VEZ__BARRIER, .take_back = take_back };

/* What an arrival comes to, besides an errno. */
enum { QUEUED = -1, LAST = -2 };

static int arrive(vez_barrier_t *b, vez_request_t *r, bool expired)
{
	if (b->broken_)
		return VEZ_EBROKEN;
	int cause = 0;
	if (!b->acting_)
		vez__request_in_cohort(&b->monitor_, r);
	if (r->cancel_ && vez_cancel_fired(r->cancel_))
		cause = ECANCELED;
	else if (b->arrived_ + 1 == b->parties_)
		return LAST;
	else if (expired)
		cause = ETIMEDOUT;
	else if (!vez__request_prepare(&b->monitor_, &b->room_, r, &barrier_ops))
		cause = ECANCELED;
	if (cause) {
		break_round(b, NULL);
		return cause;
	}
	b->arrived_++;
	r->value_ = b->parties_ - b->arrived_;
	vez__request_insert(r);
	return QUEUED;
}

/* The last party has come to a round with an action: its requests belong to it from now on. */
static void decide(vez_barrier_t *b)
{
	vez_request_t *r = b->arrived_ > 0 ? first_undecided(b) : NULL;
	for (uint32_t n = b->arrived_; n > 0; n--) {
		vez__request_keep(r);
		r = vez_room_next(&b->room_, r);
	}
	b->decided_ += b->arrived_;
	b->arrived_ = 0;
}

/* The last party queues, last of its round, until the actions of earlier rounds are over. */
static void await_turn(vez_barrier_t *b, vez_request_t *r)
{
	vez__request_mine(r, 0, NULL);
	vez__request_prepare(&b->monitor_, &b->room_, r, &barrier_ops);
	r->value_ = 0;
	vez__request_insert(r);
	b->decided_++;
}

/* The action has returned rc: its round ends, and the next decided one gets its turn. */
static void end_round(vez_barrier_t *b, int rc)
{
	settle_all(b, vez_room_first(&b->room_), b->parties_ - 1, rc ? VEZ_EBROKEN : 0);
	b->decided_ -= b->parties_ - 1;
	if (rc) {
		settle_all(b, vez_room_first(&b->room_), b->decided_, VEZ_EBROKEN);
		b->decided_ = 0;
		break_round(b, NULL);
	}
	b->acting_ = b->decided_ > 0;
	if (!b->acting_)
		return;
	vez_request_t *actor = vez_room_first(&b->room_);
	while (actor->value_ > 0)
		actor = vez_room_next(&b->room_, actor);
	b->decided_--;
	vez_monitor_settle(&b->monitor_, actor, TURN);
}

/* ---- outside ---- */

/* Runs the action for the round of the caller, which is the last party. */
static int act(vez_barrier_t *b)
{
	vez__store(&b->actor_, vez__self(), relaxed);
	int rc = b->action_(b->arg_);
	vez__store(&b->actor_, 0, relaxed);
	vez__monitor_enter(&b->monitor_);
	end_round(b, rc);
	vez__monitor_leave(&b->monitor_, NULL);
	return rc;
}

/* Inside, the last party: decides the round, and leaves. */
static int complete_with_action(vez_barrier_t *b, vez_request_t *r)
{
	bool waits = b->acting_;
	decide(b);
	b->acting_ = 1;
	if (waits)
		await_turn(b, r);
	vez__monitor_leave(&b->monitor_, NULL);
	int turn = waits ? vez__request_await(r, VEZ_FOREVER) : TURN;
	return turn == TURN ? act(b) : turn;
}

/* Inside, the last party: ends the round, or decides it and runs the action; and leaves. */
static int complete(vez_barrier_t *b, vez_request_t *r)
{
	if (b->action_)
		return complete_with_action(b, r);
	settle_all(b, vez_room_first(&b->room_), b->arrived_, 0);
	b->arrived_ = 0;
	vez__monitor_leave(&b->monitor_, NULL);
	return 0;
}

static bool inside_own_action(const vez_barrier_t *b)
{
	return b->action_ && vez__load(&b->actor_, relaxed) == vez__self();
}

int vez_barrier_wait_until(vez_barrier_t *b, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	vez__request_mine(&r, 0, cancel);
	r.value_ = 0;
	if (inside_own_action(b))
		return EDEADLK;
	bool expired = vez__deadline_passed(deadline);
	vez__monitor_enter(&b->monitor_);
	int rc = arrive(b, &r, expired);
	if (rc == LAST) {
		rc = complete(b, &r);
	} else {
		vez__monitor_leave(&b->monitor_, NULL);
		if (rc == QUEUED)
			rc = vez__request_await(&r, deadline);
	}
	if (rc == 0 && index)
		*index = (uint32_t)r.value_;
	return rc;
}

int vez_barrier_wait(vez_barrier_t *b, uint32_t *index)
{
	return vez_barrier_wait_until(b, index, VEZ_FOREVER, NULL);
}

int vez_barrier_reset(vez_barrier_t *b)
{
	if (inside_own_action(b))
		return EDEADLK;
	vez__monitor_enter(&b->monitor_);
	end_filling(b, NULL);
	vez__store(&b->broken_, 0, release);
	vez__monitor_leave(&b->monitor_, NULL);
	return 0;
}

bool vez_barrier_broken(const vez_barrier_t *b)
{
	return vez__load(&b->broken_, acquire);
}

size_t vez_barrier_waiters(const vez_barrier_t *b)
{
	return vez_room_length(&b->room_);
}

int vez_barrier_init(vez_barrier_t *b, uint32_t parties, int (*action)(void *arg), void *arg)
{
	if (parties == 0 || parties > VEZ_BARRIER_MAX)
		return EINVAL;
	memset(b, 0, sizeof *b);
	b->parties_ = parties;
	b->action_ = action;
	b->arg_ = arg;
	return 0;
}

int vez_barrier_destroy(vez_barrier_t *b)
{
	vez__monitor_enter(&b->monitor_);
	return vez__monitor_retire(&b->monitor_, NULL, b->acting_);
}
