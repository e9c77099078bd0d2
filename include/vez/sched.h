/* SPDX-License-Identifier: MIT */
/*
 * vez/sched.h - exclusive use of a resource, in an order that the user defines
 *
 * One thread at a time is inside. Those who wait say for what (a job, a request, a position on a disk), and a function
 * of the user's says which of two comes before the other; equals, and all if there is no function, are served in order
 * of arrival. The next one is chosen when it can enter: when the one inside leaves, or, if a gap is set, when that time
 * has passed after the leave. Whoever has come by then is considered, and the best of them enters; later ones are not.
 *
 * The gap is kept by one of those who wait: it sleeps until then, lets the best one in (often itself), and if it
 * gives up before, another takes over. No thread but theirs is needed.
 *
 * Owned by a thread: only the one inside can leave; if it exits inside, nobody enters any more.
 *
 * Ordering: everything before a leave happens before everything after the next enter.
 * Destroy: a thread whose call has returned, with any result, may destroy the object and unmap it, if no other thread
 * will call it again, nobody is inside and nobody is queued. vez_sched_destroy first waits for a leave that is
 * just returning.
 * Signal handlers: vez_sched_waiters only.
 * fork: if the forking thread is inside, it is inside in the child; an object on which other threads were waiting, or
 * which one of them was in, entering or leaving, is to be initialized anew. Waits are no pthread cancellation points.
 * Errors on entry, in this order: ECANCELED (token fired), EDEADLK, then the state (a free object is entered even if
 * the deadline has passed), then ETIMEDOUT.
 * Sources: M. Grand, "Patterns in Java": Scheduler; the scheduled wait of Hoare (1974); execution delegation: C.
 * Martins (2009).
 */
#ifndef VEZ_SCHED_H
#define VEZ_SCHED_H

#include "base.h"
#include "cancel.h"
#include "deadline.h"
#include "request.h"

VEZ_BEGIN_DECLS_

typedef struct vez_sched {
	struct vez__core core_;
	vez_request_t *queue_;
	bool (*before_)(const void *a, const void *b);
	uint64_t owner_;
	int64_t gap_;
	int64_t left_at_;
	vez_request_t *keeper_;
} vez_sched_t;

VEZ_ASSERT_SIZE_(vez_sched_t, 64);

/* FIFO, without a gap. All-zero bytes are one, too. */
#define VEZ_SCHED_INITIALIZER { VEZ_CORE_INITIALIZER_(0), 0, 0, 0, 0, 0, 0 }

/* before(a, b): whether the one that entered with a is to come before the one with b; NULL: never, FIFO. It is called
 * inside the monitor, once for each who waits, on any thread that uses the object or fires a token: short, pure, a
 * strict weak order, no vez calls. flags: 0. EINVAL: any other. */
int vez_sched_init(vez_sched_t *s, bool (*before)(const void *a, const void *b), unsigned flags);

/* EBUSY, and nothing has changed, while somebody is inside or queued. */
int vez_sched_destroy(vez_sched_t *s);

/* The least time, in nanoseconds, between one leave and the next enter, from now on; a leave that is past counts too
 * (one that happened while no gap was set counts from this call). EINVAL: negative. */
int vez_sched_min_gap(vez_sched_t *s, int64_t ns);

/* Enters, waiting as long as it takes. what must stay valid until it returns. 0; EDEADLK: the caller is inside. */
int vez_sched_enter(vez_sched_t *s, const void *what);

/* Enters if that is possible without waiting: 0; else EBUSY, and nothing has changed: somebody is inside, be it the
 * caller, or the gap has not passed. Honours the queue. */
int vez_sched_try_enter(vez_sched_t *s, const void *what);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires. */
int vez_sched_enter_until(vez_sched_t *s, const void *what, vez_deadline_t deadline, vez_cancel_t *cancel);

/* Leaves. Never waits for a sleeping thread. EPERM: the caller is not inside. */
int vez_sched_leave(vez_sched_t *s);

/* How many requests are queued. Any thread, any time, signal handlers included. */
size_t vez_sched_waiters(const vez_sched_t *s);

VEZ_END_DECLS_

#endif
