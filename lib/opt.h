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

#define GPUCR_OPT_FILE		"/etc/gpucr/plugin.conf"
#define GPUCR_OPT_IMAGE_FILE	"gpucr.conf"
#define GPUCR_OPT_MAX_PAIRS	64

enum gpucr_backend_choice {
	GPUCR_BACKEND_AUTO,
	GPUCR_BACKEND_NETLINK,
	GPUCR_BACKEND_IOCTL,
};

struct gpucr_gpu_pair {
	uint32_t image;		/* GPU id in the image */
	uint32_t local;		/* GPU id here */
};

struct gpucr_opts {
	enum gpucr_backend_choice backend;
	uint64_t max_buffer_size;	/* bytes per GPU; 0: default */
	bool space_check;
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
};

void gpucr_opts_defaults(struct gpucr_opts *o);
/*
 * file may be absent; image_dir -1: none. Unknown names and malformed values
 * are -EINVAL with a sentence in the log that names file and line.
 */
int gpucr_opts_load(struct gpucr_opts *o, const char *file, int image_dir);
/* What -f FILE holds, for tests: text is changed. where names it. */
int gpucr_opts_parse(struct gpucr_opts *o, char *text, const char *where,
		     bool from_image);

#endif
