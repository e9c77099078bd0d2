/* SPDX-License-Identifier: MIT */
/*
 * Objects whose operations are constrained, triggered and synchronized from outside.
 *
 * State
 *  object  lock_         futex/lock.h; its gate: whoever runs an operation on it, or moves it to another domain
 *          domain_       NULL: it is alone. Else the synchronizer whose lock_ its operations take besides. Written
 *                        while relating, with its gate; read with either
 *          constraints_, triggers_  rules, in order; inside
 *          related_      in how many places synchronizers name it; with its gate
 *          parent_       the synchronizer over which it hangs in its group's tree; NULL: it is the root. While relating
 *          children_     the synchronizers that hang on it. While relating
 *          ties_         as related_, but without one that is being taken down. While relating
 *          found_        the next in a part of a tree that is being walked, the last names itself; NULL: it is in none.
 *                        While relating
 *          core_, queue_  the calls that wait, in order: a request's pointer is the operation, its value the argument,
 *                        its key the ticket
 *          entered_      link in the objects whose cores whoever is inside has entered
 *          awaited_      whether it is in its domain's list of those where calls may wait, by next_awaited_; inside
 *  synchronizer  lock_   if it is a domain: whoever is inside
 *          awaited_      if it is a domain: its objects where calls wait, and some where they did; inside
 *          size_         if it is a domain: how many objects it has. While relating
 *          parent_       the object on which it hangs, one of its own; next_, link_: among those that hang there. While
 *                        relating
 *          found_        as an object's
 *  tickets               of all calls that ever waited: their order
 *  relating              one at a time changes domains and trees
 *  inside, of each thread  it runs bodies, guards and triggers
 *
 *  "Inside" an object: with its gate; and with its domain's lock, if it has one. "The group": the object, or all that
 *  have its domain.
 * Invariants
 *  R1 locks are taken in this order: relating, gates (several only while relating), one domain's lock, cores of the
 *     group. Nobody who holds any of them waits for anything else, but for bodies; and while a body runs neither a core
 *     nor relating is held. Calls that were let go are published when all of them have been left.
 *  R2 a domain is a synchronizer one of whose own objects is in it: so it is there as long as an object's domain_ names
 *     it, and its destruction moves them first.
 *  R3 with nobody inside, no call that waits in the group can run (of a serial object: its first), but one that
 *     somebody is entering to end; or one behind a serial object's first, which has just given up, and whose thread is
 *     about to see to it.
 *  R4 a call joins its object's queue from inside. It leaves by being taken (settled, from inside: its limits apply no
 *     more), and then its body runs before it returns; or by itself, if somebody is entering because of a limit.
 *  R5 objects move to another domain with the gates of all that move, which keeps out whoever comes by one of them; and
 *     through the old domain's lock, which lets out whoever came by another object and runs what waits on one of them.
 *     They are taken out of, and put into, a domain's list inside that domain, as others may go through it there. All
 *     that a synchronizer relates move together.
 *  R6 with nobody relating, each group is one tree: its objects and synchronizers, each but the root hanging on one
 *     that it is related to: an object over a synchronizer that names it, a synchronizer on an object of its own.
 *     What else a synchronizer names makes circles, and is no edge.
 * Relating
 *  joining: the largest group stays, the others move to its domain, and their trees are hung on it. So who builds a
 *  group of n objects moves n log n of them at most; one by one, n.
 *  parting: without a synchronizer its tree is as many trees as it had edges. Two of them at a time are walked by
 *  turns, up to the end of the smaller one. Of that all names are known then. Either one of its synchronizers names an
 *  object elsewhere; or its objects are named more often than by its own, so that others name one, and these are looked
 *  for in all the other trees: in both cases it is hung there. Or it has become a group of its own, and moves to a
 *  domain of its own. So taking down a group without circles costs n log n at most, in whatever order, if no calls
 *  wait: each part that moves is taken out of its domain's list of those where they do, which is walked. Opening a
 *  circle costs as much as the smaller part or, where that is named from outside only, as the group, for each such
 *  part. If the domain is in the part that moves, the other one moves instead; so it does if the domain goes. That was
 *  drawn by lot among the synchronizers of its group (by a hash of the address), or had its group grow since: so it is
 *  rare.
 * Ordering
 *  everything above is ordered by the locks (lock.c: leaving releases, entering acquires). What a body did, for the
 *  caller: publication (word.c).
 * Progress and fairness
 *  FIFO by ticket among the calls of a group that can run; one that can run when it comes does not queue. The number of
 *  bodies that a thread runs for others is bounded by the calls that wait when it enters. Who relates waits for the
 *  operations that run in the groups concerned, and for others who relate.
 * Lifetime
 *  A thread inside touches objects of its group only: they are there, as destroy takes the gate, and none that a
 *  synchronizer relates can be destroyed. Leaving the gate is the last touch of the object; the calls that were let go
 *  return after that. Who relates touches objects of the groups concerned, none of which can be destroyed before
 *  related_ is 0; those that a synchronizer names, when that goes, last of all by leaving the gate with which it
 *  counted them.
 * fork: the child's only thread is relating nothing.
 * Sources: include/vez/constraint.h.
 */
#include "vez/constraint.h"

#include <string.h>

#include "../engine/filing.h"
#include "../futex/foreign.h"
#include "../futex/fork.h"
#include "../futex/stack.h"

typedef struct vez__rule rule_t;

static uint64_t relating;
static uint64_t tickets;
static __thread bool inside __attribute__((tls_model("initial-exec")));

/* Who gives up was in nobody's way, but on a serial object (serve_those_behind). */
static const struct vez__rules object_rules = {
	.type = VEZ__CONSTRAINT, .object = offsetof(vez_object_t, core_),
	.queue = offsetof(vez_object_t, queue_) - offsetof(vez_object_t, core_),
};

/* ---- inside ---- */

static void enter(vez_object_t *o)
{
	vez__hold(); /* what bodies complete is called when all is left */
	vez__lock_enter(&o->lock_);
	if (o->domain_)
		vez__lock_enter(&o->domain_->lock_);
	inside = true;
}

static void leave_locks(vez_object_t *o)
{
	inside = false;
	if (o->domain_)
		vez__lock_exit(&o->domain_->lock_);
	vez__lock_exit(&o->lock_);
}

/* Leaves; then the calls that were let go return. */
static void leave(vez_object_t *o, struct vez__pending *pending)
{
	leave_locks(o);
	vez__publish(pending);
	vez__let_go();
}

static bool is_awaited(const vez_object_t *o)
{
	return vez__load(&o->core_.length_, relaxed) > 0;
}

/* ---- the objects of the group on which calls wait ---- */

static void note_awaited(vez_object_t *o)
{
	if (!o->domain_ || o->awaited_)
		return;
	o->awaited_ = true;
	o->next_awaited_ = o->domain_->awaited_;
	o->domain_->awaited_ = o;
}

/* The first of the list, of which those are taken off where nobody waits any more. */
static vez_object_t *first_awaited(vez_object_t **list)
{
	while (*list && !is_awaited(*list)) {
		(*list)->awaited_ = false;
		*list = (*list)->next_awaited_;
	}
	return *list;
}

/* ---- operations ---- */

static bool is_for(const rule_t *rule, const vez_operation_t *op)
{
	return !rule->operation_ || rule->operation_ == op;
}

static bool allows(const rule_t *constraint, void *arg)
{
	bool allowed;
	VEZ__FOREIGN(allowed = constraint->is_.guard_(constraint->arg_, arg));
	return allowed;
}

static bool may_run(const vez_object_t *o, const vez_operation_t *op, void *arg)
{
	for (const rule_t *c = o->constraints_; c; c = c->next_)
		if (is_for(c, op) && !allows(c, arg))
			return false;
	return true;
}

static void run(const vez_object_t *o, const vez_operation_t *op, void *arg)
{
	VEZ__FOREIGN(op->body(o->self_, arg));
	for (const rule_t *t = o->triggers_; t; t = t->next_)
		if (is_for(t, op))
			VEZ__FOREIGN(t->is_.fn_(t->arg_, arg));
}

static void set_call(vez_request_t *r, const vez_operation_t *op, void *arg)
{
	r->with_.ptr_ = (void *)(uintptr_t)op;
	r->value_ = (uintptr_t)arg;
	r->key_ = (int64_t)vez__fetch_add(&tickets, 1, relaxed);
}

static const vez_operation_t *operation_of(const vez_request_t *r)
{
	return r->with_.ptr_;
}

static void *argument_of(const vez_request_t *r)
{
	return (void *)(uintptr_t)r->value_;
}

static bool is_serial(const vez_object_t *o)
{
	return o->flags_ & VEZ_SERIAL;
}

/* Inside p's core: the first call on p that can run. One that is leaving is passed by; of a serial object, waited
 * for. */
static vez_request_t *first_ready(const vez_object_t *p)
{
	vez_request_t *r = p->queue_;
	while (r && (vez__is_leaving(r) || !may_run(p, operation_of(r), argument_of(r))))
		r = is_serial(p) ? NULL : vez__queue_next(p->queue_, r);
	return r;
}

/* A call that can run, and on what; the objects whose cores have been entered to look for it. */
struct found {
	vez_request_t *oldest;
	vez_object_t *on;
	vez_object_t *entered;
};

static void look_at(struct found *f, vez_object_t *p)
{
	vez__lock_enter(&p->core_.word_);
	p->entered_ = f->entered;
	f->entered = p;
	vez_request_t *r = first_ready(p);
	if (r && (!f->oldest || r->key_ < f->oldest->key_)) {
		f->oldest = r;
		f->on = p;
	}
}

/* Nobody joins while this one is inside: a queue that is empty stays so. */
static struct found find_oldest(vez_object_t *o)
{
	struct found f = { NULL, NULL, NULL };
	if (!o->domain_) {
		if (is_awaited(o))
			look_at(&f, o);
		return f;
	}
	vez_object_t **list = &o->domain_->awaited_;
	for (vez_object_t *p; (p = first_awaited(list)); list = &p->next_awaited_)
		look_at(&f, p);
	return f;
}

/* Whether the call that was found is granted. */
static bool take(struct found *f, struct vez__pending *pending)
{
	struct vez__stay in;
	bool granted = false;
	vez__entered(&in, &f->on->core_);
	in.pending = pending;
	vez__settle_unless_leaving(&in, f->oldest, &granted);
	return granted;
}

/* Runs the call of the group that has waited longest among those that can run. False: there is none. No core is held
 * while it runs: it may end others by a token or a cancel. */
static bool serve_oldest(vez_object_t *o, struct vez__pending *pending)
{
	struct found f = find_oldest(o);
	bool granted = f.oldest && take(&f, pending);
	for (; f.entered; f.entered = f.entered->entered_)
		vez__lock_exit(&f.entered->core_.word_);
	if (granted)
		run(f.on, operation_of(f.oldest), argument_of(f.oldest));
	return f.oldest != NULL;
}

static void serve(vez_object_t *o, struct vez__pending *pending)
{
	while (serve_oldest(o, pending))
		;
}

/* ---- calls ---- */

/* Runs it, if it need not wait. */
static bool run_at_once(vez_object_t *o, const vez_operation_t *op, void *arg, struct vez__pending *pending)
{
	bool held_back = is_serial(o) && is_awaited(o);
	if (held_back || !may_run(o, op, arg))
		return false;
	run(o, op, arg);
	serve(o, pending);
	return true;
}

/* It waits: ECANCELED, EINPROGRESS. */
static int join_queue(vez_object_t *o, vez_request_t *r)
{
	int rc = ECANCELED;
	vez__lock_enter(&o->core_.word_);
	if (vez__prepare(&o->core_, &object_rules, &o->queue_, r)) {
		if (vez__is_member(r))
			r->state_ |= VEZ__FILING;
		vez__append(&o->core_, r);
		rc = EINPROGRESS;
	}
	note_awaited(o);
	vez__lock_exit(&o->core_.word_);
	return rc;
}

/* A member of a wait-for-any has joined: EINPROGRESS, or its result. */
static int serve_member(vez_object_t *o, vez_request_t *r, struct vez__pending *pending)
{
	struct vez__stay in;
	serve(o, pending);
	vez__enter(&in, &o->core_);
	int rc = vez__member_filed(&in, r);
	vez__lock_exit(&o->core_.word_);
	return rc;
}

/* It waits: ECANCELED, EINPROGRESS; or the result, of a member of a wait-for-any. */
static int queue(vez_object_t *o, const vez_operation_t *op, void *arg, vez_request_t *r, struct vez__pending *pending)
{
	set_call(r, op, arg);
	int rc = join_queue(o, r);
	return rc == EINPROGRESS && vez__must_queue(r) ? serve_member(o, r, pending) : rc;
}

/* The first of a serial object has given up: who came later may be able to run. */
static void serve_those_behind(vez_object_t *o)
{
	struct vez__pending pending = { NULL, NULL };
	enter(o);
	serve(o, &pending);
	leave(o, &pending);
}

static bool is_operation(const vez_operation_t *op)
{
	return op && op->body;
}

int vez_object_call_until(vez_object_t *o, const vez_operation_t *op, void *arg, vez_deadline_t deadline,
			  vez_cancel_t *cancel)
{
	vez_request_t r;
	struct vez__pending pending = { NULL, NULL };
	bool serial = is_serial(o);
	int rc = 0;
	if (!is_operation(op))
		return EINVAL;
	if (inside)
		return EDEADLK;
	if (vez__is_fired(cancel))
		return ECANCELED;
	enter(o);
	if (!run_at_once(o, op, arg, &pending)) {
		vez__request_init_local(&r, 0, cancel);
		rc = vez__deadline_passed(deadline) ? ETIMEDOUT : queue(o, op, arg, &r, &pending);
	}
	leave(o, &pending);
	if (rc != EINPROGRESS)
		return rc;
	rc = vez__await(&r, deadline);
	if (rc != 0 && serial)
		serve_those_behind(o);
	return rc;
}

int vez_object_call(vez_object_t *o, const vez_operation_t *op, void *arg)
{
	return vez_object_call_until(o, op, arg, VEZ_FOREVER, NULL);
}

int vez_object_try_call(vez_object_t *o, const vez_operation_t *op, void *arg)
{
	int rc = vez_object_call_until(o, op, arg, VEZ_NOW, NULL);
	return rc == ETIMEDOUT ? EBUSY : rc;
}

static int file(vez_object_t *o, const vez_operation_t *op, void *arg, vez_request_t *r)
{
	struct vez__pending pending = { NULL, NULL };
	int rc = 0;
	enter(o);
	if (vez__must_queue(r) || !run_at_once(o, op, arg, &pending))
		rc = vez__async_waits(r) ? queue(o, op, arg, r, &pending) : ETIMEDOUT;
	leave(o, &pending);
	return rc;
}

int vez_object_call_async(vez_object_t *o, const vez_operation_t *op, void *arg, vez_request_t *r)
{
	int rc = vez__async_begin(r);
	if (!is_operation(op) || is_serial(o))
		rc = EINVAL;
	else if (inside)
		rc = EDEADLK;
	else if (rc == 0)
		rc = file(o, op, arg, r);
	return vez__async_end(r, rc);
}

size_t vez_object_waiters(const vez_object_t *o)
{
	return vez__load(&o->core_.length_, relaxed);
}

/* ---- an object's life ---- */

int vez_object_init(vez_object_t *o, void *self, unsigned flags)
{
	if (flags & ~VEZ_SERIAL)
		return EINVAL;
	memset(o, 0, sizeof *o);
	o->self_ = self;
	o->flags_ = flags;
	return 0;
}

static void forget_rules(rule_t **rules, const vez_synchronizer_t *of)
{
	while (*rules) {
		rule_t *rule = *rules;
		if (rule->of_ == of) {
			rule->object_ = NULL;
			*rules = rule->next_;
		} else {
			rules = &rule->next_;
		}
	}
}

int vez_object_destroy(vez_object_t *o)
{
	struct vez__pending pending = { NULL, NULL };
	if (inside)
		return EDEADLK;
	enter(o);
	int rc = o->related_ > 0 || is_awaited(o) ? EBUSY : 0;
	if (rc == 0) {
		forget_rules(&o->constraints_, NULL);
		forget_rules(&o->triggers_, NULL);
	}
	leave(o, &pending);
	return rc ? rc : vez__destroy(&o->core_, &object_rules, 0);
}

/* ---- rules ---- */

/* The link that names this rule; if none does, the last one. */
static rule_t **link_to(rule_t **rules, const rule_t *rule)
{
	while (*rules && *rules != rule)
		rules = &(*rules)->next_;
	return rules;
}

static bool relates(const vez_synchronizer_t *s, const vez_object_t *o)
{
	for (size_t i = 0; i < s->count_; i++)
		if (s->objects_[i] == o)
			return true;
	return false;
}

/* Inside: makes the rule like this one, at the end. EINVAL: it is there already, and stays as it is. */
static int append(rule_t **rules, rule_t *rule, const rule_t *like)
{
	rule_t **link = link_to(rules, rule);
	if (*link)
		return EINVAL;
	*rule = *like;
	if (like->object_)
		*link = rule;
	return 0;
}

/* Adds a rule like this one, if it has a function, to this list of its object. Who is refused is not there, unless it
 * was; from inside nobody can look whether it was, and what names this object is left as it is. */
static int add(rule_t **rules, rule_t *rule, rule_t like, bool has_function)
{
	struct vez__pending pending = { NULL, NULL };
	vez_object_t *o = like.object_;
	bool refused = !has_function || (like.of_ && !relates(like.of_, o));
	if (inside) {
		if (rule->object_ != o)
			rule->object_ = NULL;
		return refused ? EINVAL : EDEADLK;
	}
	if (refused)
		like.object_ = NULL;
	enter(o);
	int rc = append(rules, rule, &like);
	leave(o, &pending);
	return refused ? EINVAL : rc;
}

int vez_constraint_add(vez_object_t *o, const vez_operation_t *op, bool (*guard)(void *arg, void *call), void *arg,
		       vez_constraint_t *c)
{
	return vez_synchronizer_constraint_add(NULL, o, op, guard, arg, c);
}

int vez_trigger_add(vez_object_t *o, const vez_operation_t *op, void (*fn)(void *arg, void *call), void *arg,
		    vez_trigger_t *t)
{
	return vez_synchronizer_trigger_add(NULL, o, op, fn, arg, t);
}

int vez_synchronizer_constraint_add(vez_synchronizer_t *s, vez_object_t *o, const vez_operation_t *op,
				    bool (*guard)(void *arg, void *call), void *arg, vez_constraint_t *c)
{
	rule_t like = { NULL, o, op, s, arg, { .guard_ = guard } };
	return add(&o->constraints_, &c->rule_, like, guard);
}

int vez_synchronizer_trigger_add(vez_synchronizer_t *s, vez_object_t *o, const vez_operation_t *op,
				 void (*fn)(void *arg, void *call), void *arg, vez_trigger_t *t)
{
	rule_t like = { NULL, o, op, s, arg, { .fn_ = fn } };
	return add(&o->triggers_, &t->rule_, like, fn);
}

/* Takes the rule off; without a constraint, calls that wait may run. */
static int take_off(rule_t *rule, bool constrains)
{
	vez_object_t *o = rule->object_;
	struct vez__pending pending = { NULL, NULL };
	if (!o || inside)
		return o ? EDEADLK : EINVAL;
	enter(o);
	rule_t **link = link_to(constrains ? &o->constraints_ : &o->triggers_, rule);
	if (*link)
		*link = rule->next_;
	rule->object_ = NULL;
	if (constrains)
		serve(o, &pending);
	leave(o, &pending);
	return 0;
}

int vez_constraint_remove(vez_constraint_t *c)
{
	return take_off(&c->rule_, true);
}

int vez_trigger_remove(vez_trigger_t *t)
{
	return take_off(&t->rule_, false);
}

/* ---- the trees of groups: while relating ---- */

/* A tree, or what has been found of it so far. */
struct part {
	vez_object_t *objects, *last_object, *next_object; /* next: found, and not looked at yet */
	vez_synchronizer_t *synchronizers, *last_synchronizer, *next_synchronizer;
	vez_synchronizer_t *child; /* the next that hangs on the object which is looked at */
	vez_synchronizer_t *over;  /* the synchronizer which is looked at, and the number of its next object */
	size_t i;
	size_t size; /* objects */
};

static vez_object_t *after_object(const vez_object_t *o)
{
	return o->found_ != o ? o->found_ : NULL;
}

static vez_synchronizer_t *after_synchronizer(const vez_synchronizer_t *s)
{
	return s->found_ != s ? s->found_ : NULL;
}

static void find_object(struct part *p, vez_object_t *o)
{
	if (o->found_)
		return;
	o->found_ = o; /* the last one names itself */
	if (p->last_object)
		p->last_object->found_ = o;
	else
		p->objects = o;
	p->last_object = o;
	if (!p->next_object)
		p->next_object = o;
	p->size++;
}

static void find_synchronizer(struct part *p, vez_synchronizer_t *s)
{
	if (!s || s->found_)
		return;
	s->found_ = s;
	if (p->last_synchronizer)
		p->last_synchronizer->found_ = s;
	else
		p->synchronizers = s;
	p->last_synchronizer = s;
	if (!p->next_synchronizer)
		p->next_synchronizer = s;
}

static void look_at_object(struct part *p)
{
	vez_object_t *o = p->next_object;
	p->next_object = after_object(o);
	p->child = o->children_;
	find_synchronizer(p, o->parent_);
}

static void look_over_synchronizer(struct part *p)
{
	p->over = p->next_synchronizer;
	p->next_synchronizer = after_synchronizer(p->over);
	p->i = 0;
	find_object(p, p->over->parent_);
}

/* Follows one edge of the tree, in constant time. False: all of it has been found. */
static bool step(struct part *p)
{
	if (p->child) {
		find_synchronizer(p, p->child);
		p->child = p->child->next_;
	} else if (p->over && p->i < p->over->count_) {
		vez_object_t *o = p->over->objects_[p->i++];
		if (o->parent_ == p->over)
			find_object(p, o);
	} else if (p->next_object) {
		look_at_object(p);
	} else if (p->next_synchronizer) {
		look_over_synchronizer(p);
	} else {
		return false;
	}
	return true;
}

static void find_all(struct part *p)
{
	while (step(p))
		;
}

/* Steps through both by turns, up to the end of the smaller one: whether that is a. */
static bool ends_first(struct part *a, struct part *b)
{
	for (;;) {
		if (!step(a))
			return true;
		if (!step(b))
			return false;
	}
}

static void forget(struct part *p)
{
	for (vez_object_t *o = p->objects, *next; o; o = next) {
		next = after_object(o);
		o->found_ = NULL;
	}
	for (vez_synchronizer_t *s = p->synchronizers, *next; s; s = next) {
		next = after_synchronizer(s);
		s->found_ = NULL;
	}
	*p = (struct part){ 0 };
}

static void hang(vez_synchronizer_t *s, vez_object_t *on)
{
	s->parent_ = on;
	s->link_ = &on->children_;
	s->next_ = on->children_;
	if (s->next_)
		s->next_->link_ = &s->next_;
	on->children_ = s;
}

static void take_down(vez_synchronizer_t *s)
{
	*s->link_ = s->next_;
	if (s->next_)
		s->next_->link_ = s->link_;
}

/* Makes o the root of its tree. */
static void make_root(vez_object_t *o)
{
	vez_synchronizer_t *above = o->parent_;
	o->parent_ = NULL;
	while (above) {
		vez_object_t *upper = above->parent_;
		vez_synchronizer_t *next = upper->parent_;
		take_down(above);
		hang(above, o);
		upper->parent_ = above;
		o = upper;
		above = next;
	}
}

/* ---- domains: while relating ---- */

static void take_awaited_from(vez_synchronizer_t *domain)
{
	for (vez_object_t **at = &domain->awaited_; *at;) {
		vez_object_t *o = *at;
		if (o->found_) {
			o->awaited_ = false;
			*at = o->next_awaited_;
		} else {
			at = &o->next_awaited_;
		}
	}
}

/* Moves the objects that have been found from one domain to another, as one step: either may be none. Nobody is inside
 * one of them then. */
static void move(const struct part *p, vez_synchronizer_t *from, vez_synchronizer_t *to)
{
	for (vez_object_t *o = p->objects; o; o = after_object(o))
		vez__lock_enter(&o->lock_);
	if (from) {
		vez__lock_enter(&from->lock_);
		take_awaited_from(from);
		vez__lock_exit(&from->lock_);
		from->size_ -= p->size;
	}
	if (to) {
		vez__lock_enter(&to->lock_);
		to->size_ += p->size;
	}
	for (vez_object_t *o = p->objects; o; o = after_object(o)) {
		o->domain_ = to;
		if (is_awaited(o))
			note_awaited(o);
	}
	if (to)
		vez__lock_exit(&to->lock_);
	for (vez_object_t *o = p->objects; o; o = after_object(o))
		vez__lock_exit(&o->lock_);
}

/* Which of them is the domain: by chance, so that it is seldom the next one to go, whatever the order is in which they
 * go. */
static vez_synchronizer_t *any_of(const struct part *p)
{
	vez_synchronizer_t *first = NULL;
	for (vez_synchronizer_t *s = p->synchronizers; s; s = after_synchronizer(s))
		if (!first || vez__hash_of(s, 64) < vez__hash_of(first, 64))
			first = s;
	return first;
}

/* ---- joining ---- */

/* Of the objects of s, one of the largest domain, and of these the one that the fewest name: where s is all that will
 * hold it, then s is found with it, and need not be looked for elsewhere (tie). */
static vez_object_t *place_for(const vez_synchronizer_t *s)
{
	vez_object_t *best = s->objects_[0];
	for (size_t i = 1; i < s->count_; i++) {
		vez_object_t *o = s->objects_[i];
		size_t size = o->domain_ ? o->domain_->size_ : 0, most = best->domain_ ? best->domain_->size_ : 0;
		if (size > most || (o->domain_ == best->domain_ && o->ties_ < best->ties_))
			best = o;
	}
	return best;
}

/* The largest domain stays, and takes in the others. */
static void join(vez_synchronizer_t *s)
{
	vez_object_t *on = place_for(s);
	vez_synchronizer_t *domain = on->domain_ ? on->domain_ : s;
	for (size_t i = 0; i < s->count_; i++) {
		struct part p = { 0 };
		vez_object_t *o = s->objects_[i];
		o->ties_++;
		if (o->domain_ == domain)
			continue;
		find_object(&p, o);
		find_all(&p);
		move(&p, o->domain_, domain);
		forget(&p);
		make_root(o);
		if (o != on)
			o->parent_ = s;
	}
	hang(s, on);
}

/* ---- parting ---- */

/* A synchronizer of this part that names an object of another one, which is returned; NULL: there is none. */
static vez_object_t *named_outside(const struct part *p, vez_synchronizer_t **by)
{
	for (vez_synchronizer_t *s = p->synchronizers; s; s = after_synchronizer(s))
		for (size_t i = 0; i < s->count_; i++)
			if (!s->objects_[i]->found_) {
				*by = s;
				return s->objects_[i];
			}
	return NULL;
}

/* Whether synchronizers of other parts name objects of this one, whose own name no others. */
static bool is_named_from_outside(const struct part *p)
{
	size_t ties = 0;
	for (vez_object_t *o = p->objects; o; o = after_object(o))
		ties += o->ties_;
	for (vez_synchronizer_t *s = p->synchronizers; s; s = after_synchronizer(s))
		ties -= s->count_;
	return ties > 0;
}

/* Hangs the tree of s on an object of another one. */
static void hang_tree(vez_synchronizer_t *s, vez_object_t *on)
{
	vez_object_t *upper = s->parent_;
	make_root(upper);
	take_down(s);
	upper->parent_ = s;
	hang(s, on);
}

/* Finds who names an object of this part among all other parts, each of which has one of the objects of gone; and hangs
 * it there. */
static void tie_from_outside(struct part *p, const vez_synchronizer_t *gone)
{
	struct part others = { 0 };
	vez_synchronizer_t *by = NULL;
	for (size_t i = 0; i < gone->count_; i++)
		find_object(&others, gone->objects_[i]); /* those of p are found already */
	find_all(&others);
	forget(p);
	vez_object_t *o = named_outside(&others, &by);
	forget(&others);
	make_root(o);
	o->parent_ = by;
}

/* Ties the part to another one, by what else relates its objects. False: nothing does. */
static bool tie(struct part *p, const vez_synchronizer_t *gone)
{
	vez_synchronizer_t *by = NULL;
	vez_object_t *o = named_outside(p, &by);
	if (o)
		hang_tree(by, o);
	else if (is_named_from_outside(p))
		tie_from_outside(p, gone);
	else
		return false;
	return true;
}

/* What a synchronizer that goes has held together. */
struct parting {
	vez_synchronizer_t *gone;
	vez_synchronizer_t *domain;
	vez_object_t *rest; /* an object of the part that has not been seen to its end */
	bool moves;         /* it is to leave the domain, which goes or is in another part */
};

/* It held the tree of o on the rest. The smaller one of them is tied to another part, or a group of its own. */
static void part_from_rest(struct parting *g, vez_object_t *o)
{
	struct part rest = { 0 }, other = { 0 };
	find_object(&rest, g->rest);
	find_object(&other, o);
	bool rest_ends = ends_first(&rest, &other);
	struct part *small = rest_ends ? &rest : &other;
	forget(rest_ends ? &other : &rest);
	if (rest_ends)
		g->rest = o;
	if (!tie(small, g->gone)) {
		if (g->domain != g->gone && g->domain->found_)
			g->moves = true;
		else
			move(small, g->domain, any_of(small));
	}
	forget(small);
}

/* The rest is in the domain of another part, or of none. */
static void move_rest(const struct parting *g)
{
	struct part rest = { 0 };
	find_object(&rest, g->rest);
	find_all(&rest);
	move(&rest, g->domain, any_of(&rest));
	forget(&rest);
}

/* Takes s out of its tree; what it held there are parts then. */
static void take_apart(vez_synchronizer_t *s)
{
	vez_synchronizer_t *domain = s->objects_[0]->domain_;
	struct parting g = { s, domain, s->parent_, domain == s };
	take_down(s);
	s->found_ = s; /* nobody finds it */
	for (size_t i = 0; i < s->count_; i++)
		s->objects_[i]->ties_--;
	for (size_t i = 0; i < s->count_; i++) {
		vez_object_t *o = s->objects_[i];
		if (o->parent_ != s)
			continue;
		o->parent_ = NULL;
		part_from_rest(&g, o);
	}
	if (g.moves)
		move_rest(&g);
}

/* ---- synchronizers ---- */

/* With its gate, as who destroys the object looks at it; to leave that is then the last touch. */
static void count_relations(const vez_synchronizer_t *s, uint32_t more)
{
	for (size_t i = 0; i < s->count_; i++) {
		vez_object_t *o = s->objects_[i];
		vez__lock_enter(&o->lock_);
		o->related_ += more;
		vez__lock_exit(&o->lock_);
	}
}

int vez_synchronizer_init(vez_synchronizer_t *s, vez_object_t *const *objects, size_t count)
{
	if (count == 0 || inside)
		return count == 0 ? EINVAL : EDEADLK;
	memset(s, 0, sizeof *s);
	s->objects_ = objects;
	s->count_ = count;
	vez__lock_holding(&relating);
	join(s);
	count_relations(s, 1);
	vez__unlock_holding(&relating);
	return 0;
}

/* Takes off all rules, and lets those go that they held back, before anybody else is inside. */
static void take_rules_off(vez_synchronizer_t *s, struct vez__pending *pending)
{
	vez_object_t *first = s->objects_[0];
	enter(first);
	for (size_t i = 0; i < s->count_; i++) {
		forget_rules(&s->objects_[i]->constraints_, s);
		forget_rules(&s->objects_[i]->triggers_, s);
	}
	serve(first, pending);
	leave_locks(first);
	vez__let_go();
}

static void relate_no_more(vez_synchronizer_t *s)
{
	vez__lock_enter(&relating);
	take_apart(s);
	count_relations(s, -1u);
	vez__lock_exit(&relating);
}

int vez_synchronizer_destroy(vez_synchronizer_t *s)
{
	struct vez__pending pending = { NULL, NULL };
	if (inside)
		return EDEADLK;
	vez__hold();
	take_rules_off(s, &pending);
	relate_no_more(s);
	vez__publish(&pending);
	vez__let_go();
	return 0;
}

static void in_child(void)
{
	relating = 0;
}

VEZ__AT_FORK(NULL, NULL, in_child)
