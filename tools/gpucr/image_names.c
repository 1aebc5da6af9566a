// SPDX-License-Identifier: GPL-2.0-only
/* Names and sums of what images hold. */
#include <stdio.h>

#include <gpucr_kfdpriv.h>

#include "image.h"
#include "kfd.h"
#include "kfdoffset.h"

const char *image_heap(uint32_t alloc_flags)
{
	if (alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
		return "vram";
	if (alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT)
		return "gtt";
	if (alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		return "userptr";
	if (alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return "doorbell";
	if (alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return "mmio";
	return "unknown";
}

const char *image_vma_kind(const struct gpucr_img_vma *v)
{
	/* By the two upper bits of the offset, as KFD has them. */
	static const char * const of_kfd[] = {
		"kfd", "mmio", "events", "doorbell",
	};

	if (v->kind == GPUCR_IMG_VMA_RENDER)
		return "bo";
	return of_kfd[v->offset >> GPUCR_KFD_OFFSET_TYPE_SHIFT];
}

const char *image_event_type(uint32_t type)
{
	static const char * const names[] = {
		[KFD_IOC_EVENT_SIGNAL] = "signal",
		[KFD_IOC_EVENT_NODECHANGE] = "node-change",
		[KFD_IOC_EVENT_DEVICESTATECHANGE] = "device-state",
		[KFD_IOC_EVENT_HW_EXCEPTION] = "hw-exception",
		[KFD_IOC_EVENT_SYSTEM_EVENT] = "system",
		[KFD_IOC_EVENT_DEBUG_EVENT] = "debug",
		[KFD_IOC_EVENT_PROFILE_EVENT] = "profile",
		[KFD_IOC_EVENT_QUEUE_EVENT] = "queue",
		[KFD_IOC_EVENT_MEMORY] = "memory",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] :
							 "unknown";
}

const char *image_kfd_kind(const struct gpucr_img_kfd *k)
{
	if (k->alias_of)
		return "alias";
	return k->no_gpu ? "no-gpu" : "process";
}

void image_gfx(uint32_t version, char text[24])
{
	/* Major, minor, stepping; the last two are one hexadecimal digit. */
	snprintf(text, 24, "gfx%u%x%x", version / 10000, version / 100 % 100,
		 version % 100);
}

void image_pci(const struct gpucr_img_device *d, char text[24])
{
	snprintf(text, 24, "%04x:%02x:%02x.%x", d->domain,
		 d->location_id >> 8 & 0xff, d->location_id >> 3 & 0x1f,
		 d->location_id & 7);
}

void image_count_objects(const struct gpucr_img_kfd *k,
			 struct image_objects *ret)
{
	struct gpucr_kfdpriv p = {
		.data = k->priv,
		.size = k->priv_size,
		.num_devices = k->num_devices,
		.num_bos = k->num_bos,
		.num_objects = k->num_objects,
	};
	struct gpucr_kfdpriv_object o = { 0 };

	*ret = (struct image_objects){ 0 };
	if (gpucr_kfdpriv_open(&p, k->bo_record_size))
		return;
	while (gpucr_kfdpriv_next(&p, &o) > 0) {
		ret->queues += o.type == GPUCR_KFDPRIV_QUEUE;
		ret->events += o.type == GPUCR_KFDPRIV_EVENT;
		ret->ranges += o.type == GPUCR_KFDPRIV_SVM;
	}
}

uint64_t image_heap_bytes(const struct gpucr_img_kfd *k, uint32_t flag,
			  size_t *num)
{
	uint64_t sum = 0;
	size_t i;

	if (num)
		*num = 0;
	for (i = 0; i < k->num_bos; i++) {
		if (!(k->bos[i].alloc_flags & flag))
			continue;
		sum += k->bos[i].size;
		if (num)
			(*num)++;
	}
	return sum;
}
