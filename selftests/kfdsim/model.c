// SPDX-License-Identifier: GPL-2.0
/* Kinds of GPU: figures as the real driver reports them. */
#include <linux/kernel.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <drm/amdgpu_drm.h>
#include "kfdsim.h"

static const struct kfdsim_model models[] = {
	{
		.name = "mi210",
		.asic_name = "aldebaran",
		.marketing_name = "AMD Instinct MI210 (simulated)",
		.gfx_target_version = 90010,
		.device_id = 0x740f,
		.revision = 0x02,
		.family = AMDGPU_FAMILY_AI,
		.chip_external_rev = 0x3c,
		.simd_count = 416,
		.simd_per_cu = 4,
		.max_waves_per_simd = 8,
		.lds_size_in_kb = 64,
		.num_gws = 64,
		.wave_front_size = 64,
		.array_count = 8,
		.simd_arrays_per_engine = 1,
		.cu_per_simd_array = 14,
		.max_slots_scratch_cu = 32,
		.num_sdma_engines = 2,
		.num_sdma_xgmi_engines = 3,
		.num_sdma_queues_per_engine = 8,
		.num_cp_queues = 24,
		.cwsr_size = 0x168c000,
		.ctl_stack_size = 0x8000,
		.max_engine_clk_fcompute = 1700,
		.fw_version = 92,
		.capability = 611820160,
		.debug_prop = 470,
		.sdma_fw_version = 9,
		.num_xcc = 1,
		.cp_mqd_size = 2048,
		.sdma_mqd_size = 512,
		.vram_size = SZ_2G,
	},
};

/** kfdsim_model_find() - by name; NULL where there is none of it */
const struct kfdsim_model *kfdsim_model_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(models); i++)
		if (!strcmp(models[i].name, name))
			return &models[i];
	return NULL;
}
