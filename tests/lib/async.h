/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous requests: every call that has an asynchronous form, on an object on which it has to wait; and a request
 * that keeps a record of how it completed.
 */
#ifndef TEST_ASYNC_H
#define TEST_ASYNC_H

#include <sys/types.h>
#include <vez.h>

#include "thread.h"
#include "variant.h"

/* A request that calls a function, and what became of it. */
struct note {
	vez_request_t r;
	int item;                       /* what a queue takes from it or puts in it */
	int calls;                      /* of its function */
	int result;                     /* what that was told */
	int place;                      /* in the order of all calls since notes_reset, from 1 */
	pid_t by;                       /* the thread that called */
	void (*then)(struct note *n);   /* called last, if it is set; n may be gone when it has returned */
	void *arg;                      /* for then */
};

/* What the objects below are made of. */
union async_object {
	vez_sem_t sem;
	vez_rwlock_t rwlock;
	vez_latch_t latch;
	vez_event_t event;
	vez_group_t group;
	struct {
		vez_queue_t queue;
		int storage[3];
	};
	struct {
		vez_monitor_t monitor;
		vez_room_t room;
		unsigned permits;
	};
};

struct async_kind {
	const char *name;
	/* An object on which the call has to wait. */
	void (*make)(union async_object *o);
	int (*file)(union async_object *o, struct note *n);
	/* The same call by a thread. */
	int (*block)(union async_object *o, int *item);
	/* Lets one request go: the one that was let go before it is done. */
	int (*let_go)(union async_object *o);
	/* Gives up all that is held. */
	void (*finish)(union async_object *o);
	size_t (*waiters)(const union async_object *o);
	int (*destroy)(union async_object *o);
	bool serial;    /* let_go lets no more than one go */
	bool keeps;     /* let_go before anyone waits lets the next one pass */
};

extern const struct async_kind *const async_kinds[];

/* Every kind under every fault; a failure names both. */
#define EACH_ASYNC(kind) \
	EACH_VARIANT(v_, ONE_FORM | FIFO_ONLY) \
		EACH_KIND(kind)
#define EACH_KIND(kind) \
	for (const struct async_kind *const *at_ = async_kinds, *kind; (kind = async_at(*at_)); at_++)

const struct async_kind *async_at(const struct async_kind *kind);
const char *async_text(void);

#define CHECK(condition) cr_assert((condition), "%s [%s; %s]", #condition, async_text(), variant_text())
#define CHECK_EQ(got, wanted) \
	do { \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted); \
		cr_assert(got_ == wanted_, "%s is %lld, not %lld [%s; %s]", #got, got_, wanted_, async_text(), \
			  variant_text()); \
	} while (0)

/* Nobody waits and, when all is given up, nothing is held. */
#define CHECK_EMPTY(kind, o) \
	do { \
		CHECK_EQ((kind)->waiters(o), 0); \
		(kind)->finish(o); \
		CHECK_EQ((kind)->destroy(o), 0); \
	} while (0)

/* Makes its request anew, its record empty. */
void note_init(struct note *n);
/* The order of calls begins anew. */
void notes_reset(void);
/* Waits until its function has been called. */
void note_await(const struct note *n);
pid_t own_tid(void);

/* It completed once, with this result, by this call of this thread, which has returned. */
#define CHECK_COMPLETED(n, result_) \
	do { \
		CHECK_EQ((n)->calls, 1); \
		CHECK_EQ((n)->result, (result_)); \
		CHECK_EQ(vez_request_result(&(n)->r), (result_)); \
	} while (0)

/* What an eventfd holds, which is 0 afterwards. */
uint64_t ticks_in(int efd);
int new_eventfd(void);

/* The threads of this process. */
unsigned count_threads(void);

#endif
