// SPDX-License-Identifier: GPL-2.0
/* KFD files: which they are, and the one ioctl that is relayed. */
#include <linux/cdev.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kfd_ioctl.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/security.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>

#include "fault.h"
#include "kfdfile.h"

/* Major number of all DRM nodes; part of the kernel's ABI. */
#define GPUCR_DRM_MAJOR	226

/**
 * gpucr_kfd_file() - is a file an open /dev/kfd?
 * @file: any file, referenced by the caller
 *
 * KFD's file operations are private and its major number is dynamic, so it is
 * known by the name that it registers its device under. What is behind
 * private_data is never looked at.
 *
 * Return: true where it is.
 */
bool gpucr_kfd_file(struct file *file)
{
	struct inode *inode = file_inode(file);
	const char *name;

	if (!S_ISCHR(inode->i_mode) || imajor(inode) == GPUCR_DRM_MAJOR)
		return false;
	/* Lives as long as the open file. */
	if (!inode->i_cdev || !file->f_op->unlocked_ioctl)
		return false;
	name = kobject_name(&inode->i_cdev->kobj);
	return name && !strcmp(name, "kfd");
}

/* No system call is restarted on the way out, so that nobody may see these. */
static int gpucr_visible_errno(long ret)
{
	switch (ret) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return -EINTR;
	}
	return ret > 0 ? 0 : ret;
}

/**
 * gpucr_kfd_criu() - call KFD's CRIU operation as the current task
 * @file: a KFD file, referenced by the caller
 * @args: arguments; on success overwritten by what KFD left
 *
 * KFD reads its arguments from user memory, so they go there on a page that
 * is mapped for the call. Other threads of the caller can write to it too:
 * what comes back is the caller's word, not KFD's. May sleep for as long as
 * KFD does; no lock of generic netlink may be held.
 *
 * Return: 0 or what KFD answered.
 */
int gpucr_kfd_criu(struct file *file, struct kfd_ioctl_criu_args *args)
{
	unsigned long page;
	long ret;

	ret = gpucr_fault(GPUCR_FAULT_ARGS);
	if (ret)
		return ret;
	page = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (IS_ERR_VALUE(page))
		return page;
	ret = -EFAULT;
	if (copy_to_user((void __user *)page, args, sizeof(*args)))
		goto out_unmap;
	ret = security_file_ioctl(file, AMDKFD_IOC_CRIU_OP, page);
	if (ret)
		goto out_unmap;
	ret = file->f_op->unlocked_ioctl(file, AMDKFD_IOC_CRIU_OP, page);
	/* KFD has acted: an answer that cannot be read must not hide that. */
	if (!ret && copy_from_user(args, (void __user *)page, sizeof(*args)))
		memset(args, 0, sizeof(*args));
out_unmap:
	vm_munmap(page, PAGE_SIZE);
	return gpucr_visible_errno(ret);
}
