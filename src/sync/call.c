/* SPDX-License-Identifier: MIT */
/*
 * Delegated and guarded execution.
 *
 * State, of a user's monitor
 *  core_.word_
 *             bits 0-1   the lock  futex/lock.h
 *             bits 2-63  arrivals  a stack of calls that came while somebody was inside (next_): the address of the
 *                                  latest. Pushed by anybody, taken whole by the one inside
 *  calls_     the other calls that wait, in the order in which they arrived; inside. A request's pointer is its body,
 *             its value the argument, its key the guard
 *  owner_     the number of the thread whose own code, or whose body, is inside. Written by that thread
 *  ran_       how many bodies were run in this batch; 0 again when somebody enters, comes to run the rest, or nobody
 *             was found to leave it to; inside
 *  asked_     the ticket (engine/rest.c) by which the library's thread is to enter and run the rest; 0: it is not.
 *             Inside
 *  of a caller that sleeps, in its request's state_: SPENT, it has run a batch, and is asked to run none; TIRELESS, it
 *             is the library's thread, and is asked again, as nobody else may be there who could; ATTEMPT, it ends when
 *             it is looked at, whatever its guard says
 * Invariants
 *  D1 a call is among the arrivals or in calls_ until it has run or given up. A push leaves somebody inside: the
 *     thread that was, or the pusher. The leaver expects a word without arrivals. So while nobody is inside, there are
 *     none.
 *  D2 while nobody is inside, no call in calls_ has a guard that is true, but where one of the callers was asked to
 *     enter and run the rest (hand_over), or the library's thread was (asked_). The leaver made it so.
 *  D3 a call's limits apply from the moment when it is gathered. So, and by D1, whoever enters because of one finds it
 *     in calls_.
 *  D4 a body runs once: for a request that is in calls_, and is settled in the same stay.
 *  D5 while asked_, the core expects the library's thread (core.c C3), unless whoever destroys the monitor takes that
 *     back.
 * Ordering
 *  push (release) pairs with vez__calls_gather (acquire): the call and what came before it. Bodies are inside the
 *  monitor: its lock orders them. Publication (word.c): what the body did, for the caller.
 * Progress and fairness
 *  Arriving is lock-free and waits for nobody. A thread runs at most vez__call_batch bodies in a stay. The rest is run
 *  by one of the callers that could go on and is asleep or spins, if there is one that has run no batch yet: it is
 *  asked to enter; else by the library's thread, which does so between other things. This is looked for once in a
 *  batch. Where there is no such thread, the next batch begins. FIFO among those whose guards are true. Evaluating is
 *  linear in the calls whose guards are false.
 * Lifetime: as in engine/core.c. The push is one exchange, and the pusher's last touch of the monitor unless it entered
 * by it: from then on its call may have run, and the monitor be gone. Source of the stack: futex/stack.h.
 * Sources: include/vez/call.h.
 */
#include "call.h"

#include "../engine/rest.h"
#include "../futex/foreign.h"
#include "../futex/self.h"
#include "../futex/spin.h"
#include "vez/call.h"

#define LOCK_BITS (VEZ__LOCKED | VEZ__CONTENDED)

unsigned vez__call_batch = 64;

static bool is_inside(const vez_monitor_t *m)
{
	return vez__load(&m->owner_, relaxed) == vez__self();
}

/* ---- a call ---- */

typedef void body_fn(void *arg);
typedef bool guard_fn(void *arg);

static void set_call(vez_request_t *r, guard_fn *guard, body_fn *body, void *arg)
{
	r->key_ = (int64_t)(intptr_t)guard;
	r->with_.ptr_ = (void *)(uintptr_t)body;
	r->value_ = (uintptr_t)arg;
}

static inline bool is_open(guard_fn *guard, void *arg)
{
	bool open = true;
	if (guard)
		VEZ__FOREIGN(open = guard(arg));
	return open;
}

static bool may_run(const vez_request_t *r)
{
	return is_open((guard_fn *)(uintptr_t)(intptr_t)r->key_, (void *)(uintptr_t)r->value_);
}

/* Whether there is something to be done for it now. */
static bool is_ready(const vez_request_t *r)
{
	return (r->state_ & VEZ__ATTEMPT) || may_run(r);
}

static void run(const vez_request_t *r)
{
	VEZ__FOREIGN(((body_fn *)(uintptr_t)r->with_.ptr_)((void *)(uintptr_t)r->value_));
}

/* ---- inside ---- */

static bool have_arrived(uint64_t word)
{
	return word & ~LOCK_BITS;
}

static vez_request_t *latest_of(uint64_t word)
{
	return (vez_request_t *)(uintptr_t)(word & ~LOCK_BITS);
}

void vez__calls_gather(struct vez__stay *in)
{
	uint64_t *word = &in->core->word_;
	vez_request_t *oldest = NULL;
	if (!have_arrived(vez__load(word, relaxed)))
		return;
	vez_request_t *latest = latest_of(vez__fetch_and(word, LOCK_BITS, acquire));
	while (latest) {
		vez_request_t *older = latest->next_;
		latest->next_ = oldest;
		oldest = latest;
		latest = older;
	}
	while (oldest) {
		vez_request_t *younger = oldest->next_;
		vez__gather(in, oldest);
		oldest = younger;
	}
}

/* The first call that may run. */
static vez_request_t *first_ready(const vez_monitor_t *m)
{
	vez_request_t *r = m->calls_;
	while (r && !is_ready(r))
		r = vez__queue_next(m->calls_, r);
	return r;
}

/* Whether this one may be asked to run the rest. */
static bool can_go_on(const vez_request_t *r)
{
	bool spent = (r->state_ & (VEZ__SPENT | VEZ__TIRELESS)) == VEZ__SPENT;
	return !vez__is_async(r) && !spent && is_ready(r);
}

/* Has a caller enter to run the rest: the first that could go on, unless one was asked in this stay. False:
 * nobody can. */
static bool hand_over(struct vez__stay *in)
{
	vez_monitor_t *m = vez__monitor_of(in);
	vez_request_t *r = m->calls_;
	while (r && !can_go_on(r))
		r = vez__queue_next(m->calls_, r);
	if (r && !m->pending_.wake_ && vez__ask_to_retry(in, r)) /* else it is entering anyway */
		r->state_ |= VEZ__SPENT;
	return r;
}

/* As a thread that was asked to run the rest, when the library's thread gets to it. */
static void enter_for_rest(void *monitor)
{
	struct vez__stay in;
	vez_monitor_t *m = monitor;
	vez__hold();
	vez__lock_enter(&m->core_.word_);
	vez__monitor_stay(&in, m);
	m->asked_ = 0;
	m->ran_ = 0;
	vez__came(&in);
	vez__leave(&in, &vez__call_rules);
	vez__let_go();
}

void vez__calls_ask_nobody(struct vez__stay *in)
{
	vez_monitor_t *m = vez__monitor_of(in);
	if (m->asked_ && vez__rest_withdraw(m->asked_, m)) {
		m->asked_ = 0;
		vez__came(in);
	}
}

/* Has the library's thread run the rest, if there is some. False: it cannot. */
static bool ask_library(struct vez__stay *in)
{
	vez_monitor_t *m = vez__monitor_of(in);
	if (m->asked_ && vez__rest_comes(m->asked_))
		return true;
	vez__calls_ask_nobody(in);
	if (m->asked_ || !first_ready(m))
		return false;
	m->asked_ = vez__rest_ask(m, enter_for_rest);
	if (m->asked_)
		vez__expect(in);
	return m->asked_;
}

static void run_and_settle(struct vez__stay *in, vez_request_t *r)
{
	if (VEZ__UNLIKELY(r->state_ & VEZ__ATTEMPT) && !may_run(r)) {
		vez__settle(in, r, ETIMEDOUT);
		return;
	}
	if (vez__win(r)) {
		run(r);
		vez__monitor_of(in)->ran_++;
	}
	vez__settle(in, r, 0);
}

/* Whether a batch was run, and another thread runs the rest. Where none can, the next batch begins: so this is looked
 * for once in a batch. */
static bool rest_is_left(struct vez__stay *in)
{
	vez_monitor_t *m = vez__monitor_of(in);
	if (m->ran_ < vez__call_batch)
		return false;
	bool left = hand_over(in) || ask_library(in);
	if (!left)
		m->ran_ = 0;
	return left;
}

/* Runs the next call that may run, or leaves that to another thread. */
static bool run_next(struct vez__stay *in)
{
	vez_monitor_t *m = vez__monitor_of(in);
	vez__monitor_own(m, true);
	vez_request_t *r = rest_is_left(in) ? NULL : first_ready(m);
	if (r)
		run_and_settle(in, r);
	vez__monitor_own(m, false);
	return r;
}

bool vez__calls_serve(struct vez__stay *in, uint64_t seen)
{
	if (have_arrived(seen)) {
		vez__calls_gather(in);
		return true;
	}
	return vez__monitor_of(in)->calls_ && run_next(in);
}

/* A thread that was asked to run the rest is here. */
void vez__calls_entered(struct vez__stay *in)
{
	vez__monitor_of(in)->ran_ = 0;
}

const struct vez__rules vez__call_rules = {
	.type = VEZ__CALL, .queue = offsetof(vez_monitor_t, calls_), .pending = offsetof(vez_monitor_t, pending_),
	.serve = vez__calls_serve, .entered = vez__calls_entered, .gathers = true,
};

/* ---- a call comes ---- */

/* Enters, unless somebody is inside. */
static bool try_enter(void *monitor)
{
	uint64_t *word = &((vez_monitor_t *)monitor)->core_.word_;
	uint64_t seen = vez__load(word, relaxed);
	return !(seen & VEZ__LOCKED) && vez__cas(word, &seen, seen | VEZ__LOCKED, acquire);
}

/* Inside: runs r's body, if no call that may run is left before it. 0; EBUSY: it must queue. */
static int run_at_once(struct vez__stay *in, const vez_request_t *r)
{
	vez_monitor_t *m = vez__monitor_of(in);
	m->ran_ = 0;
	vez__serve_all(in, &vez__call_rules); /* a batch at most */
	vez__monitor_own(m, true);
	bool runs = m->ran_ < vez__call_batch && !vez__must_queue(r) && may_run(r);
	if (runs)
		run(r);
	vez__monitor_own(m, false);
	return runs ? 0 : EBUSY;
}

/* Inside: r is to wait; its thread, if it has one, has run a batch already. */
static void note_spent(const vez_monitor_t *m, vez_request_t *r)
{
	if (m->ran_ >= vez__call_batch)
		r->state_ |= VEZ__SPENT;
}

/* Somebody is inside, or was: that one finds r, or the caller enters. */
static void push(vez_monitor_t *m, vez_request_t *r)
{
	struct vez__stay in;
	vez__arrive(&m->core_, &vez__call_rules, r);
	uint64_t seen = vez__load(&m->core_.word_, relaxed);
	do
		r->next_ = latest_of(seen);
	while (!vez__cas(&m->core_.word_, &seen, (uintptr_t)r | (seen & LOCK_BITS) | VEZ__LOCKED, acq_rel));
	if (seen & VEZ__LOCKED)
		return;
	m->ran_ = 0;
	vez__monitor_stay(&in, m);
	vez__leave(&in, &vez__call_rules);
}

/* Inside: r waits. EINPROGRESS; or what it came to. */
static int queue(struct vez__stay *in, vez_request_t *r)
{
	if (!vez__async_waits(r))
		return ETIMEDOUT;
	if (!vez__prepare(in->core, &vez__call_rules, &vez__monitor_of(in)->calls_, r))
		return ECANCELED;
	if (vez__is_member(r))
		r->state_ |= VEZ__FILING;
	vez__append(in->core, r);
	return vez__is_member(r) ? vez__member_filed(in, r) : EINPROGRESS;
}

/* Inside, which is left: 0, it has run; EINPROGRESS; ECANCELED. */
static int file(vez_monitor_t *m, vez_request_t *r)
{
	struct vez__stay in;
	vez__monitor_stay(&in, m);
	int rc = run_at_once(&in, r);
	if (rc == EBUSY) {
		note_spent(m, r);
		rc = queue(&in, r);
	}
	vez__leave(&in, &vez__call_rules);
	return rc;
}

static int submit(vez_monitor_t *m, vez_request_t *r, bool entered)
{
	if (entered)
		return file(m, r);
	push(m, r);
	return EINPROGRESS;
}

/* Inside: runs the body, if nobody waits and it may run; and leaves. Who enters finds no arrivals (D1), and those that
 * come from then on are behind it. */
static inline bool run_alone(vez_monitor_t *m, uint64_t me, guard_fn *guard, body_fn *body, void *arg)
{
	if (m->core_.length_ > 0)
		return false;
	vez__store(&m->owner_, me, relaxed);
	bool runs = is_open(guard, arg);
	if (runs)
		VEZ__FOREIGN(body(arg));
	vez__store(&m->owner_, 0, relaxed);
	if (runs)
		vez__monitor_leave(m, &vez__call_rules);
	return runs;
}

/* One attempt, after the calls that are there already: if these are more than a batch, it waits until others have run
 * them. */
static int attempt(vez_monitor_t *m, vez_request_t *r, bool entered)
{
	struct vez__stay in;
	if (!entered)
		vez__lock_enter(&m->core_.word_);
	vez__monitor_stay(&in, m);
	int rc = run_at_once(&in, r);
	if (rc == EBUSY && m->ran_ >= vez__call_batch) {
		r->state_ |= VEZ__ATTEMPT;
		note_spent(m, r);
		rc = queue(&in, r);
	}
	vez__leave(&in, &vez__call_rules);
	return rc == EBUSY ? ETIMEDOUT : rc;
}

/* Somebody else is inside, or others wait. To be pushed costs more than to wait for a short body. */
static VEZ__SLOW int call_slow(vez_monitor_t *m, guard_fn *guard, body_fn *body, void *arg, vez_deadline_t deadline,
			       vez_cancel_t *cancel, bool entered)
{
	vez_request_t r;
	int rc = 0;
	bool runs = false;
	if (!entered) {
		entered = try_enter(m) || vez__spin(VEZ__SPIN_MUTEX, VEZ__SPIN_RARELY, try_enter, m);
		runs = entered && run_alone(m, vez__self(), guard, body, arg);
	}
	if (!runs) {
		bool passed = vez__deadline_passed(deadline);
		vez__request_init_local(&r, 0, cancel);
		set_call(&r, guard, body, arg);
		r.state_ = vez__calls_is_library() ? VEZ__TIRELESS : 0;
		rc = passed ? attempt(m, &r, entered) : submit(m, &r, entered);
		deadline = passed ? VEZ_FOREVER : deadline;
	}
	vez__let_go();
	return rc == EINPROGRESS ? vez__await(&r, deadline) : rc;
}

static inline __attribute__((always_inline)) int call_when(vez_monitor_t *m, guard_fn *guard, body_fn *body, void *arg,
							   vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (!body)
		return EINVAL;
	uint64_t me = vez__self();
	if (vez__load(&m->owner_, relaxed) == me)
		return EDEADLK;
	if (vez__is_fired(cancel))
		return ECANCELED;
	vez__hold(); /* what bodies complete is called when the monitor has been left */
	uint64_t nobody = 0; /* to load the word first would cost as much as a third of all this */
	bool entered = vez__cas(&m->core_.word_, &nobody, VEZ__LOCKED, acquire);
	if (VEZ__UNLIKELY(!entered || !run_alone(m, me, guard, body, arg)))
		return call_slow(m, guard, body, arg, deadline, cancel, entered);
	vez__let_go();
	return 0;
}

int vez_monitor_call_when(vez_monitor_t *m, bool (*guard)(void *arg), void (*body)(void *arg), void *arg,
			  vez_deadline_t deadline, vez_cancel_t *cancel)
{
	return call_when(m, guard, body, arg, deadline, cancel);
}

int vez_monitor_call(vez_monitor_t *m, void (*body)(void *arg), void *arg)
{
	return call_when(m, NULL, body, arg, VEZ_FOREVER, NULL);
}

int vez_monitor_call_async(vez_monitor_t *m, bool (*guard)(void *arg), void (*body)(void *arg), void *arg,
			   vez_request_t *r)
{
	int rc = vez__async_begin(r);
	set_call(r, guard, body, arg);
	if (!body)
		rc = EINVAL;
	else if (is_inside(m))
		rc = EDEADLK;
	if (rc == 0) {
		vez__hold();
		rc = submit(m, r, try_enter(m));
		vez__let_go();
	}
	return vez__async_end(r, rc);
}

int vez_guarded_call(vez_guarded_t f, void *arg)
{
	return vez_monitor_call_when(f.monitor, f.guard, f.body, arg, VEZ_FOREVER, NULL);
}
