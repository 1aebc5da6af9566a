/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which GPU here takes the place of which GPU of the image. Made once, in CRIU
 * itself, from all images of the restore; the restoring tasks inherit it and
 * need no sysfs. The tool makes the same to tell what a restore would do.
 */
#ifndef GPUCR_DEVMAP_H
#define GPUCR_DEVMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpurule.h"
#include "image.h"
#include "opt.h"
#include "topology.h"

struct gpucr_devmap_entry {
	struct gpucr_img_device there;
	uint32_t gpu_id;	/* here; 0: not solved */
	uint32_t render_minor;	/* here */
};

struct gpucr_devmap {
	struct gpucr_devmap_entry *v;
	size_t num;
};

/* The machine, and what may be done on it. */
struct gpucr_here {
	const struct gpucr_topology *topo;
	const struct gpucr_opts *opts;
	/* A descriptor or -errno, as gpucr_drm_open_render(). */
	int (*open_render)(uint32_t minor);
};

/* Adds the GPU once, by the id that it had where the dump was made. */
int gpucr_devmap_add(struct gpucr_devmap *m, const struct gpucr_img_device *d);
/*
 * Fills gpu_id and render_minor of all. -errno, logged: -ENODEV where too few
 * GPUs are here, -EINVAL where those that are here will not do.
 */
int gpucr_devmap_solve(struct gpucr_devmap *m, const struct gpucr_here *here);
const struct gpucr_devmap_entry *
gpucr_devmap_find(const struct gpucr_devmap *m, uint32_t there_gpu_id);
void gpucr_devmap_clear(struct gpucr_devmap *m);

/* Why a GPU of the image cannot be any here by itself. */
struct gpucr_devmap_why {
	const struct gpucr_node *here;	/* that comes nearest; NULL: none */
	bool fits;			/* nothing forbids that one */
	int open_err;			/* of its render node; 0: it opens */
	struct gpucr_rule rules[GPUCR_MAX_RULES];
	size_t num_rules;		/* all, kept or broken */
};

/* here_gpu_id 0: the one that comes nearest. */
void gpucr_devmap_explain(const struct gpucr_devmap_entry *e,
			  const struct gpucr_here *here, uint32_t here_gpu_id,
			  struct gpucr_devmap_why *ret);

#endif
