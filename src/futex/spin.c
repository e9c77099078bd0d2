/* SPDX-License-Identifier: MIT */
/*
 * The spin policy: each thread spins about as long as it recently paid off.
 *
 * State: per thread and per thing waited for, an average of the pauses that successful spins took; nothing is shared.
 * Policy: spin at most twice that average. A spin in vain takes a quarter off it, so that a thread that is never met soon
 * stops; every 32nd wait spins to the limit to find out whether times have changed. With one processor the one that
 * would end the spin cannot run: never spin. The processors allowed are asked for anew every 256 waits (one system call,
 * 1.2 microseconds, against 256 waits).
 * Sources: the averaging is that of glibc's adaptive mutex.
 */
#include "spin.h"

#include "sys.h"

unsigned vez__spin_limit = 200;

#define PROBE_EVERY 32
#define ASK_EVERY 256
#define START 16

static __thread struct {
	unsigned average;
	unsigned waits;
	bool alone;
} self[3] __attribute__((tls_model("initial-exec")));

unsigned vez__spin_budget(enum vez__spin what)
{
	unsigned wait = self[what].waits++;
	if (wait % ASK_EVERY == 0)
		self[what].alone = vez__sys_cpus() < 2;
	if (wait == 0)
		self[what].average = START;
	if (self[what].alone)
		return 0;
	if (wait % PROBE_EVERY == PROBE_EVERY - 1)
		return vez__spin_limit;
	unsigned budget = 2 * self[what].average;
	return budget < vez__spin_limit ? budget : vez__spin_limit;
}

void vez__spin_learn(enum vez__spin what, unsigned spun, bool came)
{
	unsigned *average = &self[what].average;
	if (!came)
		*average -= (*average + 3) / 4;
	else if (spun > *average)
		*average += (spun - *average + 7) / 8;
	else
		*average -= (*average - spun) / 8;
}
