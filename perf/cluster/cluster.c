/* SPDX-License-Identifier: MIT */
/*
 * cluster: what libvez-cluster costs at the servers that VEZ_CLUSTER_SERVERS names.
 *
 *	handover   --waiters sessions wait in line; each, when it has its turn, gives it to the next. The time is from
 *	           the beginning of a release until the next one knows; packets and events are what the servers counted.
 *	pending    --waiters requests of one session wait: the memory and the threads that they take
 *	calls, table, pair: calls.c
 *
 * Implementations of handover: vez; sem, a semaphore of one permit; parent, in which everybody watches the node below which the requests are, lists
 * them at each event, and looks who is first; floor, the least that any can be: the one before writes to a node that
 * the next one watches.
 *
 * Checked: that each has its turn, after the one before. Seen to fail: with a line whose second is told when the first
 * is; with a parent of which who looks does so only while more than two are in line.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "perf.h"

static struct perf_option options[] = {
	{ "impl", "vez", "vez, sem, parent, floor; of calls, table, pair: calls.c" },
	{ "mode", "handover", "handover, pending; calls, table, pair" },
	{ "waiters", "8", "how many wait, or call" },
	{ "ops", "200", "hand-overs in all, at least, or calls" },
	{ "cpu", "any", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

const char *servers;
unsigned waiters;
char base[64];

void must(int rc, const char *what)
{
	if (rc != 0)
		perf_fail("%s: %d", what, rc);
}

static void a_moment(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* ---- what the servers count ---- */

/* Of all that are connected and have a session: who merely asks has none. */
static void look_at(const char *host, int port, struct counts *sum)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	char line[1024];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	inet_pton(AF_INET, host, &at.sin_addr);
	must(connect(fd, (struct sockaddr *)&at, sizeof at), "connect");
	if (write(fd, "cons", 4) != 4)
		perf_fail("a server is not asked");
	FILE *answer = fdopen(fd, "r");
	while (fgets(line, sizeof line, answer)) {
		const char *counts = strstr(line, "recved=");
		long long received, sent;
		if (strstr(line, "sid=") && counts && sscanf(counts, "recved=%lld,sent=%lld", &received, &sent) == 2) {
			sum->received += received;
			sum->sent += sent;
		}
	}
	fclose(answer);
}

/* Summed over the servers: "127.0.0.1:port,127.0.0.1:port". */
static struct counts look(void)
{
	struct counts sum = { 0, 0 };
	char list[512], *next = list;
	snprintf(list, sizeof list, "%s", servers);
	for (char *one; (one = strsep(&next, ","));) {
		char *colon = strchr(one, ':');
		*colon = '\0';
		look_at(one, atoi(colon + 1), &sum);
	}
	return sum;
}

/* When nothing happens any more. */
struct counts look_when_quiet(void)
{
	struct counts before = look();
	for (int same = 0; same < 5;) {
		a_moment();
		struct counts now = look();
		same = now.received == before.received && now.sent == before.sent ? same + 1 : 0;
		before = now;
	}
	return before;
}

/* ---- sessions of ZooKeeper's client ---- */

struct raw {
	zhandle_t *zh;
	char node[128];
	vez_event_t turn;
	unsigned armed; /* watches set and not yet called */
};

static struct raw raw[MOST];

zhandle_t *raw_open(void)
{
	zhandle_t *zh = zookeeper_init(servers, NULL, SESSION_MS, NULL, NULL, 0);
	if (!zh)
		perf_fail("no client");
	zoo_set_servers_resolution_delay(zh, 10000); /* as vez does */
	for (int i = 0; zoo_state(zh) != ZOO_CONNECTED_STATE; i++, a_moment())
		if (i > 30000)
			perf_fail("no connection");
	return zh;
}

static void nothing_more(int rc, const void *arg)
{
	(void)rc;
	(void)arg;
}

static void nothing_more_of_it(int rc, const struct Stat *stat, const void *arg)
{
	(void)rc;
	(void)stat;
	(void)arg;
}

/* ---- everybody watches the parent ---- */

/* Of each round: what is still watched in the one before is not heard of again. */
static char line[80];

static void parent_changed(zhandle_t *zh, int type, int state, const char *path, void *arg);

static void parent_listed(int rc, const struct String_vector *names, const void *arg)
{
	struct raw *r = (struct raw *)arg;
	const char *own = strrchr(r->node, '/') + 1;
	if (rc != ZOK)
		return;
	__atomic_store_n(&r->armed, 1, __ATOMIC_RELEASE);
	/* The line's order is that of the names, which differ in the sequence number alone. */
	for (int i = 0; i < names->count; i++)
		if (strcmp(names->data[i], own) < 0)
			return;
	if (names->count > 0)
		vez_event_set(&r->turn);
}

static void parent_changed(zhandle_t *zh, int type, int state, const char *path, void *arg)
{
	(void)state;
	if (type == ZOO_CHILD_EVENT && !vez_event_is_set(&((struct raw *)arg)->turn))
		zoo_awget_children(zh, path, parent_changed, arg, parent_listed, arg);
}

static void parent_queue(unsigned i)
{
	struct raw *r = &raw[i];
	static unsigned round;
	char path[96];
	if (i == 0) {
		snprintf(line, sizeof line, "%s-%u", base, round++);
		must(zoo_create(r->zh, line, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "create");
	}
	snprintf(path, sizeof path, "%s/r-", line);
	must(zoo_create(r->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, r->node,
			sizeof r->node), "create");
}

/* All watch when all are in line. */
static void parent_watch(unsigned i)
{
	must(zoo_awget_children(raw[i].zh, line, parent_changed, &raw[i], parent_listed, &raw[i]), "list");
	while (!__atomic_load_n(&raw[i].armed, __ATOMIC_ACQUIRE))
		a_moment();
}

static void parent_pass(unsigned i)
{
	must(zoo_adelete(raw[i].zh, raw[i].node, -1, nothing_more, NULL), "delete");
}

/* ---- one write, one notification ---- */

static void floor_changed(zhandle_t *zh, int type, int state, const char *path, void *arg)
{
	(void)zh;
	(void)state;
	(void)path;
	if (type == ZOO_CHANGED_EVENT)
		vez_event_set(&((struct raw *)arg)->turn);
}

static void floor_queue(unsigned i)
{
	struct raw *r = &raw[i];
	char path[80], data[8];
	int size = sizeof data;
	snprintf(path, sizeof path, "%s/f-", base);
	must(zoo_create(r->zh, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, r->node,
			sizeof r->node), "create");
	must(zoo_wget(r->zh, r->node, floor_changed, r, data, &size, NULL), "watch");
	if (i == 0)
		vez_event_set(&r->turn);
}

static void floor_pass(unsigned i)
{
	if (i + 1 < waiters)
		must(zoo_aset(raw[i].zh, raw[i + 1].node, "", 0, -1, nothing_more_of_it, NULL), "set");
}

/* ---- both ---- */

static void raw_prepare(unsigned i)
{
	raw[i].zh = raw_open();
}

static void raw_wait(unsigned i)
{
	must(vez_event_wait_until(&raw[i].turn, SOON, NULL), "its turn");
	if (i + 1 < waiters && vez_event_is_set(&raw[i + 1].turn))
		perf_fail("%u is told before its turn", i + 1);
}

static void raw_again(unsigned i)
{
	zoo_delete(raw[i].zh, raw[i].node, -1);
	vez_event_reset(&raw[i].turn);
	raw[i].armed = 0;
}

static void raw_close(unsigned i)
{
	zookeeper_close(raw[i].zh);
}

/* ---- vez ---- */

static struct own {
	vez_cluster_t *c;
	vez_cluster_mutex_t *m;
	vez_cluster_sem_t *s; /* that, or this */
	vez_cluster_hold_t hold;
	vez_request_t request;
} own[MOST];

static zhandle_t *looks;

static int in_line(const char *name)
{
	struct String_vector names = { 0, NULL };
	char path[128];
	snprintf(path, sizeof path, "/vez/%s-%s", own[0].s ? "sem" : "mutex", name);
	must(zoo_get_children(looks, path, 0, &names), "list");
	int count = names.count;
	deallocate_String_vector(&names);
	return count;
}

static void vez_prepare(unsigned i)
{
	vez_cluster_options_t o = { servers, NULL, NULL, SESSION_MS };
	must(vez_cluster_open(&own[i].c, &o, SOON, NULL), "open");
	must(vez_cluster_mutex_open(&own[i].m, own[i].c, base + 1, SOON, NULL), "open");
}

static void sem_prepare(unsigned i)
{
	vez_cluster_options_t o = { servers, NULL, NULL, SESSION_MS };
	must(vez_cluster_open(&own[i].c, &o, SOON, NULL), "open");
	must(vez_cluster_sem_open(&own[i].s, own[i].c, base + 1, 1, SOON, NULL), "open");
}

static int ask(struct own *o)
{
	vez_request_init(&o->request, NULL, NULL);
	return o->s ? vez_cluster_sem_acquire_async(o->s, 1, &o->hold, &o->request) :
		      vez_cluster_mutex_lock_async(o->m, &o->hold, &o->request);
}

static void vez_queue(unsigned i)
{
	if (ask(&own[i]) != EINPROGRESS)
		perf_fail("a request is not in progress");
	while (in_line(base + 1) != (int)i + 1)
		a_moment();
}

static void vez_wait(unsigned i)
{
	must(vez_request_wait(&own[i].request, SOON, NULL), "its turn");
	must(vez_request_result(&own[i].request), "its turn");
	if (i + 1 < waiters && vez_request_result(&own[i + 1].request) != EINPROGRESS)
		perf_fail("%u is told before its turn", i + 1);
}

static void vez_pass(unsigned i)
{
	must(vez_cluster_release(&own[i].hold), "release");
}

static void vez_again(unsigned i)
{
	while (i == 0 && in_line(base + 1) != 0)
		a_moment();
}

static void vez_close(unsigned i)
{
	must(own[i].s ? vez_cluster_sem_close(own[i].s) : vez_cluster_mutex_close(own[i].m), "close");
	must(vez_cluster_close(own[i].c), "close");
}

/* ---- handover ---- */

static void no_watch(unsigned i)
{
	(void)i;
}

static const struct way {
	const char *name;
	void (*prepare)(unsigned), (*queue)(unsigned), (*watch)(unsigned), (*wait)(unsigned), (*pass)(unsigned);
	void (*again)(unsigned), (*close)(unsigned);
} ways[] = {
	{ "vez", vez_prepare, vez_queue, no_watch, vez_wait, vez_pass, vez_again, vez_close },
	{ "sem", sem_prepare, vez_queue, no_watch, vez_wait, vez_pass, vez_again, vez_close },
	{ "parent", raw_prepare, parent_queue, parent_watch, raw_wait, parent_pass, raw_again, raw_close },
	{ "floor", raw_prepare, floor_queue, no_watch, raw_wait, floor_pass, raw_again, raw_close },
};

static void all(void (*one)(unsigned))
{
	for (unsigned i = 0; i < waiters; i++)
		one(i);
}

int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void handover(const struct way *way, uint64_t ops)
{
	struct perf_region region;
	struct counts counted = { 0, 0 }, before, after;
	uint64_t done = 0, size = ops + MOST;
	double *took = malloc(size * sizeof *took), spent = 0;
	all(way->prepare);
	perf_begin(&region);
	while (done < ops) {
		all(way->queue);
		all(way->watch);
		way->wait(0);
		before = look_when_quiet();
		for (unsigned i = 0; i + 1 < waiters; i++, done++) {
			double began = perf_now();
			way->pass(i);
			way->wait(i + 1);
			took[done] = perf_now() - began;
			spent += took[done];
		}
		after = look_when_quiet();
		counted.received += after.received - before.received;
		counted.sent += after.sent - before.sent;
		way->pass(waiters - 1);
		all(way->again);
	}
	perf_end(&region);
	region.seconds = spent;
	all(way->close);
	qsort(took, done, sizeof *took, by_size);
	char extra[128];
	snprintf(extra, sizeof extra, "\"packets\": %.3f, \"events\": %.3f, \"median_us\": %.1f",
		 (double)(counted.received + counted.sent) / (double)done,
		 (double)(counted.sent - counted.received) / (double)done, took[done / 2] * 1e6);
	perf_print(&(struct perf_result){ "cluster", way->name, "handover", waiters, perf_option(options, "cpu"), done,
					  extra }, &region);
	free(took);
}

/* ---- pending ---- */

static unsigned threads(void)
{
	unsigned count = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; (e = readdir(d));)
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static void pending(void)
{
	struct perf_region region;
	vez_cluster_options_t o = { servers, NULL, NULL, SESSION_MS };
	vez_cluster_hold_t *holds = malloc(waiters * sizeof *holds);
	vez_request_t *requests = malloc(waiters * sizeof *requests);
	vez_cluster_t *c;
	vez_cluster_mutex_t *m;
	unsigned threads_before = threads();
	must(vez_cluster_open(&c, &o, SOON, NULL), "open");
	must(vez_cluster_mutex_open(&m, c, base + 1, SOON, NULL), "open");
	size_t heap = mallinfo2().uordblks;
	perf_begin(&region);
	for (unsigned i = 0; i < waiters; i++) {
		vez_request_init(&requests[i], NULL, NULL);
		if (vez_cluster_mutex_lock_async(m, &holds[i], &requests[i]) != EINPROGRESS)
			perf_fail("a request is not in progress");
	}
	while (in_line(base + 1) != (int)waiters)
		a_moment();
	look_when_quiet();
	perf_end(&region);
	char extra[160];
	snprintf(extra, sizeof extra, "\"bytes_each\": %zu, \"bytes_of_caller\": %zu, \"threads\": %u",
		 (mallinfo2().uordblks - heap) / waiters, sizeof *holds + sizeof *requests, threads() - threads_before);
	must(vez_cluster_close(c), "close");
	for (unsigned i = 0; i < waiters; i++)
		if (vez_request_result(&requests[i]) != (i == 0 ? 0 : VEZ_ECLOSED))
			perf_fail("request %u: %d", i, vez_request_result(&requests[i]));
	vez_cluster_release(&holds[0]);
	must(vez_cluster_mutex_close(m), "close");
	perf_print(&(struct perf_result){ "cluster", "vez", "pending", waiters, perf_option(options, "cpu"), waiters,
					  extra }, &region);
	free(holds);
	free(requests);
}

int main(int argc, char **argv)
{
	perf_options(argc, argv, "what synchronizers between machines cost at their servers", options,
		     sizeof options / sizeof *options - 1);
	const char *mode = perf_option(options, "mode"), *impl = perf_option(options, "impl");
	servers = getenv("VEZ_CLUSTER_SERVERS");
	if (!servers)
		perf_fail("VEZ_CLUSTER_SERVERS is not set: build/tests/cluster-serve sets it");
	waiters = (unsigned)perf_number(options, "waiters");
	perf_pin(perf_option(options, "cpu"));
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	looks = raw_open();
	snprintf(base, sizeof base, "/perf-%d", (int)getpid());
	must(zoo_create(looks, base, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "create");
	if (strcmp(mode, "pending") == 0) {
		pending();
	} else if (waiters > 0 && waiters <= MOST &&
		   calls(mode, impl, perf_number(options, "ops"), perf_option(options, "cpu"))) {
	} else {
		const struct way *way = NULL;
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
			if (strcmp(ways[i].name, impl) == 0)
				way = &ways[i];
		if (!way || strcmp(mode, "handover") != 0 || waiters < 2 || waiters > MOST)
			perf_fail("no such impl or mode, or not 2 to %d waiters", MOST);
		handover(way, perf_number(options, "ops"));
	}
	zoo_delete(looks, base, -1);
	zookeeper_close(looks);
	return 0;
}
