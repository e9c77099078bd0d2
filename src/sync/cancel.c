/* SPDX-License-Identifier: MIT */
/*
 * Cancellation tokens.
 *
 * State
 *  arrivals_  bit 0 FIRED; the rest: a stack of requests that enlisted since the list was last put in order (links: the
 *             request's enlisted_[0]). Pushed by anybody, taken whole by the one inside the lock. Empty while FIRED.
 *  lock_      the short lock of enlisted_
 *  enlisted_  the other requests that wait with this token, oldest first
 *  parent_, children_, sibling_, hooks_   its family and the hooks that are attached, oldest first; inside kin
 *  busy_      its hooks: attached, owed by a fire, or running; inside kin
 *  timer_     when it fires by itself; inside kin
 *  signals_   how many signals fire it; inside kin (signals.c)
 *  due        the timers of all tokens; inside kin
 *  kin        one monitor for the families and hooks of all tokens; its room holds those who wait for a running hook
 *  running    the hooks that run now, each on the stack of who runs it; inside kin
 *  A fork happens inside kin, so that the child finds it in order, and takes it over.
 * Invariants
 *  T1 a request is on the stack or the list from vez__cancel_enlist until it is taken off: by the fire that is to end
 *     it, under the lock, which then clears the request's cancel_; or by its own thread after it was settled.
 *  T2 so a request seen under the lock is alive; and one that a fire took off is alive until that fire completes it.
 *  T3 the lock is innermost: nothing is entered, woken or called inside it. Enlisting takes no lock at all, so that it
 *     may happen inside a monitor. The order is: kin, then the lock of one token. While a thread is inside
 *     either it holds (completion.c): completing a request takes it off its token, and calls functions, which may fire
 *     others.
 *  T4 a hook is in exactly one list: its token's, or that of the fire that owes it; or it runs, or has run, and then
 *     only its address is used.
 *  T5 a fire marks the whole family inside kin, so that a child is fired either by it or when it is made.
 * Ordering
 *  the push in vez__cancel_enlist (release) pairs with the exchange in arrivals_take (acquire): the request's fields.
 *  the exchange to FIRED in arrivals_take (release) pairs with the loads in vez_cancel_fired and vez_cancel_clear
 *  (acquire). An enlisting and a firing meet on arrivals_: either the push comes first and the fire takes it, or it
 *  is refused.
 * Progress: enlisting is lock-free; a fire is linear in the family and the requests it ends, and each leaves its room
 *  in constant time. One fire does not wait for another's hooks.
 * Lifetime: the fire's last touch of a token without hooks is leaving its lock; then it ends the requests, one by one.
 *  A wait that it ended does not touch the token again (cancel_ is clear), so the token may go as soon as that wait
 *  returns. A token with hooks stays until the last has run (busy_). A wait that is refused because the token is fired
 *  may return while the fire is inside: destroy, and the exit of the thread that owns the token, pass through kin.
 * Sources: the linked-list stack of R. K. Treiber (1986), here only ever emptied whole; the token: cooperative
 *  cancellation as in Java's interruption and .NET's CancellationToken.
 */
#include "cancel.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <urcu/list.h>

#include "../futex/self.h"
#include "../futex/sys.h"
#include "agenda.h"
#include "alarm.h"
#include "completion.h"
#include "constraint.h"
#include "engine.h"
#include "inspect.h"
#include "signals.h"

#define FIRED ((uintptr_t)1)

static struct cds_list_head *list_of(vez_cancel_t *c)
{
	struct cds_list_head *list = (struct cds_list_head *)c->enlisted_;
	if (!list->next)
		CDS_INIT_LIST_HEAD(list);
	return list;
}

static struct cds_list_head *link_of(vez_request_t *r)
{
	return (struct cds_list_head *)r->enlisted_;
}

static vez_request_t *request_at(struct cds_list_head *link)
{
	return (vez_request_t *)((char *)link - offsetof(vez_request_t, enlisted_));
}

static void lock(vez_cancel_t *c)
{
	vez__hold();
	vez__lock_enter(&c->lock_);
}

static void unlock(vez_cancel_t *c)
{
	vez__lock_exit(&c->lock_);
	vez__let_go();
}

bool vez__cancel_enlist(vez_request_t *r)
{
	vez_cancel_t *c = r->cancel_;
	uintptr_t top = vez__load(&c->arrivals_, relaxed);
	do {
		if (top & FIRED) {
			vez_cancel_fired(c); /* acquires */
			return false;
		}
		r->enlisted_[0] = (void *)top;
	} while (!vez__cas(&c->arrivals_, &top, (uintptr_t)r, release));
	return true;
}

/* Inside the lock: moves the arrivals to the end of the list, oldest first, and leaves mark in their place. Says
 * whether the token was fired before. */
static bool arrivals_take(vez_cancel_t *c, uintptr_t mark)
{
	uintptr_t top = vez__exchange(&c->arrivals_, mark, acq_rel);
	struct cds_list_head *end = list_of(c)->prev;
	vez_request_t *r = (vez_request_t *)(top & ~FIRED);
	while (r) {
		vez_request_t *older = r->enlisted_[0];
		cds_list_add(link_of(r), end);
		r = older;
	}
	return top & FIRED;
}

void vez__cancel_delist(vez_request_t *r)
{
	vez_cancel_t *c = r->cancel_;
	if (!c)
		return;
	lock(c);
	if (vez__load(&c->arrivals_, relaxed) & ~FIRED)
		arrivals_take(c, 0);
	cds_list_del(link_of(r));
	unlock(c);
}

/* Inside the lock: takes off the list every request that is for this fire to end. */
static void claim_all(vez_cancel_t *c, struct cds_list_head *claimed)
{
	struct cds_list_head *link, *next;
	cds_list_for_each_safe(link, next, list_of(c)) {
		vez_request_t *r = request_at(link);
		uint32_t before = vez__fetch_or(&r->word_, VEZ__FIRED, relaxed);
		if (before & (VEZ__SETTLED | VEZ__FIRED | VEZ__DONE | VEZ__DEAF))
			continue;
		r->cancel_ = NULL;
		cds_list_del(link);
		cds_list_add_tail(link, claimed);
	}
}

/* ---- families and hooks ---- */

static vez_monitor_t kin = VEZ_MONITOR_INITIALIZER(NULL);
static vez_room_t detaching = VEZ_ROOM_INITIALIZER;
static struct vez__agenda due;

/* A hook that runs. renewed: it was attached anew since it began, so that it is the caller's memory that is
 * looked at. */
struct run {
	struct run *next;
	const vez_cancel_hook_t *hook;
	uint64_t runner;
	bool renewed;
};
static struct run *running;

static struct cds_list_head *as_list(void **links)
{
	struct cds_list_head *list = (struct cds_list_head *)links;
	if (!list->next)
		CDS_INIT_LIST_HEAD(list);
	return list;
}

static struct vez_cancel *token_at(struct cds_list_head *sibling)
{
	return (vez_cancel_t *)((char *)sibling - offsetof(vez_cancel_t, sibling_));
}

static vez_cancel_hook_t *hook_at(struct cds_list_head *link)
{
	return (vez_cancel_hook_t *)((char *)link - offsetof(vez_cancel_hook_t, link_));
}

static void adopt(vez_cancel_t *parent, vez_cancel_t *child)
{
	child->parent_ = parent;
	cds_list_add_tail((struct cds_list_head *)child->sibling_, as_list(parent->children_));
}

/* The next of root's family after c, parents before children; NULL: that was the last. */
static vez_cancel_t *next_of_family(vez_cancel_t *root, vez_cancel_t *c)
{
	struct cds_list_head *children = as_list(c->children_);
	if (!cds_list_empty(children))
		return token_at(children->next);
	for (; c != root; c = c->parent_) {
		struct cds_list_head *next = ((struct cds_list_head *)c->sibling_)->next;
		if (next != as_list(c->parent_->children_))
			return token_at(next);
	}
	return NULL;
}

/* What a fire has marked, and now has to do. */
struct fire {
	struct cds_list_head waits;
	struct cds_list_head hooks;
};

/* Inside kin. */
static void mark(vez_cancel_t *c, struct fire *fire)
{
	lock(c);
	bool fired = arrivals_take(c, FIRED);
	if (!fired)
		claim_all(c, &fire->waits);
	unlock(c);
	if (!fired) {
		struct cds_list_head *hooks = as_list(c->hooks_);
		cds_list_splice(hooks, fire->hooks.prev);
		CDS_INIT_LIST_HEAD(hooks);
	}
}

static vez_request_t *waits_for(const vez_cancel_hook_t *hook)
{
	vez_request_t *r = vez_room_first(&detaching);
	while (r && vez_request_ptr(r) != hook)
		r = vez_room_next(&detaching, r);
	return r;
}

/* Inside kin: the hook of this run has returned. */
static void end_run(struct run *run, vez_cancel_t *c)
{
	struct run **link = &running;
	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	c->busy_--;
	for (vez_request_t *r; (r = waits_for(run->hook));)
		vez_monitor_settle(&kin, r, 0);
}

/* Inside kin, which it leaves meanwhile: runs a hook that is in no list any more. */
static void run_hook(vez_cancel_t *c, vez_cancel_hook_t *h)
{
	void (*fn)(void *) = h->fn_;
	void *arg = h->arg_;
	struct run run = { running, h, vez__self(), false };
	h->token_ = NULL;
	running = &run;
	vez__exit_holding(&kin);
	fn(arg);
	vez__enter_holding(&kin);
	end_run(&run, c);
}

static void run_hooks(struct fire *fire)
{
	vez__enter_holding(&kin);
	while (!cds_list_empty(&fire->hooks)) {
		vez_cancel_hook_t *h = hook_at(fire->hooks.next);
		cds_list_del((struct cds_list_head *)h->link_);
		run_hook(h->token_, h);
	}
	vez__exit_holding(&kin);
}

/* Inside kin, which it leaves: fires the token and its family. */
static void fire_and_exit(vez_cancel_t *c)
{
	struct cds_list_head *link, *next;
	struct fire fire;
	if (vez_cancel_fired(c)) {
		vez__exit_holding(&kin);
		return;
	}
	CDS_INIT_LIST_HEAD(&fire.waits);
	CDS_INIT_LIST_HEAD(&fire.hooks);
	for (vez_cancel_t *t = c; t; t = next_of_family(c, t))
		mark(t, &fire);
	/* Looked at inside: who detaches a hook from this list is inside, too, and done with it when run_hooks
	 * has been. */
	bool owes_hooks = !cds_list_empty(&fire.hooks);
	vez__exit_holding(&kin);
	cds_list_for_each_safe(link, next, &fire.waits)
		vez__request_cancel_fired(request_at(link));
	if (owes_hooks)
		run_hooks(&fire);
}

void vez_cancel_fire(vez_cancel_t *c)
{
	if (vez_cancel_fired(c))
		return;
	vez__enter_holding(&kin);
	fire_and_exit(c);
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

void vez_cancel_fire_at(vez_cancel_t *c, vez_deadline_t deadline)
{
	bool now = vez__deadline_passed(deadline);
	if (deadline != VEZ_FOREVER && !now)
		vez__alarm_start(); /* if it cannot be made, its next user will try again */
	vez__enter_holding(&kin);
	forget_moment(c);
	if (now) {
		fire_and_exit(c);
		return;
	}
	vez__timer_to(&c->timer_, deadline);
	if (deadline != VEZ_FOREVER) {
		vez__agenda_set(&due, &c->timer_);
		vez__alarm_at(deadline);
	}
	vez__exit_holding(&kin);
	vez__alarm_tell();
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
	int64_t now = vez__sys_now();
	vez_cancel_t *c;
	vez__enter_holding(&kin);
	while ((c = take_due(now))) {
		fire_and_exit(c);
		vez__enter_holding(&kin);
	}
	vez_deadline_t next = vez__agenda_next(&due);
	vez__exit_holding(&kin);
	return next;
}

void vez__cancel_fire_of(vez_cancel_t *(*of)(int), int arg)
{
	vez__enter_holding(&kin);
	vez_cancel_t *c = of(arg);
	if (c)
		fire_and_exit(c);
	else
		vez__exit_holding(&kin);
}

void vez__cancel_enter(void)
{
	vez__enter_holding(&kin);
}

void vez__cancel_exit(void)
{
	vez__exit_holding(&kin);
}

/* ---- hooks ---- */

/* Inside kin: the address is that of another attachment now. */
static void renew_runs(const vez_cancel_hook_t *h)
{
	for (struct run *run = running; run; run = run->next)
		if (run->hook == h)
			run->renewed = true;
}

int vez_cancel_attach(vez_cancel_t *c, vez_cancel_hook_t *h, void (*fn)(void *), void *arg)
{
	vez__enter_holding(&kin);
	bool fired = vez_cancel_fired(c);
	renew_runs(h);
	h->fn_ = fn;
	h->arg_ = arg;
	h->token_ = c;
	c->busy_++;
	if (fired)
		run_hook(c, h);
	else
		cds_list_add_tail((struct cds_list_head *)h->link_, as_list(c->hooks_));
	vez__exit_holding(&kin);
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
	cds_list_del((struct cds_list_head *)h->link_);
	h->token_ = NULL;
	c->busy_--;
	return true;
}

int vez_cancel_try_detach(vez_cancel_t *c, vez_cancel_hook_t *h)
{
	vez__enter_holding(&kin);
	bool taken = take_off(c, h);
	vez__exit_holding(&kin);
	return taken ? 0 : EALREADY;
}

static const struct vez__ops kin_ops = { .type = VEZ__CANCEL };

int vez_cancel_detach(vez_cancel_t *c, vez_cancel_hook_t *h)
{
	vez__enter_holding(&kin);
	bool taken = take_off(c, h);
	while (run_of(h, vez__self())) {
		vez__wait_holding(&kin, &detaching, h, &kin_ops, h, VEZ_FOREVER, NULL);
		vez__enter_holding(&kin);
	}
	vez__exit_holding(&kin);
	return taken ? 0 : EALREADY;
}

/* Inside kin: whether a request is enlisted. */
static bool has_waits(vez_cancel_t *c)
{
	lock(c);
	bool has = (vez__load(&c->arrivals_, relaxed) & ~FIRED) || !cds_list_empty(list_of(c));
	unlock(c);
	return has;
}

static void leave_family(vez_cancel_t *c)
{
	struct cds_list_head *link, *next;
	cds_list_for_each_safe(link, next, as_list(c->children_)) {
		vez_cancel_t *child = token_at(link);
		cds_list_del(link);
		child->parent_ = NULL;
		if (c->parent_)
			adopt(c->parent_, child);
	}
	if (c->parent_)
		cds_list_del((struct cds_list_head *)c->sibling_);
	c->parent_ = NULL;
}

int vez_cancel_destroy(vez_cancel_t *c)
{
	vez__enter_holding(&kin);
	bool used = c->busy_ > 0 || has_waits(c);
	bool signalled = !used && c->signals_ > 0;
	if (!used) {
		leave_family(c);
		forget_moment(c);
	}
	vez__exit_holding(&kin);
	if (signalled)
		vez__signals_unbind(c);
	return used ? EBUSY : 0;
}

int vez_cancel_init_child(vez_cancel_t *child, vez_cancel_t *parent)
{
	vez_cancel_init(child);
	vez__enter_holding(&kin);
	adopt(parent, child);
	if (vez_cancel_fired(parent))
		child->arrivals_ = FIRED;
	vez__exit_holding(&kin);
	return 0;
}

/* ---- the flag ---- */

bool vez_cancel_fired(const vez_cancel_t *c)
{
	return vez__load(&c->arrivals_, acquire) & FIRED;
}

bool vez_cancel_clear(vez_cancel_t *c)
{
	return vez__fetch_and(&c->arrivals_, ~FIRED, acq_rel) & FIRED;
}

void vez_cancel_init(vez_cancel_t *c)
{
	memset(c, 0, sizeof *c);
}

/* ---- fork ---- */

/* The child has one thread: who waited for a hook, or ran one, is not there, and kin must not be left to one
 * of them. */
static void in_child(void)
{
	uint64_t self = vez__self();
	vez_cancel_t *c;
	vez__inspect_in_child();
	vez__completion_forget();
	vez__alarm_forget();
	vez_monitor_init(&kin, NULL);
	vez_room_init(&detaching);
	while ((c = take_due(VEZ_FOREVER))) {
	}
	memset(&due, 0, sizeof due);
	vez__signals_forget();
	vez__constraint_forget();
	for (struct run **link = &running; *link;)
		if ((*link)->runner == self)
			link = &(*link)->next;
		else
			*link = (*link)->next;
}

static void before_fork(void)
{
	vez__enter_holding(&kin);
}

static void in_parent(void)
{
	vez__exit_holding(&kin);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- a thread's own token ---- */

static pthread_key_t exits;

/* The thread exits: who fired its token may still be inside kin. */
static void at_exit(void *token)
{
	vez_cancel_t *c = token;
	vez__enter_holding(&kin);
	leave_family(c);
	forget_moment(c);
	bool signalled = c->signals_ > 0;
	vez__exit_holding(&kin);
	if (signalled)
		vez__signals_unbind(c);
}

static bool can_watch;

static void make_key(void)
{
	can_watch = pthread_key_create(&exits, at_exit) == 0;
}

vez_cancel_t *vez_cancel_self(void)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;
	static __thread vez_cancel_t self;
	static __thread bool known;
	if (VEZ__UNLIKELY(!known)) {
		pthread_once(&made, make_key);
		known = can_watch && pthread_setspecific(exits, &self) == 0;
	}
	return &self;
}

bool vez__deadline_passed(vez_deadline_t deadline)
{
	return deadline != VEZ_FOREVER && (deadline <= 0 || vez__sys_now() >= deadline);
}

int vez__limits_refuse(vez_deadline_t deadline, const vez_cancel_t *cancel)
{
	if (cancel && vez_cancel_fired(cancel))
		return ECANCELED;
	return vez__deadline_passed(deadline) ? ETIMEDOUT : 0;
}
