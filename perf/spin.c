/* SPDX-License-Identifier: MIT */
/*
 * spin: how long to spin before sleeping. The implementation is the limit, in pauses: --impl=0 never spins.
 *
 *	pingpong   two threads hand each other a permit, back and forth; an operation is a round trip
 *	handoff    two threads share one permit of a FIFO semaphore, for --inside pauses at a time, --outside pauses
 *	           apart: each is granted what the other gives back
 *	barging    the same with VEZ_BARGING: a running thread takes a permit that is free
 *
 * What the permit guards is counted, and the count compared with the turns. Seen to fail: with two permits some
 * are lost.
 *
 * --cpu=both puts a thread on each of two processors, where it can meet the other while it spins. As each may then
 * run on one processor only, the library would not spin: vez__sys_cpus is replaced (ld --wrap) by one that says two.
 * --cpu=one is the same with both on one processor, where every spin is lost: what a limit costs at worst. --cpu=0
 * and any are left to the library and the scheduler.
 *
 * The limit is a hidden variable of the library (src/futex/spin.h), so this program is linked with the static one.
 * For the curve: scripts/perf-stat spin --impl=0,25,50,100,200,400,800 --mode=pingpong --cpu=both, and so on.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/sem.h>

#include "atomic.h"
#include "perf.h"
#include "spin.h"

static struct perf_option options[] = {
	{ "impl", "200", "the limit: the most pauses that a thread spins" },
	{ "mode", "pingpong", "pingpong, handoff, barging" },
	{ "ops", "50000", "round trips, or turns of each thread" },
	{ "limit-ms", "0", "ends the run after this time; 0: never" },
	{ "inside", "5", "pauses while the permit is held" },
	{ "outside", "5", "pauses while it is not" },
	{ "cpu", "both", "both, one, any, or the processor to run on" },
	{ NULL, NULL, NULL },
};

struct pair {
	vez_sem_t sems[3]; /* to one side, to the other, and what they share */
	uint64_t ops;
	double end;
	unsigned inside;
	unsigned outside;
	uint64_t shared; /* changed with the permit only */
	bool stop;
} __attribute__((aligned(128)));

/* ---- where the threads run ---- */

static bool apart, together;

int __real_vez__sys_cpus(void);
int __wrap_vez__sys_cpus(void);

int __wrap_vez__sys_cpus(void)
{
	return apart || together ? 2 : __real_vez__sys_cpus();
}

static void place(unsigned thread)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(apart ? thread : 0, &set);
	if ((apart || together) && sched_setaffinity(0, sizeof set, &set) != 0)
		perf_fail("cannot run on processor %u", apart ? thread : 0);
}

static void choose_place(const char *cpu)
{
	apart = strcmp(cpu, "both") == 0;
	together = strcmp(cpu, "one") == 0;
	perf_pin(apart || together ? "any" : cpu);
	place(0);
}

static void pauses(unsigned count)
{
	for (; count > 0; count--)
		vez__pause();
}

static bool is_over(const struct pair *p, uint64_t done)
{
	return done >= p->ops || (p->end > 0 && done % 16 == 0 && perf_now() > p->end);
}

static bool is_waiting(void *arg)
{
	return vez_sem_waiters(arg) == 1;
}

/* The other thread, on its processor and asleep until its first permit. */
static pthread_t second(struct pair *p, void *(*body)(void *arg))
{
	pthread_t thread = perf_thread(body, p);
	perf_until(is_waiting, &p->sems[0]);
	return thread;
}

/* ---- pingpong ---- */

static void *answer(void *arg)
{
	struct pair *p = arg;
	place(1);
	for (;;) {
		vez_sem_acquire(&p->sems[0], 1);
		if (p->stop)
			return NULL;
		p->shared++;
		vez_sem_release(&p->sems[1], 1);
	}
}

static uint64_t pingpong(struct pair *p, struct perf_region *region)
{
	uint64_t done = 0;
	pthread_t thread = second(p, answer);
	perf_begin(region);
	for (; !is_over(p, done); done++) {
		vez_sem_release(&p->sems[0], 1);
		vez_sem_acquire(&p->sems[1], 1);
	}
	perf_end(region);
	p->stop = true;
	vez_sem_release(&p->sems[0], 1);
	pthread_join(thread, NULL);
	return done;
}

/* ---- one permit for two ---- */

static uint64_t take_turns(struct pair *p)
{
	uint64_t done = 0;
	for (; !is_over(p, done); done++) {
		vez_sem_acquire(&p->sems[2], 1);
		p->shared++;
		pauses(p->inside);
		vez_sem_release(&p->sems[2], 1);
		pauses(p->outside);
	}
	return done;
}

static void *take_turns_too(void *arg)
{
	struct pair *p = arg;
	place(1);
	vez_sem_acquire(&p->sems[0], 1);
	return (void *)(uintptr_t)take_turns(arg);
}

static uint64_t share(struct pair *p, struct perf_region *region)
{
	void *theirs;
	pthread_t thread = second(p, take_turns_too);
	perf_begin(region);
	vez_sem_release(&p->sems[0], 1);
	uint64_t mine = take_turns(p);
	pthread_join(thread, &theirs);
	perf_end(region);
	return mine + (uintptr_t)theirs;
}

int main(int argc, char **argv)
{
	static struct pair p;
	struct perf_region region;
	perf_options(argc, argv, "how long to spin", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	double limit = (double)perf_number(options, "limit-ms") / 1e3;
	vez__spin_limit = (unsigned)perf_number(options, "impl");
	p.ops = perf_number(options, "ops");
	p.inside = (unsigned)perf_number(options, "inside");
	p.outside = (unsigned)perf_number(options, "outside");
	choose_place(perf_option(options, "cpu"));
	bool alternate = strcmp(mode, "pingpong") == 0;
	bool barging = strcmp(mode, "barging") == 0;
	if (!alternate && !barging && strcmp(mode, "handoff") != 0)
		perf_fail("--mode is pingpong, handoff or barging");
	if (vez_sem_init(&p.sems[2], 1, 0, barging ? VEZ_BARGING : 0) != 0)
		perf_fail("cannot create a semaphore");
	p.end = limit > 0 ? perf_now() + limit : 0;
	uint64_t done = alternate ? pingpong(&p, &region) : share(&p, &region);
	if (p.shared != done)
		perf_fail("%llu turns were counted, %llu taken", (unsigned long long)p.shared,
			  (unsigned long long)done);
	const char *cpu = perf_option(options, "cpu");
	perf_print(&(struct perf_result){ "spin", perf_option(options, "impl"), mode, 2, cpu, done, "" }, &region);
	return 0;
}
