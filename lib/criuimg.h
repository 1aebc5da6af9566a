/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What CRIU's own images beside ours tell: is the dump finished, which files
 * a plugin is responsible for, who has them open, how long it took. Reads
 * CRIU 3.17 and newer; anything may be absent.
 */
#ifndef GPUCR_CRIUIMG_H
#define GPUCR_CRIUIMG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPUCR_CRIUIMG_MAX_PLUGINS	8

/* A descriptor of a file that a plugin is responsible for. */
struct gpucr_criuimg_fd {
	uint32_t pid;
	uint32_t fd;
	uint32_t id;		/* of the file, as in the images' names */
};

struct gpucr_criuimg {
	bool has_inventory;	/* CRIU writes it last */
	bool has_files;
	bool has_stats;
	bool has_plugins;	/* CRIU 4.1 and newer list them */
	char plugins[GPUCR_CRIUIMG_MAX_PLUGINS][64];
	size_t num_plugins;
	uint32_t *ext_ids;	/* files that a plugin is responsible for */
	size_t num_ext_ids;
	struct gpucr_criuimg_fd *fds;
	size_t num_fds;
	/* Of the dump, in microseconds. */
	uint32_t freezing_us, frozen_us, memdump_us, memwrite_us;
};

/*
 * -EBADMSG where one is damaged, other -errno; logged. *ret goes to
 * gpucr_criuimg_clear() also after a failure.
 */
int gpucr_criuimg_read(int dir, struct gpucr_criuimg *ret);
void gpucr_criuimg_clear(struct gpucr_criuimg *c);
/* The inventory alone: plugins. */
int gpucr_criuimg_read_plugins(int dir, struct gpucr_criuimg *ret);

/* A mapping that a plugin is responsible for; offset in bytes. */
struct gpucr_criuimg_map {
	uint64_t start, end;
	uint64_t offset;
};

/* Those of a process, in CRIU's order; *ret is free()d. -errno, logged. */
int gpucr_criuimg_maps(int dir, uint32_t pid, struct gpucr_criuimg_map **ret,
		       size_t *num);

#endif
