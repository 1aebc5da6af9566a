/* SPDX-License-Identifier: GPL-2.0-only */
/* A process as KFD's sysfs shows it, with failures told. */
#ifndef KFDTARGET_H
#define KFDTARGET_H

#include "proc.h"

/* Exit status; *ret goes to gpucr_kfd_proc_clear(). */
int kfd_target_read(pid_t pid, struct gpucr_kfd_proc *ret);
/* Reports that there is no KFD; exit status. */
int kfd_absent(int err);

#endif
