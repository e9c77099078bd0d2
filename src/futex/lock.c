/* SPDX-License-Identifier: MIT */
/*
 * The short lock in a state word.
 *
 * State: lock.h. Others may change the bits above LOCKED and CONTENDED at any time, whoever is inside.
 * Invariants:
 *  L1 one thread is inside: LOCKED is only set by an exchange that saw it clear.
 *  L2 a sleeper has seen LOCKED|CONTENDED in the value on which it sleeps; CONTENDED is only cleared together with
 *     LOCKED, by a leaver, which then wakes one sleeper.
 *  L3 a thread that has slept enters with CONTENDED set: there may be more sleepers, and the leaver that cleared it
 *     has woken one only.
 * Ordering: the acquiring exchange in vez__lock_enter pairs with the releasing one in vez__lock_leave. vez__lock_leave
 * acquires too: it ends with what others left in the word (a release of permits) and hands that on.
 * Progress: not fair; the inside is a few dozen instructions. A thread that finds it busy spins a little, then
 * sleeps: a leaver never waits, nor does a thread that only adds to the state.
 * Lifetime: after the exchange in vez__lock_leave only the bare address is used, for the wake.
 * Sources: the three-state futex lock of U. Drepper, "Futexes Are Tricky" (2011).
 */
#include "lock.h"

#include "futex.h"
#include "spin.h"

/* The half of the word that holds the low bits. */
static uint32_t *low_half(uint64_t *word)
{
	return (uint32_t *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static bool try_enter(uint64_t *word, uint64_t *seen, uint64_t with)
{
	return !(*seen & VEZ__LOCKED) && vez__cas(word, seen, *seen | VEZ__LOCKED | with, acquire);
}

struct look {
	uint64_t *word;
	uint64_t seen;
};

static bool look_again(void *arg)
{
	struct look *look = arg;
	look->seen = vez__load(look->word, relaxed);
	return try_enter(look->word, &look->seen, 0);
}

static VEZ__COLD void enter_slow(uint64_t *word, uint64_t seen)
{
	struct look look = { word, seen };
	if (vez__checked() && try_enter(word, &look.seen, 0)) /* not the fast path's to take */
		return;
	if (vez__spin(VEZ__SPIN_LOCK, 1, 1, look_again, &look))
		return;
	seen = look.seen;
	while (!try_enter(word, &seen, VEZ__CONTENDED)) {
		if (!(seen & VEZ__LOCKED))
			continue;
		uint64_t marked = seen | VEZ__CONTENDED;
		if (seen == marked || vez__cas(word, &seen, marked, relaxed)) {
			vez__futex_wait(low_half(word), (uint32_t)marked, VEZ_FOREVER);
			seen = vez__load(word, relaxed);
		}
	}
}

VEZ__HOT void vez__lock_enter(uint64_t *word)
{
	uint64_t seen = vez__load(word, relaxed);
	if (VEZ__UNLIKELY(vez__checked() || (seen & VEZ__LOCKED)) ||
	    VEZ__UNLIKELY(!vez__cas_fast(word, &seen, seen | VEZ__LOCKED, acquire)))
		enter_slow(word, seen);
}

static VEZ__INLINE bool leave(uint64_t *word, uint64_t seen, uint64_t next, bool told)
{
	if (!vez__cas_if(told, word, &seen, next & ~(VEZ__LOCKED | VEZ__CONTENDED), acq_rel))
		return false;
	if (VEZ__UNLIKELY(seen & VEZ__CONTENDED))
		vez__futex_wake(low_half(word));
	return true;
}

static VEZ__COLD bool leave_told(uint64_t *word, uint64_t seen, uint64_t next)
{
	return leave(word, seen, next, true);
}

VEZ__HOT bool vez__lock_leave(uint64_t *word, uint64_t seen, uint64_t next)
{
	return vez__checked() ? leave_told(word, seen, next) : leave(word, seen, next, false);
}

static VEZ__INLINE void leave_anyway(uint64_t *word, bool told)
{
	uint64_t seen;
	do
		seen = vez__load(word, relaxed);
	while (!leave(word, seen, seen, told));
}

static VEZ__COLD void exit_told(uint64_t *word)
{
	leave_anyway(word, true);
}

void vez__lock_exit(uint64_t *word)
{
	if (vez__checked())
		exit_told(word);
	else
		leave_anyway(word, false);
}
