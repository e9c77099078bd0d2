/* SPDX-License-Identifier: MIT */
/*
 * What vez asks of the kernel, and nothing more. sys.c is the only file that makes a system call; tests replace
 * these functions one by one (ld --wrap), the schedule explorer replaces the file.
 */
#ifndef VEZ__SYS_H
#define VEZ__SYS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "vez/deadline.h"

/* FUTEX_WAIT_BITSET: sleeps if *word is still expected, until a wake with one of these bits or the deadline
 * (VEZ_FOREVER: none; it must not be negative). 0, or EAGAIN, EINTR, ETIMEDOUT as the kernel says: it may say ETIMEDOUT
 * before the deadline, where signals are held back (checker.h) and have to be let in now and then. Anything else: it
 * refuses. */
int vez__sys_futex_wait(uint32_t *word, uint32_t expected, vez_deadline_t deadline, uint32_t bits, bool shared);

/* FUTEX_WAKE, FUTEX_WAKE_BITSET: wakes so many of those who sleep with one of these bits. How many were woken; an
 * address that is no longer mapped, or used for something else, wakes nobody. Negative: the kernel refuses. */
int vez__sys_futex_wake(uint32_t *word, int count, uint32_t bits, bool shared);

/* FUTEX_WAKE_OP: in one step sets *second to value (a full barrier); wakes one waiter of first and, where the old
 * value of *second was at least threshold, one of second. Values are below 2048. 0, or the kernel's error. EINVAL:
 * *second was set, but nobody was woken, as first is used by now for a lock that inherits priorities; any other error:
 * nothing was done. */
int vez__sys_futex_wake_op(uint32_t *first, uint32_t *second, uint32_t value, uint32_t threshold, bool shared);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t vez__sys_now(void);

/* How many processors this thread may run on. */
int vez__sys_cpus(void);

/* Writes one tick to an eventfd; what cannot be written at once is dropped, if the eventfd is non-blocking. */
void vez__sys_tick(int efd);

/* Starts a thread, all signals blocked: 0 or EAGAIN. Waits until it has ended, or says that nobody will. */
int vez__sys_thread(pthread_t *thread, void *(*run)(void *));
void vez__sys_join(pthread_t thread);
void vez__sys_detach(pthread_t thread);

/* Blocks all signals of this thread; brings its mask back. */
void vez__sys_block_signals(sigset_t *before);
void vez__sys_restore_signals(const sigset_t *before);

/* Whether this thread blocks any signal, as it does in a signal handler, unless that has SA_NODEFER. */
bool vez__sys_blocks_signals(void);

/* Has handler, with SA_RESTART, handle the signal, and tells what did before, unless it was that handler. 0 or EINVAL.
 * Brings what did before back, where that handler still handles the signal. */
int vez__sys_handle(int signo, void (*handler)(int), struct sigaction *before);
void vez__sys_unhandle(int signo, void (*handler)(int), const struct sigaction *before);

/* Sleeps until this moment, or less. */
void vez__sys_nap(int64_t until);

/* Writes this line to standard error; ends the process with SIGABRT besides. */
void vez__sys_say(const char *line);
_Noreturn void vez__sys_die(const char *line);

/* Has the object in which this lies never be unloaded. */
void vez__sys_stay_loaded(const void *address);

/* Lets another thread run. */
void vez__sys_yield(void);

/* The kernel's number of this thread. */
uint64_t vez__sys_thread_id(void);

/* Makes errno this; returns what it was. */
int vez__sys_errno(int value);

#endif
