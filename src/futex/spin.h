/* SPDX-License-Identifier: MIT */
/* How long a thread looks at its word before it sleeps. */
#ifndef VEZ__SPIN_H
#define VEZ__SPIN_H

#include <stdbool.h>

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

#endif
