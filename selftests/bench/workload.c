// SPDX-License-Identifier: GPL-2.0-only
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../plugin/amdgpu/plugin.h"
#include "standin.h"

static uint64_t pattern(const struct set *set, uint64_t bo, uint64_t word)
{
	if (set->zero_of && bo / set->zero_run % set->zero_of)
		return 0;
	if (set->dull)
		word /= 64;
	return ((bo << 32) + word + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void workload_make(const struct set *set, unsigned int gpus, uint64_t bytes,
		   struct gpucr_kfd_state *s)
{
	uint64_t each = set->bo_size ? set->bo_size : bytes / gpus;
	uint64_t i, j, *cpu;

	memset(s, 0, sizeof(*s));
	s->n.num_bos = bytes / each;
	s->n.num_devices = gpus;
	s->bos = calloc(s->n.num_bos, sizeof(*s->bos));
	if (!s->bos)
		abort();
	for (i = 0; i < s->n.num_bos; i++) {
		s->bos[i].size = each;
		s->bos[i].gpu_id = 1 + i % gpus;
		s->bos[i].alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
		s->bos[i].dmabuf_fd = standin_bo(each, (void **)&cpu);
		for (j = 0; j < each / sizeof(*cpu); j++)
			cpu[j] = pattern(set, i, j);
	}
}

void workload_free(struct gpucr_kfd_state *s)
{
	standin_free_bos();
	free(s->bos);
}

void workload_jobs(struct content_job *jobs, unsigned int gpus,
		   const struct gpucr_kfd_state *s,
		   struct gpucr_img_pages *pages, int dir, bool dump)
{
	unsigned int i;

	for (i = 0; i < gpus; i++) {
		jobs[i] = (struct content_job){
			.cfg = {
				.dir = dir,
				.gpu_id = i + 1,
				.slots = dump ? MAIN_SLOTS : TASK_SLOTS,
				.slot_size = dump ? MAIN_SLOT_SIZE :
						    TASK_SLOT_SIZE,
				.max_buffer = dump ? MAIN_BUFFER_SUM / gpus : 0,
				.uring = true,
			},
			.state = s,
			.pages = &pages[i],
		};
		pages[i].gpu_id = i + 1;
		gpucr_img_pages_name(pages[i].file, 1, i + 1);
	}
}

void workload_poison(const struct gpucr_kfd_state *s)
{
	unsigned int i;

	for (i = 0; i < s->n.num_bos; i++)
		memset(standin_cpu_of(s->bos[i].dmabuf_fd), 0xa5,
		       s->bos[i].size);
}

bool workload_check(const struct set *set, const struct gpucr_kfd_state *s)
{
	uint64_t i, j;

	for (i = 0; i < s->n.num_bos; i++) {
		const uint64_t *cpu = standin_cpu_of(s->bos[i].dmabuf_fd);

		for (j = 0; j < s->bos[i].size / sizeof(*cpu); j++) {
			if (cpu[j] == pattern(set, i, j))
				continue;
			fprintf(stderr, "mismatch: BO %llu at %llu\n",
				(unsigned long long)i,
				(unsigned long long)j * 8);
			return false;
		}
	}
	return true;
}
