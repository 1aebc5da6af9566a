// SPDX-License-Identifier: GPL-2.0
/*
 * gpucr: checkpoint and restore of AMD GPU processes. Init order only; the
 * design is told in docs/architecture.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/module.h>
#include <net/genetlink.h>

#include <gpucr_layout.h>

#include "drmfile.h"
#include "netlink.h"
#include "recover.h"
#include "version.h"

static int __init gpucr_init(void)
{
	int err;

	gpucr_share_init();
	err = gpucr_recover_init();
	if (err)
		return err;
	err = gpucr_netlink_init();
	if (err)
		goto err_recover;
	return 0;

err_recover:
	gpucr_recover_exit();
	return err;
}

static void __exit gpucr_exit(void)
{
	gpucr_netlink_exit();
	gpucr_recover_exit();
}

module_init(gpucr_init);
module_exit(gpucr_exit);
MODULE_DESCRIPTION("Checkpoint and restore of AMD GPU processes");
MODULE_LICENSE("GPL");
MODULE_VERSION(GPUCR_VERSION);
MODULE_ALIAS_GENL_FAMILY(GPUCR_FAMILY_NAME);
