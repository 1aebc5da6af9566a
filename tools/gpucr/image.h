/* SPDX-License-Identifier: GPL-2.0-only */
/* Images of a dump as rows of the output: one function for each part. */
#ifndef IMAGE_TOOL_H
#define IMAGE_TOOL_H

#include "imgset.h"
#include "out.h"

struct image_part {
	const char *name;
	void (*rows)(const struct gpucr_imgset *set);
	const struct out_column *columns;
};

/* NULL: all in short. NULL is returned where there is no such part. */
const struct image_part *image_part(const char *name);

/* Names for people; never NULL. */
const char *image_heap(uint32_t alloc_flags);
const char *image_vma_kind(const struct gpucr_img_vma *v);
const char *image_event_type(uint32_t type);
/* What decides how a KFD file is restored: process, alias, no-gpu. */
const char *image_kfd_kind(const struct gpucr_img_kfd *k);
/* "gfx90a" */
void image_gfx(uint32_t version, char text[24]);
/* "0000:03:00.0" */
void image_pci(const struct gpucr_img_device *d, char text[24]);

/* Queues, events, SVM ranges of the private records. */
struct image_objects {
	size_t queues, events, ranges;
};

void image_count_objects(const struct gpucr_img_kfd *k,
			 struct image_objects *ret);
/* Bytes of the BOs in a heap; how many there are, to *num. */
uint64_t image_heap_bytes(const struct gpucr_img_kfd *k, uint32_t flag,
			  size_t *num);

/* The page as a file; exit status. */
int image_html_write(const struct gpucr_imgset *set, const char *path,
		     const char *out);

#endif
