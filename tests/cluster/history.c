/* SPDX-License-Identifier: MIT */
/*
 * A history of holds, written by any number of processes into memory that they share, so that what a killed one wrote
 * stays; and its checker.
 *
 * A hold is certain from GOT (written after the acquire returned) until GIVES_BACK (written before the release begins)
 * or LOST (the client found its token fired, or its check failed); of a client that was killed or stopped, until its
 * last record before that. So what overlaps here overlapped at the servers.
 */
#include "lab.h"

#include <time.h>

struct history *history_new(void)
{
	return shared(sizeof(struct history));
}

void note(struct history *h, int client, int round, enum happened what, uint32_t n, uint64_t fence)
{
	uint32_t at = __atomic_fetch_add(&h->count, 1, __ATOMIC_ACQ_REL);
	struct timespec now;
	CHECK(at < sizeof h->records / sizeof h->records[0]);
	clock_gettime(CLOCK_MONOTONIC, &now);
	h->records[at] = (struct record){ now.tv_sec * SECOND_NS + now.tv_nsec, fence, n, client, round, what };
}

struct change {
	int64_t when;
	int64_t by;
	uint64_t fence;
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	if (x->when != y->when)
		return x->when < y->when ? -1 : 1;
	return (x->by > 0) - (y->by > 0);
}

/* When the hold that record i began is certain no more. */
static int64_t end_of_hold(const struct history *h, uint32_t i)
{
	const struct record *r = &h->records[i];
	for (uint32_t j = i + 1; j < h->count; j++) {
		const struct record *s = &h->records[j];
		if (s->client == r->client && s->round == r->round &&
		    (s->what == GIVES_BACK || s->what == LOST || s->what == WROTE))
			return s->when;
	}
	return r->when;
}

const char *history_fault(const struct history *h, uint32_t permits)
{
	struct change *c = calloc(2 * (size_t)h->count + 1, sizeof *c);
	const char *fault = NULL;
	size_t count = 0;
	int64_t held = 0;
	uint64_t last = 0, last_alone = 0;
	for (uint32_t i = 0; i < h->count; i++) {
		const struct record *r = &h->records[i];
		if (r->what != GOT)
			continue;
		int64_t end = end_of_hold(h, i);
		if (end > r->when) {
			c[count++] = (struct change){ r->when, r->n, r->fence };
			c[count++] = (struct change){ end, -(int64_t)r->n, 0 };
		}
	}
	qsort(c, count, sizeof *c, by_time);
	for (size_t i = 0; i < count; i++) {
		held += c[i].by;
		if (held > permits)
			fault = "more is held than there is";
		if (c[i].by < 0)
			continue;
		bool alone = c[i].by == permits;
		if (c[i].fence <= (alone ? last : last_alone))
			fault = "a fence does not grow";
		if (c[i].fence > last)
			last = c[i].fence;
		if (alone)
			last_alone = c[i].fence;
	}
	free(c);
	return fault;
}

size_t history_count(const struct history *h, enum happened what)
{
	size_t count = 0;
	for (uint32_t i = 0; i < h->count; i++)
		count += h->records[i].what == what;
	return count;
}

size_t history_count_of(const struct history *h, enum happened what, int client)
{
	size_t count = 0;
	for (uint32_t i = 0; i < h->count; i++)
		count += h->records[i].what == what && h->records[i].client == client;
	return count;
}
