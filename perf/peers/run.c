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
 * Checked, as far as the peer can be: that nobody goes who was not let go, and nothing is lost or made up. Seen to
 * fail: with a mutex and a read lock that do nothing, a barrier of a party less, a token that is another's.
 */
#include <stdio.h>
#include <time.h>

#include "run.h"

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
struct run run;

static struct perf_region region;
static double processor;

/* ---- what workloads share ---- */

void *run_object(size_t size, unsigned count)
{
	size_t all = (size * count + 127) / 128 * 128;
	void *made = aligned_alloc(128, all);
	if (!made)
		perf_fail("no memory");
	memset(made, 0, all);
	return made;
}

void run_begins(void)
{
	perf_begin(&region);
	peer_run.began = perf_now();
	processor = -perf_cpu_now();
}

void run_ends(void)
{
	processor += perf_cpu_now();
	perf_end(&region);
}

void run_sleep_ms(double ms)
{
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000 };
	nanosleep(&ts, NULL);
}

bool run_stopped(void)
{
	return __atomic_load_n(&peer_run.stop, __ATOMIC_RELAXED);
}

void run_stop(void)
{
	__atomic_store_n(&peer_run.stop, true, __ATOMIC_RELAXED);
}

bool run_time_is_up(uint64_t done, double until)
{
	return done % 16 == 0 && perf_now() > until;
}

void run_start(unsigned n, void *(*body)(void *))
{
	for (unsigned i = 0; i < n; i++) {
		run.workers[i].number = i;
		run.workers[i].thread = perf_thread(body, &run.workers[i]);
	}
}

void run_look_at_waits(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		double longest = run.workers[i].longest;
		run.result.longest = longest > run.result.longest ? longest : run.result.longest;
	}
}

void run_join(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pthread_join(run.workers[i].thread, NULL);
	run_look_at_waits(n);
}

double run_fairness(unsigned first, unsigned n)
{
	uint64_t most = 0, fewest = UINT64_MAX;
	for (unsigned i = first; i < first + n; i++) {
		uint64_t done = __atomic_load_n(&run.workers[i].ops, __ATOMIC_RELAXED);
		most = done > most ? done : most;
		fewest = done < fewest ? done : fewest;
	}
	return (double)most / (double)(fewest ? fewest : 1);
}

void run_alone(void (*pairs)(void *object, uint64_t n))
{
	perf_sleeper_begin();
	pairs(run.object, run.ops / 100 + 1);
	run_begins();
	pairs(run.object, run.ops);
	run_ends();
	run.result.ops = run.ops;
	perf_sleeper_end();
}

bool run_all_wait(void *unused)
{
	(void)unused;
	return __atomic_load_n(&run.returned, __ATOMIC_ACQUIRE) == run.released &&
	       __atomic_load_n(&run.arrived, __ATOMIC_RELAXED) == run.released + run.threads;
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
	snprintf(name, sizeof name, "%s%s%s", peer.name, *run.variant ? ":" : "", run.variant);
	snprintf(mode, sizeof mode, "%s %s", w->object, w->mode);
	int n = snprintf(extra, size, "\"bytes\": %zu, \"processor_ns_per_op\": %.2f", run.result.bytes,
			 processor * 1e9 / (double)run.result.ops);
	if (run.result.fairness > 0)
		n += tell(extra + n, size - (size_t)n, "fairness", run.result.fairness);
	if (peer_run.timed)
		n += tell(extra + n, size - (size_t)n, "longest_wait_us", run.result.longest * 1e6);
	if (run.result.has_overtakings)
		tell(extra + n, size - (size_t)n, "overtakings", run.result.overtakings);
	perf_print(&(struct perf_result){ "peers", name, mode, run.threads, perf_option(options, "cpu"),
					  run.result.ops, extra },
		   &region);
}

int main(int argc, char **argv)
{
	perf_options(argc, argv, "one of the libraries that a program could be written with", options,
		     sizeof options / sizeof *options);
	const struct workload *w = chosen(perf_option(options, "object"), perf_option(options, "mode"));
	run.variant = perf_option(options, "variant");
	run.threads = (unsigned)perf_number(options, "threads");
	run.ops = perf_number(options, "ops");
	run.limit = (double)perf_number(options, "limit-ms") / 1e3;
	run.section = (double)perf_number(options, "section");
	run.think = (unsigned)perf_number(options, "think");
	run.capacity = (unsigned)perf_number(options, "capacity");
	peer_run.timed = perf_number(options, "waits") != 0;
	if (run.threads < 1 || run.threads > PEER_MOST || run.ops < 100)
		perf_fail("--threads is 1 to %d, --ops at least 100", PEER_MOST);
	perf_pin(perf_option(options, "cpu"));
	w->run();
	print(w);
	return 0;
}
