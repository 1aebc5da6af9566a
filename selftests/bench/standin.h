/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A stand-in for libdrm_amdgpu: buffer objects are memory, an "SDMA engine"
 * is a thread per context that copies by memcpy and fills by memset, at a
 * settable rate. Linked in front of the real library, so that the copy engine's
 * own objects run on it.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A BO whose content is at *cpu. Returns what stands for its dma-buf: a number,
 * no descriptor. Ends the program where there is no memory.
 */
int standin_bo(size_t size, void **cpu);
void *standin_cpu_of(int fd);
/* Frees all BOs. */
void standin_free_bos(void);

/* Bytes per second that one engine writes at most; 0: as fast as it can. */
void standin_set_rate(uint64_t bytes_per_s);
/* All engines stand still, or go again. */
void standin_hang(bool on);
/* Bytes that all engines have copied; what they filled is no part of it. */
uint64_t standin_copied(void);
/* CPU seconds that all engines have used. */
double standin_cpu(void);

#endif
