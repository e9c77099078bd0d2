/* SPDX-License-Identifier: MIT */
/*
 * What the explorer takes for possible: the classical litmus tests, each with the outcomes that C11 allows. All of
 * these must be reached, and no other. They test engine/weak.c, not the library; nor the machine, so they run in the
 * explorer alone.
 *
 * The outcome of a test is a number: a bit for each value that was read, lowest first, then what is left at the end.
 * x, y and z begin with 0. The names of the shapes are those of J. Alglave et al., "Herding Cats" (2014).
 *
 * Seen to fail, with one of weak.c's rules left out at a time: loads that return the newest only (what is relaxed),
 * acquires that join no view and stores that release none (mp, wrc, isa2, rmw_chain), a view that does not move with
 * what is read (corr, corw), stores that come last only (two_plus_two_w), read-modify-writes that do not carry on
 * (rmw_chain_goes_on), stores between one of these and what it has read (rmw_atomic), seq_cst accesses and fences
 * without their view (sb_seq_cst, iriw_seq_cst, z6_seq_cst), fences that do nothing (mp_fences), a kernel that compares
 * with any message (kernel_newest), loads that may also return what is only stored later (lb).
 */
#include <errno.h>

#include "scenario.h"
#include "src/futex/atomic.h"
#include "src/futex/sys.h"

static uint32_t x, y, z, r[4];

static void zero(void)
{
	vez__store(&x, 0, relaxed);
	vez__store(&y, 0, relaxed);
	vez__store(&z, 0, relaxed);
	for (int i = 0; i < 4; i++)
		r[i] = 0;
	x__fences();
}

static void reads(void)
{
	x_outcome(r[0] + 2 * r[1] + 4 * r[2] + 8 * r[3]);
}

/* What x and y are at the end: 1 or 2. */
static uint32_t left(const uint32_t *word)
{
	return vez__load(word, relaxed) - 1;
}

static void left_x_and_y(void)
{
	x_outcome(left(&x) + 2 * left(&y));
}

static void reads_and_left_y(void)
{
	x_outcome(r[0] + 2 * r[1] + 4 * left(&y));
}

#define WRITE(word, value, order) vez__store(&word, value, order)
#define READ(i, word, order) (r[i] = vez__load(&word, order))
#define FENCE(order) x__fence(VEZ__ORDER_##order)

#define ALL(bits) ((UINT32_C(1) << (1u << (bits))) - 1)
#define BUT(n) ~(UINT32_C(1) << (n))
#define BODY(name, ...) \
	static void name(void) \
	{ \
		__VA_ARGS__; \
	}
#define LITMUS(id, allowed, checked, ...) \
	X_SCENARIO(litmus_##id, .setup = zero, .check = checked, .stale = 2, .outcomes = (allowed), \
		   .thread = { __VA_ARGS__ })
#define LITMUS2(id, allowed, checked, first, second) \
	BODY(id##_1, first) \
	BODY(id##_2, second) \
	LITMUS(id, allowed, checked, id##_1, id##_2)
#define LITMUS3(id, allowed, checked, first, second, third) \
	BODY(id##_1, first) \
	BODY(id##_2, second) \
	BODY(id##_3, third) \
	LITMUS(id, allowed, checked, id##_1, id##_2, id##_3)
#define LITMUS4(id, allowed, checked, first, second, third, fourth) \
	BODY(id##_1, first) \
	BODY(id##_2, second) \
	BODY(id##_3, third) \
	BODY(id##_4, fourth) \
	LITMUS(id, allowed, checked, id##_1, id##_2, id##_3, id##_4)

/* ---- message passing: 1 is the flag without what came before it ---- */

#define MP(name, allowed, stored, loaded) \
	LITMUS2(mp_##name, allowed, reads, WRITE(x, 1, relaxed); WRITE(y, 1, stored), READ(0, y, loaded); \
		READ(1, x, relaxed))
MP(relaxed, ALL(2), relaxed, relaxed);
MP(release_relaxed, ALL(2), release, relaxed);
MP(relaxed_acquire, ALL(2), relaxed, acquire);
MP(release_acquire, ALL(2) & BUT(1), release, acquire);
MP(seq_cst, ALL(2) & BUT(1), seq_cst, seq_cst);

#define MP_FENCES(name, allowed, stored, loaded) \
	LITMUS2(mp_fences_##name, allowed, reads, WRITE(x, 1, relaxed); stored; WRITE(y, 1, relaxed), \
		READ(0, y, relaxed); loaded; READ(1, x, relaxed))
MP_FENCES(release_acquire, ALL(2) & BUT(1), FENCE(release), FENCE(acquire));
MP_FENCES(release_none, ALL(2), FENCE(release), (void)0);
MP_FENCES(none_acquire, ALL(2), (void)0, FENCE(acquire));

/* An exchange that fails is a load. */
static uint32_t failing(uint32_t *word)
{
	uint32_t seen = 7;
	x_assert(!vez__cas(word, &seen, 8, acq_rel));
	return seen;
}

LITMUS2(mp_failed_cas, ALL(2), reads, WRITE(x, 1, relaxed); WRITE(y, 1, release), r[0] = failing(&y);
	r[1] = failing(&x));
LITMUS2(mp_acquire_failed_cas, ALL(2) & BUT(1), reads, WRITE(x, 1, relaxed);
	WRITE(y, 1, release), READ(0, y, acquire); r[1] = failing(&x));

/* ---- store buffering: 0 is neither store seen ---- */

#define SB(name, allowed, stored, between, loaded) \
	LITMUS2(sb_##name, allowed, reads, WRITE(x, 1, stored); between; READ(0, y, loaded), WRITE(y, 1, stored); \
		between; READ(1, x, loaded))
SB(release_acquire, ALL(2), release, (void)0, acquire);
SB(seq_cst, ALL(2) & BUT(0), seq_cst, (void)0, seq_cst);
SB(seq_cst_stores, ALL(2), seq_cst, (void)0, acquire);
SB(seq_cst_fences, ALL(2) & BUT(0), relaxed, FENCE(seq_cst), relaxed);
SB(acq_rel_fences, ALL(2), relaxed, FENCE(acq_rel), relaxed);
/* One of the exchanges comes after the other and acquires. */
SB(exchanges_of_one_word, ALL(2) & BUT(0), relaxed, (void)vez__fetch_add(&z, 1, acq_rel), relaxed);
SB(relaxed_exchanges, ALL(2), relaxed, (void)vez__fetch_add(&z, 1, relaxed), relaxed);

/* ---- load buffering: 3, which C11 allows, is not made here ---- */

LITMUS2(lb, ALL(2) & BUT(3), reads, READ(0, x, relaxed); WRITE(y, 1, relaxed), READ(1, y, relaxed);
	WRITE(x, 1, relaxed));

/* ---- coherence: the order of the stores to one word ---- */

LITMUS2(corr, ALL(2) & BUT(1), reads, WRITE(x, 1, relaxed), READ(0, x, relaxed); READ(1, x, relaxed));

static void two_orders(void)
{
	x_assert(!(r[0] == 1 && r[1] == 2 && r[2] == 2 && r[3] == 1));
}

LITMUS4(corr_two_readers, 0, two_orders, WRITE(x, 1, relaxed), WRITE(x, 2, relaxed), READ(0, x, relaxed);
	READ(1, x, relaxed), READ(2, x, relaxed); READ(3, x, relaxed));

static void read_own(void)
{
	x_outcome(r[0] - 1 + 2 * left(&x));
}

static void read_others(void)
{
	x_outcome(r[0] / 2 + 2 * left(&x));
}

LITMUS2(cowr, ALL(2) & BUT(1), read_own, WRITE(x, 1, relaxed); READ(0, x, relaxed), WRITE(x, 2, relaxed));
LITMUS2(corw, ALL(2) & BUT(3), read_others, READ(0, x, relaxed); WRITE(x, 1, relaxed), WRITE(x, 2, relaxed));
LITMUS2(two_plus_two_w, ALL(2), left_x_and_y, WRITE(x, 1, release); WRITE(y, 2, release), WRITE(y, 1, release);
	WRITE(x, 2, release));
LITMUS2(two_plus_two_w_seq_cst, ALL(2) & BUT(0), left_x_and_y, WRITE(x, 1, seq_cst);
	WRITE(y, 2, seq_cst), WRITE(y, 1, seq_cst); WRITE(x, 2, seq_cst));

/* ---- two readers of two writers: 5 is two orders ---- */

#define IRIW(name, allowed, stored, loaded, between) \
	LITMUS4(iriw_##name, allowed, reads, WRITE(x, 1, stored), WRITE(y, 1, stored), READ(0, x, loaded); between; \
		READ(1, y, loaded), READ(2, y, loaded); between; READ(3, x, loaded))
IRIW(acquire, ALL(4), release, acquire, (void)0);
IRIW(seq_cst, ALL(4) & BUT(5), seq_cst, seq_cst, (void)0);
IRIW(seq_cst_fences, ALL(4) & BUT(5), relaxed, relaxed, FENCE(seq_cst));

/* ---- by way of a third: 3 is the flag's flag without what came first ---- */

#define WRC(name, allowed, loaded, stored) \
	LITMUS3(wrc_##name, allowed, reads, WRITE(x, 1, relaxed), READ(0, x, loaded); WRITE(y, 1, stored), \
		READ(1, y, acquire); READ(2, x, relaxed))
WRC(release_acquire, ALL(3) & BUT(3), acquire, release);
WRC(relaxed_load, ALL(3) & BUT(3), relaxed, release); /* what it read is in its view: coherence */
WRC(relaxed_store, ALL(3), acquire, relaxed);

#define ISA2(name, allowed, loaded, stored) \
	LITMUS3(isa2_##name, allowed, reads, WRITE(x, 1, relaxed); WRITE(y, 1, release), READ(0, y, loaded); \
		WRITE(z, 1, stored), READ(1, z, acquire); READ(2, x, relaxed))
ISA2(release_acquire, ALL(3) & BUT(3), acquire, release);
ISA2(relaxed_load, ALL(3), relaxed, release);
ISA2(relaxed_store, ALL(3), acquire, relaxed);

/* 5: the last read misses the first store, although the stores to y came in the order that says otherwise. */
#define Z6(name, allowed, stored, loaded) \
	LITMUS3(z6_##name, allowed, reads_and_left_y, WRITE(x, 1, stored); WRITE(y, 1, stored), WRITE(y, 2, stored); \
		WRITE(z, 1, stored), READ(0, z, loaded); READ(1, x, loaded))
Z6(release_acquire, ALL(3), release, acquire);
Z6(seq_cst, ALL(3) & BUT(5), seq_cst, seq_cst);

/* ---- release sequences ---- */

/* Others change y between: r[0] is whether they found the flag, r[1] whether their value was read. */
static void chain(void)
{
	x_outcome((r[0] == 1) + 2 * (r[1] == 2) + 4 * r[2]);
}

#define CHAIN(name, allowed, between) \
	LITMUS3(rmw_chain_##name, allowed, chain, WRITE(x, 1, relaxed); WRITE(y, 1, release), between, \
		READ(1, y, acquire); READ(2, x, relaxed))
/* 3 would be the end of the sequence without its head; 2 and 6 cannot be: 2 is 1 and one more. */
CHAIN(goes_on, ALL(3) & BUT(2) & BUT(3) & BUT(6), r[0] = vez__fetch_add(&y, 1, relaxed));
CHAIN(ends, ALL(3) & ~UINT32_C(0xaa), WRITE(y, 2, relaxed));

/* Nothing comes between what an exchange reads and what it writes: if it found 0, the other store is the last. */
static void atomic(void)
{
	x_outcome((r[0] == 1) + 2 * (vez__load(&x, relaxed) == 5));
}

LITMUS2(rmw_atomic, ALL(2) & BUT(1) & BUT(2), atomic, r[0] = vez__exchange(&x, 5, relaxed), WRITE(x, 1, relaxed));

/* ---- the kernel compares with the newest value ---- */

LITMUS2(kernel_newest, ALL(2) & BUT(1), reads, WRITE(x, 1, relaxed); WRITE(y, 1, relaxed), READ(0, y, relaxed);
	r[1] = vez__sys_futex_wait(&x, 0, x_soon(), UINT32_MAX, false) == EAGAIN);
