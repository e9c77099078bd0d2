/* SPDX-License-Identifier: MIT */
/* What a person reads of a failed schedule. */
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MOST 32

bool tracing;

static struct {
	const char *from;
	size_t size;
	const char *name;
} names[NAMES_MOST];
static unsigned names_used;

void names_reset(void)
{
	names_used = 0;
}

void x_name(const void *object, size_t size, const char *name)
{
	if (names_used < NAMES_MOST) {
		names[names_used].from = object;
		names[names_used].size = size;
		names[names_used++].name = name;
	}
}

void name_memory(const void *p, char *text, size_t size)
{
	uintptr_t on = (uintptr_t)p - (uintptr_t)stacks;
	for (unsigned i = 0; i < names_used; i++) {
		uintptr_t offset = (uintptr_t)p - (uintptr_t)names[i].from;
		if (offset < names[i].size) {
			if (offset)
				snprintf(text, size, "%s+%zu", names[i].name, (size_t)offset);
			else
				snprintf(text, size, "%s", names[i].name);
			return;
		}
	}
	if (on < sizeof stacks)
		snprintf(text, size, "T%u's stack -%zu", (unsigned)(on / STACK_SIZE),
			 (size_t)(STACK_SIZE - on % STACK_SIZE));
	else if (p)
		snprintf(text, size, "%p", p);
	else
		text[0] = 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

void trace(const char *op, const struct x__site *site, const void *p, unsigned size, const char *format, ...)
{
	char where[100] = "", memory[100], what[200];
	va_list ap;
	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	(void)size;
	name_memory(p, memory, sizeof memory);
	if (site && site->line)
		snprintf(where, sizeof where, "%s:%d %s", base_name(site->file), site->line, site->function);
	printf("  %4u  T%u  %-34s %-10s %-22s %s%s%s%s\n", step, SELF, where, op, memory, what, site ? " (" : "",
	       site ? site->order_name : "", site ? ")" : "");
}

/* The source line of an address, as addr2line of binutils has it. */
static bool ask_line(uintptr_t pc, char *text, size_t size)
{
	char command[200], self_path[300];
	ssize_t n = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
	if (n < 0)
		return false;
	self_path[n] = '\0';
	snprintf(command, sizeof command, "addr2line -spfi -e '%.120s' %#jx 2>/dev/null", self_path, (uintmax_t)pc - 1);
	FILE *f = popen(command, "r");
	bool ok = f && fgets(text, (int)size, f);
	if (f)
		pclose(f);
	if (ok)
		text[strcspn(text, "\n")] = '\0';
	return ok;
}

void place_print(struct place at, char *text, size_t size)
{
	text[0] = '\0';
	if (at.site)
		snprintf(text, size, "%s at %s:%d (%s, %s)", at.site->function, base_name(at.site->file), at.site->line,
			 at.site->what, at.site->order_name);
	else if (at.pc && !ask_line(at.pc, text, size))
		snprintf(text, size, "%#jx", (uintmax_t)at.pc);
}
