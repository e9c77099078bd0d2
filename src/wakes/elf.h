/* SPDX-License-Identifier: MIT */
/*
 * What the launcher has to know of a program's file.
 */
#ifndef WAKES_ELF_H
#define WAKES_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf {
	const unsigned char *bytes;
	size_t size;
};

enum elf_kind {
	ELF_DYNAMIC, /* a loader reads it, which can preload */
	ELF_STATIC,
	ELF_FOREIGN, /* of another width or processor */
	ELF_NONE     /* it cannot be read, or is not such a file */
};

/* A file of this machine's kind; false: it is none, and nothing is open. */
bool elf_open(struct elf *elf, const char *path);
void elf_close(struct elf *elf);

enum elf_kind elf_kind(const char *path);

/* Where what is at that offset in the file is, if it is loaded at 0. */
bool elf_address(const struct elf *elf, uint64_t offset, uint64_t *address);

/* The name of the function that has the address in it; NULL: none has. It lives as long as the file is open. */
const char *elf_function(const struct elf *elf, uint64_t address);

#endif
