/* SPDX-License-Identifier: MIT */
/*
 * Calls on what machines share: each of --waiters callers has a session of its own, and adds one to a number.
 *
 * calls: all at once, --ops in all. monitor: the delegated monitor. locked: lock a mutex, get a node, set it, unlock.
 * table: one call after another, of remote (a remote procedure in another session), guarded (a function that only the
 *  caller has, under a monitor), monitor, guard (a monitor's operation with a guard), joint (a synchronizer's, with a
 *  guard, of two monitors).
 * pair: every caller gets, and sets, in turn. serial: both are the synchronizer's. parallel: who gets asks the monitor.
 *
 * Checked: that each number is given once. Seen to fail: a caller that does not lock.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "perf.h"

enum { GETS, SETS, KINDS };

struct caller {
	vez_cluster_t *c;
	vez_cluster_monitor_t *m[2];
	vez_cluster_synchronizer_t *y;
	vez_cluster_remote_t *r;
	vez_cluster_mutex_t *mutex;
	zhandle_t *zh;
	pthread_t thread;
	double *took[KINDS];
	uint64_t count[KINDS];
};

static struct caller caller[MOST];
static uint64_t left;
static unsigned char *given;
static uint64_t most;

/* ---- what is called ---- */

static uint64_t add(void *state, size_t *size)
{
	uint64_t count = 0;
	if (*size == sizeof count)
		memcpy(&count, state, sizeof count);
	*size = sizeof count;
	count++;
	memcpy(state, &count, sizeof count);
	return count - 1;
}

static int answer(void *result, size_t *size, uint64_t number)
{
	memcpy(result, &number, sizeof number);
	*size = sizeof number;
	return 0;
}

static int monitor_add(vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return answer(s->result, &s->result_size, add(s->state, &s->state_size));
}

static int monitor_get(vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return answer(s->result, &s->result_size, s->state_size);
}

static bool may(const vez_cluster_step_t *s, void *arg)
{
	(void)arg;
	return s->state_size <= sizeof(uint64_t);
}

static const vez_cluster_operation_t operations[] = {
	{ "add", NULL, monitor_add },
	{ "add-if", may, monitor_add },
	{ "get", NULL, monitor_get },
};

static int joint_add(vez_cluster_joint_step_t *s, void *arg)
{
	(void)arg;
	add(s->states[1].data, &s->states[1].size);
	return answer(s->result, &s->result_size, add(s->states[0].data, &s->states[0].size));
}

static int joint_get(vez_cluster_joint_step_t *s, void *arg)
{
	(void)arg;
	return answer(s->result, &s->result_size, s->states[0].size);
}

static bool both_may(const vez_cluster_joint_step_t *s, void *arg)
{
	(void)arg;
	return s->states[0].size == s->states[1].size;
}

static const vez_cluster_joint_operation_t joint[] = {
	{ "add", both_may, joint_add },
	{ "get", NULL, joint_get },
};

static int remote_add(vez_cluster_invocation_t *i, void *count)
{
	size_t size = sizeof(uint64_t);
	return answer(i->result, &i->result_size, add(count, &size));
}

static const vez_cluster_function_t functions[] = { { "add", remote_add } };

/* ---- how ---- */

static int by_monitor(struct caller *k, vez_cluster_bytes_t *result)
{
	return vez_cluster_monitor_call(k->m[0], "add", NULL, 0, result, SOON, NULL);
}

static int by_guard(struct caller *k, vez_cluster_bytes_t *result)
{
	return vez_cluster_monitor_call(k->m[0], "add-if", NULL, 0, result, SOON, NULL);
}

static int by_guarded(struct caller *k, vez_cluster_bytes_t *result)
{
	vez_cluster_guarded_t f = { k->m[0], NULL, monitor_add, NULL };
	return vez_cluster_guarded_call(f, NULL, 0, result, SOON, NULL);
}

static int by_joint(struct caller *k, vez_cluster_bytes_t *result)
{
	return vez_cluster_synchronizer_call(k->y, "add", NULL, 0, result, SOON, NULL);
}

static int by_remote(struct caller *k, vez_cluster_bytes_t *result)
{
	return vez_cluster_remote_call(k->r, "add", NULL, 0, result, SOON, NULL);
}

static int by_lock(struct caller *k, vez_cluster_bytes_t *result)
{
	vez_cluster_hold_t h;
	uint64_t count = 0;
	int size = sizeof count;
	must(vez_cluster_mutex_lock(k->mutex, &h, SOON, NULL), "lock");
	must(zoo_get(k->zh, base, 0, (char *)&count, &size, NULL), "get");
	memcpy(result->data, &count, sizeof count);
	count++;
	must(zoo_set(k->zh, base, (const char *)&count, sizeof count, -1), "set");
	return vez_cluster_release(&h);
}

static int get_by_monitor(struct caller *k, vez_cluster_bytes_t *result)
{
	return vez_cluster_monitor_call(k->m[0], "get", NULL, 0, result, SOON, NULL);
}

static int get_by_joint(struct caller *k, vez_cluster_bytes_t *result)
{
	return vez_cluster_synchronizer_call(k->y, "get", NULL, 0, result, SOON, NULL);
}

static const struct means {
	const char *mode, *impl;
	int (*call)(struct caller *k, vez_cluster_bytes_t *result);
	int (*get)(struct caller *k, vez_cluster_bytes_t *result);
} means[] = {
	{ "calls", "monitor", by_monitor, NULL },
	{ "calls", "locked", by_lock, NULL },
	{ "table", "remote", by_remote, NULL },
	{ "table", "guarded", by_guarded, NULL },
	{ "table", "monitor", by_monitor, NULL },
	{ "table", "guard", by_guard, NULL },
	{ "table", "joint", by_joint, NULL },
	{ "pair", "serial", by_joint, get_by_joint },
	{ "pair", "parallel", by_joint, get_by_monitor },
};

/* ---- the run ---- */

static const struct means *way;

static void prepare(struct caller *k)
{
	vez_cluster_options_t o = { servers, NULL, NULL, SESSION_MS };
	char name[80];
	must(vez_cluster_open(&k->c, &o, SOON, NULL), "open");
	if (way->call == by_lock) {
		k->zh = raw_open();
		must(vez_cluster_mutex_open(&k->mutex, k->c, base + 1, SOON, NULL), "open");
	} else if (way->call == by_remote) {
		must(vez_cluster_remote_open(&k->r, k->c, base + 1, SOON, NULL), "open");
	} else {
		for (int i = 0; i < 2; i++) {
			snprintf(name, sizeof name, "%s-%d", base + 1, i);
			must(vez_cluster_monitor_open(&k->m[i], k->c, name, operations, 3, NULL, SOON, NULL), "open");
		}
		must(vez_cluster_synchronizer_open(&k->y, k->c, base + 1, k->m, 2, joint, 2, NULL, SOON, NULL), "open");
	}
	for (int i = 0; i < KINDS; i++)
		k->took[i] = malloc(most * sizeof *k->took[i]);
}

static void finish(struct caller *k)
{
	if (k->zh)
		zookeeper_close(k->zh);
	if (k->mutex)
		must(vez_cluster_mutex_close(k->mutex), "close");
	if (k->r)
		must(vez_cluster_remote_close(k->r), "close");
	if (k->y)
		must(vez_cluster_synchronizer_close(k->y) | vez_cluster_monitor_close(k->m[0]) |
			     vez_cluster_monitor_close(k->m[1]), "close");
	must(vez_cluster_close(k->c), "close");
}

static void one(struct caller *k, int kind)
{
	uint64_t number = 0;
	vez_cluster_bytes_t result = { &number, 0, sizeof number };
	double began = perf_now();
	must((kind == GETS ? way->get : way->call)(k, &result), "call");
	k->took[kind][k->count[kind]++] = perf_now() - began;
	if (kind == SETS && (number >= most || __atomic_fetch_add(&given[number], 1, __ATOMIC_RELAXED) != 0))
		perf_fail("%llu is given twice", (unsigned long long)number);
}

static void *body(void *arg)
{
	struct caller *k = arg;
	while ((int64_t)__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) > 0) {
		if (way->get)
			one(k, GETS);
		one(k, SETS);
	}
	return NULL;
}

static double median_us(int kind)
{
	uint64_t count = 0;
	for (unsigned i = 0; i < waiters; i++)
		count += caller[i].count[kind];
	double *all = malloc((count + 1) * sizeof *all);
	count = 0;
	for (unsigned i = 0; i < waiters; i++) {
		memcpy(all + count, caller[i].took[kind], caller[i].count[kind] * sizeof *all);
		count += caller[i].count[kind];
	}
	qsort(all, count, sizeof *all, by_size);
	double median = count > 0 ? all[count / 2] * 1e6 : 0;
	free(all);
	return median;
}

static void run(const char *mode, const char *impl, uint64_t ops, const char *cpu)
{
	struct perf_region region;
	vez_cluster_options_t o = { servers, NULL, NULL, SESSION_MS };
	vez_cluster_service_t *service = NULL;
	vez_cluster_t *serving = NULL;
	uint64_t served = 0;
	most = left = ops;
	given = calloc(ops + 1, 1);
	if (way->call == by_remote) {
		must(vez_cluster_open(&serving, &o, SOON, NULL), "open");
		must(vez_cluster_service_open(&service, serving, base + 1, functions, 1, &served, SOON, NULL), "serve");
	}
	for (unsigned i = 0; i < waiters; i++)
		prepare(&caller[i]);
	struct counts before = look_when_quiet();
	perf_begin(&region);
	for (unsigned i = 0; i < waiters; i++)
		caller[i].thread = perf_thread(body, &caller[i]);
	for (unsigned i = 0; i < waiters; i++)
		pthread_join(caller[i].thread, NULL);
	perf_end(&region);
	struct counts after = look_when_quiet();
	for (unsigned i = 0; i < waiters; i++)
		finish(&caller[i]);
	if (serving)
		must(vez_cluster_close(serving) | vez_cluster_service_close(service), "close");
	for (uint64_t i = 0; i < ops; i++)
		if (given[i] != 1)
			perf_fail("%llu is not given", (unsigned long long)i);
	char extra[128];
	snprintf(extra, sizeof extra, "\"per_second\": %.1f, \"set_us\": %.1f, \"get_us\": %.1f, \"packets\": %.2f",
		 (double)ops / region.seconds, median_us(SETS), median_us(GETS),
		 (double)(after.received + after.sent - before.received - before.sent) / (double)ops);
	perf_print(&(struct perf_result){ "cluster", impl, mode, waiters, cpu, ops, extra }, &region);
}

bool calls(const char *mode, const char *impl, uint64_t ops, const char *cpu)
{
	for (size_t i = 0; i < sizeof means / sizeof *means; i++)
		if (strcmp(means[i].mode, mode) == 0 && strcmp(means[i].impl, impl) == 0)
			way = &means[i];
	if (way)
		run(mode, impl, ops, cpu);
	return way != NULL;
}
