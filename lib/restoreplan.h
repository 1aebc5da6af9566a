/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a restore needs to know before it makes anything, and every reason not
 * to begin: read by the plugin, which acts on it, and by the tool, which tells
 * it, so that both say the same.
 */
#ifndef GPUCR_RESTOREPLAN_H
#define GPUCR_RESTOREPLAN_H

#include <stddef.h>
#include <stdint.h>

#include "devmap.h"
#include "image.h"
#include "imgformat.h"
#include "kfdrules.h"
#include "opt.h"

/* A render node file of a process whose GPU address space KFD uses. */
struct gpucr_plan_vm_file {
	uint32_t owner_pid;
	uint32_t gpu_id;	/* where dumped */
};

struct gpucr_plan {
	struct gpucr_opts opts;		/* set by the caller */
	struct gpucr_kfd_rules rules;	/* too */
	enum gpucr_img_format format;
	struct gpucr_devmap devmap;
	struct gpucr_plan_vm_file *vm_files;
	size_t num_vm_files;
	unsigned int num_images;	/* of KFD processes */
	unsigned int num_pages;		/* their page files */
	uint64_t content_bytes;		/* of GPU memory in them */
};

/*
 * Reads all images of the directory: are they whole, and of KFD's layout here?
 * -errno, logged. *p goes to gpucr_plan_clear() also after a failure.
 */
int gpucr_plan_read(struct gpucr_plan *p, int dir);
/* Finds a place for each GPU. open_render as in devmap.h. -errno, logged. */
int gpucr_plan_map(struct gpucr_plan *p, int (*open_render)(uint32_t minor));
/* How many files of the process share the address space that KFD uses? */
unsigned int gpucr_plan_vm_files(const struct gpucr_plan *p,
				 uint32_t owner_pid, uint32_t gpu_id);
void gpucr_plan_clear(struct gpucr_plan *p);

#endif
