/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs from one KFD to the next and no version number tells: how long
 * the private record of a BO is, and what the GPU id in an mmap offset means.
 * (Whether PROCESS_INFO counts cannot be found out without harm, so it is
 * always taken to count; see backend.h.)
 *
 * The record is told by BTF of the module that provides KFD, else by the data
 * themselves. The offset rule is found by a task that is restored onto another
 * GPU. What was seen is kept in /run/gpucr until that module is reloaded, for
 * the next restore and for people.
 */
#ifndef GPUCR_KFDRULES_H
#define GPUCR_KFDRULES_H

#include <stddef.h>
#include <stdint.h>

struct gpucr_kfd_state;

enum gpucr_known {
	GPUCR_KNOWN_NOT,
	GPUCR_KNOWN_SEEN,	/* by a dump or restore since */
	GPUCR_KNOWN_BTF,
};

/* Which id is in the mmap offset of a doorbell or MMIO page? */
enum gpucr_offset_rule {
	GPUCR_OFFSET_UNKNOWN,
	GPUCR_OFFSET_LOCAL,	/* the GPU's own */
	GPUCR_OFFSET_USER,	/* the one that the process knows it by */
};

struct gpucr_kfd_rules {
	char provider[64];		/* module */
	uint32_t bo_record;		/* bytes; 0: not known */
	enum gpucr_known bo_known;
	enum gpucr_offset_rule offsets;
};

/* Never fails: what cannot be found is not known. */
void gpucr_kfd_rules_read(struct gpucr_kfd_rules *r);
/* Name, version and build of the module that provides KFD, for people. */
void gpucr_kfd_driver(const struct gpucr_kfd_rules *r, char *text,
		      size_t size);
/*
 * Record size of what CHECKPOINT wrote. Where nothing else tells, exactly one
 * known size must fit. *bo_record 0: there is no BO. -EPROTO, logged.
 */
int gpucr_kfd_rules_match(const struct gpucr_kfd_rules *r,
			  const struct gpucr_kfd_state *s,
			  uint32_t *bo_record);
/* Remember what was seen; a failure is nobody's trouble. */
void gpucr_kfd_rules_note(const struct gpucr_kfd_rules *r);

#endif
