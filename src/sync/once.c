/* SPDX-License-Identifier: MIT */
/*
 * Once: the first caller's function runs, the others wait for it; a failure is followed by the next one's turn.
 *
 * State
 *  core_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       RUNNING              somebody has the turn: its function runs, or is about to. Inside
 *	bit 3       DONE                 a function has returned 0; set inside, never cleared
 *	bits 4-63   runner               the thread that has the turn (vez__self), 0: none. Written inside; read
 *	                                 anywhere, but only to compare it with the reader
 *  queue_      those who wait; a request's value is its thread
 * Invariants
 *  O1 not both RUNNING and DONE; whenever nobody is inside, somebody waits only while RUNNING.
 *  O2 at most one thread has the turn. It is had by taking it inside, where nobody has it, or by a request that is
 *     settled with TURN; it ends inside (finish), where it goes to the longest waiter, to everybody (DONE), or
 *     to nobody.
 *  O3 the runner reads as the caller's own number exactly while the caller has the turn: it alone, or the thread that
 *     gives it the turn before it knows, writes that number, and it takes it away itself.
 * Ordering
 *  leaving in finish (release) pairs with the load in vez_once, with entering in take_turn, and through the request's
 *  word with vez__await there (all acquire).
 * Progress and fairness: FIFO; a failure wakes one thread, the next. A success wakes all, neighbours together
 *  (futex/slot.h).
 * Lifetime: core.c C5.
 * Sources: pthread_once; specific notification: C. Martins (2009).
 */
#include "vez/once.h"

#include "../engine/filing.h"
#include "../futex/foreign.h"
#include "../futex/self.h"

#define RUNNING UINT64_C(0x04)
#define DONE UINT64_C(0x08)
#define RUNNER_SHIFT 4

/* The result of a wait: the turn is the caller's. No errno number. */
#define TURN (-1)

static uint64_t with_runner(uint64_t thread)
{
	return thread << RUNNER_SHIFT;
}

/* 0: it is done; TURN; EBUSY: somebody has the turn. */
static int take(struct vez__stay *in, uint64_t seen, vez_request_t *r)
{
	if (seen & RUNNING)
		return EBUSY;
	if (seen & DONE)
		return 0;
	return vez__change(in, seen, seen | RUNNING | with_runner(r->value_)) ? TURN : EAGAIN;
}

static const struct vez__rules once_rules = {
	.type = VEZ__ONCE, .queue = offsetof(vez_once_t, queue_), .sleeps = VEZ__TOGETHER, .take = take,
};

/* Inside: the word no longer says that the caller has the turn, but next. */
static void end_turn(struct vez__stay *in, uint64_t next)
{
	vez__fetch_add(&in->core->word_, next - (RUNNING | with_runner(vez__self())), acq_rel);
}

/* Ends the caller's turn. */
static void finish(vez_once_t *o, bool done)
{
	struct vez__stay in;
	vez__enter(&in, &o->core_);
	vez_request_t *next = o->queue_;
	if (done) {
		end_turn(&in, DONE);
		vez__settle_all(&in, &o->queue_, 0);
	} else if (next) {
		end_turn(&in, RUNNING | with_runner(next->value_));
		vez__settle(&in, next, TURN);
	} else {
		end_turn(&in, 0);
	}
	vez__leave(&in, &once_rules);
}

static VEZ__SLOW int once_slow(vez_once_t *o, int (*fn)(void *), void *arg)
{
	if (vez__load(&o->core_.word_, relaxed) >> RUNNER_SHIFT == vez__self())
		return EDEADLK;
	if (vez__wait(&o->core_, &once_rules, &(vez_request_t){ .value_ = vez__self() }, VEZ_FOREVER) == 0)
		return 0;
	bool noted = vez__inspecting() && vez__inspect_owns(o);
	int rc;
	VEZ__FOREIGN(rc = fn(arg));
	if (noted)
		vez__inspect_disowns(o);
	finish(o, rc == 0);
	return rc;
}

int vez_once(vez_once_t *o, int (*fn)(void *), void *arg)
{
	uint64_t seen = vez__load_fast(&o->core_.word_, acquire);
	return VEZ__LIKELY(!vez__checked() && (seen & (DONE | VEZ__LOCKED)) == DONE) ? 0 : once_slow(o, fn, arg);
}
