/* SPDX-License-Identifier: MIT */
/*
 * How a request is queued, how its thread waits, and how it ends before its time.
 *
 * State and invariants: settle.c.
 * Who enters because of a request: its own thread, at its deadline or because it was asked to retry; a thread that
 *  fires its token; a thread that ends an asynchronous one. Each announced itself in the request's word (futex/word.h),
 *  and holds (hold.h) while it is inside: what a handler of its settles meanwhile is completed after.
 * Ordering: vez__word_publish (release) pairs with vez__word_wait in vez__await (acquire): the result, and what
 *  came before it.
 * Progress and fairness: served by key, then by arrival. Every departure re-evaluates: a request that gives up serves
 *  before it leaves (serve, gave_up). A thread is woken once, when its call returns; but one that was asked to retry
 *  may do so in vain (barging).
 * Lifetime: a thread whose wait ends does not touch the core any more: it enters only while the core expects it.
 */
#include "await.h"

#include <errno.h>

#include "../futex/futex.h"
#include "../futex/probe.h"
#include "alarm.h"
#include "token.h"

/* ---- a request is queued ---- */

bool vez__is_late(const vez_request_t *r)
{
	return vez__timer_is_set(&r->timer_) && vez__deadline_passed(vez__timer_at(&r->timer_));
}

int vez__limits_refuse(vez_deadline_t deadline, const vez_cancel_t *cancel)
{
	if (vez__is_fired(cancel))
		return ECANCELED;
	return vez__deadline_passed(deadline) ? ETIMEDOUT : 0;
}

/* From here on its token's fire ends it. False: it is fired. */
static bool enlist(vez_request_t *r)
{
	return !r->cancel_ || vez__token_enlist(r);
}

/* An asynchronous one: from here on its deadline ends it. */
static void set_alarm(vez_request_t *r)
{
	if (vez__timer_is_set(&r->timer_))
		vez__alarm_set(r);
}

static inline bool sleeps_in_slot(const struct vez__core *c, const struct vez__rules *rules)
{
	return rules->sleeps == VEZ__TOGETHER || (rules->sleeps == VEZ__BESIDE && c->length_ > 0);
}

static VEZ__HOT void place(struct vez__core *c, const struct vez__rules *rules, vez_request_t **queue, vez_request_t *r)
{
	r->queue_ = queue;
	r->rules_ = rules;
	r->how_ = r->cancel_ ? r->how_ | VEZ__ENLISTED : r->how_ & (uint16_t)~VEZ__ENLISTED;
	vez__inspect_place(r, vez__object_of(c, rules), rules->type);
}

static void make_async(struct vez__core *c, vez_request_t *r, const vez_cancel_t *token)
{
	const struct vez__rules *rules = vez__rules_of(r);
	const void *object = rules->fired_is_granted ? (const void *)token : vez__object_of(c, rules);
	vez__fetch_or(&r->word_, VEZ__ASYNC, release);
	if (vez__inspecting())
		vez__inspect_file(r, object, rules->type, token);
}

VEZ__HOT bool vez__prepare(struct vez__core *c, const struct vez__rules *rules, vez_request_t **queue, vez_request_t *r)
{
	const vez_cancel_t *token = r->cancel_;
	place(c, rules, queue, r);
	if (!enlist(r))
		return false;
	if (sleeps_in_slot(c, rules) && !vez__is_async(r))
		r->how_ |= (uint16_t)(VEZ__IN_SLOT | vez__slot_mine() << VEZ__SLOT_SHIFT);
	if (vez__is_async(r)) {
		make_async(c, r, token);
		if (vez__is_member(r) && vez__is_late(r)) { /* filed all the same: vez__member_filed ends it */
			r->state_ |= VEZ__LATE;
			vez__timer_to(&r->timer_, VEZ_FOREVER);
		}
		set_alarm(r);
	}
	return true;
}

void vez__arrive(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r)
{
	place(c, rules, vez__queue_at(c, rules), r);
	r->state_ |= VEZ__ARRIVING;
	if (vez__is_async(r))
		make_async(c, r, r->cancel_);
}

void vez__gather(struct vez__stay *in, vez_request_t *r)
{
	bool live = enlist(r);
	if (!live)
		r->cancel_ = NULL;
	if (vez__is_async(r)) { /* a thread's timer is its own */
		if (!live)
			vez__timer_to(&r->timer_, VEZ_FOREVER);
		set_alarm(r);
	}
	r->state_ &= ~VEZ__ARRIVING;
	vez__append(in->core, r);
	if (!live)
		vez__settle(in, r, ECANCELED);
}

/* ---- a request ends before its time ---- */

/* Whether r, which is queued, has taken back its reservation; false: it was settled first. */
static bool withdraw(struct vez__stay *in, vez_request_t *r)
{
	const struct vez__rules *rules = vez__rules_of(r);
	for (;;) {
		uint64_t seen = vez__word_of(in);
		bool served = rules->serve && rules->serve(in, seen);
		if (!served && vez__roll_back(in, seen, r))
			return true;
		if (vez__is_settled(r))
			return false;
	}
}

/* Whether r, whatever is the cause of its end, has got what it waited for: its token has fired. */
static bool is_granted_by_fire(const vez_request_t *r)
{
	return vez__rules_of(r)->fired_is_granted && (vez__load(&r->word_, relaxed) & VEZ__FIRED);
}

/* Ends a queued request with this cause, unless it turns out to be granted. */
static void give_up(struct vez__stay *in, vez_request_t *r, int cause)
{
	const struct vez__rules *rules = vez__rules_of(r);
	if (!withdraw(in, r))
		return;
	if (is_granted_by_fire(r))
		cause = 0;
	vez__settle_own(r, cause);
	VEZ__PROBE_REQUEST(giveup, r, cause);
	if (rules->gave_up)
		rules->gave_up(in, r);
}

/* Enters the core in which r waits, because of it, and holds. */
static void enter_for(struct vez__stay *in, const vez_request_t *r)
{
	size_t pending = vez__rules_of(r)->pending;
	vez__enter_holding(in, vez__core_of(r));
	if (pending)
		in->pending = (struct vez__pending *)((char *)in->core + pending);
}

/* A thread that was entering because of r is here, and takes its result. */
static void came_for(struct vez__stay *in, vez_request_t *r)
{
	if (!(r->state_ & VEZ__EXPECTED))
		return;
	r->state_ &= ~VEZ__EXPECTED;
	vez__came(in);
}

/* Whether the thread that fired is still to enter because of r, which is settled. */
static bool fire_is_to_come(const vez_request_t *r)
{
	return (r->state_ & (VEZ__FIRE_COMES | VEZ__FIRE_CAME)) == VEZ__FIRE_COMES;
}

bool vez__end_inside(struct vez__stay *in, vez_request_t *r, int cause)
{
	bool ended = false;
	if (!vez__is_settled(r)) {
		give_up(in, r, cause);
		ended = r->at_.result_ == cause;
		vez__note_settled(r);
	}
	bool last = !fire_is_to_come(r);
	if (last) {
		came_for(in, r);
		vez__complete_pending(in, r);
	} else {
		vez__word_entered(&r->word_);
		vez__expect_for(in, r);
	}
	return ended && last;
}

bool vez__end_announced(vez_request_t *r, int cause)
{
	struct vez__stay in;
	const struct vez__rules *rules = vez__rules_of(r);
	enter_for(&in, r);
	bool ended = false;
	if (r->state_ & VEZ__ARRIVING)
		vez__word_entered(&r->word_);
	else if (r->state_ & VEZ__KEPT)
		vez__word_keep(&r->word_, true);
	else
		ended = vez__end_inside(&in, r, cause);
	if (ended && cause == ECANCELED && !vez__calls_now())
		r->state_ |= VEZ__OWN; /* pending here: whoever cancels it is told that its function has returned */
	vez__leave(&in, rules);
	vez__let_go();
	return ended;
}

void vez__end_fired(vez_request_t *r)
{
	struct vez__stay in;
	const struct vez__rules *rules = vez__rules_of(r);
	enter_for(&in, r);
	if (r->state_ & VEZ__KEPT) {
		vez__word_keep(&r->word_, false);
	} else {
		if (!vez__is_settled(r))
			give_up(&in, r, ECANCELED);
		r->state_ |= VEZ__FIRE_CAME;
		if (vez__load(&r->word_, relaxed) & VEZ__ENTERING) {
			vez__expect_for(&in, r);
		} else {
			came_for(&in, r);
			vez__complete_pending(&in, r);
		}
	}
	vez__leave(&in, rules);
	vez__let_go();
}

int vez__member_filed(struct vez__stay *in, vez_request_t *r)
{
	vez__serve_all(in, vez__rules_of(r));
	if (!vez__is_settled(r) && (r->state_ & VEZ__LATE) && vez__word_announce_end(&r->word_))
		vez__end_inside(in, r, ETIMEDOUT);
	bool got = vez__is_settled(r) && !(r->state_ & VEZ__FILING);
	r->state_ &= ~VEZ__FILING;
	return got ? r->at_.result_ : EINPROGRESS;
}

/* ---- its thread waits ---- */

/* Inside: the request's thread retries, and gives up if its limit has passed. */
static void retry_or_give_up(struct vez__stay *in, vez_request_t *r, bool expired)
{
	const struct vez__rules *rules = vez__rules_of(r);
	if (rules->retry)
		rules->retry(in, r);
	uint32_t word = vez__load(&r->word_, relaxed);
	/* UNCANCELLABLE: its deadline may have passed just before it was moved here and asked to retry. */
	if (!vez__is_settled(r) && expired && !(word & VEZ__UNCANCELLABLE))
		give_up(in, r, word & VEZ__FIRED ? ECANCELED : ETIMEDOUT);
}

/* Inside: the request's thread has entered. True: the request is settled, and its result is this thread's to take.
 * False: it stays, or the thread that fired its token is still to enter. */
static bool take_result(struct vez__stay *in, vez_request_t *r, bool expired)
{
	if (r->state_ & VEZ__KEPT) {
		vez__word_keep(&r->word_, true);
		return false;
	}
	if (!vez__is_settled(r)) {
		retry_or_give_up(in, r, expired);
		if (vez__is_settled(r))
			vez__note_settled(r);
	}
	bool takes = vez__is_settled(r) && !fire_is_to_come(r);
	if (takes) {
		came_for(in, r);
	} else {
		if (vez__is_settled(r))
			vez__expect_for(in, r);
		vez__word_entered(&r->word_);
	}
	return takes;
}

/* The request's thread, which has announced it, enters. Whether it takes the result. */
static bool enter_for_own(vez_request_t *r, bool expired)
{
	struct vez__stay in;
	const struct vez__rules *rules = vez__rules_of(r);
	enter_for(&in, r);
	if (rules->entered)
		rules->entered(&in);
	bool takes = take_result(&in, r, expired);
	vez__leave(&in, rules);
	vez__let_go();
	return takes;
}

/* Sleeps until there is something to do: true, and the thread has announced that it enters; false, the request
 * is DONE. */
static bool sleep_until_called(vez_request_t *r, vez_deadline_t *deadline, bool *expired)
{
	for (;;) {
		vez_deadline_t again = vez__timer_at(&r->timer_);
		vez_deadline_t limit = *deadline < again ? *deadline : again;
		const uint32_t until = VEZ__DONE | VEZ__ENTERING;
		uint32_t seen = r->how_ & VEZ__IN_SLOT ? vez__word_wait_at(&r->word_, vez__slot_of(r), until, limit) :
							 vez__word_wait(&r->word_, until, limit);
		if (seen & VEZ__DONE)
			return false;
		*expired = !(seen & VEZ__ENTERING) && limit == *deadline;
		if (*expired ? vez__word_announce(&r->word_) : vez__word_announce_retry(&r->word_))
			return true;
		/* Settled, or about to be cancelled, and whoever sees to that is on its way; or moved, to wait without
		 * limit, but still to retry. */
		*deadline = VEZ_FOREVER;
		if (!*expired)
			vez__retry_at(r, VEZ_FOREVER);
	}
}

VEZ__HOT int vez__await(vez_request_t *r, vez_deadline_t deadline)
{
	struct vez__shown shown;
	bool called, expired;
	vez__inspect_begin(&shown, r, deadline);
	do {
		vez__inspect_show(&shown);
		called = sleep_until_called(r, &deadline, &expired);
		vez__inspect_hide(&shown);
	} while (called && !enter_for_own(r, expired));
	if (r->cancel_) {
		vez__hold();
		vez__token_delist(r);
		vez__let_go();
	}
	return r->at_.result_;
}

int vez__wait_holding(struct vez__stay *in, const struct vez__rules *rules, void *what, const void *object,
		      vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_request_t own;
	struct vez__core *c = in->core;
	int refused = vez__limits_refuse(deadline, cancel);
	vez__request_init_local(&own, 0, cancel);
	own.with_.ptr_ = what;
	if (!refused && !vez__prepare(c, rules, vez__queue_at(c, rules), &own))
		refused = ECANCELED;
	vez__inspect_place_at(&own, object);
	if (!refused)
		vez__insert(c, &own);
	vez__leave_holding(in);
	return refused ? refused : vez__await(&own, deadline);
}
