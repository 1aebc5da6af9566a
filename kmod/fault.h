/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_FAULT_H
#define GPUCR_FAULT_H

#include <linux/types.h>

/* Named and explained in fault.c. Each of KFD's calls has one before, one after. */
enum gpucr_fault_point {
	GPUCR_FAULT_SESSION_NEW,
	GPUCR_FAULT_SESSION_FILE,
	GPUCR_FAULT_SESSION_REPLY,
	GPUCR_FAULT_JOIN,
	GPUCR_FAULT_SNAPSHOT,
	GPUCR_FAULT_EVENT,
	GPUCR_FAULT_HELPER,
	GPUCR_FAULT_RELAY,
	GPUCR_FAULT_ARGS,
	GPUCR_FAULT_HEAL,
	GPUCR_FAULT_HEAL_AFTER,
	GPUCR_FAULT_PAUSE,
	GPUCR_FAULT_PAUSE_AFTER,
	GPUCR_FAULT_UNDO,
	GPUCR_FAULT_UNDO_AFTER,
	GPUCR_FAULT_CHECKPOINT,
	GPUCR_FAULT_CHECKPOINT_AFTER,
	GPUCR_FAULT_UNPAUSE,
	GPUCR_FAULT_UNPAUSE_AFTER,
	GPUCR_FAULT_RESTORE,
	GPUCR_FAULT_RESTORE_AFTER,
	GPUCR_FAULT_RESUME,
	GPUCR_FAULT_RESUME_AFTER,
	GPUCR_FAULT_QUEUE_KEEP,
	GPUCR_FAULT_REMAP_READ,
	GPUCR_FAULT_REMAP_FILL,
	GPUCR_FAULT_REMAP_SET,
	GPUCR_FAULT_POINTS
};

extern unsigned int gpucr_faults_armed;
int gpucr_fault_fire(enum gpucr_fault_point point);

/* 0, or the negative errno that is to be met at this point. */
static inline int gpucr_fault(enum gpucr_fault_point point)
{
	return READ_ONCE(gpucr_faults_armed) ? gpucr_fault_fire(point) : 0;
}

#endif
