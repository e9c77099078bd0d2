/* SPDX-License-Identifier: MIT */
/*
 * Cancellation tokens: their families, hooks and moments, and how they fire.
 *
 * State
 *  arrivals_, lock_, enlisted_  token.c
 *  parent_, children_, sibling_, hooks_   its family and the hooks that are attached, rings, oldest first; inside kin
 *  busy_      its hooks: attached, taken over by a fire, or running; inside kin
 *  timer_     when it fires by itself; inside kin
 *  signals_   how many signals fire it; inside kin (signals.c)
 *  due        the timers of all tokens; inside kin
 *  kin        one core for the families and hooks of all tokens; its queue holds those who wait for a running hook
 *  running    the hooks that run now, each on the stack of the thread that runs it; inside kin
 *  A fork happens inside kin, so that the child finds it in order, and takes it over.
 * Invariants
 *  T4 a hook is in exactly one ring: its token's, or that of the fire that is to run it; or it runs, or has run, and
 *     then only its address is used.
 *  T5 a fire marks the whole family inside kin, so that a child is fired either by it or when it is made.
 *  T6 kin is entered before the lock of a token, and whoever is inside kin holds (hold.h): completing a request takes
 *     it off its token, and calls functions, which may fire others.
 * Progress: a fire is linear in the family and the requests it ends, and each leaves its queue in constant time (as
 *  what has a token has no jump: room.c). One fire does not wait for another's hooks.
 * Lifetime: the fire's last touch of a token without hooks is leaving its lock; then it ends the requests, one by one.
 *  A wait that it ended does not touch the token again (cancel_ is clear), so the token may go as soon as that wait
 *  returns. A token with hooks stays until the last has run (busy_). A wait that is refused because the token is fired
 *  may return while the fire is inside: destroy, and the exit of the thread that owns the token, pass through kin.
 * Sources: token.c.
 */
#include "cancel.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "../futex/foreign.h"
#include "../futex/fork.h"
#include "../futex/self.h"
#include "../futex/sys.h"
#include "alarm.h"
#include "await.h"
#include "clock.h"
#include "ring.h"
#include "signals.h"
#include "token.h"

static struct {
	struct vez__core core;
	vez_request_t *detaching;
} kin;
static struct vez__agenda due;

/* A hook that runs, and as what it was attached. renewed: it was attached anew since it began, so that it is the
 * caller's memory that is looked at. */
struct run {
	struct run *next;
	const vez_cancel_hook_t *hook;
	const vez_cancel_t *token;
	void (*fn)(void *arg);
	void *arg;
	uint64_t runner;
	bool renewed;
};
static struct run *running;

static const struct vez__rules kin_rules = { .type = VEZ__CANCEL, .queue = sizeof(struct vez__core) };

/* ---- families ---- */

static vez_cancel_t *token_at(void *sibling)
{
	return (vez_cancel_t *)((char *)sibling - offsetof(vez_cancel_t, sibling_));
}

static void adopt(vez_cancel_t *parent, vez_cancel_t *child)
{
	child->parent_ = parent;
	vez__ring_append(&parent->children_, child->sibling_);
}

/* The next of root's family after c, parents before children; NULL: that was the last. */
static vez_cancel_t *next_of_family(vez_cancel_t *root, vez_cancel_t *c)
{
	if (c->children_)
		return token_at(c->children_);
	for (; c != root; c = c->parent_)
		if (c->sibling_[0] != c->parent_->children_)
			return token_at(c->sibling_[0]);
	return NULL;
}

static void leave_family(vez_cancel_t *c)
{
	for (void *sibling; (sibling = vez__ring_take(&c->children_));) {
		vez_cancel_t *child = token_at(sibling);
		child->parent_ = NULL;
		if (c->parent_)
			adopt(c->parent_, child);
	}
	if (c->parent_)
		vez__ring_remove(&c->parent_->children_, c->sibling_);
	c->parent_ = NULL;
}

/* ---- firing ---- */

/* What a fire has marked, and now has to do. Its hooks are behind a link of its own, so that any of them can be
 * detached without knowing where the ring is kept. */
struct fire {
	void *waits;
	struct cds_list_head hooks;
};

/* Inside kin: takes over what waits with the token, and its hooks. */
static void mark(vez_cancel_t *c, struct fire *fire)
{
	void *hooks = &fire->hooks;
	if (vez__token_mark(c, &fire->waits))
		vez__ring_append_all(&hooks, &c->hooks_);
}

/* Inside kin: the hook of this run has returned. */
static void end_run(struct vez__stay *in, struct run *run, vez_cancel_t *c)
{
	vez_request_t *next;
	struct run **link = &running;
	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	c->busy_--;
	for (vez_request_t *r = kin.detaching; r; r = next) {
		next = vez__queue_next(kin.detaching, r);
		if (r->with_.ptr_ == run->hook)
			vez__settle(in, r, 0);
	}
}

/* Inside kin, which it leaves meanwhile: runs a hook that is in no ring any more. */
static void run_hook(struct vez__stay *in, vez_cancel_t *c, vez_cancel_hook_t *h)
{
	struct run run = { running, h, c, h->fn_, h->arg_, vez__self(), false };
	h->token_ = NULL;
	running = &run;
	vez__leave_holding(in);
	VEZ__FOREIGN(run.fn(run.arg));
	vez__enter_holding(in, &kin.core);
	end_run(in, &run, c);
}

static void run_hooks(struct fire *fire)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	while (!cds_list_empty(&fire->hooks)) {
		vez_cancel_hook_t *h = (vez_cancel_hook_t *)fire->hooks.next;
		cds_list_del(fire->hooks.next);
		run_hook(&in, h->token_, h);
	}
	vez__leave_holding(&in);
}

/* Ends the requests of a ring that a fire has claimed. They are one call's. */
static void end_all(void *waits)
{
	vez__calls_begin();
	for (void *link; (link = vez__ring_take(waits));)
		vez__end_fired(vez__enlisted_at(link));
	vez__calls_end();
}

/* Inside kin, which it leaves: fires the token and its family. */
static void fire_and_leave(struct vez__stay *in, vez_cancel_t *c)
{
	struct fire fire = { .waits = NULL };
	if (vez_cancel_fired(c)) {
		vez__leave_holding(in);
		return;
	}
	CDS_INIT_LIST_HEAD(&fire.hooks);
	for (vez_cancel_t *t = c; t; t = next_of_family(c, t))
		mark(t, &fire);
	/* Looked at inside: a thread that detaches a hook from this ring is inside, too, and done with it when
	 * run_hooks has been. */
	bool has_hooks = !cds_list_empty(&fire.hooks);
	vez__leave_holding(in);
	end_all(&fire.waits);
	if (has_hooks)
		run_hooks(&fire);
}

void vez_cancel_fire(vez_cancel_t *c)
{
	struct vez__stay in;
	if (vez_cancel_fired(c))
		return;
	vez__enter_holding(&in, &kin.core);
	fire_and_leave(&in, c);
}

/* ---- a thread's own token ---- */

static pthread_key_t exits;
static bool can_watch;

/* known: at_exit is registered for this token; rounds: how many rounds of destructors have run; over: no further one
 * will see it, so that nothing may lead to it any more. */
static __thread struct {
	vez_cancel_t token;
	bool known;
	bool over;
	int rounds;
} mine;

bool vez__cancel_is_over(const vez_cancel_t *c)
{
	return c == &mine.token && mine.over;
}

/* ---- moments and signals ---- */

/* Inside kin. */
static void forget_moment(vez_cancel_t *c)
{
	if (!vez__timer_is_set(&c->timer_))
		return;
	vez__agenda_unset(&c->timer_);
	vez__timer_to(&c->timer_, VEZ_FOREVER);
}

int vez_cancel_fire_at(vez_cancel_t *c, vez_deadline_t deadline)
{
	struct vez__stay in;
	bool now = vez__deadline_passed(deadline);
	bool later = deadline != VEZ_FOREVER && !now;
	if (later && (vez__cancel_is_over(c) || vez__clock_start() != 0))
		return EAGAIN;
	vez__enter_holding(&in, &kin.core);
	forget_moment(c);
	if (now) {
		fire_and_leave(&in, c);
		return 0;
	}
	vez__timer_to(&c->timer_, deadline);
	if (later) {
		vez__agenda_set(&due, &c->timer_);
		vez__alarm_at(deadline);
	}
	vez__leave_holding(&in);
	vez__alarm_tell();
	return 0;
}

static vez_cancel_t *take_due(int64_t now)
{
	struct vez__timer *t = vez__agenda_due(&due, now);
	if (!t)
		return NULL;
	vez__timer_to(t, VEZ_FOREVER);
	return (vez_cancel_t *)((char *)t - offsetof(vez_cancel_t, timer_));
}

vez_deadline_t vez__cancel_fire_due(void)
{
	struct vez__stay in;
	int64_t now = vez__sys_now();
	vez_cancel_t *c;
	vez__enter_holding(&in, &kin.core);
	while ((c = take_due(now))) {
		fire_and_leave(&in, c);
		vez__enter_holding(&in, &kin.core);
	}
	vez_deadline_t next = vez__agenda_next(&due);
	vez__leave_holding(&in);
	return next;
}

void vez__cancel_fire_of(vez_cancel_t *(*of)(int), int arg)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	vez_cancel_t *c = of(arg);
	if (c)
		fire_and_leave(&in, c);
	else
		vez__leave_holding(&in);
}

void vez__cancel_bind(vez_cancel_t **place, vez_cancel_t *c)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	if (*place)
		(*place)->signals_--;
	*place = c;
	if (c)
		c->signals_++;
	vez__leave_holding(&in);
}

/* ---- hooks ---- */

/* Inside kin: the address is that of another attachment now. */
static void renew_runs(const vez_cancel_hook_t *h)
{
	for (struct run *run = running; run; run = run->next)
		if (run->hook == h)
			run->renewed = true;
}

/* Inside kin: whether this call comes from inside what it would call, at any depth; calling it would have no end. */
static bool runs_already(const vez_cancel_t *c, const vez_cancel_hook_t *h, void (*fn)(void *), const void *arg)
{
	uint64_t self = vez__self();
	const struct run *run = running;
	while (run && !(run->runner == self && run->hook == h && run->token == c && run->fn == fn && run->arg == arg))
		run = run->next;
	return run;
}

int vez_cancel_attach(vez_cancel_t *c, vez_cancel_hook_t *h, void (*fn)(void *), void *arg)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	bool fired = vez_cancel_fired(c);
	if (fired && runs_already(c, h, fn, arg)) {
		vez__leave_holding(&in);
		return EALREADY;
	}
	renew_runs(h);
	h->fn_ = fn;
	h->arg_ = arg;
	h->token_ = c;
	c->busy_++;
	if (fired)
		run_hook(&in, c, h);
	else
		vez__ring_append(&c->hooks_, h->link_);
	vez__leave_holding(&in);
	return fired ? EALREADY : 0;
}

/* Inside kin: a run of h, the latest; not by this thread: of another one. */
static struct run *run_of(const vez_cancel_hook_t *h, uint64_t not_by)
{
	struct run *run = running;
	while (run && (run->hook != h || run->runner == not_by))
		run = run->next;
	return run;
}

/* Inside kin: whether h was attached, and is no more. A hook that runs may be gone: only its address is used. */
static bool take_off(vez_cancel_t *c, vez_cancel_hook_t *h)
{
	const struct run *run = run_of(h, 0);
	if ((run && !run->renewed) || h->token_ != c)
		return false;
	vez__ring_remove(&c->hooks_, h->link_); /* also where it is in the ring of a fire, not as the first */
	h->token_ = NULL;
	c->busy_--;
	return true;
}

int vez_cancel_try_detach(vez_cancel_t *c, vez_cancel_hook_t *h)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	bool taken = take_off(c, h);
	vez__leave_holding(&in);
	return taken ? 0 : EALREADY;
}

int vez_cancel_detach(vez_cancel_t *c, vez_cancel_hook_t *h)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	bool taken = take_off(c, h);
	while (run_of(h, vez__self())) {
		vez__wait_holding(&in, &kin_rules, h, h, VEZ_FOREVER, NULL);
		vez__enter_holding(&in, &kin.core);
	}
	vez__leave_holding(&in);
	return taken ? 0 : EALREADY;
}

/* ---- a token's life ---- */

void vez_cancel_init(vez_cancel_t *c)
{
	memset(c, 0, sizeof *c);
}

int vez_cancel_init_child(vez_cancel_t *child, vez_cancel_t *parent)
{
	struct vez__stay in;
	vez_cancel_init(child);
	vez__enter_holding(&in, &kin.core);
	if (!vez__cancel_is_over(parent))
		adopt(parent, child);
	if (vez_cancel_fired(parent))
		vez__token_make_fired(child);
	vez__leave_holding(&in);
	return 0;
}

/* Inside kin: nothing of the library's leads to the token any more, but for signals: true if there are some. */
static bool forget(vez_cancel_t *c)
{
	leave_family(c);
	forget_moment(c);
	return c->signals_ > 0;
}

int vez_cancel_destroy(vez_cancel_t *c)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
	bool used = c->busy_ > 0 || vez__token_has_waits(c);
	bool signalled = !used && forget(c);
	vez__leave_holding(&in);
	if (signalled)
		vez__signals_unbind(c, true);
	return used ? EBUSY : 0;
}

/* ---- the end of a thread's own token ---- */

/* How often the C library runs destructors. ThreadSanitizer's own comes before ours in the last of these rounds, and no
 * atomic access may be made after it. */
#ifdef VEZ__TSAN
#define LAST_ROUND (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
#else
#define LAST_ROUND PTHREAD_DESTRUCTOR_ITERATIONS
#endif

static bool has_waits(vez_cancel_t *c)
{
	vez__hold();
	bool has = vez__token_has_waits(c);
	vez__let_go();
	return has;
}

/* Fires a token that is about to go, but for its hooks and children: what waits with it ends. */
static void fire_alone(vez_cancel_t *c)
{
	void *waits = NULL;
	vez__hold();
	vez__token_mark(c, &waits);
	vez__let_go();
	end_all(&waits);
}

/* Ends the requests that still wait with a token that is about to go, and waits until those that others are ending have
 * been taken off it. */
static void end_waits(vez_cancel_t *c)
{
	if (!has_waits(c))
		return;
	fire_alone(c);
	while (has_waits(c))
		vez__sys_yield();
}

/* The thread exits: a thread that fired its token may still be inside kin. Destructors of others that run later may use
 * the token again, and those that do have it seen again, as often as the C library runs them. */
static void at_exit(void *token)
{
	struct vez__stay in;
	vez_cancel_t *c = token;
	mine.over = ++mine.rounds >= LAST_ROUND || pthread_setspecific(exits, token) != 0;
	vez__enter_holding(&in, &kin.core);
	bool signalled = forget(c);
	vez__leave_holding(&in);
	if (signalled)
		vez__signals_unbind(c, false);
	end_waits(c);
	mine.known = !mine.over;
}

static void make_key(void)
{
	can_watch = pthread_key_create(&exits, at_exit) == 0;
}

/* Also of a destructor after the last one that sees the token: what is to wait with it is refused. */
static VEZ__COLD void meet_own(void)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;
	pthread_once(&made, make_key);
	if (mine.over)
		fire_alone(&mine.token);
	else
		mine.known = can_watch && pthread_setspecific(exits, &mine.token) == 0;
}

vez_cancel_t *vez_cancel_self(void)
{
	if (VEZ__UNLIKELY(!mine.known))
		meet_own();
	return &mine.token;
}

/* ---- fork ---- */

static void before_fork(void)
{
	struct vez__stay in;
	vez__enter_holding(&in, &kin.core);
}

static void in_parent(void)
{
	struct vez__stay in;
	vez__entered(&in, &kin.core);
	vez__leave_holding(&in);
}

/* Who waited for a hook, or ran one, is not there, and kin must not be left to one of them. */
static void in_child(void)
{
	uint64_t self = vez__self();
	memset(&kin, 0, sizeof kin);
	vez__hold_forget(); /* before_fork began to */
	while (take_due(VEZ_FOREVER)) {
	}
	memset(&due, 0, sizeof due);
	for (struct run **link = &running; *link;)
		if ((*link)->runner == self)
			link = &(*link)->next;
		else
			*link = (*link)->next;
}

VEZ__AT_FORK(before_fork, in_parent, in_child)
