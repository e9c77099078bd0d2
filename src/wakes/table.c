/* SPDX-License-Identifier: MIT */
/*
 * The table of this process: how it comes to be, and the sites in it.
 *
 * State: memory that is zeroed in a child of fork, and in it the address of the table, NOT_COUNTED if there is none.
 * Invariants
 *  T1 the table is mapped for as long as the process lives; so is that of its parent in a child, for a thread that
 *     comes back from a wait there.
 *  T2 nothing here takes a lock, allocates, sets errno, or can be cancelled.
 * Ordering: who finds the table's address (acquire) finds it filled in (release). A site's key is set first, by
 *  exchange; its file and offset are for the launcher alone, which reads them when the program has ended.
 * Progress: lock-free. Threads that come at the same time each make a table, and one is kept.
 */
#include "table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "raw.h"

#define NOT_COUNTED ((struct wakes_table *)1)
#define PROBES 64

static struct process *_Atomic process;
static char folder[WAKES_PATH - 64]; /* empty: not asked to count */
static uint64_t within;

/* ---- its birth ---- */

static char *put_text(char *to, const char *text)
{
	size_t length = strlen(text);
	memcpy(to, text, length + 1);
	return to + length;
}

static char *put_number(char *to, unsigned long number)
{
	char digits[24], *first = digits + sizeof digits - 1;
	*first = '\0';
	do
		*--first = (char)('0' + number % 10);
	while (number /= 10);
	return put_text(to, first);
}

static void read_environment(void)
{
	const char *name = getenv(WAKES_FOLDER), *time = getenv(WAKES_WITHIN);
	if (!name || strlen(name) >= sizeof folder)
		return;
	within = time ? strtoull(time, NULL, 10) : 20000;
	strcpy(folder, name);
}

/* A file that no process had before: an image that calls exec leaves its own to the launcher. */
static int new_file(char *path)
{
	int fd = -1;
	for (unsigned long n = 0; fd < 0 && n < 1000; n++) {
		char *end = put_number(put_text(put_text(path, folder), "/"), (unsigned long)getpid());
		put_number(put_text(end, "-"), n);
		fd = raw_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
		if (fd < 0 && access(path, F_OK) != 0)
			return -1;
	}
	return fd;
}

/* A file that would be longer than the process is allowed to write would end it by a signal. */
static bool may_be_long(void)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= sizeof(struct wakes_table);
}

static struct wakes_table *map_new_file(char *path)
{
	void *memory = MAP_FAILED;
	int fd = folder[0] != '\0' && may_be_long() ? new_file(path) : -1;
	if (fd < 0)
		return NOT_COUNTED;
	if (ftruncate(fd, sizeof(struct wakes_table)) == 0)
		memory = mmap(NULL, sizeof(struct wakes_table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	raw_close(fd);
	return memory == MAP_FAILED ? NOT_COUNTED : memory;
}

static struct wakes_table *make_table(char *path)
{
	struct wakes_table *t = map_new_file(path);
	if (t == NOT_COUNTED)
		return t;
	t->pid = getpid();
	t->parent = getppid();
	t->began = raw_now();
	if (readlink("/proc/self/exe", t->program, sizeof t->program - 1) < 0)
		t->program[0] = '\0';
	atomic_store_explicit(&t->magic, WAKES_MAGIC, memory_order_release);
	return t;
}

static struct process *make_process(void)
{
	struct process *old = NULL;
	struct process *new = mmap(NULL, sizeof *new, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new == MAP_FAILED)
		return NULL;
	madvise(new, sizeof *new, MADV_WIPEONFORK); /* where there is none, children are counted with their parent */
	read_environment();
	if (atomic_compare_exchange_strong_explicit(&process, &old, new, memory_order_acq_rel, memory_order_acquire))
		return new;
	munmap(new, sizeof *new);
	return old;
}

static struct wakes_table *begin(struct process *p)
{
	char path[WAKES_PATH];
	struct wakes_table *old = NULL, *new = make_table(path);
	if (atomic_compare_exchange_strong_explicit(&p->table, &old, new, memory_order_acq_rel, memory_order_acquire))
		return new;
	if (new != NOT_COUNTED) {
		munmap(new, sizeof *new);
		unlink(path);
	}
	return old;
}

static __attribute__((cold, noinline)) struct process *slow_process(struct process *p)
{
	int kept = errno;
	if (!environ)
		return NULL; /* the C library itself has not begun: it is too early to know */
	if (!p)
		p = make_process();
	struct wakes_table *t = p ? atomic_load_explicit(&p->table, memory_order_acquire) : NOT_COUNTED;
	if (!t)
		t = begin(p);
	errno = kept;
	return t == NOT_COUNTED ? NULL : p;
}

struct process *wakes__process(void)
{
	struct process *p = atomic_load_explicit(&process, memory_order_acquire);
	struct wakes_table *t = p ? atomic_load_explicit(&p->table, memory_order_acquire) : NULL;
	if (__builtin_expect((uintptr_t)t > 1, 1))
		return p;
	return t ? NULL : slow_process(p);
}

/* So that the launcher learns that it can see into this program, even if it never waits. */
static __attribute__((constructor)) void seen(void)
{
	if (wakes__process())
		wakes__trace_begin();
}

uint64_t wakes__within(void)
{
	return within;
}

/* ---- sites ---- */

/* Counts what finds no place. */
static struct wakes_site nowhere;

/* Its number in the table and 1 more; 0: there are too many. */
static uint32_t number_of(struct wakes_table *t, const char *path)
{
	uint32_t count = atomic_load_explicit(&t->files, memory_order_acquire);
	for (uint32_t i = 0; i < count && i < WAKES_FILES; i++)
		if (atomic_load_explicit(&t->file[i].ready, memory_order_acquire) && !strcmp(t->file[i].path, path))
			return i + 1;
	uint32_t mine = atomic_fetch_add_explicit(&t->files, 1, memory_order_acq_rel);
	if (mine >= WAKES_FILES)
		return 0;
	strcpy(t->file[mine].path, path);
	atomic_store_explicit(&t->file[mine].ready, 1, memory_order_release);
	return mine + 1;
}

static void identify_frame(struct wakes_table *t, struct wakes_frame *frame, uintptr_t address)
{
	struct place place;
	atomic_store_explicit(&frame->address, address, memory_order_relaxed);
	if (!wakes__find_place(address, &place))
		return;
	atomic_store_explicit(&frame->offset, place.offset, memory_order_relaxed);
	atomic_store_explicit(&frame->file, number_of(t, place.path), memory_order_relaxed);
}

static __attribute__((cold, noinline)) void identify(struct wakes_table *t, struct wakes_site *site,
	const struct trace *trace)
{
	atomic_store_explicit(&t->used, 1, memory_order_relaxed);
	for (size_t i = 0; i < WAKES_FRAMES && trace->frame[i]; i++)
		identify_frame(t, &site->frame[i], trace->frame[i]);
}

/* Without callers, it is one to one. */
static uint64_t key_of(const struct trace *trace, enum wakes_kind kind)
{
	uint64_t key = trace->frame[0];
	for (size_t i = 1; i < WAKES_FRAMES && trace->frame[i]; i++)
		key = key * UINT64_C(0x9e3779b97f4a7c15) + trace->frame[i];
	return key << 3 | kind;
}

struct wakes_site *wakes__site(struct wakes_table *t, const struct trace *trace, enum wakes_kind kind)
{
	uint64_t key = key_of(trace, kind);
	size_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	for (int i = 0; i < PROBES; i++, at++) {
		struct wakes_site *site = &t->sites[at % WAKES_SITES];
		uint64_t seen = atomic_load_explicit(&site->key, memory_order_relaxed);
		if (__builtin_expect(seen == key, 1))
			return site;
		if (seen != 0)
			continue;
		if (atomic_compare_exchange_strong_explicit(&site->key, &seen, key, memory_order_relaxed,
				memory_order_relaxed)) {
			identify(t, site, trace);
			return site;
		}
		if (seen == key)
			return site;
	}
	wakes__add(&t->lost);
	return &nowhere;
}
