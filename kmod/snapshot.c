// SPDX-License-Identifier: GPL-2.0
/* Arrays that dumps copy from. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "fault.h"
#include "snapshot.h"

/**
 * gpucr_snapshot_alloc() - make an empty snapshot
 * @room: entries that shall fit; the caller has bounded it
 * @entry_size: bytes of one, a multiple of 8
 *
 * The memory is charged to the caller. May sleep.
 *
 * Return: a snapshot for gpucr_snapshot_free(), or NULL.
 */
struct gpucr_snapshot *gpucr_snapshot_alloc(u32 room, u32 entry_size)
{
	struct gpucr_snapshot *snap;

	if (gpucr_fault(GPUCR_FAULT_SNAPSHOT))
		return NULL;
	snap = kvzalloc(sizeof(*snap) + (size_t)room * entry_size,
			GFP_KERNEL_ACCOUNT);
	if (!snap)
		return NULL;
	snap->room = room;
	snap->entry_size = entry_size;
	return snap;
}

void gpucr_snapshot_free(struct gpucr_snapshot *snap)
{
	kvfree(snap);
}
