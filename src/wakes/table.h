/* SPDX-License-Identifier: MIT */
/*
 * The table of this process, in which calls are counted by site.
 */
#ifndef WAKES_TABLE_H
#define WAKES_TABLE_H

#include "conds.h"
#include "record.h"

/* What fork leaves behind: a child reads zeros here, and begins a table of its own. */
struct process {
	struct wakes_table *_Atomic table;
	struct cond_slot conds[COND_SLOTS];
};

/* NULL: this process is not counted. */
struct process *wakes__process(void);

/* How long after its return a thread that waits again was woken in vain. */
uint64_t wakes__within(void);

/* A call, and its callers as far as they are asked for; then zeros. */
struct trace {
	uintptr_t frame[WAKES_FRAMES];
};

struct wakes_site *wakes__site(struct wakes_table *table, const struct trace *trace, enum wakes_kind kind);

/* trace.c */
void wakes__trace_begin(void);
void wakes__trace(struct trace *trace, uintptr_t call);

/* maps.c: the file that the address is in and where in it; false: none. */
struct place {
	char path[WAKES_PATH];
	uint64_t offset;
};
int wakes__find_place(uintptr_t address, struct place *place);

static inline void wakes__add(_Atomic uint64_t *counter)
{
	/* Relaxed: it is read when the program has ended. */
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

#endif
