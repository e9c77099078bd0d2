/* SPDX-License-Identifier: MIT */
/* Waits that may end early: by a deadline, by a token, and, where they have no thread, by being cancelled. */
#include "stress.h"

const struct limits no_limits = { VEZ_FOREVER, NULL, false };

struct limits some_limits(uint64_t ns, vez_cancel_t *cancel)
{
	struct limits l = no_limits;
	if (rnd(2))
		l.deadline = vez_after_ns((int64_t)rnd(ns));
	if (rnd(2))
		l.cancel = cancel;
	l.async = rnd(4) == 0;
	return l;
}

bool limits_granted(struct limits l, int rc)
{
	EXPECT(rc == 0 || rc == ETIMEDOUT || rc == ECANCELED, "result %d", rc);
	EXPECT(rc != ETIMEDOUT || now_ns() >= l.deadline, "ETIMEDOUT before the deadline");
	EXPECT(rc != ECANCELED || l.cancel || l.async, "ECANCELED without a token");
	return rc == 0;
}

void fire_while_going(void *firer)
{
	struct firer *f = firer;
	while (atomic_load(&f->going) > 0) {
		idle(30000);
		vez_cancel_fire(&f->token);
		dawdle();
		vez_cancel_clear(&f->token);
	}
}

void async_begin(vez_request_t *r, struct limits l)
{
	vez_request_init(r, NULL, NULL);
	vez_request_set_limits(r, l.deadline, l.cancel);
}

int async_end(vez_request_t *r, int rc)
{
	if (rc != EINPROGRESS)
		return rc;
	if (rnd(4) == 0) {
		dawdle();
		rc = vez_request_cancel(r);
		EXPECT(rc == 0 || rc == EALREADY, "cancel: %d", rc);
		EXPECT(rc != 0 || vez_request_result(r) == ECANCELED, "withdrawn, yet %d", vez_request_result(r));
	}
	EXPECT(vez_request_wait(r, VEZ_FOREVER, NULL) == 0, "wait");
	return vez_request_result(r);
}
