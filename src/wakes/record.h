/* SPDX-License-Identifier: MIT */
/*
 * What a counted process writes down: one file per process image, mapped shared, in the folder that the launcher made.
 *
 * The file is there whatever becomes of the process: what _exit, a signal or exec ends has been counted until then,
 * and nothing has to run at its end. It is sparse: what is not used takes no memory.
 *
 * A site is a place in the program that calls one of the functions that are counted: a return address, and those of its
 * callers where they are asked for. A process image writes; the launcher reads when the program has ended.
 */
#ifndef WAKES_RECORD_H
#define WAKES_RECORD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define WAKES_MAGIC UINT64_C(0x31736b61772d7a76)
#define WAKES_SITES 4096
#define WAKES_FILES 256
#define WAKES_PATH 1024
#define WAKES_FRAMES 5

/* Names in the environment: the folder; how many nanoseconds after a return a wait was woken in vain; callers */
#define WAKES_FOLDER "VEZ_WAKES_FOLDER"
#define WAKES_WITHIN "VEZ_WAKES_WITHIN"
#define WAKES_CALLERS "VEZ_WAKES_CALLERS"

enum wakes_kind { WAKES_WAIT = 1, WAKES_TIMED, WAKES_SIGNAL, WAKES_BROADCAST };

/*
 * A return address; 0: there is none.
 *  file    index of the file that it is in, and 1 more; 0: in none that is known
 *  offset  where in that file
 */
struct wakes_frame {
	_Atomic uint64_t address;
	_Atomic uint64_t offset;
	_Atomic uint32_t file;
};

/*
 * A line of its own and its neighbour's, so that two sites do not share one.
 *  key    of return addresses and kind; 0: free. Set once, by exchange
 *  frame  the call, and its callers where those are asked for. Set once, after key
 */
struct wakes_site {
	_Alignas(128) _Atomic uint64_t key;
	_Atomic uint64_t calls;
	_Atomic uint64_t woken;    /* wait: returns that were no timeouts. signal, broadcast: threads that it woke */
	_Atomic uint64_t in_vain;  /* those of them that waited again at once */
	_Atomic uint64_t timeouts; /* wait: returns that were */
	_Atomic uint64_t nobody;   /* signal, broadcast: calls while nobody waited */
	_Atomic uint64_t last;     /* when it was last counted here */
	_Alignas(128) struct wakes_frame frame[WAKES_FRAMES];
};

struct wakes_file {
	_Atomic uint32_t ready;
	char path[WAKES_PATH];
};

struct wakes_table {
	_Atomic uint64_t magic; /* set last */
	int64_t pid, parent;
	uint64_t began; /* CLOCK_MONOTONIC */
	_Atomic uint32_t files;
	_Atomic uint32_t used; /* not 0: there are sites */
	_Atomic uint64_t lost; /* calls that found no place in the table */
	char program[WAKES_PATH];
	struct wakes_site sites[WAKES_SITES];
	struct wakes_file file[WAKES_FILES];
};

/* How many sites to look at. Looking at those of a table that has none would give memory to each. */
static inline size_t wakes_sites(const struct wakes_table *table)
{
	return table->used ? WAKES_SITES : 0;
}

static inline enum wakes_kind wakes_kind(uint64_t key)
{
	return (enum wakes_kind)(key & 7);
}

#endif
