/* SPDX-License-Identifier: MIT */
/*
 * The spin policy: each thread spins about as long as it recently paid off.
 *
 * State: per thread and per thing waited for, an average of the pauses that successful spins took; nothing is shared.
 * Policy: spin at most twice that average. A spin in vain takes a quarter off it, so that a thread that is never met
 * soon stops. Now and then a wait spins to the limit to find out whether times have changed: every 32nd, and half as
 * often after each such spin in vain, down to every 256th. A thread that publishes a word which was still looked at
 * raises its own average: the two meet, and the other one will soon do the same for it. With one processor the one that
 * would end the spin cannot run: never spin. The processors allowed are asked for anew every 256 waits (one system call
 * against 256 waits).
 * Figures: perf/spin, 2 virtual CPUs, Linux 6.18, 2026-11-28; ns per operation of a ping-pong, of a semaphore handed
 * over between two threads (50 ns inside, 50 ns outside), and of the ping-pong on one CPU that is made to spin:
 *	limit, no hint            0: 51,132 22,537 2,390   200: 51,040 21,742 2,542   800: 24,044 5,786 3,032
 *	limit 1000, hint 64, probes down to every 256th: 3,205 1,966 2,491
 * A wake across CPUs takes 20 microseconds and more, so that a spin of less than 10 (a pause takes 12 ns) never meets
 * who comes back. For a short lock 200 pauses are the most: it is left sooner, or the one inside does not run.
 * Sources: the averaging is that of glibc's adaptive mutex.
 */
#include "spin.h"

#include "sys.h"

unsigned vez__spin_limit = 1000;

#define SHORT_LIMIT 200
#define PROBE_FIRST 32
#define PROBE_LAST 256
#define ASK_EVERY 256
#define START 16
#define HINT 64

struct spinner {
	unsigned average;
	unsigned waits;
	unsigned interval; /* how many waits from one probe to the next */
	unsigned until_probe;
	bool probing;
	bool alone;
};

static __thread struct spinner self[3] __attribute__((tls_model("initial-exec")));

static unsigned limit_of(enum vez__spin what)
{
	return what != VEZ__SPIN_LOCK || vez__spin_limit < SHORT_LIMIT ? vez__spin_limit : SHORT_LIMIT;
}

VEZ__HOT unsigned vez__spin_budget(enum vez__spin what)
{
	struct spinner *s = &self[what];
	if (s->waits == 0) {
		s->average += START;
		s->interval = s->until_probe = PROBE_FIRST;
	}
	if (s->waits++ % ASK_EVERY == 0)
		s->alone = vez__sys_cpus() < 2;
	if (s->alone)
		return 0;
	s->probing = --s->until_probe == 0;
	if (s->probing)
		s->until_probe = s->interval;
	unsigned budget = 2 * s->average;
	return s->probing || budget > limit_of(what) ? limit_of(what) : budget;
}

static void learn_from_probe(struct spinner *s, bool came)
{
	s->interval = came ? PROBE_FIRST : s->interval * 2;
	if (s->interval > PROBE_LAST)
		s->interval = PROBE_LAST;
	s->until_probe = s->interval;
}

void vez__spin_learn(enum vez__spin what, unsigned spun, bool came)
{
	struct spinner *s = &self[what];
	if (s->probing)
		learn_from_probe(s, came);
	if (!came)
		s->average -= (s->average + 3) / 4;
	else if (spun > s->average)
		s->average += (spun - s->average + 7) / 8;
	else
		s->average -= (s->average - spun) / 8;
}

void vez__spin_met(enum vez__spin what)
{
	if (self[what].average < HINT)
		self[what].average = HINT;
}
