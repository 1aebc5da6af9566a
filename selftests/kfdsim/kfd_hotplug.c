// SPDX-License-Identifier: GPL-2.0
/*
 * GPUs that come and go: a line "remove N" or "add N" written to the file "gpus"
 * in debugfs, N from 0. Reading it tells which are there. While a process has
 * KFD open all of its GPUs stay: -EBUSY.
 */
#include <linux/debugfs.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "kfdsim_kfd.h"

#define LINE_MAX	32

static DEFINE_MUTEX(plug_mutex);

void kfdsim_gpus_hold(void)
{
	mutex_lock(&plug_mutex);
}

void kfdsim_gpus_unhold(void)
{
	mutex_unlock(&plug_mutex);
}

static int plug(unsigned int index, bool there)
{
	unsigned int nodes;
	int ret;

	if (kfdsim_capture_nodes(&nodes) && nodes)
		return -EOPNOTSUPP;
	ret = kfdsim_processes_hold();
	if (ret)
		return ret;
	ret = kfdsim_gpu_plug(index, there);
	if (!ret)
		ret = kfdsim_topology_rebuild(kfdsim_kfd_kobj());
	kfdsim_processes_unhold();
	return ret;
}

static int obey(const char *line)
{
	unsigned int index;
	int ret, end = 0;

	if (sscanf(line, "add %u%n", &index, &end) == 1 && end && !line[end])
		return plug(index, true);
	ret = sscanf(line, "remove %u%n", &index, &end);
	return ret == 1 && end && !line[end] ? plug(index, false) : -EINVAL;
}

static int gpus_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	mutex_lock(&plug_mutex);
	for (i = 0; i < kfdsim_num_gpus; i++)
		seq_printf(m, "%u %s\n", i, kfdsim_gpus[i] ? "there" : "removed");
	mutex_unlock(&plug_mutex);
	return 0;
}

static int gpus_open(struct inode *inode, struct file *filp)
{
	return single_open(filp, gpus_show, NULL);
}

static ssize_t gpus_write(struct file *filp, const char __user *user, size_t len,
			  loff_t *pos)
{
	char *line;
	int ret;

	if (len >= LINE_MAX)
		return -EINVAL;
	line = memdup_user_nul(user, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&plug_mutex);
	ret = obey(strim(line));
	mutex_unlock(&plug_mutex);
	kfree(line);
	return ret ?: len;
}

static const struct file_operations gpus_fops = {
	.owner = THIS_MODULE,
	.open = gpus_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.write = gpus_write,
};

void kfdsim_hotplug_init(struct dentry *root)
{
	debugfs_create_file("gpus", 0600, root, NULL, &gpus_fops);
}
