/* SPDX-License-Identifier: MIT */
/*
 * The schedule explorer's parts.
 *
 *	main.c    the command line, one scenario after the other, the report of a failure
 *	search.c  which choice next: depth first with bounds, randomized priorities, replay
 *	sched.c   simulated threads: one schedule from setup to check
 *	memory.c  what every access means: races, dead memory, happens-before, store buffers
 *	weak.c    which of its stores a load returns
 *	futex.c   the kernel: src/futex/sys.h over the model
 *	stack.c   switching stacks
 */
#ifndef X_ENGINE_H
#define X_ENGINE_H

#include "../scenario.h"
#include "src/futex/atomic.h"

/* Thread 0 runs setup and check. */
#define THREADS (X_THREADS + 1)
#define STACK_SIZE 65536
#define TLS_MOST 1024
#define BUFFER_MOST 4
#define LOOKS_MOST 16
#define VISITS_MOST 64

/* ---- memory.c ---- */

enum access { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE, ACCESS_KINDS };

/* A source position: of a step, or of a plain access by its address in the program. */
struct place {
	const struct x__site *site;
	uintptr_t pc;
};

struct last {
	uint32_t clock;
	uint8_t bytes; /* which of the eight; 0: never */
	struct place at;
};

/* Eight bytes of memory. */
struct cell {
	uintptr_t key;
	unsigned generation;
	bool saved;                     /* its value before this schedule is kept */
	uint8_t users;                  /* threads that were here: only their entries of last are set */
	uint64_t atomic;                /* its bits that a step has written */
	uint64_t mark;                  /* their value and what an acquire learns (memory_key); 0: no step wrote it */
	uint32_t released[THREADS];     /* what an acquire of it learns */
	struct last last[THREADS][ACCESS_KINDS];
};

/* A hash of all that steps have written. */
extern uint64_t memory_key;
struct cell *cell_at(uintptr_t address);
/* A step has written there, and what it releases is known. */
void wrote(struct cell *c, uintptr_t address, unsigned size);
void memory_reset(void);
/* Called wherever the current thread is seen: what others did to its stack above here must be ordered before. */
void visits_check(uintptr_t stack_end);
uint64_t clock_key(const uint32_t *clock);
void join_clock(uint32_t *into, const uint32_t *from);
void touch(uintptr_t address, unsigned size, enum access kind, struct place at);
uint64_t read_word(const void *p, unsigned size);
/* A read-modify-write that found old writes next. */
void rmw_word(void *p, unsigned size, uint64_t old, uint64_t next, const struct x__site *site);
bool acquires(int order);
bool releases(int order);
/* Makes the oldest delayed store of that thread visible; all of them. */
void flush_one(unsigned id);
void flush_all(unsigned id);

/* ---- weak.c ---- */

#define LOCATIONS_MOST 96

/* For each location the oldest of its messages that may still be read, by its number. */
struct view {
	uint16_t at[LOCATIONS_MOST];
};

/* What a store has left, or memory held before the first. */
struct message {
	uint64_t value;
	uint64_t key;            /* of its value and clock */
	bool rmw;                /* nothing comes between it and the one before */
	uint32_t clock[THREADS]; /* what an acquire of it learns */
	struct view view;
};

/* Whether loads may be stale in this search. */
extern bool weak;
void weak_reset(void);
/* The message that self reads there, which may be an old one that does not hold but; NULL: there is but what memory
 * holds. */
const struct message *weak_load(const void *p, const struct x__site *site, const uint64_t *but);
bool weak_is_newest(const void *p, const struct message *m);
/* self stores there, where memory holds old. False: an existing store comes after it. */
bool weak_store(void *p, unsigned size, uint64_t old, uint64_t value, const struct x__site *site);
/* The message that a read-modify-write of self reads there, and the one that it leaves. */
const struct message *weak_rmw_reads(void *p, unsigned size, uint64_t old, const struct x__site *site);
void weak_rmw_writes(void *p, uint64_t value, const struct x__site *site);
/* The kernel has read the newest for self. */
void weak_newest_read(const void *p);
/* A plain write: everything else is ordered before it or after it. */
void weak_forget(uintptr_t cell, uint8_t bytes);
void weak_join(struct view *into, const struct view *from);
/* What threads may read that memory does not hold, and what they may not. */
uint64_t weak_key(void);

/* ---- sched.c ---- */

struct delayed {
	void *p;
	unsigned size;
	uint64_t value;
	const struct x__site *site;
	uint32_t clock[THREADS]; /* what it releases */
};

struct look {
	struct cell *cell;
	uint64_t mark;
};

/* Another thread was here, on this thread's stack. */
struct visit {
	uintptr_t address;
	unsigned by;
	uint32_t clock;
	struct place at;
};

enum state { UNUSED, READY, ASLEEP, YIELDED, FINISHED };

struct thread {
	void *sp;             /* while it does not run */
	uintptr_t stack_end;  /* below it the stack is free: set at each step */
	enum state state;
	void (*body)(void);
	uint32_t clock[THREADS];
	uint64_t history;
	uint64_t rested_in, rested_history; /* what it last went to wait for, and its history then */
	bool stirred;         /* since then it came out of its waiting loop, or did what others may see */
	unsigned futex_calls; /* functions of src/futex that it is in */
	uint32_t *word;       /* asleep: on what, for which wakes, until when, since when */
	uint32_t bits;
	vez_deadline_t deadline;
	unsigned since;
	int rc;
	bool signal_due, signal_now;
	struct delayed buffer[BUFFER_MOST];
	unsigned buffered;
	struct look looks[LOOKS_MOST];
	unsigned looked;
	struct look last_read;
	bool looking;
	struct view seen;                    /* weak.c */
	struct view acquirable, fenced;      /* what fences make of relaxed accesses: of loads before, of stores after */
	uint32_t acquirable_clock[THREADS], fenced_clock[THREADS];
	struct visit visits[VISITS_MOST];
	unsigned visited;
	char tls[TLS_MOST];
};

extern struct thread threads[THREADS];
extern struct thread *self;
extern unsigned step;
extern int64_t now;
extern char stacks[THREADS][STACK_SIZE];
extern const struct x_scenario *scenario;

#define SELF ((unsigned)(self - threads))
/* At the head of each function that instrumented code calls and that may switch. */
#define ENTER() visits_check((uintptr_t)__builtin_frame_address(0) + 16)

enum ending { PASSED, FAILED, PRUNED };
enum ending run_schedule(void);
/* The scheduler may switch here. */
void point(void);
/* self goes to wait for that. A loop that only looked and waits again is where it was. */
void rest(uint64_t what);
/* self waits for what its state says; returns when it is ready and chosen. */
void block(void);
/* Ends the schedule, from inside a simulated thread. */
void fail(const char *oracle, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
void leave_schedule(enum ending how) __attribute__((noreturn));
void mix_history(uint64_t what);
uint64_t mix(uint64_t a, uint64_t b);
void ready(struct thread *t, int rc);

struct failure {
	char oracle[32];
	char text[400];
	struct place at[2];
	unsigned steps;
};
extern struct failure failure;
/* What x_outcome was told in this search of a scenario. */
extern uint32_t outcomes;

/* ---- search.c ---- */

struct option {
	uint8_t action;
	uint8_t who;
	uint8_t preemptions;
	uint8_t faults;
	uint8_t stale;
};

#define OPTIONS_MOST 32

/* At each step where it compares: the state, and the thread that could go on, or 0. Ends the schedule if all that can
 * follow is known. */
bool search_compares(void);
void search_passes(uint64_t key, unsigned runs);
/* It makes room for more states, which may take a second: no loop of the library. */
extern volatile bool search_works;
/* Whether another schedule has come this way: then it was judged. */
bool search_repeats(void);
/* One of several ways to go on. */
unsigned decide(const struct option *options, unsigned n);
/* One of n, each but the first costing that many faults. */
unsigned decide_plain(unsigned n, unsigned faults);
/* One of n, each but the first costing a stale read. */
unsigned decide_stale(unsigned n);

struct search {
	unsigned preemptions, faults, stale;
	unsigned long most;    /* schedules */
	uint64_t seed;         /* randomized, unless 0 */
	unsigned long ran, pruned, decisions;
	unsigned longest;
	bool exhausted, failed;
	double seconds;
};
void search_exhaustive(struct search *s);
void search_random(struct search *s);
/* The choices of the last schedule as text; and runs such a text. */
void choices_print(char *text, size_t size);
bool choices_parse(const char *text);
enum ending choices_run(void);

/* ---- trace ---- */

extern bool tracing;
void trace(const char *op, const struct x__site *site, const void *p, unsigned size, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void name_memory(const void *p, char *text, size_t size);
void names_reset(void);
void place_print(struct place at, char *text, size_t size);
#define TRACE(...) \
	do { \
		if (__builtin_expect(tracing, 0)) \
			trace(__VA_ARGS__); \
	} while (0)

/* ---- stack.c ---- */

void stack_switch(void **save, void *to);
void *stack_make(char *base, size_t size, void (*entry)(void));

#endif
