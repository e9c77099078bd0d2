/* SPDX-License-Identifier: MIT */
/*
 * Reads ELF files of this machine's kind. Nothing in a file is believed: what does not lie in it is not there.
 */
#include "elf.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#elif defined(__riscv)
#define MACHINE EM_RISCV
#else
#define MACHINE EM_NONE /* any */
#endif
#define CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* COUNT objects of a size at an offset; NULL: they do not lie in the file. */
static const void *at(const struct elf *elf, uint64_t offset, uint64_t count, size_t size)
{
	if (offset > elf->size || count > (elf->size - offset) / size)
		return NULL;
	return elf->bytes + offset;
}

static const ElfW(Ehdr) *header(const struct elf *elf)
{
	const ElfW(Ehdr) *h = at(elf, 0, 1, sizeof *h);
	return h && !memcmp(h->e_ident, ELFMAG, SELFMAG) ? h : NULL;
}

static bool ours(const ElfW(Ehdr) *h)
{
	return h->e_ident[EI_CLASS] == CLASS && (MACHINE == EM_NONE || h->e_machine == MACHINE);
}

static bool map(struct elf *elf, const char *path)
{
	struct stat status;
	void *bytes = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	*elf = (struct elf){ bytes, (size_t)status.st_size };
	return true;
}

void elf_close(struct elf *elf)
{
	munmap((void *)(uintptr_t)elf->bytes, elf->size);
}

bool elf_open(struct elf *elf, const char *path)
{
	if (!map(elf, path))
		return false;
	const ElfW(Ehdr) *h = header(elf);
	if (h && ours(h))
		return true;
	elf_close(elf);
	return false;
}

static const ElfW(Phdr) *segments(const struct elf *elf, size_t *count)
{
	const ElfW(Ehdr) *h = header(elf);
	*count = h->e_phnum;
	return at(elf, h->e_phoff, h->e_phnum, sizeof(ElfW(Phdr)));
}

static bool has_loader(const struct elf *elf)
{
	size_t count;
	const ElfW(Phdr) *p = segments(elf, &count);
	for (size_t i = 0; p && i < count; i++)
		if (p[i].p_type == PT_INTERP)
			return true;
	return false;
}

enum elf_kind elf_kind(const char *path)
{
	struct elf elf;
	if (!map(&elf, path))
		return ELF_NONE;
	enum elf_kind kind = ELF_NONE;
	const ElfW(Ehdr) *h = header(&elf);
	if (h)
		kind = !ours(h) ? ELF_FOREIGN : has_loader(&elf) ? ELF_DYNAMIC : ELF_STATIC;
	elf_close(&elf);
	return kind;
}

bool elf_address(const struct elf *elf, uint64_t offset, uint64_t *address)
{
	size_t count;
	const ElfW(Phdr) *p = segments(elf, &count);
	for (size_t i = 0; p && i < count; i++) {
		if (p[i].p_type != PT_LOAD || offset < p[i].p_offset || offset - p[i].p_offset >= p[i].p_filesz)
			continue;
		*address = offset - p[i].p_offset + p[i].p_vaddr;
		return true;
	}
	return false;
}

/* Looks in one table of symbols. */
static const char *function_in(const struct elf *elf, const ElfW(Shdr) *table, const ElfW(Shdr) *names,
	uint64_t address)
{
	size_t count = table->sh_size / sizeof(ElfW(Sym));
	const ElfW(Sym) *s = at(elf, table->sh_offset, count, sizeof *s);
	const char *text = at(elf, names->sh_offset, names->sh_size, 1);
	for (size_t i = 0; s && text && i < count; i++) {
		if ((s[i].st_info & 0xf) != STT_FUNC || address < s[i].st_value ||
			address - s[i].st_value >= s[i].st_size)
			continue;
		if (s[i].st_name < names->sh_size && memchr(text + s[i].st_name, 0, names->sh_size - s[i].st_name))
			return text + s[i].st_name;
	}
	return NULL;
}

const char *elf_function(const struct elf *elf, uint64_t address)
{
	const ElfW(Ehdr) *h = header(elf);
	const ElfW(Shdr) *section = at(elf, h->e_shoff, h->e_shnum, sizeof *section);
	const char *name = NULL;
	for (size_t i = 0; section && !name && i < h->e_shnum; i++)
		if ((section[i].sh_type == SHT_SYMTAB || section[i].sh_type == SHT_DYNSYM) &&
			section[i].sh_link < h->e_shnum)
			name = function_in(elf, &section[i], &section[section[i].sh_link], address);
	return name;
}
