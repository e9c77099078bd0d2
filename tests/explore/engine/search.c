/* SPDX-License-Identifier: MIT */
/*
 * Which choice next.
 *
 * A schedule is the list of its choices; a search runs the scenario from the start, again and again, and changes
 * the list.
 * Exhaustive: depth first. Each choice has a price in preemptions and in faults, and a schedule may spend so much of
 * each. A switch from a thread that cannot go on is free.
 * Reduction: a state is not explored twice. Its key is what every thread has seen, step by step, and what the
 * words hold.
 * - Seen: the values that its steps read, what its acquires learned (a vector clock), the results of its sleeps, the
 *   time. Threads are deterministic, so this determines where each one is, what it wrote, and what it released when.
 * - Plain memory is not compared: without races, what is read there is determined by happens-before, which is the
 *   clocks. A race ends the search, and is judged by the clocks alone, as the other oracles are (but the step bound).
 * - Words: the value of each that a step has written, and what an acquire of it would learn; stores still delayed.
 * - A thread that waits again for the same, and has only looked since it did, in the same waiting loop, is where it was
 *   (rest). This trusts the loops of src/futex and x_await not to count their rounds.
 * Equal keys are equal states, and what can follow is equal where as much may be spent. With one preemption more it may
 * be another thread that could go on: the switch to this one is then among what followed. A thread that sleeps leaves
 * for nothing, so what followed then covers any. So a state is left to the search that came before with so much, whose
 * continuations are all run; every way to go on adds to some key, so that is never the schedule at hand. Keys are
 * 64-bit hashes: two of n states collide with a chance of n * n / 2^65.
 * - Where loads may be stale, the key also has what they may return (weak.c), and how many of them are left: with more
 *   left, more follows.
 * Randomized: priorities with change points (Burckhardt et al., PCT, 2010); faults by chance.
 */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHOICES_MOST 20000
#define PREEMPTIONS_MOST 6
#define FAULTS_MOST 2
#define STALE_MOST 4
#define CHANGES 3

struct choice {
	uint8_t chosen;
	uint8_t count;
	uint32_t affordable;
};

static struct choice choices[CHOICES_MOST];
static unsigned depth, fixed;
static unsigned preemptions_left, faults_left, stale_left;
static enum { EXHAUSTIVE, RANDOM, REPLAY } mode;

/* ---- states seen ---- */

/* For each thread that could go on, 0 for none, and each number of faults left: the most preemptions left that the
 * state was explored with, and one more; 0: it was not. */
struct seen {
	uint64_t key;
	uint64_t most;
};

#define SEEN_BITS 3
#define SEEN_SHIFT(runs, faults) (SEEN_BITS * ((runs) * (FAULTS_MOST + 1) + (faults)))

static struct seen *seen_table;
static size_t seen_size, seen_used;

#define SEEN_FIRST ((size_t)1 << 16)
#define SEEN_MOST ((size_t)1 << 25)

static void seen_clear(void)
{
	free(seen_table);
	seen_size = SEEN_FIRST;
	seen_table = calloc(seen_size, sizeof *seen_table);
	if (!seen_table)
		abort();
	seen_used = 0;
}

static struct seen *seen_find(uint64_t key)
{
	size_t slot = key & (seen_size - 1);
	while (seen_table[slot].key && seen_table[slot].key != key)
		slot = (slot + 1) & (seen_size - 1);
	return &seen_table[slot];
}

static void seen_grow(void)
{
	struct seen *old = seen_table;
	size_t old_size = seen_size;
	search_works = true;
	seen_size *= 2;
	seen_table = calloc(seen_size, sizeof *seen_table);
	if (!seen_table)
		abort();
	for (size_t i = 0; i < old_size; i++)
		if (old[i].key)
			*seen_find(old[i].key) = old[i];
	free(old);
	search_works = false;
}

/* What was explored while another thread could go on had one more to spend: the switch to this one. */
static bool covered(const struct seen *s, unsigned runs)
{
	for (unsigned r = 0; r < THREADS; r++) {
		unsigned price = r != 0 && r != runs;
		for (unsigned f = faults_left; f <= FAULTS_MOST; f++)
			if ((s->most >> SEEN_SHIFT(r, f) & 7) > preemptions_left + price)
				return true;
	}
	return false;
}

static uint64_t with_stale(uint64_t key, unsigned left)
{
	return left ? mix(key, left) | 1 : key;
}

/* Whether the state was seen with at least this budget; from now on it was. */
static bool seen_before(uint64_t key, unsigned runs)
{
	struct seen *s;
	for (unsigned left = weak ? STALE_MOST : stale_left; left > stale_left; left--) {
		s = seen_find(with_stale(key, left));
		if (s->key && covered(s, runs))
			return true;
	}
	key = with_stale(key, stale_left);
	s = seen_find(key);
	if (s->key && covered(s, runs))
		return true;
	if (!s->key) {
		if (seen_used >= SEEN_MOST)
			return false;
		if (++seen_used > seen_size / 2) {
			seen_grow();
			s = seen_find(key);
		}
		s->key = key;
	}
	unsigned shift = SEEN_SHIFT(runs, faults_left);
	s->most = (s->most & ~(UINT64_C(7) << shift)) | (uint64_t)(preemptions_left + 1) << shift;
	return false;
}

bool search_repeats(void)
{
	return mode == EXHAUSTIVE && depth < fixed;
}

bool search_compares(void)
{
	return mode == EXHAUSTIVE && depth >= fixed;
}

void search_passes(uint64_t key, unsigned runs)
{
	if (seen_before(key, runs))
		leave_schedule(PRUNED);
}

/* ---- randomized ---- */

static uint64_t random_state;
static unsigned priority[THREADS];
static unsigned change_at[CHANGES];
static unsigned usual_length = 50;

static uint64_t random_next(void)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	return mix(random_state, random_state >> 29);
}

static void random_begin(void)
{
	for (unsigned i = 0; i < THREADS; i++)
		priority[i] = CHANGES + 1 + (unsigned)(random_next() % 1000);
	for (unsigned i = 0; i < CHANGES; i++)
		change_at[i] = 1 + (unsigned)(random_next() % usual_length);
}

/* Of the options that cost nothing but a preemption, the one of the thread with the highest priority; at
 * times another. */
static unsigned random_choice(const struct option *options, unsigned n, uint32_t affordable)
{
	unsigned best = 0;
	for (unsigned i = 0; i < CHANGES; i++)
		if (change_at[i] == step)
			priority[SELF] = i;
	for (unsigned i = 0; i < n; i++) {
		if (!(affordable >> i & 1))
			continue;
		/* What is not a mere switch is an event, which comes by chance; so does a fault. */
		bool event = options[i].action != 0 || options[i].faults > 0 || options[i].stale > 0;
		if (event && i > 0 && random_next() % 16 == 0)
			return i;
		if (!event && (options[best].action != 0 || priority[options[i].who] > priority[options[best].who]))
			best = i;
	}
	return best;
}

/* ---- choosing ---- */

static uint32_t affordable_of(const struct option *options, unsigned n)
{
	uint32_t mask = 0;
	for (unsigned i = 0; i < n; i++)
		if (options[i].preemptions <= preemptions_left && options[i].faults <= faults_left &&
		    options[i].stale <= stale_left)
			mask |= UINT32_C(1) << i;
	return mask;
}

static unsigned fresh_choice(const struct option *options, unsigned n, uint32_t affordable)
{
	if (mode == REPLAY)
		return 0;
	if (mode == RANDOM)
		return random_choice(options, n, affordable);
	return (unsigned)__builtin_ctz(affordable);
}

unsigned decide(const struct option *options, unsigned n)
{
	uint32_t affordable = affordable_of(options, n);
	if (depth == CHOICES_MOST)
		fail("livelock", "too many choices");
	struct choice *c = &choices[depth];
	if (depth < fixed) {
		if (c->chosen >= n || (mode == EXHAUSTIVE && (c->count != n || c->affordable != affordable)))
			fail("explorer", "the scenario is not deterministic");
	} else {
		c->chosen = (uint8_t)fresh_choice(options, n, affordable);
	}
	c->count = (uint8_t)n;
	c->affordable = affordable;
	depth++;
	preemptions_left -= options[c->chosen].preemptions;
	faults_left -= options[c->chosen].faults;
	stale_left -= options[c->chosen].stale;
	return c->chosen;
}

unsigned decide_plain(unsigned n, unsigned faults)
{
	struct option options[OPTIONS_MOST];
	if (n < 2 || SELF == 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		options[i] = (struct option){ 0, (uint8_t)SELF, 0, (uint8_t)(i > 0 ? faults : 0), 0 };
	/* Ways to go on that are equally likely. */
	if (mode == RANDOM && faults == 0 && depth >= fixed)
		options[random_next() % n].action = 1;
	return decide(options, n);
}

unsigned decide_stale(unsigned n)
{
	struct option options[OPTIONS_MOST];
	if (n < 2 || SELF == 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		options[i] = (struct option){ 0, (uint8_t)SELF, 0, 0, i > 0 };
	return decide(options, n);
}

/* ---- searching ---- */

static double seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static enum ending run_one(struct search *s)
{
	depth = 0;
	preemptions_left = s->preemptions;
	faults_left = s->faults;
	stale_left = s->stale;
	enum ending how = run_schedule();
	if (how == PRUNED)
		s->pruned++;
	else
		s->ran++;
	s->decisions += depth;
	if (step > s->longest)
		s->longest = step;
	s->failed = how == FAILED;
	return how;
}

/* Moves to the next list of choices. False: there is none. */
static bool advance(void)
{
	while (depth > 0) {
		struct choice *c = &choices[depth - 1];
		uint32_t rest = c->affordable & ~((UINT32_C(2) << c->chosen) - 1);
		if (rest) {
			c->chosen = (uint8_t)__builtin_ctz(rest);
			fixed = depth;
			return true;
		}
		depth--;
	}
	return false;
}

static unsigned at_most(unsigned n, unsigned most)
{
	return n < most ? n : most;
}

void search_exhaustive(struct search *s)
{
	double start = seconds();
	mode = EXHAUSTIVE;
	fixed = 0;
	s->preemptions = at_most(s->preemptions, PREEMPTIONS_MOST);
	s->faults = at_most(s->faults, FAULTS_MOST);
	s->stale = at_most(s->stale, STALE_MOST);
	weak = s->stale > 0;
	seen_clear();
	for (;;) {
		if (run_one(s) == FAILED)
			break;
		if (!advance()) {
			s->exhausted = true;
			break;
		}
		if (s->most && s->ran >= s->most)
			break;
	}
	s->seconds = seconds() - start;
}

void search_random(struct search *s)
{
	double start = seconds();
	mode = RANDOM;
	fixed = 0;
	random_state = s->seed;
	weak = s->stale > 0;
	s->preemptions = 1000;
	while (s->ran < s->most) {
		random_begin();
		if (run_one(s) == FAILED)
			break;
		usual_length = step > 10 ? step : 10;
	}
	s->seconds = seconds() - start;
}

/* ---- replay ---- */

/* Choices in order; "0*7" for seven zeros; trailing zeros are left out. "w" before them: loads may be stale. */
void choices_print(char *text, size_t size)
{
	unsigned last = depth;
	size_t used;
	while (last > 0 && choices[last - 1].chosen == 0)
		last--;
	used = (size_t)snprintf(text, size, "%s", weak ? "w" : "");
	for (unsigned i = 0, run; i < last && used < size; i += run) {
		for (run = 1; i + run < last && choices[i + run].chosen == choices[i].chosen;)
			run++;
		const char *comma = i ? "," : "";
		used += (size_t)snprintf(text + used, size - used, "%s%u", comma, choices[i].chosen);
		if (run > 1 && used < size)
			used += (size_t)snprintf(text + used, size - used, "*%u", run);
	}
}

bool choices_parse(const char *text)
{
	weak = *text == 'w';
	text += weak;
	for (fixed = 0; *text;) {
		char *end;
		unsigned long chosen = strtoul(text, &end, 10), times = 1;
		if (end == text)
			return false;
		if (*end == '*')
			times = strtoul(end + 1, &end, 10);
		for (; times > 0 && fixed < CHOICES_MOST; times--)
			choices[fixed++].chosen = (uint8_t)chosen;
		text = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return false;
	}
	return true;
}

enum ending choices_run(void)
{
	struct search s = { .preemptions = 1000, .faults = 1000, .stale = 1000 };
	mode = REPLAY;
	return run_one(&s);
}
