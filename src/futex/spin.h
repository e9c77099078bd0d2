/* SPDX-License-Identifier: MIT */
/* How long a thread looks at its word before it sleeps. */
#ifndef VEZ__SPIN_H
#define VEZ__SPIN_H

#include <stdbool.h>

#include "atomic.h"

/* What is waited for: a short lock to be left, a request to be settled, a mutex to be unlocked. Each is
 * learned apart. */
enum vez__spin { VEZ__SPIN_LOCK, VEZ__SPIN_WORD, VEZ__SPIN_MUTEX };

/* The longest spin, in pauses. perf/spin measures the curve; 0 turns spinning off. */
extern unsigned vez__spin_limit;

/* How many pauses the next wait of this thread may spin: 0 where it may run on one processor only. */
unsigned vez__spin_budget(enum vez__spin what);

/* Tells how the spin ended: after how many pauses, and whether what it waited for came. */
void vez__spin_learn(enum vez__spin what, unsigned spun, bool came);

/* Tells that another thread's spin has ended well: this thread published what that one was looking for. */
void vez__spin_met(enum vez__spin what);

/* Looks until attempt(arg) is true or the budget is spent: after so many pauses first, then after factor times as many
 * each time. Whether it was true. */
static inline __attribute__((always_inline)) bool vez__spin(enum vez__spin what, unsigned first, unsigned factor,
							    bool (*attempt)(void *arg), void *arg)
{
	unsigned budget = vez__spin_budget(what);
	unsigned spun = 0;
	bool came = false;
	for (unsigned pauses = first; !came && spun < budget; pauses *= factor) {
		for (unsigned i = 0; i < pauses; i++)
			vez__pause();
		spun += pauses;
		came = attempt(arg);
	}
	if (budget > 0)
		vez__spin_learn(what, spun, came);
	return came;
}

/* For what is held for a short time but taken often: looks more and more rarely. Two threads that look all the time at
 * a mutex that is held for 10 ns cost ten times what one costs that goes on alone meanwhile (perf/mutex, 2 threads, 2
 * virtual CPUs, 2026-11-28: 240 ns an operation against 23). */
#define VEZ__SPIN_RARELY 64, 2

#endif
