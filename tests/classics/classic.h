/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share: threads, and checks that do not go away with NDEBUG. */
#ifndef CLASSIC_H
#define CLASSIC_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <vez.h>

#define check(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

/* Waits until it holds; what is asked for only reads. */
#define await(condition) \
	do \
		sched_yield(); \
	while (!(condition))

static inline pthread_t start(void *(*body)(void *), void *arg)
{
	pthread_t thread;
	check(pthread_create(&thread, NULL, body, arg) == 0);
	return thread;
}

static inline void finish(pthread_t thread)
{
	check(pthread_join(thread, NULL) == 0);
}

#endif
