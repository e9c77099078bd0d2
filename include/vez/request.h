/* SPDX-License-Identifier: MIT */
/*
 * vez/request.h - one pending operation; operations that wait without a thread; wait-for-any
 *
 * A request carries the operation's arguments and result, its place in a room, and its own futex word. The blocking
 * calls of the synchronizers keep theirs on the caller's stack; who builds a synchronizer on vez/monitor.h hands one to
 * vez_monitor_wait. All-zero bytes are a valid request, with key 0, no value and no limits.
 *
 * Without a thread: every X_async call files the caller's request in the same queue as those of the blocking calls and
 * returns at once.
 *	0            granted already: the request is complete, and nothing will be called
 *	EINPROGRESS  queued: it will complete exactly once, later
 *	else         an error, at once: nothing is queued, the request is complete (ECANCELED: the token is fired;
 *	             ETIMEDOUT: the deadline has passed; EAGAIN: the thread that keeps deadlines could not be made)
 * It completes when it is granted, when its deadline passes or its token fires (vez_request_set_limits), when it is
 * cancelled (vez_request_cancel), or when the object is closed. How its owner learns of it is chosen when it is
 * initialized: a function is called, an eventfd ticks, or it joins a list of completions. From that moment on vez does
 * not touch the request again: it may be initialized and queued anew (from inside its function, too), or freed. Until
 * then it must stay where it is, unchanged.
 *
 * The function runs once, on the thread that settled the request (who released, fired, cancelled or closed), or on the
 * library's own; with no vez lock held, when the threads that the same call let go have been woken. It may call
 * anything, on the same object too, and counts as a call that has returned: it may destroy the object. Functions do not
 * nest: what one of them completes is called when it has returned. A function must return: no longjmp; an exception
 * that leaves it, and pthread_exit in it, end the program.
 *
 * One call (a release, a set, a fire, a close) runs at most 64 functions, not counting that of a request which it
 * cancels: those of requests that functions complete included. The rest is run by the library's thread, in order; and
 * so is what the same thread completes later, until that rest has been called: functions are called in the order in
 * which a thread has settled their requests. Ticks, lists and requests without a function wait for none of them.
 *
 * The library has one thread: it keeps deadlines, fires tokens at their moments and signals, and runs what calls leave
 * to it, at most 64 functions between two looks at what is due. It is made when one of these is first asked for, has
 * all signals blocked but those of faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), is idle when it has
 * nothing to do, and is stopped at exit. It counts as a thread: a program that ends by pthread_exit in all of its
 * threads must call exit. A function that blocks delays it; and one that waits for a function which its own thread, or
 * the library's, has yet to call may wait for ever. Where the thread cannot be made, a call runs all functions itself.
 * Ordering: everything before a release happens before the function, the tick, or the return of vez_completions_next or
 * vez_request_wait that tells of the grant.
 * Destroy: a synchronizer says EBUSY while requests are queued: cancel them first.
 * Signal handlers: nothing here. What is released in a handler (vez_sem_release, vez_event_set) completes there: its
 * function runs in the handler, unless that has interrupted a completion, a user's monitor, a call of vez/call.h or
 * vez/constraint.h, or what concerns tokens: then right after. It may have interrupted its thread inside any other
 * object, and must wait for none, nor file requests. No thread is made in a handler (where the thread blocks a signal;
 * so not with SA_NODEFER): if there is none, a release or set runs all functions itself, and the next X_async call
 * makes it. Use eventfd requests there.
 * Inside a user's monitor, a body, a guard or a trigger nothing completes: what is settled or cancelled there does when
 * its thread has left. So a wait-for-any cannot be used there.
 * fork: a parent's requests are not the child's: it initializes anew the objects on which some are queued, and all
 * requests. A thread that forks inside a monitor or body has settled none there. The child makes its own thread for
 * deadlines; what was left to the parent's is not called there. Waits are no pthread cancellation points. exit: what is
 * queued or left then never completes.
 * Sources: asynchronous acquire with cancellation by deadline and token, and the blocking form built on it: C. Martins
 * (2009) and .NET's SemaphoreSlim; the choice among several: the select of CSP (Hoare 1978) and of Concurrent ML
 * (J. Reppy 1991).
 */
#ifndef VEZ_REQUEST_H
#define VEZ_REQUEST_H

#include "base.h"
#include "deadline.h"
#include "cancel.h"

VEZ_BEGIN_DECLS_

struct vez_completions;

struct vez_request {
	struct vez_request *next_;
	union {
		struct vez_request *before_;
		int32_t result_;
	} at_;
	void *enlisted_[2];
	struct vez__timer timer_;
	uint32_t word_;
	uint16_t state_;
	uint16_t how_;
	int64_t key_;
	union {
		void *ptr_;
		uint64_t sum_;
	} with_;
	uint64_t value_;
	struct vez_request **queue_;
	const struct vez__rules *rules_;
	vez_cancel_t *cancel_;
	union {
		void (*done_)(struct vez_request *r, int result, void *arg);
		struct vez_request *member_;
		struct vez__record *record_;
	} then_;
	void *arg_;
};

VEZ_ASSERT_SIZE_(vez_request_t, 128);

#define VEZ_REQUEST_INITIALIZER \
	{ 0, { 0 }, { 0, 0 }, { { 0, 0 }, 0 }, 0, 0, 0, 0, { 0 }, 0, 0, 0, 0, { 0 }, 0 }

/* Makes a request with key 0, no value and no limits, which calls done(r, result, arg) when it completes; done may be
 * NULL. A blocking wait that is given the request uses its key and value, and ignores done, arg and the limits. */
void vez_request_init(vez_request_t *r, void (*done)(vez_request_t *r, int result, void *arg), void *arg);

/* Makes one that writes one tick to the eventfd efd when it completes. A tick that cannot be written at once is
 * dropped: make the eventfd non-blocking. efd -1: no ticks. */
void vez_request_init_eventfd(vez_request_t *r, int efd);

/* Makes one that joins the list when it completes. */
void vez_request_init_completions(vez_request_t *r, struct vez_completions *l);

/* The request's place in a room: smallest key first, first come first served among equals. */
void vez_request_set_key(vez_request_t *r, int64_t key);

/* Two words for arguments and results. The X_async calls use them for their own arguments; otherwise vez never
 * reads them. */
void vez_request_set_value(vez_request_t *r, void *ptr, uint64_t word);
void *vez_request_ptr(const vez_request_t *r);
uint64_t vez_request_value(const vez_request_t *r);

/* For X_async: completes with ETIMEDOUT at the deadline, with ECANCELED when the token (which may be NULL) fires, if
 * nothing else has completed it before. Set before it is queued. */
void vez_request_set_limits(vez_request_t *r, vez_deadline_t deadline, vez_cancel_t *cancel);

/* 0: withdrawn; it has completed with ECANCELED, and its function has been run by this thread. Called from inside a
 * monitor or body, the function runs when that has been left; from inside a function, some time after that has
 * returned: until then the request is not to be freed. EALREADY: it was granted, or has ended or is ending otherwise,
 * or is not queued: wait for it before it is freed. Any thread, while the request is there; not from inside the monitor
 * in which it is queued. */
int vez_request_cancel(vez_request_t *r);

/* Waits until the request is complete: 0, and vez_request_result says how. If it calls a function, until that has
 * returned, even if it frees the request. ETIMEDOUT and ECANCELED are this wait's own: the request stays queued.
 * EINVAL: it was never queued. EDEADLK: called from inside its own function. Any number of threads. */
int vez_request_wait(vez_request_t *r, vez_deadline_t deadline, vez_cancel_t *cancel);

/* EINPROGRESS until it has completed (also before it is queued), then its result. */
int vez_request_result(const vez_request_t *r);

/* ---- a list of completions: what has completed, in order, for one consumer ---- */

typedef struct vez_completions {
	struct vez_request *first_;
	struct vez_request *last_;
	struct vez__core core_;
	struct vez_request *queue_;
	int32_t efd_;
	uint32_t ticking_;
} vez_completions_t;

VEZ_ASSERT_SIZE_(vez_completions_t, 48);

/* Makes an empty list. efd, unless it is -1, gets one tick whenever the list ceases to be empty. The list must be there
 * until the last of its requests has been taken out. */
void vez_completions_init(vez_completions_t *l, int efd);

/* Takes out the request that completed first; NULL: there is none. One consumer at a time. May wait for the moment that
 * another thread takes to write the tick. */
vez_request_t *vez_completions_next(vez_completions_t *l);

/* The consumer waits until there is one: 0, ETIMEDOUT or ECANCELED. */
int vez_completions_wait(vez_completions_t *l, vez_deadline_t deadline, vez_cancel_t *cancel);

/* ---- wait for any of several ---- */

typedef struct vez_select {
	uint64_t won_;
	struct vez_request *members_;
	struct vez__core core_;
	struct vez_request *queue_;
	uint32_t pending_;
	uint32_t filed_;
} vez_select_t;

VEZ_ASSERT_SIZE_(vez_select_t, 48);

/* Makes a select without members. */
void vez_select_init(vez_select_t *s);

/* Makes r a member of this select and returns it, to be passed to an X_async at once (vez_request_set_key and
 * vez_request_set_limits may come between). Of several that can be had the first passed wins; one that is passed when
 * the winner is known takes nothing (ECANCELED). What the X_async returns may be ignored: vez_select_wait knows. Any
 * number of members, on the same object too; they never meet each other. One thread makes a select, passes its members
 * and waits. r must stay where it is until vez_select_wait has returned. */
vez_request_t *vez_select_case(vez_select_t *s, vez_request_t *r);

/* Waits until one member is granted: 0; then all the others are withdrawn, and nothing was taken for them. A member
 * that ends otherwise (closed, its own deadline) ends the wait with its code; one that is cancelled does not. *winner
 * (winner may be NULL) is the member that ended the wait. ETIMEDOUT, ECANCELED: this wait's own limits; all members are
 * withdrawn, *winner is untouched. ECANCELED also if every member was cancelled; EINVAL: there is none.
 * Must be called once members were passed; with VEZ_NOW it withdraws them all, or tells who had won. When it returns,
 * every member is complete, with ECANCELED if it did not win. Not from inside a function of a request. */
int vez_select_wait(vez_select_t *s, vez_deadline_t deadline, vez_cancel_t *cancel, vez_request_t **winner);

VEZ_END_DECLS_

#include "monitor.h"

#endif
