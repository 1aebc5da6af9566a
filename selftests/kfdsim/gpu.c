// SPDX-License-Identifier: GPL-2.0
/*
 * The GPUs: a DRM device with driver name "amdgpu" on each software PCI
 * function, and what sysfs shows of it.
 */
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_prime.h>
#include "kfdsim_drm.h"

static unsigned int gtt_mb;
module_param(gtt_mb, uint, 0444);
MODULE_PARM_DESC(gtt_mb, "GTT of each in MiB; 0: half of the memory");

struct kfdsim_gpu *kfdsim_gpus[KFDSIM_MAX_GPUS];
unsigned int kfdsim_num_gpus;

static struct kobject *module_kobj;

u64 kfdsim_gpu_clock(void)
{
	return div_u64(ktime_get_raw_ns(), 10);
}

struct kfdsim_gpu *kfdsim_gpu_by_id(u32 gpu_id)
{
	unsigned int i;

	for (i = 0; i < kfdsim_num_gpus; i++)
		if (kfdsim_gpus[i] && kfdsim_gpus[i]->gpu_id == gpu_id)
			return kfdsim_gpus[i];
	return NULL;
}

int kfdsim_gpu_render_minor(const struct kfdsim_gpu *gpu)
{
	return gpu->drm.render->index;
}

static int drm_open_file(struct drm_device *dev, struct drm_file *file)
{
	struct kfdsim_fpriv *fp = kzalloc(sizeof(*fp), GFP_KERNEL);

	if (!fp)
		return -ENOMEM;
	fp->gpu = drm_to_kfdsim_gpu(dev);
	fp->vm = kfdsim_vm_create(fp->gpu);
	if (IS_ERR(fp->vm)) {
		int ret = PTR_ERR(fp->vm);

		kfree(fp);
		return ret;
	}
	mutex_init(&fp->lock);
	mutex_init(&fp->import_lock);
	xa_init(&fp->refs);
	xa_init_flags(&fp->ctxs, XA_FLAGS_ALLOC1);
	xa_init_flags(&fp->bo_lists, XA_FLAGS_ALLOC1);
	file->driver_priv = fp;
	return 0;
}

/* DRM has closed all handles before. */
static void drm_postclose_file(struct drm_device *dev, struct drm_file *file)
{
	struct kfdsim_fpriv *fp = file->driver_priv;

	kfdsim_cs_close(fp);
	kfdsim_ctx_release_all(fp);
	kfdsim_bo_list_release_all(fp);
	kfdsim_gem_release_refs(fp);
	kfdsim_vm_put(fp->vm);
	mutex_destroy(&fp->import_lock);
	mutex_destroy(&fp->lock);
	kfree(fp);
	file->driver_priv = NULL;
}

#define ANY	(DRM_AUTH | DRM_RENDER_ALLOW)

static const struct drm_ioctl_desc ioctls[] = {
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_CREATE, kfdsim_gem_create_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_MMAP, kfdsim_gem_mmap_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_CTX, kfdsim_ctx_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_BO_LIST, kfdsim_bo_list_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_CS, kfdsim_cs_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_INFO, kfdsim_info_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_METADATA, kfdsim_gem_metadata_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_WAIT_IDLE, kfdsim_gem_wait_idle_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_VA, kfdsim_gem_va_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_WAIT_CS, kfdsim_wait_cs_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_OP, kfdsim_gem_op_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_USERPTR, kfdsim_gem_userptr_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_WAIT_FENCES, kfdsim_wait_fences_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_VM, kfdsim_vm_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_FENCE_TO_HANDLE, kfdsim_fence_to_handle_ioctl, ANY),
	DRM_IOCTL_DEF_DRV(AMDGPU_GEM_LIST_HANDLES, kfdsim_gem_list_handles_ioctl, ANY),
};

DEFINE_DRM_GEM_FOPS(drm_fops);

/* minor is the personality's, filled in before the first device is made. */
static struct drm_driver drm_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = drm_open_file,
	.postclose = drm_postclose_file,
	.prime_handle_to_fd = drm_gem_prime_handle_to_fd,
	.prime_fd_to_handle = kfdsim_prime_fd_to_handle,
	.ioctls = ioctls,
	.num_ioctls = ARRAY_SIZE(ioctls),
	.fops = &drm_fops,
	.name = "amdgpu",
	.desc = "AMD GPU",
	KFDSIM_DRM_DATE("20150101")
	KFDSIM_DRM_PRIME_MMAP(drm_gem_prime_mmap)
	.major = 3,
};

struct drm_file *kfdsim_drm_file(struct file *filp)
{
	return filp->f_op == &drm_fops ? filp->private_data : NULL;
}

struct kfdsim_gpu *kfdsim_gpu_from_file(struct file *filp)
{
	struct drm_file *file = kfdsim_drm_file(filp);

	return file ? drm_to_kfdsim_gpu(file->minor->dev) : NULL;
}

struct kfdsim_vm *kfdsim_vm_from_file(struct file *filp)
{
	struct drm_file *file = kfdsim_drm_file(filp);
	struct kfdsim_fpriv *fp;

	if (!file)
		return NULL;
	fp = file->driver_priv;
	kfdsim_vm_get(fp->vm);
	return fp->vm;
}

static struct kfdsim_gpu *dev_gpu(struct device *dev)
{
	return dev_get_drvdata(dev);
}

static ssize_t vbios_version_show(struct device *dev, struct device_attribute *attr,
				  char *buf)
{
	return sysfs_emit(buf, "kfdsim-%s\n", dev_gpu(dev)->model->name);
}
static DEVICE_ATTR_RO(vbios_version);

static ssize_t unique_id_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%016llx\n", dev_gpu(dev)->unique_id);
}
static DEVICE_ATTR_RO(unique_id);

#define MEM_ATTR(name, expr)						\
static ssize_t mem_info_##name##_show(struct device *dev,		\
				      struct device_attribute *attr,	\
				      char *buf)			\
{									\
	struct kfdsim_gpu *gpu = dev_gpu(dev);				\
									\
	return sysfs_emit(buf, "%llu\n", (u64)(expr));			\
}									\
static DEVICE_ATTR_RO(mem_info_##name)

MEM_ATTR(vram_total, gpu->vram_size);
MEM_ATTR(vram_used, atomic64_read(&gpu->vram_used));
MEM_ATTR(vis_vram_total, gpu->vram_size);
MEM_ATTR(vis_vram_used, atomic64_read(&gpu->vram_used));
MEM_ATTR(gtt_total, gpu->gtt_size);
MEM_ATTR(gtt_used, atomic64_read(&gpu->gtt_used));

static struct attribute *gpu_attrs[] = {
	&dev_attr_vbios_version.attr,
	&dev_attr_unique_id.attr,
	&dev_attr_mem_info_vram_total.attr,
	&dev_attr_mem_info_vram_used.attr,
	&dev_attr_mem_info_vis_vram_total.attr,
	&dev_attr_mem_info_vis_vram_used.attr,
	&dev_attr_mem_info_gtt_total.attr,
	&dev_attr_mem_info_gtt_used.attr,
	NULL
};
ATTRIBUTE_GROUPS(gpu);

static void gpu_fill(struct kfdsim_gpu *gpu, struct pci_dev *pdev,
		     unsigned int index)
{
	const struct kfdsim_spec *spec = kfdsim_machine_spec(index);

	spin_lock_init(&gpu->rate_lock);
	spin_lock_init(&gpu->place_lock);
	INIT_LIST_HEAD(&gpu->in_vram);
	INIT_LIST_HEAD(&gpu->in_gtt);
	INIT_LIST_HEAD(&gpu->in_memory);
	gpu->pdev = pdev;
	gpu->model = spec->model;
	gpu->index = index;
	gpu->unique_id = spec->unique_id;
	gpu->hive_id = spec->hive_id;
	gpu->gpu_id = spec->gpu_id;
	gpu->vram_size = spec->vram_size;
	gpu->gtt_size = gtt_mb ? (u64)gtt_mb << 20 :
			(u64)totalram_pages() / 2 << PAGE_SHIFT;
}

static int gpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int index = kfdsim_pci_index(pdev);
	struct kfdsim_gpu *gpu;
	int ret;

	if (index < 0)
		return -ENODEV;
	gpu = devm_drm_dev_alloc(&pdev->dev, &drm_driver, struct kfdsim_gpu, drm);
	if (IS_ERR(gpu))
		return PTR_ERR(gpu);
	gpu_fill(gpu, pdev, index);
	pci_set_drvdata(pdev, gpu);
	ret = drm_dev_register(&gpu->drm, 0);
	if (ret)
		return ret;
	drm_dev_get(&gpu->drm);
	kfdsim_gpus[index] = gpu;
	return 0;
}

static void gpu_remove(struct pci_dev *pdev)
{
	struct kfdsim_gpu *gpu = pci_get_drvdata(pdev);

	drm_dev_unplug(&gpu->drm);
}

static const struct pci_device_id gpu_ids[] = {
	{ PCI_DEVICE(KFDSIM_PCI_VENDOR, PCI_ANY_ID) },
	{ }
};

struct pci_driver kfdsim_pci_driver = {
	.name = "amdgpu",
	.id_table = gpu_ids,
	.probe = gpu_probe,
	.remove = gpu_remove,
	.dev_groups = gpu_groups,
	.driver = {
		.suppress_bind_attrs = true,
		.probe_type = PROBE_FORCE_SYNCHRONOUS,
	},
};

static ssize_t initstate_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "live\n");
}

static struct kobj_attribute initstate_attr = __ATTR_RO(initstate);

/* ROCm looks for /sys/module/amdgpu; its presence also keeps amdgpu.ko out. */
static int module_dir_add(void)
{
	int ret;

	module_kobj = kobject_create_and_add("amdgpu",
					     &THIS_MODULE->mkobj.kobj.kset->kobj);
	if (!module_kobj)
		return -ENOMEM;
	ret = sysfs_create_file(module_kobj, &initstate_attr.attr);
	if (ret)
		kobject_put(module_kobj);
	return ret;
}

static void module_dir_remove(void)
{
	sysfs_remove_file(module_kobj, &initstate_attr.attr);
	kobject_put(module_kobj);
}

/* Files of its render node may stay open, and get -ENODEV from then on. */
static void gpu_drop(unsigned int index)
{
	struct kfdsim_gpu *gpu = kfdsim_gpus[index];

	kfdsim_pci_remove(index);
	kfdsim_gpus[index] = NULL;
	if (gpu)
		drm_dev_put(&gpu->drm);
}

static void gpus_drop(void)
{
	unsigned int i;

	for (i = 0; i < KFDSIM_MAX_GPUS; i++)
		gpu_drop(i);
	kfdsim_num_gpus = 0;
}

/*
 * A DRM device that takes the next minors and is never registered: once it is
 * gone they are free, and the GPUs' own have a gap there.
 */
struct gap {
	struct list_head node;
	struct platform_device *parent;
	struct drm_device *drm;
};

static void gaps_close(struct list_head *gaps)
{
	struct gap *g, *next;

	list_for_each_entry_safe(g, next, gaps, node) {
		if (g->drm)
			drm_dev_put(g->drm);
		platform_device_unregister(g->parent);
		kfree(g);
	}
}

static int gap_open(struct list_head *gaps)
{
	struct gap *g = kzalloc(sizeof(*g), GFP_KERNEL);
	struct drm_device *drm;
	int ret;

	if (!g)
		return -ENOMEM;
	g->parent = platform_device_register_simple("kfdsim-gap",
						    PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(g->parent)) {
		ret = PTR_ERR(g->parent);
		kfree(g);
		return ret;
	}
	list_add(&g->node, gaps);
	drm = drm_dev_alloc(&drm_driver, &g->parent->dev);
	if (IS_ERR(drm))
		return PTR_ERR(drm);
	g->drm = drm;
	return 0;
}

static int gpu_add(unsigned int index, struct list_head *gaps)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < kfdsim_machine_spec(index)->gap; i++)
		ret = gap_open(gaps);
	if (!ret)
		ret = kfdsim_pci_add(index);
	if (!ret && !kfdsim_gpus[index])
		ret = -ENODEV;
	return ret;
}

static unsigned int gpu_of_turn(unsigned int turn)
{
	unsigned int i = 0;

	while (kfdsim_machine_spec(i)->order != turn)
		i++;
	return i;
}

static int gpus_add(void)
{
	unsigned int turn, n = kfdsim_machine_gpus();
	LIST_HEAD(gaps);
	int ret = 0;

	for (turn = 0; !ret && turn < n; turn++)
		ret = gpu_add(gpu_of_turn(turn), &gaps);
	gaps_close(&gaps);
	if (ret)
		gpus_drop();
	else
		kfdsim_num_gpus = n;
	return ret;
}

/**
 * kfdsim_gpu_plug() - add a GPU of the machine that was taken away, or take it
 * @index: which
 * @there: true: add
 *
 * No process of KFD's exists. Return: 0; -EINVAL where there is no such GPU;
 * -EEXIST or -ENODEV where it is so already; other errors.
 */
int kfdsim_gpu_plug(unsigned int index, bool there)
{
	int ret;

	if (index >= kfdsim_machine_gpus())
		return -EINVAL;
	if (there && kfdsim_gpus[index])
		return -EEXIST;
	if (!there && !kfdsim_gpus[index])
		return -ENODEV;
	if (!there) {
		gpu_drop(index);
		return 0;
	}
	ret = kfdsim_pci_add(index);
	if (!ret && !kfdsim_gpus[index]) {
		kfdsim_pci_remove(index);
		ret = -ENODEV;
	}
	return ret;
}

/** kfdsim_gpus_init() - bring up the GPUs of the machine */
int kfdsim_gpus_init(void)
{
	static const int minors[] = {
		[KFDSIM_6_1] = 49,
		[KFDSIM_6_12] = 61,
		[KFDSIM_7_2] = 64,
		[KFDSIM_7_3] = 64,
	};
	int ret = kfdsim_machine_init();

	if (ret)
		return ret;
	drm_driver.minor = minors[kfdsim_personality];
	ret = kfdsim_bo_init();
	if (ret)
		goto err_machine;
	ret = module_dir_add();
	if (ret)
		goto err_bo;
	ret = pci_register_driver(&kfdsim_pci_driver);
	if (ret)
		goto err_module_dir;
	ret = gpus_add();
	if (ret)
		goto err_driver;
	return 0;

err_driver:
	pci_unregister_driver(&kfdsim_pci_driver);
err_module_dir:
	module_dir_remove();
err_bo:
	kfdsim_bo_exit();
err_machine:
	kfdsim_machine_exit();
	return ret;
}

/** kfdsim_gpus_exit() - after the KFD side has let go of everything */
void kfdsim_gpus_exit(void)
{
	gpus_drop();
	pci_unregister_driver(&kfdsim_pci_driver);
	module_dir_remove();
	kfdsim_vm_check_leaks();
	kfdsim_bo_exit();
	kfdsim_machine_exit();
}
