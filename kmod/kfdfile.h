/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_KFDFILE_H
#define GPUCR_KFDFILE_H

#include <linux/types.h>

struct file;
struct kfd_ioctl_criu_args;

bool gpucr_kfd_file(struct file *file);
int gpucr_kfd_criu(struct file *file, struct kfd_ioctl_criu_args *args);

#endif
