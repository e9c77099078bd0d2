/* SPDX-License-Identifier: MIT */
/*
 * vez-wakes: runs a program with libvez-wakes.so before its C library, and says what that has counted.
 *
 * The processes write into files of a folder: in TMPDIR (but where a link must lie in it, and the loader would take its
 * name for two), else in memory where there is /dev/shm. The program itself is not touched otherwise: its descriptors,
 * signals and exit status are as without.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf.h"
#include "raw.h"
#include "report.h"
#include "where.h"

#define OURS 125 /* exit status where vez-wakes itself fails */

static struct {
	bool json;
	size_t top, callers;
	double within; /* microseconds */
	FILE *output;
} options = { .top = 10, .within = 20 };

static const char usage[] =
	"usage: vez-wakes [--json] [--top N] [--callers N] [--within US] [--output FILE] PROGRAM [ARGUMENT...]\n"
	"Runs the program and counts, by place in it, who waits at conditions (pthread_cond_t, cnd_t,\n"
	"std::condition_variable), who wakes them, and which wakes were in vain: the thread waited again at once.\n"
	"\n"
	"  --json         the report as JSON\n"
	"  --top N        the N first places of each process, and the N first processes (10)\n"
	"  --callers N    tells places apart by who called the function, up to N deep (0 to 4; it takes longer)\n"
	"  --within US    at once is: within so many microseconds, and without having unlocked or signalled (20)\n"
	"  --output FILE  where the report goes (standard error)\n"
	"  --help, --version\n"
	"\n"
	"The exit status is the program's; 125 if vez-wakes itself fails, 126 or 127 if the program cannot be run.\n";

/* ---- options ---- */

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "vez-wakes: %s: %s\n", what, why);
	exit(OURS);
}

static double number(const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);
	if (*text == '\0' || *end != '\0' || !(value >= least && value <= most))
		fail(text, "not such a number");
	return value;
}

static void take_option(int option)
{
	switch (option) {
	case 'j':
		options.json = true;
		break;
	case 't':
		options.top = (size_t)number(optarg, 1, 1e9);
		break;
	case 'c':
		options.callers = (size_t)number(optarg, 0, WAKES_FRAMES - 1);
		break;
	case 'w':
		options.within = number(optarg, 0, 1e9);
		break;
	case 'o':
		options.output = fopen(optarg, "we");
		if (!options.output)
			fail(optarg, strerror(errno));
		break;
	case 'h':
		fputs(usage, stdout);
		exit(0);
	case 'V':
		puts("vez-wakes " VERSION);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(OURS);
	}
}

static char **take_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "top", required_argument, NULL, 't' },
		{ "callers", required_argument, NULL, 'c' },
		{ "within", required_argument, NULL, 'w' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option;
	options.output = stderr;
	while ((option = getopt_long(argc, argv, "+", names, NULL)) != -1)
		take_option(option);
	if (!argv[optind])
		take_option('?');
	return argv + optind;
}

/* ---- where things are ---- */

/* The object to preload: where it was installed relative to this program, or in the build's folder. */
static char *find_object(void)
{
	static const char *const places[] = { OBJECT, "../lib/vez/libvez-wakes.so" };
	char self[4000], path[8192];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (length <= 0)
		fail("/proc/self/exe", strerror(errno));
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		snprintf(path, sizeof path, "%s/%s", self, places[i]);
		char *found = realpath(path, NULL);
		if (found)
			return found;
	}
	fail("libvez-wakes.so", "not found");
}

/* What LD_PRELOAD would take for several. */
static bool is_list(const char *path)
{
	return strpbrk(path, ": ") != NULL;
}

static char *make_folder(const char *object)
{
	const char *parents[] = { getenv("TMPDIR"), "/dev/shm", "/tmp" };
	char path[4096];
	for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
		if (!parents[i] || parents[i][0] != '/' || strlen(parents[i]) > 500 ||
		    (is_list(parents[i]) && is_list(object)))
			continue;
		snprintf(path, sizeof path, "%s/vez-wakes.XXXXXX", parents[i]);
		if (mkdtemp(path))
			return strdup(path);
	}
	fail("a folder for what is counted", strerror(errno));
}

/* The object by a name that LD_PRELOAD can have: a link in the folder, if its own is none. Who is another user by then
 * must find it, too. A process that is started after the report finds none, and the loader says so. */
static char *name_to_preload(char *object, const char *folder)
{
	char *link;
	if (!is_list(object))
		return object;
	if (asprintf(&link, "%s/preloaded.so", folder) >= 0 && symlink(object, link) == 0 && chmod(folder, 0711) == 0)
		return link;
	int error = errno;
	images_remove(folder);
	fail(object, strerror(error));
}

/* The file that a shell would run; false: there is none. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *folder = getenv("PATH");
	if (strchr(name, '/'))
		return (size_t)snprintf(path, size, "%s", name) < size;
	for (; folder && *folder; folder += strspn(folder, ":")) {
		size_t length = strcspn(folder, ":");
		int written = snprintf(path, size, "%.*s/%s", (int)length, folder, name);
		if ((size_t)written < size && access(path, X_OK) == 0)
			return true;
		folder += length;
	}
	return false;
}

/* ---- what cannot be seen into ---- */

/* A script's interpreter, or what env is to find; false: it is none. */
static bool find_interpreter(const char *path, char *interpreter, size_t size)
{
	char line[256] = "", *rest = line + 2;
	FILE *file = fopen(path, "re");
	bool script = file && fgets(line, sizeof line, file) && !strncmp(line, "#!", 2);
	if (file)
		fclose(file);
	char *word = script ? strtok_r(rest, " \t\n", &rest) : NULL;
	if (word && !strcmp(word, "/usr/bin/env"))
		word = strtok_r(rest, " \t\n", &rest);
	return word && find_program(word, interpreter, size);
}

/* Why the program cannot be seen into; NULL: it can. */
static const char *blind(const char *name)
{
	char path[4096], interpreter[4096];
	if (!find_program(name, path, sizeof path))
		return NULL;
	enum elf_kind kind = elf_kind(find_interpreter(path, interpreter, sizeof interpreter) ? interpreter : path);
	return kind == ELF_STATIC ? "it is statically linked" :
		kind == ELF_FOREIGN ? "it is for another kind of processor" : NULL;
}

static bool has_image(const struct report *r)
{
	for (size_t i = 0; i < r->images.count; i++)
		if (r->images.list[i].table->pid == r->run->pid)
			return true;
	return false;
}

/* ---- the run ---- */

static void set_environment(const char *object, const char *folder)
{
	char within[32], callers[32], *list;
	const char *others = getenv("LD_PRELOAD");
	/* A sanitizer's library wants to be the first. */
	if (asprintf(&list, "%s%s%s", others ? others : "", others && *others ? ":" : "", object) < 0)
		fail(object, strerror(errno));
	snprintf(within, sizeof within, "%.0f", options.within * 1e3);
	setenv("LD_PRELOAD", list, 1);
	setenv(WAKES_FOLDER, folder, 1);
	snprintf(callers, sizeof callers, "%zu", options.callers);
	setenv(WAKES_WITHIN, within, 1);
	setenv(WAKES_CALLERS, callers, 1);
	free(list);
}

static pid_t child;

static void pass_on(int signal)
{
	if (child > 0)
		kill(child, signal);
}

/* What a terminal sends goes to both; the program decides. What is sent to this process alone is passed on. */
enum { SIGNALS = 4 };
static const int signals[SIGNALS] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

static void set_signals(struct sigaction old[SIGNALS])
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, pass = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	for (int i = 0; i < SIGNALS; i++) {
		sigaction(signals[i], NULL, &old[i]);
		if (old[i].sa_handler != SIG_IGN)
			sigaction(signals[i], i < 2 ? &ignore : &pass, NULL);
	}
}

static _Noreturn void become(char **command, const struct sigaction *old, const char *object, const char *folder,
	int errors)
{
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &old[i], NULL);
	set_environment(object, folder);
	execvp(command[0], command);
	int error = errno;
	if (write(errors, &error, sizeof error) != sizeof error)
		_exit(OURS);
	_exit(127);
}

/* The errno of a failed exec, 0 if it did not fail. */
static int start(char **command, const char *object, const char *folder)
{
	int ends[2], error = 0;
	struct sigaction old[SIGNALS];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return errno;
	set_signals(old);
	child = fork();
	if (child == 0)
		become(command, old, object, folder, ends[1]);
	if (child < 0)
		error = errno;
	close(ends[1]);
	if (child > 0 && raw_read(ends[0], &error, sizeof error) <= 0)
		error = 0;
	close(ends[0]);
	return error;
}

static double of_timeval(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static uint64_t wait_for(struct run *run, uint64_t began)
{
	int status;
	struct rusage used;
	while (wait4(child, &status, 0, &used) < 0 && errno == EINTR)
		;
	uint64_t end = raw_now();
	run->pid = child;
	child = 0;
	run->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	run->seconds = (double)(end - began) / 1e9;
	run->cpu = of_timeval(used.ru_utime) + of_timeval(used.ru_stime);
	run->switches = (double)(used.ru_nvcsw + used.ru_nivcsw);
	return end;
}

static void say(const struct run *run, const char *folder, uint64_t end)
{
	struct report report;
	report_make(&report, run, folder, end, options.top);
	images_remove(folder); /* it is mapped; who reads the report may stop that by a signal */
	const char *why = blind(run->command[0]);
	if (!has_image(&report))
		fprintf(stderr, "vez-wakes: cannot see into %s: %s\n", run->command[0],
			why ? why : "it did not load libvez-wakes.so");
	if (options.json)
		report_json(options.output, &report);
	else if (report.images.count)
		report_text(options.output, &report);
	fflush(options.output);
}

int main(int argc, char **argv)
{
	char **command = take_options(argc, argv);
	struct run run = { .command = command };
	char *object = find_object(), *folder = make_folder(object);
	object = name_to_preload(object, folder);
	uint64_t began = raw_now();
	int error = start(command, object, folder);
	uint64_t end = child > 0 ? wait_for(&run, began) : 0;
	if (error) {
		fprintf(stderr, "vez-wakes: %s: %s\n", command[0], strerror(error));
		images_remove(folder);
		return error == ENOENT ? 127 : 126;
	}
	say(&run, folder, end);
	return run.status;
}
