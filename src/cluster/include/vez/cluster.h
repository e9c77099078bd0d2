/* SPDX-License-Identifier: MIT */
/*
 * vez/cluster.h - synchronizers between the processes of several machines, kept by Apache ZooKeeper
 *
 * In its own library, libvez-cluster (pkg-config vez-cluster). A session is a process's tie to the servers; objects are
 * opened in it by name: whoever opens the same kind and name, on any machine, has the same object. Each request that
 * waits has a node of its own at the servers and one watch; who gives something back tells exactly the one whose turn
 * it is.
 *
 * Every wait has a deadline and a token, and an asynchronous form on a vez_request_t (vez/request.h): a function, an
 * eventfd or a list tells; a request may be a member of a wait-for-any together with those of local objects. What a
 * request asks for is decided at the servers, so one whose deadline has passed when it begins is refused (ETIMEDOUT)
 * without a question to them.
 *
 * Loss: a session ends when the servers have not heard from its process for the session time. They then give to others
 * what it held. The library keeps a clock of its own, from the sending of the last request that was answered: nine
 * tenths of the session time later it says by itself that the session is lost, which is before the servers can do
 * so as long as the process runs and both clocks run at one rate. From then on nothing in the session works: every
 * wait ends with VEZ_ELOST, every hold's token fires; close the session and open another. A process that was stopped,
 * or slept with its machine, may learn of it too late: what is outside the servers is protected only by a fence.
 * Fence: each hold has a number that is larger than those of all holds of the same object before it (of a
 * readers-writers lock with VEZ_RW_HOARE: of those that excluded it). A resource that refuses what comes with a
 * smaller fence than the largest that it has seen is never damaged by a holder of the past.
 * A broken connection alone ends nothing: the session connects again by itself, and what was asked is asked again; it
 * is done once.
 *
 * Threads: each session has two of ZooKeeper's client and one that keeps its clock; all have all signals blocked. A
 * function that a request calls runs on one of them or on the thread that cancels. One that blocks delays all grants of
 * its session, and if it does so for nearly the session time, the session is lost. It must not close the session.
 * fork: a child has no part in the sessions of its parent: every call on them says EPERM. It may open its own.
 * Signal handlers: nothing here. Ordering: everything before a release happens before everything after an acquire that
 * it lets through, as far as both are in the same process.
 *
 * Names: 1 to 64 bytes of printable ASCII without '/' (EINVAL; ENAMETOOLONG), not "." or "..". Objects stay at the
 * servers, a node each, when nobody has them open.
 * Errors that any call may return: EPERM (a forked child), VEZ_ECLOSED (the session is closed), VEZ_ELOST, EACCES (the
 * node belongs to others), ENOENT (the object's node was removed while it was open), ENOMEM, EIO (a server's answer
 * that none of these is).
 * Sources: P. Hunt et al., ZooKeeper (2010); fences: M. Burrows, Chubby (2006); the one after me is told: C. Martins
 * (2009).
 */
#ifndef VEZ_CLUSTER_H
#define VEZ_CLUSTER_H

#include <vez/base.h>
#include <vez/cancel.h>
#include <vez/deadline.h>
#include <vez/request.h>
#include <vez/rwlock.h>

VEZ_BEGIN_DECLS_

/* The session is lost, and with it what was held or asked for. */
#define VEZ_ELOST ESTALE

/* ---- session ---- */

typedef struct vez_cluster vez_cluster_t;

/* All-zero bytes are the default of each, but of servers. */
typedef struct vez_cluster_options {
	const char *servers; /* "host:port,host:port": any of them will do; names are looked up anew now and then */
	const char *root;    /* the node below which the objects are, "/a/b"; default: "/vez" */
	const char *auth;    /* "user:password": others can then neither see nor change what this session makes */
	int64_t session_ms;  /* the session time that is asked for, at most INT_MAX; default: 10 s */
} vez_cluster_options_t;

/* Opens a session: waits until a server has answered. 0; EINVAL: an argument, or a server's name that cannot be
 * resolved; ENOENT: no such root; ETIMEDOUT, ECANCELED: nothing is left running. */
int vez_cluster_open(vez_cluster_t **c, const vez_cluster_options_t *options, vez_deadline_t deadline,
		     vez_cancel_t *cancel);

/* Makes the root and the nodes above it where they are not there, with the same options. 0 also if they are. */
int vez_cluster_make_root(const vez_cluster_options_t *options, vez_deadline_t deadline, vez_cancel_t *cancel);

/* Ends the session: every wait ends with VEZ_ECLOSED, every hold's token fires, and the servers give to others what was
 * held. Objects and holds stay valid to be closed and released. Takes a second and a half at the most if the servers do
 * not answer; they then learn of it when the session time is over. EDEADLK: called from a function or a hook that
 * the session itself has called. */
int vez_cluster_close(vez_cluster_t *c);

/* The token that fires when the session is lost or closed. Its hooks run on the thread that keeps the session's clock,
 * and delay nothing but the session's end. Valid until the session and all its objects are closed. */
vez_cancel_t *vez_cluster_lost(vez_cluster_t *c);

/* 0, VEZ_ELOST or VEZ_ECLOSED. Asks the clock, not the servers. */
int vez_cluster_check(vez_cluster_t *c);

/* The session time that the servers granted, in milliseconds; 0 in a child that was forked. */
int64_t vez_cluster_session_ms(const vez_cluster_t *c);

/* ---- holds: what an acquire gives ---- */

/* The caller's, from the acquire until the release; untouched once an acquire has failed. */
typedef struct vez_cluster_hold {
	void *claim_;
	uint64_t fence_;
} vez_cluster_hold_t;

VEZ_ASSERT_SIZE_(vez_cluster_hold_t, 16);

/* The number that is larger than those of all holds of this object before it. */
uint64_t vez_cluster_hold_fence(const vez_cluster_hold_t *h);

/* The token that fires when the hold is void: its session is lost or closed, or it has been released. */
vez_cancel_t *vez_cluster_hold_token(vez_cluster_hold_t *h);

/* 0 while it is held. VEZ_ELOST, VEZ_ECLOSED: as vez_cluster_check. Asks the clock. */
int vez_cluster_hold_check(const vez_cluster_hold_t *h);

/* Gives back what is held, does not wait, and is sent until a server has answered. The hold is the caller's again.
 * VEZ_ELOST, VEZ_ECLOSED: it was void already; EINVAL: nothing is held with h. Fires the hold's token: a wait that
 * names it is over before the release returns. */
int vez_cluster_release(vez_cluster_hold_t *h);

/* ---- mutex ---- */

typedef struct vez_cluster_mutex vez_cluster_mutex_t;

/* EPROTO: the servers have an object of this kind and name that was made with other parameters, or by others. */
int vez_cluster_mutex_open(vez_cluster_mutex_t **m, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			   vez_cancel_t *cancel);

/* EBUSY, and nothing has changed, while something is held or waited for through it. */
int vez_cluster_mutex_close(vez_cluster_mutex_t *m);

/* First come first served. 0, and h is held; ETIMEDOUT, ECANCELED: nothing is. Not recursive. */
int vez_cluster_mutex_lock(vez_cluster_mutex_t *m, vez_cluster_hold_t *h, vez_deadline_t deadline,
			   vez_cancel_t *cancel);

/* The same without waiting: EINPROGRESS, or an error. h must stay where it is, too, until r completes. */
int vez_cluster_mutex_lock_async(vez_cluster_mutex_t *m, vez_cluster_hold_t *h, vez_request_t *r);

/* ---- counting semaphore ---- */

#define VEZ_CLUSTER_SEM_MAX UINT32_C(0x3fffffff)

typedef struct vez_cluster_sem vez_cluster_sem_t;

/* A semaphore of this many permits. EINVAL: 0, or more than VEZ_CLUSTER_SEM_MAX. EPROTO: it exists with another number
 * of permits, or was made by others. */
int vez_cluster_sem_open(vez_cluster_sem_t **s, vez_cluster_t *c, const char *name, uint32_t permits,
			 vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_sem_close(vez_cluster_sem_t *s);

/* Takes n permits at once; the same hold gives them back. First come first served: a big request holds back those after
 * it. EINVAL: n is 0 or more than there are. */
int vez_cluster_sem_acquire(vez_cluster_sem_t *s, uint32_t n, vez_cluster_hold_t *h, vez_deadline_t deadline,
			    vez_cancel_t *cancel);
int vez_cluster_sem_acquire_async(vez_cluster_sem_t *s, uint32_t n, vez_cluster_hold_t *h, vez_request_t *r);

/* ---- readers and writers ---- */

typedef struct vez_cluster_rwlock vez_cluster_rwlock_t;

/* First come first served: readers that come one after another read together, up to VEZ_CLUSTER_SEM_MAX. EPROTO: it
 * exists with another policy, or was made by others. */
int vez_cluster_rwlock_open(vez_cluster_rwlock_t **l, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			    vez_cancel_t *cancel);

/* The same with a policy of vez/rwlock.h: VEZ_RW_FIFO is first come first served. VEZ_RW_HOARE: a writer that waits
 * holds back new readers; a writer that leaves admits every reader that is in line then, and no other, before the next
 * writer. One that dies, or gives up before it holds, admits nobody: those behind it go on in order. Each hold costs
 * one write more. EINVAL: another policy. */
int vez_cluster_rwlock_open_with(vez_cluster_rwlock_t **l, vez_cluster_t *c, const char *name, unsigned policy,
				 vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_rwlock_close(vez_cluster_rwlock_t *l);

int vez_cluster_rwlock_read(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_deadline_t deadline,
			    vez_cancel_t *cancel);
int vez_cluster_rwlock_read_async(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_request_t *r);
int vez_cluster_rwlock_write(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_deadline_t deadline,
			     vez_cancel_t *cancel);
int vez_cluster_rwlock_write_async(vez_cluster_rwlock_t *l, vez_cluster_hold_t *h, vez_request_t *r);

/* ---- event ---- */

typedef struct vez_cluster_event vez_cluster_event_t;

/* One that stays set until it is reset. A new one is not set. */
int vez_cluster_event_open(vez_cluster_event_t **e, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			   vez_cancel_t *cancel);

/* EBUSY, and nothing has changed, while somebody waits for it through this. */
int vez_cluster_event_close(vez_cluster_event_t *e);

/* Sets it: everybody who waits for it, on all machines, is let go, also if it is reset at once; one event for each
 * process tells. Waits for the server's answer: 0, and it is set (or was). ETIMEDOUT, ECANCELED, VEZ_ELOST: perhaps.
 * One whose connection breaks is asked again, so that a reset that comes in between may be undone. */
int vez_cluster_event_set(vez_cluster_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_event_reset(vez_cluster_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel);

/* Waits until it is set: 0, and it was so at some moment of the wait. */
int vez_cluster_event_wait(vez_cluster_event_t *e, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_event_wait_async(vez_cluster_event_t *e, vez_request_t *r);

/* ---- bytes ---- */

/* The most bytes of an argument, a result, or an item (EMSGSIZE); and of a monitor's state. */
#define VEZ_CLUSTER_BYTES_MAX 32768
#define VEZ_CLUSTER_STATE_MAX 131072

/* Where a call's result goes. The caller's; untouched until the call completes with 0, when size says how long it is;
 * ENOBUFS: there is room for less than size says. */
typedef struct vez_cluster_bytes {
	void *data;
	size_t size;
	size_t room;
} vez_cluster_bytes_t;

/* ---- delegated monitor ---- */

typedef struct vez_cluster_monitor vez_cluster_monitor_t;

/* What an operation has before it. */
typedef struct vez_cluster_step {
	void *state; /* the monitor's bytes: a body may change them, in room for VEZ_CLUSTER_STATE_MAX, */
	size_t state_size; /* and how many they are. A new monitor has none */
	const void *argument;
	size_t argument_size;
	void *result; /* room for VEZ_CLUSTER_BYTES_MAX */
	size_t result_size;
} vez_cluster_step_t;

/* guard, which may be NULL, says whether the operation can run in this state; if not, the call waits. body runs, and
 * returns 0, or an error that the caller gets: then the state is as it was. Both work on these bytes alone: whichever
 * process holds the monitor runs them on its session's thread, for the callers of all, and may do so again when the
 * servers have not taken what came of it. arg is that process's own. They must be short and call nothing of this
 * session that waits. */
typedef struct vez_cluster_operation {
	const char *name; /* as names of objects */
	bool (*guard)(const vez_cluster_step_t *step, void *arg);
	int (*body)(vez_cluster_step_t *step, void *arg);
} vez_cluster_operation_t;

/* A monitor with these operations, which, and arg, must stay where they are until the session is closed. EPROTO: it
 * exists with operations of other names or in another order. EINVAL: there are none, or a name is none. */
int vez_cluster_monitor_open(vez_cluster_monitor_t **m, vez_cluster_t *c, const char *name,
			     const vez_cluster_operation_t *operations, size_t count, void *arg,
			     vez_deadline_t deadline, vez_cancel_t *cancel);

/* EBUSY, and nothing has changed, while a call waits through it. */
int vez_cluster_monitor_close(vez_cluster_monitor_t *m);

/* Has an operation run, once, in one order with all calls of all members: first come first served, but for those whose
 * guard is false, which are asked again after each body. argument is copied; result may be NULL. What the body
 * returned; ENOSYS: there is no such operation; EMSGSIZE: the argument is too long, or state or result became so: the
 * state is as it was; ENOBUFS: it has run, and result has no room for what it gave; EAGAIN: 512 calls wait at guards
 * already. ETIMEDOUT, ECANCELED, VEZ_ELOST, VEZ_ECLOSED: it has not run, or what it gave is lost. */
int vez_cluster_monitor_call(vez_cluster_monitor_t *m, const char *operation, const void *argument, size_t size,
			     vez_cluster_bytes_t *result, vez_deadline_t deadline, vez_cancel_t *cancel);
/* result and its data must stay where they are, too, until r completes. */
int vez_cluster_monitor_call_async(vez_cluster_monitor_t *m, const char *operation, const void *argument, size_t size,
				   vez_cluster_bytes_t *result, vez_request_t *r);

/* A function that is put under a monitor while the program runs, and that only this process has; and when it may run.
 * To be handed around, and called like the function itself. guard may be NULL; both, and arg, must stay where they are
 * until the session is closed. */
typedef struct vez_cluster_guarded {
	vez_cluster_monitor_t *monitor;
	bool (*guard)(const vez_cluster_step_t *step, void *arg);
	int (*body)(vez_cluster_step_t *step, void *arg);
	void *arg;
} vez_cluster_guarded_t;

/* As vez_cluster_monitor_call, in the same order, but it runs in the process that calls it, on its session's thread:
 * the others do nothing until it has. So processes that share nothing but a monitor's name and operations can each put
 * functions of their own under it; one that others have is served sooner. While it waits for its guard, each change of
 * the state has this process look. EINVAL: body is NULL. */
int vez_cluster_guarded_call(vez_cluster_guarded_t f, const void *argument, size_t size, vez_cluster_bytes_t *result,
			     vez_deadline_t deadline, vez_cancel_t *cancel);
/* result and its data must stay where they are, too, until r completes. */
int vez_cluster_guarded_call_async(vez_cluster_guarded_t f, const void *argument, size_t size,
				   vez_cluster_bytes_t *result, vez_request_t *r);

/* ---- synchronizer: several monitors ---- */

#define VEZ_CLUSTER_RELATED_MAX 4

typedef struct vez_cluster_synchronizer vez_cluster_synchronizer_t;

/* What an operation on several monitors has before it. */
typedef struct vez_cluster_joint_step {
	/* Of each monitor, in the order in which they were named: its bytes, which a body may change, and how many they
	 * are; room is VEZ_CLUSTER_STATE_MAX. */
	vez_cluster_bytes_t states[VEZ_CLUSTER_RELATED_MAX];
	const void *argument;
	size_t argument_size;
	void *result; /* room for VEZ_CLUSTER_BYTES_MAX */
	size_t result_size;
} vez_cluster_joint_step_t;

/* As vez_cluster_operation_t, on all states: a body that returns an error has changed none. What they are shown may be
 * states that were never there together; nothing comes of that, but they have to bear it. */
typedef struct vez_cluster_joint_operation {
	const char *name; /* as names of objects */
	bool (*guard)(const vez_cluster_joint_step_t *step, void *arg);
	int (*body)(vez_cluster_joint_step_t *step, void *arg);
} vez_cluster_joint_operation_t;

/* Relates monitors of this session, which keep their own operations, and may be related by others, too. The operations,
 * and arg, must stay where they are until the session is closed; monitors may be closed before. EPROTO: it exists with
 * other monitors, or operations, or in another order. EINVAL: no monitors, more than VEZ_CLUSTER_RELATED_MAX, one of
 * another session, one twice; no operations, or a name is none. */
int vez_cluster_synchronizer_open(vez_cluster_synchronizer_t **s, vez_cluster_t *c, const char *name,
				  vez_cluster_monitor_t *const *monitors, size_t monitor_count,
				  const vez_cluster_joint_operation_t *operations, size_t count, void *arg,
				  vez_deadline_t deadline, vez_cancel_t *cancel);

/* EBUSY, and nothing has changed, while a call waits through it. */
int vez_cluster_synchronizer_close(vez_cluster_synchronizer_t *s);

/* Has an operation run, once, in one step that changes all the states or none: in one order with all calls of this
 * synchronizer, first come first served but for those whose guard is false, and in one order with the calls of each
 * monitor. Calls of the monitors that can go then go in the same step. While one waits for its guard, each change of a
 * state has its process look. Where the monitors change all the time, it is tried again until it meets a moment when
 * they do not, and may be overtaken. As vez_cluster_monitor_call otherwise: argument, result, errors. */
int vez_cluster_synchronizer_call(vez_cluster_synchronizer_t *s, const char *operation, const void *argument,
				  size_t size, vez_cluster_bytes_t *result, vez_deadline_t deadline,
				  vez_cancel_t *cancel);
/* result and its data must stay where they are, too, until r completes. */
int vez_cluster_synchronizer_call_async(vez_cluster_synchronizer_t *s, const char *operation, const void *argument,
					size_t size, vez_cluster_bytes_t *result, vez_request_t *r);

/* ---- bounded queue ---- */

#define VEZ_CLUSTER_QUEUE_MAX 65535

typedef struct vez_cluster_queue vez_cluster_queue_t;

/* A queue for this many items. EINVAL: 0, or more than VEZ_CLUSTER_QUEUE_MAX. EPROTO: it exists with another number. */
int vez_cluster_queue_open(vez_cluster_queue_t **q, vez_cluster_t *c, const char *name, uint32_t most,
			   vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_queue_close(vez_cluster_queue_t *q);

/* Appends a copy of an item; waits while the queue is full, of items or of bytes (about 96 kB of them fit). EMSGSIZE,
 * without a question to the servers: it is longer than VEZ_CLUSTER_BYTES_MAX. ETIMEDOUT, ECANCELED, VEZ_ELOST: it is
 * not in the queue, or was put there meanwhile. */
int vez_cluster_queue_put(vez_cluster_queue_t *q, const void *item, size_t size, vez_deadline_t deadline,
			  vez_cancel_t *cancel);
int vez_cluster_queue_put_async(vez_cluster_queue_t *q, const void *item, size_t size, vez_request_t *r);

/* Takes the first item out; waits while there is none. ETIMEDOUT, ECANCELED, ENOBUFS: none was taken, or it goes back
 * to the front of the queue. What a process has taken when it dies is lost with it. */
int vez_cluster_queue_take(vez_cluster_queue_t *q, vez_cluster_bytes_t *item, vez_deadline_t deadline,
			   vez_cancel_t *cancel);
int vez_cluster_queue_take_async(vez_cluster_queue_t *q, vez_cluster_bytes_t *item, vez_request_t *r);

/* ---- latch ---- */

typedef struct vez_cluster_latch vez_cluster_latch_t;

/* A latch that opens, for good, when count has been counted down. EINVAL: count is 0. EPROTO: it exists with another
 * count. */
int vez_cluster_latch_open(vez_cluster_latch_t **l, vez_cluster_t *c, const char *name, uint32_t count,
			   vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_latch_close(vez_cluster_latch_t *l);

/* Takes n off the count, once, whatever breaks; it stops at 0. Waits for the servers' answer. ETIMEDOUT, ECANCELED,
 * VEZ_ELOST: perhaps. */
int vez_cluster_latch_count_down(vez_cluster_latch_t *l, uint32_t n, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_latch_count_down_async(vez_cluster_latch_t *l, uint32_t n, vez_request_t *r);

/* Waits until the count is 0: one event for each process tells. */
int vez_cluster_latch_wait(vez_cluster_latch_t *l, vez_deadline_t deadline, vez_cancel_t *cancel);
int vez_cluster_latch_wait_async(vez_cluster_latch_t *l, vez_request_t *r);

/* ---- cyclic barrier ---- */

#define VEZ_CLUSTER_BARRIER_MAX 256

typedef struct vez_cluster_barrier vez_cluster_barrier_t;

/* A barrier of this many parties; who has it open is a member, and may be several parties. EINVAL: 0, or more than
 * VEZ_CLUSTER_BARRIER_MAX. EPROTO: it exists with another number. */
int vez_cluster_barrier_open(vez_cluster_barrier_t **b, vez_cluster_t *c, const char *name, uint32_t parties,
			     vez_deadline_t deadline, vez_cancel_t *cancel);

/* Leaves. EBUSY, and nothing has changed, while somebody waits through it. */
int vez_cluster_barrier_close(vez_cluster_barrier_t *b);

/* Waits until all parties have come. 0, and *index (unless index is NULL) tells the order in which they came, counted
 * down to 0: the last one. VEZ_EBROKEN: a party that waited gave up, by deadline, token or cancellation; or a member
 * has died or left, while others waited or since this one's process has it open. So it stays for all, until it is
 * reset. A party that gives up at the moment when the last one comes breaks nothing: the others go on. One whose
 * limits have been reached when it begins has not come. */
int vez_cluster_barrier_wait(vez_cluster_barrier_t *b, uint32_t *index, vez_deadline_t deadline,
			     vez_cancel_t *cancel);
/* index must stay where it is, too, until r completes. */
int vez_cluster_barrier_wait_async(vez_cluster_barrier_t *b, uint32_t *index, vez_request_t *r);

/* Makes it whole again: those who wait get VEZ_EBROKEN, and a new round begins. Waits for the servers' answer. */
int vez_cluster_barrier_reset(vez_cluster_barrier_t *b, vez_deadline_t deadline, vez_cancel_t *cancel);

/* ---- remote procedures ---- */

/* The process that served has died, or stopped to serve, or there is none: the call has not run, and will not. */
#define VEZ_ENOSERVER EHOSTDOWN
/* The process that served has died: the call may have run. */
#define VEZ_EDIED EOWNERDEAD

typedef struct vez_cluster_service vez_cluster_service_t;

/* What a function has before it. */
typedef struct vez_cluster_invocation {
	const void *argument;
	size_t argument_size;
	void *result; /* room for VEZ_CLUSTER_BYTES_MAX */
	size_t result_size;
} vez_cluster_invocation_t;

/* run returns 0, or an error that the caller gets instead of a result. */
typedef struct vez_cluster_function {
	const char *name; /* as names of objects */
	int (*run)(vez_cluster_invocation_t *i, void *arg);
} vez_cluster_function_t;

/* Serves these functions under this name, from here on, on the session's thread: one call after another, in the order
 * in which they came. The functions, and arg, must stay where they are until the session is closed. EBUSY: another
 * process serves that name, or has died so shortly ago that the servers do not know it. */
int vez_cluster_service_open(vez_cluster_service_t **s, vez_cluster_t *c, const char *name,
			     const vez_cluster_function_t *functions, size_t count, void *arg, vez_deadline_t deadline,
			     vez_cancel_t *cancel);

/* Serves no more: calls that have not begun end with VEZ_ENOSERVER. EBUSY, and nothing has changed, while a call is
 * served. */
int vez_cluster_service_close(vez_cluster_service_t *s);

typedef struct vez_cluster_remote vez_cluster_remote_t;

/* What is served under this name, now or later. */
int vez_cluster_remote_open(vez_cluster_remote_t **r, vez_cluster_t *c, const char *name, vez_deadline_t deadline,
			    vez_cancel_t *cancel);
int vez_cluster_remote_close(vez_cluster_remote_t *r);

/* Has a function run there, at most once, and waits for its result. argument is copied; result may be NULL. What the
 * function returned; VEZ_ENOSERVER, VEZ_EDIED; ENOSYS: there is no such function; EMSGSIZE: the argument is too long,
 * or the result: then it has run; ENOBUFS: it has run, and result has no room for what it gave. ETIMEDOUT, ECANCELED,
 * VEZ_ELOST, VEZ_ECLOSED: it may run, or have run. */
int vez_cluster_remote_call(vez_cluster_remote_t *r, const char *function, const void *argument, size_t size,
			    vez_cluster_bytes_t *result, vez_deadline_t deadline, vez_cancel_t *cancel);
/* result and its data must stay where they are, too, until q completes. */
int vez_cluster_remote_call_async(vez_cluster_remote_t *r, const char *function, const void *argument, size_t size,
				  vez_cluster_bytes_t *result, vez_request_t *q);

VEZ_END_DECLS_

#endif
