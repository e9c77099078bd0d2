/* SPDX-License-Identifier: MIT */
/*
 * Completion: how a settled asynchronous request tells its owner, and how its owner waits for that.
 *
 * State
 *  request  kind_      how: VEZ__CALLS then_.done_(r, result, arg_), VEZ__TICKS the eventfd arg_, VEZ__LISTED in the
 *                      list arg_, VEZ__MEMBER of the select arg_
 *           place_[0]  link in the stacks and lists below
 *  mine, of each thread
 *           holding    how many locks it holds (or is about to) that completing needs: of tokens, of the alarm clock,
 *                      of the shards, of completion lists and selects; whether it works on queue; and the users'
 *                      monitors that it is inside of
 *           left       a stack: settled by a signal handler while holding > 0
 *           queue      functions still to be called, in order
 *           calling    one of them runs
 *  shard    for the requests whose addresses hash there; all inside its monitor
 *           runs       the completions that are under way, each on the stack of who carries it out, the latest first;
 *                      of: the request, or NULL when one filed later at the same address has a run, too
 *           room       who waits for a request to complete. A request's pointer is what it waits for: the request,
 *                      until that has a run; then the run
 * Invariants
 *  P1 a settled request is completed by one thread, once: M2 of monitor.c.
 *  P2 a request's word says DONE exactly from the moment, inside its shard, when its run is entered there. From then on
 *     it is its owner's: only its address is used. A listed one is touched until it is in its list, and a member until
 *     its select knows; who may free it waits for that.
 *  P5 a run is r's if it is of r and r's word says DONE and ASYNC. Otherwise what was at this address before is being
 *     completed: r is queued (no DONE), or was decided at once and never had a run (no ASYNC).
 *  P3 while holding, nothing is completed by this thread: a handler that interrupts it, or a body that it runs inside a
 *     monitor, leaves what it settles. So no lock is asked for by a thread that has it, and no function is called with
 *     one held; what another thread has, that one lets go.
 *  P4 the shards, and with them everything else here, are innermost but for the lists' and selects' own monitors.
 * Ordering
 *  r is the completer's by the leaving exchange of the monitor in which it was settled. DONE is released and pairs with
 *  the acquiring load in vez_request_result and is_complete. Runs, and who waits for them, meet inside the shard.
 * Progress
 *  Threads let go by the same release are woken before (monitor.c). Functions are called in the order in which their
 *  requests were settled by this thread, one after another: one that settles more requests finds itself calling, and
 *  the loop that called it goes on with those.
 * Lifetime: as P2. Who waits sleeps on a request of its own, and compares addresses.
 * fork: the child has no runs and no waiters; what this thread had left to call belongs to the parent. If it forked
 *  inside a user's monitor or function, the child is inside, too.
 */
#include "completion.h"

#include <errno.h>
#include <string.h>

#include "../futex/self.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "engine.h"
#include "inspect.h"
#include "select.h"

#define SHARD_BITS 6

/* A completion that is under way. */
struct run {
	struct run *next;
	struct shard *shard;
	const vez_request_t *of;
	uint64_t runner;
};

static struct shard {
	vez_monitor_t monitor;
	vez_room_t room;
	struct run *runs;
} shards[1 << SHARD_BITS];

static __thread struct {
	uint32_t holding;
	bool calling;
	vez_request_t *left;
	vez_request_t *queue[2];
} mine __attribute__((tls_model("initial-exec")));

static struct shard *shard_of(const vez_request_t *r)
{
	return &shards[((uint64_t)(uintptr_t)r * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SHARD_BITS)];
}

static vez_request_t *link_of(const vez_request_t *r)
{
	return r->place_[0];
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
	run->shard = s;
	run->of = r;
	run->runner = vez__self();
	vez__monitor_enter(&s->monitor);
	struct run *before = run_of(s, r);
	if (before)
		before->of = NULL;
	run->next = s->runs;
	s->runs = run;
	for (vez_request_t *w = vez_room_first(&s->room); w; w = vez_room_next(&s->room, w))
		if (w->ptr_ == r)
			w->ptr_ = run;
	vez__fetch_or(&r->word_, VEZ__DONE, release);
	vez__monitor_exit(&s->monitor);
}

static void end_run(struct run *run)
{
	struct shard *s = run->shard;
	vez_request_t *next;
	vez__monitor_enter(&s->monitor);
	struct run **link = &s->runs;
	while (*link && *link != run)
		link = &(*link)->next;
	if (*link) /* not in the child of a fork that was made inside the function */
		*link = run->next;
	for (vez_request_t *w = vez_room_first(&s->room); w; w = next) {
		next = vez_room_next(&s->room, w);
		if (w->ptr_ == run)
			vez_monitor_settle(&s->monitor, w, 0);
	}
	vez__monitor_exit(&s->monitor);
}

/* Completes one that calls nothing. Holding. */
static void tell(vez_request_t *r)
{
	struct run run;
	uint32_t kind = r->kind_;
	void *to = r->arg_;
	begin_run(&run, r);
	if (kind == VEZ__TICKS)
		vez__sys_tick((int)(intptr_t)to);
	else if (kind == VEZ__LISTED)
		vez__completions_add(to, r);
	else if (kind == VEZ__MEMBER)
		vez__select_decided(r);
	end_run(&run);
}

static void call(vez_request_t *r)
{
	struct run run;
	void (*done)(vez_request_t *, int, void *) = r->then_.done_;
	void *arg = r->arg_;
	int result = r->result_;
	vez__hold();
	begin_run(&run, r);
	vez__let_go();
	if (done)
		done(r, result, arg);
	vez__hold();
	end_run(&run);
	vez__let_go();
}

static void append(vez_request_t *r)
{
	r->place_[0] = NULL;
	if (mine.queue[0])
		mine.queue[1]->place_[0] = r;
	else
		mine.queue[0] = r;
	mine.queue[1] = r;
}

static vez_request_t *next_to_call(void)
{
	vez__hold();
	vez_request_t *r = mine.queue[0];
	if (r)
		mine.queue[0] = link_of(r);
	mine.calling = r != NULL;
	vez__let_go();
	return r;
}

static void call_all(void)
{
	if (mine.calling)
		return;
	for (vez_request_t *r; (r = next_to_call());)
		call(r);
}

void vez__forget_limits(vez_request_t *r)
{
	vez__inspect_decided(r);
	vez__cancel_delist(r);
	vez__alarm_unset(r);
}

static void complete(vez_request_t *latest)
{
	vez_request_t *next;
	vez__hold();
	for (vez_request_t *r = vez__oldest_first(latest); r; r = next) {
		next = link_of(r);
		vez__forget_limits(r);
		if (r->kind_ == VEZ__CALLS)
			append(r);
		else
			tell(r);
	}
	vez__let_go();
	call_all();
}

/* Leaves them to who was interrupted: here, on the same thread. */
static void leave(vez_request_t *latest)
{
	vez_request_t *oldest = latest;
	while (link_of(oldest))
		oldest = link_of(oldest);
	vez_request_t *top = vez__load(&mine.left, relaxed);
	do
		oldest->place_[0] = top;
	while (!vez__cas(&mine.left, &top, latest, acq_rel));
}

void vez__complete(vez_request_t *latest)
{
	if (mine.holding > 0)
		leave(latest);
	else
		complete(latest);
}

void vez__hold(void)
{
	vez__order_for_handlers();
	mine.holding++;
	vez__order_for_handlers();
}

void vez__let_go(void)
{
	vez__order_for_handlers();
	if (--mine.holding > 0)
		return;
	vez__order_for_handlers();
	while (VEZ__UNLIKELY(vez__load(&mine.left, relaxed) != NULL))
		complete(vez__exchange(&mine.left, NULL, acq_rel));
}

bool vez__holds(void)
{
	return mine.holding > 0;
}

void vez__enter_holding(vez_monitor_t *m)
{
	vez__hold();
	vez__monitor_enter(m);
}

void vez__exit_holding(vez_monitor_t *m)
{
	vez__monitor_exit(m);
	vez__let_go();
}

int vez__wait_holding(vez_monitor_t *m, vez_room_t *room, void *what, const struct vez__ops *ops, const void *object,
		      vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t own;
	int refused = vez__limits_refuse(deadline, cancel);
	vez__request_mine(&own, 0, cancel);
	own.ptr_ = what;
	if (!refused && !vez__request_prepare(m, room, &own, ops))
		refused = ECANCELED;
	vez__inspect_place_at(&own, object);
	if (!refused)
		vez__request_insert(&own);
	vez__exit_holding(m);
	return refused ? refused : vez__request_await(&own, deadline);
}

/* ---- waiting for it ---- */

static const struct vez__ops shard_ops = { .type = VEZ__REQUEST };
static const struct vez__ops list_ops = { .type = VEZ__COMPLETIONS };

/* Inside its shard. 0: it is complete; EINPROGRESS: it will be, when what is (*on: the request or its run) ends;
 * EINVAL: never; EDEADLK: not while this waits. */
static int status(const struct shard *s, vez_request_t *r, void **on)
{
	uint32_t seen = vez__load(&r->word_, acquire);
	struct run *run = seen & VEZ__DONE && seen & VEZ__ASYNC ? run_of(s, r) : NULL;
	*on = run ? (void *)run : (void *)r;
	if (run)
		return run->runner == vez__self() ? EDEADLK : EINPROGRESS;
	if (seen & VEZ__DONE)
		return 0;
	return seen & VEZ__ASYNC ? EINPROGRESS : EINVAL;
}

int vez_request_wait(vez_request_t *r, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct shard *s = shard_of(r);
	void *on;
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	vez__enter_holding(&s->monitor);
	int rc = status(s, r, &on);
	if (rc == EINPROGRESS)
		return vez__wait_holding(&s->monitor, &s->room, on, &shard_ops, r, deadline, cancel);
	vez__exit_holding(&s->monitor);
	return rc;
}

int vez_request_result(const vez_request_t *r)
{
	return vez__load(&r->word_, acquire) & VEZ__DONE ? r->result_ : EINPROGRESS;
}

int vez_request_cancel(vez_request_t *r)
{
	return vez__word_claim(&r->word_) && vez__request_end_claimed(r, ECANCELED) ? 0 : EALREADY;
}

/* ---- a list of completions ---- */

void vez_completions_init(vez_completions_t *l, int efd)
{
	memset(l, 0, sizeof *l);
	l->efd_ = efd;
}

static void wake_consumer(vez_completions_t *l)
{
	for (vez_request_t *r; (r = vez_room_first(&l->room_));)
		vez_monitor_settle(&l->monitor_, r, 0);
}

/* Puts r last; true if a tick is owed for it. */
static bool put_last(vez_completions_t *l, vez_request_t *r)
{
	vez__monitor_enter(&l->monitor_);
	bool ticks = !l->first_ && l->efd_ >= 0;
	r->place_[0] = NULL;
	if (l->first_)
		l->last_->place_[0] = r;
	else
		vez__store(&l->first_, r, release);
	l->last_ = r;
	l->ticking_ |= ticks;
	if (!l->ticking_)
		wake_consumer(l);
	vez__monitor_exit(&l->monitor_);
	return ticks;
}

/* The list, and the eventfd, are the consumer's to close when it has taken the last request: so it gets none before the
 * tick is written. */
void vez__completions_add(vez_completions_t *l, vez_request_t *r)
{
	int efd = l->efd_;
	if (!put_last(l, r))
		return;
	vez__sys_tick(efd);
	vez__monitor_enter(&l->monitor_);
	l->ticking_ = 0;
	wake_consumer(l);
	vez__monitor_exit(&l->monitor_);
}

vez_request_t *vez_completions_next(vez_completions_t *l)
{
	if (!vez__load(&l->first_, acquire))
		return NULL;
	vez__enter_holding(&l->monitor_);
	while (VEZ__UNLIKELY(l->ticking_)) {
		vez__wait_holding(&l->monitor_, &l->room_, NULL, &list_ops, l, VEZ_FOREVER, NULL);
		vez__enter_holding(&l->monitor_);
	}
	vez_request_t *r = l->first_;
	vez__store(&l->first_, link_of(r), relaxed);
	vez__exit_holding(&l->monitor_);
	return r;
}

int vez_completions_wait(vez_completions_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	int rc = 0;
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	while (rc == 0 && !vez__load(&l->first_, acquire)) {
		vez__enter_holding(&l->monitor_);
		if (l->first_)
			vez__exit_holding(&l->monitor_);
		else
			rc = vez__wait_holding(&l->monitor_, &l->room_, NULL, &list_ops, l, deadline, cancel);
	}
	return rc;
}

/* ---- fork ---- */

void vez__completion_forget(void)
{
	memset(shards, 0, sizeof shards);
	mine.holding--; /* that of who forks; what it held besides, the child's thread holds, too */
	mine.left = NULL;
	mine.queue[0] = NULL;
}
