/* SPDX-License-Identifier: MIT */
/* The command line. "Seen to fail" names a change of the tool with which a test did. */
#include "lab.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "test.h"

/* The tool lies beside the folder of this program. */
static const char *tool(void)
{
	static char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 40);
	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 2; i++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/bin/vez-cluster");
	return path;
}

/* Runs it at this port with these words, which the shell takes apart. */
static pid_t start_tool(int port, const char *words)
{
	char line[1024];
	snprintf(line, sizeof line, "exec '%s' -s 127.0.0.1:%d %s", tool(), port, words);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(99);
	}
	return child;
}

static int run_tool(const char *words)
{
	return end_of(start_tool(server_port, words));
}

static void usage(void)
{
	CHECK_EQ(run_tool("2>/dev/null"), 2);
	CHECK_EQ(run_tool("lock a 2>/dev/null"), 2);
	CHECK_EQ(run_tool("-n 0 sem a -- true 2>/dev/null"), 2);
	CHECK_EQ(run_tool("-k x sem a -- true 2>/dev/null"), 2);
	CHECK_EQ(run_tool("loock a -- true 2>/dev/null"), 2);
	CHECK_EQ(run_tool("lock a/b -- true 2>/dev/null"), 74);
	CHECK_EQ(run_tool("-r /nobody lock a -- true 2>/dev/null"), 74);
	CHECK_EQ(run_tool("-p -r /tool/deep lock a -- true"), 0);
	CHECK_EQ(run_tool("-k 2 sem a -- true 2>/dev/null"), 74);
	CHECK_EQ(run_tool("-o readers read a -- true 2>/dev/null"), 2);
}

static void passes_the_exit_status(void)
{
	CHECK_EQ(run_tool("lock t1 -- sh -c 'exit 42'"), 42);
	CHECK_EQ(run_tool("lock t1 -- sh -c 'kill -9 $$'"), 128 + 9);
	CHECK_EQ(run_tool("lock t1 -- /no/such/command"), 127);
	CHECK_EQ(run_tool("-n 2 -k 2 sem t2 -- true"), 0);
	CHECK_EQ(run_tool("read t3 -- true"), 0);
	CHECK_EQ(run_tool("write t3 -- sh -c 'test \"$VEZ_CLUSTER_FENCE\" -gt 0'"), 0);
}

/* Seen to fail: a policy that is not passed on. */
static void policies(void)
{
	CHECK_EQ(run_tool("-o hoare write t10 -- true"), 0);
	CHECK_EQ(run_tool("-o hoare read t10 -- true"), 0);
	CHECK_EQ(run_tool("read t10 -- true 2>/dev/null"), 74);
	CHECK_EQ(run_tool("-o fifo write t11 -- true"), 0);
	CHECK_EQ(run_tool("read t11 -- true"), 0);
	CHECK_EQ(run_tool("-o hoare read t11 -- true 2>/dev/null"), 74);
}

/* Eight add one to a number in a file. Seen to fail: the command is run without waiting. */
static void one_at_a_time(void)
{
	char words[300], text[8] = "";
	char path[] = "/tmp/vez-cluster-XXXXXX";
	pid_t child[8];
	int fd = mkstemp(path);
	CHECK(write(fd, "0\n", 2) == 2);
	snprintf(words, sizeof words, "lock t4 -- sh -c 'read n <%s; echo $((n + 1)) >%s'", path, path);
	for (int i = 0; i < 8; i++)
		child[i] = start_tool(server_port, words);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(end_of(child[i]), 0);
	CHECK(pread(fd, text, sizeof text - 1, 0) > 0);
	unlink(path);
	CHECK_EQ(atoi(text), 8);
}

/* Not had in time; called off by a signal. Seen to fail: a deadline that is for the session alone. */
static void not_had(void)
{
	vez_cluster_t *c = open_session(5000);
	vez_cluster_mutex_t *m;
	vez_cluster_hold_t h;
	CHECK_EQ(vez_cluster_mutex_open(&m, c, "t5", SOON, NULL), 0);
	CHECK_EQ(vez_cluster_mutex_lock(m, &h, SOON, NULL), 0);
	CHECK_EQ(run_tool("-w 100 lock t5 -- true"), 1);
	pid_t child = start_tool(server_port, "lock t5 -- true");
	UNTIL(in_line("mutex", "t5") == 2);
	kill(child, SIGTERM);
	CHECK_EQ(end_of(child), 128 + SIGTERM);
	UNTIL(in_line("mutex", "t5") == 1);
	CHECK_EQ(vez_cluster_release(&h), 0);
	CHECK_EQ(vez_cluster_mutex_close(m) | vez_cluster_close(c), 0);
}

/* The command is ended when the hold is lost, and when the tool is killed. Seen to fail: a token without a hook; a
 * command that is not told of its parent's death. */
static void ends_with_the_hold(void)
{
	char words[300];
	char path[] = "/tmp/vez-cluster-XXXXXX";
	struct proxy *p = proxy_start();
	int fd = mkstemp(path);
	struct stat stat;
	snprintf(words, sizeof words, "-t 500 lock t6 -- sh -c 'echo >>%s; exec sleep 1000' 2>/dev/null", path);
	pid_t child = start_tool(p->port, words);
	UNTIL(fstat(fd, &stat) == 0 && stat.st_size == 1);
	p->shut = 1;
	CHECK_EQ(end_of(child), 75);
	p->shut = 0;
	snprintf(words, sizeof words, "-t 500 lock t6 -- sh -c 'trap \"echo >>%s; exit\" TERM; echo >>%s; while :; do "
		 "sleep 0.1; done'", path, path);
	child = start_tool(server_port, words);
	UNTIL(fstat(fd, &stat) == 0 && stat.st_size == 2);
	kill(child, SIGKILL);
	CHECK_EQ(end_of(child), 1000 + SIGKILL);
	UNTIL(fstat(fd, &stat) == 0 && stat.st_size == 3);
	close(fd);
	unlink(path);
}

/* Seen to fail: a command that is run at once. */
static void waits_for_others(void)
{
	pid_t child = start_tool(server_port, "-n 2 barrier t7 -- sh -c 'exit 3'");
	UNTIL(in_line("barrier", "t7") == 3);
	CHECK_EQ(run_tool("-n 2 barrier t7"), 0);
	CHECK_EQ(end_of(child), 3);
	UNTIL(in_line("barrier", "t7") == 2);
	child = start_tool(server_port, "-n 3 latch t8 -- sh -c 'exit 7'");
	UNTIL(in_line("latch", "t8") == 2 && server_figure("zk_watch_count") == 1);
	CHECK_EQ(run_tool("-n 3 -k 2 count t8"), 0);
	CHECK_EQ(run_tool("-n 3 -w 100 latch t8 -- false"), 1);
	CHECK_EQ(run_tool("-n 3 count t8 -- sh -c 'exit 4'"), 4);
	CHECK_EQ(end_of(child), 7);
	CHECK_EQ(run_tool("-n 3 latch t8"), 0);
}

/* One that gives up breaks the barrier. */
static void breaks_the_barrier(void)
{
	pid_t child = start_tool(server_port, "-n 3 barrier t9 -- true 2>/dev/null");
	UNTIL(in_line("barrier", "t9") == 3);
	pid_t other = start_tool(server_port, "-n 3 barrier t9 -- true 2>/dev/null");
	UNTIL(in_line("barrier", "t9") == 4);
	kill(child, SIGTERM);
	CHECK_EQ(end_of(child), 128 + SIGTERM);
	CHECK_EQ(end_of(other), 75);
	CHECK_EQ(run_tool("-n 3 barrier t9 2>/dev/null"), 75);
}

const struct test tool_tests[] = {
	{ "tool: usage", usage },
	{ "tool: passes the exit status", passes_the_exit_status },
	{ "tool: policies", policies },
	{ "tool: one at a time", one_at_a_time },
	{ "tool: not had", not_had },
	{ "tool: ends with the hold", ends_with_the_hold },
	{ "tool: waits for others", waits_for_others },
	{ "tool: breaks the barrier", breaks_the_barrier },
	{ NULL, NULL },
};
