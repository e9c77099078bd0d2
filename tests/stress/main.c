/* SPDX-License-Identifier: MIT */
/*
 * The runner: each test in a process of its own.
 *
 *	--list  --only=PREFIX  --rounds=N  --seconds=S  --seed=S  --patience=S (of the watchdog)
 */
#include "stress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct options opt = { 100000, 1, 0 };

static const struct test *const groups[] = { watch_tests, race_tests, lifetime_tests, order_tests, signal_tests,
					     load_tests, mutex_tests, rwlock_tests, token_tests, barrier_tests,
					     latch_tests, event_tests, queue_tests, sched_tests, group_tests,
					     once_tests, select_tests, async_tests, alarm_tests, call_tests, constraint_tests,
					     inspect_tests };
#define GROUPS (sizeof groups / sizeof groups[0])

#if defined(UNDER_TSAN)
#define SLOWER 5
#elif defined(UNDER_ASAN)
#define SLOWER 3
#else
#define SLOWER 1
#endif

unsigned long rounds_of(const struct test *t)
{
	unsigned long rounds = opt.rounds / SLOWER / (t->share ? t->share : 1);
	return rounds > 10 ? rounds : 10;
}

void failed(const char *file, int line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("\n%s:%d: ", file, line);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	_exit(1);
}

void remark(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf(" (");
	vprintf(format, args);
	printf(")");
	va_end(args);
	fflush(stdout);
}

static void name_of(const struct test *t, char *name, size_t size)
{
	if (t->kind)
		snprintf(name, size, "%s-%s-%u", t->name, t->kind->name, t->n);
	else
		snprintf(name, size, "%s", t->name);
}

static bool run(const struct test *t, const char *name)
{
	int64_t start = now_ns();
	printf("%-40s", name);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit no_core = { 0, 0 };
		setrlimit(RLIMIT_CORE, &no_core);
		prctl(PR_SET_TIMERSLACK, 1UL); /* deadlines are hit to the microsecond */
		rnd_seed(0);
		watch_start();
		t->run(t);
		watch_stop();
		exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	double took = (double)(now_ns() - start) / 1e9;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		printf(" %6.2f s\n", took);
	else if (WIFSIGNALED(status))
		printf(" %6.2f s FAILED: %s\n", took, strsignal(WTERMSIG(status)));
	else
		printf(" %6.2f s FAILED: exit %d\n", took, WEXITSTATUS(status));
	return status == 0;
}

static bool option(const char *arg, const char *name, const char **value)
{
	size_t length = strlen(name);
	if (strncmp(arg, name, length) != 0)
		return false;
	*value = arg + length;
	return true;
}

static bool parse(int argc, char **argv, const char **only, bool *list)
{
	const char *value;
	for (int i = 1; i < argc; i++) {
		if (option(argv[i], "--only=", &value))
			*only = value;
		else if (option(argv[i], "--rounds=", &value))
			opt.rounds = strtoul(value, NULL, 10);
		else if (option(argv[i], "--seconds=", &value))
			opt.seconds = (unsigned)strtoul(value, NULL, 10);
		else if (option(argv[i], "--seed=", &value))
			opt.seed = strtoull(value, NULL, 0);
		else if (option(argv[i], "--patience=", &value))
			watch_patience = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(argv[i], "--list") == 0)
			*list = true;
		else
			return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	const char *only = "";
	bool list = false;
	unsigned passed = 0, bad = 0;
	opt.seed = (uint64_t)now_ns();
	if (!parse(argc, argv, &only, &list)) {
		fprintf(stderr, "usage: %s [--list] [--only=PREFIX] [--rounds=N] [--seconds=S] [--seed=S] [--patience=S]\n",
			argv[0]);
		return 2;
	}
	if (!list)
		printf("seed %llu, rounds %lu\n", (unsigned long long)opt.seed, opt.rounds);
	for (size_t g = 0; g < GROUPS; g++)
		for (const struct test *t = groups[g]; t->name; t++) {
			char name[64];
			name_of(t, name, sizeof name);
			if (strncmp(name, only, strlen(only)) != 0)
				continue;
			if (list)
				printf("%s\n", name);
			else if (run(t, name))
				passed++;
			else
				bad++;
		}
	if (list)
		return 0;
	printf("%u passed, %u failed\n", passed, bad);
	return bad > 0 || passed == 0;
}
