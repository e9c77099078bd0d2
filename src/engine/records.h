/* SPDX-License-Identifier: MIT */
/* The records of inspection: written by record.c, which says how they are to be read, and read by inspect/inspect.c. */
#ifndef VEZ__RECORDS_H
#define VEZ__RECORDS_H

#include <stddef.h>
#include <string.h>

#include "../futex/atomic.h"
#include "../futex/stack.h"
#include "record.h"

#define VEZ__WORDS 8
#define VEZ__NAME_BYTES (VEZ__WORDS * sizeof(uintptr_t))
#define VEZ__SHARD_BITS 12
#define VEZ__SHARDS (1u << VEZ__SHARD_BITS)

enum vez__kind { VEZ__UNUSED, VEZ__OF_THREAD, VEZ__OF_REQUEST, VEZ__OF_NAME, VEZ__OF_MORE };

/* A wait, as it is shown. thread is 0 where none waits; object is where the request was filed. */
struct vez__wait {
	uint64_t thread;
	const void *request;
	const void *object;
	int64_t sort_key;
	int64_t since;
	vez_deadline_t deadline;
	const void *token;
	uint64_t what; /* enum vez__type */
};

_Static_assert(sizeof(struct vez__wait) == VEZ__NAME_BYTES, "a wait has as many words as a name");

struct vez__record {
	struct vez__record *next;
	struct vez__record *link;
	struct vez__record *more;
	const void *key;
	uint32_t kind;
	uint64_t turn;
	uint64_t thread;
	uintptr_t wait[VEZ__WORDS];
	const void *moved;
	const void *moved_to;
	uintptr_t words[VEZ__WORDS];
};

struct vez__list {
	struct vez__record *first;
	uint64_t lock;
};

/* Those of threads; those of asynchronous requests, and names, by the address of either. */
extern struct vez__list vez__threads;
extern struct vez__list vez__shards[VEZ__SHARDS];

/* Round a walk through lists: what is found there is not used for something else meanwhile. Signal handlers, too. */
void vez__records_enter(void);
void vez__records_exit(void);

static inline struct vez__list *vez__shard_of(const void *key)
{
	return &vez__shards[vez__hash_of(key, VEZ__SHARD_BITS)];
}

static inline struct vez__record *vez__record_first(const struct vez__list *l)
{
	return vez__load(&l->first, acquire);
}

static inline struct vez__record *vez__record_next(const struct vez__record *r)
{
	return vez__load(&r->next, acquire);
}

static inline struct vez__record *vez__record_more(const struct vez__record *r)
{
	return vez__load(&r->more, acquire);
}

static inline struct vez__record *vez__record_find(const struct vez__list *l, enum vez__kind kind, const void *key)
{
	struct vez__record *r = vez__record_first(l);
	while (r && (vez__load(&r->kind, relaxed) != kind || vez__load(&r->key, relaxed) != key))
		r = vez__record_next(r);
	return r;
}

/* The word of r, or of those that follow it, that reads so. */
static inline uintptr_t *vez__record_word(struct vez__record *r, uintptr_t value)
{
	for (; r; r = vez__record_more(r))
		for (unsigned i = 0; i < VEZ__WORDS; i++)
			if (vez__load(&r->words[i], acquire) == value)
				return &r->words[i];
	return NULL;
}

/* What a record has in so many words: a wait, or the text of a name. Of what is written while it is read, each word is
 * as it was or as it is. */
static inline void vez__words_write(uintptr_t to[VEZ__WORDS], const void *from)
{
	uintptr_t words[VEZ__WORDS];
	memcpy(words, from, sizeof words);
	for (unsigned i = 0; i < VEZ__WORDS; i++)
		vez__store(&to[i], words[i], release);
}

static inline void vez__words_read(void *to, const uintptr_t from[VEZ__WORDS])
{
	uintptr_t words[VEZ__WORDS];
	for (unsigned i = 0; i < VEZ__WORDS; i++)
		words[i] = vez__load(&from[i], acquire);
	memcpy(to, words, sizeof words);
}

/* Of a turn. */
static inline bool vez__record_is_shown(uint64_t turn)
{
	return turn & 1;
}

#endif
