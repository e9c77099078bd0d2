/* SPDX-License-Identifier: MIT */
/*
 * Barging, with a bound: running threads take what is free although others wait; the first of those is asked to retry,
 * and when it has done so in vain for about 1 ms, what is free is handed to it.
 *
 * In the word of an object that allows it:
 *
 *	bit 5  ASKED    a waiter was asked to retry, and is entering. Set inside, cleared by the first that enters
 *	bit 6  HANDOFF  the first has been passed over for long enough: newcomers queue. Inside
 */
#ifndef VEZ__BARGING_H
#define VEZ__BARGING_H

#include "../engine/filing.h"

#define VEZ__ASKED UINT64_C(0x20)
#define VEZ__HANDOFF UINT64_C(0x40)

/* How long one that came in vain is passed over. */
#define VEZ__PATIENCE_NS 1000000

/* Asks the first to retry, and sets these bits besides. False: a waiter is entering already. */
bool vez__barging_ask(struct vez__stay *in, uint64_t seen, vez_request_t *first, uint64_t bits);

/* rules->entered: a thread that was asked is here; the first may be asked again. */
void vez__barging_entered(struct vez__stay *in);

/* rules->retry, for r: takes what it wants (take_for, which says false if the word has changed) if it is *queue, the
 * first or one that counts as it, and if that is free; otherwise, if its patience is bounded, it retries in time, or is
 * handed what it wants. */
void vez__barging_retry(struct vez__stay *in, vez_request_t *r, vez_request_t *const *queue,
			bool (*is_free_for)(uint64_t seen, const vez_request_t *r),
			bool (*take_for)(struct vez__stay *in, uint64_t seen, const vez_request_t *r), bool bounded);

#endif
