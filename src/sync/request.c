/* SPDX-License-Identifier: MIT */
/* A request's fields. Its life in a room is in monitor.c, its completion in completion.c. */
#include "vez/request.h"

#include <string.h>

#include "alarm.h"
#include "completion.h"

void vez_request_init(vez_request_t *r, void (*done)(vez_request_t *r, int result, void *arg), void *arg)
{
	memset(r, 0, sizeof *r);
	r->then_.done_ = done;
	r->arg_ = arg;
}

void vez_request_init_eventfd(vez_request_t *r, int efd)
{
	memset(r, 0, sizeof *r);
	r->kind_ = VEZ__TICKS;
	r->arg_ = (void *)(intptr_t)efd;
}

void vez_request_init_completions(vez_request_t *r, vez_completions_t *l)
{
	memset(r, 0, sizeof *r);
	r->kind_ = VEZ__LISTED;
	r->arg_ = l;
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
	r->ptr_ = ptr;
	r->value_ = word;
}

void *vez_request_ptr(const vez_request_t *r)
{
	return r->ptr_;
}

uint64_t vez_request_word(const vez_request_t *r)
{
	return r->value_;
}
