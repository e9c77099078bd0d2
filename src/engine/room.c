/* SPDX-License-Identifier: MIT */
/*
 * Queues of requests, smallest key first, first come first served among equals.
 *
 * A newcomer looks for its place from the end. So that it need not pass every request with a greater key, some have
 * jumps: a request that JUMPS knows the nearest one before it that jumps and is at least as high as itself, its far
 * jump, and the nearest that is at least half as high, its near jump; or that there is none. Heights are those of a
 * skip list, one level in two; but a request has these two links only. Who comes too far by both goes one step back,
 * and jumps from there, lower: the places that are looked at grow with the square of the logarithm, on average. The
 * near jumps spare a newcomer most of those that are low: these are the many that no cache has.
 *
 * State, of a request in a queue, inside
 *  state_    JUMPS: enlisted_[0] is its far jump, enlisted_[1] its near one
 *  enlisted_ the jumps are where the links in a token's ring would be: so what is ENLISTED with a token has height 0
 *  The height of the others is a hash of their address.
 * Invariants
 *  Q1 keys do not decrease from the first to the last, in a queue in which all were inserted by their keys.
 *  Q2 of a request that JUMPS, its height is greater than 0; its far jump is the nearest before it that JUMPS and is
 *     not lower; its near jump the nearest that JUMPS and is not lower than half its height, rounded up; NULL: there is
 *     none.
 *  Q3 whatever has a height before a request that JUMPS, jumps too: those that do not are the last ones.
 * Progress: whoever comes last, as all do while keys are equal, is appended, without jumps. It gets them, if it has a
 *  height, when the first newcomer passes by it, so each is passed so once. What has a token is passed step by step, by
 *  everybody. A request that jumps leaves in the time that it takes to reach the next one that is as high: a few steps
 *  on average, but many, each time, for one that lies where its address makes it high.
 * Sources: Pugh, "Skip Lists" (1990); few links for each node: Myers, "An applicative random-access stack" (1983).
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

static vez_request_t *far_of(const vez_request_t *r)
{
	return r->enlisted_[0];
}

static vez_request_t *near_of(const vez_request_t *r)
{
	return r->enlisted_[1];
}

/* How high one has to be that one of this height has as its near jump. */
static unsigned near_height(unsigned height)
{
	return (height + 1) / 2;
}

/* Jumps that are to be set anew: far[h], near[h], of the one request of height h that has such a jump, or NULL. */
struct open {
	unsigned highest; /* what is above that is not set at all */
	vez_request_t *far[HIGHEST + 1];
	vez_request_t *near[HIGHEST + 1];
};

static void reach(struct open *open, unsigned height)
{
	while (open->highest < height) {
		open->highest++;
		open->far[open->highest] = open->near[open->highest] = NULL;
	}
}

static void open_far(struct open *open, vez_request_t *r, unsigned height)
{
	reach(open, height);
	open->far[height] = r;
}

static void open_near(struct open *open, vez_request_t *r, unsigned height)
{
	reach(open, height);
	open->near[height] = r;
}

/* The jumps for which this height will do lead to r from now on. NULL: none of them leads anywhere. A near jump is set
 * before the far one, or with it: so what has a far jump has both. */
static void close_jumps(struct open *open, vez_request_t *r, unsigned height)
{
	for (unsigned i = 1; i <= open->highest && near_height(i) <= height; i++) {
		if (open->near[i])
			open->near[i]->enlisted_[1] = r;
		open->near[i] = NULL;
		if (i > height || !open->far[i])
			continue;
		open->far[i]->enlisted_[0] = r;
		open->far[i]->state_ |= VEZ__JUMPS;
		open->far[i] = NULL;
	}
	while (open->highest > 0 && !open->far[open->highest] && !open->near[open->highest])
		open->highest--;
}

static vez_request_t *step_back(const vez_request_t *first, const vez_request_t *r)
{
	return r == first ? NULL : r->at_.before_;
}

/* On the way towards the first: the jumps that are sought lead to r if it is high enough. r, which does not jump, seeks
 * its own further on. Returns what is before it. */
static vez_request_t *pass(struct open *sought, const vez_request_t *first, vez_request_t *r)
{
	unsigned height = height_of(r);
	close_jumps(sought, r, height);
	if (height > 0) {
		open_far(sought, r, height);
		open_near(sought, r, height);
	}
	return step_back(first, r);
}

/* From r on towards the first: finds all that are sought. */
static void find_all(struct open *sought, const vez_request_t *first, vez_request_t *r)
{
	while (r && sought->highest > 0) {
		if (!jumps(r)) {
			r = pass(sought, first, r);
			continue;
		}
		close_jumps(sought, r, height_of(r));
		r = far_of(r);
	}
	close_jumps(sought, NULL, HIGHEST);
}

/* To be looked at soon, perhaps: those that come into question are fetched at the same time. */
static void prefetch(const vez_request_t *r)
{
	if (!r)
		return;
	__builtin_prefetch(r);
	__builtin_prefetch(&r->key_);
}

static bool is_after(const vez_request_t *r, int64_t key)
{
	return r && r->key_ > key;
}

/* From r on towards the first: the last one with this key or a smaller one; NULL: all have greater ones. Passing are
 * the jumps that lead past that place; sought those of what is behind it and does not jump. */
static vez_request_t *last_not_after(struct open *passing, struct open *sought, const vez_request_t *first,
				     vez_request_t *r, int64_t key)
{
	while (is_after(r, key)) {
		if (!jumps(r)) {
			r = pass(sought, first, r);
			continue;
		}
		unsigned height = height_of(r);
		prefetch(near_of(r));
		prefetch(r->at_.before_);
		if (sought->highest > 0)
			close_jumps(sought, r, height);
		if (is_after(far_of(r), key)) {
			r = far_of(r);
			continue;
		}
		open_far(passing, r, height);
		if (is_after(near_of(r), key)) {
			r = near_of(r);
			continue;
		}
		open_near(passing, r, height);
		r = step_back(first, r);
	}
	return r;
}

/* r, which jumps, is to leave its queue: the jumps to it are sought. One behind it jumps to r if r is high enough for
 * that jump, and nothing between them is. Behind the first that has a height and does not jump, nobody jumps (Q3). */
static void seek_jumps_to(struct open *sought, const vez_request_t *first, const vez_request_t *r)
{
	unsigned most = height_of(r), highest = 0;
	for (vez_request_t *y = vez__queue_next(first, r); y && highest < most; y = vez__queue_next(first, y)) {
		unsigned height = height_of(y);
		if (height > 0 && !jumps(y))
			return;
		if (height > highest && height <= most)
			open_far(sought, y, height);
		if (near_height(height) > highest && near_height(height) <= most)
			open_near(sought, y, height);
		if (height > highest)
			highest = height;
	}
}

/* ---- queues ---- */

void vez__queue_insert_before_last(vez_request_t **queue, vez_request_t *r)
{
	struct open passing, sought;
	passing.highest = sought.highest = 0;
	vez_request_t *first = *queue, *before = last_not_after(&passing, &sought, first, first->at_.before_, r->key_);
	if (before) {
		cds_list_add((struct cds_list_head *)r, (struct cds_list_head *)before);
	} else {
		vez__ring_append(queue, r);
		*queue = r;
	}
	close_jumps(&passing, r, height_of(r)); /* others lead past r, too */
	pass(&sought, first, r);
	find_all(&sought, first, before);
}

void vez__queue_remove_jumping(vez_request_t **queue, vez_request_t *r)
{
	struct open sought;
	sought.highest = 0;
	vez_request_t *first = *queue, *before = step_back(first, r);
	r->state_ &= ~VEZ__JUMPS;
	seek_jumps_to(&sought, first, r);
	vez__ring_remove(queue, r);
	find_all(&sought, first, before);
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
