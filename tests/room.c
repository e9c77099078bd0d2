/* SPDX-License-Identifier: MIT */
/* Queues by key: their order, and the jumps by which a newcomer finds its place. */
#include "engine/room.h"

#include <string.h>

#include "engine/settle.h"
#include "futex/stack.h"
#include "variant.h"

TestSuite(room, .timeout = 60);

#define MOST 400
#define ROUNDS 4000

static struct {
	vez_request_t *requests[MOST];
	vez_request_t *queue;
	vez_request_t *order[MOST]; /* what the queue is to be */
	size_t length;
	uint64_t random;
} s;

static uint64_t random_below(uint64_t below)
{
	s.random = s.random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (s.random >> 33) % below;
}

/* Links of a token's ring, which are nobody else's. */
static void *links_of(vez_request_t *r, unsigned i)
{
	return (char *)r + i + 1;
}

/* As room.c has it. */
static unsigned height_of(const vez_request_t *r)
{
	return r->how_ & VEZ__ENLISTED ? 0 : (unsigned)__builtin_ctzll(vez__hash_of(r, 16) | 1 << 16);
}

/* Some that are high, the highest first: they are few, wherever the memory is. Then those that come. */
static void find_requests(void)
{
	enum { HIGH = 8 };
	static vez_request_t pool[1 << 17];
	const size_t all = sizeof pool / sizeof pool[0];
	size_t found = 0;
	for (unsigned height = 17; height-- > HIGH;)
		for (size_t i = 0; i < all && found < MOST / 4; i++)
			if (height_of(&pool[i]) == height)
				s.requests[found++] = &pool[i];
	EXPECT(height_of(s.requests[0]) > 12);
	for (size_t i = 0; i < all && found < MOST; i++)
		if (height_of(&pool[i]) < HIGH)
			s.requests[found++] = &pool[i];
}

/* Whatever it was before. */
static void put(vez_request_t *r, int64_t key, bool enlisted)
{
	memset(r, 0xa5, sizeof *r);
	r->state_ = r->how_ = 0;
	r->key_ = key;
	if (enlisted) {
		r->how_ = VEZ__ENLISTED;
		r->enlisted_[0] = links_of(r, 0);
		r->enlisted_[1] = links_of(r, 1);
	}
	vez__queue_insert(&s.queue, r);
	r->state_ |= VEZ__QUEUED;
	size_t i = s.length++;
	for (; i > 0 && s.order[i - 1]->key_ > key; i--)
		s.order[i] = s.order[i - 1];
	s.order[i] = r;
}

static void take_out(size_t i)
{
	vez_request_t *r = s.order[i];
	vez__queue_remove(&s.queue, r);
	EXPECT(!(r->state_ & VEZ__JUMPS));
	r->state_ = r->how_ = 0;
	memmove(&s.order[i], &s.order[i + 1], (--s.length - i) * sizeof s.order[0]);
}

static size_t jumping;

/* That jumps, and is at least as high as that. */
static const vez_request_t *nearest_before(size_t i, unsigned height)
{
	while (i-- > 0)
		if ((s.order[i]->state_ & VEZ__JUMPS) && height_of(s.order[i]) >= height)
			return s.order[i];
	return NULL;
}

static void check_jumps(size_t i)
{
	const vez_request_t *r = s.order[i];
	if (r->how_ & VEZ__ENLISTED) {
		EXPECT(!(r->state_ & VEZ__JUMPS));
		EXPECT_EQ((uintptr_t)r->enlisted_[0], (uintptr_t)links_of(s.order[i], 0));
		EXPECT_EQ((uintptr_t)r->enlisted_[1], (uintptr_t)links_of(s.order[i], 1));
	}
	if (!(r->state_ & VEZ__JUMPS))
		return;
	jumping++;
	EXPECT_EQ((uintptr_t)r->enlisted_[0], (uintptr_t)nearest_before(i, height_of(r)));
	EXPECT_EQ((uintptr_t)r->enlisted_[1], (uintptr_t)nearest_before(i, (height_of(r) + 1) / 2));
}

static void check(void)
{
	const vez_request_t *r = s.queue;
	bool one_does_not = false;
	for (size_t i = 0; i < s.length; i++, r = vez__queue_next(s.queue, r)) {
		EXPECT(!(r->state_ & VEZ__JUMPS) || !one_does_not);
		one_does_not |= !(r->state_ & VEZ__JUMPS) && height_of(r) > 0;
		EXPECT_EQ((uintptr_t)r, (uintptr_t)s.order[i]);
		EXPECT_EQ((uintptr_t)r->next_->at_.before_, (uintptr_t)r);
		check_jumps(i);
	}
	EXPECT_EQ((uintptr_t)r, (uintptr_t)NULL);
}

/* Any order of coming and going, with many keys, few, or one; some have tokens. Seen to fail: remove_jumping without
 * seek_jumps_to; seek_jumps_to that takes in what is lower; last_not_after that jumps whatever key is there, or closes
 * nothing; find_all that ends at the first that jumps; height_of that forgets ENLISTED; no room for the jumps of
 * those that are higher than 12. */
Test(room, in_the_order_of_keys_whoever_comes_and_goes)
{
	static const struct {
		uint64_t keys;
		unsigned tokens; /* one in so many has one; 0: none */
		size_t full;
	} kinds[] = { { 1000000, 0, MOST }, { 1000000, 3, MOST }, { 4, 0, MOST }, { 4, 2, 100 }, { 1, 0, 50 },
		      { 1000000, 1, MOST }, { 30, 5, 10 } };
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		memset(&s, 0, sizeof s);
		find_requests();
		s.random = k + 1;
		jumping = 0;
		for (unsigned round = 0; round < ROUNDS; round++) {
			bool fills = round / kinds[k].full % 2 == 0; /* by turns it rather grows, and shrinks */
			vez_request_t *r = s.requests[random_below(MOST)];
			if (s.length > 0 && random_below(4) < (fills ? 1 : 3))
				take_out(random_below(3) ? 0 : random_below(s.length));
			else if (!(r->state_ & VEZ__QUEUED))
				put(r, (int64_t)random_below(kinds[k].keys),
				    kinds[k].tokens && random_below(kinds[k].tokens) == 0);
			if (round % 8 == 0)
				check();
		}
		EXPECT((jumping > 0) == (kinds[k].keys > 1 && kinds[k].tokens != 1));
		while (s.length > 0)
			take_out(0);
		check();
	}
}

/* How many of the queue a newcomer would look at, one step or jump after the other. */
static unsigned looks(int64_t key)
{
	unsigned count = 0;
	const vez_request_t *r = s.queue->at_.before_;
	while (r && r->key_ > key) {
		const vez_request_t *to = r == s.queue ? NULL : r->at_.before_;
		for (int i = 2; i-- > 0;) {
			const vez_request_t *jump = r->state_ & VEZ__JUMPS ? r->enlisted_[i] : NULL;
			to = jump && jump->key_ > key ? jump : to;
		}
		count++;
		r = to;
	}
	return count;
}

/* First those that have all come last, with the same key; then others pass by them. This counts what the jumps are good
 * for, not the library's own steps. Seen to fail: those that are passed seek no jumps. */
Test(room, a_newcomer_passes_by_few)
{
	enum { MANY = 20000 };
	static vez_request_t many[MANY];
	memset(&s, 0, sizeof s);
	for (int i = 0; i < MANY / 2; i++) {
		many[i].key_ = MANY;
		vez__queue_insert(&s.queue, &many[i]);
	}
	EXPECT_EQ(looks(0), MANY / 2);
	for (int i = MANY / 2; i < MANY; i++) {
		many[i].key_ = (int64_t)random_below(MANY);
		vez__queue_insert(&s.queue, &many[i]);
	}
	uint64_t all = 0;
	for (int key = 0; key < MANY; key += MANY / 200)
		all += looks(key);
	EXPECT(all / 200 < 100);
}
