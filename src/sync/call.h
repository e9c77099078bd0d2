/* SPDX-License-Identifier: MIT */
/* What the monitors of users and their calls know of each other. */
#ifndef VEZ__CALL_H
#define VEZ__CALL_H

#include "../engine/alarm.h"
#include "../engine/filing.h"
#include "../engine/rest.h"
#include "../futex/self.h"
#include "vez/monitor.h"

/* How calls wait; serves the calls of a monitor that may run. */
extern const struct vez__rules vez__call_rules;

/* rules->serve and rules->entered, of rooms, too. */
bool vez__calls_serve(struct vez__stay *in, uint64_t seen);
void vez__calls_entered(struct vez__stay *in);

/* Inside: the calls that have arrived are queued. */
void vez__calls_gather(struct vez__stay *in);

/* Inside, for destroy: the library's thread is not to enter any more, unless it is about to. */
void vez__calls_ask_nobody(struct vez__stay *in);

/* How many bodies a thread runs in one stay, where another one can go on. Tests set it. */
extern unsigned vez__call_batch;

/* Inside, from here on: what is settled is pending in the monitor. */
static inline void vez__monitor_stay(struct vez__stay *in, vez_monitor_t *m)
{
	vez__entered(in, &m->core_);
	in->pending = &m->pending_;
}

static inline vez_monitor_t *vez__monitor_of(const struct vez__stay *in)
{
	return (vez_monitor_t *)in->core;
}

/* Inside: whether the caller's own code is inside from here on. */
static inline void vez__monitor_own(vez_monitor_t *m, bool own)
{
	vez__store(&m->owner_, own ? vez__self() : 0, relaxed);
}

/* Leaves, by one exchange where there is nothing to be served or published: nobody who waits here sleeps in a slot.
 * What the thread owes may be another object's (rest.h: vez__rest_tell). */
static inline void vez__monitor_leave(vez_monitor_t *m, const struct vez__rules *rules)
{
	struct vez__stay in;
	uint64_t seen = VEZ__LOCKED;
	if (!m->calls_ && !m->pending_.last_ && !m->pending_.wake_ && vez__cas(&m->core_.word_, &seen, 0, release)) {
		if (vez__alarm_tell())
			vez__rest_tell();
		return;
	}
	vez__monitor_stay(&in, m);
	vez__leave(&in, rules);
}

#endif
