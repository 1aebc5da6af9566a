/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_SNAPSHOT_H
#define GPUCR_SNAPSHOT_H

#include <linux/bits.h>
#include <linux/types.h>

/* Most entries of one snapshot: told by info-get. */
#define GPUCR_MAX_OBJECTS	BIT(20)

/**
 * struct gpucr_snapshot - what a dump tells, as it was at one moment
 * @num: entries that are filled
 * @pos: entry that the next message begins with
 * @room: entries that fit
 * @entry_size: bytes of one
 * @entries: the entries; they hold no reference to anything
 *
 * Made and filled in a dump's .start, copied out by its callbacks, freed by
 * its .done. Owned by the callback; netlink serialises all use.
 */
struct gpucr_snapshot {
	u32 num;
	u32 pos;
	u32 room;
	u32 entry_size;
	u8 entries[] __aligned(8);
};

struct gpucr_snapshot *gpucr_snapshot_alloc(u32 room, u32 entry_size);
void gpucr_snapshot_free(struct gpucr_snapshot *snap);

static inline void *gpucr_snapshot_entry(struct gpucr_snapshot *snap, u32 i)
{
	return snap->entries + (size_t)i * snap->entry_size;
}

/* The next free entry, now taken; NULL where there is no more room. */
static inline void *gpucr_snapshot_add(struct gpucr_snapshot *snap)
{
	if (snap->num >= snap->room)
		return NULL;
	return gpucr_snapshot_entry(snap, snap->num++);
}

#endif
