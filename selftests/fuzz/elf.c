// SPDX-License-Identifier: GPL-2.0-only
/* Programs and plugins as the doctor reads them. */
#include <stdbool.h>
#include <string.h>

#include "doctor_elf.h"
#include "fuzz.h"

static bool nothing(const char *text)
{
	HOLDS(*text);
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct doctor_sym s;
	struct doctor_elf e;
	const char *text;
	uint8_t *copy;

	copy = malloc(size + !size);
	HOLDS(copy);
	memcpy(copy, data, size);
	if (doctor_elf_parse(copy, size, &e))
		return 0;
	doctor_elf_is_dynamic(&e);
	if (doctor_elf_symbol(&e, "CR_PLUGIN_DESC", &s)) {
		text = doctor_elf_pointer(&e, s.value);
		HOLDS(!text || strlen(text) < 256);
	}
	HOLDS(!doctor_elf_text(&e, nothing));
	doctor_elf_close(&e);
	return 0;
}
