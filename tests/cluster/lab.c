/* SPDX-License-Identifier: MIT */
/* A look at what is on the server, sessions, processes. */
#define THREADED
#include "lab.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

int questions;

void fail_at(const char *file, int line, const char *what, long long a, long long b)
{
	fprintf(stderr, "%s:%d: not %s (%lld, %lld)\n", file, line, what, a, b);
	_exit(1);
}

void a_moment(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* ---- what is on it ---- */

static void no_log(const char *message)
{
	(void)message;
}

/* The servers at this port, as options have them. */
static const char *servers_at(int port)
{
	static char host[64];
	if (port == ENSEMBLE)
		return ensemble_servers();
	snprintf(host, sizeof host, "127.0.0.1:%d", port);
	return host;
}

static zhandle_t *raw(void)
{
	static zhandle_t *zh;
	static pid_t of;
	if (zh && of == getpid())
		return zh;
	zh = zookeeper_init2(servers_at(members[0].port ? ENSEMBLE : server_port), NULL, 30000, NULL, NULL, 0, no_log);
	of = getpid();
	for (int i = 0; zoo_state(zh) != ZOO_CONNECTED_STATE && i < 10000; i++)
		a_moment();
	return zh;
}

int nodes(const char *path)
{
	struct String_vector names = { 0, NULL };
	zhandle_t *zh = raw();
	int rc, tries = 0;
	questions++;
	do
		rc = zoo_get_children(zh, path, 0, &names);
	while (rc != ZOK && rc != ZNONODE && ++tries < 100 && (a_moment(), true));
	int count = rc == ZOK ? names.count : -1;
	deallocate_String_vector(&names);
	return count;
}

void start_three(void)
{
	ensemble_start();
	vez_cluster_options_t options = { ensemble_servers(), "/vez", NULL, 10000 };
	CHECK_EQ(vez_cluster_make_root(&options, SOON, NULL), 0);
}

void remove_node(const char *path)
{
	zoo_delete(raw(), path, -1);
}

void make_node(const char *path)
{
	CHECK_EQ(zoo_create(raw(), path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
}

bool node_below(const char *path, const char *begins, char found[512])
{
	struct String_vector names = { 0, NULL };
	bool is_there = false;
	questions++;
	CHECK_EQ(zoo_get_children(raw(), path, 0, &names), ZOK);
	for (int i = 0; i < names.count; i++) {
		if (strncmp(names.data[i], begins, strlen(begins)) != 0)
			continue;
		snprintf(found, 512, "%s/%s", path, names.data[i]);
		is_there = true;
	}
	deallocate_String_vector(&names);
	return is_there;
}

void end_session(const struct proxy *p)
{
	char host[64], path[64];
	struct Stat stat;
	clientid_t id = { p->session, { 0 } };
	memcpy(id.passwd, p->password, sizeof id.passwd);
	snprintf(host, sizeof host, "127.0.0.1:%d", server_port);
	snprintf(path, sizeof path, "/vez/live/%llx", (unsigned long long)p->session);
	CHECK_EQ(zoo_exists(raw(), path, 0, &stat), ZOK);
	/* A close that comes too soon after the connection ends nothing. */
	do {
		zhandle_t *zh = zookeeper_init2(host, NULL, 10000, &id, NULL, 0, no_log);
		UNTIL(zoo_state(zh) == ZOO_CONNECTED_STATE || is_unrecoverable(zh));
		zoo_exists(zh, "/", 0, &stat);
		zookeeper_close(zh);
	} while (zoo_exists(raw(), path, 0, &stat) != ZNONODE);
}

int in_line(const char *kind, const char *name)
{
	char path[256];
	snprintf(path, sizeof path, "/vez/%s-%s", kind, name);
	return nodes(path);
}

/* ---- sessions ---- */

int try_open(vez_cluster_t **c, int port, const char *root, const char *auth, int64_t session_ms,
	     vez_deadline_t deadline, vez_cancel_t *cancel)
{
	vez_cluster_options_t options = { servers_at(port), root, auth, session_ms };
	return vez_cluster_open(c, &options, deadline, cancel);
}

vez_cluster_t *open_session_at(int port, int64_t session_ms)
{
	vez_cluster_t *c = NULL;
	CHECK_EQ(try_open(&c, port, NULL, NULL, session_ms, SOON, NULL), 0);
	return c;
}

vez_cluster_t *open_session(int64_t session_ms)
{
	return open_session_at(server_port, session_ms);
}

const char *fresh(void)
{
	static char names[16][32];
	static int count;
	char *name = names[count % 16];
	snprintf(name, sizeof names[0], "%d-%d", (int)getpid(), ++count);
	return name;
}

int threads(void)
{
	int count = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; (e = readdir(d));)
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static void *nothing(void *arg)
{
	return arg;
}

int threads_at_rest(void)
{
	pthread_t t;
	CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
	pthread_join(t, NULL);
	int before, now = threads();
	do {
		before = now;
		for (int i = 0; i < 20; i++)
			a_moment();
		now = threads();
	} while (now != before);
	return now;
}

/* ---- processes ---- */

pid_t start_child(int (*body)(void *arg), void *arg)
{
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(body(arg));
	}
	CHECK(child > 0);
	return child;
}

int end_of(pid_t child)
{
	int status;
	CHECK_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void start_next(struct clients *k, int place)
{
	k->child[place] = start_child(k->body, k->next);
	k->next = (char *)k->next + k->size;
}

void clients_start(struct clients *k)
{
	for (int i = 0; i < CLIENTS; i++)
		start_next(k, i);
}

void clients_killed(struct clients *k, int kills)
{
	for (int i = 0; i < kills; i++) {
		int victim = i % CLIENTS;
		size_t seen = k->done(k->what, ALL_CLIENTS);
		UNTIL(k->done(k->what, ALL_CLIENTS) > seen + 5 + (size_t)i % 7);
		kill(k->child[victim], SIGKILL);
		CHECK_EQ(end_of(k->child[victim]), 1000 + SIGKILL);
		start_next(k, victim);
	}
}

void clients_leader_killed(struct clients *k, int kills)
{
	for (int i = 0; i < kills; i++) {
		size_t seen = k->done(k->what, ALL_CLIENTS);
		UNTIL(k->done(k->what, ALL_CLIENTS) > seen + 100);
		int leader = ensemble_leader();
		ensemble_kill(leader);
		CHECK(ensemble_leader() != leader);
		/* Each of them goes on, also the one that was connected to it. */
		for (int j = 0; j < CLIENTS; j++) {
			size_t had = k->done(k->what, j);
			UNTIL(k->done(k->what, j) > had + 2);
		}
		ensemble_restart(leader);
		UNTIL(ensemble_serves(leader));
	}
}

void clients_end(const struct clients *k)
{
	for (int i = 0; i < CLIENTS; i++)
		CHECK_EQ(end_of(k->child[i]), 0);
}

void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}
