/* SPDX-License-Identifier: MIT */
/*
 * The bare futex loop: a word for each waiter; a grant is a store and a FUTEX_WAKE, a wait is a loop of FUTEX_WAIT.
 *
 * No lock, no queue: the waiters are granted in turn, so they must have come in the order of their slots, and again
 * in the order in which they were granted. Within what is granted together any order will do. The count of those who
 * wait is kept for who paces the run; it is the one thing that a program with one releaser could do without.
 */
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "impl.h"
#include "perf.h"

struct word {
	uint32_t granted;
} __attribute__((aligned(128)));

struct raw {
	size_t waiters;
	unsigned slots;
	unsigned turn;
	struct word *words;
};

static void *create(unsigned slots)
{
	struct raw *s = calloc(1, sizeof *s);
	struct word *words = aligned_alloc(128, slots * sizeof *words);
	if (!s || !words)
		perf_fail("no memory");
	memset(words, 0, slots * sizeof *words);
	s->slots = slots;
	s->words = words;
	return s;
}

static void destroy(void *sem)
{
	struct raw *s = sem;
	free(s->words);
	free(s);
}

static void acquire(void *sem, unsigned slot, uint32_t permits)
{
	struct raw *s = sem;
	uint32_t *word = &s->words[slot].granted;
	(void)permits;
	__atomic_fetch_add(&s->waiters, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	__atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

static void release(void *sem, uint32_t permits)
{
	struct raw *s = sem;
	for (; permits > 0; permits--) {
		uint32_t *word = &s->words[s->turn].granted;
		s->turn = s->turn + 1 < s->slots ? s->turn + 1 : 0;
		__atomic_fetch_sub(&s->waiters, 1, __ATOMIC_RELAXED);
		__atomic_store_n(word, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static size_t waiters(void *sem)
{
	struct raw *s = sem;
	return __atomic_load_n(&s->waiters, __ATOMIC_RELAXED);
}

static uint32_t free_permits(void *sem)
{
	(void)sem;
	return 0;
}

const struct impl impl_raw = { "raw", create, destroy, acquire, release, waiters, free_permits };
