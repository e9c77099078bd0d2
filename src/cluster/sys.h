/* SPDX-License-Identifier: MIT */
/* The system calls of the cluster library, the only ones. */
#ifndef VEZ__CLUSTER_SYS_H
#define VEZ__CLUSTER_SYS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds on the clock that runs while the machine sleeps. */
int64_t vez__boottime(void);

/* Whether this process is the one with that number (vez__process). */
int vez__process(void);

/* Has threads that are made from here on inherit that all signals are blocked. */
void vez__signals_block(sigset_t *before);
void vez__signals_restore(const sigset_t *before);

/* A thread with all signals blocked but those of its own faults. 0 or EAGAIN. */
int vez__thread_start(pthread_t *thread, void *(*run)(void *), void *arg);
void vez__thread_join(pthread_t thread);

/* What one thread sleeps on: until a moment on the boot clock, or a poke. */
struct vez__bell {
	int timer;
	int poke;
};

/* 0 or an errno number. */
int vez__bell_open(struct vez__bell *b);
void vez__bell_close(struct vez__bell *b);
void vez__bell_ring(const struct vez__bell *b);
void vez__bell_wait(const struct vez__bell *b, int64_t until);

/* One of 0 to bound - 1, different in each process. */
uint64_t vez__random(uint64_t bound);

#endif
