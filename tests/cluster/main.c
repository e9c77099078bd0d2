/* SPDX-License-Identifier: MIT */
/*
 * cluster [WORD]: runs the tests whose names contain the word, each in a process of its own, against one server that it
 * starts first. The last line is "N passed, N failed".
 */
#include "lab.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include "test.h"

static const struct test *const all[] = { session_tests, mutex_tests, sem_tests, rwlock_tests, event_tests, fault_tests,
						monitor_tests, synchronizer_tests, barrier_tests, remote_tests,
					     tool_tests, part_tests };

static int body(void *arg)
{
	const struct test *t = arg;
	alarm(300);
	t->run();
	return 0;
}

static bool run(const struct test *t)
{
	int64_t began = -vez_deadline_remaining_ns(INT64_MAX - 1);
	int status = end_of(start_child(body, (void *)t));
	int64_t ms = (-vez_deadline_remaining_ns(INT64_MAX - 1) - began) / 1000000;
	printf("%s %s (%lld ms)%s\n", status == 0 ? "ok  " : "FAIL", t->name, (long long)ms,
	       status == 1000 + SIGALRM ? " hung" : "");
	fflush(stdout);
	return status == 0;
}

static int make_root(void *arg)
{
	char servers[64];
	(void)arg;
	snprintf(servers, sizeof servers, "127.0.0.1:%d", server_port);
	vez_cluster_options_t options = { servers, "/vez", NULL, 5000 };
	return vez_cluster_make_root(&options, SOON, NULL);
}

static int start_and_run(void *arg)
{
	const char *word = arg;
	int passed = 0, failed = 0;
	server_start();
	CHECK_EQ(end_of(start_child(make_root, NULL)), 0);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (const struct test *t = all[i]; t->name; t++)
			if (!word || strstr(t->name, word)) {
				bool ok = run(t);
				passed += ok;
				failed += !ok;
			}
	printf("%d passed, %d failed\n", passed, failed);
	fflush(stdout);
	return failed != 0 || passed == 0;
}

int main(int argc, char **argv)
{
	return guarded(start_and_run, argc > 1 ? argv[1] : NULL);
}
