/* SPDX-License-Identifier: MIT */
/*
 * vez/group.h - one group at a time: members of the same group share, groups exclude each other
 *
 * As with a room that any number may use together, as long as all are there for the same purpose: whoever enters names
 * a group, and may be inside together with others of that group, but with nobody of another. Two groups are two sides
 * that exclude each other but not themselves; readers and writers are the case where each writer is a group of its own.
 *
 * Fair: while somebody of another group waits, newcomers of the running group queue behind. When the last one has
 * left, the group of the longest waiter enters, with all of its members that wait at that moment. So a group that waits
 * gets in as soon as those have left who were inside, or before it in the queue, when it came. When a waiter gives
 * up, whom it held back is let in at once. Uncontended, enter and leave are one compare-and-swap each and no
 * system call.
 *
 * Membership is not tracked: any thread may leave for another, and a thread that is inside and enters again may wait
 * behind another group, for itself.
 *
 * Ordering: everything before a leave happens before everything after an enter that it lets through.
 * Destroy: a thread whose call has returned, with any result, may destroy the object and unmap it, if no other thread
 * will call it again, nobody is inside and nobody is queued. vez_group_destroy first waits for a leave that is
 * just returning.
 * Signal handlers: vez_group_waiters only.
 * fork: in the child those are inside who were; an object on which other threads were waiting, or which one of them was
 * entering or leaving, is to be initialized anew. Waits are no pthread cancellation points.
 * Errors on entry, in this order: ECANCELED (token fired), then the state (a free object is entered even if the
 * deadline has passed), then ETIMEDOUT.
 * Sources: group mutual exclusion: Y.-J. Joung, "Asynchronous group mutual exclusion" (2000); "The Room
 * Synchronizations", G. E. Blelloch, P. Cheng, P. B. Gibbons (2001); execution delegation: C. Martins (2009).
 */
#ifndef VEZ_GROUP_H
#define VEZ_GROUP_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

typedef struct vez_group {
	struct vez__core core_;
	vez_request_t *queue_;
	uint64_t reserved_[3];
} vez_group_t;

VEZ_ASSERT_SIZE_(vez_group_t, 48);

/* An object that nobody is inside. All-zero bytes are one, too. */
#define VEZ_GROUP_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, { 0, 0, 0 } }

/* flags: 0. EINVAL: any other. */
int vez_group_init(vez_group_t *g, unsigned flags);

/* EBUSY, and nothing has changed, while somebody is inside or queued. */
int vez_group_destroy(vez_group_t *g);

/* Enters as a member of group id, which is any number, waiting as long as it takes. 0; EOVERFLOW if the group is
 * running and has as many members inside as can be counted (2^29 - 1). */
int vez_group_enter(vez_group_t *g, uint32_t id);

/* Enters if that is possible without waiting: 0; else EBUSY, and nothing has changed. EOVERFLOW as vez_group_enter.
 * Honours the queue. */
int vez_group_try_enter(vez_group_t *g, uint32_t id);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_group_enter_until(vez_group_t *g, uint32_t id, vez_deadline_t deadline, vez_cancel_t *cancel);

/* The same without waiting, by the request's limits (vez/request.h): 0, EINPROGRESS, or an error. */
int vez_group_enter_async(vez_group_t *g, uint32_t id, vez_request_t *r);

/* One member leaves; any thread. Never waits for a sleeping thread. EPERM if nobody is inside. */
int vez_group_leave(vez_group_t *g);

/* How many requests are queued. Any thread, any time, signal handlers included. */
size_t vez_group_waiters(const vez_group_t *g);

VEZ_END_DECLS_

#endif
