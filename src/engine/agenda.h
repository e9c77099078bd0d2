/* SPDX-License-Identifier: MIT */
/* A queue of timers by their moments: setting, taking off and finding what is due each cost a constant number of steps,
 * spread over a timer's life. Guarded by its owner. */
#ifndef VEZ__AGENDA_H
#define VEZ__AGENDA_H

#include "vez/deadline.h"

/* A timer's moment is stored so that zero means never. */
static inline bool vez__timer_is_set(const struct vez__timer *t)
{
	return t->at_ != 0;
}

static inline vez_deadline_t vez__timer_at(const struct vez__timer *t)
{
	return t->at_ ^ VEZ_FOREVER;
}

static inline void vez__timer_to(struct vez__timer *t, vez_deadline_t at)
{
	t->at_ = at ^ VEZ_FOREVER;
}

#define VEZ__AGENDA_BUCKETS 65
#define VEZ__AGENDA_FEW 32

struct vez__agenda {
	void *buckets[VEZ__AGENDA_BUCKETS][2];
	uint64_t past;
};

void vez__agenda_set(struct vez__agenda *a, struct vez__timer *t);

/* t is set, or was due. */
void vez__agenda_unset(struct vez__timer *t);

/* One that is due at this moment, taken off; NULL: none is. The moment never goes back. */
struct vez__timer *vez__agenda_due(struct vez__agenda *a, int64_t now);

/* When to look for one that is due: not later than the next one is, and later than the moment of the last look unless
 * one is due; VEZ_FOREVER: none is set. */
vez_deadline_t vez__agenda_next(struct vez__agenda *a);

#endif
