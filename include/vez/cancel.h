/* SPDX-License-Identifier: MIT */
/*
 * vez/cancel.h - cancellation tokens: how a wait is called off
 *
 * A token is what thread interruption is elsewhere: a flag that ends waits. Any number of waits and asynchronous
 * requests (vez/request.h), on any number of objects, may name the same token; firing it ends them all with ECANCELED.
 * A token is sticky: no wait consumes it, so that callers further up see it too, and it stays fired
 * until vez_cancel_clear.
 *
 * The thread that fires ends the waits itself: it takes each request out of its room, lets those go who were held back
 * by it, and wakes its thread with the answer. When vez_cancel_fire returns, every request that was queued with the
 * token when it fired is decided, even if the token is cleared before any of their threads has run. A request that was
 * granted first stays granted, and its wait returns 0.
 *
 * Ordering: everything before the firing happens before the return of a wait that it ended, and before everything after
 * a vez_cancel_fired that says true.
 * A token can have children, which fire with it, and hooks: functions that a firing calls. A fire first ends every
 * wait, of the token and of its descendants, and then runs their hooks on the firing thread, the oldest of each token
 * first, with no vez lock held; a hook that fires another token runs that one's hooks before it returns, on the
 * same stack.
 * One fire runs at most 64 functions of requests that it ends, or lets go so; the library's thread runs the rest
 * (vez/request.h). Hooks are not counted: a fire runs all of its token.
 * A token can also fire by itself, at a moment (vez_cancel_fire_at) or when a signal comes
 * (vez_cancel_on_signal): the library's own thread fires it then.
 * How a thread or an event loop waits for a token, what to do where there are two reasons to stop, and how a signal is
 * seen twice: vez/sleep.h.
 * Lifetime: a token must outlive every wait and every request that names it. It may be destroyed as soon as those have
 * returned or completed, though a fire that ended them has not.
 * Signal handlers: vez_cancel_fired only. Not inside a monitor: the firing thread enters the monitors of the requests
 * that it ends, and would wait for itself. Leave first.
 * fork: the child's tokens say what they said at the fork; waits of other threads do not exist in the child. A token
 * that another thread was firing, or waiting with, at that moment is to be initialized anew. Do not call fork in a
 * signal handler that may have interrupted a call which fires a token: it may wait for ever for the thread that it has
 * interrupted.
 */
#ifndef VEZ_CANCEL_H
#define VEZ_CANCEL_H

#include "base.h"
#include "deadline.h"

VEZ_BEGIN_DECLS_

typedef struct vez_cancel {
	uint64_t lock_;
	uintptr_t arrivals_;
	void *enlisted_;
	void *hooks_;
	void *children_;
	void *sibling_[2];
	struct vez_cancel *parent_;
	struct vez__timer timer_;
	uint32_t busy_;
	uint32_t signals_;
} vez_cancel_t;

/* A function that a firing calls. Its memory is the caller's, and vez's from vez_cancel_attach until it begins to run
 * or is detached. */
typedef struct vez_cancel_hook {
	void *link_[2];
	void (*fn_)(void *arg);
	void *arg_;
	vez_cancel_t *token_;
} vez_cancel_hook_t;

VEZ_ASSERT_SIZE_(vez_cancel_hook_t, 40);

VEZ_ASSERT_SIZE_(vez_cancel_t, 96);

/* A token that is not fired. All-zero bytes are one, too. */
#define VEZ_CANCEL_INITIALIZER { 0, 0, 0, 0, 0, { 0, 0 }, 0, { { 0, 0 }, 0 }, 0, 0 }

/* Makes a token that is not fired. */
void vez_cancel_init(vez_cancel_t *c);

/* Makes a token that fires with its parent, and may fire alone. If the parent is fired, it is fired, too. 0. */
int vez_cancel_init_child(vez_cancel_t *child, vez_cancel_t *parent);

/* EBUSY, and nothing has changed, while a wait or a request names it, or it has hooks, or one of them runs. Its
 * children become its parent's; a moment and signals that were to fire it will not. */
int vez_cancel_destroy(vez_cancel_t *c);

/* Fires the token and all its descendants: ends every wait that names one of them. A descendant that was cleared fires
 * again, even below a token that is still fired. Firing a token that is itself fired does nothing, and does not wait
 * for the fire that is under way. Any thread may fire. */
void vez_cancel_fire(vez_cancel_t *c);

/* Whether it is fired. Any thread, signal handlers included. */
bool vez_cancel_fired(const vez_cancel_t *c);

/* Re-arms this token alone; says whether it was fired. Waits that the firing ended stay ended. */
bool vez_cancel_clear(vez_cancel_t *c);

/* The calling thread's own token: its interrupt status. Valid until the thread exits; other threads fire it. When the
 * thread exits, requests that still name it are ended with ECANCELED (those that wait for it, with 0), and a moment and
 * signals that were to fire it will not. A thread that attaches hooks to it detaches them, with the waiting form,
 * before that. Destructors of thread-specific data may use it, too; in the last round of these, when nothing of vez
 * runs after them, what would outlive the thread is refused: a moment and a signal with EAGAIN, requests with
 * ECANCELED. What is set in one round may be withdrawn before the next. */
vez_cancel_t *vez_cancel_self(void);

/* Has every fire call fn(arg), once: then the hook is no longer attached. 0; or EALREADY: the token is fired, and
 * fn(arg) has been called by this call. Once it began, vez does not touch the hook again, so that fn may free it or
 * attach it anew. Where fn attaches it as it was, and the token is still fired, that would have no end: EALREADY, and
 * nothing is called or attached; a fn that is to be called again clears the token first. */
int vez_cancel_attach(vez_cancel_t *c, vez_cancel_hook_t *h, void (*fn)(void *arg), void *arg);

/* Detaches the hook. 0: it has not run and never will. EALREADY: it ran, and has returned: if it is running, this waits
 * until it has; but called from inside the hook itself, it returns at once. Two hooks that detach each other with this
 * wait for ever, and so does who holds a lock that the hook needs: use the next one there. */
int vez_cancel_detach(vez_cancel_t *c, vez_cancel_hook_t *h);

/* The same without waiting: 0, it has not run and never will; else EALREADY, and nothing has changed: it has run, or is
 * running, or is not attached to this token. */
int vez_cancel_try_detach(vez_cancel_t *c, vez_cancel_hook_t *h);

/* Has this signal fire the token, outside the handler: SIGTERM and SIGINT ask for orderly shutdown so. Replaces the
 * signal's handler, with SA_RESTART, also where others have replaced it since an earlier call; the library's own thread
 * fires, soon after the signal. One token for each signal: another one takes its place, and NULL brings back the
 * handler that was replaced last; a signal that came before that has fired the token that it had. Destroying the token
 * brings the handler back, too. Neither does if somebody else has installed another handler meanwhile: that one stays.
 * When a thread ends whose own token it is, the signal does nothing any more until the next call. 0; EINVAL: not a
 * signal, or not one that can be handled, or one of a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), which
 * would come again and again; EAGAIN: the thread could not be made. In a forked child the handler is the one from
 * before. */
int vez_cancel_on_signal(vez_cancel_t *c, int signo);

/* Has the token fire by itself at this moment (on the library's own thread); in place of the moment set before, if any.
 * VEZ_FOREVER: not any more. A moment that has passed has fired the token when this returns. A fire or a clear before
 * then takes nothing back. In a forked child the moment is forgotten. 0; EAGAIN: the thread could not be made, and
 * nothing has changed. */
int vez_cancel_fire_at(vez_cancel_t *c, vez_deadline_t deadline);

VEZ_END_DECLS_

#endif
