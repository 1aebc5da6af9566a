/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A file of CRIU's: magic numbers, then entries, each with its length before
 * it. For the readers of what is in them.
 */
#ifndef GPUCR_CRIUREAD_H
#define GPUCR_CRIUREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUCR_CRIU_COMMON	0x54564319
#define GPUCR_CRIU_ANY		0xffffffff	/* any second number will do */

/* What a file is, and how long an entry of it can be. */
struct gpucr_criukind {
	uint32_t first, second;	/* magic; 0: there is no second one */
	uint32_t max;
};

/* Not 0: the entry cannot be decoded. */
typedef int (*gpucr_criu_entry)(void *ctx, const uint8_t *data, size_t len,
				void *arg);

/*
 * fn for each entry of the file name in dir. 0 too where there is no such file;
 * *there tells. -EBADMSG where it is damaged, other -errno; logged.
 */
int gpucr_criu_read(int dir, const char *name,
		    const struct gpucr_criukind *kind, gpucr_criu_entry fn,
		    void *ctx, void *arg, bool *there);

/* Logs that the file is damaged; -EBADMSG. */
int gpucr_criu_damaged(const char *name, const char *what);

#endif
