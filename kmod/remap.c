// SPDX-License-Identifier: GPL-2.0
/*
 * Where the BOs of a restore have come to.
 *
 * Old offsets are an image's, new ones are what a task of the restore says, be
 * it in remap-set or in the buckets that KFD has written to the task's memory:
 * both are believed only where a BO of that size starts there, and the task's
 * render node may map it. The task's pid in the image is part of the key: two
 * tasks that shared a BO had one offset and get two.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kfd_ioctl.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_device.h>
#include <drm/drm_file.h>

#include <uapi/linux/gpucr.h>

#include "drmfile.h"
#include "fault.h"
#include "remap.h"
#include "session.h"
#include "snapshot.h"

/* KFD knows no more GPUs. */
#define GPUCR_REMAP_DEVICES	64
/* Page offsets have no more bits. */
#define GPUCR_PGOFF_MAX		(U64_MAX >> PAGE_SHIFT)

struct gpucr_remap_node {
	struct rb_node node;
	struct gpucr_remap r;
};

/**
 * struct gpucr_remap_buckets - what a task gave RESTORE
 * @user_bos: its BO buckets, where KFD leaves the new offsets
 * @devices: copies of the device buckets
 * @num_devices: how many
 * @num_bos: how many
 * @bos: copies of the BO buckets
 */
struct gpucr_remap_buckets {
	const struct kfd_criu_bo_bucket __user *user_bos;
	struct kfd_criu_device_bucket devices[GPUCR_REMAP_DEVICES];
	u32 num_devices;
	u32 num_bos;
	struct kfd_criu_bo_bucket bos[];
};

static int gpucr_remap_cmp(const struct gpucr_remap *a,
			   const struct gpucr_remap *b)
{
	if (a->image_pid != b->image_pid)
		return a->image_pid < b->image_pid ? -1 : 1;
	if (a->gpu_id != b->gpu_id)
		return a->gpu_id < b->gpu_id ? -1 : 1;
	if (a->old_pgoff != b->old_pgoff)
		return a->old_pgoff < b->old_pgoff ? -1 : 1;
	return 0;
}

/* Does a begin before the end of b, in the same space? a is not below b. */
static bool gpucr_remap_inside(const struct gpucr_remap *a,
			       const struct gpucr_remap *b)
{
	return a->image_pid == b->image_pid && a->gpu_id == b->gpu_id &&
	       a->old_pgoff - b->old_pgoff < b->size >> PAGE_SHIFT;
}

/* The last entry that is not above the key, or NULL. */
static struct gpucr_remap_node *gpucr_remap_floor(struct rb_root *root,
						  const struct gpucr_remap *key)
{
	struct gpucr_remap_node *n, *floor = NULL;
	struct rb_node *at = root->rb_node;

	while (at) {
		n = rb_entry(at, struct gpucr_remap_node, node);
		if (gpucr_remap_cmp(key, &n->r) < 0) {
			at = at->rb_left;
		} else {
			floor = n;
			at = at->rb_right;
		}
	}
	return floor;
}

static void gpucr_remap_link(struct rb_root *root, struct gpucr_remap_node *new)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;
	struct gpucr_remap_node *n;

	while (*link) {
		parent = *link;
		n = rb_entry(parent, struct gpucr_remap_node, node);
		link = gpucr_remap_cmp(&new->r, &n->r) < 0 ? &parent->rb_left :
							     &parent->rb_right;
	}
	rb_link_node(&new->node, parent, link);
	rb_insert_color(&new->node, root);
}

/*
 * new is used up where 0 is returned and *used set. The same key again changes
 * what is there, but not twice in what one RESTORE says.
 */
static int gpucr_remap_insert(struct gpucr_session *s,
			      struct gpucr_remap_node *new, bool *used)
{
	struct gpucr_remap_node *floor = gpucr_remap_floor(&s->remaps, &new->r);
	struct rb_node *above;
	bool same;

	lockdep_assert_held(&s->data);
	*used = false;
	same = floor && !gpucr_remap_cmp(&floor->r, &new->r);
	if (floor && !same && gpucr_remap_inside(&new->r, &floor->r))
		return -EEXIST;
	if (same && new->r.source == GPUCR_REMAP_SOURCE_RESTORE)
		return -EEXIST;
	above = floor ? rb_next(&floor->node) : rb_first(&s->remaps);
	if (above &&
	    gpucr_remap_inside(&rb_entry(above, struct gpucr_remap_node,
					 node)->r, &new->r))
		return -EEXIST;
	if (same) {
		floor->r = new->r;
		return 0;
	}
	if (s->num_remaps >= GPUCR_MAX_REMAPS)
		return -ENOSPC;
	gpucr_remap_link(&s->remaps, new);
	s->num_remaps++;
	*used = true;
	return 0;
}

static int gpucr_remap_add(struct gpucr_session *s, const struct gpucr_remap *r)
{
	struct gpucr_remap_node *new = kmalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	bool used;
	int err;

	if (!new)
		return -ENOMEM;
	new->r = *r;
	mutex_lock(&s->data);
	err = gpucr_remap_insert(s, new, &used);
	mutex_unlock(&s->data);
	if (!used)
		kfree(new);
	return err;
}

void gpucr_remap_free_all(struct rb_root *root)
{
	struct gpucr_remap_node *n, *next;

	rbtree_postorder_for_each_entry_safe(n, next, root, node) {
		kfree(n);
		cond_resched();
	}
	*root = RB_ROOT;
}

/* The render node of the file's device; 0 where it has none. */
static u32 gpucr_remap_minor(struct drm_file *df)
{
	struct drm_device *dev = df->minor->dev;

	return dev->render ? dev->render->index : 0;
}

/* Is it a range of whole pages, and a range at all? */
static bool gpucr_remap_sane(const struct gpucr_remap *r)
{
	u64 pages = r->size >> PAGE_SHIFT;

	return r->image_pid && r->gpu_id && pages &&
	       !(r->size & ~PAGE_MASK) && pages <= GPUCR_PGOFF_MAX &&
	       r->old_pgoff <= GPUCR_PGOFF_MAX - pages &&
	       r->new_pgoff <= GPUCR_PGOFF_MAX - pages;
}

static int gpucr_remap_check_bo(struct drm_file *df,
				const struct gpucr_remap *r,
				struct netlink_ext_ack *ack)
{
	u64 size = gpucr_bo_size_at(df, r->new_pgoff);

	if (!size) {
		NL_SET_ERR_MSG(ack,
			       "no BO that the file may map starts at new-pgoff");
		return -ENOENT;
	}
	if (size != r->size) {
		NL_SET_ERR_MSG(ack, "the BO at new-pgoff has another size");
		return -EINVAL;
	}
	return 0;
}

static int gpucr_remap_check_session(struct gpucr_session *s,
				     struct netlink_ext_ack *ack)
{
	if (s->direction == GPUCR_DIRECTION_RESTORE)
		return 0;
	NL_SET_ERR_MSG(ack, "the session is for a checkpoint");
	return -EINVAL;
}

static int gpucr_remap_check_open(struct gpucr_session *s,
				  struct netlink_ext_ack *ack)
{
	bool over;

	spin_lock(&s->lock);
	over = s->ended || s->state == GPUCR_SESSION_STATE_FAILED;
	spin_unlock(&s->lock);
	if (!over)
		return 0;
	NL_SET_ERR_MSG(ack, "the session has failed or ended");
	return -ESHUTDOWN;
}

/**
 * gpucr_remap_set() - say where a BO has come to
 * @s: the session
 * @df: render node of the caller, of a supported device
 * @r: the BO; minor and source are filled
 * @ack: told why not
 *
 * Return: 0 or a negative errno, as the protocol says of remap-set.
 */
int gpucr_remap_set(struct gpucr_session *s, struct drm_file *df,
		    struct gpucr_remap *r, struct netlink_ext_ack *ack)
{
	int err;

	err = gpucr_remap_check_session(s, ack) ?:
	      gpucr_remap_check_open(s, ack) ?:
	      gpucr_fault(GPUCR_FAULT_REMAP_SET);
	if (err)
		return err;
	if (!gpucr_remap_sane(r)) {
		NL_SET_ERR_MSG(ack, "ids are 0, or no range of whole pages");
		return -EINVAL;
	}
	r->minor = gpucr_remap_minor(df);
	r->source = GPUCR_REMAP_SOURCE_SET;
	err = gpucr_remap_check_bo(df, r, ack);
	if (err)
		return err;
	err = gpucr_remap_add(s, r);
	if (err == -EEXIST)
		NL_SET_ERR_MSG(ack, "the old range overlaps another BO's");
	if (err == -ENOSPC)
		NL_SET_ERR_MSG(ack, "too many offsets are kept");
	return err;
}

/**
 * gpucr_remap_read() - what a task is about to give RESTORE
 * @devices: address of the device buckets
 * @bos: address of the BO buckets; both have been found to lie in user space
 * @counts: how many
 * @ack: told why not
 *
 * Return: a copy for gpucr_remap_fill() and gpucr_remap_buckets_free(), or an
 * error pointer: -E2BIG, -ENOMEM, -EFAULT.
 */
struct gpucr_remap_buckets *
gpucr_remap_read(u64 devices, u64 bos, const struct gpucr_counts *counts,
		 struct netlink_ext_ack *ack)
{
	size_t bytes = (size_t)counts->num_bos * sizeof(struct kfd_criu_bo_bucket);
	struct gpucr_remap_buckets *b;
	int err;

	err = gpucr_fault(GPUCR_FAULT_REMAP_READ);
	if (!err && (counts->num_devices > GPUCR_REMAP_DEVICES ||
		     counts->num_bos > GPUCR_MAX_REMAPS))
		err = -E2BIG;
	if (err)
		goto err_tell;
	b = kvzalloc(sizeof(*b) + bytes, GFP_KERNEL_ACCOUNT);
	if (!b) {
		err = -ENOMEM;
		goto err_tell;
	}
	b->user_bos = (const void __user *)(uintptr_t)bos;
	b->num_devices = counts->num_devices;
	b->num_bos = counts->num_bos;
	if (!copy_from_user(b->devices, (const void __user *)(uintptr_t)devices,
			    b->num_devices * sizeof(*b->devices)) &&
	    !copy_from_user(b->bos, b->user_bos, bytes))
		return b;
	kvfree(b);
	err = -EFAULT;
err_tell:
	NL_SET_ERR_MSG(ack, "offsets are not kept: buckets cannot be read");
	return ERR_PTR(err);
}

void gpucr_remap_buckets_free(struct gpucr_remap_buckets *b)
{
	if (!IS_ERR_OR_NULL(b))
		kvfree(b);
}

/* The render node that the task gave for a GPU, referenced; or NULL. */
static struct file *gpucr_remap_node_of(const struct gpucr_remap_buckets *b,
					u32 gpu_id)
{
	u32 i;

	for (i = 0; i < b->num_devices; i++)
		if (b->devices[i].user_gpu_id == gpu_id)
			return fget(b->devices[i].drm_fd);
	return NULL;
}

/* User memory, doorbells and MMIO are not mapped through a render node. */
static bool gpucr_remap_mappable(const struct kfd_criu_bo_bucket *bo)
{
	return bo->offset &&
	       bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
				  KFD_IOC_ALLOC_MEM_FLAGS_GTT) &&
	       !(bo->alloc_flags & (KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
				    KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL |
				    KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP));
}

static int gpucr_remap_fill_one(struct gpucr_session *s, u32 image_pid,
				const struct gpucr_remap_buckets *b, u32 i)
{
	const struct kfd_criu_bo_bucket *bo = &b->bos[i];
	struct gpucr_remap r = {
		.old_pgoff = bo->offset >> PAGE_SHIFT,
		.size = bo->size,
		.image_pid = image_pid,
		.gpu_id = bo->gpu_id,
		.source = GPUCR_REMAP_SOURCE_RESTORE,
	};
	struct drm_file *df;
	struct file *file;
	u64 offset;
	int err;

	err = gpucr_fault(GPUCR_FAULT_REMAP_FILL);
	if (err)
		return err;
	if (copy_from_user(&offset, &b->user_bos[i].restored_offset,
			   sizeof(offset)))
		return -EFAULT;
	r.new_pgoff = offset >> PAGE_SHIFT;
	if ((offset | bo->offset) & ~PAGE_MASK || !gpucr_remap_sane(&r))
		return -EINVAL;
	file = gpucr_remap_node_of(b, bo->gpu_id);
	if (!file)
		return -EBADF;
	df = gpucr_drm_check(file, NULL);
	err = PTR_ERR_OR_ZERO(df);
	if (!err) {
		r.minor = gpucr_remap_minor(df);
		err = gpucr_remap_check_bo(df, &r, NULL);
	}
	fput(file);
	return err ?: gpucr_remap_add(s, &r);
}

/**
 * gpucr_remap_fill() - keep the offsets of a RESTORE that has succeeded
 * @s: the session
 * @image_pid: the task in the image
 * @b: what it gave RESTORE
 * @kept: how many offsets are kept
 * @ack: told why not all
 *
 * Copies from the caller's memory: may sleep for as long as that takes.
 *
 * Return: 0, or why the first one that is not kept is not.
 */
int gpucr_remap_fill(struct gpucr_session *s, u32 image_pid,
		     const struct gpucr_remap_buckets *b, u32 *kept,
		     struct netlink_ext_ack *ack)
{
	int err, first = 0;
	u32 i;

	*kept = 0;
	for (i = 0; i < b->num_bos; i++) {
		if (!gpucr_remap_mappable(&b->bos[i]))
			continue;
		err = gpucr_remap_fill_one(s, image_pid, b, i);
		if (!err)
			(*kept)++;
		else if (!first)
			first = err;
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	if (first)
		NL_SET_ERR_MSG(ack,
			       "an offset is not kept: it leads to no BO of its size, or overlaps");
	return first;
}

/* Is the BO still there, for this file? */
static int gpucr_remap_check_still(struct drm_file *df,
				   const struct gpucr_remap *r,
				   struct netlink_ext_ack *ack)
{
	if (gpucr_remap_minor(df) == r->minor &&
	    gpucr_bo_size_at(df, r->new_pgoff) == r->size)
		return 0;
	NL_SET_ERR_MSG(ack,
		       "the BO is not there any more, or not for this file");
	return -ESTALE;
}

/**
 * gpucr_remap_resolve() - how a mapping of the image is made again
 * @s: the session
 * @df: render node that is to be mapped, of a supported device; or NULL
 * @key: image_pid, gpu_id, old_pgoff of the mapping; its size, or 0
 * @res: the answer
 * @ack: told why not
 *
 * Return: 0 or a negative errno, as the protocol says of remap-resolve.
 */
int gpucr_remap_resolve(struct gpucr_session *s, struct drm_file *df,
			const struct gpucr_remap *key,
			struct gpucr_resolved *res,
			struct netlink_ext_ack *ack)
{
	struct gpucr_remap_node *floor;
	struct gpucr_remap r;
	bool found;
	int err;

	err = gpucr_remap_check_session(s, ack);
	if (err)
		return err;
	mutex_lock(&s->data);
	floor = gpucr_remap_floor(&s->remaps, key);
	found = floor && gpucr_remap_inside(key, &floor->r);
	if (found)
		r = floor->r;
	mutex_unlock(&s->data);
	if (!found) {
		NL_SET_ERR_MSG(ack, "no BO of that task and GPU was at old-pgoff");
		return -ENOENT;
	}
	res->delta = (key->old_pgoff - r.old_pgoff) << PAGE_SHIFT;
	if (key->size > r.size - res->delta) {
		NL_SET_ERR_MSG(ack, "the mapping ends after the BO");
		return -ERANGE;
	}
	res->size = r.size;
	res->minor = r.minor;
	res->kind = res->delta ? GPUCR_REMAP_KIND_DMA_BUF :
				 GPUCR_REMAP_KIND_RENDER;
	res->new_pgoff = res->delta ? res->delta >> PAGE_SHIFT : r.new_pgoff;
	return df ? gpucr_remap_check_still(df, &r, ack) : 0;
}

/**
 * gpucr_remap_snapshot() - the offsets that are kept for a session
 * @s: the session
 * @image_pid: of this task only; 0: all
 * @ack: told why not
 *
 * Return: a snapshot of struct gpucr_remap by key, or an error pointer:
 * -EINVAL, -ENOMEM.
 */
struct gpucr_snapshot *gpucr_remap_snapshot(struct gpucr_session *s,
					    u32 image_pid,
					    struct netlink_ext_ack *ack)
{
	struct gpucr_snapshot *snap;
	struct gpucr_remap_node *n;
	struct rb_node *at;
	int err;

	err = gpucr_remap_check_session(s, ack);
	if (err)
		return ERR_PTR(err);
	mutex_lock(&s->data);
	snap = gpucr_snapshot_alloc(s->num_remaps, sizeof(struct gpucr_remap));
	for (at = snap ? rb_first(&s->remaps) : NULL; at; at = rb_next(at)) {
		n = rb_entry(at, struct gpucr_remap_node, node);
		if (!image_pid || n->r.image_pid == image_pid)
			*(struct gpucr_remap *)gpucr_snapshot_add(snap) = n->r;
	}
	mutex_unlock(&s->data);
	return snap ?: ERR_PTR(-ENOMEM);
}
