// SPDX-License-Identifier: GPL-2.0-only
/*
 * The GPU side of a tree that is to be dumped: whose KFD file, which BOs are
 * shared or not KFD's, which mappings are none that can be made again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"
#include "proc.h"
#include "rendernode.h"
#include "task.h"

struct share {
	uint64_t id;
	uint64_t size;
	pid_t pid;
};

struct view {
	const struct check_tree *tree;
	struct gpucr_nl *nl;
	struct gpucr_proc_fd *fds;	/* of all processes */
	size_t num_fds;
	struct share *shares;		/* BOs that have another file, by id */
	size_t num_shares;
};

static void subject_fd(char text[48], const struct gpucr_proc_fd *f)
{
	snprintf(text, 48, "pid %d fd %d", f->pid, f->fd);
}

static bool is_kfd_process(pid_t pid)
{
	struct gpucr_kfd_proc p;

	if (gpucr_kfd_proc_read(pid, &p))
		return false;
	gpucr_kfd_proc_clear(&p);
	return true;
}

static pid_t restore_order(pid_t pid)
{
	struct gpucr_task t;

	return gpucr_task_read(pid, &t) ? pid : t.ns_pid;
}

/* The KFD process in the tree behind an inherited file; 0: none is. */
static pid_t find_owner(const struct view *v, const struct gpucr_proc_fd *f)
{
	size_t i;

	for (i = 0; i < v->num_fds; i++) {
		const struct gpucr_proc_fd *o = &v->fds[i];

		if (o->kind == GPUCR_DEV_KFD && o->pid != f->pid &&
		    check_tree_has(v->tree, o->pid) && is_kfd_process(o->pid) &&
		    gpucr_proc_same_file(o, f) == 1)
			return o->pid;
	}
	return 0;
}

static void check_kfd(const struct view *v, const struct gpucr_proc_fd *f)
{
	char subject[48];
	pid_t owner;

	if (is_kfd_process(f->pid))
		return;
	owner = find_owner(v, f);
	subject_fd(subject, f);
	if (!owner)
		check_say(CHECK_NO, subject, "kfd-owner",
			  "dump the tree whose root has opened it",
			  "an inherited KFD file, whose process is not in the tree");
	else if (restore_order(f->pid) < restore_order(owner))
		check_say(CHECK_NO, subject, "kfd-owner",
			  "have the job close /dev/kfd before fork",
			  "an inherited KFD file of pid %d, and CRIU would restore it here",
			  owner);
}

static void check_handles(const struct gpucr_proc_fd *f, int copy)
{
	uint32_t handles = 0;
	char subject[48];

	if (!gpucr_drm_is_amdgpu(copy) ||
	    gpucr_drm_count_handles(copy, &handles) || !handles)
		return;
	subject_fd(subject, f);
	check_say(CHECK_NO, subject, "render-bo", NULL,
		  "%u BO%s made through the render node, not through KFD",
		  handles, handles == 1 ? "" : "s");
}

static int add_share(struct view *v, const struct gpucr_nl_bo *bo, pid_t pid)
{
	struct share *more = reallocarray(v->shares, v->num_shares + 1,
					  sizeof(*more));

	if (!more)
		return -ENOMEM;
	v->shares = more;
	v->shares[v->num_shares++] = (struct share){
		.id = bo->share_id, .size = bo->size, .pid = pid,
	};
	return 0;
}

/* BOs of one file, noted for comparison. */
static void read_bos(struct view *v, const struct gpucr_proc_fd *f, int copy)
{
	struct gpucr_nl_bo *bos;
	size_t i, num;

	if (gpucr_nl_bos(v->nl, copy, &bos, &num))
		return;
	for (i = 0; i < num; i++)
		if (add_share(v, &bos[i], f->pid))
			break;
	free(bos);
}

/* Mappings that do not begin where their BO begins. */
static void check_vmas(const struct view *v, const struct gpucr_proc_fd *f,
		       int copy)
{
	struct gpucr_nl_vma *vmas;
	char subject[48];
	size_t i, num;

	if (gpucr_nl_vmas(v->nl, f->pid, copy, &vmas, &num))
		return;
	snprintf(subject, sizeof(subject), "pid %d", f->pid);
	for (i = 0; i < num; i++) {
		if (vmas[i].kind != GPUCR_VMA_KIND_BO || !vmas[i].bo_delta)
			continue;
		check_say(CHECK_NO, subject, "vma-unsupported", NULL,
			  "the mapping at 0x%" PRIx64 " begins %" PRIu64 " bytes into its BO",
			  vmas[i].start, vmas[i].bo_delta);
	}
	free(vmas);
}

/* A copy of the descriptor; what cannot be copied has ended. */
static int copy_fd(const struct gpucr_proc_fd *f)
{
	int pidfd = gpucr_pidfd_open(f->pid), copy;

	if (pidfd < 0)
		return pidfd;
	copy = gpucr_pidfd_getfd(pidfd, f->fd);
	close(pidfd);
	return copy;
}

static bool seen_before(const struct view *v, size_t index)
{
	size_t i;

	for (i = 0; i < index; i++)
		if (v->fds[i].pid == v->fds[index].pid &&
		    v->fds[i].kind == v->fds[index].kind &&
		    gpucr_proc_same_file(&v->fds[i], &v->fds[index]) == 1)
			return true;
	return false;
}

static void check_render(struct view *v, const struct gpucr_proc_fd *f)
{
	bool ours = check_tree_has(v->tree, f->pid);
	int copy;

	/* Of others only their BOs matter, for comparison. */
	if (!ours && !v->nl)
		return;
	copy = copy_fd(f);
	if (copy < 0)
		return;
	if (ours)
		check_handles(f, copy);
	if (v->nl)
		read_bos(v, f, copy);
	if (ours && v->nl)
		check_vmas(v, f, copy);
	close(copy);
}

/* Mappings of a device without a KFD process to bring them back. */
static void check_foreign(pid_t pid)
{
	struct gpucr_task_map *maps;
	char subject[32];
	size_t i, num;

	if (is_kfd_process(pid) || gpucr_task_device_maps(pid, &maps, &num))
		return;
	snprintf(subject, sizeof(subject), "pid %d", pid);
	for (i = 0; i < num; i++) {
		uint32_t min = minor(maps[i].rdev);
		enum gpucr_dev_kind kind;
		char driver[32];

		kind = gpucr_dev_kind(major(maps[i].rdev), min);
		gpucr_dev_driver(min, driver, sizeof(driver));
		if (kind != GPUCR_DEV_KFD &&
		    (kind != GPUCR_DEV_RENDER || strcmp(driver, "amdgpu")))
			continue;
		check_say(CHECK_NO, subject, "vma-unsupported", NULL,
			  "it maps GPU memory at 0x%" PRIx64 " and has no KFD process of its own",
			  maps[i].start);
	}
	free(maps);
}

static int compare_shares(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* One BO in two processes; its bytes count once. */
static void check_shares(const struct view *v, struct check_size *ret)
{
	size_t i;

	for (i = 0; i < v->num_shares; i++) {
		const struct share *s = &v->shares[i];
		const struct share *last = i ? s - 1 : NULL;
		bool ours = check_tree_has(v->tree, s->pid);
		char subject[48];

		if (!last || last->id != s->id) {
			ret->bytes += ours ? s->size : 0;
			ret->bos += ours;
			continue;
		}
		if (last->pid == s->pid ||
		    (!ours && !check_tree_has(v->tree, last->pid)))
			continue;
		snprintf(subject, sizeof(subject), "pid %d",
			 ours ? s->pid : last->pid);
		check_say(CHECK_NO, subject, "bo-shared", NULL,
			  "pid %d%s has the same BO, %016" PRIx64,
			  ours ? last->pid : s->pid,
			  ours && check_tree_has(v->tree, last->pid) ?
			  "" : ", outside of the tree,", s->id);
	}
}

/* What sysfs tells: VRAM alone. */
static void count_vram(const struct check_tree *t, struct check_size *ret)
{
	struct gpucr_kfd_proc p;
	size_t i, j;

	for (i = 0; i < t->num; i++) {
		if (gpucr_kfd_proc_read(t->pids[i], &p))
			continue;
		for (j = 0; j < p.num_gpus; j++)
			ret->bytes += p.gpus[j].vram;
		gpucr_kfd_proc_clear(&p);
	}
}

static size_t check_files(struct view *v)
{
	size_t i, kfds = 0;

	for (i = 0; i < v->num_fds; i++) {
		const struct gpucr_proc_fd *f = &v->fds[i];
		bool ours = check_tree_has(v->tree, f->pid);

		if (seen_before(v, i))
			continue;
		if (f->kind == GPUCR_DEV_RENDER)
			check_render(v, f);
		if (f->kind == GPUCR_DEV_KFD && ours) {
			check_kfd(v, f);
			kfds++;
		}
	}
	for (i = 0; i < v->tree->num; i++)
		check_foreign(v->tree->pids[i]);
	return kfds;
}

void check_gpu(const struct check_tree *t, struct gpucr_nl *nl,
	       struct check_size *ret)
{
	struct view v = { .tree = t, .nl = nl };
	size_t hidden = 0;

	if (gpucr_proc_all_fds(&v.fds, &v.num_fds, &hidden))
		return;
	if (!check_files(&v))
		check_say(CHECK_YES, "KFD", NULL, NULL,
			  "not in use: gpucr leaves the tree to CRIU");
	else if (!nl)
		check_say(CHECK_WARN, "BOs", "no-module", "modprobe gpucr",
			  "without the module nothing tells who shares them, and which are mapped in part");
	if (hidden)
		check_say(CHECK_WARN, "BOs", "sharers-unknown", "run as root",
			  "%zu processes cannot be looked into", hidden);
	if (v.num_shares)
		qsort(v.shares, v.num_shares, sizeof(*v.shares),
		      compare_shares);
	check_shares(&v, ret);
	if (!nl)
		count_vram(t, ret);
	free(v.shares);
	free(v.fds);
}
