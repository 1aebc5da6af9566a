/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kfdsim: a simulated AMD GPU (KFD, topology, DRM render node) for tests.
 *
 * What the DRM side (pci.c, gpu.c, bo.c, vm.c, sdma.c, info.c, gem.c, cs.c)
 * and the KFD side (kfd_*.c) know of each other. Everything else is private
 * to a file or to kfdsim_drm.h and kfdsim_kfd.h.
 */
#ifndef KFDSIM_H
#define KFDSIM_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <drm/drm_device.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>

#define KFDSIM_MAX_GPUS	64
/* Content of VRAM that nobody has written, and of all that was freed. */
#define KFDSIM_POISON	0xa5
/* In blocks of which KFD counts what is left of VRAM. */
#define KFDSIM_KFD_ALIGN	(2ULL << 20)

struct pci_dev;
struct dma_buf;

/**
 * struct kfdsim_model - figures of one kind of GPU
 *
 * Constant tables in model.c; names and units as in KFD's topology.
 */
struct kfdsim_model {
	const char *name;		/* "mi210" */
	const char *asic_name;		/* topology "name" file */
	const char *marketing_name;
	u32 gfx_target_version;
	u16 device_id;
	u8 revision;
	u32 family;			/* AMDGPU_FAMILY_* */
	u32 chip_external_rev;
	u32 simd_count;
	u32 simd_per_cu;
	u32 max_waves_per_simd;
	u32 lds_size_in_kb;
	u32 num_gws;
	u32 wave_front_size;
	u32 array_count;
	u32 simd_arrays_per_engine;
	u32 cu_per_simd_array;
	u32 max_slots_scratch_cu;
	u32 num_sdma_engines;
	u32 num_sdma_xgmi_engines;
	u32 num_sdma_queues_per_engine;
	u32 num_cp_queues;
	u32 max_engine_clk_fcompute;
	u32 fw_version;
	u32 capability;			/* SVM bit clear; see kfd_svm.c */
	u32 debug_prop;
	u32 sdma_fw_version;
	u32 sdma_ip;			/* major * 100 + minor */
	u32 num_xcc;
	u32 gds_size;			/* bytes */
	bool gfx_ring;			/* else it can only compute */
	u32 l1_kb;			/* one a CU */
	u32 scalar_kb;
	u32 instruction_kb;
	u32 shared_caches;		/* of each of these two */
	u32 array_kb;			/* one a shader array; 0: none */
	u32 l2_kb;
	u32 l3_kb;			/* 0: none */
	u32 mem_width;
	u32 mem_clk;
	u32 pcie_mbps;
	u32 xgmi_mbps;
	u32 cp_mqd_size;		/* bytes of a compute queue's MQD */
	u32 sdma_mqd_size;
	u64 vram_size;			/* default, bytes */
};

#define KFDSIM_CAP_SVM	0x08000000U

const struct kfdsim_model *kfdsim_model_find(const char *name);
const struct kfdsim_model *kfdsim_model_near(u32 gfx_target_version);

/**
 * struct kfdsim_spec - one GPU of the machine, before it exists
 * @model: what it is
 * @order: its turn to get a DRM minor
 * @gap: DRM minors left out before it
 * @board: GPUs of one board are partitions of one device
 * @partition: which of them it is
 * @domain: PCI domain
 * @bus: PCI bus
 * @devfn: PCI device and function
 * @gpu_id: KFD's 16-bit id, never 0
 * @unique_id: of the board
 * @hive_id: GPUs with the same, if it is not 0, are joined by xGMI
 * @vram_size: bytes
 */
struct kfdsim_spec {
	const struct kfdsim_model *model;
	unsigned int order;
	unsigned int gap;
	unsigned int board;
	unsigned int partition;
	u16 domain;
	u8 bus;
	u8 devfn;
	u32 gpu_id;
	u64 unique_id;
	u64 hive_id;
	u64 vram_size;
};

/* machine.c: fixed from init to exit */
int kfdsim_machine_init(void);
void kfdsim_machine_exit(void);
unsigned int kfdsim_machine_gpus(void);
const struct kfdsim_spec *kfdsim_machine_spec(unsigned int index);

enum kfdsim_leaf_dir {
	KFDSIM_MEM_BANKS,
	KFDSIM_CACHES,
	KFDSIM_IO_LINKS,
	KFDSIM_P2P_LINKS,
	KFDSIM_LEAF_DIRS,
};

/**
 * struct kfdsim_leaf - a directory of a captured node that has properties only
 * @dir: in which
 * @id: its name
 * @text: the properties
 */
struct kfdsim_leaf {
	enum kfdsim_leaf_dir dir;
	u32 id;
	const char *text;
};

/**
 * struct kfdsim_node - a node of a captured topology
 * @id: its name
 * @gpu: index of the GPU; -1 for a CPU
 * @gpu_id: 0 for a CPU, and where the capture has none
 * @name: may be empty
 * @props: text of its properties
 * @leaves: what its directories hold
 * @num_leaves: how many
 */
struct kfdsim_node {
	u32 id;
	int gpu;
	u32 gpu_id;
	const char *name;
	const char *props;
	const struct kfdsim_leaf *leaves;
	unsigned int num_leaves;
};

/* capture.c; no nodes where the topology is one of our own */
int kfdsim_capture_load(const char *path);
int kfdsim_capture_specs(struct kfdsim_spec *specs, unsigned int n);
void kfdsim_capture_drop(void);
const struct kfdsim_node *kfdsim_capture_nodes(unsigned int *n);

/* cwsr.c */
u32 kfdsim_ctl_stack_size(const struct kfdsim_model *m);
u32 kfdsim_cwsr_size(const struct kfdsim_model *m);
u64 kfdsim_cwsr_total(const struct kfdsim_model *m);

/**
 * struct kfdsim_gpu - one simulated GPU
 * @drm: the DRM device, driver name "amdgpu"
 * @pdev: its function on the software PCI bus
 * @model: what it is
 * @index: position, 0-based; also the order in the topology
 * @gpu_id: KFD's 16-bit id, never 0
 * @unique_id: of its board
 * @hive_id: see struct kfdsim_spec
 * @vram_size: bytes that VRAM BOs may use
 * @gtt_size: bytes that GTT BOs may use
 * @place_lock: protects where BOs are: the lists, kfdsim_bo.place and .pins,
 *	changes of what is used, and what may be moved
 * @in_vram: BOs that are there, those used longest ago first
 * @in_gtt: the same for GTT
 * @in_memory: BOs moved out of it
 * @vram_used: bytes that BOs use
 * @gtt_used: the same for GTT
 * @moved_out: the same for those in memory, @gtt_size at most
 * @evictions: BOs that had to go, as the INFO ioctl tells
 * @bytes_moved: the same
 * @move_us: how long submissions may still move others
 * @move_at: when that was counted, in microseconds
 * @kfd_vram: bytes of VRAM that KFD gave away
 * @kfd_vram_aligned: the same, each buffer in blocks of KFDSIM_KFD_ALIGN
 * @kfd_gtt: the same for GTT
 * @sdma_packets: SDMA packets executed, user queues and DRM submissions
 * @sdma_bytes: bytes that SDMA packets have written
 * @pm4_packets: PM4 packets executed, those in indirect buffers too
 * @pm4_bytes: bytes that PM4 packets and the signals of AQL packets wrote
 * @aql_packets: AQL packets executed
 * @count_overruns: copies whose COUNT reached one byte past a power-of-two
 *	page-multiple length (a known bug of a client, tolerated)
 * @rate_lock: protects @rate_free
 * @rate_free: when its copies so far are over, if their rate is limited
 */
struct kfdsim_gpu {
	struct drm_device drm;
	struct pci_dev *pdev;
	const struct kfdsim_model *model;
	unsigned int index;
	u32 gpu_id;
	u64 unique_id;
	u64 hive_id;
	u64 vram_size;
	u64 gtt_size;
	spinlock_t place_lock;		/* see above */
	struct list_head in_vram;
	struct list_head in_gtt;
	struct list_head in_memory;
	atomic64_t vram_used;
	atomic64_t gtt_used;
	atomic64_t moved_out;
	atomic64_t evictions;
	atomic64_t bytes_moved;
	s64 move_us;
	u64 move_at;
	atomic64_t kfd_vram;
	atomic64_t kfd_vram_aligned;
	atomic64_t kfd_gtt;
	atomic64_t sdma_packets;
	atomic64_t sdma_bytes;
	atomic64_t pm4_packets;
	atomic64_t pm4_bytes;
	atomic64_t aql_packets;
	atomic64_t count_overruns;
	spinlock_t rate_lock;		/* see above */
	u64 rate_free;
};

#define drm_to_kfdsim_gpu(d) container_of(d, struct kfdsim_gpu, drm)

/*
 * As many as the machine has; NULL where one is taken away, which happens only
 * while no process of KFD's exists, under kfdsim_processes_hold(). gpu.c
 */
extern struct kfdsim_gpu *kfdsim_gpus[KFDSIM_MAX_GPUS];
extern unsigned int kfdsim_num_gpus;
int kfdsim_gpu_plug(unsigned int index, bool there);
/* For those who only look: no GPU is taken away between these. kfd_hotplug.c */
void kfdsim_gpus_hold(void);
void kfdsim_gpus_unhold(void);

struct kfdsim_gpu *kfdsim_gpu_by_id(u32 gpu_id);
int kfdsim_gpus_init(void);
void kfdsim_gpus_exit(void);
/* Minor number of the render node. */
int kfdsim_gpu_render_minor(const struct kfdsim_gpu *gpu);
/* PCI location as the topology gives it: bus << 8 | devfn, and domain. */
u32 kfdsim_gpu_location(const struct kfdsim_gpu *gpu);
u32 kfdsim_gpu_domain(const struct kfdsim_gpu *gpu);

/**
 * struct kfdsim_bo - a buffer object: VRAM, GTT or user memory
 * @base: GEM object; shared by the KFD and DRM sides, prime export included
 * @gpu: device that it belongs to
 * @domain: where it was made: AMDGPU_GEM_DOMAIN_VRAM or _GTT;
 *	AMDGPU_GEM_DOMAIN_CPU for userptr; _GDS, _GWS or _OA, which is memory
 *	that nobody reaches
 * @preferred: where it may be just as well: of these one or more
 * @place: where it is: @domain, or evicted AMDGPU_GEM_DOMAIN_GTT or _CPU
 * @lru: in the GPU's list of that place
 * @pins: reasons not to evict it
 * @users: KFD buffers that are this BO and are mapped on a GPU (kfd_room.c)
 * @gem_flags: AMDGPU_GEM_CREATE_*
 * @pages: page index to struct page, made on first use and filled with
 *	KFDSIM_POISON (VRAM) or 0 (GTT); empty for userptr
 * @user_addr: first address of a userptr BO
 * @user_mm: its address space (mm_count held); NULL otherwise
 * @userptr: user memory: no pages, no mmap, no export
 * @borrowed: pages of somebody else's: no mmap, no export, no poison
 * @written: called when a GPU has written to it; may be NULL; any context
 * @busy: submissions in flight that name it
 * @kfd_priv: for the KFD side
 */
struct kfdsim_bo {
	struct drm_gem_object base;
	struct kfdsim_gpu *gpu;
	u32 domain;
	u32 preferred;
	u32 place;
	struct list_head lru;
	unsigned int pins;
	struct list_head users;
	u64 gem_flags;
	struct xarray pages;
	unsigned long user_addr;
	struct mm_struct *user_mm;
	bool userptr;
	bool borrowed;
	void (*written)(struct kfdsim_bo *bo);
	atomic_t busy;
	void *kfd_priv;
};

#define gem_to_kfdsim_bo(o) container_of(o, struct kfdsim_bo, base)

/*
 * Create with one reference, dropped by kfdsim_bo_put(). size is rounded up
 * to pages. -ENOMEM where the GPU's memory is used up and none of it can be
 * evicted; -EINTR when killed while that is done. The mmap offset exists
 * from the start. Pages cost memory only when touched.
 */
struct kfdsim_bo *kfdsim_bo_create(struct kfdsim_gpu *gpu, u64 size, u32 domain,
				   u64 gem_flags);
struct kfdsim_bo *kfdsim_bo_create_userptr(struct kfdsim_gpu *gpu,
					   unsigned long addr, u64 size);
/* A BO of n pages that exist already, of which it takes references. */
struct kfdsim_bo *kfdsim_bo_create_borrowed(struct kfdsim_gpu *gpu,
					    struct page **pages, unsigned int n);
/*
 * place.c: keep a BO where it was made; get it back there, for mm, where evict
 * allows at the cost of others. -ENOMEM, -EINTR.
 */
int kfdsim_place_pin(struct kfdsim_bo *bo);
void kfdsim_place_unpin(struct kfdsim_bo *bo);
int kfdsim_place_back(struct kfdsim_bo *bo, bool evict,
		      const struct mm_struct *mm);

/* All of an address space, for mappings at the same addresses; no mmap. */
struct kfdsim_bo *kfdsim_bo_create_svm(struct kfdsim_gpu *gpu,
				       struct mm_struct *mm);

static inline void kfdsim_bo_get(struct kfdsim_bo *bo)
{
	drm_gem_object_get(&bo->base);
}

static inline void kfdsim_bo_put(struct kfdsim_bo *bo)
{
	drm_gem_object_put(&bo->base);
}

/* Byte offset for mmap() of the render node. */
u64 kfdsim_bo_mmap_offset(struct kfdsim_bo *bo);
/* Let file map the BO without a handle of it (what KFD does), and undo it. */
int kfdsim_bo_allow(struct kfdsim_bo *bo, struct drm_file *file);
void kfdsim_bo_revoke(struct kfdsim_bo *bo, struct drm_file *file);
/* Page that backs offset pgoff; made when absent. NULL: out of memory. */
struct page *kfdsim_bo_page(struct kfdsim_bo *bo, pgoff_t pgoff);
/* Page if somebody touched it, else NULL: it would read as new. */
struct page *kfdsim_bo_peek(struct kfdsim_bo *bo, pgoff_t pgoff);
/* New dma-buf descriptor in current's table (no O_CLOEXEC, as KFD); -errno. */
int kfdsim_bo_export_fd(struct kfdsim_bo *bo, int flags);
/* BO behind a dma-buf of ours, with a reference; NULL where it is not. */
struct kfdsim_bo *kfdsim_bo_from_dmabuf(struct dma_buf *buf);
/* xxh64 of the content, absent pages counted as new ones. Not userptr. */
u64 kfdsim_bo_digest(struct kfdsim_bo *bo);

/**
 * struct kfdsim_vm - GPU address space: one per DRM file, lent to KFD by
 *	ACQUIRE_VM
 * @lock: read while translating, write while mapping
 * @mappings: struct kfdsim_mapping by address, no overlap
 */
struct kfdsim_vm {
	struct kref ref;
	struct kfdsim_gpu *gpu;
	struct rw_semaphore lock;
	struct rb_root_cached mappings;
};

struct kfdsim_vm *kfdsim_vm_create(struct kfdsim_gpu *gpu);
void kfdsim_vm_get(struct kfdsim_vm *vm);
void kfdsim_vm_put(struct kfdsim_vm *vm);
/* VM of an open render node of ours, with a reference; NULL: not ours. */
struct kfdsim_vm *kfdsim_vm_from_file(struct file *filp);
struct drm_file *kfdsim_drm_file(struct file *filp);
struct kfdsim_gpu *kfdsim_gpu_from_file(struct file *filp);

/* Takes a reference of bo. -EINVAL on overlap or bad range. */
int kfdsim_vm_map(struct kfdsim_vm *vm, struct kfdsim_bo *bo, u64 bo_offset,
		  u64 va, u64 size, u64 flags);
/* Undo exactly one earlier map. -ENOENT where there is none at va. */
int kfdsim_vm_unmap(struct kfdsim_vm *vm, struct kfdsim_bo *bo, u64 va);
/*
 * Read or write through the GPU's eyes. Userptr mappings are reached by the
 * current address space, which must be the one that made them (ioctl caller,
 * or a kthread under kthread_use_mm()). -EFAULT: *fault_va tells where.
 */
int kfdsim_vm_rw(struct kfdsim_vm *vm, u64 va, void *buf, size_t len, bool write,
		 u64 *fault_va);

/**
 * struct kfdsim_sdma - one stream of packets being executed
 * @vm: address space of the packets
 * @gpu: whose counters move
 * @bytes: counter of what is written, one of @gpu's
 * @trap: called for an interrupt with its context id; may be NULL
 * @stop: asked between packets and at least every 64 KiB within a copy; true
 *	makes kfdsim_sdma_exec() return -EAGAIN; may be NULL
 * @priv: for trap and stop
 * @done: bytes of the current packet already moved, kept over -EAGAIN so that
 *	a packet stopped in its middle goes on there
 * @fault_va: where the last -EFAULT was
 */
struct kfdsim_sdma {
	struct kfdsim_vm *vm;
	struct kfdsim_gpu *gpu;
	atomic64_t *bytes;
	void (*trap)(struct kfdsim_sdma *s, u32 int_ctx);
	bool (*stop)(struct kfdsim_sdma *s);
	void *priv;
	u64 done;
	bool asked;		/* for a fault of the packet it stands at */
	int partial;		/* that fault: after half of the bytes */
	u64 fault_va;
};

/*
 * Execute the packet at dw, of which ndw dwords are available. Returns its
 * length in dwords; -EAGAIN: stopped, or a POLL_REGMEM is not satisfied, call
 * again with the same packet; -ENODATA: the packet is longer than ndw;
 * -EINVAL: no such packet; -EFAULT. Packets of gfx9 (SDMA 4): NOP (with
 * count), COPY_LINEAR (and broadcast), WRITE, FENCE, TRAP, POLL_REGMEM,
 * ATOMIC (add64), CONST_FILL, TIMESTAMP.
 */
int kfdsim_sdma_exec(struct kfdsim_sdma *s, const u32 *dw, unsigned int ndw);

/*
 * What PM4 and AQL packets share with it, for the packet that s stands at. The
 * first two stop and go on as kfdsim_sdma_exec() does; the others are at once.
 */
int kfdsim_sdma_copy(struct kfdsim_sdma *s, u64 src, u64 dst, u64 len);
int kfdsim_sdma_fill(struct kfdsim_sdma *s, u64 dst, u64 len, u32 pattern);
int kfdsim_sdma_put(struct kfdsim_sdma *s, u64 va, const void *buf, size_t len);
int kfdsim_sdma_add64(struct kfdsim_sdma *s, u64 va, u64 value);
/* The comparison of a waiting packet; functions 1 to 6: < <= == != >= > */
bool kfdsim_sdma_holds(u32 func, u32 value, u32 ref);

#define KFDSIM_PM4_IBS			2	/* called by each other */
#define KFDSIM_PM4_INDIRECT_BUFFER	0x3f	/* its opcode */

/**
 * struct kfdsim_pm4_ib - an indirect buffer being executed
 * @va: its address
 * @dw: its length in dwords
 * @pos: dwords behind us
 */
struct kfdsim_pm4_ib {
	u64 va;
	u32 dw;
	u32 pos;
};

/* Where a stream stands below its ring: what a checkpoint must keep of it. */
struct kfdsim_pm4_at {
	u32 depth;
	struct kfdsim_pm4_ib ib[KFDSIM_PM4_IBS];
};

/**
 * struct kfdsim_pm4 - one stream of PM4 packets being executed
 * @s: address space, interrupt, stop, and what is done of the current packet
 * @progress: counts packets in indirect buffers; may be NULL
 * @at: the indirect buffers that it is in
 * @window: parts of these, by kfdsim_pm4_release() in the end
 * @window_dw: lengths of these
 * @chained: the current packet went to another buffer for good
 * @ahead: of a graphics ring: by how much its constant engine is ahead of it;
 *	NULL elsewhere, where the packets of these counters are unknown
 */
struct kfdsim_pm4 {
	struct kfdsim_sdma *s;
	u64 *progress;
	struct kfdsim_pm4_at at;
	u32 *window[KFDSIM_PM4_IBS];
	unsigned int window_dw[KFDSIM_PM4_IBS];
	bool chained;
	u32 *ahead;
};

/*
 * Execute the packet at dw, as kfdsim_sdma_exec(); -EOPNOTSUPP: a dispatch,
 * for which there is no shader. Packets of gfx9: NOP, WRITE_DATA, RELEASE_MEM,
 * WAIT_REG_MEM, INDIRECT_BUFFER, ACQUIRE_MEM and DMA_DATA, on memory only, and
 * type 2. An INDIRECT_BUFFER stops and goes on within its buffer.
 */
int kfdsim_pm4_exec(struct kfdsim_pm4 *p, const u32 *dw, unsigned int ndw);
/* Execute ndw dwords at va, with no ring above. 0, or errors as above. */
int kfdsim_pm4_run(struct kfdsim_pm4 *p, u64 va, u32 ndw);
void kfdsim_pm4_release(struct kfdsim_pm4 *p);

/*
 * KFD side. kfd_room.c: may mm have a BO evicted, as far as KFD's users of it
 * go (spinlocks only), and stop those; -EINTR.
 */
bool kfdsim_users_may_lose(struct kfdsim_bo *bo, const struct mm_struct *mm);
int kfdsim_users_stop(struct kfdsim_bo *bo);

/* kfd_main.c */
int kfdsim_kfd_init(void);
void kfdsim_kfd_exit(void);
int kfdsim_debugfs_init(void);
void kfdsim_debugfs_exit(void);
struct dentry *kfdsim_debugfs_root(void);
/* bench.c: the file "bench" in that directory */
void kfdsim_bench_init(struct dentry *root);

/**
 * kfdsim_fault() - fault injection point, armed through debugfs
 * @point: name, e.g. "criu-checkpoint", "cs-submit", "bo-create"
 *
 * Return: 0 or the negative errno that was armed; sleeps first where a delay
 * was armed, and until a signal (-EINTR) where a hang was.
 */
int kfdsim_fault(const char *point);

/*
 * Which kernel's KFD is imitated: module parameter "personality"; without it
 * the one that this kernel is nearest to.
 */
enum kfdsim_personality {
	KFDSIM_6_1,
	KFDSIM_6_12,
	KFDSIM_7_2,
	KFDSIM_7_3,
};

extern enum kfdsim_personality kfdsim_personality;

#endif
