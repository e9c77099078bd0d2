/* SPDX-License-Identifier: MIT */
/*
 * Barging, with a bound.
 *
 * Invariant: the first keeps the time itself: it is asked before it is passed over for the first time, retries 1 ms
 *  after its first vain retry, and from then on HANDOFF.
 * Sources: the fair hand-off after 1 ms of WebKit's WTF::Lock and of nsync's long wait.
 */
#include "barging.h"

bool vez__barging_ask(struct vez__stay *in, uint64_t seen, vez_request_t *first, uint64_t bits)
{
	if ((seen & VEZ__ASKED) || !vez__ask_to_retry(in, first))
		return false;
	vez__fetch_or(&in->core->word_, VEZ__ASKED | bits, relaxed);
	return true;
}

void vez__barging_entered(struct vez__stay *in)
{
	if (vez__word_of(in) & VEZ__ASKED)
		vez__fetch_and(&in->core->word_, ~VEZ__ASKED, relaxed);
}

/* The request's thread, which retried in vain: whether it has been passed over for long enough; if not, it retries by
 * then. True once. */
static bool lost_patience(vez_request_t *r)
{
	bool waits = vez__timer_is_set(&r->timer_);
	bool lost = waits && vez__deadline_passed(vez__timer_at(&r->timer_));
	if (lost)
		vez__retry_at(r, VEZ_FOREVER);
	else if (!waits)
		vez__retry_at(r, vez_after_ns(VEZ__PATIENCE_NS));
	return lost;
}

void vez__barging_retry(struct vez__stay *in, vez_request_t *r, vez_request_t *const *queue,
			bool (*is_free_for)(uint64_t seen, const vez_request_t *r),
			bool (*take_for)(struct vez__stay *in, uint64_t seen, const vez_request_t *r), bool bounded)
{
	while (!vez__is_settled(r) && r == *queue) {
		uint64_t seen = vez__word_of(in);
		if (!is_free_for(seen, r)) {
			if (bounded && lost_patience(r))
				vez__fetch_or(&in->core->word_, VEZ__HANDOFF, relaxed);
			return;
		}
		if (take_for(in, seen, r))
			vez__settle_own(r, 0);
	}
}
