/* SPDX-License-Identifier: MIT */
/*
 * One behaviour, many ways to ask for it: each form of acquire, FIFO and barging, under each fault. No result may
 * depend on them. A failure names the variant.
 */
#ifndef TEST_VARIANT_H
#define TEST_VARIANT_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <vez/mutex.h>

#include "inject.h"

/* The forms of a blocking acquire. */
enum form {
	UNTIMED,    /* vez_sem_acquire */
	FAR,        /* acquire_until, an hour ahead */
	TOKEN,      /* acquire_until, for ever, with a token */
	TOKEN_FAR,  /* both */
	KEYED,      /* acquire_key, both */
	/* Only where a suite says so: */
	ASYNC,       /* acquire_async, and a wait for the request */
	ASYNC_FAR,   /* with an hour for the request */
	ASYNC_TOKEN, /* with a token for it */
	FORMS,
};

/* Whether the asynchronous forms are variants, too. */
extern bool variant_async;


struct variant {
	enum form form;
	unsigned flags;
	enum fault fault;
};

/* Which of them. */
enum which {
	ALL = 0,
	FIFO_ONLY = 1,
	WITH_TOKEN = 2,
	WITHOUT_TOKEN = 4,
	WITH_DEADLINE = 8,
	ONE_FORM = 16,      /* the test brings its own */
	BY_THREAD = 32,     /* none of the asynchronous ones: it is about the thread that waits */
};

/* The deadline: one that the waiting thread keeps itself. */
bool form_has_token(enum form form);
bool form_has_deadline(enum form form);

/* Begins with *v = { 0 } and moved false. False: there are no more. Resets the faults. */
bool variant_next(struct variant *v, bool *begun, unsigned which);
const char *variant_text(void);

#define EACH_VARIANT(var, which) \
	for (struct { struct variant at; bool begun; } each_ = { { 0 }, false }; \
	     variant_next(&each_.at, &each_.begun, (which));) \
		for (const struct variant *var = &each_.at; var; var = NULL)

/* The threads that wait for the first time from now on are neighbours (futex/slot.h): the next 32 of them. The calling
 * thread gets another number: it must own nothing. */
void neighbours_from_now_on(void);

/* ---- a mutex: the variant called FIFO is VEZ_FAIR, the one called barging the default ---- */

unsigned fairness(const struct variant *v);
/* With these flags, where no byte was zero before. */
vez_mutex_t make_mutex(unsigned flags);

extern const unsigned mutex_kinds[3];

#define EACH_MUTEX_KIND(kind) \
	for (const unsigned *at_ = mutex_kinds; at_ < mutex_kinds + 3; at_++) \
		for (unsigned once_ = 1, kind = *at_; once_; once_ = 0)

#define EXPECT(condition) cr_assert((condition), "%s [%s]", #condition, variant_text())

#define EXPECT_EQ(got, wanted) \
	do { \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted); \
		cr_assert(got_ == wanted_, "%s is %lld, not %lld [%s]", #got, got_, wanted_, variant_text()); \
	} while (0)

#endif
