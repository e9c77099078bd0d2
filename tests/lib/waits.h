/* SPDX-License-Identifier: MIT */
/*
 * A wait on anything that threads wait for, in a thread of its own; and the behaviours that are the same for each: what
 * a deadline, a token, a signal, a destroy may do to one wait that something lets go.
 */
#ifndef TEST_WAITS_H
#define TEST_WAITS_H

#include <vez.h>

#include "thread.h"
#include "variant.h"

struct waitable {
	size_t size;
	/* An object on which one wait blocks until let_go, which one wait is enough for. */
	void (*make)(void *object);
	int (*let_go)(void *object);
	/* index: of a barrier, else it stays as it is. */
	int (*wait)(void *object, uint32_t *index);
	int (*wait_until)(void *object, uint32_t *index, vez_deadline_t deadline, vez_cancel_t *cancel);
	size_t (*waiters)(const void *object);
	int (*destroy)(void *object);
	/* NULL: it has no asynchronous form. Where it has, the suite says variant_async. */
	int (*wait_async)(void *object, vez_request_t *r);
};

struct waiter {
	struct thread thread;
	const struct waitable *on;
	void *object;
	enum form form;
	vez_deadline_t deadline;  /* of the forms with one; 0: an hour ahead */
	vez_cancel_t *token;      /* of the forms with one; NULL: own */
	vez_cancel_t own;
	vez_cancel_t *self;       /* its thread's token, which no form names */
	int rc;
	uint32_t index;
	int errno_after;
	unsigned waits;           /* how often it asked the kernel to sleep */
	bool eager;               /* to spin */
};

#define WAITER(on_, object_, form_) { .on = (on_), .object = (object_), .form = (form_), .index = NO_INDEX }
#define NO_INDEX UINT32_C(0xdeadbeef)

/* Waits for a request that the object was asked to grant, which returned rc: what it came to. */
int await_request(vez_request_t *r, int rc);
/* Makes a request with the limits of this form. */
void request_as(vez_request_t *r, enum form form, vez_cancel_t *token);

/* The wait in this thread: in that form, with that token. */
int wait_as(enum form form, const struct waitable *on, void *object, vez_cancel_t *token);

/* Starts it, and returns when its request is queued. */
void waiter_start(struct waiter *w);
/* Starts it; it may return at once. */
void waiter_run(struct waiter *w);
/* Waits until it sleeps, and not on the object's own lock; says on which word. */
uintptr_t waiter_await_parked(struct waiter *w);
/* Waits until it sleeps on the lock of the object. */
void waiter_await_locked_out(struct waiter *w);
/* It is queued and its thread sleeps: that it has not returned is no accident. */
bool waiter_blocked(struct waiter *w);
/* Joins it: its result; errno must be as it was, and the index if it is not 0. */
int waiter_join(struct waiter *w);

/* Every form under every fault; every one that it has. */
#define EACH_WAIT(v, which) \
	EACH_VARIANT(v, FIFO_ONLY | (which)) \
		if (v->form != KEYED)
#define EACH_WAIT_ON(on, v, which) EACH_WAIT(v, (which) | ((on)->wait_async ? 0 : BY_THREAD))

/* Nobody waits. */
#define EXPECT_EMPTY(on, object) \
	do { \
		EXPECT_EQ((on)->waiters(object), 0); \
		EXPECT_EQ((on)->destroy(object), 0); \
	} while (0)

void check_let_go(const struct waitable *on);
void check_fire_ends_a_wait(const struct waitable *on);
void check_fired_on_entry(const struct waitable *on);
void check_no_token_no_cancel(const struct waitable *on);
void check_past_deadlines(const struct waitable *on);
void check_far_deadlines(const struct waitable *on);
void check_timed_out(const struct waitable *on);
void check_clock_is_asked(const struct waitable *on);
void check_let_go_then_cancelled(const struct waitable *on);
void check_cancelled_then_let_go(const struct waitable *on);
void check_let_go_after_the_deadline(const struct waitable *on);
void check_signals(const struct waitable *on);
void check_destroy_is_refused(const struct waitable *on);
void check_returns_without_the_object(const struct waitable *on);
void check_gone_before_the_wake(const struct waitable *on);
void check_destroyed_by_who_was_let_go(const struct waitable *on, int rounds);
void check_destroy_waits_for_who_comes_in(const struct waitable *on);
void check_fork(const struct waitable *on);
void check_no_cost_on_one_cpu(const struct waitable *on);

#endif
