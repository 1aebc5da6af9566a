// SPDX-License-Identifier: GPL-2.0
/* Lists of the BOs that a submission uses. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include "kfdsim_drm.h"

#define MAX_ENTRIES	(128 * 1024)

static void list_release(struct kref *ref)
{
	struct kfdsim_bo_list *list = container_of(ref, struct kfdsim_bo_list, ref);
	unsigned int i;

	for (i = 0; i < list->n; i++)
		kfdsim_bo_put(list->bo[i]);
	kvfree(list);
}

void kfdsim_bo_list_put(struct kfdsim_bo_list *list)
{
	kref_put(&list->ref, list_release);
}

/** kfdsim_bo_list_get() - list by id, with a reference; NULL: none */
struct kfdsim_bo_list *kfdsim_bo_list_get(struct kfdsim_fpriv *fp, u32 id)
{
	struct kfdsim_bo_list *list;

	xa_lock(&fp->bo_lists);
	list = xa_load(&fp->bo_lists, id);
	if (list)
		kref_get(&list->ref);
	xa_unlock(&fp->bo_lists);
	return list;
}

void kfdsim_bo_list_release_all(struct kfdsim_fpriv *fp)
{
	struct kfdsim_bo_list *list;
	unsigned long id;

	xa_for_each(&fp->bo_lists, id, list)
		kfdsim_bo_list_put(list);
	xa_destroy(&fp->bo_lists);
}

static int list_add_handle(struct kfdsim_bo_list *list, struct drm_file *file,
			   u32 handle)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);
	struct kfdsim_bo *bo;

	if (!obj)
		return -ENOENT;
	bo = gem_to_kfdsim_bo(obj);
	if (bo->user_mm && bo->user_mm != current->mm) {
		kfdsim_bo_put(bo);
		return -EPERM;
	}
	list->bo[list->n++] = bo;
	return 0;
}

/**
 * kfdsim_bo_list_create() - list of the handles that user space names
 * @file: whose handles
 * @in: where they are
 * @out: the list, one reference
 *
 * Entries of another size than ours are taken as far as they go.
 * Return: 0 or a negative errno.
 */
int kfdsim_bo_list_create(struct drm_file *file,
			  const struct drm_amdgpu_bo_list_in *in,
			  struct kfdsim_bo_list **out)
{
	const void __user *from = u64_to_user_ptr(in->bo_info_ptr);
	struct drm_amdgpu_bo_list_entry entry;
	struct kfdsim_bo_list *list;
	int ret = 0;
	u32 i;

	if (in->bo_number > MAX_ENTRIES)
		return -EINVAL;
	list = kvzalloc(struct_size(list, bo, in->bo_number), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	kref_init(&list->ref);
	for (i = 0; i < in->bo_number && !ret; i++) {
		memset(&entry, 0, sizeof(entry));
		if (copy_from_user(&entry, from + (u64)i * in->bo_info_size,
				   min_t(u32, in->bo_info_size, sizeof(entry))))
			ret = -EFAULT;
		else
			ret = list_add_handle(list, file, entry.bo_handle);
	}
	if (ret)
		kfdsim_bo_list_put(list);
	else
		*out = list;
	return ret;
}

static int op_create(struct kfdsim_fpriv *fp, struct drm_file *file,
		     union drm_amdgpu_bo_list *args)
{
	struct kfdsim_bo_list *list;
	int ret;
	u32 id;

	ret = kfdsim_bo_list_create(file, &args->in, &list);
	if (ret)
		return ret;
	ret = xa_alloc(&fp->bo_lists, &id, list, xa_limit_31b, GFP_KERNEL);
	if (ret) {
		kfdsim_bo_list_put(list);
		return ret;
	}
	memset(args, 0, sizeof(*args));
	args->out.list_handle = id;
	return 0;
}

static int op_destroy(struct kfdsim_fpriv *fp, union drm_amdgpu_bo_list *args)
{
	struct kfdsim_bo_list *list = xa_erase(&fp->bo_lists, args->in.list_handle);

	if (list)
		kfdsim_bo_list_put(list);
	memset(args, 0, sizeof(*args));
	return 0;
}

static int op_update(struct kfdsim_fpriv *fp, struct drm_file *file,
		     union drm_amdgpu_bo_list *args)
{
	u32 id = args->in.list_handle;
	struct kfdsim_bo_list *list, *old;
	int ret;

	ret = kfdsim_bo_list_create(file, &args->in, &list);
	if (ret)
		return ret;
	xa_lock(&fp->bo_lists);
	old = xa_load(&fp->bo_lists, id);
	if (old)	/* an entry is there, so no memory is needed */
		__xa_store(&fp->bo_lists, id, list, GFP_ATOMIC);
	xa_unlock(&fp->bo_lists);
	kfdsim_bo_list_put(old ? old : list);
	if (!old)
		return -ENOENT;
	memset(args, 0, sizeof(*args));
	args->out.list_handle = id;
	return 0;
}

KFDSIM_IOCTL(kfdsim_bo_list_ioctl)
{
	struct kfdsim_fpriv *fp = file->driver_priv;
	union drm_amdgpu_bo_list *args = data;

	switch (args->in.operation) {
	case AMDGPU_BO_LIST_OP_CREATE:
		return op_create(fp, file, args);
	case AMDGPU_BO_LIST_OP_DESTROY:
		return op_destroy(fp, args);
	case AMDGPU_BO_LIST_OP_UPDATE:
		return op_update(fp, file, args);
	}
	return -EINVAL;
}
