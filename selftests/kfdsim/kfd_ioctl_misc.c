// SPDX-License-Identifier: GPL-2.0
/* The small ioctls: what only answers, or only keeps a value. */
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include "kfdsim_kfd.h"

KFDSIM_IOCTL(get_version)
{
	static const u32 minor[] = {
		[KFDSIM_6_1] = 11,
		[KFDSIM_6_12] = 17,
		[KFDSIM_7_2] = 23,
		[KFDSIM_7_3] = 23,
	};
	struct kfd_ioctl_get_version_args *args = data;

	args->major_version = 1;
	args->minor_version = minor[kfdsim_personality];
	return 0;
}

/* Does the process have this GPU, and a VM on it? Otherwise -EINVAL, no_vm. */
static int pdd_call(struct kfdsim_process *p, u32 gpu_id, int no_vm,
		    void (*set)(struct kfdsim_pdd *pdd, const void *data),
		    const void *data)
{
	struct kfdsim_pdd *pdd;
	int ret = 0;

	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_bound(p, gpu_id, &ret);
	if (pdd)
		set(pdd, data);
	else if (ret == -ENODEV)
		ret = no_vm;
	mutex_unlock(&p->lock);
	return ret;
}

static void set_nothing(struct kfdsim_pdd *pdd, const void *data)
{
}

KFDSIM_IOCTL(set_memory_policy)
{
	struct kfd_ioctl_set_memory_policy_args *args = data;

	if (args->default_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT ||
	    args->alternate_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT)
		return -EINVAL;
	return pdd_call(p, args->gpu_id, -ESRCH, set_nothing, args);
}

static void set_trap(struct kfdsim_pdd *pdd, const void *data)
{
	const struct kfd_ioctl_set_trap_handler_args *args = data;

	pdd->tba = args->tba_addr;
	pdd->tma = args->tma_addr;
}

KFDSIM_IOCTL(set_trap_handler)
{
	struct kfd_ioctl_set_trap_handler_args *args = data;

	return pdd_call(p, args->gpu_id, -ESRCH, set_trap, args);
}

static void set_scratch(struct kfdsim_pdd *pdd, const void *data)
{
	const struct kfd_ioctl_set_scratch_backing_va_args *args = data;

	pdd->scratch_base = args->va_addr;
}

KFDSIM_IOCTL(set_scratch_backing_va)
{
	struct kfd_ioctl_set_scratch_backing_va_args *args = data;

	return pdd_call(p, args->gpu_id, -ENODEV, set_scratch, args);
}

KFDSIM_IOCTL(get_clock_counters)
{
	struct kfd_ioctl_get_clock_counters_args *args = data;
	bool gpu;

	mutex_lock(&p->lock);
	gpu = kfdsim_pdd_by_user_id(p, args->gpu_id);
	mutex_unlock(&p->lock);
	/* the GPU's clock runs at 100 MHz */
	args->gpu_clock_counter = gpu ? ktime_get_raw_ns() / 10 : 0;
	args->cpu_clock_counter = ktime_get_raw_ns();
	args->system_clock_counter = ktime_get_boottime_ns();
	args->system_clock_freq = NSEC_PER_SEC;
	return 0;
}

static void fill_apertures(const struct kfdsim_pdd *pdd,
			   struct kfd_process_device_apertures *out)
{
	out->gpu_id = pdd->gpu->gpu_id;
	out->lds_base = 1ULL << 48;
	out->lds_limit = out->lds_base + U32_MAX;
	out->scratch_base = 2ULL << 48;
	out->scratch_limit = out->scratch_base + U32_MAX;
	out->gpuvm_base = KFDSIM_GPUVM_BASE;
	out->gpuvm_limit = KFDSIM_GPUVM_LIMIT;
}

KFDSIM_IOCTL(get_process_apertures)
{
	struct kfd_ioctl_get_process_apertures_args *args = data;
	unsigned int i;

	args->num_of_nodes = min_t(unsigned int, p->n_pdds,
				   NUM_OF_SUPPORTED_GPUS);
	for (i = 0; i < args->num_of_nodes; i++)
		fill_apertures(p->pdds[i], &args->process_apertures[i]);
	return 0;
}

KFDSIM_IOCTL(get_process_apertures_new)
{
	struct kfd_ioctl_get_process_apertures_new_args *args = data;
	struct kfd_process_device_apertures *out;
	unsigned int i, n;
	int ret = 0;

	if (!args->num_of_nodes) {
		args->num_of_nodes = p->n_pdds;
		return 0;
	}
	if (args->num_of_nodes > kfdsim_topology_nodes())
		return -EINVAL;
	n = min(p->n_pdds, args->num_of_nodes);
	args->num_of_nodes = n;
	if (!n)
		return 0;
	out = kcalloc(n, sizeof(*out), GFP_KERNEL);
	if (!out)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		fill_apertures(p->pdds[i], &out[i]);
	if (copy_to_user(u64_to_user_ptr(args->kfd_process_device_apertures_ptr),
			 out, n * sizeof(*out)))
		ret = -EFAULT;
	kfree(out);
	return ret;
}

KFDSIM_IOCTL(dbg)
{
	return -EPERM;
}

KFDSIM_IOCTL(get_tile_config)
{
	struct kfd_ioctl_get_tile_config_args *args = data;
	struct kfdsim_pdd *pdd;

	mutex_lock(&p->lock);
	pdd = kfdsim_pdd_by_user_id(p, args->gpu_id);
	mutex_unlock(&p->lock);
	if (!pdd)
		return -EINVAL;
	/* as on gfx9: no tables */
	args->num_tile_configs = 0;
	args->num_macro_tile_configs = 0;
	args->gb_addr_config = 0x2a114042;
	args->num_banks = 2;
	args->num_ranks = 1;
	return 0;
}

KFDSIM_IOCTL(smi_events)
{
	return -EINVAL;
}

KFDSIM_IOCTL(set_xnack_mode)
{
	struct kfd_ioctl_set_xnack_mode_args *args = data;
	int ret = 0;

	if (kfdsim_personality < KFDSIM_7_2)
		return -EPERM;	/* kernels without HSA_AMD_SVM */
	mutex_lock(&p->lock);
	if (args->xnack_enabled < 0)
		args->xnack_enabled = p->xnack;
	else if (!bitmap_empty(p->qids, KFDSIM_MAX_QUEUES))
		ret = -EBUSY;
	else if (args->xnack_enabled)
		ret = -EPERM;	/* a GPU that cannot change its mode */
	mutex_unlock(&p->lock);
	return ret;
}

KFDSIM_IOCTL(runtime_enable)
{
	struct kfd_ioctl_runtime_enable_args *args = data;
	bool enable = args->mode_mask & KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK;
	int ret = 0;

	mutex_lock(&p->lock);
	if (!enable)
		p->runtime_enabled = false;
	else if (p->runtime_enabled)
		ret = -EBUSY;
	else if (!bitmap_empty(p->qids, KFDSIM_MAX_QUEUES))
		ret = -EEXIST;
	else
		p->runtime_enabled = true;
	mutex_unlock(&p->lock);
	return ret;
}
