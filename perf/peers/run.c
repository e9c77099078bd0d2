/* SPDX-License-Identifier: MIT */
/*
 * run: what every peer does, the same for all.
 *
 *	sem      pair       acquire and release, one thread alone
 *	         lockstep   --threads wait for permits; when all do, one is released; an operation is a grant
 *	         bursts     the same with two semaphores, N/2 permits at a time of one and the other by turns: who was
 *	                    let go waits at the other one next, and so cannot take what was meant for those who wait
 *	mutex    pair       lock and unlock, one thread alone
 *	         contended  --threads for --limit-ms: a section of --section nanoseconds inside, and as many outside
 *	rwlock   rd, wr     one thread alone
 *	         work       8 readers and 2 writers lock --ops times in all, each the same share of it, let others come
 *	                    while they are inside, and stay about a microsecond; --think=N: pauses between two rounds
 *	buffer   pass       4 producers and 4 consumers on a guarded buffer of --capacity; an operation is an item
 *	queue    pass       the same with the queue that a peer has
 *	barrier  meet       --threads meet in rounds; an operation is a round of all
 *	once     done       one more call when it has been done
 *	         race       --threads come to --ops objects, one after the other; who is first lets the others come
 *	event    pingpong   two threads let each other go in turn; an operation is a round trip
 *	         gate       --threads wait at a gate, which is opened when all do; an operation is an opening
 *	latch    gate       the same with a latch, which is made anew for each opening
 *	token    call-off   --threads wait for what never comes; one of them after the other is called off, and waits
 *	                    again; an operation is one call-off
 *
 * Told besides the time: the processor time; the bytes of the object; fairness: the most operations of a thread over
 * the fewest, when the first is done; and with --waits=1, which looks at the clock before and after each wait, the
 * longest wait. Of sem, whether those who wait longest were served first: overtakings per grant.
 *
 * Checked, as far as the peer can be: that nobody goes who was not let go, and nothing is lost or made up.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peers.h"

#define READERS 8
#define WRITERS 2
#define SIDE 4     /* producers; consumers */
#define HOLD 48    /* pauses inside an rwlock, of about 21 ns each */
#define MOST_OPS 1000000

static struct perf_option options[] = {
	{ "object", "sem", "sem, mutex, rwlock, buffer, queue, barrier, once, event, latch, token" },
	{ "mode", "pair", "what is done with it" },
	{ "variant", "", "which of the peer's ways" },
	{ "threads", "8", "threads, waiters, parties" },
	{ "section", "10", "nanoseconds inside a mutex, and outside" },
	{ "think", "0", "pauses between two rounds of an rwlock" },
	{ "capacity", "16", "items of a buffer or a queue" },
	{ "ops", "20000", "operations, where they are counted beforehand" },
	{ "limit-ms", "100", "how long a mutex is contended; others end not much later" },
	{ "waits", "0", "1: each wait is between two looks at the clock" },
	{ "cpu", "0", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

struct peer_run peer_run __attribute__((aligned(128)));
struct peer_guarded peer_guarded __attribute__((aligned(128)));

static const char *variant;
static unsigned threads;
static uint64_t ops;
static double limit;
static void *object;

static struct peer_worker workers[PEER_MOST];
static struct perf_region region;
static double processor;
static pthread_barrier_t begin, end;

/* What is told at the end. */
static struct {
	uint64_t ops;
	size_t bytes;
	double fairness;
	double longest;
	double overtakings;
	bool has_overtakings;
} result;

/* ---- what workloads share ---- */

static void *object_of(size_t size, unsigned count)
{
	size_t all = (size * count + 127) / 128 * 128;
	void *made = aligned_alloc(128, all);
	if (!made)
		perf_fail("no memory");
	memset(made, 0, all);
	return made;
}

static void region_begins(void)
{
	perf_begin(&region);
	peer_run.began = perf_now();
	processor = -perf_cpu_now();
}

static void region_ends(void)
{
	processor += perf_cpu_now();
	perf_end(&region);
}

static void sleep_ms(double ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000 };
	nanosleep(&ts, NULL);
}

static bool stopped(void)
{
	return __atomic_load_n(&peer_run.stop, __ATOMIC_RELAXED);
}

static void stop_all(void)
{
	__atomic_store_n(&peer_run.stop, true, __ATOMIC_RELAXED);
}

/* True once in a while when the time is up. */
static bool time_is_up(uint64_t done, double until)
{
	return done % 16 == 0 && perf_now() > until;
}

static void start(unsigned n, void *(*body)(void *))
{
	for (unsigned i = 0; i < n; i++) {
		workers[i].number = i;
		workers[i].thread = perf_thread(body, &workers[i]);
	}
}

static void join(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		result.longest = workers[i].longest > result.longest ? workers[i].longest : result.longest;
	}
}

/* The most over the fewest of what these have done. */
static double fairness_of(unsigned first, unsigned n)
{
	uint64_t most = 0, fewest = UINT64_MAX;
	for (unsigned i = first; i < first + n; i++) {
		uint64_t done = __atomic_load_n(&workers[i].ops, __ATOMIC_RELAXED);
		most = done > most ? done : most;
		fewest = done < fewest ? done : fewest;
	}
	return (double)most / (double)(fewest ? fewest : 1);
}

static void *sleep_through(void *arg)
{
	pthread_barrier_wait(arg);
	return NULL;
}

/* One thread alone; another sleeps, for many libraries have shortcuts for programs with one thread only. */
static void alone(void (*pairs)(void *object, uint64_t n))
{
	pthread_barrier_init(&begin, NULL, 2);
	pthread_t sleeper = perf_thread(sleep_through, &begin);
	pairs(object, ops / 100 + 1);
	region_begins();
	pairs(object, ops);
	region_ends();
	result.ops = ops;
	pthread_barrier_wait(&begin);
	pthread_join(sleeper, NULL);
}

#define FIND(list)                                                                                                     \
	const __typeof__(*(list)) *found = (list);                                                                     \
	while (found && found->make && strcmp(found->variant, variant) != 0)                                           \
		found++;                                                                                               \
	if (!found || !found->make)                                                                                    \
	perf_fail("%s has no such %s", peer.name, #list)

/* ---- sem ---- */

static const struct peer_sem *sem;
static void *sems[2]; /* the same one twice in lockstep */
static unsigned burst;
static uint64_t released;
static uint16_t *served; /* who returned, in order */
static uint64_t arrived __attribute__((aligned(128)));
static uint64_t returned __attribute__((aligned(128)));

static void sem_pair(void)
{
	FIND(peer.sems);
	object = object_of(found->size, 1);
	result.bytes = found->make(object, 1);
	alone(found->pairs);
}

static void *wait_in_turn(void *arg)
{
	struct peer_worker *w = arg;
	for (unsigned at = w->number < burst ? 0 : 1;; at = 1 - at) {
		__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
		double before = peer_before_wait();
		sem->acquire(sems[at], w->number);
		if (stopped())
			return NULL;
		peer_after_wait(w, before);
		w->ops++;
		served[__atomic_fetch_add(&returned, 1, __ATOMIC_ACQ_REL)] = (uint16_t)w->number;
	}
}

static bool all_wait(void *arg)
{
	(void)arg;
	return __atomic_load_n(&returned, __ATOMIC_ACQUIRE) == released &&
	       __atomic_load_n(&arrived, __ATOMIC_RELAXED) == released + threads;
}

static bool this_many_wait(void *arg)
{
	return __atomic_load_n(&arrived, __ATOMIC_RELAXED) == *(uint64_t *)arg;
}

/* One more thread at a time, so that the order in which they came is known. */
static void start_in_turn(void)
{
	for (uint64_t i = 0; i < threads; i++) {
		uint64_t expected = i + 1;
		workers[i].number = (unsigned)i;
		workers[i].thread = perf_thread(wait_in_turn, &workers[i]);
		perf_until(this_many_wait, &expected);
	}
	sleep_ms(2);
}

static void grant_bursts(void)
{
	double until = perf_now() + limit;
	while (released < MOST_OPS - PEER_MOST && !(released / burst % 16 == 0 && perf_now() > until)) {
		void *next = sems[released / burst % 2];
		released += burst;
		sem->release(next, burst);
		perf_until(all_wait, NULL);
	}
}

/* Those who are served together must have come before all who wait at the same one and are not. */
static uint64_t overtakings(void)
{
	uint64_t wrong = 0;
	int64_t since[PEER_MOST];
	unsigned at[PEER_MOST];
	for (unsigned i = 0; i < threads; i++) {
		since[i] = (int64_t)i - threads;
		at[i] = i < burst ? 0 : 1;
	}
	for (uint64_t i = 0; i < released; i += burst) {
		unsigned here = sems[0] == sems[1] ? 0 : i / burst % 2;
		int64_t latest = INT64_MIN;
		for (unsigned k = 0; k < burst; k++) {
			unsigned one = served[i + k];
			latest = since[one] > latest ? since[one] : latest;
			since[one] = (int64_t)(i / burst);
			at[one] = 1 - at[one];
		}
		for (unsigned k = 0; k < threads; k++)
			wrong += since[k] < latest && (sems[0] == sems[1] || at[k] == here);
	}
	return wrong;
}

static void sem_grants(unsigned at_once, unsigned count)
{
	FIND(peer.sems);
	sem = found;
	burst = at_once;
	served = calloc(MOST_OPS + PEER_MOST, sizeof *served);
	for (unsigned i = 0; i < 2; i++) {
		sems[i] = i < count ? object_of(sem->size, 1) : sems[0];
		if (i < count)
			result.bytes = sem->make(sems[i], 0);
	}
	start_in_turn();
	region_begins();
	grant_bursts();
	region_ends();
	result.ops = released;
	result.fairness = fairness_of(0, threads);
	stop_all();
	for (unsigned i = 0; i < 2; i++)
		sem->release(sems[i], threads);
	join(threads);
	if (returned != released)
		perf_fail("%llu returns of %llu grants", (unsigned long long)returned, (unsigned long long)released);
	result.overtakings = (double)overtakings() / (double)released;
	result.has_overtakings = true;
	free(served);
}

static void sem_lockstep(void)
{
	sem_grants(1, 1);
}

static void sem_bursts(void)
{
	if (threads < 2)
		perf_fail("--threads is at least 2");
	sem_grants(threads / 2, 2);
}

/* ---- mutex ---- */

static const struct peer_mutex *mutex;

static void mutex_pair(void)
{
	FIND(peer.mutexes);
	object = object_of(found->size, 1);
	result.bytes = found->make(object, 0);
	alone(found->pairs);
}

static void *contend(void *arg)
{
	pthread_barrier_wait(&begin);
	mutex->contend(object, arg);
	pthread_barrier_wait(&end);
	return NULL;
}

static void mutex_contended(void)
{
	uint64_t sum = 0;
	FIND(peer.mutexes);
	mutex = found;
	object = object_of(mutex->size, 1);
	result.bytes = mutex->make(object, 0);
	peer_run.inside = peer_run.outside = perf_steps_for((double)perf_number(options, "section"));
	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	start(threads, contend);
	sleep_ms(2);
	region_begins();
	pthread_barrier_wait(&begin);
	sleep_ms(limit * 1e3);
	stop_all();
	pthread_barrier_wait(&end);
	region_ends();
	join(threads);
	for (unsigned i = 0; i < threads; i++)
		sum += workers[i].ops;
	if (sum != peer_guarded.count)
		perf_fail("%llu operations, but %llu were counted inside", (unsigned long long)sum,
			  (unsigned long long)peer_guarded.count);
	result.fairness = fairness_of(0, threads);
	result.ops = sum ? sum : 1;
}

/* ---- rwlock ---- */

static const struct peer_rwlock *rwlock;
static unsigned think;
static bool first_is_done;
static struct {
	uint64_t first __attribute__((aligned(128)));
	uint64_t second __attribute__((aligned(128)));
} data;

struct visit {
	struct peer_worker *worker;
	double before;
};

static void spend(unsigned pauses)
{
	for (; pauses > 0; pauses--)
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#else
		__asm__ __volatile__("" ::: "memory");
#endif
}

static void stay(void)
{
	sched_yield();
	spend(HOLD);
}

static void write_section(void *arg)
{
	struct visit *v = arg;
	peer_after_wait(v->worker, v->before);
	data.first++;
	stay();
	data.second++;
}

static void read_section(void *arg)
{
	struct visit *v = arg;
	peer_after_wait(v->worker, v->before);
	uint64_t first = data.first;
	stay();
	if (first != data.second)
		perf_fail("a reader and a writer at the same time");
}

/* The first that is done looks how far the others are. */
static void tell_fairness(void)
{
	if (__atomic_exchange_n(&first_is_done, true, __ATOMIC_RELAXED))
		return;
	double readers = fairness_of(0, READERS), writers = fairness_of(READERS, WRITERS);
	double all = fairness_of(0, READERS + WRITERS);
	result.fairness = readers > writers ? readers : writers;
	result.fairness = all > result.fairness ? all : result.fairness;
}

static void *visit(void *arg)
{
	struct peer_worker *w = arg;
	bool writes = w->number >= READERS;
	struct visit v = { w, 0 };
	pthread_barrier_wait(&begin);
	while (w->ops < w->quota) {
		v.before = peer_before_wait();
		if (writes)
			rwlock->write(object, write_section, &v);
		else
			rwlock->read(object, read_section, &v);
		__atomic_store_n(&w->ops, w->ops + 1, __ATOMIC_RELAXED);
		spend(think);
	}
	tell_fairness();
	pthread_barrier_wait(&end);
	return NULL;
}

static void rwlock_work(void)
{
	unsigned n = READERS + WRITERS;
	FIND(peer.rwlocks);
	rwlock = found;
	object = object_of(rwlock->size, 1);
	result.bytes = rwlock->make(object, 0);
	think = (unsigned)perf_number(options, "think");
	pthread_barrier_init(&begin, NULL, n + 1);
	pthread_barrier_init(&end, NULL, n + 1);
	for (unsigned i = 0; i < n; i++)
		workers[i].quota = ops / n;
	start(n, visit);
	sleep_ms(2);
	region_begins();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	region_ends();
	join(n);
	result.ops = ops / n * n;
	if (data.first != ops / n * WRITERS)
		perf_fail("writes were lost");
}

static void rwlock_rd(void)
{
	FIND(peer.rwlocks);
	object = object_of(found->size, 1);
	result.bytes = found->make(object, 0);
	alone(found->read_pairs);
}

static void rwlock_wr(void)
{
	FIND(peer.rwlocks);
	object = object_of(found->size, 1);
	result.bytes = found->make(object, 0);
	alone(found->write_pairs);
}

/* ---- buffer and queue ---- */

static const struct peer_buffer *buffer;

static void produce(struct peer_worker *w)
{
	for (uint64_t i = 1; i <= w->quota; i++) {
		double before = peer_before_wait();
		buffer->put(object, (uint64_t)w->number << 48 | i);
		peer_after_wait(w, before);
	}
}

static void consume(struct peer_worker *w)
{
	uint64_t last[SIDE] = { 0 };
	for (; w->ops < w->quota; w->ops++) {
		double before = peer_before_wait();
		uint64_t item = buffer->take(object);
		peer_after_wait(w, before);
		uint64_t producer = item >> 48, number = item & (UINT64_MAX >> 16);
		if (producer >= SIDE || number <= last[producer])
			perf_fail("not FIFO: item %llu of producer %llu", (unsigned long long)number,
				  (unsigned long long)producer);
		last[producer] = number;
		w->value += number;
	}
}

static void *pass_items(void *arg)
{
	struct peer_worker *w = arg;
	pthread_barrier_wait(&begin);
	if (w->number < SIDE)
		produce(w);
	else
		consume(w);
	pthread_barrier_wait(&end);
	return NULL;
}

static void pass(const struct peer_buffer *found)
{
	uint64_t sum = 0, share = ops / SIDE;
	unsigned capacity = (unsigned)perf_number(options, "capacity");
	if (capacity < 1 || capacity > PEER_ITEMS)
		perf_fail("--capacity is 1 to %d", PEER_ITEMS);
	buffer = found;
	object = object_of(buffer->size, 1);
	result.bytes = buffer->make(object, capacity);
	pthread_barrier_init(&begin, NULL, 2 * SIDE + 1);
	pthread_barrier_init(&end, NULL, 2 * SIDE + 1);
	for (unsigned i = 0; i < 2 * SIDE; i++)
		workers[i].quota = share;
	start(2 * SIDE, pass_items);
	sleep_ms(2);
	region_begins();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	region_ends();
	join(2 * SIDE);
	for (unsigned i = 0; i < 2 * SIDE; i++)
		sum += workers[i].value;
	if (sum != SIDE * (share * (share + 1) / 2))
		perf_fail("not conserved");
	result.ops = share * SIDE;
}

static void buffer_pass(void)
{
	FIND(peer.buffers);
	pass(found);
}

static void queue_pass(void)
{
	FIND(peer.queues);
	pass(found);
}

/* ---- barrier ---- */

static const struct peer_barrier *barrier;
static uint64_t last_round = UINT64_MAX;

static void meet(struct peer_worker *own)
{
	__atomic_store_n(&own->ops, own->ops + 1, __ATOMIC_RELAXED);
	double before = peer_before_wait();
	barrier->meet(object);
	peer_after_wait(own, before);
	for (unsigned i = 0; i < threads; i++)
		if (__atomic_load_n(&workers[i].ops, __ATOMIC_RELAXED) < own->ops)
			perf_fail("a party went on alone");
}

static void *take_part(void *arg)
{
	struct peer_worker *own = arg;
	do
		meet(own);
	while (own->ops < __atomic_load_n(&last_round, __ATOMIC_RELAXED));
	return NULL;
}

/* The calling thread is the first party. The last round is told one round ahead, so that all read it before they come
 * to it. */
static void barrier_meet(void)
{
	FIND(peer.barriers);
	barrier = found;
	object = object_of(barrier->size, 1);
	result.bytes = barrier->make(object, threads);
	for (unsigned i = 1; i < threads; i++)
		workers[i].thread = perf_thread(take_part, &workers[i]);
	for (unsigned i = 0; i < 100; i++)
		meet(&workers[0]);
	double until = perf_now() + limit;
	region_begins();
	do {
		meet(&workers[0]);
		result.ops++;
	} while (!time_is_up(result.ops, until));
	region_ends();
	__atomic_store_n(&last_round, workers[0].ops + 1, __ATOMIC_RELAXED);
	meet(&workers[0]);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < threads; i++)
		result.longest = workers[i].longest > result.longest ? workers[i].longest : result.longest;
}

/* ---- once ---- */

static const struct peer_once *once;
static unsigned *made; /* plain: who goes on has been told */

static void make_and_yield(void *arg)
{
	sched_yield();
	++*(unsigned *)arg;
}

static void once_done(void)
{
	FIND(peer.onces);
	unsigned once_made = 0;
	object = object_of(found->size, 1);
	result.bytes = found->make(object, 0);
	found->call(object, make_and_yield, &once_made);
	region_begins();
	found->calls(object, ops, make_and_yield, &once_made);
	region_ends();
	result.ops = ops;
	if (once_made != 1)
		perf_fail("made %u times", once_made);
}

static void *race(void *arg)
{
	struct peer_worker *w = arg;
	pthread_barrier_wait(&begin);
	for (uint64_t i = 0; i < ops; i++) {
		double before = peer_before_wait();
		once->call((char *)object + i * once->size, make_and_yield, &made[i]);
		peer_after_wait(w, before);
		if (made[i] != 1)
			perf_fail("not made when the call returned, or twice");
	}
	pthread_barrier_wait(&end);
	return NULL;
}

static void once_race(void)
{
	FIND(peer.onces);
	once = found;
	object = object_of(once->size, (unsigned)ops);
	made = calloc(ops, sizeof *made);
	for (uint64_t i = 0; i < ops; i++)
		result.bytes = once->make((char *)object + i * once->size, 0);
	pthread_barrier_init(&begin, NULL, threads + 1);
	pthread_barrier_init(&end, NULL, threads + 1);
	start(threads, race);
	sleep_ms(2);
	region_begins();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&end);
	region_ends();
	join(threads);
	result.ops = ops;
	free(made);
}

/* ---- event and latch ---- */

static const struct peer_event *event;
static void *places[2];
static uint64_t waiting[2] __attribute__((aligned(128)));
static uint64_t opened, passed;

static void make_places(bool automatic)
{
	for (unsigned i = 0; i < 2; i++) {
		places[i] = object_of(event->size, 1);
		result.bytes = event->make(places[i], automatic);
	}
}

static void *answer(void *arg)
{
	struct peer_worker *w = arg;
	for (;;) {
		double before = peer_before_wait();
		event->wait(places[0]);
		if (stopped())
			return NULL;
		peer_after_wait(w, before);
		event->set(places[1]);
	}
}

static void play(uint64_t n, double until)
{
	for (uint64_t i = 0; i < n && !time_is_up(i, until); i++) {
		event->set(places[0]);
		event->wait(places[1]);
		result.ops++;
	}
}

static void event_pingpong(void)
{
	FIND(peer.events);
	event = found;
	if (!event->automatic)
		perf_fail("%s has no event that one wait takes", peer.name);
	make_places(true);
	start(1, answer);
	play(200, perf_now() + limit);
	result.ops = 0;
	region_begins();
	play(UINT64_MAX, perf_now() + limit);
	region_ends();
	stop_all();
	event->set(places[0]);
	join(1);
}

static void *pass_gates(void *arg)
{
	struct peer_worker *w = arg;
	for (unsigned turn = 0; !stopped(); turn++) {
		__atomic_add_fetch(&waiting[turn % 2], 1, __ATOMIC_RELAXED);
		double before = peer_before_wait();
		event->wait(places[turn % 2]);
		peer_after_wait(w, before);
		__atomic_add_fetch(&passed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static bool all_at(void *arg)
{
	return __atomic_load_n((uint64_t *)arg, __ATOMIC_RELAXED) == threads;
}

/* When all are at one gate they have left the other one, which is shut. */
static void open_gate(void)
{
	unsigned here = opened % 2, other = (opened + 1) % 2;
	perf_until(all_at, &waiting[here]);
	__atomic_store_n(&waiting[other], 0, __ATOMIC_RELAXED);
	if (opened > 0)
		event->reset(places[other]);
	opened++;
	event->set(places[here]);
}

static void gate(const struct peer_event *found)
{
	event = found;
	if (!event->reset)
		perf_fail("%s has no gate", peer.name);
	make_places(false);
	start(threads, pass_gates);
	for (unsigned i = 0; i < 50; i++)
		open_gate();
	double until = perf_now() + limit;
	region_begins();
	do {
		open_gate();
		result.ops++;
	} while (!time_is_up(result.ops, until));
	region_ends();
	perf_until(all_at, &waiting[opened % 2]); /* who has yet to leave the last gate must not see stop there */
	stop_all();
	open_gate();
	join(threads);
	if (passed != threads * opened)
		perf_fail("%llu passed in %llu openings", (unsigned long long)passed, (unsigned long long)opened);
}

static void event_gate(void)
{
	FIND(peer.events);
	gate(found);
}

static void latch_gate(void)
{
	FIND(peer.latches);
	gate(found);
}

/* ---- token ---- */

static const struct peer_token *token;

static void *wait_for_call_off(void *arg)
{
	struct peer_worker *w = arg;
	for (unsigned round = 0;; round++) {
		__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
		double before = peer_before_wait();
		token->wait(object, w->number, round);
		if (stopped())
			return NULL;
		peer_after_wait(w, before);
		__atomic_fetch_add(&w->ops, 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&returned, 1, __ATOMIC_RELEASE);
	}
}

/* Nobody but who was called off has gone. */
static void call_off_next(void)
{
	struct peer_worker *w = &workers[released % threads];
	unsigned round = (unsigned)(released / threads);
	released++;
	token->fire(object, w->number, round);
	perf_until(all_wait, NULL);
	if (__atomic_load_n(&w->ops, __ATOMIC_ACQUIRE) != round + 1)
		perf_fail("another was called off");
}

static void token_call_off(void)
{
	FIND(peer.tokens);
	token = found;
	object = object_of(token->size, 1);
	result.bytes = token->make(object, threads);
	start(threads, wait_for_call_off);
	perf_until(all_wait, NULL);
	sleep_ms(2);
	for (unsigned i = 0; i < threads; i++)
		call_off_next();
	double until = perf_now() + limit;
	region_begins();
	do {
		call_off_next();
		result.ops++;
	} while (!time_is_up(result.ops, until));
	region_ends();
	stop_all();
	for (uint64_t i = released; i < released + threads; i++)
		token->fire(object, (unsigned)(i % threads), (unsigned)(i / threads));
	join(threads);
}

/* ---- the program ---- */

static const struct workload {
	const char *object;
	const char *mode;
	void (*run)(void);
} workloads[] = {
	{ "sem", "pair", sem_pair },
	{ "sem", "lockstep", sem_lockstep },
	{ "sem", "bursts", sem_bursts },
	{ "mutex", "pair", mutex_pair },
	{ "mutex", "contended", mutex_contended },
	{ "rwlock", "rd", rwlock_rd },
	{ "rwlock", "wr", rwlock_wr },
	{ "rwlock", "work", rwlock_work },
	{ "buffer", "pass", buffer_pass },
	{ "queue", "pass", queue_pass },
	{ "barrier", "meet", barrier_meet },
	{ "once", "done", once_done },
	{ "once", "race", once_race },
	{ "event", "pingpong", event_pingpong },
	{ "event", "gate", event_gate },
	{ "latch", "gate", latch_gate },
	{ "token", "call-off", token_call_off },
};

static const struct workload *chosen(const char *of, const char *mode)
{
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
		if (strcmp(workloads[i].object, of) == 0 && strcmp(workloads[i].mode, mode) == 0)
			return &workloads[i];
	perf_fail("no --mode=%s of --object=%s", mode, of);
}

static int tell(char *text, size_t size, const char *name, double value)
{
	return snprintf(text, size, ", \"%s\": %.3f", name, value);
}

static void print(const struct workload *w)
{
	char name[64], mode[64], extra[256];
	size_t size = sizeof extra;
	snprintf(name, sizeof name, "%s%s%s", peer.name, *variant ? ":" : "", variant);
	snprintf(mode, sizeof mode, "%s %s", w->object, w->mode);
	int n = snprintf(extra, size, "\"bytes\": %zu, \"processor_ns_per_op\": %.2f", result.bytes,
			 processor * 1e9 / (double)result.ops);
	if (result.fairness > 0)
		n += tell(extra + n, size - (size_t)n, "fairness", result.fairness);
	if (peer_run.timed)
		n += tell(extra + n, size - (size_t)n, "longest_wait_us", result.longest * 1e6);
	if (result.has_overtakings)
		tell(extra + n, size - (size_t)n, "overtakings", result.overtakings);
	perf_print(&(struct perf_result){ "peers", name, mode, threads, perf_option(options, "cpu"), result.ops, extra },
		   &region);
}

int main(int argc, char **argv)
{
	perf_options(argc, argv, "one of the libraries that a program could be written with", options,
		     sizeof options / sizeof *options);
	const struct workload *w = chosen(perf_option(options, "object"), perf_option(options, "mode"));
	variant = perf_option(options, "variant");
	threads = (unsigned)perf_number(options, "threads");
	ops = perf_number(options, "ops");
	limit = (double)perf_number(options, "limit-ms") / 1e3;
	peer_run.timed = perf_number(options, "waits") != 0;
	if (threads < 1 || threads > PEER_MOST || ops < 100)
		perf_fail("--threads is 1 to %d, --ops at least 100", PEER_MOST);
	perf_pin(perf_option(options, "cpu"));
	w->run();
	print(w);
	return 0;
}
