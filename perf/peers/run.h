/* SPDX-License-Identifier: MIT */
/* What the workloads share: the options of the run, its threads and its region, and what is told at the end. */
#ifndef RUN_H
#define RUN_H

#include <stdlib.h>
#include <string.h>

#include "peers.h"

/* Bounds what is logged. */
#define RUN_MOST_OPS 1000000

struct run {
	const char *variant;
	unsigned threads;
	uint64_t ops;
	double limit; /* seconds */
	double section;
	unsigned think, capacity;

	void *object;
	struct peer_worker workers[PEER_MOST];
	pthread_barrier_t begin, end; /* of all threads, and the main one */

	struct {
		uint64_t ops;
		size_t bytes;
		double fairness;
		double longest; /* seconds */
		double overtakings;
		bool has_overtakings;
	} result;

	/* Who waits again and again counts its comings and its returns, and who lets them go counts those. */
	uint64_t released;
	uint64_t arrived __attribute__((aligned(128)));
	uint64_t returned __attribute__((aligned(128)));
};

extern struct run run;

/* Zeroed memory for so many, aligned to a cache line. */
void *run_object(size_t size, unsigned count);

void run_begins(void);
void run_ends(void);
void run_sleep_ms(double ms);

void run_stop(void);
bool run_stopped(void);

/* Looks at the clock once in a while. */
bool run_time_is_up(uint64_t done, double until);

void run_start(unsigned n, void *(*body)(void *));
void run_join(unsigned n);
/* Keeps the longest wait of the first n; join has done so. */
void run_look_at_waits(unsigned n);

/* All that were let go have returned, and all threads wait. */
bool run_all_wait(void *unused);

/* The most over the fewest of what these workers have done. */
double run_fairness(unsigned first, unsigned n);

/* One thread alone; another sleeps, for many libraries have shortcuts for programs with one thread only. */
void run_alone(void (*pairs)(void *object, uint64_t n));

/* Declares found: the one of the list with the variant that is asked for. */
#define RUN_FIND(list)                                                                                                 \
	const __typeof__(*(list)) *found = (list);                                                                     \
	while (found && found->make && strcmp(found->variant, run.variant) != 0)                                       \
		found++;                                                                                               \
	if (!found || !found->make)                                                                                    \
		perf_fail("%s has no such %s", peer.name, #list)

/* ---- the workloads ---- */

void sem_pair(void);
void sem_lockstep(void);
void sem_bursts(void);
void mutex_pair(void);
void mutex_contended(void);
void rwlock_rd(void);
void rwlock_wr(void);
void rwlock_work(void);
void buffer_pass(void);
void queue_pass(void);
void barrier_meet(void);
void once_done(void);
void once_race(void);
void event_pingpong(void);
void event_gate(void);
void latch_gate(void);
void token_call_off(void);

#endif
