/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an ELF file says of itself, without running any of it: criu's program
 * and the plugins in its directory. 64-bit little endian; every number in the
 * file is checked against its length.
 */
#ifndef DOCTOR_ELF_H
#define DOCTOR_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doctor_elf {
	uint8_t *data;
	size_t size;
	const uint8_t *syms, *strings;	/* dynamic symbols; NULL: none */
	size_t num_syms, strings_size;
};

struct doctor_sym {
	uint64_t value, size;
};

/* -errno; -ENOEXEC where it is no such file. */
int doctor_elf_open(const char *path, struct doctor_elf *e);
/* From memory, which it takes over. */
int doctor_elf_parse(uint8_t *data, size_t size, struct doctor_elf *e);
void doctor_elf_close(struct doctor_elf *e);

/* Loads libraries at run time, so it can load plugins. */
bool doctor_elf_is_dynamic(const struct doctor_elf *e);
/* A symbol that it defines. */
bool doctor_elf_symbol(const struct doctor_elf *e, const char *name,
		       struct doctor_sym *ret);
/* The text that the pointer at this address will point to; NULL: not known. */
const char *doctor_elf_pointer(const struct doctor_elf *e, uint64_t address);
/* The first text in it that accept() accepts; NULL: none. */
const char *doctor_elf_text(const struct doctor_elf *e,
			    bool (*accept)(const char *text));

#endif
