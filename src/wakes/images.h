/* SPDX-License-Identifier: MIT */
/*
 * What the process images of a run have written down.
 */
#ifndef WAKES_IMAGES_H
#define WAKES_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record.h"

struct image {
	const struct wakes_table *table;
	double seconds;
	uint64_t waits, wakes, timeouts, in_vain, signals, broadcasts, nobody;
};

struct images {
	struct image *list; /* who wakes most in vain first */
	size_t count;
	struct image sum; /* no table; seconds: those of the run */
};

/* The folder's; MAIN ended at that time (CLOCK_MONOTONIC). */
void images_read(struct images *images, const char *folder, pid_t main, uint64_t end);

/* Removes the folder and what is in it. */
void images_remove(const char *folder);

#endif
