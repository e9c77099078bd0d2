/* SPDX-License-Identifier: MIT */
/*
 * The cyclic barrier: all parties go on when the last one has come.
 *
 * State: everything changes inside.
 *  core_.word_
 *	bit 2  ACTING  an action is running, or about to be, by a thread that is not queued
 *	bit 3  BROKEN  no round is complete until reset. Read anywhere
 *  queue_    those who wait, in order of arrival: first those of decided rounds, then those of the round that fills.
 *            A request's value is its index
 *  arrived_  how many of them are of the round that fills; less than parties_
 *  decided_  how many are of decided rounds: the parties_ - 1 for whom the action is running, if it is; then round by
 *            round parties_ requests whose action is still to be run, each by its last one
 *  actor_    the number of the thread whose action is running, 0 outside it; written by that thread alone, read by
 *            anybody to compare with itself
 *  parties_, action_, arg_  constant
 * Invariants
 *  B1 a round is decided inside, by its last party. From then on its requests keep their places whatever their limits
 *     (vez__keep); only the end of an action settles them.
 *  B2 what breaks the round that fills settles all of it at once: no request of a broken round stays queued, so
 *     arrived_ is exact and the index is counted without gaps.
 *  B3 ACTING is handed on, not let go, where another decided round waits: one action at a time, in the order
 *     of decision.
 *  B4 without an action, or without a round that waits for one, decided_ is 0.
 * Ordering
 *  All through the core: what a party did before it came is released by its leaving, and acquired by the last one's
 *  entering; what the actor did is released by its leaving when it has settled the round, and published (word.c).
 *  BROKEN: the exchanges in break_round and reset (release) pair with vez_barrier_broken (acquire).
 *  actor_ needs no order: a thread finds its own number there only if it wrote it itself.
 * Progress and fairness
 *  Nobody waits for an action but the decided rounds. The parties of a round are released by one leaver. They sleep on
 *  a shared word, woken by one system call; those of the next round sleep on another one.
 * Lifetime: the leaving exchange of the thread that ends the round is its last touch. vez_barrier_destroy enters, so that one has
 *  left; and it waits for those whose deadline or token has them come in, though their round
 *  is over (vez__retire).
 * Sources: Jordan (1978); the broken barrier, the index and the action: D. Lea, java.util.concurrent (2004).
 */
#include "vez/barrier.h"

#include <string.h>

#include "../engine/filing.h"
#include "../futex/foreign.h"
#include "../futex/self.h"

#define ACTING UINT64_C(4)
#define BROKEN UINT64_C(8)

/* The result of a wait for an action's turn: it has come. Not an errno. */
#define TURN (-1)

static vez_barrier_t *barrier_of(const struct vez__stay *in)
{
	return (vez_barrier_t *)in->core;
}

static bool is_acting(const vez_barrier_t *b)
{
	return vez__load(&b->core_.word_, relaxed) & ACTING;
}

/* ---- inside ---- */

static vez_request_t *first_undecided(const vez_barrier_t *b)
{
	vez_request_t *r = b->queue_;
	for (uint32_t n = b->decided_; n > 0; n--)
		r = vez__queue_next(b->queue_, r);
	return r;
}

/* Settles r and the n - 1 behind it. */
static void settle_some(struct vez__stay *in, vez_request_t *r, uint32_t n, int result)
{
	for (vez_request_t *next; n > 0; n--, r = next) {
		next = r->next_;
		vez__settle(in, r, result);
	}
}

/* Ends the round that fills, for all of its parties but one, which has its own result; NULL: for all. */
static void end_filling(struct vez__stay *in, const vez_request_t *but)
{
	vez_barrier_t *b = barrier_of(in);
	vez_request_t *next, *r = b->arrived_ > 0 ? first_undecided(b) : NULL;
	for (; b->arrived_ > 0; b->arrived_--, r = next) {
		next = r->next_;
		if (r != but)
			vez__settle(in, r, VEZ_EBROKEN);
	}
}

static void break_round(struct vez__stay *in, const vez_request_t *but)
{
	vez__fetch_or(&in->core->word_, BROKEN, acq_rel);
	end_filling(in, but);
}

/* r gives up: the round that fills is broken. */
static bool roll_back(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	(void)seen;
	break_round(in, r);
	return true;
}

/* A party is counted when it is queued; its index is how many are still to come. */
static bool mark(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	vez_barrier_t *b = barrier_of(in);
	(void)seen;
	b->arrived_++;
	r->value_ = b->parties_ - b->arrived_;
	return true;
}

static const struct vez__rules barrier_rules = {
	.type = VEZ__BARRIER, .queue = offsetof(vez_barrier_t, queue_), .shared = offsetof(vez_barrier_t, shared_),
	.mark = mark, .roll_back = roll_back,
};

/* For a wait that is of no round any more: its turn. */
static const struct vez__rules turn_rules = { .type = VEZ__BARRIER, .queue = offsetof(vez_barrier_t, queue_) };

/* What an arrival comes to, besides an errno. */
#define LAST (-2)

/* LAST; EINPROGRESS: it is queued; or an error. */
static int arrive(struct vez__stay *in, vez_request_t *r, bool expired)
{
	vez_barrier_t *b = barrier_of(in);
	int rc = 0;
	if (vez_barrier_broken(b))
		return VEZ_EBROKEN;
	if (vez__is_fired(r->cancel_))
		rc = ECANCELED;
	else if (b->arrived_ + 1 == b->parties_)
		return LAST;
	else
		rc = expired ? ETIMEDOUT : vez__queue_inside(in, &barrier_rules, r);
	if (rc != EINPROGRESS)
		break_round(in, NULL);
	return rc;
}

/* The last party has come to a round with an action: its requests belong to it from now on, and those who come are
 * strangers to them. */
static void decide(vez_barrier_t *b)
{
	vez_request_t *r = b->arrived_ > 0 ? first_undecided(b) : NULL;
	for (uint32_t n = b->arrived_; n > 0; n--, r = r->next_)
		vez__keep(r);
	b->decided_ += b->arrived_;
	b->arrived_ = 0;
	b->shared_ = 0;
}

/* The last party queues, last of its round, until the actions of earlier rounds are over. */
static void await_turn(struct vez__stay *in, vez_request_t *r)
{
	vez__request_init_local(r, 0, NULL);
	r->value_ = 0;
	vez__queue_inside(in, &turn_rules, r);
	barrier_of(in)->decided_++;
}

/* The first of the decided rounds that are left gets its turn. */
static void hand_on_turn(struct vez__stay *in)
{
	vez_barrier_t *b = barrier_of(in);
	vez_request_t *actor = b->queue_;
	while (actor->value_ > 0)
		actor = actor->next_;
	b->decided_--;
	vez__settle(in, actor, TURN);
}

/* The action has returned rc: its round ends, and the next decided one gets its turn. */
static void end_round(struct vez__stay *in, int rc)
{
	vez_barrier_t *b = barrier_of(in);
	settle_some(in, b->queue_, b->parties_ - 1, rc ? VEZ_EBROKEN : 0);
	b->decided_ -= b->parties_ - 1;
	if (rc) {
		settle_some(in, b->queue_, b->decided_, VEZ_EBROKEN);
		b->decided_ = 0;
		break_round(in, NULL);
	}
	if (b->decided_ > 0)
		hand_on_turn(in);
	else
		vez__fetch_and(&b->core_.word_, ~ACTING, relaxed);
}

/* ---- outside ---- */

/* Runs the action for the round of the caller, which is the last party. */
static int act(vez_barrier_t *b)
{
	struct vez__stay in;
	int rc;
	vez__store(&b->actor_, vez__self(), relaxed);
	VEZ__FOREIGN(rc = b->action_(b->arg_));
	vez__store(&b->actor_, 0, relaxed);
	vez__enter(&in, &b->core_);
	end_round(&in, rc);
	vez__leave(&in, NULL);
	return rc;
}

/* Inside, the last party: decides the round, and leaves. */
static int complete_with_action(struct vez__stay *in, vez_request_t *r)
{
	vez_barrier_t *b = barrier_of(in);
	bool waits = is_acting(b);
	decide(b);
	vez__fetch_or(&b->core_.word_, ACTING, relaxed);
	if (waits)
		await_turn(in, r);
	vez__leave(in, NULL);
	int turn = waits ? vez__await(r, VEZ_FOREVER) : TURN;
	return turn == TURN ? act(b) : turn;
}

/* Inside, the last party: ends the round, or decides it and runs the action; and leaves. */
static int complete(struct vez__stay *in, vez_request_t *r)
{
	vez_barrier_t *b = barrier_of(in);
	if (b->action_)
		return complete_with_action(in, r);
	settle_some(in, b->queue_, b->arrived_, 0);
	b->arrived_ = 0;
	vez__leave(in, NULL);
	return 0;
}

static bool inside_own_action(const vez_barrier_t *b)
{
	return b->action_ && vez__load(&b->actor_, relaxed) == vez__self();
}

int vez_barrier_wait_until(vez_barrier_t *b, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t r;
	struct vez__stay in;
	vez__request_init_local(&r, 0, cancel);
	r.value_ = 0;
	if (inside_own_action(b))
		return EDEADLK;
	bool expired = vez__deadline_passed(deadline);
	vez__enter(&in, &b->core_);
	int rc = arrive(&in, &r, expired);
	if (rc == LAST) {
		rc = complete(&in, &r);
	} else {
		vez__leave(&in, NULL);
		if (rc == EINPROGRESS)
			rc = vez__await(&r, deadline);
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
	struct vez__stay in;
	if (inside_own_action(b))
		return EDEADLK;
	vez__enter(&in, &b->core_);
	end_filling(&in, NULL);
	vez__fetch_and(&b->core_.word_, ~BROKEN, acq_rel);
	vez__leave(&in, NULL);
	return 0;
}

bool vez_barrier_broken(const vez_barrier_t *b)
{
	return vez__load(&b->core_.word_, acquire) & BROKEN;
}

size_t vez_barrier_waiters(const vez_barrier_t *b)
{
	return vez__load(&b->core_.length_, relaxed);
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
	return vez__destroy(&b->core_, &barrier_rules, ACTING);
}
