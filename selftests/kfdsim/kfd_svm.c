// SPDX-License-Identifier: GPL-2.0
/*
 * Shared virtual memory, where the kernel has it (from 7.2 on) and the
 * parameter "svm" wants it: ranges of user addresses with attributes, what a
 * checkpoint keeps of them, and GPUs that reach them by the same addresses.
 * Nothing migrates. Ranges whose memory was unmapped go when next looked at.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <uapi/drm/amdgpu_drm.h>
#include "kfdsim_kfd.h"
#include "kfdsim_criu.h"

static bool svm;
module_param(svm, bool, 0444);
MODULE_PARM_DESC(svm, "shared virtual memory, where the personality has it: from 7.2 on");

#define GRANULARITY	9
#define GRANULARITY_MAX	0x3f
#define DEVICE_VMA	(VM_IO | VM_PFNMAP | VM_MIXEDMAP)

/**
 * struct svm_range - pages with the same attributes
 * @node: in kfdsim_process.svm_ranges, in order of creation
 * @start: first page
 * @last: last page
 * @preferred: where they should be, as all of these in the ioctl's words
 * @prefetch: where they were to be fetched
 * @flags: KFD_IOCTL_SVM_FLAG_*
 * @granularity: of a migration, the power of two of pages
 * @access: bit n: pdd n may reach them, wherever they are
 * @in_place: bit n: or where they are now
 * @mapped: bit n: they are in the address space of pdd n
 */
struct svm_range {
	struct list_head node;
	u64 start;
	u64 last;
	u32 preferred;
	u32 prefetch;
	u32 flags;
	u32 granularity;
	DECLARE_BITMAP(access, KFDSIM_MAX_GPUS);
	DECLARE_BITMAP(in_place, KFDSIM_MAX_GPUS);
	DECLARE_BITMAP(mapped, KFDSIM_MAX_GPUS);
};

/* What RESTORE keeps for RESUME. */
struct saved {
	struct list_head node;
	struct kfdsim_criu_svm *rec;
};

bool kfdsim_svm_on(void)
{
	return svm && kfdsim_personality >= KFDSIM_7_2;
}

static void set_defaults(struct svm_range *r)
{
	r->preferred = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
	r->prefetch = KFD_IOCTL_SVM_LOCATION_UNDEFINED;
	r->granularity = GRANULARITY;
	r->flags = KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT;
}

static struct svm_range *range_new(struct kfdsim_process *p, u64 start,
				   u64 last)
{
	struct svm_range *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return NULL;
	r->start = start;
	r->last = last;
	set_defaults(r);
	list_add_tail(&r->node, &p->svm_ranges);
	return r;
}

static void range_unmap(struct kfdsim_process *p, struct svm_range *r)
{
	unsigned int i;

	for_each_set_bit(i, r->mapped, p->n_pdds)
		kfdsim_vm_unmap(p->pdds[i]->vm, p->svm_bo,
				r->start << PAGE_SHIFT);
	bitmap_zero(r->mapped, KFDSIM_MAX_GPUS);
}

static void range_free(struct kfdsim_process *p, struct svm_range *r)
{
	range_unmap(p, r);
	list_del(&r->node);
	kfree(r);
}

/* Make a range end before page at, and another of what is behind. */
static int range_split(struct kfdsim_process *p, struct svm_range *r, u64 at)
{
	struct svm_range *tail = kmemdup(r, sizeof(*r), GFP_KERNEL);

	if (!tail)
		return -ENOMEM;
	range_unmap(p, r);
	bitmap_zero(tail->mapped, KFDSIM_MAX_GPUS);
	tail->start = at;
	r->last = at - 1;
	list_add(&tail->node, &r->node);
	return 0;
}

static int range_map(struct kfdsim_process *p, struct svm_range *r,
		     struct kfdsim_pdd *pdd)
{
	u64 flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_EXECUTABLE;
	u64 va = r->start << PAGE_SHIFT;

	if (!(r->flags & KFD_IOCTL_SVM_FLAG_GPU_RO))
		flags |= AMDGPU_VM_PAGE_WRITEABLE;
	if (kfdsim_vm_map(pdd->vm, p->svm_bo, va, va,
			  (r->last - r->start + 1) << PAGE_SHIFT, flags))
		return -EADDRINUSE;
	set_bit(pdd->index, r->mapped);
	return 0;
}

/* Have all GPUs reach what they may. */
static int map_all(struct kfdsim_process *p)
{
	struct svm_range *r;
	unsigned int i;
	int err, ret = 0;

	list_for_each_entry(r, &p->svm_ranges, node) {
		for (i = 0; i < p->n_pdds; i++) {
			if (!p->pdds[i]->vm || test_bit(i, r->mapped) ||
			    (!test_bit(i, r->access) && !test_bit(i, r->in_place)))
				continue;
			err = range_map(p, r, p->pdds[i]);
			ret = ret ?: err;
		}
	}
	return ret;
}

/*
 * Cut off what a range has no memory for at its head, and make a range of its
 * own of what is behind the first hole. mmap_lock held.
 * Return: nothing is left of it.
 */
static bool range_trim(struct kfdsim_process *p, struct svm_range *r)
{
	u64 end = (r->last + 1) << PAGE_SHIFT, at = r->start << PAGE_SHIFT;
	struct vm_area_struct *vma = find_vma(p->mm, at);

	if (!vma || vma->vm_start >= end)
		return true;
	if (vma->vm_start > at) {
		range_unmap(p, r);
		at = vma->vm_start;
		r->start = at >> PAGE_SHIFT;
	}
	while (vma && vma->vm_start <= at && at < end) {
		at = vma->vm_end;
		vma = find_vma(p->mm, at);
	}
	if (at >= end)
		return false;
	if (range_split(p, r, at >> PAGE_SHIFT))
		pr_warn("kfdsim: a range with a hole is kept\n");
	return false;
}

/* Forget what was unmapped. The new tail of a split is looked at next. */
static void prune(struct kfdsim_process *p)
{
	struct svm_range *r, *next;

	if (list_empty(&p->svm_ranges) || !mmget_not_zero(p->mm))
		return;
	mmap_read_lock(p->mm);
	for (r = list_first_entry(&p->svm_ranges, struct svm_range, node);
	     &r->node != &p->svm_ranges; r = next) {
		bool gone = range_trim(p, r);

		next = list_next_entry(r, node);
		if (gone)
			range_free(p, r);
	}
	mmap_read_unlock(p->mm);
	mmput_async(p->mm);
	map_all(p);
}

/* Is there memory everywhere, and no device's? */
static int check_memory(struct kfdsim_process *p, u64 start, u64 last)
{
	u64 at = start << PAGE_SHIFT, end = (last + 1) << PAGE_SHIFT;
	struct vm_area_struct *vma;
	int ret = 0;

	if (!mmget_not_zero(p->mm))
		return -ESRCH;
	mmap_read_lock(p->mm);
	while (!ret && at < end) {
		vma = vma_lookup(p->mm, at);
		if (!vma || vma->vm_flags & DEVICE_VMA)
			ret = -EFAULT;
		else
			at = vma->vm_end;
	}
	mmap_read_unlock(p->mm);
	mmput_async(p->mm);
	return ret;
}

/* Index of the pdd that an attribute names; -EINVAL: none. */
static int attr_pdd(struct kfdsim_process *p, u32 value)
{
	struct kfdsim_pdd *pdd = kfdsim_pdd_by_user_id(p, value);

	return pdd ? (int)pdd->index : -EINVAL;
}

static int check_attr(struct kfdsim_process *p,
		      const struct kfd_ioctl_svm_attribute *a)
{
	switch (a->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		if (a->value == KFD_IOCTL_SVM_LOCATION_UNDEFINED)
			return 0;
		fallthrough;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		if (a->value == KFD_IOCTL_SVM_LOCATION_SYSMEM)
			return 0;
		fallthrough;
	case KFD_IOCTL_SVM_ATTR_ACCESS:
	case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
	case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
		return min(attr_pdd(p, a->value), 0);
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		return 0;
	default:
		return -EINVAL;
	}
}

static void apply(struct kfdsim_process *p, struct svm_range *r,
		  const struct kfd_ioctl_svm_attribute *a)
{
	int i;

	switch (a->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		r->preferred = a->value;
		break;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		r->prefetch = a->value;
		break;
	case KFD_IOCTL_SVM_ATTR_ACCESS:
	case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
	case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
		i = attr_pdd(p, a->value);
		__assign_bit(i, r->access, a->type == KFD_IOCTL_SVM_ATTR_ACCESS);
		__assign_bit(i, r->in_place,
			     a->type == KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE);
		break;
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
		r->flags |= a->value;
		break;
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
		r->flags &= ~a->value;
		break;
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		r->granularity = min_t(u32, a->value, GRANULARITY_MAX);
		break;
	}
}

/* Would these attributes change a range that GPUs reach already? */
static bool changes(struct kfdsim_process *p, const struct svm_range *r, u32 n,
		    const struct kfd_ioctl_svm_attribute *a)
{
	struct svm_range now = *r;
	u32 i;

	if (bitmap_empty(r->mapped, KFDSIM_MAX_GPUS))
		return true;
	for (i = 0; i < n; i++) {
		/* it is fetched again, whatever was asked before */
		if (a[i].type == KFD_IOCTL_SVM_ATTR_PREFETCH_LOC)
			return true;
		apply(p, &now, &a[i]);
	}
	return memcmp(&now, r, sizeof(now));
}

/* The range that begins at a page or is the next behind it; NULL: none. */
static struct svm_range *range_from(struct kfdsim_process *p, u64 page)
{
	struct svm_range *r, *found = NULL;

	list_for_each_entry(r, &p->svm_ranges, node)
		if (r->last >= page && (!found || r->start < found->start))
			found = r;
	return found;
}

/* One range of [start, last], which begins at start. Return: its end, errno. */
static s64 set_one(struct kfdsim_process *p, u64 start, u64 last, u32 n,
		   const struct kfd_ioctl_svm_attribute *a)
{
	struct svm_range *r = range_from(p, start);
	u32 i;
	int ret;

	if (!r || r->start > start) {
		r = range_new(p, start, r ? min(last, r->start - 1) : last);
		if (!r)
			return -ENOMEM;
	} else if (!changes(p, r, n, a)) {
		return r->last;
	}
	if (r->start < start) {
		ret = range_split(p, r, start);
		if (ret)
			return ret;
		r = list_next_entry(r, node);
	}
	if (r->last > last) {
		ret = range_split(p, r, last + 1);
		if (ret)
			return ret;
	}
	range_unmap(p, r);
	for (i = 0; i < n; i++)
		apply(p, r, &a[i]);
	return r->last;
}

/* Process lock held. */
static int set_attrs(struct kfdsim_process *p, u64 start, u64 last, u32 n,
		     const struct kfd_ioctl_svm_attribute *a)
{
	s64 end;
	int ret;
	u32 i;

	for (i = 0; i < n; i++) {
		ret = check_attr(p, &a[i]);
		if (ret)
			return ret;
	}
	ret = check_memory(p, start, last);
	while (!ret && start <= last) {
		end = set_one(p, start, last, n, a);
		if (end < 0)
			return end;
		start = end + 1;
	}
	return ret ?: map_all(p);
}

/* What several ranges have in common. */
struct common {
	struct svm_range r;
	u32 flags_or;
	bool first;
};

static u32 same_place(u32 so_far, u32 next, bool first)
{
	return first || so_far == next ? next : KFD_IOCTL_SVM_LOCATION_UNDEFINED;
}

static void common_add(struct common *c, const struct svm_range *r)
{
	c->r.preferred = same_place(c->r.preferred, r->preferred, c->first);
	c->r.prefetch = same_place(c->r.prefetch, r->prefetch, c->first);
	c->r.granularity = min(c->r.granularity, r->granularity);
	c->r.flags &= r->flags;
	c->flags_or |= r->flags;
	bitmap_and(c->r.access, c->r.access, r->access, KFDSIM_MAX_GPUS);
	bitmap_and(c->r.in_place, c->r.in_place, r->in_place, KFDSIM_MAX_GPUS);
	c->first = false;
}

static void common_of(struct kfdsim_process *p, u64 start, u64 last,
		      struct common *c)
{
	const struct svm_range *r;

	memset(c, 0, sizeof(*c));
	c->first = true;
	c->r.flags = U32_MAX;
	c->r.granularity = U8_MAX;
	bitmap_fill(c->r.access, KFDSIM_MAX_GPUS);
	bitmap_fill(c->r.in_place, KFDSIM_MAX_GPUS);
	list_for_each_entry(r, &p->svm_ranges, node)
		if (r->start <= last && r->last >= start)
			common_add(c, r);
	if (!c->first)
		return;
	memset(&c->r, 0, sizeof(c->r));
	set_defaults(&c->r);
	c->flags_or = c->r.flags;
}

static int get_attr(struct kfdsim_process *p, const struct common *c,
		    struct kfd_ioctl_svm_attribute *a)
{
	int i;

	switch (a->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		a->value = c->r.preferred;
		return 0;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		a->value = c->r.prefetch;
		return 0;
	case KFD_IOCTL_SVM_ATTR_ACCESS:
		i = attr_pdd(p, a->value);
		if (i < 0)
			return i;
		if (test_bit(i, c->r.access))
			return 0;
		a->type = test_bit(i, c->r.in_place) ?
			  KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE :
			  KFD_IOCTL_SVM_ATTR_NO_ACCESS;
		return 0;
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
		a->value = c->r.flags;
		return 0;
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
		a->value = ~c->flags_or;
		return 0;
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		a->value = c->r.granularity;
		return 0;
	default:
		return -EINVAL;
	}
}

/* Process lock held. */
static int get_attrs(struct kfdsim_process *p, u64 start, u64 last, u32 n,
		     struct kfd_ioctl_svm_attribute *a)
{
	int ret = check_memory(p, start, last);
	struct common c;
	u32 i;

	common_of(p, start, last, &c);
	for (i = 0; !ret && i < n; i++)
		ret = get_attr(p, &c, &a[i]);
	return ret;
}

/* Its BO is all user memory; a mapping's place in it is its address. */
static int svm_begin(struct kfdsim_process *p)
{
	struct kfdsim_bo *bo;

	if (p->svm_bo)
		return 0;
	if (!p->n_pdds)
		return -EINVAL;
	bo = kfdsim_bo_create_svm(p->pdds[0]->gpu, p->mm);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	p->svm_bo = bo;
	return 0;
}

KFDSIM_IOCTL(svm)
{
	struct kfd_ioctl_svm_args *args = data;
	u64 start = args->start_addr >> PAGE_SHIFT;
	u64 last = start + (args->size >> PAGE_SHIFT) - 1;
	int ret;

	if (!kfdsim_svm_on())
		return -EPERM;	/* kernels without HSA_AMD_SVM */
	if (kfdsim_arg_size(data) < sizeof(*args) ||
	    args->nattr > (kfdsim_arg_size(data) - sizeof(*args)) /
			  sizeof(args->attrs[0]))
		return -EINVAL;
	if (offset_in_page(args->start_addr | args->size) ||
	    !args->start_addr || !args->size || args->start_addr > TASK_SIZE_MAX ||
	    args->size > TASK_SIZE_MAX - args->start_addr)
		return -EINVAL;
	mutex_lock(&p->lock);
	prune(p);
	ret = svm_begin(p);
	if (!ret && args->op == KFD_IOCTL_SVM_OP_SET_ATTR)
		ret = set_attrs(p, start, last, args->nattr, args->attrs);
	else if (!ret && args->op == KFD_IOCTL_SVM_OP_GET_ATTR)
		ret = get_attrs(p, start, last, args->nattr, args->attrs);
	else if (!ret)
		ret = -EINVAL;
	mutex_unlock(&p->lock);
	return ret;
}

static u32 num_attrs(const struct kfdsim_process *p)
{
	return KFDSIM_CRIU_SVM_ATTRS + p->n_pdds;
}

static size_t record_size(const struct kfdsim_process *p)
{
	return sizeof(struct kfdsim_criu_svm) +
	       num_attrs(p) * sizeof(struct kfd_ioctl_svm_attribute);
}

/**
 * kfdsim_svm_count() - what a checkpoint finds; process lock held
 * @p: whose
 * @size: of a record
 */
u32 kfdsim_svm_count(struct kfdsim_process *p, size_t *size)
{
	struct svm_range *r;
	u32 n = 0;

	prune(p);
	list_for_each_entry(r, &p->svm_ranges, node)
		n++;
	*size = record_size(p);
	return n;
}

static int checkpoint_one(struct kfdsim_process *p, const struct svm_range *r,
			  struct kfdsim_criu_svm *rec)
{
	static const u32 types[KFDSIM_CRIU_SVM_ATTRS] = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
		KFD_IOCTL_SVM_ATTR_PREFETCH_LOC,
		KFD_IOCTL_SVM_ATTR_SET_FLAGS,
		KFD_IOCTL_SVM_ATTR_GRANULARITY,
	};
	u32 i;

	rec->object_type = KFDSIM_CRIU_SVM;
	rec->start = r->start;
	rec->size = r->last - r->start + 1;
	for (i = 0; i < num_attrs(p); i++) {
		rec->attrs[i].type = i < ARRAY_SIZE(types) ? types[i] :
				     KFD_IOCTL_SVM_ATTR_ACCESS;
		rec->attrs[i].value = i < ARRAY_SIZE(types) ? 0 :
			p->pdds[i - ARRAY_SIZE(types)]->user_gpu_id;
	}
	return get_attrs(p, r->start, r->last, num_attrs(p), rec->attrs);
}

/** kfdsim_svm_checkpoint() - records of all ranges; process lock held */
int kfdsim_svm_checkpoint(struct kfdsim_process *p, u64 dst, u64 *offset)
{
	size_t size = record_size(p);
	struct kfdsim_criu_svm *rec = kzalloc(size, GFP_KERNEL);
	struct svm_range *r;
	int ret = 0;

	if (!rec)
		return -ENOMEM;
	list_for_each_entry(r, &p->svm_ranges, node) {
		ret = checkpoint_one(p, r, rec);
		if (!ret &&
		    copy_to_user(u64_to_user_ptr(dst + *offset), rec, size))
			ret = -EFAULT;
		if (ret)
			break;
		*offset += size;
	}
	kfree(rec);
	return ret;
}

/** kfdsim_svm_restore() - keep a record for RESUME; process lock held */
int kfdsim_svm_restore(struct kfdsim_process *p, u64 src, u64 *offset, u64 max)
{
	size_t size = record_size(p);
	struct saved *s;
	int ret;

	if (!kfdsim_svm_on() || max < size || *offset > max - size)
		return -EINVAL;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->rec = memdup_user(u64_to_user_ptr(src + *offset), size);
	if (IS_ERR(s->rec)) {
		ret = PTR_ERR(s->rec);
		kfree(s);
		return ret;
	}
	list_add_tail(&s->node, &p->svm_saved);
	*offset += size;
	return 0;
}

/* A place that was never asked for cannot be asked for. */
static void no_prefetch(struct kfd_ioctl_svm_attribute *a)
{
	if (a->type != KFD_IOCTL_SVM_ATTR_PREFETCH_LOC ||
	    a->value != KFD_IOCTL_SVM_LOCATION_UNDEFINED)
		return;
	a->type = KFD_IOCTL_SVM_ATTR_SET_FLAGS;
	a->value = 0;
}

static int resume_one(struct kfdsim_process *p, struct kfdsim_criu_svm *rec)
{
	struct kfd_ioctl_svm_attribute clear = {
		.type = KFD_IOCTL_SVM_ATTR_CLR_FLAGS,
	};
	u64 last = rec->start + rec->size - 1;
	u32 i;
	int ret;

	if (!rec->size || rec->start > TASK_SIZE_MAX >> PAGE_SHIFT ||
	    rec->size > (TASK_SIZE_MAX >> PAGE_SHIFT) - rec->start)
		return -EINVAL;
	for (i = 0; i < num_attrs(p); i++) {
		if (rec->attrs[i].type == KFD_IOCTL_SVM_ATTR_SET_FLAGS)
			clear.value = ~rec->attrs[i].value;
		no_prefetch(&rec->attrs[i]);
	}
	ret = set_attrs(p, rec->start, last, num_attrs(p), rec->attrs);
	return ret ?: set_attrs(p, rec->start, last, 1, &clear);
}

static void saved_free(struct kfdsim_process *p)
{
	struct saved *s, *next;

	list_for_each_entry_safe(s, next, &p->svm_saved, node) {
		list_del(&s->node);
		kfree(s->rec);
		kfree(s);
	}
}

/** kfdsim_svm_resume() - make what RESTORE kept; process lock held */
int kfdsim_svm_resume(struct kfdsim_process *p)
{
	struct saved *s;
	int ret = 0;

	if (list_empty(&p->svm_saved))
		return 0;
	ret = svm_begin(p);
	list_for_each_entry(s, &p->svm_saved, node)
		ret = ret ?: resume_one(p, s->rec);
	saved_free(p);
	return ret;
}

void kfdsim_svm_init(struct kfdsim_process *p)
{
	INIT_LIST_HEAD(&p->svm_ranges);
	INIT_LIST_HEAD(&p->svm_saved);
}

/** kfdsim_svm_exit() - of a process that ends; process lock held */
void kfdsim_svm_exit(struct kfdsim_process *p)
{
	struct svm_range *r, *next;

	list_for_each_entry_safe(r, next, &p->svm_ranges, node)
		range_free(p, r);
	saved_free(p);
	if (p->svm_bo)
		kfdsim_bo_put(p->svm_bo);
	p->svm_bo = NULL;
}
