/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A target: one parser, given any bytes. The same source is linked with
 * libFuzzer (fuzz.sh) or with replay.c, which gives it the corpus.
 */
#ifndef GPUCR_FUZZ_H
#define GPUCR_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_no_log(enum gpucr_log_level level, const char *text)
{
	(void)level;
	(void)text;
}

/* What must hold for every input. */
#define HOLDS(cond) do { \
	if (!(cond)) { \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
		abort(); \
	} \
} while (0)

/* A fresh directory in memory, for parsers of files; its descriptor. */
int fuzz_dir(char path[64]);
/* Replaces the file. */
void fuzz_put(int dir, const char *name, const uint8_t *data, size_t size);
/*
 * Inputs of several parts: the next one ends where the byte sequence 0xff 'N'
 * 0xff begins, or with the input. Moves data and size beyond it.
 */
size_t fuzz_part(const uint8_t **data, size_t *size, const uint8_t **part);

#endif
