/* SPDX-License-Identifier: MIT */
/*
 * What the launcher says about a run.
 */
#ifndef WAKES_REPORT_H
#define WAKES_REPORT_H

#include <stdio.h>

#include "images.h"
#include "names.h"
#include "price.h"

struct run {
	char *const *command;
	pid_t pid;
	int status; /* as a shell gives it */
	double seconds, cpu, switches;
};

/* One site in a report: what it was when it was read, as its process may still run. */
struct row {
	const struct image *image;
	enum wakes_kind kind;
	uint64_t calls, woken, in_vain;
	uint64_t missed; /* timeouts of who waits, wakes of nobody */
	uint64_t address[WAKES_FRAMES];
	struct name name[WAKES_FRAMES];
	size_t frames;
};

struct report {
	const struct run *run;
	struct images images;
	struct price price; /* zeros: nothing was in vain, or it could not be measured */
	struct row *rows;   /* by image, then wakers before waiters, most in vain first */
	size_t count;
	size_t top;
};

void report_make(struct report *report, const struct run *run, const char *folder, uint64_t end, size_t top);
void report_text(FILE *to, const struct report *report);
void report_json(FILE *to, const struct report *report);

/* ---- for both forms ---- */

static inline bool row_waits(const struct row *row)
{
	return row->kind == WAKES_WAIT || row->kind == WAKES_TIMED;
}

static inline double rate(uint64_t count, double seconds)
{
	return seconds > 0 ? (double)count / seconds : 0;
}

/* False: what wakes in vain take is too little to matter. */
bool report_matters(const struct report *report);

extern const char *const report_kinds[];

#endif
