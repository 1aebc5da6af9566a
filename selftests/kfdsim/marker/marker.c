// SPDX-License-Identifier: GPL-2.0
/*
 * Does nothing: its name makes lsmod list "amdgpu", which older ROCm programs
 * look for before they start.
 */
#include <linux/module.h>

static int __init kfdsim_marker_init(void)
{
	return 0;
}

static void __exit kfdsim_marker_exit(void)
{
}

module_init(kfdsim_marker_init);
module_exit(kfdsim_marker_exit);
MODULE_DESCRIPTION("marker of the simulated AMD GPU (kfdsim)");
MODULE_LICENSE("GPL");
