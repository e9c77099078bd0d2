/* SPDX-License-Identifier: MIT */
/* A semaphore acquire in a thread of its own. */
#ifndef TEST_ACQUIRE_H
#define TEST_ACQUIRE_H

#include <vez.h>

#include "thread.h"
#include "variant.h"

struct acquire {
	struct thread thread;
	vez_sem_t *sem;
	uint32_t n;
	enum form form;
	int64_t key;              /* KEYED */
	vez_deadline_t deadline;  /* of the forms with one; 0: an hour ahead */
	vez_cancel_t *token;      /* of the forms with one; NULL: own */
	vez_cancel_t own;
	vez_cancel_t *self;       /* its thread's token, which no form names */
	int rc;
	int errno_after;
	unsigned waits;           /* how often it asked the kernel to sleep */
};

/* The acquire in this thread: in that form, with that token. */
int acquire_as(enum form form, vez_sem_t *s, uint32_t n, vez_cancel_t *token);

/* Starts it, and returns when its request is queued. */
void acquire_start(struct acquire *a);
/* Starts it; it may return at once. */
void acquire_run(struct acquire *a);
/* Waits until it sleeps on its own request's word; says which. */
uintptr_t acquire_await_parked(struct acquire *a);
/* Its request is queued and its thread sleeps: that it has not returned is no accident. */
bool acquire_blocked(struct acquire *a);
/* Joins it: its result; errno must be as it was. */
int acquire_join(struct acquire *a);

#define ACQUIRE(s, count, form_) { .sem = (s), .n = (count), .form = (form_) }

/* Nobody waits, and this many permits are free. */
#define EXPECT_QUIET(s, free_) \
	do { \
		EXPECT_EQ(vez_sem_waiters(s), 0); \
		EXPECT_EQ(vez_sem_permits(s), (free_)); \
		EXPECT_EQ(vez_sem_destroy(s), 0); \
	} while (0)

#endif
