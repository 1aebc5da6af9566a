// SPDX-License-Identifier: GPL-2.0-only
#include "fill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rendernode.h"
#include "report.h"

#include "plugin.h"

static int fill_job(const struct fill_env *env, const struct gpucr_img_kfd *img,
		    const struct gpucr_kfd_state *s, struct gpucr_img_pages *p,
		    struct content_job *j)
{
	const struct gpucr_img_device *d = gpucr_img_find_device(img,
								 p->gpu_id);
	const struct gpucr_devmap_entry *e =
		gpucr_devmap_find(env->devmap, d->local_gpu_id);

	*j = (struct content_job){
		.cfg = {
			.dir = env->dir,
			.gpu_id = p->gpu_id,
			.slots = env->watch ? MAIN_SLOTS : TASK_SLOTS,
			.slot_size = env->watch ? MAIN_SLOT_SIZE :
						  TASK_SLOT_SIZE,
			.max_buffer = env->max_buffer,
			.copy_ms = env->copy_ms,
			.pace = env->pace,
			.progress = env->progress,
		},
		.state = s,
		.pages = p,
	};
	/* Not the task's own file: its address space is the application's. */
	j->cfg.drm_fd = gpucr_drm_open_render(e->render_minor);
	return j->cfg.drm_fd < 0 ? j->cfg.drm_fd : 0;
}

static int fill_gpus(const struct fill_env *env,
		     const struct gpucr_img_kfd *img,
		     const struct gpucr_kfd_state *s)
{
	struct content_job *jobs = calloc(img->num_pages + 1, sizeof(*jobs));
	size_t i, num;
	int err = jobs ? 0 : -ENOMEM;

	for (num = 0; num < img->num_pages && !err; num++)
		err = fill_job(env, img, s, &img->pages[num], &jobs[num]);
	if (!err && env->watch)
		err = content_restore_apart(jobs, num, env->watch);
	else if (!err)
		err = content_restore(jobs, num);
	for (i = 0; i < num; i++) {
		/* One that was only stopped failed nowhere. */
		if (err && jobs[i].placed)
			gpucr_report_place(plugin_report, &jobs[i].place);
		if (jobs[i].cfg.drm_fd >= 0)
			close(jobs[i].cfg.drm_fd);
	}
	free(jobs);
	return err;
}

int fill_process(const struct fill_env *env, const struct gpucr_img_kfd *img,
		 const struct gpucr_kfd_state *s)
{
	int err, phase;

	phase = gpucr_report_begin(plugin_report, "fill", img->pid);
	err = fill_gpus(env, img, s);
	if (!err)
		gpucr_report_end(plugin_report, phase,
				 gpucr_img_content_bytes(img, 0));
	return err;
}

int fill_list(const struct gpucr_kfd_state *s, int **ret, size_t *num)
{
	uint32_t i;

	*num = 0;
	*ret = calloc((size_t)s->n.num_bos + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (i = 0; i < s->n.num_bos; i++) {
		if (!gpucr_kfd_bo_has_content(s->bos[i].alloc_flags))
			continue;
		(*ret)[*num] = (int)s->bos[i].dmabuf_fd;
		if ((*ret)[(*num)++] < 0)
			return -EBADF;
	}
	return 0;
}

int fill_unlist(const struct gpucr_img_kfd *img, const int *fds, size_t num,
		struct gpucr_kfd_state *s)
{
	size_t i, used = 0;

	memset(s, 0, sizeof(*s));
	s->bos = calloc(img->num_bos + 1, sizeof(*s->bos));
	if (!s->bos)
		return -ENOMEM;
	s->n.num_bos = img->num_bos;
	for (i = 0; i < img->num_bos; i++) {
		s->bos[i].size = img->bos[i].size;
		s->bos[i].gpu_id = img->bos[i].gpu_id;
		s->bos[i].alloc_flags = img->bos[i].alloc_flags;
		if (!gpucr_kfd_bo_has_content(img->bos[i].alloc_flags))
			continue;
		if (used == num)
			return -EPROTO;
		s->bos[i].dmabuf_fd = fds[used++];
	}
	return used == num ? 0 : -EPROTO;
}
