/* SPDX-License-Identifier: MIT */
/*
 * What a peer brings: each of its synchronizers behind a few functions, so that all peers do the same work. A peer is
 * another library that a program could have been written with; vez is one of them.
 *
 * A peer names its objects by kind. Each list ends with an object without functions; a list that is NULL, or does not
 * have what is asked for, says that the peer cannot do that. Every function is told where the object is: size bytes,
 * aligned to a cache line. make() returns how many bytes of them, and elsewhere, are the synchronizer, without the data
 * that it guards.
 *
 * Loops that would be spoiled by a call through a pointer are the peer's own, made by the macros below.
 */
#ifndef PEERS_H
#define PEERS_H

#include "perf.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most threads, parties, waiters. */
#define PEER_MOST 256

typedef size_t peer_make(void *object, unsigned n);

/* Permits. make: with n of them. */
struct peer_sem {
	const char *variant; /* "": the peer has one way only */
	size_t size;
	peer_make *make;
	void (*acquire)(void *object, unsigned slot); /* slot: who calls, 0 to PEER_MOST - 1 */
	void (*release)(void *object, unsigned permits);
	void (*pairs)(void *object, uint64_t n);
};

struct peer_worker;

struct peer_mutex {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*pairs)(void *object, uint64_t n);
	void (*contend)(void *object, struct peer_worker *w); /* PEER_CONTEND */
};

struct peer_rwlock {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*read)(void *object, void (*section)(void *arg), void *arg);
	void (*write)(void *object, void (*section)(void *arg), void *arg);
	void (*read_pairs)(void *object, uint64_t n);
	void (*write_pairs)(void *object, uint64_t n);
};

/* A guarded buffer on a peer_ring, or a queue that the peer has. make: n items. */
struct peer_buffer {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*put)(void *object, uint64_t item);
	uint64_t (*take)(void *object);
};

/* make: n parties. */
struct peer_barrier {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*meet)(void *object);
};

struct peer_once {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*call)(void *object, void (*fn)(void *arg), void *arg);
	void (*calls)(void *object, uint64_t n, void (*fn)(void *arg), void *arg);
};

/* Something that has happened, or a count that has come to 0. make: n is 1 where one wait takes one set, else 0. */
struct peer_event {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*set)(void *object);
	void (*wait)(void *object);
	void (*reset)(void *object); /* nobody waits; NULL: for pingpong only */
	bool automatic;              /* one wait may take one set: for pingpong, too */
};

/* n threads wait for what never comes, until they are called off. Each has a token for each of its rounds; what
 * belongs to other rounds than the one that is fired may be made anew meanwhile. */
struct peer_token {
	const char *variant;
	size_t size;
	peer_make *make;
	void (*wait)(void *object, unsigned slot, unsigned round);
	void (*fire)(void *object, unsigned slot, unsigned round);
};

struct peer {
	const char *name;
	const struct peer_sem *sems;
	const struct peer_mutex *mutexes;
	const struct peer_rwlock *rwlocks;
	const struct peer_buffer *buffers;
	const struct peer_buffer *queues;
	const struct peer_barrier *barriers;
	const struct peer_once *onces;
	const struct peer_event *events;
	const struct peer_event *latches;
	const struct peer_token *tokens;
};

/* The program's only one. */
extern const struct peer peer;

/* ---- loops ---- */

#define PEER_PAIRS(name, type, take, give)                                                                             \
	static void name(void *object, uint64_t n)                                                                     \
	{                                                                                                              \
		type *o = (type *)object;                                                                              \
		for (; n > 0; n--) {                                                                                   \
			take;                                                                                          \
			give;                                                                                          \
		}                                                                                                      \
	}

struct peer_worker {
	pthread_t thread;
	unsigned number;
	uint64_t quota;
	uint64_t ops;
	uint64_t value;
	double longest; /* wait, in seconds */
} __attribute__((aligned(128)));

/* What all workers look at, and what they write under the lock that is measured. */
extern struct peer_run {
	bool stop;
	bool timed;   /* each wait is between two looks at the clock */
	double began; /* the region; a wait that began earlier counts from here */
	unsigned inside, outside;
} peer_run;

extern struct peer_guarded {
	uint64_t value;
	uint64_t count;
} peer_guarded;

static inline double peer_before_wait(void)
{
	return peer_run.timed ? perf_now() : 0;
}

static inline void peer_after_wait(struct peer_worker *w, double before)
{
	double from = before > peer_run.began ? before : peer_run.began;
	double waited = peer_run.timed ? perf_now() - from : 0;
	w->longest = waited > w->longest ? waited : w->longest;
}

static inline void peer_section(void)
{
	peer_guarded.value = perf_compute(peer_guarded.value, peer_run.inside);
	peer_guarded.count++;
}

#define PEER_CONTEND(name, type, take, give)                                                                           \
	static void name(void *object, struct peer_worker *w)                                                          \
	{                                                                                                              \
		type *o = (type *)object;                                                                              \
		while (!__atomic_load_n(&peer_run.stop, __ATOMIC_RELAXED)) {                                           \
			double before = peer_before_wait();                                                            \
			take;                                                                                          \
			peer_after_wait(w, before);                                                                    \
			peer_section();                                                                                \
			give;                                                                                          \
			w->value = perf_compute(w->value, peer_run.outside);                                           \
			w->ops++;                                                                                      \
		}                                                                                                      \
	}

/* ---- a ring of items, guarded by whatever holds it ---- */

#define PEER_ITEMS 1024

struct peer_ring {
	unsigned capacity, first, length;
	uint64_t items[PEER_ITEMS];
};

static inline bool peer_ring_full(const struct peer_ring *r)
{
	return r->length == r->capacity;
}

static inline bool peer_ring_empty(const struct peer_ring *r)
{
	return r->length == 0;
}

static inline void peer_ring_put(struct peer_ring *r, uint64_t item)
{
	unsigned at = r->first + r->length++;
	r->items[at < r->capacity ? at : at - r->capacity] = item;
}

static inline uint64_t peer_ring_take(struct peer_ring *r)
{
	uint64_t item = r->items[r->first];
	r->length--;
	r->first = r->first + 1 < r->capacity ? r->first + 1 : 0;
	return item;
}

#ifdef __cplusplus
}
#endif

#endif
