// SPDX-License-Identifier: GPL-2.0
/* Brings the simulator up and down. */
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include "kfdsim_drm.h"

static char *personality;
module_param(personality, charp, 0444);
MODULE_PARM_DESC(personality, "kernel whose KFD and amdgpu are imitated: 6.1, 6.12, 7.2 or 7.3 [this one's]");

enum kfdsim_personality kfdsim_personality;

/* The newest that is not newer than the running kernel; else the oldest. */
static int __init native_personality(const char * const *names, int n)
{
	unsigned int major, minor, of_major, of_minor;

	if (sscanf(init_utsname()->release, "%u.%u", &major, &minor) != 2)
		return 0;
	while (--n > 0 &&
	       sscanf(names[n], "%u.%u", &of_major, &of_minor) == 2 &&
	       (major < of_major || (major == of_major && minor < of_minor)))
		;
	return n;
}

static int __init choose_personality(void)
{
	static char * const names[] = {
		[KFDSIM_6_1] = "6.1",
		[KFDSIM_6_12] = "6.12",
		[KFDSIM_7_2] = "7.2",
		[KFDSIM_7_3] = "7.3",
	};
	int i;

	/* what is in force can be read from the parameter */
	if (!personality)
		personality = names[native_personality((const char * const *)names,
						       ARRAY_SIZE(names))];
	i = match_string((const char * const *)names, ARRAY_SIZE(names),
			 personality);
	if (i < 0) {
		pr_notice("kfdsim: personality=%s is not one of 6.1, 6.12, 7.2, 7.3\n",
			  personality);
		return -EINVAL;
	}
	kfdsim_personality = i;
	return 0;
}

static bool __init exists(const char *name)
{
	struct path path;

	if (kern_path(name, 0, &path))
		return false;
	path_put(&path);
	return true;
}

/* Two KFDs on one machine would take each other's device and class. */
static int __init check_alone(void)
{
	if (exists("/sys/class/kfd")) {
		pr_notice("kfdsim: a KFD is here already (/sys/class/kfd), refusing to load\n");
		return -EBUSY;
	}
	if (exists("/sys/module/amdgpu")) {
		pr_notice("kfdsim: the amdgpu module is loaded, refusing to load\n");
		return -EBUSY;
	}
	return 0;
}

static int __init kfdsim_init(void)
{
	int ret = choose_personality();

	if (!ret)
		ret = check_alone();
	if (ret)
		return ret;
	ret = kfdsim_cs_init();
	if (ret)
		return ret;
	ret = kfdsim_gpus_init();
	if (ret)
		goto err_cs;
	ret = kfdsim_kfd_init();
	if (ret)
		goto err_gpus;
	ret = kfdsim_debugfs_init();
	if (ret)
		goto err_kfd;
	pr_info("kfdsim: %u simulated GPUs as of %s; no hardware behind them, for tests only\n",
		kfdsim_num_gpus, personality);
	return 0;

err_kfd:
	kfdsim_kfd_exit();
err_gpus:
	kfdsim_gpus_exit();
err_cs:
	kfdsim_cs_exit();
	return ret;
}

static void __exit kfdsim_exit(void)
{
	kfdsim_debugfs_exit();
	kfdsim_kfd_exit();
	kfdsim_gpus_exit();
	kfdsim_cs_exit();
}

module_init(kfdsim_init);
module_exit(kfdsim_exit);
MODULE_DESCRIPTION("simulated AMD GPUs: KFD, topology and DRM nodes, for tests");
MODULE_LICENSE("GPL");
MODULE_SOFTDEP("pre: amdgpu_kfdsim");
MODULE_INFO(import_ns, "DMA_BUF");
