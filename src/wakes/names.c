/* SPDX-License-Identifier: MIT */
/*
 * Names of places in programs.
 *
 * A function's name is in the file's own table of symbols. Source files, lines and what was inlined are in debug
 * information, which addr2line (binutils) reads, also where it is in a file of its own; where there is no addr2line
 * there are no lines. libstdc++ makes C++ names readable, where it is there.
 */
#include "names.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf.h"

extern char **environ;

static char *readable(const char *name)
{
	static char *(*demangle)(const char *, char *, size_t *, int *);
	static bool looked;
	if (!looked) {
		void *library = dlopen("libstdc++.so.6", RTLD_LAZY);
		if (library)
			*(void **)&demangle = dlsym(library, "__cxa_demangle");
		looked = true;
	}
	char *better = demangle && !strncmp(name, "_Z", 2) ? demangle(name, NULL, NULL, NULL) : NULL;
	return better ? better : strdup(name);
}

/* ---- by the file itself; the address is that of the call, not the one behind it, to which it returns ---- */

static void find_symbols(struct name *names, size_t count, const char *path)
{
	struct elf elf;
	if (!elf_open(&elf, path))
		return;
	for (size_t i = 0; i < count; i++) {
		if (!names[i].path || strcmp(names[i].path, path))
			continue;
		if (!elf_address(&elf, names[i].offset - 1, &names[i].address))
			continue;
		const char *function = elf_function(&elf, names[i].address);
		if (function)
			names[i].function = readable(function);
	}
	elf_close(&elf);
}

/* ---- by addr2line ---- */

/* Starts it with so many addresses; its output, NULL if it cannot be started. */
static FILE *start(char *const *words, pid_t *pid)
{
	int ends[2];
	posix_spawn_file_actions_t actions;
	if (pipe2(ends, O_CLOEXEC) != 0)
		return NULL;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	int rc = posix_spawnp(pid, words[0], &actions, NULL, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (rc == 0)
		return fdopen(ends[0], "r");
	close(ends[0]);
	return NULL;
}

/* Of the C++ library, which is in the program where it is inline. A name may begin with what a template returns. */
static bool of_library(const char *function, const char *source)
{
	if (!strncmp(source, "/usr/include/", 13) || strstr(source, "/include/c++/"))
		return true;
	size_t before = strcspn(function, "<(");
	while (before > 0 && function[before - 1] != ' ')
		before--;
	return !strncmp(function + before, "std::", 5) || !strncmp(function + before, "__gnu_cxx::", 11);
}

/* "file:line (discriminator 2)", or with a ? for what is not known */
static bool clean_source(char *source)
{
	char *end = strstr(source, " (");
	if (end)
		*end = '\0';
	return !strchr(source, '?') && strcmp(source + strcspn(source, ":"), ":0");
}

static void replace(char **old, const char *new)
{
	free(*old);
	*old = strdup(new);
}

/* One function of those that are inlined into each other at an address, the innermost first. */
static void take_frame(struct name *name, const char *function, char *source, bool *settled)
{
	if (*settled || !clean_source(source))
		return;
	if (strcmp(function, "??"))
		replace(&name->function, function);
	replace(&name->source, source);
	*settled = !of_library(function, source);
}

static char *read_line(FILE *from, char **line, size_t *room)
{
	ssize_t length = getline(line, room, from);
	if (length <= 0)
		return NULL;
	if ((*line)[length - 1] == '\n')
		(*line)[length - 1] = '\0';
	return *line;
}

/* An address in a line of its own, then pairs of lines up to the next. */
static void read_answers(FILE *from, struct name **asked, size_t count)
{
	char *function = NULL, *source = NULL;
	size_t function_room = 0, source_room = 0, next = 0;
	bool settled = false;
	while (read_line(from, &function, &function_room)) {
		if (!strncmp(function, "0x", 2)) {
			next++;
			settled = false;
			continue;
		}
		if (!read_line(from, &source, &source_room))
			break;
		if (next >= 1 && next <= count)
			take_frame(asked[next - 1], function, source, &settled);
	}
	free(function);
	free(source);
}

static void find_lines(struct name *names, size_t count, const char *path)
{
	enum { FIXED = 7, ADDRESS = 20 };
	char *words[FIXED + count + 1], text[count + 1][ADDRESS];
	struct name *asked[count + 1];
	size_t n = 0;
	pid_t pid;
	const char *const fixed[FIXED] = { "addr2line", "-a", "-f", "-C", "-i", "-e", path };
	memcpy(words, fixed, sizeof fixed);
	for (size_t i = 0; i < count; i++) {
		if (!names[i].path || strcmp(names[i].path, path) || names[i].address == 0)
			continue;
		snprintf(text[n], ADDRESS, "0x%" PRIx64, names[i].address);
		words[FIXED + n] = text[n];
		asked[n++] = &names[i];
	}
	words[FIXED + n] = NULL;
	FILE *answers = n ? start(words, &pid) : NULL;
	if (!answers)
		return;
	read_answers(answers, asked, n);
	fclose(answers);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static bool seen_before(const struct name *names, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (names[j].path && !strcmp(names[j].path, names[i].path))
			return true;
	return false;
}

void names_find(struct name *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!names[i].path || seen_before(names, i))
			continue;
		find_symbols(names, count, names[i].path);
		find_lines(names, count, names[i].path);
	}
}
