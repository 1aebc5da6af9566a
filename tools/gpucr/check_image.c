// SPDX-License-Identifier: GPL-2.0-only
/* Can the images of a directory be restored here? The plugin's own verdict. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "fail.h"
#include "image_log.h"
#include "imgset.h"
#include "kfd.h"
#include "log.h"
#include "out.h"
#include "rendernode.h"
#include "restoreplan.h"

/* A message "what (token); what to do" of the library as a line. */
static void sink(enum gpucr_log_level level, const char *text)
{
	char what[512], token[32];
	enum check_answer answer = CHECK_WARN;
	const char *fix;

	if (level != GPUCR_LOG_ERROR && level != GPUCR_LOG_WARN)
		return;
	snprintf(what, sizeof(what), "%s", text);
	fix = image_log_split(what, token, sizeof(token));
	if (level == GPUCR_LOG_ERROR)
		answer = CHECK_NO;
	check_say(answer, "image", *token ? token : NULL, fix, "%s", what);
}

/* The refusal is told GPU by GPU instead. */
static void quiet(enum gpucr_log_level level, const char *text)
{
	(void)level;
	(void)text;
}

/*
 * CRIU runs as root. What only the mode of the node keeps from the caller will
 * open for it.
 */
static int open_render(uint32_t minor)
{
	int fd = gpucr_drm_open_render(minor);

	return fd == -EACCES ? open("/dev/null", O_RDONLY | O_CLOEXEC) : fd;
}

static void say_rule(const struct gpucr_devmap_entry *e,
		     const struct gpucr_node *here, const struct gpucr_rule *r)
{
	char subject[48], fix[64] = "another GPU, or machine";
	struct json_object *row;

	snprintf(subject, sizeof(subject), "GPU %u -> %u",
		 e->there.local_gpu_id, here->gpu_id);
	if (r->option)
		snprintf(fix, sizeof(fix), "%s = off", r->option);
	row = check_say(r->forbids ? CHECK_NO : CHECK_WARN, subject, r->token,
			fix, "%s is %llu there, %llu here", r->field,
			(unsigned long long)r->there,
			(unsigned long long)r->here);
	out_add_u64(row, "gpu", e->there.local_gpu_id);
	out_add_u64(row, "to", here->gpu_id);
	out_add_str(row, "field", r->field);
	out_add_u64(row, "there", r->there);
	out_add_u64(row, "here", r->here);
	out_add_str(row, "option", r->option);
}

static void say_render(const struct gpucr_devmap_entry *e,
		       const struct gpucr_devmap_why *w)
{
	char subject[48], fix[64];
	struct json_object *row;

	snprintf(subject, sizeof(subject), "GPU %u -> %u",
		 e->there.local_gpu_id, w->here->gpu_id);
	snprintf(fix, sizeof(fix), "give the container /dev/dri/renderD%u",
		 w->here->drm_render_minor);
	row = check_say(CHECK_NO, subject, "no-render-node", fix,
			"renderD%u cannot be opened: %s",
			w->here->drm_render_minor, strerror(-w->open_err));
	out_add_u64(row, "gpu", e->there.local_gpu_id);
	out_add_u64(row, "to", w->here->gpu_id);
}

/* Rules that do not hold; true where one forbids it. */
static bool say_broken(const struct gpucr_devmap_entry *e,
		       const struct gpucr_here *h, uint32_t to)
{
	struct gpucr_devmap_why w;
	size_t i;

	gpucr_devmap_explain(e, h, to, &w);
	if (!w.here)
		return false;
	if (w.open_err)
		say_render(e, &w);
	for (i = 0; i < w.num_rules; i++) {
		if (w.rules[i].broken)
			say_rule(e, w.here, &w.rules[i]);
	}
	return !w.fits;
}

/* Bytes in use of the GPU's VRAM; false where its driver does not tell. */
static bool vram_used(uint32_t minor, uint64_t *ret)
{
	unsigned long long n;
	char path[96];
	bool found;
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/drm/renderD%u/device/mem_info_vram_used", minor);
	f = fopen(path, "re");
	if (!f)
		return false;
	found = fscanf(f, "%llu", &n) == 1;
	fclose(f);
	*ret = n;
	return found;
}

static uint64_t vram_wanted(const struct gpucr_imgset *set, uint32_t gpu_id)
{
	uint64_t sum = 0;
	size_t i, j;

	for (i = 0; i < set->num_kfds; i++) {
		const struct gpucr_img_kfd *k = set->kfds[i];

		for (j = 0; j < k->num_bos; j++) {
			const struct gpucr_img_device *d =
				gpucr_img_find_device(k, k->bos[j].gpu_id);

			if (d && d->local_gpu_id == gpu_id &&
			    k->bos[j].alloc_flags &
				    KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
				sum += k->bos[j].size;
		}
	}
	return sum;
}

/* Others may have ended by then: a warning. */
static void say_vram(const struct gpucr_imgset *set,
		     const struct gpucr_devmap_entry *e,
		     const struct gpucr_node *here)
{
	uint64_t used, want = vram_wanted(set, e->there.local_gpu_id), left;
	char subject[48], a[OUT_SIZE_TEXT], b[OUT_SIZE_TEXT];

	if (!vram_used(here->drm_render_minor, &used))
		return;
	left = used < here->vram_size ? here->vram_size - used : 0;
	if (want <= left)
		return;
	snprintf(subject, sizeof(subject), "GPU %u -> %u",
		 e->there.local_gpu_id, here->gpu_id);
	out_format_size(want, a);
	out_format_size(left, b);
	check_say(CHECK_WARN, subject, "vram-busy",
		  "end what uses it (gpucr ps), or give device-map",
		  "%s of VRAM are wanted, %s are free now", a, b);
}

static void say_place(const struct gpucr_imgset *set,
		      const struct gpucr_devmap_entry *e,
		      const struct gpucr_here *h)
{
	struct json_object *row;
	char subject[48];

	snprintf(subject, sizeof(subject), "GPU %u -> %u",
		 e->there.local_gpu_id, e->gpu_id);
	row = check_say(CHECK_YES, subject, NULL, NULL, "%s, renderD%u",
			e->there.name, e->render_minor);
	out_add_u64(row, "gpu", e->there.local_gpu_id);
	out_add_u64(row, "to", e->gpu_id);
	say_broken(e, h, e->gpu_id);
	say_vram(set, e, gpucr_topology_find_by_gpu_id(h->topo, e->gpu_id));
}

static void say_map(struct gpucr_plan *p, const struct gpucr_imgset *set,
		    const struct gpucr_topology *topo)
{
	const struct gpucr_here h = {
		.topo = topo, .opts = &p->opts, .open_render = open_render,
	};
	bool told = false;
	size_t i;
	int err;

	gpucr_log_set_sink(quiet);
	gpucr_log_reset();
	err = gpucr_plan_map(p, open_render);
	gpucr_log_set_sink(sink);
	for (i = 0; i < p->devmap.num; i++) {
		if (err)
			told |= say_broken(&p->devmap.v[i], &h, 0);
		else
			say_place(set, &p->devmap.v[i], &h);
	}
	if (err && !told)
		sink(GPUCR_LOG_ERROR, gpucr_log_first_error());
}

static void say_devices(struct gpucr_plan *p, const struct gpucr_imgset *set)
{
	struct gpucr_topology *topo;
	dev_t kfd;

	if (gpucr_kfd_dev(&kfd) || gpucr_topology_read(NULL, &topo)) {
		check_say(CHECK_NO, "machine", "no-kfd", "modprobe amdgpu",
			  "there is no KFD here");
		return;
	}
	say_map(p, set, topo);
	gpucr_topology_free(topo);
}

static void say_sum(const struct gpucr_imgset *set)
{
	uint64_t bytes = 0, time = 0;
	char text[OUT_SIZE_TEXT];
	struct json_object *row;
	size_t i, num = 0;

	for (i = 0; i < set->num_kfds; i++) {
		bytes += gpucr_img_content_bytes(set->kfds[i], 0);
		num += set->kfds[i]->num_devices > 0;
		if (set->kfds[i]->time > time)
			time = set->kfds[i]->time;
	}
	out_format_size(bytes, text);
	row = check_say(CHECK_YES, "image", NULL, NULL,
			"%zu GPU process%s, %s of GPU memory", num,
			num == 1 ? "" : "es", text);
	out_add_u64(row, "processes", num);
	out_add_u64(row, "bytes", bytes);
}

/* All that a restore reads before it makes anything, in its order. */
static void say_all(const struct gpucr_imgset *set, const char *device_map)
{
	struct gpucr_plan plan = { 0 };

	if (gpucr_imgset_missing(set))
		return;
	if (gpucr_opts_load(&plan.opts, GPUCR_OPT_FILE, set->dir))
		return;
	if (device_map && gpucr_opts_set_map(&plan.opts, device_map)) {
		check_say(CHECK_NO, "device-map", "bad-option",
			  "OLD=NEW[,OLD=NEW]...",
			  "\"%s\" is no value for it", device_map);
		return;
	}
	gpucr_kfd_rules_read(&plan.rules);
	if (!gpucr_plan_read(&plan, set->dir)) {
		say_sum(set);
		say_devices(&plan, set);
	}
	gpucr_plan_clear(&plan);
}

int check_image(const char *path, const char *device_map)
{
	struct gpucr_imgset set;
	bool opened;
	int err;

	gpucr_log_reset();
	gpucr_log_set_sink(sink);
	err = gpucr_imgset_open(path, &set);
	opened = set.dir >= 0;
	if (!err)
		say_all(&set, device_map);
	gpucr_log_set_sink(NULL);
	gpucr_imgset_close(&set);
	if (opened && err == -ENOENT && !*gpucr_log_first_error())
		return fail(TOKEN_NO_IMAGE, ENOENT,
			    "%s: it has no image of GPU processes", path);
	if (err && (!opened || !*gpucr_log_first_error()))
		return fail(TOKEN_IO_ERROR, -err, "%s: %s", path,
			    strerror(-err));
	return EXIT_DONE;
}
