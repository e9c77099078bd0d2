/* SPDX-License-Identifier: MIT */
/*
 * vez.h - all of vez: synchronizers that wake exactly the right thread
 *
 * What is below holds for all headers of vez/; each of them says per call what it does.
 *
 * Words:
 *
 *	request       One pending operation: what is wanted, the result, and a word on which its thread sleeps
 *	              (vez/request.h). A blocking call has its own, on the stack; an X_async call is given the caller's.
 *	queued        A request is queued from the moment when it must wait until it is settled. The X_waiters calls
 *	              count those.
 *	key           A request's place in its queue: smallest first, first come first served among equals. It is 0
 *	              where none is set.
 *	settle        To decide a request's result and take it out of its queue, once and for all: its call will return
 *	              that result.
 *	grant         To settle a request with what it asked for: 0. The thread that makes that possible (by a release,
 *	              an unlock, a set) carries the operation out for the one that waits, and then wakes it.
 *	complete      An asynchronous request is complete when its owner has been told the result: by a function, a tick
 *	              or a list.
 *	inside        Between entering an object and leaving it, for a user's monitor, a scheduler and a group.
 *	              Elsewhere "another call is inside" means the moment for which a call has the object's own short
 *	              lock.
 *	room          A queue of a user's monitor (vez/monitor.h).
 *	deadline      The moment at which a wait ends by itself, with ETIMEDOUT (vez/deadline.h).
 *	token         What calls waits off: firing it ends all waits that name it, with ECANCELED (vez/cancel.h).
 *	limits        A request's deadline and token. A wait that they end has given up.
 *	guard         A function of the program's that says whether a wait is over, or a call may run. The thread that
 *	              has changed the state calls it, so nobody is woken while it is false.
 *	fair          First come (or smallest key) first served: a newcomer takes nothing for which somebody waits, not
 *	              even by a try call. So is every object whose header says nothing else.
 *	barging       A running thread takes what is free although others wait for it: the default mutex, and semaphores
 *	              with VEZ_BARGING, which are faster for it. Once the longest waiter has been passed over for about
 *	              1 ms, it is served first.
 *	handed over   What becomes free goes straight to one that waits: nobody can come between.
 *	wait-for-any  A set of asynchronous requests of which one is granted, while the others take nothing
 *	              (vez_select_t).
 *	try call      Makes one attempt, as a wait does whose deadline has passed: 0; or EBUSY, and nothing has changed;
 *	              or an error that the wait has, too. It does not wait for its turn, but may for the moment that
 *	              another call needs to leave the object. A lock that the caller itself has is EBUSY, not EDEADLK.
 *
 * Static initializers:
 *
 *	VEZ_MUTEX_INITIALIZER             a free default mutex
 *	VEZ_SEM_INITIALIZER(permits)      a fair semaphore with these permits and the largest maximum
 *	VEZ_COND_INITIALIZER              a condition on which nobody waits
 *	VEZ_RWLOCK_INITIALIZER            a free readers-writers lock with VEZ_RW_HOARE
 *	VEZ_LATCH_INITIALIZER(count)      a latch with this count; with 0, an open one
 *	VEZ_EVENT_INITIALIZER             a manual-reset event that is not set
 *	VEZ_ONCE_INITIALIZER              a once whose function has not run
 *	VEZ_GROUP_INITIALIZER             a group object that nobody is inside
 *	VEZ_SCHED_INITIALIZER             a scheduler, first come first served, without a gap
 *	VEZ_MONITOR_INITIALIZER(gave_up)  a monitor with this give-up rule, or NULL
 *	VEZ_ROOM_INITIALIZER              an empty room
 *	VEZ_CANCEL_INITIALIZER            a token that is not fired
 *	VEZ_REQUEST_INITIALIZER           a request with key 0, no value and no limits, which tells nobody
 *
 * All-zero bytes are the same as any of these, with 0 or NULL for its argument. Barriers, queues, objects,
 * synchronizers, lists of completions and selects are made by their init calls only.
 *
 * The library's own thread:
 *
 * vez makes one thread, when a call first needs it. Blocking calls keep their own deadlines, without it. What needs it,
 * and what happens where it cannot be made:
 *
 *	an X_async call        of a request with a deadline: EAGAIN, and nothing is queued. (vez_monitor_wait_async has
 *	                       left the monitor meanwhile.)
 *	vez_cancel_fire_at     with a moment to come: EAGAIN, and nothing has changed.
 *	vez_cancel_on_signal   with a token: EAGAIN, and nothing has changed.
 *	functions of requests  A call runs 64 of them and leaves the rest to the thread. Without it, the call runs them
 *	                       all.
 *	delegated bodies       A thread runs 64 of others' and leaves the rest to a caller that waits, or to the
 *	                       library's thread. Without that it goes on.
 *
 * vez/request.h says what else is to be known of it: its signals, its end, and what functions that it runs must not do.
 *
 * What the results mean:
 *
 *	0            Done, or granted; also where a deadline or a token came at the same moment.
 *	EINPROGRESS  From an X_async call: the request is queued, and will complete. From vez_request_result: it has not
 *	             completed.
 *	ETIMEDOUT    The deadline has passed, and nothing was taken. (vez_mutex_await and the waits of a condition
 *	             return with the mutex all the same; a barrier is broken.)
 *	ECANCELED    The token has fired, and nothing was taken; the same exceptions. For a request also: it was
 *	             cancelled, another one won its wait-for-any, or the thread has ended whose own token it named.
 *	EBUSY        From a try call: it would have to wait. From a destroy call: somebody waits, or holds or uses the
 *	             object.
 *	VEZ_ECLOSED  The semaphore is closed; or the queue is, and, for a take, it is empty.
 *	VEZ_EBROKEN  The barrier is broken: a party gave up, an action failed, or a reset ended the round.
 *	EALREADY     From vez_request_cancel: the request is decided, or was never queued. From the calls that attach
 *	             and detach hooks: the token has fired, and the function was called, or the hook is not attached.
 *	EDEADLK      The caller would wait for itself: it has the mutex (VEZ_ERRORCHECK) or is in the scheduler; it
 *	             calls a monitor that it is inside, an object from inside an operation, a barrier from its action, a
 *	             once from its function; or it waits for a request in whose function it is.
 *	EPERM        The caller gives back, or asks to change, what is not held; or, where the owner is known
 *	             (schedulers, mutexes with VEZ_RECURSIVE or VEZ_ERRORCHECK), what is not its own.
 *	EOVERFLOW    A count would pass its limit: permits, read holds, members of a group, holds of a recursive mutex.
 *	EINVAL       An argument is not valid: flags, sizes, no function, more permits than the maximum, a condition
 *	             that is in use with another mutex, a rule that is not there, or is there already, a signal that
 *	             cannot be handled, a request that was never queued, a select without members.
 *	EAGAIN       The library's own thread could not be made; or a moment, or a signal, was set for the own token of
 *	             a thread that is ending.
 *	ENOMEM       From vez_inspect_name: there is no memory.
 *
 * vez_once and vez_barrier_wait also return what the program's function did, vez_monitor_wait and vez_request_result
 * what the program settled the request with, and vez_select_wait the result of the member that ended it. vez_strerror
 * says in words what a code means.
 */
#ifndef VEZ_H
#define VEZ_H

#include "vez/barrier.h"
#include "vez/call.h"
#include "vez/cancel.h"
#include "vez/cond.h"
#include "vez/constraint.h"
#include "vez/deadline.h"
#include "vez/error.h"
#include "vez/event.h"
#include "vez/group.h"
#include "vez/inspect.h"
#include "vez/latch.h"
#include "vez/monitor.h"
#include "vez/mutex.h"
#include "vez/once.h"
#include "vez/queue.h"
#include "vez/request.h"
#include "vez/rwlock.h"
#include "vez/sched.h"
#include "vez/sem.h"
#include "vez/sleep.h"

#endif
