/* SPDX-License-Identifier: MIT */
/*
 * How a request is filed. Why this order: what can be had is taken by a word in which nothing is left to serve, and the
 * mark that somebody waits is made by such a word, too; so whoever makes something available afterwards sees the mark,
 * and whoever did before has been seen.
 *
 * State and invariants: settle.c.
 */
#include "filing.h"

#include "alarm.h"
#include "clock.h"

/* Serves, and takes what r wants; EBUSY: r must wait. */
static int take_inside(struct vez__stay *in, const struct vez__rules *rules, vez_request_t *r)
{
	int rc = EAGAIN;
	while (rc == EAGAIN) {
		uint64_t seen = vez__word_of(in);
		if (!rules->serve || !rules->serve(in, seen))
			rc = rules->take(in, seen, r);
	}
	return rc;
}

static bool try_mark(struct vez__stay *in, const struct vez__rules *rules, uint64_t seen, vez_request_t *r)
{
	if (rules->mark)
		return rules->mark(in, seen, r);
	return !vez__is_marked(rules) || vez__change(in, seen, (seen | rules->waiting) + rules->each);
}

static VEZ__HOT void mark(struct vez__stay *in, const struct vez__rules *rules, vez_request_t *r)
{
	uint64_t seen;
	do
		seen = vez__word_of(in);
	while ((rules->serve && rules->serve(in, seen)) || !try_mark(in, rules, seen, r));
}

VEZ__HOT int vez__queue_inside(struct vez__stay *in, const struct vez__rules *rules, vez_request_t *r)
{
	if (!vez__prepare(in->core, rules, vez__queue_at(in->core, rules), r))
		return ECANCELED;
	mark(in, rules, r);
	if (VEZ__UNLIKELY(vez__is_member(r)))
		r->state_ |= VEZ__FILING;
	vez__insert(in->core, r);
	return VEZ__UNLIKELY(vez__is_member(r)) ? vez__member_filed(in, r) : EINPROGRESS;
}

/* Enters, serves, and takes what r wants; or queues it, if it waits. 0; EINPROGRESS: it is queued; or an error. */
static VEZ__HOT int file(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r, bool waits)
{
	struct vez__stay in;
	r->rules_ = rules;
	vez__enter(&in, c);
	int rc = take_inside(&in, rules, r);
	if (rc == EBUSY && waits)
		rc = vez__queue_inside(&in, rules, r);
	vez__leave(&in, rules);
	return rc;
}

int vez__attempt_inside(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r)
{
	return file(c, rules, r, false);
}

VEZ__HOT int vez__wait(struct vez__core *c, const struct vez__rules *rules, const vez_request_t *like,
		       vez_deadline_t deadline)
{
	vez_request_t r;
	vez__request_init_local(&r, like->key_, like->cancel_);
	r.value_ = like->value_;
	r.with_.ptr_ = like->with_.ptr_;
	r.rules_ = rules;
	if (vez__is_fired(like->cancel_))
		return ECANCELED;
	if (vez__deadline_passed(deadline))
		return vez__no_time_left(rules->attempt(c, &r));
	int rc = file(c, rules, &r, true);
	return rc == EINPROGRESS ? vez__await(&r, deadline) : rc;
}

/* ---- without a thread ---- */

inline int vez__async_begin_inside(vez_request_t *r)
{
	vez__store(&r->word_, 0, relaxed);
	r->state_ = 0;
	r->how_ = (r->how_ & VEZ__COMPLETES) | VEZ__IS_ASYNC;
	if (vez__is_member(r)) {
		vez_select_t *s = vez__select_of(r);
		s->filed_++;
		vez__fetch_add(&s->pending_, 1, relaxed);
		if (vez__winner_of(s))
			return ECANCELED;
	}
	return vez__is_fired(r->cancel_) ? ECANCELED : 0;
}

inline int vez__async_begin(vez_request_t *r)
{
	vez__inspect_ready();
	int rc = vez__async_begin_inside(r);
	return rc == 0 && vez__timer_is_set(&r->timer_) ? vez__clock_start() : rc;
}

int vez__async_end(vez_request_t *r, int rc)
{
	vez__alarm_tell(); /* also for a member that was queued and settled in the same stay */
	if (rc == EINPROGRESS) {
		vez__clock_start_if_wanted();
		return rc;
	}
	vez__decide(r, rc);
	rc = r->at_.result_;
	bool member = vez__is_member(r);
	if (vez__load(&r->word_, relaxed) & VEZ__ASYNC) {
		vez__hold();
		vez__forget_limits(r);
		vez__let_go();
		vez__complete_at_once(r);
	} else {
		vez__done_at_once(r);
	}
	if (member)
		vez__member_decided(r);
	return rc;
}

int vez__refuse_async(vez_request_t *r, int rc)
{
	vez__async_begin(r);
	return vez__async_end(r, rc);
}

int vez__file_async(struct vez__core *c, const struct vez__rules *rules, vez_request_t *r)
{
	if (rules->fast && vez__granted_at_once(c, rules->fast, r))
		return 0;
	int rc = vez__async_begin(r);
	r->rules_ = rules;
	if (rc == 0 && vez__timer_is_set(&r->timer_) && !vez__must_queue(r) && rules->fast && rules->fast(c, r)) {
		r->at_.result_ = 0;
		vez__done_at_once(r);
		return 0;
	}
	if (rc == 0)
		rc = vez__async_waits(r) ? file(c, rules, r, true) : vez__no_time_left(rules->attempt(c, r));
	return vez__async_end(r, rc);
}
