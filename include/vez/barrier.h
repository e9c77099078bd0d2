/* SPDX-License-Identifier: MIT */
/*
 * vez/barrier.h - cyclic barrier: a round is over when all parties have come
 *
 * Each of the parties that calls vez_barrier_wait waits until the last one has come; then all go on, and the barrier is
 * ready for the next round. An action, if there is one, is run once per round by the last to come, before anyone is let
 * go: what the parties wrote before they came is visible to it, and what it writes is visible to them all. The index
 * that wait tells names one party of each round, 0, that came last (and ran the action), parties - 1 that came first.
 *
 * All or none: a party that gives up (ETIMEDOUT, ECANCELED) breaks the barrier, for the others would wait in vain.
 * They, and all who come later, get VEZ_EBROKEN, until vez_barrier_reset. A wait that finds its deadline passed or its
 * token fired on entry breaks it too, unless it is broken already (VEZ_EBROKEN) or, for the deadline, the last party
 * has come with this call.
 *
 * Once the last party has come the round is decided: deadlines, tokens and resets no longer affect it, though its
 * action may still run. Who comes while the action runs belongs to the next round; should that one be complete before
 * the action is over, it waits for its turn: two actions never run at once. An action that returns non-zero breaks the
 * barrier: the party that ran it gets that value, and all who wait VEZ_EBROKEN, those included whose action was still
 * to be run.
 *
 * Inside its own action the barrier answers: wait and reset EDEADLK, destroy EBUSY, waiters parties - 1 (and who
 * came for the next round). The action must return: no longjmp; an exception that leaves it, and pthread_exit
 * in it, end the program.
 *
 * Ordering: everything before a wait happens before the action of its round; that, and everything before every wait of
 * the round, before everything after any wait of the round that returned 0. What comes before the cause that breaks the
 * barrier happens before everything after the waits that it ended.
 * Destroy: whichever party returns first, with any result, may destroy the barrier and unmap it, if no thread will call
 * it again and nobody is queued; vez_barrier_destroy waits for the others, who are leaving.
 * Signal handlers: vez_barrier_waiters only. fork: in the child, a barrier on which threads of the parent were
 * waiting, or which one of them was about to leave, is to be initialized anew. Waits are no pthread
 * cancellation points.
 * Errors on entry, in this order: EDEADLK, VEZ_EBROKEN, ECANCELED, then completion of the round, then ETIMEDOUT.
 * Sources: H. Jordan, "A Special Purpose Architecture for Finite Element Analysis" (1978); all-or-none breakage, the
 * index and the action: the CyclicBarrier of D. Lea's java.util.concurrent (2004).
 */
#ifndef VEZ_BARRIER_H
#define VEZ_BARRIER_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

/* The largest number of parties. */
#define VEZ_BARRIER_MAX UINT32_C(0x7fffffff)

typedef struct vez_barrier {
	struct vez__core core_;
	vez_request_t *queue_;
	int (*action_)(void *arg);
	void *arg_;
	uint64_t actor_;
	uint32_t parties_;
	uint32_t decided_;
	uint32_t followers_;
	uint16_t shared_;
	uint16_t reserved_;
} vez_barrier_t;

VEZ_ASSERT_SIZE_(vez_barrier_t, 64);

/* Makes a barrier. action, which may be NULL, is called with arg once per round. EINVAL: parties 0 or
 * above VEZ_BARRIER_MAX. */
int vez_barrier_init(vez_barrier_t *b, uint32_t parties, int (*action)(void *arg), void *arg);

/* EBUSY, and nothing has changed, while somebody waits or an action is running. */
int vez_barrier_destroy(vez_barrier_t *b);

/* Waits until all parties have come. 0, and *index (unless index is NULL) tells the order of arrival, counted down to
 * 0; VEZ_EBROKEN; EDEADLK from inside its own action; or what the action returned, if this call ran it. */
int vez_barrier_wait(vez_barrier_t *b, uint32_t *index);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires; either breaks
 * the barrier. */
int vez_barrier_wait_until(vez_barrier_t *b, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel);

/* Ends the round that is not yet complete: those who wait in it get VEZ_EBROKEN. The barrier is whole again and empty
 * when it returns. 0; EDEADLK from inside its own action. Any thread. */
int vez_barrier_reset(vez_barrier_t *b);

/* Whether it is broken. Any thread, any time. */
bool vez_barrier_broken(const vez_barrier_t *b);

/* How many wait. Any thread, any time, signal handlers included. */
size_t vez_barrier_waiters(const vez_barrier_t *b);

VEZ_END_DECLS_

#endif
