/* SPDX-License-Identifier: MIT */
/*
 * What a place in a program's file is called.
 */
#ifndef WAKES_NAMES_H
#define WAKES_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* PATH and OFFSET are the caller's; the others are found, or NULL, and live for as long as this process. */
struct name {
	const char *path;
	uint64_t offset;
	uint64_t address; /* in the file, loaded at 0; 0: not known */
	char *function;
	char *source; /* FILE:LINE */
};

void names_find(struct name *names, size_t count);

#endif
