/* SPDX-License-Identifier: MIT */
/*
 * Queues of requests, smallest key first, first come first served among equals.
 *
 * A newcomer looks for its place from the end. So that it need not pass every request with a greater key, some have
 * jumps: a request that JUMPS knows the nearest one before it that jumps and is at least as high as itself, or that
 * there is none. Heights are those of a skip list, one level in two; but a request has this one link only. Who comes
 * too far by it goes one step back, and jumps from there, lower: the places that are looked at grow with the square of
 * the logarithm at most.
 *
 * State, of a request in a queue, inside
 *  state_    JUMPS: enlisted_[0] is its jump
 *  enlisted_ the jump is where the links in a token's ring would be: so what is ENLISTED with a token has height 0
 *  The height of the others is a hash of their address.
 * Invariants
 *  Q1 keys do not decrease from the first to the last.
 *  Q2 of a request that JUMPS, its height is greater than 0, and its jump is the nearest before it that JUMPS and is
 *     not lower; NULL: there is none.
 *  Q3 whatever has a height before a request that JUMPS, jumps too: those that do not are the last ones.
 * Progress: whoever comes last, as all do while keys are equal, is appended, without a jump. It gets one, if it has a
 *  height, when the first newcomer passes by it, so each is passed so once. What has a token is passed step by step, by
 *  everybody. A request that jumps leaves in the time that it takes to reach the next one that is as high.
 * Sources: Pugh, "Skip Lists" (1990); one jump for each node: Myers, "An applicative random-access stack" (1983).
 */
#include "room.h"

#include <string.h>

#include "../futex/atomic.h"
#include "../futex/stack.h"
#include "settle.h"

#define HIGHEST 16

/* ---- jumps ---- */

static unsigned height_of(const vez_request_t *r)
{
	return r->how_ & VEZ__ENLISTED ? 0 : (unsigned)__builtin_ctzll(vez__hash_of(r, HIGHEST) | UINT64_C(1) << HIGHEST);
}

static bool jumps(const vez_request_t *r)
{
	return r->state_ & VEZ__JUMPS;
}

static vez_request_t *jump_of(const vez_request_t *r)
{
	return r->enlisted_[0];
}

/* Those whose jumps are being looked for, on the way towards the first: one of each height, and none higher. */
struct open {
	vez_request_t *of[HIGHEST + 1];
	unsigned highest;
};

static void open_jump(struct open *open, vez_request_t *r, unsigned height)
{
	open->of[height] = r;
	if (height > open->highest)
		open->highest = height;
}

/* The way has come to r, NULL: to its end, which is as high as that: those not higher jump there. */
static void close_jumps(struct open *open, vez_request_t *r, unsigned height)
{
	unsigned most = height < open->highest ? height : open->highest;
	for (unsigned i = 1; i <= most; i++) {
		vez_request_t *from = open->of[i];
		if (!from)
			continue;
		from->enlisted_[0] = r;
		from->state_ |= VEZ__JUMPS;
		open->of[i] = NULL;
	}
	if (height >= open->highest)
		open->highest = 0;
}

static vez_request_t *step_back(const vez_request_t *first, const vez_request_t *r)
{
	return r == first ? NULL : r->at_.before_;
}

/* From r on towards the first: the last one with this key or a smaller one; NULL: all have greater ones. Open are then
 * those behind it whose jumps pass by that place. */
static vez_request_t *last_not_after(struct open *open, const vez_request_t *first, vez_request_t *r, int64_t key)
{
	while (r && r->key_ > key) {
		unsigned height = height_of(r);
		vez_request_t *to = jumps(r) ? jump_of(r) : NULL;
		close_jumps(open, r, height);
		if (to && to->key_ > key) {
			r = to;
			continue;
		}
		if (height > 0)
			open_jump(open, r, height);
		r = step_back(first, r);
	}
	return r;
}

/* From r on towards the first: closes all that are open. What it passes step by step has a jump afterwards. */
static void close_all(struct open *open, const vez_request_t *first, vez_request_t *r)
{
	while (r && open->highest > 0) {
		unsigned height = height_of(r);
		close_jumps(open, r, height);
		if (jumps(r)) {
			r = jump_of(r);
			continue;
		}
		if (height > 0)
			open_jump(open, r, height);
		r = step_back(first, r);
	}
	close_jumps(open, NULL, HIGHEST);
}

/* r, which jumps, is to leave its queue: opens the jumps to it. They are of those behind it that are higher than all
 * between and not higher than r, as far as any jump (Q3). */
static void open_jumps_to(struct open *open, const vez_request_t *first, const vez_request_t *r)
{
	unsigned most = height_of(r), highest = 0;
	for (vez_request_t *y = vez__queue_next(first, r); y && highest < most; y = vez__queue_next(first, y)) {
		unsigned height = height_of(y);
		if (height > 0 && !jumps(y))
			return;
		if (height > highest && height <= most)
			open_jump(open, y, height);
		if (height > highest)
			highest = height;
	}
}

/* ---- queues ---- */

void vez__queue_insert_before_last(vez_request_t **queue, vez_request_t *r)
{
	struct open open = { .highest = 0 };
	vez_request_t *first = *queue, *before = last_not_after(&open, first, first->at_.before_, r->key_);
	unsigned height = height_of(r);
	if (before) {
		cds_list_add((struct cds_list_head *)r, (struct cds_list_head *)before);
	} else {
		vez__ring_append(queue, r);
		*queue = r;
	}
	close_jumps(&open, r, height);
	if (height > 0)
		open_jump(&open, r, height);
	close_all(&open, first, before);
}

void vez__queue_remove_jumping(vez_request_t **queue, vez_request_t *r)
{
	struct open open = { .highest = 0 };
	vez_request_t *first = *queue, *before = step_back(first, r);
	r->state_ &= ~VEZ__JUMPS;
	open_jumps_to(&open, first, r);
	vez__ring_remove(queue, r);
	close_all(&open, first, before);
}

/* ---- rooms of users' monitors ---- */

void vez_room_init(vez_room_t *room)
{
	memset(room, 0, sizeof *room);
}

vez_request_t *vez_room_first(const vez_room_t *room)
{
	return room->first_;
}

vez_request_t *vez_room_next(const vez_room_t *room, const vez_request_t *r)
{
	return vez__queue_next(room->first_, r);
}

size_t vez_room_length(const vez_room_t *room)
{
	return vez__load(&room->length_, relaxed);
}
