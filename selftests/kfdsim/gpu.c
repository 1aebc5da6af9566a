// SPDX-License-Identifier: GPL-2.0
/*
 * The GPUs: a DRM device with driver name "amdgpu" on each software PCI
 * function, and what sysfs shows of it.
 */
#include <linux/hash.h>
#include <linux/kobject.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_prime.h>
#include "kfdsim_drm.h"

static unsigned int gpus = 1;
module_param(gpus, uint, 0444);
MODULE_PARM_DESC(gpus, "how many GPUs, 1 to 64");

static char *model = "mi210";
module_param(model, charp, 0444);
MODULE_PARM_DESC(model, "what they are");

static unsigned int vram_mb;
module_param(vram_mb, uint, 0444);
MODULE_PARM_DESC(vram_mb, "VRAM of each in MiB; 0: the model's");

static unsigned int gtt_mb;
module_param(gtt_mb, uint, 0444);
MODULE_PARM_DESC(gtt_mb, "GTT of each in MiB; 0: half of the memory");

static unsigned int machine;
module_param(machine, uint, 0444);
MODULE_PARM_DESC(machine, "another number: other gpu_id and unique_id, as on another machine");

struct kfdsim_gpu *kfdsim_gpus[KFDSIM_MAX_GPUS];
unsigned int kfdsim_num_gpus;

static const struct kfdsim_model *the_model;
static struct kobject *module_kobj;

u64 kfdsim_gpu_clock(void)
{
	return div_u64(ktime_get_raw_ns(), 10);
}

struct kfdsim_gpu *kfdsim_gpu_by_id(u32 gpu_id)
{
	unsigned int i;

	for (i = 0; i < kfdsim_num_gpus; i++)
		if (kfdsim_gpus[i]->gpu_id == gpu_id)
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

/* 16 bits, not 0, different for each GPU. */
static u32 make_gpu_id(u64 unique_id)
{
	u32 id = hash_64(unique_id, 16);

	while (!id || kfdsim_gpu_by_id(id))
		id = (id + 1) & 0xffff;
	return id;
}

static void gpu_fill(struct kfdsim_gpu *gpu, struct pci_dev *pdev,
		     unsigned int index)
{
	gpu->pdev = pdev;
	gpu->model = the_model;
	gpu->index = index;
	gpu->unique_id = hash_64((u64)machine << 8 | (index + 1), 64);
	gpu->gpu_id = make_gpu_id(gpu->unique_id);
	gpu->vram_size = vram_mb ? (u64)vram_mb << 20 : the_model->vram_size;
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

static void gpus_drop(void)
{
	unsigned int i;

	for (i = 0; i < KFDSIM_MAX_GPUS; i++) {
		kfdsim_pci_remove(i);
		if (kfdsim_gpus[i])
			drm_dev_put(&kfdsim_gpus[i]->drm);
		kfdsim_gpus[i] = NULL;
	}
	kfdsim_num_gpus = 0;
}

static int gpus_add(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < gpus; i++) {
		ret = kfdsim_pci_add(i, the_model->device_id, the_model->revision);
		if (!ret && !kfdsim_gpus[i])
			ret = -ENODEV;
		if (ret) {
			gpus_drop();
			return ret;
		}
		kfdsim_num_gpus = i + 1;
	}
	return 0;
}

static int check_params(void)
{
	if (!gpus || gpus > KFDSIM_MAX_GPUS) {
		pr_notice("kfdsim: gpus=%u is not within 1 and %u\n", gpus,
			  KFDSIM_MAX_GPUS);
		return -EINVAL;
	}
	the_model = kfdsim_model_find(model);
	if (!the_model) {
		pr_notice("kfdsim: model=%s is not known\n", model);
		return -EINVAL;
	}
	return 0;
}

/** kfdsim_gpus_init() - bring up as many GPUs as the parameters say */
int kfdsim_gpus_init(void)
{
	static const int minors[] = {
		[KFDSIM_6_1] = 49,
		[KFDSIM_6_12] = 61,
		[KFDSIM_7_2] = 64,
		[KFDSIM_7_3] = 64,
	};
	int ret = check_params();

	if (ret)
		return ret;
	drm_driver.minor = minors[kfdsim_personality];
	ret = kfdsim_bo_init();
	if (ret)
		return ret;
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
}
