/* SPDX-License-Identifier: MIT */
/*
 * Servers on loopback, alone or three that are one service, each with its data in a folder of its own below one
 * temporary folder. Nothing of them stays: a process that is nothing but their guardian waits for the one that starts
 * them, and then removes the folder; whoever starts a server is its parent, and the kernel ends it when that ends.
 */
#include "lab.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

int server_port;
pid_t server_pid;
struct member members[MEMBERS];
static char folder[200];

/* Not one that the kernel gives to who connects: who connects to such a one when nobody is there may find itself. */
static int free_port(void)
{
	static unsigned asked;
	for (int i = 0; i < 1000; i++) {
		int port = 20000 + (int)(((unsigned)getpid() * 7 + asked++ * 13) % 10000);
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

static void says(int port, const char *command, char *answer, size_t size)
{
	int fd = connect_to(port);
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

void server_says(const char *command, char *answer, size_t size)
{
	says(server_port, command, answer, size);
}

static bool has_mode(int port, const char *mode)
{
	char answer[4096];
	says(port, "srvr", answer, sizeof answer);
	return strstr(answer, mode) != NULL;
}

long long server_figure(const char *name)
{
	char answer[16384];
	server_says("mntr", answer, sizeof answer);
	const char *at = strstr(answer, name);
	return at ? atoll(at + strlen(name)) : -1;
}

/* ---- one process ---- */

bool server_is_measured;

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* For tests it starts fast and leaves the processors to the clients; one that is measured runs as it would anywhere. */
static pid_t launch(const char *where)
{
	char config[512], log[512];
	pid_t parent = getpid();
	snprintf(config, sizeof config, "%s/zoo.cfg", where);
	snprintf(log, sizeof log, "%s/log", where);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(out, 1);
	dup2(out, 2);
	char *fast[] = { "nice", "-n", "5", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1" };
	char *usual[] = { "java" };
	char *rest[] = { "-cp", "/usr/share/java/zookeeper.jar",
			 "org.apache.zookeeper.server.quorum.QuorumPeerMain", config, NULL };
	char *argv[COUNT(fast) + COUNT(rest)];
	size_t options = server_is_measured ? COUNT(usual) : COUNT(fast);
	memcpy(argv, server_is_measured ? usual : fast, options * sizeof argv[0]);
	memcpy(argv + options, rest, sizeof rest);
	execvp(argv[0], argv);
	_exit(127);
}

static void end(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

static FILE *configure(const char *where, int port, int tick)
{
	char path[512];
	snprintf(path, sizeof path, "%s/zoo.cfg", where);
	FILE *f = fopen(path, "w");
	CHECK(f != NULL);
	fprintf(f,
		"tickTime=%d\nmaxSessionTimeout=60000\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\n"
		"admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n",
		tick, where, port);
	return f;
}

/* ---- one server ---- */

/* False: it has ended, as one does whose port somebody else has taken meanwhile. */
static bool serves(pid_t pid, int port, const char *mode)
{
	for (int i = 0; i < 60000; i++, a_moment()) {
		if (has_mode(port, mode))
			return true;
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return false;
	}
	CHECK(!"the server serves");
	return false;
}

static void new_folder(void)
{
	CHECK(folder[0]);
	strncat(folder, "/XXXXXX", sizeof folder - strlen(folder) - 1);
	CHECK(mkdtemp(folder) != NULL);
}

void server_start(void)
{
	int tries = 0;
	new_folder();
	do {
		CHECK(++tries < 10);
		server_port = free_port();
		fclose(configure(folder, server_port, 100));
		server_pid = launch(folder);
	} while (!serves(server_pid, server_port, "Mode: standalone"));
}

void server_stop(void)
{
	end(&server_pid);
}

void server_restart(void)
{
	server_stop();
	server_pid = launch(folder);
	CHECK(serves(server_pid, server_port, "Mode: standalone"));
}

/* ---- several that are one ---- */

int ensemble_leader(void)
{
	for (int tries = 0; tries < 60000; tries++, a_moment())
		for (int i = 0; i < MEMBERS; i++)
			if (members[i].pid > 0 && has_mode(members[i].port, "Mode: leader"))
				return i;
	CHECK(!"somebody leads");
	return 0;
}

static void where_of(int i, char *where, size_t size)
{
	snprintf(where, size, "%s/%d", folder, i);
}

static void ensemble_configure(void)
{
	int between[2 * MEMBERS];
	char where[300], path[400];
	for (int i = 0; i < 2 * MEMBERS; i++)
		between[i] = free_port();
	for (int i = 0; i < MEMBERS; i++) {
		members[i].port = free_port();
		where_of(i, where, sizeof where);
		mkdir(where, 0700);
		FILE *f = configure(where, members[i].port, 200);
		fprintf(f, "initLimit=50\nsyncLimit=20\n");
		for (int j = 0; j < MEMBERS; j++)
			fprintf(f, "server.%d=127.0.0.1:%d:%d\n", j + 1, between[2 * j], between[2 * j + 1]);
		fclose(f);
		snprintf(path, sizeof path, "%s/data", where);
		mkdir(path, 0700);
		snprintf(path, sizeof path, "%s/data/myid", where);
		CHECK((f = fopen(path, "w")) != NULL);
		fprintf(f, "%d\n", i + 1);
		fclose(f);
	}
}

/* Whether each one that was launched serves. False: one of them has ended. */
static bool all_serve(void)
{
	for (int i = 0; i < MEMBERS; i++)
		if (members[i].pid > 0 && !serves(members[i].pid, members[i].port, "Mode: "))
			return false;
	return true;
}

void ensemble_start(void)
{
	int tries = 0;
	new_folder();
	do {
		CHECK(++tries < 10);
		ensemble_stop();
		ensemble_configure();
		for (int i = 0; i < MEMBERS; i++)
			ensemble_restart(i);
	} while (!all_serve());
	server_port = members[ensemble_leader()].port;
}

void ensemble_restart(int i)
{
	char where[300];
	where_of(i, where, sizeof where);
	members[i].pid = launch(where);
}

bool ensemble_serves(int i)
{
	return has_mode(members[i].port, "Mode: ");
}

void ensemble_kill(int i)
{
	end(&members[i].pid);
}

void ensemble_stop(void)
{
	for (int i = 0; i < MEMBERS; i++)
		ensemble_kill(i);
}

const char *ensemble_servers(void)
{
	static char list[MEMBERS * 24];
	list[0] = '\0';
	for (int i = 0; i < MEMBERS; i++)
		sprintf(list + strlen(list), "%s127.0.0.1:%d", i ? "," : "", members[i].port);
	return list;
}

/* ---- the guardian ---- */

static void remove_folder(void)
{
	char command[300];
	snprintf(command, sizeof command, "rm -rf '%s' 2>/dev/null", folder);
	/* Who has just been killed may still have been writing. */
	for (int i = 0; i < 1000 && system(command) != 0; i++)
		a_moment();
}

int guarded(int (*body)(void *arg), void *arg)
{
	const char *tmp = getenv("TMPDIR");
	sigset_t set, before;
	int signo;
	snprintf(folder, sizeof folder, "%s/vez-cluster-XXXXXX", tmp ? tmp : "/tmp");
	CHECK(mkdtemp(folder) != NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	fflush(NULL);
	pid_t parent = getpid(), child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		sigprocmask(SIG_SETMASK, &before, NULL);
		int status = body(arg);
		fflush(NULL);
		_exit(status);
	}
	sigwait(&set, &signo);
	if (signo != SIGCHLD)
		kill(child, SIGKILL);
	int status = end_of(child);
	remove_folder();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return signo != SIGCHLD ? 128 + signo : status;
}
