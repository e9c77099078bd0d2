/* SPDX-License-Identifier: MIT */
/* Objects on pages that can be closed. */
#include "guard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void *page_of(void *object)
{
	return (void *)((uintptr_t)object & ~(uintptr_t)(page_size() - 1));
}

void *guard_new(size_t size)
{
	size_t page = page_size();
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
		abort();
	return pages + page - (size + 15) / 16 * 16;
}

static void allow(void *object, int access)
{
	if (mprotect(page_of(object), page_size(), access) != 0)
		abort();
}

void guard_close(void *object)
{
	allow(object, PROT_NONE);
}

void guard_read_only(void *object)
{
	allow(object, PROT_READ);
}

void guard_writable(void *object)
{
	allow(object, PROT_READ | PROT_WRITE);
}

void guard_open(void *object, size_t size)
{
	guard_writable(object);
	memset(object, 0, size);
}

void guard_free(void *object)
{
	munmap(page_of(object), 2 * page_size());
}
