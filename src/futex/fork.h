/* SPDX-License-Identifier: MIT */
/*
 * Forks. The child has one thread, the one that forked: each file that keeps something for all threads takes it over or
 * forgets it there, by itself and in no order.
 */
#ifndef VEZ__FORK_H
#define VEZ__FORK_H

#include <pthread.h>

/* These are called around every fork (pthread_atfork); each may be NULL. Forks are watched before any constructor of
 * the program runs: in a program that libvez.a is linked into, one with the first priority that is a program's (101)
 * may use vez, and fork. */
#define VEZ__AT_FORK(before, in_parent, in_child) \
	static void watch_forks(void) \
	{ \
		pthread_atfork(before, in_parent, in_child); \
	} \
	static void (*watches_forks)(void) __attribute__((used, section(".init_array.00100"))) = watch_forks;

#endif
