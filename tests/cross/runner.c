/* SPDX-License-Identifier: MIT */
/*
 * Runs the tests of a program, each in a child of its own, one after another, and says how they went in Criterion's
 * words, as scripts/check reads them.
 *
 *	PROGRAM [--verbose] [--filter=SUITE/TEST]
 *
 * The filter is a pattern as of a shell. CROSS_SKIP names a file of tests that are not run, each line such a pattern and
 * why; "#" begins a comment. What was skipped is told, and counts neither as passed nor as failed.
 */
#include "criterion/criterion.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 101 }; /* exit status of a test that an assertion has ended */

static struct cross_test *first, **last = &first;
static volatile pid_t child;

struct figures {
	int tested, passing, failing, crashing;
};

void cross_enter(struct cross_test *test)
{
	*last = test;
	last = &test->next;
}

void cross_failed(const char *file, int line, const char *condition, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s:%d: assertion failed: %s:", file, line, condition);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(FAILED); /* the test may be in any of its threads */
}

/* ---- which ---- */

static bool matches(const struct cross_test *test, const char *pattern)
{
	char name[512];
	snprintf(name, sizeof name, "%s/%s", test->suite, test->name);
	return fnmatch(pattern, name, 0) == 0;
}

/* Why it is not to be run, or NULL. */
static const char *skipped(const struct cross_test *test)
{
	static char line[512];
	const char *path = getenv("CROSS_SKIP"), *why = NULL;
	FILE *list = path ? fopen(path, "r") : NULL;
	if (path && !list) {
		perror(path);
		exit(2);
	}
	while (list && !why && fgets(line, sizeof line, list)) {
		line[strcspn(line, "\n")] = '\0';
		size_t length = strcspn(line, " \t");
		if (line[0] == '#' || length == 0 || line[length] == '\0')
			continue;
		line[length] = '\0';
		if (matches(test, line))
			why = line + length + 1 + strspn(line + length + 1, " \t");
	}
	if (list)
		fclose(list);
	return why;
}

/* What the test says itself, and else its suite. */
static struct cross_extra extra_of(const struct cross_test *test)
{
	struct cross_extra extra = test->extra;
	for (const struct cross_test *suite = first; suite; suite = suite->next) {
		if (suite->name || strcmp(suite->suite, test->suite) != 0)
			continue;
		extra.init = extra.init ? extra.init : suite->extra.init;
		extra.fini = extra.fini ? extra.fini : suite->extra.fini;
		extra.timeout = extra.timeout > 0 ? extra.timeout : suite->extra.timeout;
	}
	return extra;
}

/* ---- one ---- */

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

_Noreturn static void run(const struct cross_test *test, const struct cross_extra *extra)
{
	setpgid(0, 0);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	if (extra->init)
		extra->init();
	test->run();
	if (extra->fini)
		extra->fini();
	exit(0);
}

/* With all that it has started. */
static void kill_child(int signo)
{
	if (child > 0) {
		kill(-child, SIGKILL);
		kill(child, SIGKILL);
	}
	if (signo != 0)
		_exit(128 + signo);
}

/* How it ended, as waitpid says it; -1: it took too long. */
static int result_of(pid_t pid, double limit)
{
	int status = 0;
	const struct timespec look = { 0, 2000000 };
	double end = seconds() + limit;
	for (;;) {
		pid_t ended = waitpid(pid, &status, WNOHANG);
		if (ended == pid)
			return status;
		if ((ended < 0 && errno != EINTR) || (limit > 0 && seconds() > end))
			break;
		nanosleep(&look, NULL);
	}
	kill_child(0);
	waitpid(pid, &status, 0);
	return -1;
}

static void judge(const struct cross_test *test, const struct cross_extra *extra, int status, double took,
		  struct figures *f)
{
	const char *word = "PASS";
	f->tested++;
	if (status == -1) {
		f->crashing++;
		printf("%s::%s: Timed out\n", test->suite, test->name);
		word = "FAIL";
	} else if (WIFSIGNALED(status) ? WTERMSIG(status) == extra->signal :
					 extra->signal == 0 && WEXITSTATUS(status) == extra->exit_code) {
		f->passing++;
	} else if (WIFSIGNALED(status)) {
		f->crashing++;
		printf("%s::%s: ended by signal %d\n", test->suite, test->name, WTERMSIG(status));
		word = "FAIL";
	} else {
		f->failing++;
		printf("%s::%s: exit status %d\n", test->suite, test->name, WEXITSTATUS(status));
		word = "FAIL";
	}
	printf("[%s] %s::%s: (%.2fs)\n", word, test->suite, test->name, took);
}

static void run_one(const struct cross_test *test, bool verbose, struct figures *f)
{
	struct cross_extra extra = extra_of(test);
	double began = seconds();
	if (verbose)
		printf("[RUN ] %s::%s\n", test->suite, test->name);
	fflush(stdout);
	child = fork();
	if (child < 0) {
		perror("fork");
		exit(2);
	}
	if (child == 0)
		run(test, &extra);
	int status = result_of(child, extra.timeout);
	kill(-child, SIGKILL); /* what it has left */
	child = 0;
	judge(test, &extra, status, seconds() - began, f);
}

int main(int argc, char **argv)
{
	struct figures f = { 0, 0, 0, 0 };
	const char *filter = "*";
	bool verbose = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--verbose") == 0) {
			verbose = true;
		} else if (strncmp(argv[i], "--filter=", 9) == 0) {
			filter = argv[i] + 9;
		} else {
			fprintf(stderr, "usage: %s [--verbose] [--filter=SUITE/TEST]\n", argv[0]);
			return 2;
		}
	}
	signal(SIGTERM, kill_child);
	signal(SIGINT, kill_child);
	for (const struct cross_test *test = first; test; test = test->next) {
		const char *why = test->name && matches(test, filter) ? skipped(test) : NULL;
		if (why)
			printf("skip: %s/%s: %s\n", test->suite, test->name, why);
		else if (test->name && matches(test, filter))
			run_one(test, verbose, &f);
	}
	printf("[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: %d \n", f.tested, f.passing, f.failing,
	       f.crashing);
	return f.passing != f.tested;
}
