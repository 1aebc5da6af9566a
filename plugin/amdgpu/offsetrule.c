// SPDX-License-Identifier: GPL-2.0-only
#include "offsetrule.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gpucr_kfdpriv.h>

#include "kfd.h"
#include "kfdoffset.h"
#include "log.h"
#include "rendernode.h"

#include "quietfork.h"

#define OFFSET_DOORBELL	(UINT64_C(3) << GPUCR_KFD_OFFSET_TYPE_SHIFT)
/* A process has so many bytes of doorbells on every GPU that KFD knows. */
#define DOORBELL_BYTES	8192

uint64_t offsetrule_apply(enum gpucr_offset_rule rule,
			  const struct gpucr_img_vma *v, uint32_t local_id)
{
	return gpucr_kfd_offset_set_gpu(v->offset,
					rule == GPUCR_OFFSET_USER ?
					v->gpu_id : local_id);
}

static bool can_map(int fd, enum gpucr_offset_rule rule,
		    const struct gpucr_img_vma *v, uint32_t local_id)
{
	size_t len = v->end - v->start;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       offsetrule_apply(rule, v, local_id));

	if (p == MAP_FAILED)
		return false;
	munmap(p, len);
	return true;
}

static uint32_t local_id_of(const struct gpucr_img_kfd *img,
			    const struct gpucr_devmap *devmap,
			    const struct gpucr_img_vma *v)
{
	const struct gpucr_img_device *d = gpucr_img_find_device(img,
								 v->gpu_id);

	return gpucr_devmap_find(devmap, d->local_gpu_id)->gpu_id;
}

/* Does the process know some GPU by this id? */
static bool is_user_id(const struct gpucr_img_kfd *img, uint32_t id)
{
	size_t i;

	for (i = 0; i < img->num_devices; i++) {
		if (img->devices[i].user_gpu_id == id)
			return true;
	}
	return false;
}

static bool is_per_gpu(const struct gpucr_img_vma *v)
{
	return v->kind != GPUCR_IMG_VMA_RENDER &&
	       v->kind != GPUCR_IMG_VMA_KFD_EVENTS;
}

/* One mapping, whose two offsets mean two things, or one of them nothing. */
static int try_mapping(const struct gpucr_img_vma *v, uint32_t local_id,
		       int kfd_fd, enum gpucr_offset_rule *rule)
{
	if (can_map(kfd_fd, GPUCR_OFFSET_LOCAL, v, local_id)) {
		*rule = GPUCR_OFFSET_LOCAL;
		return 0;
	}
	if (can_map(kfd_fd, GPUCR_OFFSET_USER, v, local_id)) {
		*rule = GPUCR_OFFSET_USER;
		return 0;
	}
	gpucr_err("the doorbell or MMIO page at 0x%llx cannot be mapped on GPU 0x%04x (vma-unsupported)",
		  (unsigned long long)v->start, local_id);
	return -ENODEV;
}

int offsetrule_find(const struct gpucr_img_kfd *img,
		    const struct gpucr_devmap *devmap, int kfd_fd,
		    enum gpucr_offset_rule *rule)
{
	bool matters = false;
	size_t i;

	if (*rule != GPUCR_OFFSET_UNKNOWN)
		return 0;
	for (i = 0; i < img->num_vmas; i++) {
		const struct gpucr_img_vma *v = &img->vmas[i];
		uint32_t local_id;

		if (!is_per_gpu(v))
			continue;
		local_id = local_id_of(img, devmap, v);
		matters |= local_id != v->gpu_id;
		/* Else it would map under either rule, another GPU perhaps. */
		if (!is_user_id(img, local_id))
			return try_mapping(v, local_id, kfd_fd, rule);
	}
	if (!matters)
		return 0;
	gpucr_err("GPUs of the process change places, and which one a doorbell's offset means is not known of this kernel (offset-rule)");
	return -EOPNOTSUPP;
}

static bool is_id_of_any(const struct gpucr_devmap *m, uint32_t id)
{
	size_t i;

	for (i = 0; i < m->num; i++) {
		if (m->v[i].gpu_id == id || m->v[i].there.user_gpu_id == id)
			return true;
	}
	return false;
}

/* Our own process, as one whose GPUs were called otherwise. */
static int fill_own(const struct gpucr_devmap *m, struct gpucr_kfd_state *s)
{
	const struct gpucr_kfdpriv_process head = {
		.version = GPUCR_KFDPRIV_VERSION,
	};
	const struct gpucr_kfd_counts n = {
		.num_devices = m->num,
		.priv_size = sizeof(head) +
			     m->num * sizeof(struct gpucr_kfdpriv_device),
	};
	uint32_t id = 0;
	size_t i;
	int err;

	err = gpucr_kfd_state_alloc(s, &n);
	if (err)
		return err;
	memcpy(s->priv, &head, sizeof(head));
	for (i = 0; i < m->num; i++) {
		int fd = gpucr_drm_open_render(m->v[i].render_minor);

		if (fd < 0)
			return fd;
		do {
			id++;
		} while (is_id_of_any(m, id));
		s->devices[i] = (struct kfd_criu_device_bucket){
			.user_gpu_id = id,
			.actual_gpu_id = m->v[i].gpu_id,
			.drm_fd = fd,
		};
	}
	return 0;
}

static bool can_map_doorbell(int fd, uint32_t id)
{
	void *p = mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, fd,
		       gpucr_kfd_offset_set_gpu(OFFSET_DOORBELL, id));

	return p != MAP_FAILED;
}

/* In the process of our own, which ends with the answer. */
static enum gpucr_offset_rule try_own(const struct gpucr_devmap *m, dev_t kfd)
{
	struct gpucr_kfd_state s;
	int fd;

	fd = gpucr_kfd_open(kfd);
	if (fd < 0 || fill_own(m, &s) || gpucr_kfd_restore(fd, &s))
		return GPUCR_OFFSET_UNKNOWN;
	if (can_map_doorbell(fd, s.devices[0].user_gpu_id))
		return GPUCR_OFFSET_USER;
	if (can_map_doorbell(fd, s.devices[0].actual_gpu_id))
		return GPUCR_OFFSET_LOCAL;
	return GPUCR_OFFSET_UNKNOWN;
}

/* Is a GPU called what another is called here? */
static bool change_places(const struct gpucr_devmap *m)
{
	size_t i, j;

	for (i = 0; i < m->num; i++) {
		for (j = 0; j < m->num; j++) {
			if (i != j &&
			    m->v[i].gpu_id == m->v[j].there.user_gpu_id)
				return true;
		}
	}
	return false;
}

void offsetrule_prepare(const struct gpucr_devmap *devmap, dev_t kfd,
			enum gpucr_offset_rule *rule)
{
	int wstatus = 0;
	pid_t child;

	if (*rule != GPUCR_OFFSET_UNKNOWN || !change_places(devmap))
		return;
	child = quiet_fork(0);
	if (!child)
		_exit(try_own(devmap, kfd));
	while (child > 0 && waitpid(child, &wstatus, __WALL) < 0 &&
	       errno == EINTR)
		;
	if (child > 0 && WIFEXITED(wstatus) &&
	    WEXITSTATUS(wstatus) <= GPUCR_OFFSET_USER)
		*rule = WEXITSTATUS(wstatus);
	gpucr_dbg("GPUs change places; offset rule %d", *rule);
}
