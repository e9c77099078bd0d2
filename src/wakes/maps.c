/* SPDX-License-Identifier: MIT */
/*
 * Which file an address is in, by /proc/self/maps: the loader is not asked, as it has a lock that may be held by a
 * thread that waits for this one.
 */
#include <string.h>

#include "raw.h"
#include "table.h"

/* Reads digits up to another character, which it skips. */
static uint64_t hexadecimal(const char **text)
{
	uint64_t value = 0;
	for (char c; (c = *(*text)++) != '\0';) {
		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else
			return value;
	}
	(*text)--;
	return value;
}

/* One line: begin-end permissions offset device inode path. */
static int read_line(const char *line, uintptr_t address, struct place *place)
{
	uint64_t begin = hexadecimal(&line), end = hexadecimal(&line);
	if (address < begin || address >= end)
		return 0;
	const char *permissions_end = strchr(line, ' ');
	const char *path = strchr(line, '/');
	if (!permissions_end || !path)
		return 0;
	line = permissions_end + 1;
	place->offset = address - begin + hexadecimal(&line);
	strncpy(place->path, path, sizeof place->path - 1);
	place->path[sizeof place->path - 1] = '\0';
	return 1;
}

/* The lines, put together from what was read; what is too long for one is cut off. */
struct lines {
	char line[WAKES_PATH + 100];
	size_t length;
};

static int feed(struct lines *lines, const char *text, long size, uintptr_t address, struct place *place)
{
	for (long i = 0; i < size; i++) {
		if (text[i] != '\n') {
			if (lines->length < sizeof lines->line - 1)
				lines->line[lines->length++] = text[i];
			continue;
		}
		lines->line[lines->length] = '\0';
		lines->length = 0;
		if (read_line(lines->line, address, place))
			return 1;
	}
	return 0;
}

int wakes__find_place(uintptr_t address, struct place *place)
{
	char text[1024];
	struct lines lines = { .length = 0 };
	int found = 0;
	int fd = raw_open("/proc/self/maps", O_RDONLY, 0);
	if (fd < 0)
		return 0;
	for (long size; !found && (size = raw_read(fd, text, sizeof text)) > 0;)
		found = feed(&lines, text, size, address, place);
	raw_close(fd);
	return found;
}
