// SPDX-License-Identifier: GPL-2.0
/* Kinds of GPU: figures as the real driver reports them. */
#include <linux/kernel.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <drm/amdgpu_drm.h>
#include "kfdsim.h"

/* What all Instinct accelerators from MI200 on have in common. */
#define INSTINCT							\
	.family = AMDGPU_FAMILY_AI,					\
	.simd_per_cu = 4,						\
	.max_waves_per_simd = 8,					\
	.lds_size_in_kb = 64,						\
	.num_gws = 64,							\
	.wave_front_size = 64,						\
	.simd_arrays_per_engine = 1,					\
	.max_slots_scratch_cu = 32,					\
	.num_sdma_engines = 2,						\
	.num_sdma_queues_per_engine = 8,				\
	.num_cp_queues = 24,						\
	.capability = 611820160,					\
	.cp_mqd_size = 2048,						\
	.sdma_mqd_size = 512

#define MI300_CACHES							\
	.l1_kb = 32,							\
	.scalar_kb = 16,						\
	.instruction_kb = 64,						\
	.l2_kb = 4096,							\
	.l3_kb = 262144

static const struct kfdsim_model models[] = {
	{
		INSTINCT,
		.name = "mi210",
		.asic_name = "aldebaran",
		.marketing_name = "AMD Instinct MI210 (simulated)",
		.gfx_target_version = 90010,
		.device_id = 0x740f,
		.revision = 0x02,
		.chip_external_rev = 0x3c,
		.simd_count = 416,
		.array_count = 8,
		.cu_per_simd_array = 14,
		.num_sdma_xgmi_engines = 3,
		.max_engine_clk_fcompute = 1700,
		.fw_version = 92,
		.debug_prop = 470,
		.sdma_fw_version = 9,
		.sdma_ip = 404,
		.num_xcc = 1,
		.l1_kb = 16,
		.scalar_kb = 16,
		.instruction_kb = 32,
		.shared_caches = 56,
		.l2_kb = 8192,
		.mem_width = 4096,
		.mem_clk = 1600,
		.pcie_mbps = 32000,
		.xgmi_mbps = 50000,
		.vram_size = SZ_2G,
	},
	{
		INSTINCT,
		.name = "mi300x",
		.asic_name = "aqua_vanjaram",
		.marketing_name = "AMD Instinct MI300X (simulated)",
		.gfx_target_version = 90402,
		.device_id = 0x74a1,
		.chip_external_rev = 0x46,
		.simd_count = 1216,
		.array_count = 32,
		.cu_per_simd_array = 10,
		.num_sdma_xgmi_engines = 14,
		.max_engine_clk_fcompute = 2100,
		.fw_version = 166,
		.debug_prop = 1511,
		.sdma_fw_version = 22,
		.sdma_ip = 404,
		.num_xcc = 8,
		MI300_CACHES,
		.shared_caches = 160,
		.mem_width = 8192,
		.mem_clk = 1300,
		.pcie_mbps = 64000,
		.xgmi_mbps = 64000,
		.vram_size = 192ULL << 30,
	},
	{
		INSTINCT,
		.name = "mi300x-xcp",
		.asic_name = "aqua_vanjaram",
		.marketing_name = "AMD Instinct MI300X (simulated)",
		.gfx_target_version = 90402,
		.device_id = 0x74a1,
		.chip_external_rev = 0x46,
		.simd_count = 152,
		.array_count = 4,
		.cu_per_simd_array = 10,
		.max_engine_clk_fcompute = 2100,
		.fw_version = 166,
		.debug_prop = 1511,
		.sdma_fw_version = 22,
		.sdma_ip = 404,
		.num_xcc = 1,
		MI300_CACHES,
		.shared_caches = 20,
		.mem_width = 8192,
		.mem_clk = 1300,
		.pcie_mbps = 64000,
		.xgmi_mbps = 819200,
		.vram_size = 24ULL << 30,
	},
	{
		INSTINCT,
		.name = "mi308x-xcp",
		.asic_name = "aqua_vanjaram",
		.marketing_name = "AMD Instinct MI308X (simulated)",
		.gfx_target_version = 90402,
		.device_id = 0x74a2,
		.chip_external_rev = 0x46,
		.simd_count = 80,
		.array_count = 4,
		.cu_per_simd_array = 10,
		.max_engine_clk_fcompute = 1420,
		.fw_version = 149,
		.debug_prop = 1511,
		.sdma_fw_version = 19,
		.sdma_ip = 404,
		.num_xcc = 1,
		MI300_CACHES,
		.shared_caches = 12,
		.mem_width = 8192,
		.mem_clk = 1300,
		.pcie_mbps = 64000,
		.xgmi_mbps = 819200,
		.vram_size = 48ULL << 30,
	},
	{
		.name = "vega10",
		.asic_name = "vega10",
		.gfx_ring = true,
		.gds_size = SZ_64K,
		.marketing_name = "AMD Radeon Instinct MI25 (simulated)",
		.gfx_target_version = 90000,
		.device_id = 0x6860,
		.family = AMDGPU_FAMILY_AI,
		.chip_external_rev = 0x01,
		.simd_count = 256,
		.simd_per_cu = 4,
		.max_waves_per_simd = 10,
		.lds_size_in_kb = 64,
		.wave_front_size = 64,
		.array_count = 4,
		.simd_arrays_per_engine = 1,
		.cu_per_simd_array = 16,
		.max_slots_scratch_cu = 32,
		.num_sdma_engines = 2,
		.num_sdma_queues_per_engine = 2,
		.num_cp_queues = 24,
		.max_engine_clk_fcompute = 1500,
		.fw_version = 392,
		.capability = 8832,
		.sdma_fw_version = 421,
		.sdma_ip = 400,
		.num_xcc = 1,
		.l1_kb = 16,
		.scalar_kb = 16,
		.instruction_kb = 32,
		.shared_caches = 16,
		.l2_kb = 4096,
		.mem_width = 2048,
		.mem_clk = 945,
		.pcie_mbps = 16000,
		.cp_mqd_size = 2048,
		.sdma_mqd_size = 512,
		.vram_size = 16ULL << 30,
	},
	{
		.name = "navi31",
		.asic_name = "navi31",
		.gfx_ring = true,
		.gds_size = SZ_4K,
		.marketing_name = "AMD Radeon RX 7900 XTX (simulated)",
		.gfx_target_version = 110000,
		.device_id = 0x744c,
		.revision = 0xc8,
		.family = AMDGPU_FAMILY_GC_11_0_0,
		.chip_external_rev = 0x01,
		.simd_count = 192,
		.simd_per_cu = 2,
		.max_waves_per_simd = 16,
		.lds_size_in_kb = 64,
		.num_gws = 64,
		.wave_front_size = 32,
		.array_count = 12,
		.simd_arrays_per_engine = 2,
		.cu_per_simd_array = 8,
		.max_slots_scratch_cu = 32,
		.num_sdma_engines = 2,
		.num_sdma_queues_per_engine = 6,
		.num_cp_queues = 8,
		.max_engine_clk_fcompute = 2482,
		.fw_version = 2140,
		.capability = 671588992 & ~KFDSIM_CAP_SVM,
		.debug_prop = 1495,
		.sdma_fw_version = 20,
		.sdma_ip = 600,
		.num_xcc = 1,
		.l1_kb = 32,
		.scalar_kb = 16,
		.instruction_kb = 32,
		.shared_caches = 48,
		.array_kb = 256,
		.l2_kb = 6144,
		.l3_kb = 98304,
		.mem_width = 384,
		.mem_clk = 1249,
		.pcie_mbps = 32000,
		.cp_mqd_size = 2048,
		.sdma_mqd_size = 512,
		.vram_size = 24ULL << 30,
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

/**
 * kfdsim_model_near() - the one to take what a topology does not tell from
 * @gfx_target_version: of the GPU
 *
 * Return: one of the same version, else of the same generation, else the first.
 */
const struct kfdsim_model *kfdsim_model_near(u32 gfx_target_version)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i].gfx_target_version == gfx_target_version)
			return &models[i];
	for (i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i].gfx_target_version / 10000 == gfx_target_version / 10000)
			return &models[i];
	return gfx_target_version >= 100000 ? &models[ARRAY_SIZE(models) - 1] :
					      &models[0];
}
