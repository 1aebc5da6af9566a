// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes of what a compute queue saves its waves in, per GPU as the real driver
 * and libhsakmt compute them: both must come to the same numbers.
 */
#include <linux/align.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include "kfdsim.h"

#define GFX10_1			100100
#define GFX11			110000
#define HEADER_BYTES		40	/* struct kfd_context_save_area_header */
#define DEBUGGER_BYTES		32	/* per wave */
#define SGPR_BYTES		0x4000
#define LDS_BYTES		0x10000
#define HWREG_BYTES		0x1000
#define GFX10_CTL_STACK_MAX	0x7000

/* Of one partition (XCC). */
static u32 cu_count(const struct kfdsim_model *m)
{
	return m->simd_count / m->simd_per_cu / max(m->num_xcc, 1U);
}

static u32 wave_count(const struct kfdsim_model *m)
{
	u32 cus = cu_count(m);

	if (m->gfx_target_version >= GFX10_1)
		return cus * 32;
	return min(cus * 40, m->array_count / m->simd_arrays_per_engine * 512);
}

static u32 vgpr_bytes(const struct kfdsim_model *m)
{
	u32 v = m->gfx_target_version;

	if (v / 100 == 904 || v == 90500 || v == 90010 || v == 90008)
		return 0x80000;
	return v >= GFX11 ? 0x60000 : 0x40000;
}

/** kfdsim_ctl_stack_size() - control stack of one partition, bytes */
u32 kfdsim_ctl_stack_size(const struct kfdsim_model *m)
{
	u32 per_wave = m->gfx_target_version >= GFX10_1 ? 12 : 8;
	u32 size = ALIGN(HEADER_BYTES + wave_count(m) * per_wave + 8, PAGE_SIZE);

	if (m->gfx_target_version / 10000 == 10)
		size = min_t(u32, size, GFX10_CTL_STACK_MAX);
	return size;
}

/** kfdsim_cwsr_size() - save area of one partition, control stack included */
u32 kfdsim_cwsr_size(const struct kfdsim_model *m)
{
	u32 per_cu = vgpr_bytes(m) + SGPR_BYTES + LDS_BYTES + HWREG_BYTES;

	return kfdsim_ctl_stack_size(m) + ALIGN(cu_count(m) * per_cu, PAGE_SIZE);
}

/** kfdsim_cwsr_total() - what a queue must have mapped for all partitions */
u64 kfdsim_cwsr_total(const struct kfdsim_model *m)
{
	u64 debugger = ALIGN(wave_count(m) * DEBUGGER_BYTES, 64);

	return PAGE_ALIGN((kfdsim_cwsr_size(m) + debugger) * max(m->num_xcc, 1U));
}
