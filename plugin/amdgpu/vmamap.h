/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where each device mapping of the restored process is to be made: old offset
 * to new offset and file. Lives in the restoring task, from the first of its
 * GPU files until CRIU has asked for the last mapping.
 */
#ifndef GPUCR_VMAMAP_H
#define GPUCR_VMAMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devmap.h"
#include "image.h"
#include "kfd.h"
#include "offsetrule.h"

#define VMAMAP_KFD	0	/* key of the KFD file */

/* A file that mappings are made through. */
struct vmamap_file {
	uint32_t key;		/* GPU id where dumped, or VMAMAP_KFD */
	int fd;			/* ours; -1: given away */
	unsigned int uses;	/* mappings still to come */
	unsigned int wanted;	/* render node images still to come */
	bool looked;		/* for one that the task has itself */
};

struct vmamap_entry {
	uint64_t start;
	uint64_t old_offset;
	uint64_t new_offset;
	size_t file;
};

struct vmamap {
	struct vmamap_entry *v;	/* by rising start */
	size_t num;
	struct vmamap_file *files;
	size_t num_files;
	int min_fd;		/* numbers below are the task's own */
};

/*
 * Takes fd over and keeps it under a number that the task does not use.
 * Returns that, or -errno. It stays the map's.
 */
int vmamap_keep(struct vmamap *m, uint32_t key, int fd);
/* NULL: no such file is kept. */
struct vmamap_file *vmamap_find_file(struct vmamap *m, uint32_t key);
/* A copy for the caller; the file itself where no mapping needs it. */
int vmamap_give(struct vmamap *m, struct vmamap_file *f);

/*
 * After RESTORE: the new offsets are in s. The files of all GPUs and, where a
 * mapping of KFD exists, of KFD are kept already. *rule: what is known, and then
 * what was found. -errno, logged.
 */
int vmamap_build(struct vmamap *m, const struct gpucr_img_kfd *img,
		 const struct gpucr_kfd_state *s,
		 const struct gpucr_devmap *devmap,
		 enum gpucr_offset_rule *rule);
/* Close files that neither a mapping nor a render node image will need. */
void vmamap_trim(struct vmamap *m);
/*
 * The mapping that began at start. -ENOENT: none of ours; another -errno is
 * logged. adopted: *fd becomes the caller's. Else it is the task's own where it
 * has one, and where not it stays open: nobody can close it later.
 */
int vmamap_look_up(struct vmamap *m, uint64_t start, uint64_t old_offset,
		   bool adopted, uint64_t *new_offset, int *fd);

#endif
