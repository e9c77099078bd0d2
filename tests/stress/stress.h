/* SPDX-License-Identifier: MIT */
/*
 * The stress run: races repeated until the rare interleaving comes.
 *
 * Every test runs in a process of its own, so that a crash is one failed test, under a watchdog (watch.c) that
 * knows its threads and objects and says where each of them stands when nothing moves any more. No Criterion here:
 * it does not start under the thread sanitizer.
 */
#ifndef STRESS_H
#define STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <vez.h>

#include "sanitizer.h"

/* ---- what is stressed: three kinds of counting semaphore (kinds.c) ---- */

struct kind {
	const char *name;
	size_t size;
	void (*init)(void *obj, uint32_t permits);
	int (*acquire)(void *obj, uint32_t n, int64_t key, vez_deadline_t deadline, vez_cancel_t *cancel);
	int (*try_acquire)(void *obj, uint32_t n);
	int (*release)(void *obj, uint32_t n);
	uint32_t (*drain)(void *obj);
	int (*close)(void *obj);
	uint32_t (*permits)(void *obj);
	size_t (*waiters)(void *obj);
	int (*destroy)(void *obj);
};

extern const struct kind fifo, barging, user;

union object {
	vez_sem_t sem;
	char bytes[256];
};

/* ---- tests ---- */

struct test {
	const char *name;
	void (*run)(const struct test *t);
	const struct kind *kind;
	uint32_t n;
	unsigned flags;
	unsigned share; /* runs one round in so many of those asked for */
};

extern const struct test race_tests[], lifetime_tests[], order_tests[], signal_tests[], load_tests[], watch_tests[];
extern const struct test mutex_tests[], rwlock_tests[], token_tests[];
extern const struct test barrier_tests[], latch_tests[], event_tests[], queue_tests[], sched_tests[], group_tests[];
extern const struct test once_tests[], select_tests[], async_tests[], alarm_tests[], call_tests[], constraint_tests[];
extern const struct test inspect_tests[];

struct options {
	unsigned long rounds;
	unsigned seconds;
	uint64_t seed;
};
extern struct options opt;

/* How many rounds this test runs. */
unsigned long rounds_of(const struct test *t);

/* Ends the test's process as failed unless holds. */
#define EXPECT(holds, ...)                                     \
	do {                                                   \
		if (!(holds))                                  \
			failed(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)
_Noreturn void failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A line of figures that the runner shows behind the test's name. */
void remark(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- watch.c ---- */

void watch_start(void);
void watch_stop(void);
/* The watchdog's patience, in seconds. */
extern unsigned watch_patience;
/* Something has moved. */
void progress(void);
/* Shown when the test hangs. */
void watch_object(const struct kind *kind, void *obj);
void watch_forget(void);
void watch_dump(void);

/* A thread that the watchdog knows by this name. */
pthread_t spawn(const char *name, void *(*fn)(void *), void *arg);

/* ---- crew.c: threads that do one thing a round ---- */

#define CREW_MAX 8

struct member {
	struct crew *crew;
	void (*fn)(void *arg);
	void *arg;
};

struct crew {
	atomic_uint round, left;
	atomic_bool over;
	unsigned size;
	struct member members[CREW_MAX];
	pthread_t threads[CREW_MAX];
};

void crew_add(struct crew *c, const char *name, void (*fn)(void *arg), void *arg);
void crew_begin(struct crew *c);
void crew_end(struct crew *c);
void crew_dismiss(struct crew *c);
/* A moment of the last round's first ns nanoseconds: all who look at the clock for it are there, and so meet. */
void meet(uint64_t ns);

/* A look between two looks at a condition: at first a pause, then the processor is left to others. */
void look_again(unsigned *looks);
#define WAIT_UNTIL(condition)                    \
	do {                                     \
		unsigned looks_ = 0;             \
		while (!(condition))             \
			look_again(&looks_);     \
	} while (0)

/* Random numbers: each thread its own, from the seed and its name. */
uint64_t rnd(uint64_t below);
void rnd_seed(uint64_t salt);
int64_t now_ns(void);
/* Some tens of nanoseconds to some microseconds of nothing. */
void dawdle(void);
/* Leaves the processor to others for a random time of up to ns nanoseconds. */
void idle(uint64_t ns);

/* ---- limits.c: waits that may end early ---- */

struct limits {
	vez_deadline_t deadline;
	vez_cancel_t *cancel;
	bool async; /* the request may be cancelled, too */
};

/* Fires its token and arms it anew, as long as any of those who use it is going. */
struct firer {
	vez_cancel_t token;
	atomic_uint going;
};

/* One wait in two has a deadline within ns nanoseconds, one in two this token; one in four is asynchronous. */
struct limits some_limits(uint64_t ns, vez_cancel_t *cancel);
extern const struct limits no_limits;
/* Whether a wait with these limits was granted; it ended only as they allow. */
bool limits_granted(struct limits l, int rc);
void fire_while_going(void *firer);
/* An asynchronous call with these limits: before it, and what it comes to. */
void async_begin(vez_request_t *r, struct limits l);
int async_end(vez_request_t *r, int rc);

/* ---- life.c: objects that are taken away at the first permitted moment ---- */

#define FILL 0x5b

struct page {
	char *base;
	size_t size;
	bool filled;
};

void page_make(struct page *p);
/* An object at its end. */
void *page_object(struct page *p, size_t size);
/* Overwrites the object, or makes its page inaccessible. */
void page_take_away(struct page *p, void *obj, size_t size, bool fill);
/* Everybody is out: nothing has been written. The page may be used again. */
void page_check(struct page *p, const void *obj, size_t size);

struct life {
	size_t size;
	void (*make)(void *obj, const struct test *t);
	/* Each of t->n threads waits, once, until it is let go: whether that gives it the right to destroy. */
	bool (*wait)(void *obj, const struct test *t);
	size_t (*waiters)(const void *obj);
	void (*let_go)(void *obj, const struct test *t);
	int (*destroy)(void *obj); /* NULL: there is nothing to destroy */
	bool (*is_open)(const void *obj); /* for LATE: nobody has to wait any more */
};

/* Flags of the test: they are let go without looking whether they are queued; one comes when the others are queued,
 * just as they are let go, and takes the object away without destroying it: destroy would wait for who is inside. */
#define RACES 0x100u
#define LATE 0x200u

void life_run(const struct test *t, const struct life *l);
/* Where the test races: from now on the late one may come. */
void life_late_comes(void);
/* For wait: whoever comes back last may destroy, unless all of them gave up before they were let go. */
bool last_out(const struct test *t, bool was_let_go);


#endif
