// SPDX-License-Identifier: GPL-2.0-only
#include "sharedmem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gpucr_kfdpriv.h>
#include <linux/kfd_ioctl.h>

#include "log.h"

/* What a GPU can write of the process's own memory. */
struct user_range {
	uint64_t start, end;
};

struct user_ranges {
	struct user_range *v;
	size_t num;
};

static int add_bos(const struct gpucr_img_kfd *img,
		   const struct gpucr_kfdpriv *p, struct user_ranges *r)
{
	struct gpucr_kfdpriv_bo bo;
	size_t i;

	for (i = 0; i < img->num_bos; i++) {
		if (!(img->bos[i].alloc_flags &
		      KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
			continue;
		if (gpucr_kfdpriv_bo(p, i, &bo))
			return -EPROTO;
		r->v[r->num++] = (struct user_range){
			.start = bo.user_addr,
			.end = bo.user_addr + img->bos[i].size,
		};
	}
	return 0;
}

static void add_svm(const struct gpucr_kfdpriv *p, struct user_ranges *r)
{
	struct gpucr_kfdpriv_object o = { 0 };
	struct gpucr_kfdpriv_svm s;

	while (gpucr_kfdpriv_next(p, &o) > 0) {
		if (gpucr_kfdpriv_svm(p, &o, &s))
			continue;
		r->v[r->num++] = (struct user_range){
			.start = s.start << 12,
			.end = (s.start + s.size) << 12,
		};
	}
}

static int read_ranges(const struct gpucr_img_kfd *img, struct user_ranges *r)
{
	struct gpucr_kfdpriv p = {
		.data = img->priv,
		.size = img->priv_size,
		.num_devices = img->num_devices,
		.num_bos = img->num_bos,
		.num_objects = img->num_objects,
	};
	int err;

	r->num = 0;
	r->v = calloc(img->num_bos + img->num_objects + 1, sizeof(*r->v));
	if (!r->v)
		return -ENOMEM;
	err = gpucr_kfdpriv_open(&p, img->bo_record_size);
	if (!err)
		err = add_bos(img, &p, r);
	if (!err)
		add_svm(&p, r);
	return err;
}

static int refuse_in(pid_t pid, const struct user_ranges *r, uint64_t start,
		     uint64_t end)
{
	size_t i;

	for (i = 0; i < r->num; i++) {
		if (r->v[i].start >= end || r->v[i].end <= start)
			continue;
		gpucr_err("pid %d: a GPU can write the shared mapping at 0x%llx, which CRIU read while it still could (shared-early); that needs CRIU 4.0, and no other plugin that keeps its first question from us",
			  pid, (unsigned long long)
			  (r->v[i].start > start ? r->v[i].start : start));
		return -EOPNOTSUPP;
	}
	return 0;
}

static int search_maps(pid_t pid, const struct user_ranges *r)
{
	unsigned long long start, end;
	char path[64], perms[8], *line = NULL;
	size_t size = 0;
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!err && getline(&line, &size, f) > 0) {
		if (sscanf(line, "%llx-%llx %7s", &start, &end, perms) == 3 &&
		    perms[3] == 's')
			err = refuse_in(pid, r, start, end);
	}
	free(line);
	fclose(f);
	return err;
}

int sharedmem_refuse(pid_t pid, const struct gpucr_img_kfd *img)
{
	struct user_ranges r;
	int err;

	err = read_ranges(img, &r);
	if (!err && r.num)
		err = search_maps(pid, &r);
	if (err && err != -EOPNOTSUPP)
		gpucr_err("pid %d: which memory its GPUs can write is not known: %s (shared-early)",
			  pid, strerror(-err));
	free(r.v);
	return err;
}
