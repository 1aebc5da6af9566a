// SPDX-License-Identifier: GPL-2.0
/*
 * GPU address spaces: mappings in a tree by address, none overlapping. Those
 * of GEM_VA go with the last handle of their BO, those of KFD when it says so.
 * Translation takes a reference of the BO, so that no lock is held while bytes
 * move.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include "kfdsim_drm.h"

/**
 * struct mapping - a range of GPU addresses
 * @rb: in kfdsim_vm.mappings
 * @start: first address
 * @last: last address
 * @bo: one reference; NULL for PRT
 * @bo_offset: where @start is in it
 * @flags: AMDGPU_VM_PAGE_*
 * @ref: whose list @link is in; NULL where KFD or PRT made it
 * @link: in kfdsim_boref.mappings
 */
struct mapping {
	struct rb_node rb;
	u64 start;
	u64 last;
	struct kfdsim_bo *bo;
	u64 bo_offset;
	u64 flags;
	struct kfdsim_boref *ref;
	struct list_head link;
};

#define rb_to_mapping(n) rb_entry(n, struct mapping, rb)

static atomic_t live;

void kfdsim_vm_check_leaks(void)
{
	WARN(atomic_read(&live), "kfdsim: %d address spaces left\n",
	     atomic_read(&live));
}

/** kfdsim_vm_create() - empty address space with one reference, or ERR_PTR */
struct kfdsim_vm *kfdsim_vm_create(struct kfdsim_gpu *gpu)
{
	struct kfdsim_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL);

	if (!vm)
		return ERR_PTR(-ENOMEM);
	kref_init(&vm->ref);
	vm->gpu = gpu;
	init_rwsem(&vm->lock);
	vm->mappings = RB_ROOT_CACHED;
	atomic_inc(&live);
	return vm;
}

static void mapping_free(struct mapping *m)
{
	if (m && m->bo)
		kfdsim_bo_put(m->bo);
	kfree(m);
}

static void vm_release(struct kref *ref)
{
	struct kfdsim_vm *vm = container_of(ref, struct kfdsim_vm, ref);
	struct mapping *m, *next;

	rbtree_postorder_for_each_entry_safe(m, next, &vm->mappings.rb_root, rb)
		mapping_free(m);
	kfree(vm);
	atomic_dec(&live);
}

void kfdsim_vm_get(struct kfdsim_vm *vm)
{
	kref_get(&vm->ref);
}

void kfdsim_vm_put(struct kfdsim_vm *vm)
{
	kref_put(&vm->ref, vm_release);
}

/* First mapping that ends at va or after it. */
static struct mapping *vm_first(struct kfdsim_vm *vm, u64 va)
{
	struct rb_node *n = vm->mappings.rb_root.rb_node;
	struct mapping *found = NULL;

	lockdep_assert_held(&vm->lock);
	while (n) {
		struct mapping *m = rb_to_mapping(n);

		if (m->last >= va) {
			found = m;
			n = n->rb_left;
		} else {
			n = n->rb_right;
		}
	}
	return found;
}

static bool mapping_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_to_mapping(a)->start < rb_to_mapping(b)->start;
}

static void vm_insert(struct kfdsim_vm *vm, struct mapping *m)
{
	lockdep_assert_held_write(&vm->lock);
	rb_add_cached(&m->rb, &vm->mappings, mapping_less);
	if (m->ref)
		list_add(&m->link, &m->ref->mappings);
}

static void vm_erase(struct kfdsim_vm *vm, struct mapping *m)
{
	lockdep_assert_held_write(&vm->lock);
	rb_erase_cached(&m->rb, &vm->mappings);
	if (m->ref)
		list_del(&m->link);
}

/** kfdsim_vm_check_range() - page aligned, not empty, within the GPU's reach */
int kfdsim_vm_check_range(u64 va, u64 size)
{
	u64 end;

	if (!size || !IS_ALIGNED(va | size, PAGE_SIZE) ||
	    check_add_overflow(va, size, &end) || end > KFDSIM_VA_MASK + 1)
		return -EINVAL;
	return 0;
}

static int vm_map(struct kfdsim_vm *vm, const struct mapping *want)
{
	u64 size = want->last - want->start + 1;
	struct mapping *m, *old;
	int ret;

	ret = kfdsim_vm_check_range(want->start, size);
	if (ret)
		return ret;
	if (want->bo &&
	    (!IS_ALIGNED(want->bo_offset, PAGE_SIZE) ||
	     want->bo_offset > want->bo->base.size ||
	     size > want->bo->base.size - want->bo_offset))
		return -EINVAL;
	m = kmemdup(want, sizeof(*want), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	down_write(&vm->lock);
	old = vm_first(vm, m->start);
	if (old && old->start <= m->last) {
		up_write(&vm->lock);
		kfree(m);
		return -EINVAL;
	}
	if (m->bo)
		kfdsim_bo_get(m->bo);
	vm_insert(vm, m);
	up_write(&vm->lock);
	return 0;
}

/**
 * kfdsim_vm_map() - map a BO for KFD
 * @vm: address space
 * @bo: the BO, of which the mapping takes a reference
 * @bo_offset: first byte of it
 * @va: GPU address
 * @size: bytes
 * @flags: AMDGPU_VM_PAGE_READABLE, _WRITEABLE, ...; enforced
 *
 * Return: 0; -EINVAL on overlap or a bad range; -ENOMEM.
 */
int kfdsim_vm_map(struct kfdsim_vm *vm, struct kfdsim_bo *bo, u64 bo_offset,
		  u64 va, u64 size, u64 flags)
{
	struct mapping want = {
		.start = va,
		.last = va + size - 1,
		.bo = bo,
		.bo_offset = bo_offset,
		.flags = flags,
	};

	return vm_map(vm, &want);
}

/**
 * kfdsim_vm_gem_map() - map a BO for GEM_VA
 * @vm: address space
 * @ref: the BO as the calling file knows it, kept by kfdsim_fpriv.lock; NULL: PRT
 * @bo_offset: first byte of it
 * @va: GPU address
 * @size: bytes
 * @flags: AMDGPU_VM_PAGE_*
 *
 * Return: as kfdsim_vm_map().
 */
int kfdsim_vm_gem_map(struct kfdsim_vm *vm, struct kfdsim_boref *ref,
		      u64 bo_offset, u64 va, u64 size, u64 flags)
{
	struct mapping want = {
		.start = va,
		.last = va + size - 1,
		.bo = ref ? ref->bo : NULL,
		.bo_offset = bo_offset,
		.flags = flags,
		.ref = ref,
	};

	return vm_map(vm, &want);
}

static int vm_unmap(struct kfdsim_vm *vm, struct kfdsim_bo *bo,
		    struct kfdsim_boref *ref, u64 va)
{
	struct mapping *m;

	down_write(&vm->lock);
	m = vm_first(vm, va);
	if (m && m->start == va && m->bo == bo && m->ref == ref)
		vm_erase(vm, m);
	else
		m = NULL;
	up_write(&vm->lock);
	mapping_free(m);
	return m ? 0 : -ENOENT;
}

/** kfdsim_vm_unmap() - undo kfdsim_vm_map(); see kfdsim.h */
int kfdsim_vm_unmap(struct kfdsim_vm *vm, struct kfdsim_bo *bo, u64 va)
{
	return vm_unmap(vm, bo, NULL, va);
}

/** kfdsim_vm_gem_unmap() - undo kfdsim_vm_gem_map() of the same ref */
int kfdsim_vm_gem_unmap(struct kfdsim_vm *vm, struct kfdsim_boref *ref, u64 va)
{
	return vm_unmap(vm, ref ? ref->bo : NULL, ref, va);
}

/** kfdsim_vm_gem_unmap_all() - the last handle of a BO goes */
void kfdsim_vm_gem_unmap_all(struct kfdsim_vm *vm, struct kfdsim_boref *ref)
{
	struct mapping *m, *next;
	LIST_HEAD(gone);

	down_write(&vm->lock);
	list_splice_init(&ref->mappings, &gone);
	list_for_each_entry(m, &gone, link)
		rb_erase_cached(&m->rb, &vm->mappings);
	up_write(&vm->lock);
	list_for_each_entry_safe(m, next, &gone, link)
		mapping_free(m);
}

/**
 * kfdsim_vm_gem_list() - tell where a BO is mapped
 * @vm: address space
 * @ref: whose mappings; protected by the caller
 * @entries: where to
 * @max: how many fit
 *
 * Return: how many there are.
 */
u32 kfdsim_vm_gem_list(struct kfdsim_vm *vm, struct kfdsim_boref *ref,
		       struct drm_amdgpu_gem_vm_entry *entries, u32 max)
{
	struct mapping *m;
	u32 n = 0;

	down_read(&vm->lock);
	list_for_each_entry(m, &ref->mappings, link) {
		if (n < max)
			entries[n] = (struct drm_amdgpu_gem_vm_entry){
				.addr = m->start,
				.size = m->last - m->start + 1,
				.offset = m->bo_offset,
				.flags = m->flags,
			};
		n++;
	}
	up_read(&vm->lock);
	return n;
}

/* m reaches over an end of [va, last]: keep that part as a mapping of its own. */
static void keep_part(struct kfdsim_vm *vm, const struct mapping *m,
		      struct mapping *part, u64 start, u64 last)
{
	*part = *m;
	part->start = start;
	part->last = last;
	part->bo_offset += start - m->start;
	if (part->bo)
		kfdsim_bo_get(part->bo);
	vm_insert(vm, part);
}

/** kfdsim_vm_clear() - unmap a range, whoever mapped it */
int kfdsim_vm_clear(struct kfdsim_vm *vm, u64 va, u64 size)
{
	struct mapping *before, *after, *m, *next;
	u64 last = va + size - 1;
	LIST_HEAD(gone);
	int ret;

	ret = kfdsim_vm_check_range(va, size);
	if (ret)
		return ret;
	before = kzalloc(sizeof(*before), GFP_KERNEL);
	after = kzalloc(sizeof(*after), GFP_KERNEL);
	if (!before || !after) {
		kfree(before);
		kfree(after);
		return -ENOMEM;
	}
	down_write(&vm->lock);
	for (m = vm_first(vm, va); m && m->start <= last; m = next) {
		next = m->last < last ? vm_first(vm, m->last + 1) : NULL;
		vm_erase(vm, m);
		if (m->start < va) {
			keep_part(vm, m, before, m->start, va - 1);
			before = NULL;
		}
		if (m->last > last) {
			keep_part(vm, m, after, last + 1, m->last);
			after = NULL;
		}
		list_add(&m->link, &gone);
	}
	up_write(&vm->lock);
	list_for_each_entry_safe(m, next, &gone, link)
		mapping_free(m);
	kfree(before);
	kfree(after);
	return 0;
}

/**
 * kfdsim_vm_seg() - translate
 * @vm: address space
 * @va: GPU address
 * @len: bytes wanted; the segment may be shorter
 * @write: for a write
 * @seg: the result
 *
 * Return: 0, with a segment to be released by kfdsim_seg_put(); -EFAULT where
 * nothing is mapped for that kind of access, or what no copy reaches.
 */
int kfdsim_vm_seg(struct kfdsim_vm *vm, u64 va, u64 len, bool write,
		  struct kfdsim_seg *seg)
{
	u64 need = write ? AMDGPU_VM_PAGE_WRITEABLE : AMDGPU_VM_PAGE_READABLE;
	struct mapping *m;
	int ret = -EFAULT;

	va &= KFDSIM_VA_MASK;
	down_read(&vm->lock);
	m = vm_first(vm, va);
	if (m && m->start <= va &&
	    (!m->bo || (m->flags & need && !(m->bo->domain & KFDSIM_ON_CHIP)))) {
		seg->bo = m->bo;
		seg->off = m->bo_offset + (va - m->start);
		seg->len = min(len, m->last - va + 1);
		if (seg->bo)
			kfdsim_bo_get(seg->bo);
		ret = 0;
	}
	up_read(&vm->lock);
	return ret;
}

void kfdsim_seg_put(struct kfdsim_seg *seg)
{
	if (seg->bo)
		kfdsim_bo_put(seg->bo);
	seg->bo = NULL;
}

/** kfdsim_vm_rw() - see kfdsim.h */
int kfdsim_vm_rw(struct kfdsim_vm *vm, u64 va, void *buf, size_t len, bool write,
		 u64 *fault_va)
{
	struct kfdsim_seg seg;
	int ret = 0;

	while (len) {
		ret = kfdsim_vm_seg(vm, va, len, write, &seg);
		if (ret)
			break;
		if (seg.bo)
			ret = kfdsim_bo_rw(seg.bo, seg.off, buf, seg.len, write);
		else if (!write)
			memset(buf, 0, seg.len);
		kfdsim_seg_put(&seg);
		if (ret)
			break;
		va += seg.len;
		buf += seg.len;
		len -= seg.len;
	}
	if (ret && fault_va)
		*fault_va = va;
	return ret;
}
