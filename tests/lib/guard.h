/* SPDX-License-Identifier: MIT */
/* An object alone at the end of its own page: when it may be gone, the page is closed, and who touches it crashes. */
#ifndef TEST_GUARD_H
#define TEST_GUARD_H

#include <stddef.h>

/* All-zero bytes; whatever lies behind the object is inaccessible. */
void *guard_new(size_t size);
/* Nobody may touch it from now on. */
void guard_close(void *object);
/* Everybody may read it, and nobody write it; both again. */
void guard_read_only(void *object);
void guard_writable(void *object);
/* As new, at the same address. */
void guard_open(void *object, size_t size);
void guard_free(void *object);

#endif
