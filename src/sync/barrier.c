/* SPDX-License-Identifier: MIT */
/*
 * The cyclic barrier: all parties go on when the last one has come.
 *
 * State: everything changes inside.
 *  core_.word_
 *	bit 2  ACTING  an action is running, or about to be, by a thread that is not queued
 *	bit 3  BROKEN  no round is complete until reset. Read anywhere
 *  queue_    those who wait with a request, in order of arrival: first those of decided rounds. A request's value is
 *            its index: how many were still to come
 *  decided_  how many are of decided rounds: the parties_ - 1 for whom the action is running, if it is; then round by
 *            round parties_ requests whose action is still to be run, each by its last one. The rest, fewer than
 *            parties_, are of the round that fills
 *  followers_, shared_  engine/follow.c: how many of the round that fills wait without a request; where these sleep
 *  actor_    the number of the thread whose action is running, or 0; written by that thread alone, read by anybody
 * Invariants
 *  B1 a round is decided inside, by its last party. Its requests keep their places from then on (vez__keep); only the
 *     end of an action settles them.
 *  B2 what breaks the round that fills ends all of it at once, so the index is counted without gaps.
 *  B3 ACTING is handed on, not let go, where another decided round waits: one action at a time, in order of decision.
 *  B4 without an action, or without a round that waits for one, decided_ is 0. With an action there are no followers:
 *     they would have no place among decided rounds.
 * Ordering
 *  All through the core: what a party did before it came is released by its leaving, and acquired by the last one's
 *  entering; what the actor did is released when it leaves after settling the round (and word.c, shared.c).
 *  BROKEN: the exchanges in break_round and reset (release) pair with vez_barrier_broken (acquire).
 * Progress and fairness
 *  Nobody waits for an action but the decided rounds. The parties of a round are released by one leaver, who wakes the
 *  followers by one system call, and of the others neighbours together (futex/slot.h).
 * Lifetime: core.c C5. The last touch of the thread that ends a round is its leaving exchange.
 * Sources: Jordan (1978); the broken barrier, the index and the action: D. Lea, java.util.concurrent (2004).
 */
#include "vez/barrier.h"

#include "../engine/filing.h"
#include "../engine/follow.h"
#include "../futex/foreign.h"
#include "../futex/self.h"

#define ACTING UINT64_C(4)
#define BROKEN UINT64_C(8)

/* A result, and not an errno: the party is to run the action. */
#define TURN (-1)

static vez_barrier_t *barrier_of(const struct vez__stay *in)
{
	return (vez_barrier_t *)in->core;
}

/* How many wait in the round that fills. */
static uint32_t arrived(const vez_barrier_t *b)
{
	return b->core_.length_ - b->decided_;
}

static vez_request_t *first_undecided(const vez_barrier_t *b)
{
	vez_request_t *r = b->queue_;
	for (uint32_t n = b->decided_; n > 0; n--)
		r = vez__queue_next(b->queue_, r);
	return r;
}

static void end_filling(struct vez__stay *in, int result)
{
	vez_barrier_t *b = barrier_of(in);
	vez__followers_end(in, &b->followers_, &b->shared_, result);
	vez_request_t *next, *r = first_undecided(b);
	for (uint32_t n = arrived(b); n > 0; n--, r = next) {
		next = r->next_;
		vez__settle(in, r, result);
	}
}

/* Because of r, which has given up, or of the caller. */
static void break_round(struct vez__stay *in, vez_request_t *r)
{
	(void)r;
	vez__fetch_or(&in->core->word_, BROKEN, acq_rel);
	end_filling(in, VEZ_EBROKEN);
}

static const struct vez__rules barrier_rules = {
	.type = VEZ__BARRIER,
	.queue = offsetof(vez_barrier_t, queue_),
	.sleeps = VEZ__TOGETHER,
	.shared = offsetof(vez_barrier_t, shared_),
	.gave_up = break_round,
};

/* For the last party, which waits for its turn alone. */
static const struct vez__rules turn_rules = { .type = VEZ__BARRIER, .queue = offsetof(vez_barrier_t, queue_) };

/* The last party, r, has come: ends the round, or decides it. 0; TURN; EINPROGRESS: it is queued, last of its round,
 * until the actions of earlier rounds are over. */
static int complete(struct vez__stay *in, vez_request_t *r)
{
	vez_barrier_t *b = barrier_of(in);
	int rc = TURN;
	if (!b->action_) {
		end_filling(in, 0);
		return 0;
	}
	if (vez__fetch_or(&b->core_.word_, ACTING, relaxed) & ACTING) {
		r->cancel_ = NULL;
		rc = vez__queue_inside(in, &turn_rules, r);
	}
	/* Those who come from now on are strangers to them. */
	for (r = first_undecided(b); r; r = vez__queue_next(b->queue_, r))
		vez__keep(r);
	b->decided_ = b->core_.length_;
	return rc;
}

/* 0, TURN or EINPROGRESS; or an error. */
static int arrive(struct vez__stay *in, vez_request_t *r, bool expired)
{
	vez_barrier_t *b = barrier_of(in);
	int rc;
	if (vez_barrier_broken(b))
		return VEZ_EBROKEN;
	if (vez__is_fired(r->cancel_))
		rc = ECANCELED;
	else if (r->value_ == 0)
		return complete(in, r);
	else
		rc = expired ? ETIMEDOUT : vez__queue_inside(in, &barrier_rules, r);
	if (rc != EINPROGRESS)
		break_round(in, NULL);
	return rc;
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

/* The action has returned rc: its round ends, or all do, and the next one that is decided gets its turn. */
static void end_round(struct vez__stay *in, int rc)
{
	vez_barrier_t *b = barrier_of(in);
	for (uint32_t n = b->parties_ - 1; rc == 0 && n > 0; n--, b->decided_--)
		vez__settle(in, b->queue_, 0);
	if (rc != 0) {
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

static bool inside_own_action(const vez_barrier_t *b)
{
	return b->action_ && vez__load(&b->actor_, relaxed) == vez__self();
}

static VEZ__SLOW int wait_with_request(struct vez__stay *in, uint32_t index, bool expired, vez_deadline_t deadline,
				       vez_cancel_t *cancel)
{
	vez_barrier_t *b = barrier_of(in);
	vez_request_t r;
	vez__request_init_local(&r, 0, cancel);
	r.value_ = index;
	int rc = arrive(in, &r, expired);
	vez__leave(in, NULL);
	if (rc == EINPROGRESS)
		rc = vez__await(&r, index > 0 ? deadline : VEZ_FOREVER); /* the last one waits for its turn */
	return rc == TURN ? act(b) : rc;
}

VEZ__HOT int vez_barrier_wait_until(vez_barrier_t *b, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__stay in;
	if (inside_own_action(b))
		return EDEADLK;
	bool expired = vez__deadline_passed(deadline);
	vez__enter(&in, &b->core_);
	uint32_t to_come = b->parties_ - 1 - arrived(b);
	bool follows = deadline == VEZ_FOREVER && !cancel && !b->action_ && to_come > 0 && !vez_barrier_broken(b);
	follows = follows && vez__follow_begin(&in, &b->followers_, &b->shared_);
	int rc = follows ? vez__follow(&in, &barrier_rules) :
			   wait_with_request(&in, to_come, expired, deadline, cancel);
	if (rc == 0 && index)
		*index = to_come;
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
	end_filling(&in, VEZ_EBROKEN);
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
	*b = (vez_barrier_t){ .parties_ = parties, .action_ = action, .arg_ = arg };
	return 0;
}

int vez_barrier_destroy(vez_barrier_t *b)
{
	return vez__destroy(&b->core_, &barrier_rules, ACTING);
}
