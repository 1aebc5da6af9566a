/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options, by rising priority: defaults, the configuration file, upstream's
 * environment names (KFD_*), GPUCR_* in the environment, gpucr.conf in the
 * image directory. The last may set device-map, backend and max-buffer-size
 * only: an image must not switch off the checks made on it.
 */
#ifndef GPUCR_OPT_H
#define GPUCR_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "imgformat.h"

#define GPUCR_OPT_FILE		"/etc/gpucr/plugin.conf"
#define GPUCR_OPT_IMAGE_FILE	"gpucr.conf"
#define GPUCR_OPT_MAX_PAIRS	64
#define GPUCR_OPT_GUARD		"/usr/sbin/gpucr"

enum gpucr_backend_choice {
	GPUCR_BACKEND_AUTO,
	GPUCR_BACKEND_NETLINK,
	GPUCR_BACKEND_IOCTL,
};

/* A GPU as people name it. Partitions of one GPU can share a name. */
struct gpucr_gpu_name {
	enum {
		GPUCR_NAME_ID,		/* KFD's gpu_id */
		GPUCR_NAME_PCI,		/* domain << 32 | bus, device, function */
		GPUCR_NAME_UUID,	/* GPU-0123456789abcdef: unique_id */
	} kind;
	uint64_t value;
};

struct gpucr_gpu_pair {
	struct gpucr_gpu_name image;	/* there */
	struct gpucr_gpu_name local;	/* here */
};

struct gpucr_opts {
	enum gpucr_backend_choice backend;
	uint64_t max_buffer_size;	/* bytes per GPU; 0: default */
	bool space_check;
	enum gpucr_img_format format;	/* that a dump writes */
	bool keep_partial;	/* page files of a failed dump stay */
	char guard[256];		/* program; "": none */
	bool io_uring;			/* off: writes are done one by one */
	bool overlap;	/* GPU memory is filled while CRIU goes on */
	int zstd_level;			/* 0: chunks are not compressed */
	uint64_t bandwidth;		/* bytes per second; 0: no limit */
	unsigned int pause_limit;	/* seconds; 0: none */
	unsigned int copy_deadline;	/* seconds for each copy, 1 or more */
	struct gpucr_gpu_pair map[GPUCR_OPT_MAX_PAIRS];
	size_t map_len;
	/* Rules of the device mapping, upstream's KFD_*_CHECK. */
	bool check_capability;
	bool check_vram_size;
	bool check_num_gws;
	bool check_caches_count;
	bool check_fw_ver;
	bool check_sdma_fw_ver;
	bool check_numa;
	bool check_links;	/* ours: io_links_count, hives, links */
};

void gpucr_opts_defaults(struct gpucr_opts *o);
/*
 * file may be absent; image_dir -1: none. Unknown names and malformed values
 * are -EINVAL with a sentence in the log that names file and line.
 */
int gpucr_opts_load(struct gpucr_opts *o, const char *file, int image_dir);
/*
 * The value of device-map alone, in place of what o has. -EINVAL, not logged.
 */
int gpucr_opts_set_map(struct gpucr_opts *o, const char *value);
/* Calls fn with each option and its value, as they are in effect. */
void gpucr_opts_tell(const struct gpucr_opts *o,
		     void (*fn)(void *arg, const char *name,
				const char *value), void *arg);
/* What -f FILE holds, for tests: text is changed. where names it. */
int gpucr_opts_parse(struct gpucr_opts *o, char *text, const char *where,
		     bool from_image);

#endif
