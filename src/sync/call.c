/* SPDX-License-Identifier: MIT */
/*
 * Delegated and guarded execution.
 *
 * State, of a user's monitor
 *  word_      bits 0-1   the lock  futex/lock.h
 *             bits 2-63  arrivals  a stack of calls that came while somebody was inside (place_[0]): the address of the
 *                                  latest. Pushed by anybody, taken whole by the one inside
 *  calls_     the other calls that wait, in the order in which they arrived; inside. A request's pointer is its body,
 *             its value the argument, its key the guard
 *  owner_     the number of the thread whose own code, or whose body, is inside. Written by that thread
 *  ran_       how many bodies were run since somebody entered or came to run some, or a batch found nobody to leave the
 *             rest to; inside
 * Invariants
 *  D1 a call is among the arrivals or in calls_ until it has run or given up. A push leaves somebody inside: the one
 *     who was, or the pusher. Who leaves expects a word without arrivals. So while nobody is inside, there are none.
 *  D2 while nobody is inside, no call in calls_ has a guard that is true, but where one of the callers has been told to
 *     come and run the rest (hand_over). Who leaves made it so.
 *  D3 a call's limits apply from the moment when it is gathered. So, and by D1, whoever comes because of one finds it
 *     in calls_.
 *  D4 a body runs once: for a request that is in calls_, and is settled in the same stay.
 * Ordering
 *  push (release) pairs with vez__calls_gather (acquire): the call and what came before it. Bodies are inside the
 *  monitor: its lock orders them. Publication (word.c): what the body did, for the caller.
 * Progress and fairness
 *  Arriving is lock-free and waits for nobody. A thread runs at most vez__call_batch bodies in a stay, if one of the
 *  callers that could go on is asleep or spins: that one is told to come; this is asked once in a batch. FIFO among
 *  those whose guards are true. Evaluating is linear in the calls whose guards are false.
 * Lifetime: as in monitor.c. The push is one exchange, and the pusher's last touch of the monitor unless it entered by
 * it: from then on its call may have run, and the monitor be gone. The arrivals are such a stack as those of a token.
 * Sources: include/vez/call.h.
 */
#include "call.h"

#include <errno.h>

#include "../futex/self.h"
#include "../futex/spin.h"
#include "completion.h"
#include "vez/call.h"

#define LOCK_BITS (VEZ__LOCKED | VEZ__CONTENDED)
#define FIRST_PAUSES 64

unsigned vez__call_batch = 64;

static uint32_t self(void)
{
	return (uint32_t)vez__self();
}

void vez__monitor_own(vez_monitor_t *m, bool own)
{
	vez__store(&m->owner_, own ? self() : 0, relaxed);
}

static bool is_inside(const vez_monitor_t *m)
{
	return vez__load(&m->owner_, relaxed) == self();
}

/* ---- a call ---- */

typedef void body_fn(void *arg);
typedef bool guard_fn(void *arg);

static void set_call(vez_request_t *r, guard_fn *guard, body_fn *body, void *arg)
{
	r->key_ = (int64_t)(intptr_t)guard;
	r->ptr_ = (void *)(uintptr_t)body;
	r->value_ = (uintptr_t)arg;
}

static bool may_run(const vez_request_t *r)
{
	guard_fn *guard = (guard_fn *)(uintptr_t)(intptr_t)r->key_;
	return !guard || guard((void *)(uintptr_t)r->value_);
}

static void run(const vez_request_t *r)
{
	((body_fn *)(uintptr_t)r->ptr_)((void *)(uintptr_t)r->value_);
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

void vez__calls_gather(vez_monitor_t *m)
{
	if (!have_arrived(vez__load(&m->word_, relaxed)))
		return;
	vez_request_t *oldest = vez__oldest_first(latest_of(vez__fetch_and(&m->word_, LOCK_BITS, acquire)));
	while (oldest) {
		vez_request_t *younger = oldest->place_[0];
		vez__request_gather(m, oldest);
		oldest = younger;
	}
}

/* The first call that may run. */
static vez_request_t *first_ready(const vez_monitor_t *m)
{
	vez_request_t *r = vez_room_first(&m->calls_);
	while (r && !may_run(r))
		r = vez_room_next(&m->calls_, r);
	return r;
}

/* Has a caller come to run the rest: the first that could go on, unless one was told in this stay. False:
 * nobody can. */
static bool hand_over(vez_monitor_t *m)
{
	vez_request_t *r = vez_room_first(&m->calls_);
	while (r && (vez__request_is_async(r) || !may_run(r)))
		r = vez_room_next(&m->calls_, r);
	if (r && !m->poked_)
		vez__request_poke(m, r); /* false: it is coming anyway */
	return r;
}

static void run_and_settle(vez_monitor_t *m, vez_request_t *r)
{
	if (vez__request_claim(r)) {
		run(r);
		m->ran_++;
	}
	vez_monitor_settle(m, r, 0);
}

/* Whether a batch was run, and a caller runs the rest. Where none can, the next batch begins: so this is looked for
 * once in a batch. */
static bool rest_is_left(vez_monitor_t *m)
{
	if (m->ran_ < vez__call_batch)
		return false;
	bool left = hand_over(m);
	if (!left)
		m->ran_ = 0;
	return left;
}

/* Runs the next call that may run, or leaves that to another thread. */
static bool run_next(vez_monitor_t *m)
{
	vez__monitor_own(m, true);
	vez_request_t *r = rest_is_left(m) ? NULL : first_ready(m);
	if (r)
		run_and_settle(m, r);
	vez__monitor_own(m, false);
	return r;
}

static bool serve(vez_monitor_t *m, uint64_t seen)
{
	if (have_arrived(seen)) {
		vez__calls_gather(m);
		return true;
	}
	return m->queued_ > 0 && vez_room_first(&m->calls_) && run_next(m);
}

/* Who was told to run the rest is here. */
static void came(vez_monitor_t *m)
{
	m->ran_ = 0;
}

const struct vez__ops vez__user_ops = { .type = VEZ__MONITOR, .gathers = true, .serve = serve, .came = came };

/* ---- a call comes ---- */

/* Enters, unless somebody is inside. */
static bool try_enter(vez_monitor_t *m)
{
	uint64_t seen = vez__load(&m->word_, relaxed);
	return !(seen & VEZ__LOCKED) && vez__cas(&m->word_, &seen, seen | VEZ__LOCKED, acquire);
}

/* Inside: the calls that arrived before are run, a batch at most, or wait. */
static void serve_all(vez_monitor_t *m)
{
	while (serve(m, vez__load(&m->word_, relaxed)))
		;
}

/* Inside: runs r's body, if no call that may run is left before it. 0; EBUSY: it must queue. */
static int run_at_once(vez_monitor_t *m, const vez_request_t *r)
{
	m->ran_ = 0;
	serve_all(m);
	vez__monitor_own(m, true);
	bool runs = m->ran_ < vez__call_batch && !vez__request_must_queue(r) && may_run(r);
	if (runs)
		run(r);
	vez__monitor_own(m, false);
	return runs ? 0 : EBUSY;
}

/* Somebody is inside, or was: that one finds r, or the caller enters. */
static void push(vez_monitor_t *m, vez_request_t *r)
{
	vez__request_arrive(m, &m->calls_, r, &vez__user_ops);
	uint64_t seen = vez__load(&m->word_, relaxed);
	do
		r->place_[0] = latest_of(seen);
	while (!vez__cas(&m->word_, &seen, (uintptr_t)r | (seen & LOCK_BITS) | VEZ__LOCKED, acq_rel));
	if (seen & VEZ__LOCKED)
		return;
	m->ran_ = 0;
	vez__monitor_leave(m, &vez__user_ops);
}

/* Inside, which is left: 0, it has run; EINPROGRESS; ECANCELED. */
static int file(vez_monitor_t *m, vez_request_t *r)
{
	int rc = run_at_once(m, r);
	if (rc == EBUSY && !vez__async_waits(r))
		rc = ETIMEDOUT;
	if (rc == EBUSY && !vez__request_prepare(m, &m->calls_, r, &vez__user_ops))
		rc = ECANCELED;
	if (rc == EBUSY) {
		vez__request_insert_last(r);
		rc = vez__request_filed(m, r);
	}
	vez__monitor_leave(m, &vez__user_ops);
	return rc;
}

/* Enters, or gives up soon: to be pushed costs more than to wait for a short body. Looks more and more rarely, like a
 * mutex (mutex.c). */
static inline bool try_enter_for_a_while(vez_monitor_t *m)
{
	if (VEZ__LIKELY(try_enter(m)))
		return true;
	unsigned budget = vez__spin_budget(VEZ__SPIN_MUTEX);
	unsigned spun = 0;
	bool in = false;
	for (unsigned pauses = FIRST_PAUSES; !in && spun < budget; pauses *= 2) {
		for (unsigned i = 0; i < pauses; i++)
			vez__pause();
		spun += pauses;
		in = try_enter(m);
	}
	if (budget > 0)
		vez__spin_learn(VEZ__SPIN_MUTEX, spun, in);
	return in;
}

static int submit(vez_monitor_t *m, vez_request_t *r, bool entered)
{
	if (entered)
		return file(m, r);
	push(m, r);
	return EINPROGRESS;
}

static inline void leave_fast(vez_monitor_t *m)
{
	uint64_t seen = VEZ__LOCKED;
	if (!vez__monitor_owes_nothing(m) || !vez__cas(&m->word_, &seen, 0, release))
		vez__monitor_leave(m, &vez__user_ops);
}

/* Inside: runs the body, if nobody waits and it may run; and leaves. Who enters finds no arrivals (D1), and those that
 * come from then on are behind it. */
static inline bool run_alone(vez_monitor_t *m, uint32_t me, guard_fn *guard, body_fn *body, void *arg)
{
	if (m->queued_ > 0)
		return false;
	vez__store(&m->owner_, me, relaxed);
	bool runs = !guard || guard(arg);
	if (runs)
		body(arg);
	vez__store(&m->owner_, 0, relaxed);
	if (runs)
		leave_fast(m);
	return runs;
}

/* One attempt, after the calls that are there already. */
static int attempt(vez_monitor_t *m, vez_request_t *r, bool entered)
{
	if (!entered)
		vez__monitor_enter(m);
	vez__calls_gather(m);
	for (size_t before = vez_room_length(&m->calls_); before > 0; before--) {
		m->ran_ = 0;
		if (!serve(m, vez__load(&m->word_, relaxed)))
			break;
	}
	vez__monitor_own(m, true);
	bool runs = may_run(r);
	if (runs)
		run(r);
	vez__monitor_own(m, false);
	vez__monitor_leave(m, &vez__user_ops);
	return runs ? 0 : ETIMEDOUT;
}

/* Somebody else is inside, or others wait. */
static VEZ__COLD int call_slow(vez_monitor_t *m, guard_fn *guard, body_fn *body, void *arg, vez_deadline_t deadline,
			       vez_cancel_t *cancel, bool entered)
{
	vez_request_t r;
	int rc = 0;
	bool runs = false;
	if (!entered && (entered = try_enter_for_a_while(m)))
		runs = run_alone(m, self(), guard, body, arg);
	if (!runs) {
		vez__request_mine(&r, 0, cancel);
		set_call(&r, guard, body, arg);
		rc = vez__deadline_passed(deadline) ? attempt(m, &r, entered) : submit(m, &r, entered);
	}
	vez__let_go();
	return rc == EINPROGRESS ? vez__request_await(&r, deadline) : rc;
}

static inline __attribute__((always_inline)) int call_when(vez_monitor_t *m, guard_fn *guard, body_fn *body, void *arg,
							   vez_deadline_t deadline, vez_cancel_t *cancel)
{
	if (!body)
		return EINVAL;
	uint32_t me = self();
	if (vez__load(&m->owner_, relaxed) == me)
		return EDEADLK;
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	vez__hold(); /* what bodies complete is called when the monitor has been left */
	uint64_t nobody = 0; /* to load the word first would cost as much as a third of all this */
	bool entered = vez__cas(&m->word_, &nobody, VEZ__LOCKED, acquire);
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
