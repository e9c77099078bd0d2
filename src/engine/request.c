/* SPDX-License-Identifier: MIT */
/* Requests, as their owners see them: their fields, how they are waited for and withdrawn, and lists of completions. */
#include "vez/request.h"

#include <errno.h>
#include <string.h>

#include "await.h"

static void init(vez_request_t *r, uint16_t how, void *arg)
{
	memset(r, 0, sizeof *r);
	r->how_ = how;
	r->arg_ = arg;
}

void vez_request_init(vez_request_t *r, void (*done)(vez_request_t *r, int result, void *arg), void *arg)
{
	init(r, VEZ__CALLS, arg);
	r->then_.done_ = done;
}

void vez_request_init_eventfd(vez_request_t *r, int efd)
{
	init(r, VEZ__TICKS, (void *)(intptr_t)efd);
}

void vez_request_init_completions(vez_request_t *r, vez_completions_t *l)
{
	init(r, VEZ__LISTED, l);
}

void vez_request_set_limits(vez_request_t *r, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez__timer_to(&r->timer_, deadline);
	r->cancel_ = cancel;
}

void vez_request_set_key(vez_request_t *r, int64_t key)
{
	r->key_ = key;
}

void vez_request_set_value(vez_request_t *r, void *ptr, uint64_t word)
{
	r->with_.ptr_ = ptr;
	r->value_ = word;
}

void *vez_request_ptr(const vez_request_t *r)
{
	return r->with_.ptr_;
}

uint64_t vez_request_value(const vez_request_t *r)
{
	return r->value_;
}

/* ---- waiting for it ---- */

int vez_request_wait(vez_request_t *r, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__stay in;
	void *on;
	if (vez__is_fired(cancel))
		return ECANCELED;
	int rc = vez__completion_status(&in, r, &on);
	if (rc == EINPROGRESS)
		return vez__wait_holding(&in, &vez__completion_rules, on, r, deadline, cancel);
	vez__leave_holding(&in);
	return rc;
}

int vez_request_result(const vez_request_t *r)
{
	return vez__load(&r->word_, acquire) & VEZ__DONE ? r->at_.result_ : EINPROGRESS;
}

int vez_request_cancel(vez_request_t *r)
{
	return vez__word_announce_end(&r->word_) && vez__end_announced(r, ECANCELED) ? 0 : EALREADY;
}

/* ---- a list of completions ---- */

static const struct vez__rules list_rules = {
	.type = VEZ__COMPLETIONS, .queue = offsetof(vez_completions_t, queue_) - offsetof(vez_completions_t, core_),
};

void vez_completions_init(vez_completions_t *l, int efd)
{
	memset(l, 0, sizeof *l);
	l->efd_ = efd;
}

vez_request_t *vez_completions_next(vez_completions_t *l)
{
	struct vez__stay in;
	if (!vez__load(&l->first_, acquire))
		return NULL;
	vez__enter_holding(&in, &l->core_);
	while (VEZ__UNLIKELY(l->ticking_)) {
		vez__wait_holding(&in, &list_rules, NULL, l, VEZ_FOREVER, NULL);
		vez__enter_holding(&in, &l->core_);
	}
	vez_request_t *r = l->first_;
	vez__store(&l->first_, r->next_, relaxed);
	vez__leave_holding(&in);
	return r;
}

int vez_completions_wait(vez_completions_t *l, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct vez__stay in;
	int rc = 0;
	if (vez__is_fired(cancel))
		return ECANCELED;
	while (rc == 0 && !vez__load(&l->first_, acquire)) {
		vez__enter_holding(&in, &l->core_);
		if (l->first_)
			vez__leave_holding(&in);
		else
			rc = vez__wait_holding(&in, &list_rules, NULL, l, deadline, cancel);
	}
	return rc;
}
