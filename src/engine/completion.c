/* SPDX-License-Identifier: MIT */
/*
 * Completion: how a settled asynchronous request tells its owner.
 *
 * State
 *  request  how_       winner.h
 *           next_      link in the lists below
 *  mine, of each thread
 *           queue      functions still to be called, in order: the last, a ring linked by next_; waiting: how many;
 *                      own: how many of them are of requests that this thread has cancelled (settle.h OWN)
 *           calling    one of them runs
 *           calls      how many calls it is in that count as one (vez__calls_begin)
 *           left       how many functions of others it still calls in the outermost of these
 *           handed     the number of the last one that it left to the library's thread (rest.c); 0: none
 *           handlers   how many calls it is in that may be in a signal handler
 *           library    it is the library's thread
 *  shard    for the requests whose addresses hash there; all inside its core
 *           runs       the completions that are under way, each on the stack of the thread that carries it out, the
 *                      latest first; of: the request, or NULL when one filed later at the same address has a run, too
 *           queue      threads that wait for a request to complete. A waiting request's pointer is what it waits for:
 *                      the request, until that has a run; then the run
 * Invariants
 *  P1 a settled request is completed by one thread, once: M2 of settle.c.
 *  P2 a request's word says DONE exactly from the moment, inside its shard, when its run is entered there. From then on
 *     it is its owner's: only its address is used. A listed one is touched until it is in its list, and a member until
 *     its select knows; its owner waits for that before freeing it.
 *  P3 while holding, nothing is completed by this thread: a handler that interrupts it, or a body that it runs inside a
 *     monitor, leaves what it settles (hold.h). So no lock is asked for by a thread that has it, and no function is
 *     called with one held; what another thread has, that one lets go.
 *  P4 the shards, and with them everything else here, are innermost but for the cores of lists and selects.
 *  P5 a run is r's if it is of r and r's word says DONE and ASYNC. Otherwise what was at this address before is being
 *     completed: r is queued (no DONE), or was decided at once and never had a run (no ASYNC).
 *  P6 a thread whose calls are 0 has nothing queued, unless it is calling.
 * Ordering
 *  r is the completer's by the leaving exchange of the core in which it was settled. DONE is released and pairs with
 *  the acquiring load in vez_request_result and vez__completion_status. Runs, and threads that wait for them, meet
 *  inside the shard.
 * Progress
 *  Threads let go by the same release are woken before. What calls nothing is told at once. Functions are called in the
 *  order in which their requests were settled by this thread, one after another: one that settles more requests finds
 *  itself calling, and the loop that called it goes on with those.
 *  A call runs a batch of them; the rest is left to the library's thread, and so is all that this thread settles later,
 *  until that has been called. But a request that is cancelled outside of functions is completed by who cancels it.
 *  A call that may be in a signal handler makes no thread: if there is none it goes on by itself, and the next request
 *  that is filed makes the thread. So it ends: what it calls without end would have to be filed meanwhile. Where no
 *  thread can be made, a call goes on by itself, and tries once in a batch.
 * Lifetime: as P2. A thread that waits for one sleeps on a request of its own, and compares addresses.
 * fork: the child has no runs and no waiters; what this thread had left to call, or to the library's thread, belongs to
 *  the parent. If it forked inside a user's monitor or function, the child is inside, too.
 */
#include "completion.h"

#include <errno.h>
#include <string.h>

#include "../futex/foreign.h"
#include "../futex/fork.h"
#include "../futex/futex.h"
#include "../futex/self.h"
#include "../futex/shared.h"
#include "../futex/stack.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "clock.h"
#include "rest.h"
#include "settle.h"
#include "token.h"

#define SHARD_BITS 6
#define GATHERED 1024

/* A completion that is under way. */
struct run {
	struct run *next;
	struct shard *shard;
	const vez_request_t *of;
	uint64_t runner;
};

static struct shard {
	struct vez__core core;
	vez_request_t *queue;
	struct run *runs;
} shards[1 << SHARD_BITS];

unsigned vez__calls_batch = 64;

static __thread struct {
	struct vez__pending queue;
	uint64_t handed;
	uint32_t waiting, own;
	uint32_t calls;
	uint32_t left;
	uint32_t handlers;
	bool calling;
	bool library;
} mine __attribute__((tls_model("initial-exec")));

const struct vez__rules vez__completion_rules = { .type = VEZ__REQUEST, .queue = offsetof(struct shard, queue) };

static struct shard *shard_of(const vez_request_t *r)
{
	return &shards[vez__hash_of(r, SHARD_BITS)];
}

/* ---- a request is complete ---- */

/* Inside its shard: the run of r, or of what was there before. */
static struct run *run_of(const struct shard *s, const vez_request_t *r)
{
	struct run *run = s->runs;
	while (run && run->of != r)
		run = run->next;
	return run;
}

static void begin_run(struct run *run, vez_request_t *r)
{
	struct shard *s = shard_of(r);
	*run = (struct run){ NULL, s, r, vez__self() };
	vez__lock_enter(&s->core.word_);
	struct run *before = run_of(s, r);
	if (before)
		before->of = NULL;
	run->next = s->runs;
	s->runs = run;
	for (vez_request_t *w = s->queue; w; w = vez__queue_next(s->queue, w))
		if (w->with_.ptr_ == r)
			w->with_.ptr_ = run;
	vez__fetch_or(&r->word_, VEZ__DONE, release);
	vez__lock_exit(&s->core.word_);
}

static void end_run(struct run *run)
{
	struct vez__stay in;
	struct shard *s = run->shard;
	vez_request_t *next;
	vez__enter(&in, &s->core);
	struct run **link = &s->runs;
	while (*link && *link != run)
		link = &(*link)->next;
	if (*link) /* not in the child of a fork that was made inside the function */
		*link = run->next;
	for (vez_request_t *w = s->queue; w; w = next) {
		next = vez__queue_next(s->queue, w);
		if (w->with_.ptr_ == run)
			vez__settle(&in, w, 0);
	}
	if (VEZ__UNLIKELY(in.own.last_))
		vez__leave_threads(&in);
	else
		vez__lock_exit(&s->core.word_);
}

/* It never has a run, and its word says so: no ASYNC. Also of one that was queued, and calls nothing: it is delisted,
 * so that nobody else writes its word. */
void vez__complete_at_once(vez_request_t *r)
{
	struct vez__stay in;
	struct shard *s = shard_of(r);
	vez_request_t *next;
	vez__enter_holding(&in, &s->core);
	vez__store(&r->word_, VEZ__DONE, release);
	for (vez_request_t *w = s->queue; w; w = next) {
		next = vez__queue_next(s->queue, w);
		if (w->with_.ptr_ == r)
			vez__settle(&in, w, 0);
	}
	vez__leave_holding(&in);
}

int vez__completion_status(struct vez__stay *in, vez_request_t *r, void **on)
{
	struct shard *s = shard_of(r);
	vez__enter_holding(in, &s->core);
	uint32_t seen = vez__load(&r->word_, acquire);
	struct run *run = seen & VEZ__DONE && seen & VEZ__ASYNC ? run_of(s, r) : NULL;
	*on = run ? (void *)run : (void *)r;
	if (run)
		return run->runner == vez__self() ? EDEADLK : EINPROGRESS;
	if (seen & VEZ__DONE)
		return 0;
	return seen & VEZ__ASYNC ? EINPROGRESS : EINVAL;
}

/* ---- a list of completions ---- */

/* Puts r last; true if a tick is due for it. */
static bool put_last(vez_completions_t *l, vez_request_t *r)
{
	struct vez__stay in;
	vez__enter(&in, &l->core_);
	bool ticks = !l->first_ && l->efd_ >= 0;
	r->next_ = NULL;
	if (l->first_)
		l->last_->next_ = r;
	else
		vez__store(&l->first_, r, release);
	l->last_ = r;
	l->ticking_ |= ticks;
	if (!l->ticking_)
		vez__settle_all(&in, &l->queue_, 0);
	vez__leave_threads(&in);
	return ticks;
}

/* The list, and the eventfd, are the consumer's to close when it has taken the last request: so it gets none before the
 * tick is written. */
static void join_list(vez_completions_t *l, vez_request_t *r)
{
	struct vez__stay in;
	int efd = l->efd_;
	if (!put_last(l, r))
		return;
	vez__sys_tick(efd);
	vez__enter(&in, &l->core_);
	l->ticking_ = 0;
	vez__settle_all(&in, &l->queue_, 0);
	vez__leave_threads(&in);
}

/* ---- a member of a wait-for-any ---- */

void vez__member_decided(vez_request_t *r)
{
	struct vez__stay in;
	vez_select_t *s = vez__select_of(r);
	vez__enter_holding(&in, &s->core_);
	uint32_t before = vez__fetch_add(&s->pending_, UINT32_MAX, relaxed);
	if (s->queue_ && (before == 1 || vez__winner_of(s) == r))
		vez__settle(&in, s->queue_, 0);
	vez__leave_holding(&in);
}

/* ---- completing ---- */

/* Completes one that calls nothing. Holding. */
static void tell(vez_request_t *r)
{
	struct run run;
	uint32_t how = r->how_ & VEZ__COMPLETES;
	void *to = r->arg_;
	if (how == VEZ__CALLS) { /* no function: who has seen its result has nothing to wait for */
		vez__complete_at_once(r);
		return;
	}
	begin_run(&run, r);
	if (how == VEZ__TICKS)
		vez__sys_tick((int)(intptr_t)to);
	else if (how == VEZ__LISTED)
		join_list(to, r);
	else
		vez__member_decided(r);
	end_run(&run);
}

static bool calls_a_function(const vez_request_t *r)
{
	return (r->how_ & VEZ__COMPLETES) == VEZ__CALLS && r->then_.done_;
}

/* left: it was left to the library's thread, which this is. Whoever waits for it is no longer behind when it
 * returns. */
static void call(vez_request_t *r, bool left)
{
	struct run run;
	void (*done)(vez_request_t *, int, void *) = r->then_.done_;
	void *arg = r->arg_;
	int result = r->at_.result_;
	vez__hold();
	begin_run(&run, r);
	vez__let_go();
	VEZ__FOREIGN(done(r, result, arg));
	if (left && mine.library) /* not in the child of a fork that was made in the function */
		vez__rest_note_returned();
	vez__hold();
	end_run(&run);
	vez__let_go();
}

static void pend_call(struct vez__pending *queue, vez_request_t *r)
{
	vez__pend(queue, r);
	mine.waiting++;
	mine.own += (r->state_ & VEZ__OWN) != 0;
}

static vez_request_t *take_first(void)
{
	vez_request_t *last = mine.queue.last_, *r = last ? last->next_ : NULL;
	if (!r)
		return NULL;
	if (r == last)
		mine.queue.last_ = NULL;
	else
		last->next_ = r->next_;
	mine.waiting--;
	mine.own -= (r->state_ & VEZ__OWN) != 0;
	return r;
}

/* Takes all out that are not of requests which this thread has cancelled. How many. */
static uint32_t take_others(struct vez__pending *others)
{
	uint32_t waiting = mine.waiting, own = mine.own;
	if (own == 0) {
		*others = mine.queue;
		mine.queue.last_ = NULL;
	} else {
		struct vez__pending kept = { NULL, NULL };
		for (vez_request_t *r; (r = take_first());)
			vez__pend(r->state_ & VEZ__OWN ? &kept : others, r);
		mine.queue = kept;
	}
	mine.waiting = mine.own = own;
	return waiting - own;
}

/* Whether there is a thread to which the rest can be left. */
static bool can_leave_rest(void)
{
	if (vez__clock_exists())
		return !vez__clock_stops();
	if (mine.handlers > 0 && vez__sys_blocks_signals())
		return false;
	return vez__clock_start() == 0;
}

/* Holding: this call has run its batch, or is about to run the last one of it. */
static VEZ__COLD void at_the_bound(void)
{
	struct vez__pending others = { NULL, NULL };
	if (mine.left == 1) {
		if (mine.handlers > 0)
			vez__clock_want();
		return;
	}
	if (mine.waiting == mine.own)
		return;
	if (!mine.library && !can_leave_rest()) {
		mine.left = mine.handlers > 0 ? 1 : vez__calls_batch;
		return;
	}
	uint32_t count = take_others(&others);
	mine.handed = vez__rest_hand(&others, count);
	if (!mine.library)
		vez__alarm_ring();
}

static vez_request_t *next_to_call(void)
{
	vez__hold();
	if (VEZ__UNLIKELY(mine.left <= 1))
		at_the_bound();
	vez_request_t *r = take_first();
	if (r && mine.left > 0 && !(r->state_ & VEZ__OWN))
		mine.left--;
	mine.calling = r != NULL;
	vez__let_go();
	return r;
}

/* What a handler leaves when the last one has returned is seen by vez__calls_end. */
static void drain(void)
{
	if (mine.calling)
		return;
	while (mine.waiting > 0) {
		vez_request_t *r = next_to_call();
		if (r)
			call(r, false);
	}
	vez__order_for_handlers();
	mine.calling = false;
}

/* So many functions of others are called now. */
static uint32_t may_call(void)
{
	bool behind = mine.handed > 0 && vez__rest_returned() < mine.handed;
	return mine.library || behind ? 0 : vez__calls_batch;
}

void vez__calls_begin(void)
{
	if (mine.calls++ == 0)
		mine.left = may_call();
}

/* What a handler has left here, when it found this call under way, comes after. */
void vez__calls_end(void)
{
	if (mine.calls == 1)
		drain();
	vez__order_for_handlers();
	mine.calls--;
	vez__order_for_handlers();
	if (VEZ__UNLIKELY(mine.calls == 0 && mine.waiting > 0 && !mine.calling)) {
		vez__calls_begin();
		vez__calls_end();
	}
}

bool vez__calls_now(void)
{
	return mine.calling;
}

void vez__calls_in_handler(int more)
{
	mine.handlers += (uint32_t)more;
}

/* What is left to the library's thread gathers, and is handed over many at a time: each hand-over may wake it. */
static void call_all(void)
{
	if (mine.calling)
		return;
	vez__calls_begin();
	if (mine.calls > 1 && (mine.left > 0 || mine.waiting >= GATHERED))
		drain();
	vez__calls_end();
}

void vez__forget_limits(vez_request_t *r)
{
	vez__inspect_decided(r);
	vez__token_delist(r);
	vez__alarm_unset(r);
}

static void complete(vez_request_t *r)
{
	vez_request_t *next;
	if (vez__holds()) {
		vez__leave_to_holder(r, complete);
		return;
	}
	vez__hold();
	for (; r; r = next) {
		next = r->next_;
		vez__forget_limits(r);
		if (calls_a_function(r))
			pend_call(&mine.queue, r);
		else
			tell(r);
	}
	vez__let_go();
	call_all();
}

/* ---- the library's thread ---- */

void vez__calls_by_library(void)
{
	mine.library = true;
}

bool vez__calls_is_library(void)
{
	return mine.library;
}

/* Calls a batch of functions; what these settle comes last. False: there was none. In the child of a fork that was made
 * in one of them this thread is the library's no more. */
static bool call_batch(void)
{
	unsigned called = 0;
	mine.calling = true;
	for (vez_request_t *r; called < vez__calls_batch && mine.library && (r = vez__rest_next()); called++)
		call(r, true);
	mine.calling = false;
	if (mine.waiting > 0)
		call_all();
	return called > 0;
}

/* Functions and objects in turn, so that neither waits for more than a batch of the other. */
bool vez__calls_do_rest(void)
{
	static bool objects;
	if (!mine.library)
		return false;
	objects = !objects;
	return objects ? vez__rest_enter() || call_batch() : call_batch() || vez__rest_enter();
}

/* ---- leaving ---- */

/* Threads first, then those that sleep in their slots, then what no thread waits for. */
VEZ__HOT void vez__publish(struct vez__pending *pending)
{
	struct vez__pending threads = { NULL, NULL }, in_slots = { NULL, NULL }, async = { NULL, NULL };
	vez_request_t *next;
	if (pending->wake_)
		vez__futex_wake(pending->wake_);
	for (vez_request_t *r = vez__pending_take(pending); r; r = next) {
		next = r->next_;
		vez__pend(vez__is_async(r) ? &async : r->how_ & VEZ__IN_SLOT ? &in_slots : &threads, r);
	}
	vez__publish_list(vez__pending_take(&threads));
	vez__publish_slots(vez__pending_take(&in_slots));
	vez_request_t *first = vez__pending_take(&async);
	if (first)
		complete(first);
}

VEZ__HOT void vez__publish_stay(struct vez__stay *in)
{
	if (VEZ__UNLIKELY(in->asked.turn))
		vez__slot_wake(in->asked);
	if (VEZ__UNLIKELY(in->own.last_ || in->own.wake_))
		vez__publish(&in->own);
}

VEZ__HOT void vez__leave(struct vez__stay *in, const struct vez__rules *rules)
{
	bool gathers = rules && rules->gathers;
	vez__leave_pending(in, rules);
	vez__publish_stay(in);
	if (VEZ__UNLIKELY(in->followed))
		vez__shared_let_go(in->followed);
	if (gathers && vez__alarm_tell())
		vez__rest_tell();
}

VEZ__HOT void vez__leave_entered(struct vez__core *c, const struct vez__rules *rules)
{
	struct vez__stay in;
	vez__entered(&in, c);
	vez__leave(&in, rules);
}

VEZ__HOT void vez__leave_in_handler(struct vez__core *c, const struct vez__rules *rules)
{
	mine.handlers++;
	vez__leave_entered(c, rules);
	mine.handlers--;
}

int vez__destroy(struct vez__core *c, const struct vez__rules *rules, uint64_t bits)
{
	struct vez__stay in;
	vez__enter(&in, c);
	vez__serve_all(&in, rules);
	return vez__retire(&in, rules, vez__word_of(&in) & bits);
}

int vez__retire(struct vez__stay *in, const struct vez__rules *rules, bool held)
{
	struct vez__core *c = in->core;
	struct vez__pending *pending = in->pending;
	bool used = held || c->length_ > 0;
	while (!used && vez__expected(in) > 0) {
		vez__leave(in, NULL);
		vez__await_none(c);
		vez__enter(in, c);
		if (pending != &in->own)
			in->pending = pending;
	}
	vez__leave(in, used ? rules : NULL);
	return used ? EBUSY : 0;
}

/* Nobody waits, nothing is left to call. */
static void in_child(void)
{
	memset(shards, 0, sizeof shards);
	mine.queue.last_ = NULL;
	mine.waiting = mine.own = 0;
	mine.handed = 0;
	mine.library = false;
}

VEZ__AT_FORK(NULL, NULL, in_child)
