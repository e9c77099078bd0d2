/* SPDX-License-Identifier: MIT */
/*
 * How one member of a wait-for-any wins.
 *
 * State
 *  select   won_   0; the address of the member that has won, or of vez__nobody, when the wait was given up; or the
 *                  mark of a meeting in which it may win: odd, the meeting's place and its number. Changed by exchange,
 *                  by whoever is inside the core of a member's object. Final, but for marks
 *  meeting  state  bits 0-1 UNDECIDED, MET or BROKEN_OFF; the rest its number, which grows whenever the place is used
 *           selects, members  the two sides. By the thread that has taken the place, before it makes the meeting
 *                             UNDECIDED
 * Invariants
 *  Y1 a member is granted, or fails, only after it has won; whoever is inside its object asks when nothing but that can
 *     keep it from being granted. So one member is granted at most.
 *  Y2 a mark is put into a select only while its meeting is UNDECIDED or just broken off, and taken out by the thread
 *     that put it there before its place is used again. So a mark that is exchanged for a winner, or for 0, is that of
 *     the meeting whose place was read.
 * Two that meet (a queue without capacity): both must win or neither. The arriving thread marks both selects, then
 *  makes the meeting MET: that decides. Whoever finds a mark waits for nobody: it breaks the meeting off, or sees that
 *  it has MET, and carries that out for the select at hand. A meeting that was broken off is tried again.
 * Ordering: won_ (acq_rel) decides; what a meeting is about is stored before its state (release) and read after
 * (acquire).
 * Progress: winning is one exchange where nobody meets; obstruction-free where two do: neither waits for a thread that
 *  is stopped, and two meetings that keep breaking each other off would have to be interrupted each time.
 * Lifetime: places are static, so that one may be read after its meeting is over.
 * Sources: the claimed state of two that meet: J. Reppy, C. Russo, Y. Xiao, "Parallel Concurrent ML" (2009); the status
 *  word of an operation on several words: T. Harris, K. Fraser, I. Pratt, "A Practical Multi-word Compare-and-Swap
 *  Operation" (2002).
 */
#include "winner.h"

#include "../futex/atomic.h"
#include "../futex/pool.h"
#include "../futex/sys.h"

#define PLACES 256
#define PLACE_BITS 8
#define MARK UINT64_C(1)

enum { UNDECIDED, MET, BROKEN_OFF };

char vez__nobody;

static struct meeting {
	uint64_t state;
	vez_select_t *selects[2];
	vez_request_t *members[2];
} meetings[PLACES];
static uint32_t links[PLACES];
static struct vez__pool places = VEZ__POOL(links);

static uint64_t number_in(uint64_t state)
{
	return state >> 2;
}

static uint64_t in_state(uint64_t number, unsigned status)
{
	return number << 2 | status;
}

static uint64_t mark_of(const struct meeting *m, uint64_t number)
{
	return number << (PLACE_BITS + 1) | (uint64_t)(m - meetings) << 1 | MARK;
}

/* What this select's part in a meeting comes to. */
static uint64_t outcome(const struct meeting *m, const vez_select_t *s, bool met)
{
	unsigned side = vez__load(&m->selects[1], relaxed) == s;
	return met ? (uintptr_t)vez__load(&m->members[side], relaxed) : 0;
}

/* Takes this mark out of the select, if it is still there; the meeting has MET, or is broken off. */
static void resolve(vez_select_t *s, uint64_t mark)
{
	struct meeting *m = &meetings[(mark >> 1) & (PLACES - 1)];
	uint64_t number = mark >> (PLACE_BITS + 1);
	uint64_t seen = in_state(number, UNDECIDED);
	if (!vez__cas(&m->state, &seen, in_state(number, BROKEN_OFF), acq_rel) && number_in(seen) != number)
		return; /* it is over, and so is the mark */
	bool met = vez__load(&m->state, acquire) == in_state(number, MET);
	vez__cas(&s->won_, &mark, outcome(m, s, met), acq_rel);
}

/* Exchanges 0 for a winner or a mark. False: there is a winner. */
static bool set(vez_select_t *s, uint64_t value)
{
	uint64_t seen = 0;
	while (!vez__cas(&s->won_, &seen, value, acq_rel)) {
		if (!(seen & MARK))
			return false;
		resolve(s, seen);
		seen = 0;
	}
	return true;
}

bool vez__winner_set(vez_select_t *s, vez_request_t *r)
{
	return set(s, (uintptr_t)r);
}

vez_request_t *vez__winner_of(vez_select_t *s)
{
	uint64_t seen = vez__load(&s->won_, acquire);
	return seen & MARK ? NULL : (vez_request_t *)(uintptr_t)seen;
}

bool vez__same_select(const vez_request_t *a, const vez_request_t *b)
{
	return vez__is_member(a) && vez__is_member(b) && a->arg_ == b->arg_;
}

/* One attempt: which side has lost, or VEZ__NEITHER; *again: it was broken off. */
static enum vez__lost meet(struct meeting *m, bool *again)
{
	uint64_t number = number_in(vez__load(&m->state, relaxed)) + 1;
	uint64_t mark = mark_of(m, number), undecided = in_state(number, UNDECIDED);
	enum vez__lost lost = VEZ__NEITHER;
	vez__store(&m->state, undecided, release);
	if (!set(m->selects[0], mark))
		lost = VEZ__FIRST;
	else if (!set(m->selects[1], mark))
		lost = VEZ__SECOND;
	unsigned status = lost == VEZ__NEITHER ? MET : BROKEN_OFF;
	bool decided = vez__cas(&m->state, &undecided, in_state(number, status), acq_rel);
	*again = lost == VEZ__NEITHER && !decided;
	for (unsigned side = 0; side < 2; side++) {
		uint64_t seen = mark;
		uint64_t winner = status == MET && decided ? (uintptr_t)m->members[side] : 0;
		vez__cas(&m->selects[side]->won_, &seen, winner, acq_rel);
	}
	return lost;
}

/* A place of the caller's. Where more threads are stopped in the midst of a meeting than there are places, it waits. */
static uint32_t take_place(void)
{
	uint32_t place;
	while ((place = vez__pool_take(&places)) == 0)
		vez__sys_yield();
	return place;
}

enum vez__lost vez__winner_take_both(vez_request_t *first, vez_request_t *second)
{
	uint32_t place = take_place();
	struct meeting *m = &meetings[place];
	enum vez__lost lost;
	bool again;
	vez__store(&m->selects[0], vez__select_of(first), relaxed);
	vez__store(&m->selects[1], vez__select_of(second), relaxed);
	vez__store(&m->members[0], first, relaxed);
	vez__store(&m->members[1], second, relaxed);
	do
		lost = meet(m, &again);
	while (again);
	vez__pool_give(&places, place);
	return lost;
}
