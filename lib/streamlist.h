/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which manifests a stream has. A streamer is asked for a name and lists none,
 * so each manifest is followed by a numbered record that names it; a restore
 * asks for record 1, 2 and so on until there is none. Each file is given once,
 * hence the manifests are kept in memory for whoever reads them again.
 */
#ifndef GPUCR_STREAMLIST_H
#define GPUCR_STREAMLIST_H

#include "imgfile.h"

/* Writes the record of a manifest that was written. -errno, logged. */
int gpucr_streamlist_add(const char *name, enum gpucr_img_kind kind);

/*
 * Reads all records and the manifests that they name. -ENOENT, not logged:
 * there are none; else -errno, logged.
 */
int gpucr_streamlist_read(void);
/* NULL after the last. */
const char *gpucr_streamlist_name(size_t i);
/* As gpucr_imgfile_read(). */
int gpucr_streamlist_get(const char *name, enum gpucr_img_kind kind,
			 uint8_t **payload, size_t *len);
void gpucr_streamlist_clear(void);

#endif
