/* SPDX-License-Identifier: MIT */
/*
 * What the programs of this folder share: threads, checks that do not go away with NDEBUG, and an end, if what they
 * wait for does not come.
 */
#ifndef CLASSIC_H
#define CLASSIC_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vez.h>

#define check(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
			exit(1); \
		} \
	} while (0)

#define LIMIT_SECONDS 20
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* What the program's first thread waits for. */
static const char *awaited = "a call\n";

static void took_too_long(int signo)
{
	static const char what[] = "nothing goes on; the program waits for ";
	(void)signo;
	if (write(STDERR_FILENO, what, sizeof what - 1) < 0 || write(STDERR_FILENO, awaited, strlen(awaited)) < 0)
		_exit(2);
	_exit(1);
}

__attribute__((constructor)) static void end_in_time(void)
{
	signal(SIGALRM, took_too_long);
	alarm(LIMIT_SECONDS);
}

#define awaiting(what) (awaited = __FILE__ ":" TEXT(__LINE__) ": " what "\n")

/* Waits until it holds; what is asked for only reads. */
#define await(condition) \
	do { \
		awaiting(#condition); \
		sched_yield(); \
	} while (!(condition))

static inline pthread_t start(void *(*body)(void *), void *arg)
{
	pthread_t thread;
	check(pthread_create(&thread, NULL, body, arg) == 0);
	return thread;
}

/* Waits for its end. */
#define finish(thread) \
	do { \
		awaiting("finish(" #thread ")"); \
		check(pthread_join((thread), NULL) == 0); \
	} while (0)

#endif
