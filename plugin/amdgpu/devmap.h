/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which GPU here takes the place of which GPU of the image. Made once, in CRIU
 * itself, from all images of the restore; the restoring tasks inherit it and
 * need no sysfs.
 */
#ifndef GPUCR_DEVMAP_H
#define GPUCR_DEVMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "opt.h"
#include "topology.h"

struct devmap_entry {
	struct gpucr_img_device there;
	uint32_t gpu_id;	/* here */
	uint32_t render_minor;	/* here */
};

struct devmap {
	struct devmap_entry *v;
	size_t num;
};

/* Adds the GPU once, by the id that it had where the dump was made. */
int devmap_add(struct devmap *m, const struct gpucr_img_device *d);
/* Fills gpu_id and render_minor of all. -errno, logged. */
int devmap_solve(struct devmap *m, const struct gpucr_topology *topo,
		 const struct gpucr_opts *opts);
const struct devmap_entry *devmap_find(const struct devmap *m,
				       uint32_t there_gpu_id);
void devmap_clear(struct devmap *m);

#endif
