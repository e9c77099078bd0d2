/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a moment, or for a token to fire.
 *
 * State
 *  alone    of a thread that sleeps: a core on its stack; only its own request is queued there
 *  watches  one core for all requests without a thread that wait for a token, in order of arrival. Each is enlisted
 *           with the token that it waits for: as if that were to call it off, and so a fire finds it (token.c)
 * Invariants
 *  Z1 nobody serves these queues: what ends a request is its limits, and a fire of its token counts as a grant (rules:
 *     fired_is_granted). So a fire and a deadline that meet are told apart as anywhere, and a member of a wait-for-any
 *     whose token fires must win.
 *  Z2 between the look at the token and the enlisting a fire is not missed: enlisting is refused then, which is a
 *     grant, too.
 * Ordering: vez_cancel_fired and vez__token_enlist (acquire) when it is fired on entry; else what settles the request.
 * Progress: watching and firing take constant time for each request, with the lock of watches.
 * Lifetime: alone is touched last by the thread that fires when it leaves the core, before it publishes (await.c);
 *  where it is still to enter, the core expects it, and the sleeper waits until it has left.
 * fork: in the child nobody watches.
 */
#include "vez/sleep.h"

#include <string.h>

#include "../futex/fork.h"
#include "filing.h"
#include "hold.h"

struct core_and_queue {
	struct vez__core core;
	vez_request_t *queue;
};

static struct core_and_queue watches;

static const struct vez__rules sleep_rules = { .type = VEZ__SLEEP, .queue = offsetof(struct core_and_queue, queue) };
static const struct vez__rules wait_rules = { .type = VEZ__CANCEL, .queue = offsetof(struct core_and_queue, queue) };
static const struct vez__rules watch_rules = {
	.type = VEZ__CANCEL, .queue = offsetof(struct core_and_queue, queue), .fired_is_granted = true,
};

/* ETIMEDOUT or ECANCELED. For inspection, it waits for object; NULL: for nothing. */
static int wait_alone(const struct vez__rules *rules, const void *object, vez_deadline_t deadline, vez_cancel_t *cancel)
{
	struct core_and_queue alone = { VEZ_CORE_INITIALIZER_(0), NULL };
	struct vez__stay in;
	vez__enter_holding(&in, &alone.core);
	return vez__wait_holding(&in, rules, NULL, object ? object : &alone, deadline, cancel);
}

int vez_sleep_until(vez_deadline_t moment, vez_cancel_t *cancel)
{
	int rc = wait_alone(&sleep_rules, NULL, moment, cancel);
	return rc == ETIMEDOUT ? 0 : rc;
}

int vez_cancel_wait(vez_cancel_t *c, vez_deadline_t deadline)
{
	int rc = wait_alone(&wait_rules, c, deadline, c);
	return rc == ECANCELED ? 0 : rc;
}

static int watch(vez_request_t *r)
{
	struct vez__stay in;
	int rc = 0;
	vez__enter(&in, &watches.core);
	if (vez__prepare(&watches.core, &watch_rules, &watches.queue, r)) {
		if (vez__is_member(r))
			r->state_ |= VEZ__FILING;
		vez__append(&watches.core, r);
		rc = vez__is_member(r) ? vez__member_filed(&in, r) : EINPROGRESS;
	}
	vez__leave(&in, &watch_rules);
	return rc;
}

int vez_cancel_wait_async(vez_cancel_t *c, vez_request_t *r)
{
	r->cancel_ = NULL; /* one that is fired does not refuse it */
	int rc = vez__async_begin(r);
	r->cancel_ = c;
	if (rc == 0 && !vez_cancel_fired(c))
		rc = vez__async_waits(r) ? watch(r) : ETIMEDOUT;
	return vez__async_end(r, rc);
}

static void in_child(void)
{
	memset(&watches, 0, sizeof watches);
}

VEZ__AT_FORK(NULL, NULL, in_child)
