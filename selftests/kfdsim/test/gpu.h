/* SPDX-License-Identifier: GPL-2.0-only */
/* A GPU through libdrm_amdgpu, and KTAP. */
#ifndef KFDSIM_TEST_GPU_H
#define KFDSIM_TEST_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <amdgpu.h>
#include <amdgpu_drm.h>

#define PAGE		4096UL
#define MIB		(1024UL * 1024)
#define POISON		0xa5

/* SDMA 4 packets. */
#define SDMA_NOP	0x00000000
#define SDMA_COPY	0x00000001
#define SDMA_WRITE	0x00000002
#define SDMA_FENCE	0x00000005
#define SDMA_POLL_EQ	(0x80000008 | 3U << 28)
#define SDMA_ADD64	(0x0000000a | 47U << 25)
#define SDMA_FILL_DW	(0x0000000b | 2U << 30)
#define SDMA_TIMESTAMP	0x0000020d
/* One dword of a compute ring. */
#define PM4_NOP		0xffff1002

/* canary: tests that can provoke their own failure do so. */
struct gpu {
	bool canary;
	int fd;
	amdgpu_device_handle dev;
	amdgpu_context_handle ctx;
	struct buf *ib;
};

struct buf {
	amdgpu_bo_handle bo;
	amdgpu_va_handle va_handle;
	uint64_t va;
	uint64_t size;
	uint8_t *cpu;
	bool user;
};

/* Each prints the reason as a KTAP comment where it fails. */
bool gpu_open(struct gpu *g);
void gpu_close(struct gpu *g);
bool gpu_new_ctx(struct gpu *g);
struct buf *buf_new(struct gpu *g, uint32_t domain, uint64_t size);
struct buf *buf_user(struct gpu *g, uint64_t size);
void buf_free(struct gpu *g, struct buf *b);

/*
 * Run packets on an engine, or on the first SDMA ring, and wait. 0; -errno of the submission, or of the wait when the
 * submission went through (*waited is set then, where given).
 */
int gpu_run_on(struct gpu *g, uint32_t engine, uint32_t ring,
	       const uint32_t *dw, unsigned int n, bool *waited);
int gpu_run(struct gpu *g, const uint32_t *dw, unsigned int n, bool *waited);
int gpu_copy(struct gpu *g, uint64_t dst, uint64_t src, uint32_t count);
uint64_t gpu_vram_used(struct gpu *g);

void pattern_fill(void *p, size_t n, uint32_t seed);
/* Offset of the first byte that differs, or -1. */
long pattern_check(const void *p, size_t n, uint32_t seed);
bool all_bytes(const void *p, size_t n, uint8_t value);

bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "why" and false where cond is false. */
#define CHECK(cond) \
	do { if (!(cond)) return fail("%s:%d: %s", __func__, __LINE__, #cond); } while (0)

struct test {
	const char *name;
	bool (*run)(struct gpu *g);
};

/* A program that is there to be killed. */
int copy_for_ever(void);

extern const struct test place_tests[], share_tests[], sdma_tests[], compute_tests[], gfx_tests[],
			 rate_tests[];

#endif
