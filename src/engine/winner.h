/* SPDX-License-Identifier: MIT */
/* How one member of a wait-for-any wins. */
#ifndef VEZ__WINNER_H
#define VEZ__WINNER_H

#include "../futex/slot.h"
#include "vez/request.h"

/* A request's how_. Bits 0-1: how an asynchronous one completes. */
#define VEZ__CALLS 0u     /* then_.done_(r, result, arg_) */
#define VEZ__TICKS 1u     /* the eventfd arg_ */
#define VEZ__LISTED 2u    /* in the list arg_ */
#define VEZ__MEMBER 3u    /* of the select arg_ */
#define VEZ__COMPLETES 3u
#define VEZ__IS_ASYNC 4u  /* no thread waits for it */
#define VEZ__IN_SLOT 8u    /* its thread sleeps in its slot (futex/slot.h) */
#define VEZ__ENLISTED 16u /* its links enlisted_ are its token's, or will be */
/* Bits 5-15: the slot of one that is IN_SLOT. */
#define VEZ__SLOT_SHIFT 5
_Static_assert(VEZ__SLOTS == 1u << (16 - VEZ__SLOT_SHIFT), "every slot has its number");

static inline uint32_t vez__slot_of(const vez_request_t *r)
{
	return r->how_ >> VEZ__SLOT_SHIFT;
}

static inline bool vez__is_member(const vez_request_t *r)
{
	return (r->how_ & VEZ__COMPLETES) == VEZ__MEMBER;
}

/* The select of which r is a member. */
static inline vez_select_t *vez__select_of(const vez_request_t *r)
{
	return (vez_select_t *)r->arg_;
}

/* Whether the two requests belong to the same wait-for-any. */
bool vez__same_select(const vez_request_t *a, const vez_request_t *b);

/* Stands for a winner where the wait was given up. */
extern char vez__nobody;
#define VEZ__NOBODY ((vez_request_t *)&vez__nobody)

/* Inside the core of r's object: whether r, a member (or VEZ__NOBODY), wins this select. May be asked in a signal
 * handler. */
bool vez__winner_set(vez_select_t *s, vez_request_t *r);
static inline bool vez__winner_take(vez_request_t *r)
{
	return vez__winner_set(vez__select_of(r), r);
}

/* The winner; NULL: there is none yet. */
vez_request_t *vez__winner_of(vez_select_t *s);

/* Two members of different selects, of which first is the calling thread's own, win together or not at all.
 * VEZ__NEITHER: both have won. Else one of them has lost, and this says which. */
enum vez__lost { VEZ__NEITHER, VEZ__FIRST, VEZ__SECOND };
enum vez__lost vez__winner_take_both(vez_request_t *first, vez_request_t *second);

#endif
