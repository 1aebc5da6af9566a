// SPDX-License-Identifier: GPL-2.0-only
#include "vmamap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/kcmp.h>

#include "log.h"

static int copy_above(const struct vmamap *m, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, m->min_fd);

	if (copy >= 0)
		return copy;
	copy = -errno;
	gpucr_err("no descriptor above %d for a GPU file: %s (nofile)",
		  m->min_fd, strerror(-copy));
	return copy;
}

int vmamap_keep(struct vmamap *m, uint32_t key, int fd)
{
	struct vmamap_file *more;
	int copy = copy_above(m, fd);

	close(fd);
	if (copy < 0)
		return copy;
	more = reallocarray(m->files, m->num_files + 1, sizeof(*more));
	if (!more) {
		close(copy);
		return -ENOMEM;
	}
	m->files = more;
	m->files[m->num_files++] = (struct vmamap_file){
		.key = key, .fd = copy,
	};
	return copy;
}

struct vmamap_file *vmamap_find_file(struct vmamap *m, uint32_t key)
{
	size_t i;

	for (i = 0; i < m->num_files; i++) {
		if (m->files[i].key == key)
			return &m->files[i];
	}
	return NULL;
}

int vmamap_give(struct vmamap *m, struct vmamap_file *f)
{
	int fd = f->fd;

	if (fd < 0)
		return -EBADF;
	if (f->uses)
		return copy_above(m, fd);
	f->fd = -1;
	return fd;
}

static int place(struct vmamap *m, const struct gpucr_img_kfd *img,
		 const struct gpucr_kfd_state *s,
		 const struct gpucr_devmap *devmap,
		 enum gpucr_offset_rule rule, const struct gpucr_img_vma *v)
{
	const struct gpucr_img_device *d = gpucr_img_find_device(img, v->gpu_id);
	struct vmamap_entry *e = &m->v[m->num];
	struct vmamap_file *f;

	f = vmamap_find_file(m, v->kind == GPUCR_IMG_VMA_RENDER ?
			     d->local_gpu_id : VMAMAP_KFD);
	if (!f)
		return -EBADF;
	e->start = v->start;
	e->old_offset = v->offset;
	e->file = f - m->files;
	if (v->kind == GPUCR_IMG_VMA_RENDER)
		e->new_offset = s->bos[v->bo].restored_offset;
	else if (v->kind == GPUCR_IMG_VMA_KFD_EVENTS)
		e->new_offset = v->offset;
	else
		e->new_offset = offsetrule_apply(rule, v,
			gpucr_devmap_find(devmap, d->local_gpu_id)->gpu_id);
	f->uses++;
	m->num++;
	return 0;
}

int vmamap_build(struct vmamap *m, const struct gpucr_img_kfd *img,
		 const struct gpucr_kfd_state *s,
		 const struct gpucr_devmap *devmap,
		 enum gpucr_offset_rule *rule)
{
	struct vmamap_file *kfd = vmamap_find_file(m, VMAMAP_KFD);
	size_t i;
	int err;

	err = kfd ? offsetrule_find(img, devmap, kfd->fd, rule) : 0;
	if (err)
		return err;

	m->v = calloc(img->num_vmas + 1, sizeof(*m->v));
	if (!m->v)
		return -ENOMEM;
	for (i = 0; i < img->num_vmas; i++) {
		err = place(m, img, s, devmap, *rule, &img->vmas[i]);
		if (err)
			return err;
	}
	return 0;
}

void vmamap_trim(struct vmamap *m)
{
	size_t i;

	for (i = 0; i < m->num_files; i++) {
		struct vmamap_file *f = &m->files[i];

		if (f->fd < 0 || f->uses || f->wanted)
			continue;
		close(f->fd);
		f->fd = -1;
	}
}

/*
 * CRIU before 3.19 copies the descriptor of a mapping and never closes the one
 * that it was given: in the end the application would have it. By now the
 * task's own descriptors are there, and one of the same file does as well.
 */
static void use_own(const struct vmamap *m, struct vmamap_file *f)
{
	pid_t self = getpid();
	int fd;

	for (fd = 0; fd < m->min_fd; fd++) {
		if (syscall(SYS_kcmp, self, self, KCMP_FILE, f->fd, fd))
			continue;
		close(f->fd);
		f->fd = fd;
		break;
	}
	f->looked = true;
}

static int compare_start(const void *key, const void *entry)
{
	uint64_t start = *(const uint64_t *)key;
	const struct vmamap_entry *e = entry;

	return start < e->start ? -1 : start > e->start;
}

int vmamap_look_up(struct vmamap *m, uint64_t start, uint64_t old_offset,
		   bool adopted, uint64_t *new_offset, int *fd)
{
	const struct vmamap_entry *e;
	struct vmamap_file *f;

	e = m->num ? bsearch(&start, m->v, m->num, sizeof(*e), compare_start) :
		     NULL;
	if (!e || e->old_offset != old_offset)
		return -ENOENT;
	f = &m->files[e->file];
	if (adopted) {
		if (f->uses)
			f->uses--;
		*fd = vmamap_give(m, f);
	} else {
		if (!f->looked)
			use_own(m, f);
		*fd = f->fd;
	}
	if (*fd < 0)
		return *fd;
	*new_offset = e->new_offset;
	return 0;
}
