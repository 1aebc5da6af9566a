// SPDX-License-Identifier: GPL-2.0-only
#include "doctor_elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "imgfile.h"

#define ELF_MAX		(UINT64_C(256) << 20)
#define TEXT_MAX	256

static bool inside(const struct doctor_elf *e, uint64_t at, uint64_t len)
{
	return at <= e->size && len <= e->size - at;
}

static bool get(const struct doctor_elf *e, uint64_t at, void *to, size_t len)
{
	if (!inside(e, at, len))
		return false;
	memcpy(to, e->data + at, len);
	return true;
}

/* Section i, by the header. */
static bool section(const struct doctor_elf *e, const Elf64_Ehdr *h,
		    unsigned int i, Elf64_Shdr *ret)
{
	return i < h->e_shnum && h->e_shentsize == sizeof(*ret) &&
	       h->e_shoff <= e->size &&
	       get(e, h->e_shoff + (uint64_t)i * sizeof(*ret), ret,
		   sizeof(*ret));
}

static void find_symbols(struct doctor_elf *e, const Elf64_Ehdr *h)
{
	Elf64_Shdr s, strings;
	unsigned int i;

	for (i = 0; section(e, h, i, &s); i++) {
		if (s.sh_type != SHT_DYNSYM || !inside(e, s.sh_offset, s.sh_size))
			continue;
		if (!section(e, h, s.sh_link, &strings) ||
		    !inside(e, strings.sh_offset, strings.sh_size))
			continue;
		e->syms = e->data + s.sh_offset;
		e->num_syms = s.sh_size / sizeof(Elf64_Sym);
		e->strings = e->data + strings.sh_offset;
		e->strings_size = strings.sh_size;
		return;
	}
}

static bool header(const struct doctor_elf *e, Elf64_Ehdr *h)
{
	return get(e, 0, h, sizeof(*h)) &&
	       !memcmp(h->e_ident, ELFMAG, SELFMAG) &&
	       h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB;
}

int doctor_elf_parse(uint8_t *data, size_t size, struct doctor_elf *e)
{
	Elf64_Ehdr h;

	memset(e, 0, sizeof(*e));
	e->data = data;
	e->size = size;
	if (!header(e, &h)) {
		doctor_elf_close(e);
		return -ENOEXEC;
	}
	find_symbols(e, &h);
	return 0;
}

int doctor_elf_open(const char *path, struct doctor_elf *e)
{
	uint8_t *data = NULL;
	struct stat st;
	int fd, err;

	memset(e, 0, sizeof(*e));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && (!S_ISREG(st.st_mode) || !st.st_size ||
		     (uint64_t)st.st_size > ELF_MAX))
		err = -ENOEXEC;
	if (!err) {
		data = malloc(st.st_size);
		err = data ? gpucr_pread_all(fd, data, st.st_size, 0) : -ENOMEM;
	}
	close(fd);
	if (err) {
		free(data);
		return err;
	}
	return doctor_elf_parse(data, st.st_size, e);
}

void doctor_elf_close(struct doctor_elf *e)
{
	free(e->data);
	memset(e, 0, sizeof(*e));
}

static bool program_header(const struct doctor_elf *e, unsigned int i,
			   Elf64_Phdr *ret)
{
	Elf64_Ehdr h;

	return header(e, &h) && i < h.e_phnum &&
	       h.e_phentsize == sizeof(*ret) && h.e_phoff <= e->size &&
	       get(e, h.e_phoff + (uint64_t)i * sizeof(*ret), ret,
		   sizeof(*ret));
}

bool doctor_elf_is_dynamic(const struct doctor_elf *e)
{
	Elf64_Phdr p;
	unsigned int i;

	for (i = 0; program_header(e, i, &p); i++)
		if (p.p_type == PT_INTERP)
			return true;
	return false;
}

bool doctor_elf_symbol(const struct doctor_elf *e, const char *name,
		       struct doctor_sym *ret)
{
	size_t len = strlen(name) + 1, i;
	Elf64_Sym s;

	for (i = 0; i < e->num_syms; i++) {
		memcpy(&s, e->syms + i * sizeof(s), sizeof(s));
		if (s.st_shndx == SHN_UNDEF || s.st_name > e->strings_size ||
		    e->strings_size - s.st_name < len ||
		    memcmp(e->strings + s.st_name, name, len))
			continue;
		ret->value = s.st_value;
		ret->size = s.st_size;
		return true;
	}
	return false;
}

/* Text at a virtual address; NULL where it does not end, or is long. */
static const char *text_at(const struct doctor_elf *e, uint64_t address)
{
	Elf64_Phdr p;
	unsigned int i;

	for (i = 0; program_header(e, i, &p); i++) {
		uint64_t at;
		size_t left;

		if (p.p_type != PT_LOAD || address < p.p_vaddr ||
		    address - p.p_vaddr >= p.p_filesz ||
		    !inside(e, p.p_offset, p.p_filesz))
			continue;
		at = p.p_offset + (address - p.p_vaddr);
		left = e->size - at < TEXT_MAX ? e->size - at : TEXT_MAX;
		return memchr(e->data + at, 0, left) ?
			(const char *)e->data + at : NULL;
	}
	return NULL;
}

const char *doctor_elf_pointer(const struct doctor_elf *e, uint64_t address)
{
	unsigned int i;
	Elf64_Ehdr h;
	Elf64_Shdr s;
	Elf64_Rela r;
	uint64_t j;

	if (!header(e, &h))
		return NULL;
	for (i = 0; section(e, &h, i, &s); i++) {
		if (s.sh_type != SHT_RELA || !inside(e, s.sh_offset, s.sh_size))
			continue;
		for (j = 0; j + sizeof(r) <= s.sh_size; j += sizeof(r)) {
			memcpy(&r, e->data + s.sh_offset + j, sizeof(r));
			/* Position-independent: base plus addend. */
			if (r.r_offset == address && !ELF64_R_SYM(r.r_info))
				return text_at(e, (uint64_t)r.r_addend);
		}
	}
	return NULL;
}

const char *doctor_elf_text(const struct doctor_elf *e,
			    bool (*accept)(const char *text))
{
	size_t i, start = 0;

	for (i = 0; i < e->size; i++) {
		if (e->data[i] >= ' ' && e->data[i] <= '~')
			continue;
		if (!e->data[i] && i - start > 3 && i - start < TEXT_MAX &&
		    accept((const char *)e->data + start))
			return (const char *)e->data + start;
		start = i + 1;
	}
	return NULL;
}
