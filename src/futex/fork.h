/* SPDX-License-Identifier: MIT */
/*
 * Forks. The child has one thread, the one that forked: each file that keeps something for all threads takes it over or
 * forgets it there, by itself and in no order.
 */
#ifndef VEZ__FORK_H
#define VEZ__FORK_H

#include <pthread.h>

/* These are called around every fork (pthread_atfork); each may be NULL. */
#define VEZ__AT_FORK(before, in_parent, in_child) \
	__attribute__((constructor)) static void watch_forks(void) \
	{ \
		pthread_atfork(before, in_parent, in_child); \
	}

#endif
