/* SPDX-License-Identifier: MIT */
/* A token: its flag, and the requests that wait with it. */
#ifndef VEZ__TOKEN_H
#define VEZ__TOKEN_H

#include "vez/cancel.h"
#include "vez/request.h"

#include "../futex/atomic.h"

/* Bit 0 of a token's arrivals_: it is fired. */
#define VEZ__TOKEN_FIRED ((uintptr_t)1)

static inline bool vez__token_is_fired(const vez_cancel_t *c)
{
	return vez__load(&c->arrivals_, acquire) & VEZ__TOKEN_FIRED;
}

/* Enlists r with its token r->cancel_: false, and not enlisted, if that is fired. Takes no lock. */
bool vez__token_enlist(vez_request_t *r);

/* Takes r off its token's list, if it has a token that did not take it off itself. Holding. */
void vez__token_delist(vez_request_t *r);

/* Marks the token fired, and appends to claimed, a ring of their enlisted_ links, the requests that are for this fire
 * to end. False: it was fired before. Holding. */
bool vez__token_mark(vez_cancel_t *c, void *claimed);

/* The request with this link. */
static inline vez_request_t *vez__enlisted_at(void *link)
{
	return (vez_request_t *)((char *)link - offsetof(vez_request_t, enlisted_));
}

/* Whether a request is enlisted. Holding. */
bool vez__token_has_waits(vez_cancel_t *c);

/* A token that fires with its parent is made while that is fired. */
void vez__token_make_fired(vez_cancel_t *c);

#endif
