/* SPDX-License-Identifier: MIT */
/*
 * Which of its stores a load returns.
 *
 * With a bound of stale reads a location is not a value but its history: a list of messages, one for each store, in the
 * order that all threads agree on. Each message carries a view: for each location the oldest message that whoever
 * acquires it may still read. A thread has a view of its own.
 * - A load returns any message that is not older than the thread's view of the location; it moves that view there, and
 *   an acquire joins the message's view. Any but the newest is stale, and costs one.
 * - A store adds a message, and a release puts the thread's view into it. It may also come before messages that its
 *   thread has not seen (others have overwritten it already), for the same price: but not between a read-modify-write
 *   and what that has read.
 * - A read-modify-write reads the newest message. What it adds carries on the view of that one: the release sequence. A
 *   failed compare-and-swap is a relaxed load.
 * - Fences: an acquire fence joins what relaxed loads before it have read; a relaxed store after a release fence
 *   carries the view of that moment.
 * - seq_cst: one more view, of nobody. A fence joins it and leaves its own there; an access of a location reads or adds
 *   nothing older than that says of the location, and leaves there what it read or added.
 * - The kernel reads the newest.
 * A plain write ends a history: without races all other accesses come before it or after it.
 *
 * So what runs is what C11 allows, but for this: no load depends on a store that comes later (no cycle of program order
 * and reads-from: load buffering); a read-modify-write comes after all stores to its word that were made before it;
 * seq_cst is stronger than C11 where it is mixed with weaker accesses of the same words. The library has no fence and
 * no seq_cst. Histories are short: what is older than HISTORY_MOST messages is not read any more.
 * Delayed stores (memory.c) are not made besides: that nobody reads a store yet is all they do.
 * State: what a thread may read is the part of the histories that some thread has not passed; a view says how many
 * newer messages there are, of these locations only. That is what a state is known by, besides its values.
 * Sources: J. Kang et al., "A Promising Semantics for Relaxed-Memory Concurrency" (POPL 2017): messages and views,
 * without its promises; O. Lahav et al., "Repairing Sequential Consistency in C/C++11" (PLDI 2017).
 */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#define HISTORY_MOST 12

struct location {
	uintptr_t address;
	unsigned size;
	unsigned newest; /* its number; those of older ones are one less each */
	unsigned count;  /* 0: nothing is kept but what memory holds */
	struct message messages[HISTORY_MOST]; /* oldest first */
};

bool weak;
static struct location locations[LOCATIONS_MOST];
static unsigned used;
static struct view ordered; /* what seq_cst has seen */
static bool fences;

void weak_reset(void)
{
	used = 0;
	fences = false;
	memset(&ordered, 0, sizeof ordered);
}

void weak_join(struct view *into, const struct view *from)
{
	for (unsigned i = 0; i < used; i++)
		if (from->at[i] > into->at[i])
			into->at[i] = from->at[i];
}

static struct location *find(uintptr_t address)
{
	for (unsigned i = 0; i < used; i++)
		if (locations[i].address == address)
			return &locations[i];
	return NULL;
}

static unsigned oldest(const struct location *l)
{
	return l->newest + 1 - l->count;
}

static struct message *message(struct location *l, unsigned number)
{
	return &l->messages[number - oldest(l)];
}

static uint16_t *entry(struct view *v, const struct location *l)
{
	return &v->at[l - locations];
}

static void raise_to(struct view *v, const struct location *l, unsigned number)
{
	if (*entry(v, l) < number)
		*entry(v, l) = (uint16_t)number;
}

/* ---- histories ---- */

/* Room for one more: the oldest is left out if there is none. */
static void make_room(struct location *l)
{
	if (l->count < HISTORY_MOST)
		return;
	memmove(l->messages, l->messages + 1, (HISTORY_MOST - 1) * sizeof *l->messages);
	l->count--;
}

static struct message *append(struct location *l, uint64_t value)
{
	make_room(l);
	if (++l->newest > UINT16_MAX)
		fail("explorer", "too many stores");
	struct message *m = &l->messages[l->count++];
	memset(m, 0, sizeof *m);
	m->value = value;
	m->key = mix(value, clock_key(m->clock));
	return m;
}

/* Its history, which begins with what memory holds. */
static struct location *history(uintptr_t address, unsigned size, uint64_t old)
{
	struct location *l = find(address);
	if (!l) {
		if (used == LOCATIONS_MOST)
			fail("explorer", "a schedule has too many words");
		l = &locations[used++];
		l->address = address;
		l->size = size;
		l->newest = l->count = 0;
	}
	if (l->count == 0)
		append(l, old);
	else if (message(l, l->newest)->value != old)
		fail("explorer", "memory has changed without a step");
	return l;
}

void weak_forget(uintptr_t cell, uint8_t bytes)
{
	for (unsigned i = 0; i < used; i++) {
		struct location *l = &locations[i];
		uintptr_t at = l->address - cell;
		if (at < 8 && (((1u << l->size) - 1) << at & bytes))
			l->count = 0;
	}
}

static void shift(struct view *v, const struct location *l, unsigned from)
{
	if (*entry(v, l) >= from)
		++*entry(v, l);
}

/* Everything that is known of messages from this number on is then known of the number after. */
static struct message *insert(struct location *l, unsigned before, uint64_t value)
{
	append(l, 0);
	for (unsigned i = 0; i < used; i++)
		for (unsigned k = 0; k < locations[i].count; k++)
			shift(&locations[i].messages[k].view, l, before);
	for (unsigned i = 0; i < THREADS; i++) {
		shift(&threads[i].seen, l, before);
		shift(&threads[i].acquirable, l, before);
		shift(&threads[i].fenced, l, before);
	}
	shift(&ordered, l, before);
	struct message *m = message(l, before);
	memmove(m + 1, m, (l->newest - before) * sizeof *m);
	memset(m, 0, sizeof *m);
	m->value = value;
	return m;
}

/* ---- accesses ---- */

static unsigned lowest_of(const struct location *l, int order)
{
	unsigned low = self->seen.at[l - locations];
	if (order == __ATOMIC_SEQ_CST && ordered.at[l - locations] > low)
		low = ordered.at[l - locations];
	return low > oldest(l) ? low : oldest(l);
}

static void has_read(struct location *l, unsigned number, int order)
{
	const struct message *m = message(l, number);
	raise_to(&self->seen, l, number);
	weak_join(acquires(order) ? &self->seen : &self->acquirable, &m->view);
	if (order == __ATOMIC_SEQ_CST)
		raise_to(&ordered, l, number);
}

/* What self has added: its view and clock, and the key of all that. */
static void has_written(struct location *l, unsigned number, int order)
{
	struct message *m = message(l, number);
	raise_to(&self->seen, l, number);
	if (order == __ATOMIC_SEQ_CST)
		raise_to(&ordered, l, number);
	weak_join(&m->view, releases(order) ? &self->seen : &self->fenced);
	raise_to(&m->view, l, number);
	join_clock(m->clock, releases(order) ? self->clock : self->fenced_clock);
	m->key = mix(m->value, clock_key(m->clock));
}

const struct message *weak_load(const void *p, const struct x__site *site, const uint64_t *but)
{
	struct location *l = find((uintptr_t)p);
	unsigned at[HISTORY_MOST], n = 0;
	if (!l || l->count == 0)
		return NULL;
	at[n++] = l->newest;
	/* What waits for others sees them, and so does the kernel. */
	if (!self->looking && site->line != 0)
		for (unsigned i = l->newest; i-- > lowest_of(l, site->order);)
			if (!but || message(l, i)->value != *but)
				at[n++] = i;
	unsigned number = at[decide_stale(n)];
	has_read(l, number, site->order);
	return message(l, number);
}

bool weak_is_newest(const void *p, const struct message *m)
{
	struct location *l = find((uintptr_t)p);
	return m == message(l, l->newest);
}

bool weak_store(void *p, unsigned size, uint64_t old, uint64_t value, const struct x__site *site)
{
	struct location *l = history((uintptr_t)p, size, old);
	unsigned places = 1;
	if (site->order != __ATOMIC_SEQ_CST)
		for (unsigned i = l->newest; i > lowest_of(l, site->order) && !message(l, i)->rmw; i--)
			places++;
	unsigned chosen = decide_stale(places);
	if (chosen == 0) {
		append(l, value);
		has_written(l, l->newest, site->order);
		return true;
	}
	/* The oldest may go, and the others are where they were. */
	unsigned before = l->newest + 1 - chosen;
	insert(l, before, value);
	has_written(l, before, site->order);
	return false;
}

const struct message *weak_rmw_reads(void *p, unsigned size, uint64_t old, const struct x__site *site)
{
	struct location *l = history((uintptr_t)p, size, old);
	has_read(l, l->newest, site->order);
	return message(l, l->newest);
}

void weak_rmw_writes(void *p, uint64_t value, const struct x__site *site)
{
	struct location *l = find((uintptr_t)p);
	struct message *m = append(l, value), *before = m - 1;
	m->rmw = true;
	m->view = before->view;
	memcpy(m->clock, before->clock, sizeof m->clock);
	has_written(l, l->newest, site->order);
}

void weak_newest_read(const void *p)
{
	struct location *l = weak ? find((uintptr_t)p) : NULL;
	if (l && l->count > 0)
		has_read(l, l->newest, __ATOMIC_RELAXED);
}

void x__fences(void)
{
	fences = true;
}

void x__fence(int order)
{
	ENTER();
	point();
	flush_all(SELF);
	if (!fences)
		fail("explorer", "setup has not said that there are fences");
	if (acquires(order)) {
		weak_join(&self->seen, &self->acquirable);
		join_clock(self->clock, self->acquirable_clock);
		mix_history(clock_key(self->clock));
	}
	if (order == __ATOMIC_SEQ_CST) {
		weak_join(&self->seen, &ordered);
		ordered = self->seen;
	}
	if (releases(order)) {
		self->fenced = self->seen;
		memcpy(self->fenced_clock, self->clock, sizeof self->clock);
		self->clock[SELF]++;
	}
	TRACE("fence", NULL, NULL, 0, "%s", order == __ATOMIC_SEQ_CST ? "seq_cst" : acquires(order) ? "acquire" : "release");
}

/* ---- states ---- */

static bool lives(const struct thread *t)
{
	return t->state != UNUSED && t->state != FINISHED;
}

/* No thread reads anything older there. */
static unsigned lowest(const struct location *l)
{
	unsigned low = l->newest;
	for (unsigned i = 1; i < THREADS; i++)
		if (lives(&threads[i]) && threads[i].seen.at[l - locations] < low)
			low = threads[i].seen.at[l - locations];
	return low > oldest(l) ? low : oldest(l);
}

/* The locations of which some thread may read an old message, and the oldest of these. */
struct open {
	unsigned location, low;
};

static uint64_t view_key(const struct view *v, const struct open *open, unsigned n)
{
	uint64_t key = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct location *l = &locations[open[i].location];
		unsigned at = v->at[open[i].location];
		key += mix(l->address, l->newest - (at > open[i].low ? at : open[i].low));
	}
	return key;
}

static uint64_t history_key(struct location *l, unsigned low, const struct open *open, unsigned n)
{
	uint64_t key = l->address;
	for (unsigned i = low; i <= l->newest; i++) {
		const struct message *m = message(l, i);
		key = mix(key, m->key + m->rmw);
		if (n > 0)
			key = mix(key, view_key(&m->view, open, n));
	}
	return key;
}

uint64_t weak_key(void)
{
	struct open open[LOCATIONS_MOST];
	unsigned n = 0, low[LOCATIONS_MOST];
	uint64_t key = 0;
	for (unsigned i = 0; i < used; i++) {
		if (locations[i].count == 0)
			continue;
		low[i] = lowest(&locations[i]);
		if (low[i] < locations[i].newest)
			open[n++] = (struct open){ i, low[i] };
	}
	for (unsigned i = 0; i < used; i++)
		if (locations[i].count > 0)
			key += history_key(&locations[i], low[i], open, n);
	for (unsigned i = 1; i < THREADS; i++) {
		struct thread *t = &threads[i];
		if (!lives(t))
			continue;
		key = mix(key, view_key(&t->seen, open, n));
		if (fences) {
			key = mix(key, view_key(&t->acquirable, open, n) + clock_key(t->acquirable_clock));
			key = mix(key, view_key(&t->fenced, open, n) + clock_key(t->fenced_clock));
		}
	}
	return mix(key, view_key(&ordered, open, n));
}
