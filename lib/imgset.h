/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All manifests of an image directory, read offline: no GPU, no root, no page
 * data in memory. What is in it has passed every rule of the format.
 */
#ifndef GPUCR_IMGSET_H
#define GPUCR_IMGSET_H

#include "criuimg.h"
#include "image.h"
#include "imgformat.h"

struct gpucr_imgset {
	int dir;
	enum gpucr_img_format format;
	struct gpucr_img_kfd **kfds;	/* by rising id */
	size_t num_kfds;
	struct gpucr_img_render *renders;
	size_t num_renders;
	struct gpucr_criuimg criu;
};

/*
 * -errno, logged; -ENOENT, not logged, where the directory has no manifest.
 * *set goes to gpucr_imgset_close() also after a failure.
 */
int gpucr_imgset_open(const char *path, struct gpucr_imgset *set);
void gpucr_imgset_close(struct gpucr_imgset *set);

const struct gpucr_img_kfd *gpucr_imgset_kfd(const struct gpucr_imgset *set,
					     uint32_t id);
const struct gpucr_img_render *
gpucr_imgset_render(const struct gpucr_imgset *set, uint32_t id);

/* Page files as the manifest lists them. */
struct gpucr_imgset_pages {
	uint64_t raw_bytes, file_bytes, zero_bytes;
	uint64_t zstd_bytes;		/* of content, in compressed chunks */
	size_t chunks;
};

void gpucr_imgset_count(const struct gpucr_chunks *c,
			struct gpucr_imgset_pages *ret);

/*
 * Reads a page file chunk by chunk, in a buffer of one chunk. Goes on after a
 * chunk that is wrong. Returns how many are, each logged, or -errno where the
 * file cannot be opened.
 */
long gpucr_imgset_verify_pages(const struct gpucr_imgset *set,
			       const struct gpucr_img_pages *pages);
/*
 * Is every file there that CRIU's images name? Logs what is missing, and
 * returns how much. What no CRIU image names is a warning.
 */
long gpucr_imgset_missing(const struct gpucr_imgset *set);

#endif
