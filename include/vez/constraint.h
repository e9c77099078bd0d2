/* SPDX-License-Identifier: MIT */
/*
 * vez/constraint.h - objects whose operations wait until they may run: constraints, triggers, synchronizers
 *
 * An object is a user's state with operations on it, which run one at a time. What an operation has to wait for is
 * written neither into it nor into its callers: a constraint is put on it from outside, and taken off, while the
 * program runs. A call runs when every constraint on its operation is true; while it waits, calls of other operations
 * on the object go on, and so do later calls of the same one that may run. A trigger is a function that runs with an
 * operation, after it, as one step. A synchronizer relates several objects: its constraints and triggers, put on
 * operations of any of them, may look at all of them, and triggers may change them; an operation with its constraints
 * and triggers is atomic over all objects that are related to its own. So what changes several objects is one
 * operation, on any of them, whose body changes all.
 *
 *	static const vez_operation_t withdraw = { "withdraw", withdraw_body };
 *
 *	vez_constraint_add(&account, &withdraw, is_covered, &balance, &rule);    withdrawals wait until they are covered
 *	vez_object_call(&account, &withdraw, &amount);
 *
 * A call takes one lock if its object is alone, and two if it is related to others: that of its object, then the one
 * that all related objects share. So no order in which threads use objects can deadlock them. Who has run an operation
 * then runs those that wait, on its object or a related one, and may run now, on their callers' behalf, the longest
 * waiting first, until none is left; then it leaves the objects, their calls return or complete in that order, and so
 * does its own.
 * Evaluating is linear in the calls that wait on related objects. With VEZ_SERIAL calls of an object are taken strictly
 * in order: one that must wait holds back all that come later.
 *
 * Bodies, guards and triggers run on any thread that calls an operation of a related object, or that takes rules off.
 * They must be short, must not sleep, nor depend on thread-local state, nor leave by longjmp; an exception that
 * leaves one, and pthread_exit in one, end the program. Bodies and triggers may use other vez objects without waiting,
 * fire tokens (whose hooks run at once, inside) and cancel requests; requests that this ends complete when the objects
 * have been left. From inside any of them, every call below that uses an object is EDEADLK; they change the states of
 * related objects directly. A guard changes nothing, is called often, and looks at nothing but the states of related
 * objects and what its arguments say once and for all.
 *
 * Ordering: everything before a call happens before its body; what runs on related objects happens one after another;
 * and the body, with its triggers, happens before everything after the call's return or completion.
 * Errors on entry, in this order: EINVAL (no operation, or what the call says), EDEADLK (from inside a body, guard or
 * trigger), ECANCELED (the token is fired), then the object (also if the deadline has passed), then ETIMEDOUT.
 * Destroy: a thread whose call has returned may destroy the object and free it, if no other thread will call it again
 * and none is queued there, though the call that ran its operation for it has not returned (with VEZ_SERIAL, those that
 * gave up must have). Signal handlers: vez_object_waiters only. fork: in the child, objects that other threads were
 * using at that moment, or on which calls were queued, are to be initialized anew; and if another thread was making or
 * destroying a synchronizer, all objects that were related to one of its own. So are the synchronizers over an object
 * that is initialized anew: they are not to be destroyed. Waits are no pthread cancellation points.
 * Sources: S. Frolund, G. Agha, "A Language Framework for Multi-Object Coordination" (1993); constraints between
 * monitors: C. Martins (2009); conditional critical regions (Hoare 1972; Brinch Hansen 1972).
 */
#ifndef VEZ_CONSTRAINT_H
#define VEZ_CONSTRAINT_H

#include "monitor.h"

VEZ_BEGIN_DECLS_

/* What can be done with objects: self is the object's state, arg the call's argument. Give it static storage: an
 * operation is known by its address; the name is for people. */
typedef struct vez_operation {
	const char *name;
	void (*body)(void *self, void *arg);
} vez_operation_t;

struct vez__rule;
struct vez_synchronizer;

/* ---- objects ---- */

/* Calls of the object are taken strictly in order. */
#define VEZ_SERIAL 16u

typedef struct vez_object {
	uint64_t lock_;
	void *self_;
	struct vez_synchronizer *domain_;
	struct vez__rule *constraints_;
	struct vez__rule *triggers_;
	struct vez_synchronizer *parent_;
	struct vez_synchronizer *children_;
	struct vez_object *found_;
	struct vez_object *entered_;
	struct vez_object *next_awaited_;
	uint32_t flags_;
	uint32_t related_;
	uint32_t ties_;
	uint32_t awaited_;
	struct vez__core core_;
	vez_request_t *queue_;
} vez_object_t;

VEZ_ASSERT_SIZE_(vez_object_t, 120);

/* Makes an object without rules, whose operations get this state. flags: 0 or VEZ_SERIAL; EINVAL: others. */
int vez_object_init(vez_object_t *o, void *self, unsigned flags);

/* EBUSY, and nothing has changed, while a call is queued or a synchronizer relates it. Its rules are gone with it. */
int vez_object_destroy(vez_object_t *o);

/* Has the operation run with this argument, when its constraints are true: 0 when it has, with its triggers. */
int vez_object_call(vez_object_t *o, const vez_operation_t *op, void *arg);

/* The same if that is possible without waiting for a constraint: 0; else EBUSY, and nothing has changed. EINVAL and
 * EDEADLK as vez_object_call. Waits while another operation of a related object runs. */
int vez_object_try_call(vez_object_t *o, const vez_operation_t *op, void *arg);

/* Also ends with ETIMEDOUT at the deadline, or with ECANCELED when the token (which may be NULL) fires: then it has not
 * run, and will not. */
int vez_object_call_until(vez_object_t *o, const vez_operation_t *op, void *arg, vez_deadline_t deadline,
			  vez_cancel_t *cancel);

/* The same without waiting for constraints, by the request's limits (vez/request.h): 0, EINPROGRESS, or an error. Waits
 * while another operation of a related object runs. vez uses the request's key and value. EINVAL also for an object
 * with VEZ_SERIAL. */
int vez_object_call_async(vez_object_t *o, const vez_operation_t *op, void *arg, vez_request_t *r);

/* How many calls are queued. Any thread, any time, signal handlers included. */
size_t vez_object_waiters(const vez_object_t *o);

/* ---- rules of one object ---- */

/* A rule is there from the return of add until remove or the destruction of what it was added to; from then on its
 * function is not called, and it and its argument are the caller's again. Until then its place must stay, and it must
 * not be added again. An operation's constraints are asked, and its triggers run, in the order in which they were
 * added. */
struct vez__rule {
	struct vez__rule *next_;
	vez_object_t *object_;
	const vez_operation_t *operation_;
	struct vez_synchronizer *of_;
	void *arg_;
	union {
		bool (*guard_)(void *arg, void *call);
		void (*fn_)(void *arg, void *call);
	} is_;
};

typedef struct vez_constraint {
	struct vez__rule rule_;
} vez_constraint_t;

typedef struct vez_trigger {
	struct vez__rule rule_;
} vez_trigger_t;

/* From now on calls of this operation (NULL: of any) on this object, also those that wait already, run only while
 * guard(arg, call) is true; call is the argument of the call in question. EINVAL: no guard, or c is on this object
 * already, and stays as it is. */
int vez_constraint_add(vez_object_t *o, const vez_operation_t *op, bool (*guard)(void *arg, void *call), void *arg,
		       vez_constraint_t *c);

/* Takes it off; calls that can run now have run when this returns. EINVAL: it is not there any more, or its add
 * failed. */
int vez_constraint_remove(vez_constraint_t *c);

/* From now on fn(arg, call) runs after each run of this operation (NULL: of any) on this object, as a part of it.
 * EINVAL: no fn, or t is on this object already, and stays as it is. */
int vez_trigger_add(vez_object_t *o, const vez_operation_t *op, void (*fn)(void *arg, void *call), void *arg,
		    vez_trigger_t *t);

/* EINVAL: it is not there. */
int vez_trigger_remove(vez_trigger_t *t);

/* ---- several objects ---- */

typedef struct vez_synchronizer {
	uint64_t lock_;
	vez_object_t *const *objects_;
	size_t count_;
	vez_object_t *parent_;
	struct vez_synchronizer *next_;
	struct vez_synchronizer **link_;
	struct vez_synchronizer *found_;
	size_t size_;
	vez_object_t *awaited_;
	void *unused_; /* so that the size stays */
} vez_synchronizer_t;

VEZ_ASSERT_SIZE_(vez_synchronizer_t, 80);

/* Relates these objects: from now on what runs on one excludes what runs on another, and so for objects that other
 * synchronizers relate to one of them. They may be in use, with calls that wait, and one may be named twice. The array
 * must stay there as long as the synchronizer. Waits for the operations that run on objects that are related then,
 * and for other threads that make or destroy a synchronizer. What it costs is linear in its objects and in all that
 * were related to one of them, but for the largest group of those. EINVAL: no objects. */
int vez_synchronizer_init(vez_synchronizer_t *s, vez_object_t *const *objects, size_t count);

/* Takes off all its rules, as one step, and relates its objects no more; they may be in use, and calls that can run now
 * have run when this returns. From then on nobody touches it. 0. Waits as vez_synchronizer_init does. Each part that
 * falls off costs as much as it has objects, synchronizers and names, and as there are objects on which calls wait; a
 * part that only synchronizers elsewhere hold together with the rest, as much as the group. */
int vez_synchronizer_destroy(vez_synchronizer_t *s);

/* As vez_constraint_add and vez_trigger_add, for an object of the synchronizer, whose guard or fn may use all of its
 * objects. EINVAL also if it is none of them. They are removed by the same calls as an object's own. */
int vez_synchronizer_constraint_add(vez_synchronizer_t *s, vez_object_t *o, const vez_operation_t *op,
				    bool (*guard)(void *arg, void *call), void *arg, vez_constraint_t *c);
int vez_synchronizer_trigger_add(vez_synchronizer_t *s, vez_object_t *o, const vez_operation_t *op,
				 void (*fn)(void *arg, void *call), void *arg, vez_trigger_t *t);

VEZ_END_DECLS_

#endif
