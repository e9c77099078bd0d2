/* SPDX-License-Identifier: MIT */
/* A request's public fields. Its life in a room is in monitor.c. */
#include "vez/request.h"

#include <string.h>

void vez_request_init(vez_request_t *r, void (*done)(vez_request_t *r, int result, void *arg), void *arg)
{
	memset(r, 0, sizeof *r);
	r->done_ = done;
	r->arg_ = arg;
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
