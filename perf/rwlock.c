/* SPDX-License-Identifier: MIT */
/*
 * rwlock: readers and writers.
 *
 *	rd, wr  one thread, uncontended: lock and unlock pairs
 *	work    R readers and W writers lock and unlock --ops times in all, each the same share of it, and stay inside
 *	        for about a microsecond
 *	share   the same for --ms milliseconds: who was served how often
 *
 * With nothing between two rounds a thread runs on alone until its time slice ends: the lock is hardly contended,
 * whatever the number of threads. With --yield=1 who is inside lets the others run first, and they queue up.
 *
 * Checked: every hold. Writers write two plain variables apart, readers compare them. Told besides the time: the
 * longest that a writer waited, and for each kind the least served thread's share of the most served one's.
 *
 * vez, vez-fifo, vez-readers  vez_rwlock_t with each policy
 * cond-broadcast   one mutex, one condition, the rule of vez's default (a waiting writer holds back new readers, a
 *                  leaving one admits those who wait, writers in order): every change is broadcast, since only who
 *                  waits knows its turn
 * cond-two         the same rule with a condition for the readers and one for each writer, signalled after unlocking:
 *                  the best that pthreads allow
 * pthread          pthread_rwlock_t as it comes: readers first
 * pthread-writers  PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vez/rwlock.h>

#include "perf.h"

#define MOST 256

static struct perf_option options[] = {
	{ "impl", "vez", "vez, vez-fifo, vez-readers, cond-broadcast, cond-two, pthread, pthread-writers" },
	{ "mode", "work", "rd, wr, work, share" },
	{ "readers", "8", "R" },
	{ "writers", "2", "W" },
	{ "hold", "48", "pauses inside, of about 21 ns each" },
	{ "think", "0", "pauses between two rounds" },
	{ "yield", "0", "1: who is inside lets others run first, so that they queue up whatever the scheduler does" },
	{ "ops", "200000", "locks in all" },
	{ "ms", "300", "how long, with --mode=share" },
	{ "cpu", "any", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

struct impl {
	const char *name;
	void (*init)(void);
	int (*rdlock)(void), (*rdunlock)(void), (*wrlock)(void), (*wrunlock)(void);
};

/* ---- vez ---- */

static vez_rwlock_t vez;

static void vez_hoare(void)
{
	vez_rwlock_init(&vez, VEZ_RW_HOARE);
}

static void vez_fifo(void)
{
	vez_rwlock_init(&vez, VEZ_RW_FIFO);
}

static void vez_readers(void)
{
	vez_rwlock_init(&vez, VEZ_RW_READERS);
}

static int vez_rdlock(void)
{
	return vez_rwlock_rdlock(&vez);
}

static int vez_rdunlock(void)
{
	return vez_rwlock_rdunlock(&vez);
}

static int vez_wrlock(void)
{
	return vez_rwlock_wrlock(&vez);
}

static int vez_wrunlock(void)
{
	return vez_rwlock_wrunlock(&vez);
}

/* ---- pthread_rwlock_t ---- */

static pthread_rwlock_t pthread;

static void pthread_plain(void)
{
	pthread_rwlock_init(&pthread, NULL);
}

static void pthread_writers(void)
{
	pthread_rwlockattr_t attr;
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&pthread, &attr);
	pthread_rwlockattr_destroy(&attr);
}

static int pthread_rdlock(void)
{
	return pthread_rwlock_rdlock(&pthread);
}

static int pthread_wrlock(void)
{
	return pthread_rwlock_wrlock(&pthread);
}

static int pthread_unlock(void)
{
	return pthread_rwlock_unlock(&pthread);
}

/* ---- mutex and conditions ---- */

struct writer_turn {
	pthread_cond_t granted;
	bool may;
	struct writer_turn *next;
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t all;
	bool writing;
	unsigned readers;
	unsigned waiting_readers;
	unsigned phase;               /* counts the parties of readers that were admitted */
	uint64_t last_ticket, served; /* of the writers; broadcast only */
	struct writer_turn *first, **last;
} cond;

static void cond_init(void)
{
	memset(&cond, 0, sizeof cond);
	pthread_mutex_init(&cond.mutex, NULL);
	pthread_cond_init(&cond.all, NULL);
	cond.last = &cond.first;
}

static int wait_as_reader(void)
{
	unsigned phase = cond.phase;
	cond.waiting_readers++;
	while (phase == cond.phase)
		pthread_cond_wait(&cond.all, &cond.mutex);
	return 0;
}

/* Counts all waiting readers in. */
static bool admit_readers(void)
{
	if (cond.waiting_readers == 0)
		return false;
	cond.readers += cond.waiting_readers;
	cond.waiting_readers = 0;
	cond.phase++;
	return true;
}

static int broadcast_rdlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	if (cond.writing || cond.last_ticket != cond.served)
		wait_as_reader();
	else
		cond.readers++;
	return pthread_mutex_unlock(&cond.mutex);
}

static int broadcast_rdunlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	if (--cond.readers == 0)
		pthread_cond_broadcast(&cond.all);
	return pthread_mutex_unlock(&cond.mutex);
}

static int broadcast_wrlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	uint64_t mine = ++cond.last_ticket;
	while (cond.writing || cond.readers > 0 || cond.served + 1 != mine)
		pthread_cond_wait(&cond.all, &cond.mutex);
	cond.writing = true;
	cond.served++;
	return pthread_mutex_unlock(&cond.mutex);
}

static int broadcast_wrunlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	cond.writing = false;
	admit_readers();
	pthread_cond_broadcast(&cond.all);
	return pthread_mutex_unlock(&cond.mutex);
}

static int two_rdlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	if (cond.writing || cond.first)
		wait_as_reader();
	else
		cond.readers++;
	return pthread_mutex_unlock(&cond.mutex);
}

/* With the mutex held, and nobody inside: the next writer, which is then to be signalled. */
static struct writer_turn *next_writer(void)
{
	struct writer_turn *w = cond.first;
	if (!w)
		return NULL;
	cond.first = w->next;
	if (!cond.first)
		cond.last = &cond.first;
	cond.writing = true;
	w->may = true;
	return w;
}

static int two_rdunlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	struct writer_turn *w = --cond.readers == 0 ? next_writer() : NULL;
	pthread_mutex_unlock(&cond.mutex);
	return w ? pthread_cond_signal(&w->granted) : 0;
}

static int two_wrlock(void)
{
	static __thread struct writer_turn turn = { .granted = PTHREAD_COND_INITIALIZER };
	pthread_mutex_lock(&cond.mutex);
	if (!cond.writing && cond.readers == 0) {
		cond.writing = true;
		return pthread_mutex_unlock(&cond.mutex);
	}
	turn.may = false;
	turn.next = NULL;
	*cond.last = &turn;
	cond.last = &turn.next;
	while (!turn.may)
		pthread_cond_wait(&turn.granted, &cond.mutex);
	return pthread_mutex_unlock(&cond.mutex);
}

static int two_wrunlock(void)
{
	pthread_mutex_lock(&cond.mutex);
	cond.writing = false;
	bool readers = admit_readers();
	struct writer_turn *w = readers ? NULL : next_writer();
	pthread_mutex_unlock(&cond.mutex);
	if (readers)
		return pthread_cond_broadcast(&cond.all);
	return w ? pthread_cond_signal(&w->granted) : 0;
}

static const struct impl impls[] = {
	{ "vez", vez_hoare, vez_rdlock, vez_rdunlock, vez_wrlock, vez_wrunlock },
	{ "vez-fifo", vez_fifo, vez_rdlock, vez_rdunlock, vez_wrlock, vez_wrunlock },
	{ "vez-readers", vez_readers, vez_rdlock, vez_rdunlock, vez_wrlock, vez_wrunlock },
	{ "cond-broadcast", cond_init, broadcast_rdlock, broadcast_rdunlock, broadcast_wrlock, broadcast_wrunlock },
	{ "cond-two", cond_init, two_rdlock, two_rdunlock, two_wrlock, two_wrunlock },
	{ "pthread", pthread_plain, pthread_rdlock, pthread_unlock, pthread_wrlock, pthread_unlock },
	{ "pthread-writers", pthread_writers, pthread_rdlock, pthread_unlock, pthread_wrlock, pthread_unlock },
};

/* ---- the run ---- */

struct worker {
	pthread_t thread;
	bool writes;
	uint64_t quota;
	uint64_t served;
	double longest;
} __attribute__((aligned(128)));

static const struct impl *impl;
static struct worker workers[MOST];
static pthread_barrier_t start;
static bool stop;
static unsigned hold, think;
static bool yields;
static struct {
	uint64_t first __attribute__((aligned(128)));
	uint64_t second __attribute__((aligned(128)));
} data;

static void stay(void)
{
	if (yields)
		sched_yield();
	perf_pause(hold);
}

static void write_once(struct worker *w)
{
	double before = perf_now();
	if (impl->wrlock() != 0)
		perf_fail("a lock failed");
	double waited = perf_now() - before;
	w->longest = waited > w->longest ? waited : w->longest;
	data.first++;
	stay();
	data.second++;
	if (impl->wrunlock() != 0)
		perf_fail("an unlock failed");
}

static void read_once(void)
{
	if (impl->rdlock() != 0)
		perf_fail("a lock failed");
	uint64_t first = data.first;
	stay();
	if (first != data.second)
		perf_fail("%s: a reader and a writer at the same time", impl->name);
	if (impl->rdunlock() != 0)
		perf_fail("an unlock failed");
}

static void *work(void *arg)
{
	struct worker *w = arg;
	pthread_barrier_wait(&start);
	while (w->served < w->quota && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (w->writes)
			write_once(w);
		else
			read_once();
		w->served++;
		perf_pause(think);
	}
	return NULL;
}

static void run(unsigned readers, unsigned writers, uint64_t ops, unsigned ms, struct perf_region *region)
{
	unsigned n = readers + writers;
	pthread_barrier_init(&start, NULL, n + 1);
	for (unsigned i = 0; i < n; i++) {
		workers[i].writes = i >= readers;
		workers[i].quota = ms ? UINT64_MAX : ops / n;
		workers[i].thread = perf_thread(work, &workers[i]);
	}
	perf_begin(region);
	pthread_barrier_wait(&start);
	if (ms)
		nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
	__atomic_store_n(&stop, ms != 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);
	perf_end(region);
}

static double share(unsigned from, unsigned to)
{
	uint64_t least = UINT64_MAX, most = 0;
	for (unsigned i = from; i < to; i++) {
		least = workers[i].served < least ? workers[i].served : least;
		most = workers[i].served > most ? workers[i].served : most;
	}
	return most ? (double)least / (double)most : 0;
}

static void pairs(bool writes, uint64_t ops)
{
	int (*lock)(void) = writes ? impl->wrlock : impl->rdlock;
	int (*unlock)(void) = writes ? impl->wrunlock : impl->rdunlock;
	for (; ops > 0; ops--)
		if ((lock() | unlock()) != 0)
			perf_fail("a call failed");
}

static void run_alone(bool writes, uint64_t ops, struct perf_region *region)
{
	perf_sleeper_begin();
	pairs(writes, ops / 100 + 1);
	perf_begin(region);
	pairs(writes, ops);
	perf_end(region);
	perf_sleeper_end();
}

static void print(const char *mode, unsigned readers, unsigned writers, uint64_t ops, const struct perf_region *region)
{
	char extra[256] = "";
	double longest = 0;
	uint64_t written = 0, served = 0;
	for (unsigned i = 0; i < readers + writers; i++) {
		longest = workers[i].longest > longest ? workers[i].longest : longest;
		served += workers[i].served;
		written += workers[i].writes ? workers[i].served : 0;
	}
	if (written != data.first)
		perf_fail("%s: writes were lost", impl->name);
	if (served)
		snprintf(extra, sizeof extra,
			 "\"readers\": %u, \"writers\": %u, \"longest_writer_wait_us\": %.1f, \"reader_share\": %.3f, "
			 "\"writer_share\": %.3f, \"written\": %.4f",
			 readers, writers, longest * 1e6, share(0, readers), share(readers, readers + writers),
			 (double)written / (double)served);
	perf_print(&(struct perf_result){ "rwlock", impl->name, mode, readers + writers, perf_option(options, "cpu"),
					  served ? served : ops, extra },
		   region);
}

int main(int argc, char **argv)
{
	struct perf_region region;
	perf_options(argc, argv, "readers and writers", options, sizeof options / sizeof *options);
	const char *mode = perf_option(options, "mode");
	unsigned readers = (unsigned)perf_number(options, "readers");
	unsigned writers = (unsigned)perf_number(options, "writers");
	uint64_t ops = perf_number(options, "ops");
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i].name, perf_option(options, "impl")) == 0)
			impl = &impls[i];
	if (!impl || readers + writers < 1 || readers + writers > MOST)
		perf_fail("no such --impl, or too many threads");
	hold = (unsigned)perf_number(options, "hold");
	think = (unsigned)perf_number(options, "think");
	yields = perf_number(options, "yield") != 0;
	perf_pin(perf_option(options, "cpu"));
	impl->init();
	if (strcmp(mode, "work") == 0)
		run(readers, writers, ops, 0, &region);
	else if (strcmp(mode, "share") == 0)
		run(readers, writers, ops, (unsigned)perf_number(options, "ms"), &region);
	else if (strcmp(mode, "rd") == 0 || strcmp(mode, "wr") == 0)
		run_alone(mode[0] == 'w', ops, &region);
	else
		perf_fail("--mode is rd, wr, work or share");
	print(mode, readers, writers, ops, &region);
	return 0;
}
