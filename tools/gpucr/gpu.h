/* SPDX-License-Identifier: GPL-2.0-only */
/* GPUs: KFD ids and DRM devices, joined through the topology. */
#ifndef GPU_H
#define GPU_H

#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

#include "args.h"

/* GPUs in the topology; 0 where there is none. */
size_t gpu_count(void);
/* KFD id of the DRM device with that minor; 0 where it has none. */
uint32_t gpu_of_minor(uint32_t dev_minor);
/* DRM driver of the first GPU, for KFD has no name of its own; or "". */
void gpu_driver(char *name, size_t size);
/* Refuses a gpu key that names no GPU of the topology; exit status. */
int gpu_check(const struct args *args);
/* Member "gpu": the id, null for 0. */
void gpu_add(struct json_object *row, uint32_t gpu_id);

#endif
