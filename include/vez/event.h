/* SPDX-License-Identifier: MIT */
/*
 * vez/event.h - event: a flag that threads wait for
 *
 * A manual-reset event is a gate: set opens it and lets go all who wait, and it stays open until reset. A set that is
 * followed by a reset lets through everyone who was queued at the set. An auto-reset event is a doorbell: each set lets
 * one wait through, the longest waiter; if nobody waits, one set is kept for the next wait. Sets do not add up: count
 * with a semaphore (vez/sem.h) instead. For a gate that never closes again, see vez/latch.h.
 *
 * A set never waits, whoever else is using the event: where another thread is just inside, that one carries the set out
 * before it leaves. It wakes those whom it lets through, each once, and nobody else.
 *
 * Ordering: everything before a set happens before everything after a wait that it lets through, after a reset that
 * undoes it, and after a vez_event_is_set that tells of it.
 * Destroy: a thread whose wait has returned, with any result, may destroy the event and unmap it, if no other thread
 * will call it again and nobody is queued; vez_event_destroy waits for a set that is just leaving and for waits
 * that are.
 * Signal handlers: vez_event_set and vez_event_waiters may be called there, whatever they interrupt.
 * fork: in the child the event is as it was; an event on which threads of the parent were waiting, or which one of them
 * was about to leave, is to be initialized anew. Waits are no pthread cancellation points.
 * Errors on entry, in this order: ECANCELED (token fired; a kept set stays), then the event (which lets through even if
 * the deadline has passed), then ETIMEDOUT.
 * Sources: the binary private semaphore of Dijkstra's T.H.E. system (1968) and the event counts of Reed and Kanodia
 * (1979); manual and automatic reset as in the event objects of OS/2 and Windows.
 */
#ifndef VEZ_EVENT_H
#define VEZ_EVENT_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

/* One set lets one wait through. */
#define VEZ_AUTO_RESET 32u

typedef struct vez_event {
	struct vez__core core_;
	vez_request_t *queue_;
	uint64_t reserved_;
} vez_event_t;

VEZ_ASSERT_SIZE_(vez_event_t, 32);

/* A manual-reset event that is not set. All-zero bytes are one, too. */
#define VEZ_EVENT_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, 0 }

/* Makes an event that is not set. flags: 0, or VEZ_AUTO_RESET. EINVAL: unknown flags. */
int vez_event_init(vez_event_t *e, unsigned flags);

/* EBUSY, and nothing has changed, while requests are queued. */
int vez_event_destroy(vez_event_t *e);

/* Lets go all who wait, and all who come until the event is reset; with VEZ_AUTO_RESET the longest waiter, or the next
 * to come. Setting a set event changes nothing. Any thread, signal handlers included; never waits. Returns 0. */
int vez_event_set(vez_event_t *e);

/* Not set from now on; a set that was kept is dropped. Whom a set has let through before goes all the same.
 * Returns 0. */
int vez_event_reset(vez_event_t *e);

/* Waits until the event lets this call through. 0. */
int vez_event_wait(vez_event_t *e);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_event_wait_until(vez_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's limits (vez/request.h): 0, EINPROGRESS, or an error. */
int vez_event_wait_async(vez_event_t *e, vez_request_t *r);

/* Whether a wait would be let through at once. Any thread, any time. */
bool vez_event_is_set(const vez_event_t *e);

/* How many requests are queued. Any thread, any time, signal handlers included. */
size_t vez_event_waiters(const vez_event_t *e);

VEZ_END_DECLS_

#endif
