/* SPDX-License-Identifier: MIT */
/*
 * Once: the first caller's function runs, the others wait for it; a failure is followed by the next one's turn.
 *
 * State
 *  monitor_.word_
 *	bits 0-1    the lock             futex/lock.h
 *	bit 2       RUNNING              somebody has the turn: its function runs, or is about to. Inside
 *	bit 3       DONE                 a function has returned 0; set inside, never cleared
 *  room_       who waits; a request's value is its thread (vez__self)
 *  runner_     the thread that has the turn, 0: none. Written inside; read anywhere, but only to compare it
 *              with the reader
 * Invariants
 *  O1 not both RUNNING and DONE; whenever nobody is inside, somebody waits only while RUNNING.
 *  O2 at most one thread has the turn. It is had by claiming it inside, where nobody has it, or by a request that is
 *     settled with TURN; it ends inside (finish), where it goes to the longest waiter, to everybody (DONE), or
 *     to nobody.
 *  O3 runner_ reads as the caller's own number exactly while the caller has the turn: it alone, or who gives it the
 *     turn before it knows, writes that number, and it takes it away itself.
 *  O4 who returns 0 without having entered has seen DONE with nobody inside: so the one who set it has left for good,
 *     and the object may be unmapped.
 * Ordering
 *  vez__monitor_leave in finish (release) pairs with the load in vez_once, with vez__monitor_enter in claim, and
 *  through the request's word with vez__request_await in claim (all acquire).
 * Progress and fairness: FIFO; a failure wakes one thread, the next. (They do not sleep as a cohort: a failure would
 *  wake them all. The wakes of a success come once in the life of an object.)
 * Sources: pthread_once; specific notification: C. Martins (2009).
 */
#include "vez/once.h"

#include <errno.h>

#include "../futex/self.h"
#include "engine.h"

#define RUNNING UINT64_C(0x04)
#define DONE UINT64_C(0x08)

/* The result of a wait: the turn is the caller's. No errno number. */
#define TURN (-1)

static const struct vez__ops once_ops = { .type = VEZ__ONCE };

/* Inside: queues and leaves. */
static int wait_for_turn(vez_once_t *o)
{
	vez_request_t r;
	vez__request_mine(&r, 0, NULL);
	r.value_ = vez__self();
	vez__request_prepare(&o->monitor_, &o->room_, &r, &once_ops);
	vez__request_insert(&r);
	vez__monitor_leave(&o->monitor_, NULL);
	return vez__request_await(&r, VEZ_FOREVER);
}

/* 0: it is done; TURN. */
static int claim(vez_once_t *o)
{
	vez__monitor_enter(&o->monitor_);
	uint64_t seen = vez__load(&o->monitor_.word_, relaxed);
	if (seen & RUNNING)
		return wait_for_turn(o);
	if (!(seen & DONE)) {
		vez__fetch_or(&o->monitor_.word_, RUNNING, relaxed);
		vez__store(&o->runner_, vez__self(), relaxed);
	}
	vez__monitor_leave(&o->monitor_, NULL);
	return seen & DONE ? 0 : TURN;
}

/* Inside: nobody has the turn any more; the word says so, and says mark. */
static void end_turns(vez_once_t *o, uint64_t mark)
{
	vez__store(&o->runner_, 0, relaxed);
	uint64_t seen = vez__load(&o->monitor_.word_, relaxed);
	while (!vez__cas(&o->monitor_.word_, &seen, (seen & ~RUNNING) | mark, relaxed)) {
	}
}

/* Ends the caller's turn. */
static void finish(vez_once_t *o, bool done)
{
	vez_request_t *next;
	vez__monitor_enter(&o->monitor_);
	next = vez_room_first(&o->room_);
	if (done)
		end_turns(o, DONE);
	else if (!next)
		end_turns(o, 0);
	else {
		vez__store(&o->runner_, next->value_, relaxed);
		vez_monitor_settle(&o->monitor_, next, TURN);
	}
	while (done && (next = vez_room_first(&o->room_)))
		vez_monitor_settle(&o->monitor_, next, 0);
	vez__monitor_leave(&o->monitor_, NULL);
}

static VEZ__COLD int once_slow(vez_once_t *o, int (*fn)(void *), void *arg)
{
	if (vez__load(&o->runner_, relaxed) == vez__self())
		return EDEADLK;
	if (claim(o) == 0)
		return 0;
	bool noted = vez__inspecting() && vez__inspect_owns(o);
	int rc = fn(arg);
	if (noted)
		vez__inspect_disowns(o);
	finish(o, rc == 0);
	return rc;
}

int vez_once(vez_once_t *o, int (*fn)(void *), void *arg)
{
	uint64_t seen = vez__load(&o->monitor_.word_, acquire);
	return VEZ__LIKELY((seen & (DONE | VEZ__LOCKED)) == DONE) ? 0 : once_slow(o, fn, arg);
}
