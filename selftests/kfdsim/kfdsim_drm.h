/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the DRM side share. */
#ifndef KFDSIM_DRM_H
#define KFDSIM_DRM_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <drm/amdgpu_drm.h>

#include "kfdsim.h"

#define KFDSIM_PCI_VENDOR	0x1002
#define KFDSIM_PCI_SUBSYSTEM	0x0c34
#define KFDSIM_PCI_DOMAIN	1		/* 0 is the machine's own */
#define KFDSIM_PCI_CLASS	0x038000	/* display controller, not VGA */

/* GPU virtual addresses: 48 bits, both halves folded into one range. */
#define KFDSIM_VA_BITS		48
#define KFDSIM_VA_MASK		GENMASK_ULL(KFDSIM_VA_BITS - 1, 0)
#define KFDSIM_VA_RESERVED	0x200000ULL	/* at the bottom */
#define KFDSIM_VA_TOP		0x200000ULL	/* reserved at the top */
#define KFDSIM_VA_HOLE_START	0x0000800000000000ULL
#define KFDSIM_VA_HOLE_END	0xffff800000000000ULL

#define KFDSIM_DMA_RINGS	2
#define KFDSIM_COMPUTE_RINGS	8
#define KFDSIM_GFX_RINGS	1
#define KFDSIM_RINGS		(KFDSIM_DMA_RINGS + KFDSIM_COMPUTE_RINGS + \
				 KFDSIM_GFX_RINGS)
#define KFDSIM_FENCES		32		/* remembered per ring */

/* Memory on the chip that shaders share and count with. */
#define KFDSIM_ON_CHIP		(AMDGPU_GEM_DOMAIN_GDS | AMDGPU_GEM_DOMAIN_GWS | \
				 AMDGPU_GEM_DOMAIN_OA)

struct pci_driver;
struct kfdsim_cs;
struct kfdsim_ctx;

/**
 * struct kfdsim_gem - a BO with what only GEM ioctls ask of it
 * @bo: what everybody sees
 * @alignment: as asked for
 * @lock: protects the metadata below
 */
struct kfdsim_gem {
	struct kfdsim_bo bo;
	u64 alignment;
	struct mutex lock;		/* see above */
	u64 tiling;
	u64 meta_flags;
	u32 meta_size;
	u32 meta[64];
};

#define bo_to_kfdsim_gem(b) container_of(b, struct kfdsim_gem, bo)

/* Index in kfdsim_fpriv.refs: dense enough, and no two BOs share it. */
static inline unsigned long kfdsim_ref_key(const struct kfdsim_bo *bo)
{
	static_assert(sizeof(struct kfdsim_gem) >= 256);
	return (unsigned long)bo >> 8;
}

/**
 * struct kfdsim_boref - what one DRM file knows of one BO
 * @bo: the BO; the handles hold its references
 * @handles: open handles of it; protected by kfdsim_fpriv.lock
 * @handle: a handle of it, perhaps closed since; protected by
 *	kfdsim_fpriv.import_lock
 * @mappings: its GEM_VA mappings; protected by kfdsim_vm.lock
 */
struct kfdsim_boref {
	struct kfdsim_bo *bo;
	unsigned int handles;
	u32 handle;
	struct list_head mappings;
};

/**
 * struct kfdsim_fpriv - one open of a render or card node
 * @gpu: whose
 * @vm: its address space, one reference
 * @lock: protects @refs and kfdsim_boref.handles; taken before kfdsim_vm.lock
 * @refs: kfdsim_ref_key() to struct kfdsim_boref
 * @import_lock: held over a PRIME import, so that one BO gets one handle;
 *	taken before DRM's locks and @lock
 * @ctxs: id to struct kfdsim_ctx, by its own lock
 * @bo_lists: id to struct kfdsim_bo_list, by its own lock
 * @fault_va: address of the last fault of a submission, 0 for none
 * @vmid_reserved: RESERVE_VMID was asked for
 * @inflight: submissions that are not over
 * @unlisted: those of them that named no BOs
 * @closing: they are to end soon
 */
struct kfdsim_fpriv {
	struct kfdsim_gpu *gpu;
	struct kfdsim_vm *vm;
	struct mutex lock;		/* see above */
	struct xarray refs;
	struct mutex import_lock;	/* see above */
	struct xarray ctxs;
	struct xarray bo_lists;
	atomic64_t fault_va;
	bool vmid_reserved;
	atomic_t inflight;
	atomic_t unlisted;
	bool closing;
};

/* pci.c: one root bus per GPU in PCI domain 1, so that each has a bus number. */
int kfdsim_pci_add(unsigned int index);
void kfdsim_pci_remove(unsigned int index);
/* Index of the GPU whose function this is, -1 for a real device. */
int kfdsim_pci_index(struct pci_dev *pdev);

/* gpu.c */
extern struct pci_driver kfdsim_pci_driver;
/* 100 MHz, as the clock of the real one. */
u64 kfdsim_gpu_clock(void);

/* bo.c */
extern const struct drm_gem_object_funcs kfdsim_gem_funcs;
int kfdsim_bo_init(void);
void kfdsim_bo_exit(void);
/* Read or write len bytes at off, which must lie within the BO. */
int kfdsim_bo_rw(struct kfdsim_bo *bo, u64 off, void *buf, size_t len,
		 bool write);
const void *kfdsim_bo_fresh_page(const struct kfdsim_bo *bo);

/* copy.c: page-wise access of BO contents, userptr included. */
void kfdsim_copy_words(void *dst, const void *src, size_t len);
void kfdsim_fill_poison(void *dst);
int kfdsim_bo_copy(struct kfdsim_bo *dst, u64 dst_off, struct kfdsim_bo *src,
		   u64 src_off, size_t len);
int kfdsim_bo_fill(struct kfdsim_bo *dst, u64 off, size_t len, u32 pattern);
int kfdsim_bo_add64(struct kfdsim_bo *bo, u64 off, u64 value);

/* place.c */
int kfdsim_place_new(struct kfdsim_bo *bo, u32 domains);
void kfdsim_place_drop(struct kfdsim_bo *bo);
int kfdsim_place_use(struct kfdsim_bo *bo);

/* prime.c */
int kfdsim_prime_fd_to_handle(struct drm_device *dev, struct drm_file *file,
			      int fd, u32 *handle);
struct dma_buf *kfdsim_prime_export(struct drm_gem_object *obj, int flags);
/* Create a handle and remember it for later imports. */
int kfdsim_handle_create(struct drm_file *file, struct kfdsim_bo *bo,
			 u32 *handle);

/* vm.c */
void kfdsim_vm_check_leaks(void);
int kfdsim_vm_check_range(u64 va, u64 size);
int kfdsim_vm_gem_map(struct kfdsim_vm *vm, struct kfdsim_boref *ref,
		      u64 bo_offset, u64 va, u64 size, u64 flags);
int kfdsim_vm_gem_unmap(struct kfdsim_vm *vm, struct kfdsim_boref *ref, u64 va);
void kfdsim_vm_gem_unmap_all(struct kfdsim_vm *vm, struct kfdsim_boref *ref);
u32 kfdsim_vm_gem_list(struct kfdsim_vm *vm, struct kfdsim_boref *ref,
		       struct drm_amdgpu_gem_vm_entry *entries, u32 max);
/* Unmap whatever lies in the range, splitting what reaches over its ends. */
int kfdsim_vm_clear(struct kfdsim_vm *vm, u64 va, u64 size);

/**
 * struct kfdsim_seg - a stretch of GPU addresses within one mapping
 * @bo: with a reference; NULL for a PRT mapping (reads 0, ignores writes)
 * @off: where in the BO
 * @len: how far
 */
struct kfdsim_seg {
	struct kfdsim_bo *bo;
	u64 off;
	u64 len;
};

/* Translate up to len bytes at va; release with kfdsim_seg_put(). -EFAULT. */
int kfdsim_vm_seg(struct kfdsim_vm *vm, u64 va, u64 len, bool write,
		  struct kfdsim_seg *seg);
void kfdsim_seg_put(struct kfdsim_seg *seg);

/* gem.c */
int kfdsim_gem_open(struct drm_gem_object *obj, struct drm_file *file);
void kfdsim_gem_close(struct drm_gem_object *obj, struct drm_file *file);
void kfdsim_gem_release_refs(struct kfdsim_fpriv *fp);

/* gem_list.c */
int kfdsim_gem_mapping_info(struct kfdsim_fpriv *fp, struct kfdsim_bo *bo,
			    struct kfdsim_gem_op *args);

#define KFDSIM_IOCTL(name) \
	int name(struct drm_device *dev, void *data, struct drm_file *file)
KFDSIM_IOCTL(kfdsim_gem_create_ioctl);
KFDSIM_IOCTL(kfdsim_gem_mmap_ioctl);
KFDSIM_IOCTL(kfdsim_gem_userptr_ioctl);
KFDSIM_IOCTL(kfdsim_gem_wait_idle_ioctl);
KFDSIM_IOCTL(kfdsim_gem_metadata_ioctl);
KFDSIM_IOCTL(kfdsim_gem_va_ioctl);
KFDSIM_IOCTL(kfdsim_gem_op_ioctl);
KFDSIM_IOCTL(kfdsim_vm_ioctl);
KFDSIM_IOCTL(kfdsim_gem_list_handles_ioctl);
KFDSIM_IOCTL(kfdsim_info_ioctl);
KFDSIM_IOCTL(kfdsim_ctx_ioctl);
KFDSIM_IOCTL(kfdsim_bo_list_ioctl);
KFDSIM_IOCTL(kfdsim_cs_ioctl);
KFDSIM_IOCTL(kfdsim_wait_cs_ioctl);
KFDSIM_IOCTL(kfdsim_wait_fences_ioctl);
KFDSIM_IOCTL(kfdsim_fence_to_handle_ioctl);

/**
 * struct kfdsim_ring_state - submissions of one context to one ring
 * @ctx: whose
 * @next: number that the next submission gets; the first is 1
 * @done: of the last that is over
 * @error: outcome of the last KFDSIM_FENCES that are over
 * @queue: of struct kfdsim_cs, by number, those that have not begun
 * @work: executes them
 */
struct kfdsim_ring_state {
	struct kfdsim_ctx *ctx;
	u64 next;
	u64 done;
	int error[KFDSIM_FENCES];
	struct list_head queue;
	struct work_struct work;
};

/**
 * struct kfdsim_ctx - a submission context
 * @lock: protects all below but works
 * @ring: by kfdsim_ctx_ring()
 * @guilty: a submission failed; further ones are -ECANCELED, as after a reset
 */
struct kfdsim_ctx {
	struct kref ref;
	spinlock_t lock;		/* see above */
	struct kfdsim_ring_state ring[KFDSIM_RINGS];
	bool guilty;
	u32 pstate;
};

/* ctx.c */
struct kfdsim_ctx *kfdsim_ctx_get(struct kfdsim_fpriv *fp, u32 id);
void kfdsim_ctx_put(struct kfdsim_ctx *ctx);
void kfdsim_ctx_release_all(struct kfdsim_fpriv *fp);
/* Index in kfdsim_ctx.ring; -EINVAL: no such engine, instance or ring. */
int kfdsim_ctx_ring(const struct kfdsim_gpu *gpu, u32 ip_type, u32 instance,
		    u32 ring);
/* Number a submission and put it at the end; false: KFDSIM_FENCES are there. */
bool kfdsim_ctx_push(struct kfdsim_ring_state *r, struct kfdsim_cs *cs);
/* Take the first, or NULL. */
struct kfdsim_cs *kfdsim_ctx_pop(struct kfdsim_ring_state *r);
/* It is over. */
void kfdsim_ctx_done(struct kfdsim_ctx *ctx, u32 ring, u64 seq, int error);
/*
 * Outcome of submission seq; KFDSIM_BUSY; -EINVAL where it was never made.
 */
#define KFDSIM_BUSY	1
int kfdsim_ctx_result(struct kfdsim_ctx *ctx, u32 ring, u64 seq);
/* The last number that was given. */
u64 kfdsim_ctx_last(struct kfdsim_ctx *ctx, u32 ring);

/**
 * struct kfdsim_bo_list - BOs named for a submission, a reference each
 */
struct kfdsim_bo_list {
	struct kref ref;
	unsigned int n;
	struct kfdsim_bo *bo[];
};

/**
 * struct kfdsim_cs_chunk - one chunk of a submission
 * @id: AMDGPU_CHUNK_ID_*
 * @dw: its length in dwords
 * @data: a copy of it
 */
struct kfdsim_cs_chunk {
	u32 id;
	u32 dw;
	void *data;
};

/**
 * struct kfdsim_cs - one submission
 * @ref: of the ioctl and of the worker
 * @fp: where it was made; valid while it is in flight
 * @ctx: with a reference
 * @mm: whose address space user memory is in; mm_count is held
 * @lead: leader of the process that made it, with a reference
 * @list: BOs named, with a reference; may be NULL
 * @chunks: read from user space
 * @nchunks: how many, some of which may not be read yet
 * @ibs: IB chunks seen
 * @ring: of the last of them, by kfdsim_ctx_ring()
 * @uf_bo: where the number of the submission is to be written; may be NULL
 * @uf_offset: and at which byte
 * @ahead: see struct kfdsim_pm4
 * @seq: its number
 * @node: in kfdsim_ring_state.queue
 */
struct kfdsim_cs {
	struct kref ref;
	struct kfdsim_fpriv *fp;
	struct kfdsim_ctx *ctx;
	struct mm_struct *mm;
	struct task_struct *lead;
	struct kfdsim_bo_list *list;
	struct kfdsim_cs_chunk *chunks;
	u32 nchunks;
	unsigned int ibs;
	u32 ring;
	struct kfdsim_bo *uf_bo;
	u32 uf_offset;
	u32 ahead;
	u64 seq;
	struct list_head node;
};

/**
 * struct kfdsim_fence - a submission that is waited for
 */
struct kfdsim_fence {
	struct kfdsim_ctx *ctx;		/* with a reference */
	u32 ring;
	u64 seq;
};

/* cs_run.c */
int kfdsim_cs_init(void);
void kfdsim_cs_exit(void);
void kfdsim_cs_init_ring(struct kfdsim_ring_state *r);
/*
 * Hand a submission to the workers, once its ring has room; numbers it.
 * -ERESTARTSYS. The caller keeps its reference.
 */
int kfdsim_cs_start(struct kfdsim_cs *cs);
void kfdsim_cs_put(struct kfdsim_cs *cs);
/*
 * Wait for all of n submissions, or for one, until timeout_ns, a point in time.
 * Return: 0; the error of the one that *first is; KFDSIM_BUSY, timed out;
 * -ERESTARTSYS.
 */
int kfdsim_fences_wait(struct kfdsim_fence *f, u32 n, bool all, u64 timeout_ns,
		       u32 *first);
/*
 * Wait until no submission uses a BO, or for NULL until none of the file's is in
 * flight. 0, KFDSIM_BUSY, or -ERESTARTSYS when killed.
 */
int kfdsim_cs_wait_bo(struct kfdsim_fpriv *fp, struct kfdsim_bo *bo,
		      u64 timeout_ns);
/* The end of a file: what is in flight is stopped, and waited for. */
void kfdsim_cs_close(struct kfdsim_fpriv *fp);

/* bo_list.c */
int kfdsim_bo_list_create(struct drm_file *file,
			  const struct drm_amdgpu_bo_list_in *in,
			  struct kfdsim_bo_list **out);
struct kfdsim_bo_list *kfdsim_bo_list_get(struct kfdsim_fpriv *fp, u32 id);
void kfdsim_bo_list_put(struct kfdsim_bo_list *list);
void kfdsim_bo_list_release_all(struct kfdsim_fpriv *fp);

/* syncobj.c */
int kfdsim_syncobj_wait(struct drm_file *file, u32 handle, u64 point, u64 flags);
int kfdsim_syncobj_wait_user(struct drm_file *file, u64 handles, u32 n);
int kfdsim_syncobj_exists(struct drm_file *file, u32 handle);
int kfdsim_syncobj_signal(struct drm_file *file, u32 handle, u64 point);

/* rate.c */
void kfdsim_rate_wait(struct kfdsim_gpu *gpu, u64 bytes);

#endif
