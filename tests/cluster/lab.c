/* SPDX-License-Identifier: MIT */
/* A server, a look at what is on it, sessions, processes. */
#define THREADED
#include "lab.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

int server_port;
int questions;
pid_t server_pid;
static char folder[200];

void fail_at(const char *file, int line, const char *what, long long a, long long b)
{
	fprintf(stderr, "%s:%d: not %s (%lld, %lld)\n", file, line, what, a, b);
	_exit(1);
}

void a_moment(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* ---- the server ---- */

/* Not one that the kernel gives to who connects: who connects to such a one when nobody is there may find itself. */
static int free_port(void)
{
	for (int i = 0; i < 1000; i++) {
		int port = 20000 + (int)((unsigned)getpid() * 7 + (unsigned)i * 13) % 10000;
		struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					  .sin_port = htons((uint16_t)port) };
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int rc = bind(fd, (struct sockaddr *)&at, sizeof at);
		close(fd);
		if (rc == 0)
			return port;
	}
	CHECK(!"a port is free");
	return 0;
}

static int connect_to(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 2, 0 }, sizeof(struct timeval));
	if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
		return fd;
	close(fd);
	return -1;
}

void server_says(const char *command, char *answer, size_t size)
{
	int fd = connect_to(server_port);
	size_t got = 0;
	answer[0] = '\0';
	if (fd < 0)
		return;
	if (write(fd, command, 4) == 4)
		for (ssize_t n; got + 1 < size && (n = read(fd, answer + got, size - got - 1)) > 0;)
			got += (size_t)n;
	answer[got] = '\0';
	close(fd);
}

long long server_figure(const char *name)
{
	char answer[16384];
	server_says("mntr", answer, sizeof answer);
	const char *at = strstr(answer, name);
	return at ? atoll(at + strlen(name)) : -1;
}

static void launch(void)
{
	char config[512], log[512];
	snprintf(config, sizeof config, "%s/zoo.cfg", folder);
	snprintf(log, sizeof log, "%s/log", folder);
	server_pid = fork();
	if (server_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
		dup2(out, 1);
		dup2(out, 2);
		execlp("nice", "nice", "-n", "5", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		       "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.quorum.QuorumPeerMain",
		       config, (char *)NULL);
		_exit(127);
	}
	char answer[4096];
	for (int i = 0; i < 60000; i++, a_moment()) {
		server_says("srvr", answer, sizeof answer);
		if (strstr(answer, "Mode: standalone"))
			return;
		CHECK(waitpid(server_pid, NULL, WNOHANG) == 0);
	}
	CHECK(!"the server serves");
}

void server_start(void)
{
	char path[512];
	const char *tmp = getenv("TMPDIR");
	if (!folder[0])
		snprintf(folder, sizeof folder, "%s", tmp ? tmp : "/tmp");
	strncat(folder, "/vez-cluster-XXXXXX", sizeof folder - strlen(folder) - 1);
	CHECK(mkdtemp(folder) != NULL);
	server_port = free_port();
	snprintf(path, sizeof path, "%s/zoo.cfg", folder);
	FILE *f = fopen(path, "w");
	CHECK(f != NULL);
	fprintf(f,
		"tickTime=100\nmaxSessionTimeout=60000\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\n"
		"admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n",
		folder, server_port);
	fclose(f);
	launch();
}

void server_stop(void)
{
	if (server_pid > 0) {
		kill(server_pid, SIGKILL);
		waitpid(server_pid, NULL, 0);
	}
	server_pid = 0;
}

void server_restart(void)
{
	server_stop();
	launch();
}

void server_clean_up(void)
{
	char command[600];
	server_stop();
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	if (folder[0] && system(command) != 0)
		fprintf(stderr, "%s stays\n", folder);
}

/* ---- what is on it ---- */

static void no_log(const char *message)
{
	(void)message;
}

static zhandle_t *raw(void)
{
	static zhandle_t *zh;
	static pid_t of;
	char host[64];
	if (zh && of == getpid())
		return zh;
	snprintf(host, sizeof host, "127.0.0.1:%d", server_port);
	zh = zookeeper_init2(host, NULL, 30000, NULL, NULL, 0, no_log);
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

void remove_node(const char *path)
{
	zoo_delete(raw(), path, -1);
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
	char servers[64];
	snprintf(servers, sizeof servers, "127.0.0.1:%d", port);
	vez_cluster_options_t options = { servers, root, auth, session_ms };
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

void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}
