/* SPDX-License-Identifier: MIT */
/* The explorer's command line: README.md says what it prints. */
#include "engine.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Schedules of a scenario, where the whole is to take well under a minute. */
#define QUICK_MOST 2000

/* Preemptions. What is too big for so many besides a fault has them without. */
#define USUAL 2

extern const struct x_scenario *__start_x_scenarios[];
extern const struct x_scenario *__stop_x_scenarios[];

static struct {
	const char *pattern;
	const char *replay;
	long preemptions, faults, stale, schedules, jobs;
	uint64_t seed;
	bool list, quick, stop;
} options = { "*", NULL, -1, -1, -1, 0, 1, 0, false, false, false };

/* Shared by all jobs. */
struct progress {
	unsigned next;
	int passed, failed;
};

static bool number_option(const char *arg, const char *name, long *value)
{
	size_t n = strlen(name);
	if (strncmp(arg, name, n) != 0)
		return false;
	*value = strtol(arg + n, NULL, 0);
	return true;
}

static bool parse(const char *arg)
{
	long seed = 0;
	if (strcmp(arg, "--list") == 0)
		return (options.list = true);
	if (strcmp(arg, "--quick") == 0)
		return (options.quick = true);
	if (strcmp(arg, "--stop") == 0)
		return (options.stop = true);
	if (strncmp(arg, "--scenario=", 11) == 0)
		return (options.pattern = arg + 11);
	if (strncmp(arg, "--replay=", 9) == 0)
		return (options.replay = arg + 9);
	if (number_option(arg, "--seed=", &seed)) {
		options.seed = seed ? (uint64_t)seed : 1;
		return true;
	}
	return number_option(arg, "--preemptions=", &options.preemptions) ||
	       number_option(arg, "--faults=", &options.faults) || number_option(arg, "--stale=", &options.stale) ||
	       number_option(arg, "--schedules=", &options.schedules) || number_option(arg, "--jobs=", &options.jobs);
}

static unsigned bound_of(const struct x_scenario *s)
{
	unsigned bound = s->preemptions ? s->preemptions : s->thread[2] ? USUAL : USUAL + 1;
	if (options.preemptions >= 0)
		return (unsigned)options.preemptions;
	return options.quick && bound > 2 ? 2 : bound;
}

static void explain(const char *name)
{
	static char replay[8192];
	choices_print(replay, sizeof replay);
	printf("\n%s\nschedule of %s:\n", "------------------------------------------------------------", name);
	struct failure first = failure;
	tracing = true;
	if (!choices_parse(replay) || choices_run() != FAILED || strcmp(first.text, failure.text) != 0)
		printf("  (the replay differs: %s: %s)\n", failure.oracle, failure.text);
	tracing = false;
	printf("%s: %s: %s\n", name, first.oracle, first.text);
	for (int i = 0; i < 2; i++) {
		char text[300];
		place_print(first.at[i], text, sizeof text);
		if (*text)
			printf("  %s: %s\n", i == 0 ? "first" : "second", text);
	}
	printf("  --replay=%s:%s\n\n", name, replay);
}

static bool report(const struct x_scenario *s, const struct search *r, const char *how)
{
	char bound[60];
	if (r->seed)
		snprintf(bound, sizeof bound, "random, seed %ju", (uintmax_t)r->seed);
	else
		snprintf(bound, sizeof bound, "preemptions %u, %s %u %s", r->preemptions,
			 r->stale ? "stale reads" : "faults", r->stale ? r->stale : r->faults,
			 r->exhausted ? "exhausted" : r->failed ? "failed" : "not exhausted");
	printf("%-6s %-30s %9lu schedules %9lu cut  %-46s %7.2f s %9.0f/s\n", how, s->name, r->ran, r->pruned, bound,
	       r->seconds, (double)(r->ran + r->pruned) / (r->seconds > 0 ? r->seconds : 1e-9));
	fflush(stdout);
	return !r->failed;
}

/* A scenario of a fault that is known and open does not fail the run. */
static bool explore_open(const struct x_scenario *s, struct search *r)
{
	report(s, r, r->failed ? "open" : "ok");
	printf("       %s: %s\n", r->failed ? failure.oracle : "passes now: remove .open", s->open);
	return true;
}

/* Where loads may return what was overwritten: without faults, which would be too much for most. */
static bool explore_stale(const struct x_scenario *s)
{
	struct search r = { .preemptions = bound_of(s), .stale = s->stale };
	scenario = s;
	if (options.stale >= 0)
		r.stale = (unsigned)options.stale;
	if (options.preemptions < 0 && !s->preemptions && r.preemptions > USUAL)
		r.preemptions = USUAL;
	if (options.faults >= 0)
		r.faults = (unsigned)options.faults;
	r.most = options.schedules ? (unsigned long)options.schedules : options.quick ? QUICK_MOST : 0;
	search_exhaustive(&r);
	return report(s, &r, r.failed ? "FAIL" : "ok");
}

static bool explore_all_ways(const struct x_scenario *s)
{
	struct search r = { .preemptions = bound_of(s), .faults = s->faults ? s->faults : 1 };
	scenario = s;
	outcomes = 0;
	if (options.faults >= 0)
		r.faults = (unsigned)options.faults;
	r.most = options.schedules ? (unsigned long)options.schedules : options.quick ? QUICK_MOST : 0;
	r.seed = options.seed;
	if (r.seed && !r.most)
		r.most = 100000;
	if (r.seed)
		search_random(&r);
	else
		search_exhaustive(&r);
	if (s->open)
		return explore_open(s, &r);
	bool ok = report(s, &r, r.failed ? "FAIL" : "ok");
	if (ok && r.preemptions < USUAL && !r.seed && options.preemptions < 0) {
		struct search calm = { .preemptions = USUAL, .most = r.most };
		search_exhaustive(&calm);
		ok = report(s, &calm, calm.failed ? "FAIL" : "ok");
	}
	if (ok && s->random && !options.seed) {
		struct search more = { .faults = r.faults, .seed = 1, .most = options.quick ? QUICK_MOST : s->random };
		search_random(&more);
		ok = report(s, &more, more.failed ? "FAIL" : "ok");
	}
	if (ok && s->stale && options.stale < 0 && !options.seed)
		ok = explore_stale(s);
	return ok;
}

/* Whether all that are allowed were reached: with bounds of their own, or schedules that others choose, they need not
 * be. */
static bool reached(const struct x_scenario *s)
{
	bool usual = options.preemptions < 0 && options.faults < 0 && options.stale < 0 && !options.schedules;
	if (!usual || options.seed || outcomes == s->outcomes)
		return true;
	printf("FAIL   %s: outcomes %#x were reached, not %#x\n", s->name, outcomes, s->outcomes);
	return false;
}

static bool explore(const struct x_scenario *s)
{
	bool ok = options.stale > 0 ? explore_stale(s) : explore_all_ways(s);
	if (!ok)
		explain(s->name);
	return ok && reached(s);
}

static int replay(const char *text)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	for (const struct x_scenario **s = __start_x_scenarios; s < __stop_x_scenarios; s++) {
		if (strlen((*s)->name) != n || strncmp((*s)->name, text, n) != 0)
			continue;
		scenario = *s;
		tracing = true;
		if (!choices_parse(colon ? colon + 1 : "")) {
			fprintf(stderr, "not a replay string: %s\n", text);
			return 2;
		}
		bool ok = choices_run() == PASSED;
		tracing = false;
		if (!ok)
			explain((*s)->name);
		printf("%d passed, %d failed\n", ok, !ok);
		return !ok;
	}
	fprintf(stderr, "no such scenario: %s\n", text);
	return 2;
}

/* The linker collects them in any order. */
static int by_place(const void *a, const void *b)
{
	const struct x_scenario *x = *(const struct x_scenario *const *)a, *y = *(const struct x_scenario *const *)b;
	int files = strcmp(x->file, y->file);
	return files ? files : x->line - y->line;
}

/* Moves those that match to the front, and puts them in order; returns how many. */
static unsigned choose_scenarios(void)
{
	const struct x_scenario **all = __start_x_scenarios;
	unsigned n = 0;
	for (const struct x_scenario **s = all; s < __stop_x_scenarios; s++)
		if (fnmatch(options.pattern, (*s)->name, 0) == 0) {
			const struct x_scenario *other = all[n];
			all[n++] = *s;
			*s = other;
		}
	qsort(all, n, sizeof *all, by_place);
	return n;
}

static void work(unsigned n, struct progress *progress)
{
	for (unsigned i; (i = __atomic_fetch_add(&progress->next, 1, __ATOMIC_RELAXED)) < n;) {
		if (options.stop && __atomic_load_n(&progress->failed, __ATOMIC_RELAXED))
			break;
		__atomic_fetch_add(explore(__start_x_scenarios[i]) ? &progress->passed : &progress->failed, 1,
				   __ATOMIC_RELAXED);
		fflush(stdout);
	}
}

/* Each job takes the next scenario. One that dies fails the run. What the library does on fork is no
 * schedule: _Fork. */
static struct progress explore_all(unsigned n)
{
	struct progress *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	if (shared == MAP_FAILED)
		abort();
	if (options.jobs <= 1) {
		work(n, shared);
		return *shared;
	}
	for (long j = 0; j < options.jobs; j++)
		if (_Fork() == 0) {
			work(n, shared);
			_exit(0);
		}
	while (wait(&status) > 0)
		if (status != 0)
			shared->failed++;
	return *shared;
}

static int run(int argc, char **argv)
{
	static char output[1 << 16];
	for (int i = 1; i < argc; i++)
		if (!parse(argv[i])) {
			fprintf(stderr,
				"usage: %s [--list] [--scenario=PATTERN] [--preemptions=N] [--faults=N]\n"
				"       [--stale=N] [--schedules=M] [--seed=S] [--quick] [--stop] [--jobs=N] [--replay=STRING]\n",
				argv[0]);
			return 2;
		}
	/* Whole lines, whichever job prints them. */
	setvbuf(stdout, output, _IOFBF, sizeof output);
	if (options.replay)
		return replay(options.replay);
	unsigned n = choose_scenarios();
	if (options.list) {
		for (unsigned i = 0; i < n; i++)
			printf("%s\n", __start_x_scenarios[i]->name);
		return 0;
	}
	struct progress done = explore_all(n);
	printf("%d passed, %d failed\n", done.passed, done.failed);
	return done.failed > 0 || done.passed == 0;
}

int main(int argc, char **argv)
{
	int rc = run(argc, argv);
	fflush(stdout);
	/* What the library does when a process ends is no schedule. */
	_exit(rc);
}
