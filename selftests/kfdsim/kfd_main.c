// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/kfd: the device, its files, and the entry checks of its ioctls, which
 * are exactly KFD's: who may call what on whose file.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfdsim_kfd.h"

/**
 * struct kfdsim_ioctl - one entry of the table
 * @cmd: number, direction and the size that we know
 * @func: handler
 * @criu: the tracer may call it, with a capability
 * @since: first personality that has it
 */
struct kfdsim_ioctl {
	unsigned int cmd;
	int (*func)(struct kfdsim_process *p, void *data);
	bool criu;
	enum kfdsim_personality since;
};

static const struct kfdsim_ioctl kfdsim_ioctls[] = {
	{ AMDKFD_IOC_GET_VERSION, kfdsim_ioctl_get_version },
	{ AMDKFD_IOC_CREATE_QUEUE, kfdsim_ioctl_create_queue },
	{ AMDKFD_IOC_DESTROY_QUEUE, kfdsim_ioctl_destroy_queue },
	{ AMDKFD_IOC_SET_MEMORY_POLICY, kfdsim_ioctl_set_memory_policy },
	{ AMDKFD_IOC_GET_CLOCK_COUNTERS, kfdsim_ioctl_get_clock_counters },
	{ AMDKFD_IOC_GET_PROCESS_APERTURES, kfdsim_ioctl_get_process_apertures },
	{ AMDKFD_IOC_UPDATE_QUEUE, kfdsim_ioctl_update_queue },
	{ AMDKFD_IOC_CREATE_EVENT, kfdsim_ioctl_create_event },
	{ AMDKFD_IOC_DESTROY_EVENT, kfdsim_ioctl_destroy_event },
	{ AMDKFD_IOC_SET_EVENT, kfdsim_ioctl_set_event },
	{ AMDKFD_IOC_RESET_EVENT, kfdsim_ioctl_reset_event },
	{ AMDKFD_IOC_WAIT_EVENTS, kfdsim_ioctl_wait_events },
	{ AMDKFD_IOC_DBG_REGISTER_DEPRECATED, kfdsim_ioctl_dbg },
	{ AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED, kfdsim_ioctl_dbg },
	{ AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED, kfdsim_ioctl_dbg },
	{ AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED, kfdsim_ioctl_dbg },
	{ AMDKFD_IOC_SET_SCRATCH_BACKING_VA, kfdsim_ioctl_set_scratch_backing_va },
	{ AMDKFD_IOC_GET_TILE_CONFIG, kfdsim_ioctl_get_tile_config },
	{ AMDKFD_IOC_SET_TRAP_HANDLER, kfdsim_ioctl_set_trap_handler },
	{ AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, kfdsim_ioctl_get_process_apertures_new },
	{ AMDKFD_IOC_ACQUIRE_VM, kfdsim_ioctl_acquire_vm },
	{ AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, kfdsim_ioctl_alloc_memory },
	{ AMDKFD_IOC_FREE_MEMORY_OF_GPU, kfdsim_ioctl_free_memory },
	{ AMDKFD_IOC_MAP_MEMORY_TO_GPU, kfdsim_ioctl_map_memory },
	{ AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, kfdsim_ioctl_unmap_memory },
	{ AMDKFD_IOC_SET_CU_MASK, kfdsim_ioctl_set_cu_mask },
	{ AMDKFD_IOC_GET_QUEUE_WAVE_STATE, kfdsim_ioctl_get_queue_wave_state },
	{ AMDKFD_IOC_GET_DMABUF_INFO, kfdsim_ioctl_get_dmabuf_info },
	{ AMDKFD_IOC_IMPORT_DMABUF, kfdsim_ioctl_import_dmabuf },
	{ AMDKFD_IOC_ALLOC_QUEUE_GWS, kfdsim_ioctl_alloc_queue_gws },
	{ AMDKFD_IOC_SMI_EVENTS, kfdsim_ioctl_smi_events },
	{ AMDKFD_IOC_SVM, kfdsim_ioctl_svm },
	{ AMDKFD_IOC_SET_XNACK_MODE, kfdsim_ioctl_set_xnack_mode },
	{ AMDKFD_IOC_AVAILABLE_MEMORY, kfdsim_ioctl_available_memory },
	{ AMDKFD_IOC_CRIU_OP, kfdsim_ioctl_criu_op, .criu = true },
	{ AMDKFD_IOC_EXPORT_DMABUF, kfdsim_ioctl_export_dmabuf,
	  .since = KFDSIM_6_12 },
	{ AMDKFD_IOC_RUNTIME_ENABLE, kfdsim_ioctl_runtime_enable,
	  .since = KFDSIM_6_12 },
};

static int kfd_major;
static struct device *kfd_device;
static struct class kfd_class = {
	.name = "kfd",
};

struct kobject *kfdsim_kfd_kobj(void)
{
	return &kfd_device->kobj;
}

static int kfd_open(struct inode *inode, struct file *filp)
{
	struct kfdsim_process *p;

	if (iminor(inode))
		return -ENODEV;
	if (in_compat_syscall())
		return -EPERM;
	p = kfdsim_process_open();
	if (IS_ERR(p))
		return PTR_ERR(p);
	filp->private_data = p;
	filp->f_mapping = p->mapping->f_mapping;
	atomic64_inc(&kfdsim_stats.files);
	return 0;
}

static int kfd_release(struct inode *inode, struct file *filp)
{
	atomic64_dec(&kfdsim_stats.files);
	kfdsim_process_put(filp->private_data);
	return 0;
}

/* May the caller use this entry on this process? */
static int check_caller(const struct kfdsim_ioctl *entry,
			struct kfdsim_process *p)
{
	bool tracer;

	rcu_read_lock();
	tracer = entry->criu && ptrace_parent(p->lead) == current;
	rcu_read_unlock();
	if (p->lead != current->group_leader && !tracer)
		return -EBADF;
	if (entry->criu && !capable(CAP_CHECKPOINT_RESTORE) &&
	    !capable(CAP_SYS_ADMIN))
		return -EACCES;
	return 0;
}

/*
 * User space may know a smaller or a larger argument than we: what is missing
 * is zero, what is too much stays untouched.
 */
static long call(const struct kfdsim_ioctl *entry, struct kfdsim_process *p,
		 unsigned int usize, void __user *arg)
{
	size_t size = max_t(size_t, usize, _IOC_SIZE(entry->cmd));
	u64 *head = kzalloc(sizeof(*head) + size, GFP_KERNEL);
	void *data = head + 1;
	long ret;

	if (!head)
		return -ENOMEM;
	*head = usize;
	if ((entry->cmd & IOC_IN) && copy_from_user(data, arg, usize)) {
		ret = -EFAULT;
		goto out;
	}
	ret = entry->func(p, data);
	if ((entry->cmd & IOC_OUT) && copy_to_user(arg, data, usize))
		ret = -EFAULT;
out:
	kfree(head);
	return ret;
}

/* By number alone: size and direction are ours to know. */
static const struct kfdsim_ioctl *find_entry(unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kfdsim_ioctls); i++)
		if (_IOC_NR(kfdsim_ioctls[i].cmd) == nr &&
		    kfdsim_personality >= kfdsim_ioctls[i].since)
			return &kfdsim_ioctls[i];
	return NULL;
}

static long kfd_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct kfdsim_process *p = filp->private_data;
	const struct kfdsim_ioctl *entry = find_entry(_IOC_NR(cmd));
	int ret;

	if (!entry)
		return -ENOTTY;
	ret = check_caller(entry, p);
	if (ret)
		return ret;
	return call(entry, p, _IOC_SIZE(cmd), (void __user *)arg);
}

const struct file_operations kfdsim_kfd_fops = {
	.owner = THIS_MODULE,
	.open = kfd_open,
	.release = kfd_release,
	.unlocked_ioctl = kfd_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kfdsim_kfd_mmap,
};

static int device_init(void)
{
	int ret = class_register(&kfd_class);

	if (ret)
		return ret;
	kfd_device = device_create(&kfd_class, NULL, MKDEV(kfd_major, 0), NULL,
				   "kfd");
	if (!IS_ERR(kfd_device))
		return 0;
	class_unregister(&kfd_class);
	return PTR_ERR(kfd_device);
}

static void device_exit(void)
{
	device_destroy(&kfd_class, MKDEV(kfd_major, 0));
	class_unregister(&kfd_class);
}

static int kfd_sysfs_init(void)
{
	int ret = kfdsim_topology_init(kfdsim_kfd_kobj());

	if (ret)
		return ret;
	ret = kfdsim_procfs_init(kfdsim_kfd_kobj());
	if (ret)
		kfdsim_topology_exit();
	return ret;
}

/** kfdsim_kfd_init() - everything of the KFD side; the GPUs are there already */
int kfdsim_kfd_init(void)
{
	int ret = kfdsim_mmio_init();

	if (ret)
		return ret;
	ret = kfdsim_processes_init();
	if (ret)
		goto err_mmio;
	ret = register_chrdev(0, "kfd", &kfdsim_kfd_fops);
	if (ret < 0)
		goto err_processes;
	kfd_major = ret;
	ret = device_init();
	if (ret)
		goto err_chrdev;
	ret = kfd_sysfs_init();
	if (ret)
		goto err_device;
	return 0;

err_device:
	device_exit();
err_chrdev:
	unregister_chrdev(kfd_major, "kfd");
err_processes:
	kfdsim_processes_exit();
err_mmio:
	kfdsim_mmio_exit();
	return ret;
}

/** kfdsim_kfd_exit() - undo it; no file of ours is open */
void kfdsim_kfd_exit(void)
{
	kfdsim_processes_exit();
	kfdsim_procfs_exit();
	kfdsim_topology_exit();
	device_exit();
	unregister_chrdev(kfd_major, "kfd");
	kfdsim_mmio_exit();
	kfdsim_fault_exit();
}
