/* SPDX-License-Identifier: MIT */
/*
 * Objects whose operations are constrained, triggered and synchronized from outside.
 *
 * State
 *  object  lock_         futex/lock.h; its gate: whoever runs an operation on it, or changes what it is related to
 *          domain_       NULL: it is alone. Else the synchronizer whose lock_ its operations take besides. Written with
 *                        the gates of all objects of both domains; read with its gate, or inside its domain
 *          constraints_, triggers_  rules, in order; inside
 *          place_        link in its domain's members_
 *          related_      in how many places synchronizers name it; with its gate
 *          core_, queue_  the calls that wait, in order: a request's pointer is the operation, its value the argument,
 *                        its key the ticket
 *          entered_      link in the objects whose cores whoever is inside has entered
 *          awaited_      whether it is in its domain's list of those where calls may wait, by next_awaited_; inside
 *          unserved_     rules were taken off, and calls that may run now were not looked for yet; inside
 *          gated_        link in the objects whose gates the relating thread has taken; NULL: it is none. While
 *                        relating
 *  synchronizer  lock_   if it is a domain: whoever is inside
 *          members_      if it is a domain: its objects; relations_: the synchronizers that relate them. With the gates
 *                        of all of them
 *          awaited_      if it is a domain: its objects where calls wait, and some where they did; inside
 *          place_        link in its domain's relations_
 *  tickets               of all calls that ever waited: their order
 *  relating              one at a time changes domains
 *  inside, of each thread  it runs bodies, guards and triggers
 *
 *  "Inside" an object: with its gate; and with its domain's lock, if it has one. "The group": the object, or the
 *  members of its domain.
 * Invariants
 *  R1 locks are taken in this order: relating, gates (several only while relating), one domain's lock, cores of the
 *     group. Nobody who holds any of them waits for anything else, but for bodies; and while a body runs neither a core
 *     nor relating is held. Calls that were let go are published when all of them have been left.
 *  R2 a domain is a synchronizer one of whose own objects is in it: so it is there as long as an object's domain_ names
 *     it, and its destruction moves them first, with all gates.
 *  R3 with nobody inside, no call that waits in the group can run (of a serial object: its first), but one that
 *     somebody is entering to end; or of objects that are unserved_; or a follower of a serial object's first that has
 *     just given up, and whose thread is about to see to it.
 *  R4 a call joins its object's queue from inside. It leaves by being taken (settled, from inside: its limits apply no
 *     more), and then its body runs before it returns; or by itself, if somebody is entering because of a limit.
 * Ordering
 *  everything above is ordered by the locks (lock.c: leaving releases, entering acquires). A thread that changes a
 *  domain_ holds the gate, and one of the group's is held by whoever is inside. What a body did, for the caller:
 *  publication (word.c).
 * Progress and fairness
 *  FIFO by ticket among the calls of a group that can run; one that can run when it comes does not queue. The number of
 *  bodies that a thread runs for others is bounded by the calls that wait when it enters.
 * Lifetime
 *  A thread inside touches objects of its group only: they are there, as destroy takes the gate, and none that a
 *  synchronizer relates can be destroyed. Leaving the gate is the last touch of the object; the calls that were let go
 *  return after that.
 * fork: the child's only thread is relating nothing.
 * Sources: include/vez/constraint.h.
 */
#include "vez/constraint.h"

#include <string.h>
#include <urcu/list.h>

#include "../engine/filing.h"
#include "../futex/foreign.h"
#include "../futex/fork.h"

typedef struct vez__rule rule_t;

static uint64_t relating;
static uint64_t tickets;
static __thread bool inside __attribute__((tls_model("initial-exec")));

/* Who gives up was in nobody's way, but on a serial object (serve_followers). */
static const struct vez__rules object_rules = {
	.type = VEZ__CONSTRAINT, .object = offsetof(vez_object_t, core_),
	.queue = offsetof(vez_object_t, queue_) - offsetof(vez_object_t, core_),
};

static struct cds_list_head *list(void *const *place)
{
	return (struct cds_list_head *)place;
}

static vez_object_t *object_at(struct cds_list_head *place)
{
	return (vez_object_t *)((char *)place - offsetof(vez_object_t, place_));
}

static vez_synchronizer_t *synchronizer_at(struct cds_list_head *place)
{
	return (vez_synchronizer_t *)((char *)place - offsetof(vez_synchronizer_t, place_));
}

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
	o->unserved_ = false;
	while (serve_oldest(o, pending))
		;
}

/* ---- calls ---- */

/* Runs it, if it need not wait. */
static bool run_at_once(vez_object_t *o, const vez_operation_t *op, void *arg, struct vez__pending *pending)
{
	if (VEZ__UNLIKELY(o->unserved_))
		serve(o, pending);
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
static void serve_followers(vez_object_t *o)
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
		serve_followers(o);
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

/* ---- synchronizers ---- */

/* The next of the group of o; NULL: that was the last. */
static vez_object_t *next_in_group(const vez_object_t *o, const vez_object_t *p)
{
	if (!o->domain_)
		return NULL;
	struct cds_list_head *next = list(p->place_)->next;
	return next != list(o->domain_->members_) ? object_at(next) : NULL;
}

static vez_object_t *first_in_group(vez_object_t *o)
{
	return o->domain_ ? object_at(list(o->domain_->members_)->next) : o;
}

static void take_gate(vez_object_t *o, vez_object_t **gates)
{
	vez__lock_enter(&o->lock_);
	o->gated_ = *gates ? *gates : o; /* the last one names itself */
	*gates = o;
}

/* Begins relating: takes the gates of all that is or will be related to the objects of s. Nobody is inside one of them
 * then. A group is taken whole. */
static vez_object_t *take_gates(const vez_synchronizer_t *s)
{
	vez_object_t *gates = NULL;
	vez__lock_enter(&relating);
	for (size_t i = 0; i < s->count_; i++) {
		vez_object_t *o = s->objects_[i];
		if (o->gated_)
			continue;
		for (vez_object_t *p = first_in_group(o); p; p = next_in_group(o, p))
			take_gate(p, &gates);
	}
	return gates;
}

static void leave_gates(vez_object_t *gates)
{
	for (vez_object_t *next = NULL; gates; gates = next) {
		next = gates->gated_ != gates ? gates->gated_ : NULL;
		gates->gated_ = NULL;
		vez__lock_exit(&gates->lock_);
	}
	vez__lock_exit(&relating);
}

static void move_in(vez_synchronizer_t *domain, vez_object_t *o)
{
	o->domain_ = domain;
	cds_list_add_tail(list(o->place_), list(domain->members_));
	o->awaited_ = false;
	if (is_awaited(o))
		note_awaited(o);
}

static void merge(vez_synchronizer_t *domain, vez_synchronizer_t *other)
{
	struct cds_list_head *members = list(other->members_);
	while (!cds_list_empty(members)) {
		vez_object_t *o = object_at(members->next);
		cds_list_del(list(o->place_));
		move_in(domain, o);
	}
	cds_list_splice(list(other->relations_), list(domain->relations_));
	CDS_INIT_LIST_HEAD(list(other->relations_));
	other->awaited_ = NULL;
}

/* With the gates: the domain of any of its objects becomes that of all; or it is their domain itself. */
static void join(vez_synchronizer_t *s)
{
	vez_synchronizer_t *domain = s;
	for (size_t i = 0; i < s->count_; i++)
		if (s->objects_[i]->domain_)
			domain = s->objects_[i]->domain_;
	for (size_t i = 0; i < s->count_; i++) {
		vez_object_t *o = s->objects_[i];
		if (!o->domain_)
			move_in(domain, o);
		else if (o->domain_ != domain)
			merge(domain, o->domain_);
	}
	cds_list_add_tail(list(s->place_), list(domain->relations_));
}

/* With the gates: takes s out of its domain, and puts together anew what the others relate. */
static void part(vez_synchronizer_t *s)
{
	vez_synchronizer_t *domain = s->objects_[0]->domain_;
	struct cds_list_head others;
	CDS_INIT_LIST_HEAD(&others);
	cds_list_del(list(s->place_));
	cds_list_splice(list(domain->relations_), &others);
	CDS_INIT_LIST_HEAD(list(domain->relations_));
	domain->awaited_ = NULL;
	for (struct cds_list_head *members = list(domain->members_); !cds_list_empty(members);) {
		vez_object_t *o = object_at(members->next);
		cds_list_del(list(o->place_));
		o->domain_ = NULL;
	}
	while (!cds_list_empty(&others)) {
		vez_synchronizer_t *other = synchronizer_at(others.next);
		cds_list_del(list(other->place_));
		join(other);
	}
}

int vez_synchronizer_init(vez_synchronizer_t *s, vez_object_t *const *objects, size_t count)
{
	if (count == 0 || inside)
		return count == 0 ? EINVAL : EDEADLK;
	memset(s, 0, sizeof *s);
	s->objects_ = objects;
	s->count_ = count;
	CDS_INIT_LIST_HEAD(list(s->members_));
	CDS_INIT_LIST_HEAD(list(s->relations_));
	vez__hold();
	vez_object_t *gates = take_gates(s);
	join(s);
	for (size_t i = 0; i < count; i++)
		objects[i]->related_++;
	leave_gates(gates);
	vez__let_go();
	return 0;
}

/* Takes off all rules. The calls that may run now run before any other (unserved_). */
static void take_rules_off(vez_synchronizer_t *s)
{
	vez_object_t *gates = take_gates(s);
	for (size_t i = 0; i < s->count_; i++) {
		forget_rules(&s->objects_[i]->constraints_, s);
		forget_rules(&s->objects_[i]->triggers_, s);
	}
	for (vez_object_t *o = gates; o; o = o->gated_ != o ? o->gated_ : NULL)
		o->unserved_ = true;
	leave_gates(gates);
}

static void relate_no_more(vez_synchronizer_t *s)
{
	vez_object_t *gates = take_gates(s);
	part(s);
	for (size_t i = 0; i < s->count_; i++)
		s->objects_[i]->related_--;
	leave_gates(gates);
}

int vez_synchronizer_destroy(vez_synchronizer_t *s)
{
	struct vez__pending pending = { NULL, NULL };
	if (inside)
		return EDEADLK;
	vez__hold();
	take_rules_off(s);
	enter(s->objects_[0]);
	serve(s->objects_[0], &pending);
	leave_locks(s->objects_[0]);
	vez__let_go();
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
