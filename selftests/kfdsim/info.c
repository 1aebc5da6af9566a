// SPDX-License-Identifier: GPL-2.0
/* The INFO ioctl: what user space asks a GPU about itself. */
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include "kfdsim_drm.h"

#define MAX_MMR		128

static int give(struct drm_amdgpu_info *info, const void *what, size_t size)
{
	size = min_t(size_t, size, info->return_size);
	return copy_to_user(u64_to_user_ptr(info->return_pointer), what, size) ?
		-EFAULT : 0;
}

static int give_u32(struct drm_amdgpu_info *info, u32 value)
{
	return give(info, &value, sizeof(value));
}

static int give_u64(struct drm_amdgpu_info *info, u64 value)
{
	return give(info, &value, sizeof(value));
}

static u32 shader_engines(const struct kfdsim_model *m)
{
	return max(1U, m->array_count / max(1U, m->simd_arrays_per_engine));
}

static void dev_info_shaders(struct drm_amdgpu_info_device *d,
			     const struct kfdsim_model *m)
{
	u32 se, sh, mask = GENMASK(max(1U, m->cu_per_simd_array) - 1, 0);

	d->num_shader_engines = shader_engines(m);
	d->num_shader_arrays_per_engine = max(1U, m->simd_arrays_per_engine);
	d->cu_active_number = m->simd_count / max(1U, m->simd_per_cu);
	d->num_cu_per_sh = m->cu_per_simd_array;
	d->wave_front_size = m->wave_front_size;
	d->num_shader_visible_vgprs = 256;
	d->num_tcc_blocks = 16;
	d->num_hw_gfx_contexts = 8;
	for (se = 0; se < min(d->num_shader_engines, 4U); se++)
		for (sh = 0; sh < min(d->num_shader_arrays_per_engine, 4U); sh++)
			d->cu_bitmap[se][sh] = mask;
}

static int give_dev_info(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	const struct kfdsim_model *m = gpu->model;
	struct drm_amdgpu_info_device *d = kzalloc(sizeof(*d), GFP_KERNEL);
	int ret;

	if (!d)
		return -ENOMEM;
	d->device_id = m->device_id;
	/* chip_external_rev is what amdgpu adds its revision to */
	d->chip_rev = 0;
	d->external_rev = m->chip_external_rev;
	d->pci_rev = m->revision;
	d->family = m->family;
	d->gpu_counter_freq = 100000;
	d->max_engine_clock = m->max_engine_clk_fcompute * 1000ULL;
	d->max_memory_clock = m->mem_clk * 1000ULL;
	d->virtual_address_offset = KFDSIM_VA_RESERVED;
	d->virtual_address_max = KFDSIM_VA_HOLE_START;
	d->virtual_address_alignment = PAGE_SIZE;
	d->pte_fragment_size = 2 << 20;
	d->gart_page_size = PAGE_SIZE;
	d->high_va_offset = KFDSIM_VA_HOLE_END;
	d->high_va_max = KFDSIM_VA_HOLE_END |
			 (KFDSIM_VA_MASK + 1 - KFDSIM_VA_TOP);
	d->vram_type = AMDGPU_VRAM_TYPE_HBM;
	d->vram_bit_width = m->mem_width;
	dev_info_shaders(d, m);
	ret = give(info, d, sizeof(*d));
	kfree(d);
	return ret;
}

/* An accelerator has no graphics rings. */
static int give_hw_ip(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	struct drm_amdgpu_info_hw_ip ip = { };

	if (info->query_hw_ip.ip_instance >= AMDGPU_HW_IP_INSTANCE_MAX_COUNT)
		return -EINVAL;
	switch (info->query_hw_ip.type) {
	case AMDGPU_HW_IP_GFX:
	case AMDGPU_HW_IP_COMPUTE:
		ip.hw_ip_version_major = gpu->model->gfx_target_version / 10000;
		ip.hw_ip_version_minor = gpu->model->gfx_target_version / 100 % 100;
		ip.ib_start_alignment = 32;
		ip.ib_size_alignment = 32;
		if (info->query_hw_ip.type == AMDGPU_HW_IP_COMPUTE)
			ip.available_rings = GENMASK(KFDSIM_COMPUTE_RINGS - 1, 0);
		else if (gpu->model->gfx_ring)
			ip.available_rings = GENMASK(KFDSIM_GFX_RINGS - 1, 0);
		break;
	case AMDGPU_HW_IP_DMA:
		ip.hw_ip_version_major = gpu->model->sdma_ip / 100;
		ip.hw_ip_version_minor = gpu->model->sdma_ip % 100;
		ip.ib_start_alignment = 256;
		ip.ib_size_alignment = 4;
		ip.available_rings = GENMASK(KFDSIM_DMA_RINGS - 1, 0);
		break;
	default:
		if (info->query_hw_ip.type >= AMDGPU_HW_IP_NUM)
			return -EINVAL;
	}
	return give(info, &ip, sizeof(ip));
}

static int give_hw_ip_count(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	switch (info->query_hw_ip.type) {
	case AMDGPU_HW_IP_GFX:
	case AMDGPU_HW_IP_COMPUTE:
		return give_u32(info, 1);
	case AMDGPU_HW_IP_DMA:
		return give_u32(info, gpu->model->num_sdma_engines +
				      gpu->model->num_sdma_xgmi_engines);
	}
	return -EINVAL;
}

static int give_fw(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	struct drm_amdgpu_info_firmware fw = { };

	if (info->query_fw.ip_instance)
		return -EINVAL;
	switch (info->query_fw.fw_type) {
	case AMDGPU_INFO_FW_GFX_MEC:
		if (info->query_fw.index > 1)
			return -EINVAL;
		fw.ver = gpu->model->fw_version;
		break;
	case AMDGPU_INFO_FW_SDMA:
		if (info->query_fw.index >= gpu->model->num_sdma_engines +
					    gpu->model->num_sdma_xgmi_engines)
			return -EINVAL;
		fw.ver = gpu->model->sdma_fw_version;
		break;
	default:
		if (!info->query_fw.fw_type ||
		    info->query_fw.fw_type > AMDGPU_INFO_FW_IMU)
			return -EINVAL;
	}
	return give(info, &fw, sizeof(fw));
}

static int give_vram_gtt(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	struct drm_amdgpu_info_vram_gtt v = {
		.vram_size = gpu->vram_size,
		.vram_cpu_accessible_size = gpu->vram_size,
		.gtt_size = gpu->gtt_size,
	};

	return give(info, &v, sizeof(v));
}

static void heap_fill(struct drm_amdgpu_heap_info *h, u64 size, u64 used)
{
	h->total_heap_size = size;
	h->usable_heap_size = size;
	h->heap_usage = used;
	h->max_allocation = size / 4 * 3;
}

static int give_memory(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	struct drm_amdgpu_memory_info m = { };
	u64 used = atomic64_read(&gpu->vram_used);

	heap_fill(&m.vram, gpu->vram_size, used);
	heap_fill(&m.cpu_accessible_vram, gpu->vram_size, used);
	heap_fill(&m.gtt, gpu->gtt_size, atomic64_read(&gpu->gtt_used));
	return give(info, &m, sizeof(m));
}

/* Registers read as 0; libdrm asks for the tiling configuration. */
static int give_mmr(struct drm_amdgpu_info *info)
{
	u32 n = info->read_mmr_reg.count;
	u32 *regs;
	int ret;

	if (n > MAX_MMR)
		return -EINVAL;
	regs = kcalloc(max(n, 1U), sizeof(*regs), GFP_KERNEL);
	if (!regs)
		return -ENOMEM;
	ret = give(info, regs, n * sizeof(*regs));
	kfree(regs);
	return ret;
}

static int give_vbios(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	struct drm_amdgpu_info_vbios v = { };

	switch (info->vbios_info.type) {
	case AMDGPU_INFO_VBIOS_SIZE:
		return give_u32(info, 0);
	case AMDGPU_INFO_VBIOS_INFO:
		snprintf(v.name, sizeof(v.name), "kfdsim %s", gpu->model->name);
		snprintf(v.vbios_pn, sizeof(v.vbios_pn), "kfdsim-%s",
			 gpu->model->name);
		snprintf(v.vbios_ver_str, sizeof(v.vbios_ver_str), "simulated");
		return give(info, &v, sizeof(v));
	}
	return -EINVAL;
}

static int give_gds(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	struct drm_amdgpu_info_gds g = {
		.compute_partition_size = gpu->model->gds_size,
		.gds_total_size = gpu->model->gds_size,
		.gws_per_compute_partition = 64,
		.oa_per_compute_partition = 16,
	};

	return give(info, &g, sizeof(g));
}

#ifdef AMDGPU_INFO_GPUVM_FAULT
static int give_fault(struct drm_amdgpu_info *info, struct kfdsim_fpriv *fp)
{
	struct drm_amdgpu_info_gpuvm_fault f = {
		.addr = atomic64_read(&fp->fault_va),
	};

	f.status = f.addr ? 1 : 0;
	return give(info, &f, sizeof(f));
}
#endif

#ifdef AMDGPU_INFO_MAX_IBS
static int give_max_ibs(struct drm_amdgpu_info *info)
{
	u32 n[AMDGPU_HW_IP_NUM] = {
		[AMDGPU_HW_IP_GFX] = 49,
		[AMDGPU_HW_IP_COMPUTE] = 49,
		[AMDGPU_HW_IP_DMA] = 49,
	};

	return give(info, n, sizeof(n));
}
#endif

/* Plain numbers. Return: -EINVAL where it is none of these. */
static int info_number(struct drm_amdgpu_info *info, struct kfdsim_gpu *gpu)
{
	switch (info->query) {
	case AMDGPU_INFO_ACCEL_WORKING:
		return give_u32(info, 1);
	case AMDGPU_INFO_TIMESTAMP:
		return give_u64(info, kfdsim_gpu_clock());
	case AMDGPU_INFO_VRAM_USAGE:
	case AMDGPU_INFO_VIS_VRAM_USAGE:
		return give_u64(info, atomic64_read(&gpu->vram_used));
	case AMDGPU_INFO_GTT_USAGE:
		return give_u64(info, atomic64_read(&gpu->gtt_used));
	case AMDGPU_INFO_NUM_BYTES_MOVED:
		return give_u64(info, atomic64_read(&gpu->bytes_moved));
	case AMDGPU_INFO_NUM_EVICTIONS:
		return give_u64(info, atomic64_read(&gpu->evictions));
	case AMDGPU_INFO_NUM_VRAM_CPU_PAGE_FAULTS:
		return give_u64(info, 0);
	case AMDGPU_INFO_VRAM_LOST_COUNTER:
		return give_u32(info, 0);
	}
	return -EINVAL;
}

KFDSIM_IOCTL(kfdsim_info_ioctl)
{
	struct kfdsim_gpu *gpu = drm_to_kfdsim_gpu(dev);
	struct drm_amdgpu_info *info = data;

	if (!info->return_size || !info->return_pointer)
		return -EINVAL;
	switch (info->query) {
	case AMDGPU_INFO_DEV_INFO:
		return give_dev_info(info, gpu);
	case AMDGPU_INFO_READ_MMR_REG:
		return give_mmr(info);
	case AMDGPU_INFO_HW_IP_INFO:
		return give_hw_ip(info, gpu);
	case AMDGPU_INFO_HW_IP_COUNT:
		return give_hw_ip_count(info, gpu);
	case AMDGPU_INFO_FW_VERSION:
		return give_fw(info, gpu);
	case AMDGPU_INFO_VRAM_GTT:
		return give_vram_gtt(info, gpu);
	case AMDGPU_INFO_MEMORY:
		return give_memory(info, gpu);
	case AMDGPU_INFO_VBIOS:
		return give_vbios(info, gpu);
	case AMDGPU_INFO_GDS_CONFIG:
		return give_gds(info, gpu);
#ifdef AMDGPU_INFO_GPUVM_FAULT
	case AMDGPU_INFO_GPUVM_FAULT:
		return give_fault(info, file->driver_priv);
#endif
#ifdef AMDGPU_INFO_MAX_IBS
	case AMDGPU_INFO_MAX_IBS:
		return give_max_ibs(info);
#endif
	}
	return info_number(info, gpu);
}
