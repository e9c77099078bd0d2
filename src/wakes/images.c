/* SPDX-License-Identifier: MIT */
/*
 * Reads the files that process images leave. Processes that still run may be writing to theirs: what is read is what
 * they have counted until now.
 */
#include "images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct wakes_table *map(int folder, const char *name)
{
	struct stat status;
	const struct wakes_table *t = MAP_FAILED;
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && status.st_size == (off_t)sizeof *t)
		t = mmap(NULL, sizeof *t, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (t == MAP_FAILED)
		return NULL;
	if (atomic_load(&t->magic) == WAKES_MAGIC)
		return t;
	munmap((void *)(uintptr_t)t, sizeof *t);
	return NULL;
}

static void add_site(struct image *image, const struct wakes_site *site)
{
	switch (wakes_kind(site->key)) {
	case WAKES_WAIT:
	case WAKES_TIMED:
		image->waits += site->calls;
		image->wakes += site->woken;
		image->in_vain += site->in_vain;
		image->timeouts += site->timeouts;
		break;
	case WAKES_SIGNAL:
		image->signals += site->calls;
		image->nobody += site->nobody;
		break;
	case WAKES_BROADCAST:
		image->broadcasts += site->calls;
		image->nobody += site->nobody;
		break;
	}
}

static void add_sites(struct image *image)
{
	for (size_t i = 0; i < wakes_sites(image->table); i++)
		add_site(image, &image->table->sites[i]);
}

static void add_image(struct image *sum, const struct image *image)
{
	sum->waits += image->waits;
	sum->wakes += image->wakes;
	sum->timeouts += image->timeouts;
	sum->in_vain += image->in_vain;
	sum->signals += image->signals;
	sum->broadcasts += image->broadcasts;
	sum->nobody += image->nobody;
}

/* The end of an image: that of the program or its next image; or, if the process is gone, its last wake. */
static uint64_t end_of(const struct images *all, const struct image *image, pid_t main, uint64_t end)
{
	const struct wakes_table *t = image->table;
	uint64_t last = t->began;
	for (size_t i = 0; i < all->count; i++) {
		const struct wakes_table *other = all->list[i].table;
		if (other->pid == t->pid && other->began > t->began && other->began < end)
			end = other->began;
	}
	if (t->pid == main || kill((pid_t)t->pid, 0) == 0)
		return end;
	for (size_t i = 0; i < wakes_sites(t); i++)
		if (t->sites[i].last > last)
			last = t->sites[i].last;
	return last < end ? last : end;
}

static int more_in_vain(const void *a, const void *b)
{
	const struct image *x = a, *y = b;
	if (x->in_vain != y->in_vain)
		return x->in_vain < y->in_vain ? 1 : -1;
	return x->table->began > y->table->began ? 1 : x->table->began < y->table->began ? -1 : 0;
}

static void read_all(struct images *images, DIR *folder)
{
	size_t room = 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		const struct wakes_table *t = map(dirfd(folder), entry->d_name);
		if (!t)
			continue;
		if (images->count == room) {
			room = room ? 2 * room : 16;
			images->list = realloc(images->list, room * sizeof *images->list);
			if (!images->list)
				abort();
		}
		images->list[images->count++] = (struct image){ .table = t };
	}
}

void images_read(struct images *images, const char *path, pid_t main, uint64_t end)
{
	*images = (struct images){ .list = NULL };
	DIR *folder = opendir(path);
	if (!folder)
		return;
	read_all(images, folder);
	closedir(folder);
	for (size_t i = 0; i < images->count; i++) {
		struct image *image = &images->list[i];
		add_sites(image);
		add_image(&images->sum, image);
		uint64_t ended = end_of(images, image, main, end);
		image->seconds = ended > image->table->began ? (double)(ended - image->table->began) / 1e9 : 0;
	}
	if (images->count)
		qsort(images->list, images->count, sizeof *images->list, more_in_vain);
}

void images_remove(const char *path)
{
	DIR *folder = opendir(path);
	if (folder) {
		for (struct dirent *entry; (entry = readdir(folder));)
			unlinkat(dirfd(folder), entry->d_name, 0);
		closedir(folder);
	}
	rmdir(path);
}
