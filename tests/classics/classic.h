/* SPDX-License-Identifier: MIT */
/*
 * What the programs of this folder share: threads, checks that do not go away with NDEBUG, and a word about what they
 * wait for when somebody loses patience and sends SIGTERM or SIGINT, as scripts/check does. None looks at a clock: how
 * long it takes is the machine's affair.
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

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* What the program's first thread waits for. */
static const char *awaited = "a call\n";

static void tell(int signo)
{
	static const char what[] = "the program waits for ";
	(void)signo;
	if (write(STDERR_FILENO, what, sizeof what - 1) < 0 || write(STDERR_FILENO, awaited, strlen(awaited)) < 0)
		_exit(2);
	_exit(1);
}

__attribute__((constructor)) static void tell_when_asked(void)
{
	signal(SIGTERM, tell);
	signal(SIGINT, tell);
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
