// SPDX-License-Identifier: GPL-2.0-only
/* The parts of an image as rows. */
#include <string.h>
#include <time.h>

#include <gpucr_kfdpriv.h>

#include "gpu.h"
#include "image.h"
#include "kfd.h"
#include "proc.h"

#define HEX(row, key, value) \
	out_add_fmt(row, key, "0x%llx", (unsigned long long)(value))

static void add_time(struct json_object *row, const char *key, uint64_t t)
{
	time_t seconds = (time_t)t;
	struct tm tm;
	char text[40];

	if (!t || t > INT32_MAX * UINT64_C(64) || !gmtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		out_add_null(row, key);
	else
		out_add_str(row, key, text);
}

static const struct out_column all_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "KIND", "kind", out_text, 0 },
	{ "PID", "pid", out_text, 0 },
	{ "GPUS", "gpus", out_text, 0 },
	{ "BOS", "bos", out_text, 0 },
	{ "VRAM", "vram", out_size, 0 },
	{ "GTT", "gtt", out_size, 0 },
	{ "STORED", "stored", out_size, 0 },
	{ "QUEUES", "queues", out_text, 0 },
	{ "EVENTS", "events", out_text, 0 },
	{ "DUMPED", "time", out_text, 0 },
	{ "ALIAS OF", "alias_of", out_text, OUT_VERBOSE },
	{ "ZEROS", "zeros", out_size, OUT_VERBOSE },
	{ "ZSTD", "zstd", out_size, OUT_VERBOSE },
	{ "VMAS", "vmas", out_text, OUT_VERBOSE },
	{ "SVM", "svm_ranges", out_text, OUT_VERBOSE },
	{ "KERNEL", "kernel", out_text, OUT_VERBOSE },
	{ "WRITER", "writer", out_text, OUT_VERBOSE },
	{ 0 }
};

static void all_rows(const struct gpucr_imgset *set)
{
	size_t i, j;

	for (i = 0; i < set->num_kfds; i++) {
		const struct gpucr_img_kfd *k = set->kfds[i];
		struct gpucr_imgset_pages n = { 0 };
		struct json_object *row = out_row();
		struct image_objects o;

		image_count_objects(k, &o);
		for (j = 0; j < k->num_pages; j++)
			gpucr_imgset_count(&k->pages[j].chunks, &n);
		out_add_u64(row, "id", k->id);
		out_add_str(row, "kind", image_kfd_kind(k));
		out_add_u64(row, "pid", k->pid);
		out_add_u64(row, "gpus", k->num_devices);
		out_add_u64(row, "bos", k->num_bos);
		out_add_u64(row, "vram", image_heap_bytes(k,
				KFD_IOC_ALLOC_MEM_FLAGS_VRAM, NULL));
		out_add_u64(row, "gtt", image_heap_bytes(k,
				KFD_IOC_ALLOC_MEM_FLAGS_GTT, NULL));
		out_add_u64(row, "stored", n.file_bytes);
		out_add_u64(row, "zeros", n.zero_bytes);
		out_add_u64(row, "zstd", n.zstd_bytes);
		out_add_u64(row, "queues", o.queues);
		out_add_u64(row, "events", o.events);
		out_add_u64(row, "svm_ranges", o.ranges);
		out_add_u64(row, "vmas", k->num_vmas);
		if (k->alias_of)
			out_add_u64(row, "alias_of", k->alias_of);
		else
			out_add_null(row, "alias_of");
		add_time(row, "time", k->time);
		out_add_u64(row, "bo_record_size", k->bo_record_size);
		out_add_str(row, "kernel", k->kernel_release);
		out_add_str(row, "writer", k->writer);
	}
}

static const struct out_column gpu_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "LOCAL", "local_gpu", out_text, 0 },
	{ "NAME", "name", out_text, 0 },
	{ "TARGET", "target", out_text, 0 },
	{ "VRAM", "vram", out_size, 0 },
	{ "PCI", "pci", out_text, 0 },
	{ "RENDER", "render_minor", out_text, 0 },
	{ "FW", "fw_version", out_text, OUT_VERBOSE },
	{ "SDMA FW", "sdma_fw_version", out_text, OUT_VERBOSE },
	{ "SIMDS", "simd_count", out_text, OUT_VERBOSE },
	{ "XCC", "num_xcc", out_text, OUT_VERBOSE },
	{ "UNIQUE", "unique_id", out_text, OUT_VERBOSE },
	{ "HIVE", "hive_id", out_text, OUT_VERBOSE },
	{ 0 }
};

static void gpu_row(const struct gpucr_img_kfd *k,
		    const struct gpucr_img_device *d)
{
	struct json_object *row = out_row();
	char pci[24], gfx[24];

	image_pci(d, pci);
	image_gfx(d->gfx_target_version, gfx);
	out_add_u64(row, "id", k->id);
	gpu_add(row, d->user_gpu_id);
	out_add_u64(row, "local_gpu", d->local_gpu_id);
	out_add_str(row, "name", d->name);
	out_add_str(row, "target", gfx);
	out_add_u64(row, "gfx_target_version", d->gfx_target_version);
	out_add_u64(row, "vram", d->vram_bytes);
	out_add_str(row, "pci", pci);
	out_add_u64(row, "render_minor", d->render_minor);
	HEX(row, "vendor_id", d->vendor_id);
	HEX(row, "device_id", d->device_id);
	out_add_u64(row, "fw_version", d->fw_version);
	out_add_u64(row, "sdma_fw_version", d->sdma_fw_version);
	out_add_u64(row, "simd_count", d->simd_count);
	out_add_u64(row, "num_xcc", d->num_xcc);
	out_add_u64(row, "num_gws", d->num_gws);
	out_add_u64(row, "caches_count", d->caches_count);
	HEX(row, "capability", d->capability);
	HEX(row, "unique_id", d->unique_id);
	HEX(row, "hive_id", d->hive_id);
}

static void gpu_rows(const struct gpucr_imgset *set)
{
	size_t i, j;

	for (i = 0; i < set->num_kfds; i++)
		for (j = 0; j < set->kfds[i]->num_devices; j++)
			gpu_row(set->kfds[i], &set->kfds[i]->devices[j]);
}

static const struct out_column bo_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "BO", "bo", out_text, 0 },
	{ "ADDR", "addr", out_text, 0 },
	{ "SIZE", "size", out_size, 0 },
	{ "HEAP", "heap", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "MAPPED", "vmas", out_text, 0 },
	{ "ON GPUS", "mapped_gpus", out_list, 0 },
	{ "OFFSET", "offset", out_text, OUT_VERBOSE },
	{ "FLAGS", "alloc_flags", out_text, OUT_VERBOSE },
	{ "HANDLE", "handle", out_text, OUT_VERBOSE },
	{ "USERPTR", "user_addr", out_text, OUT_VERBOSE },
	{ 0 }
};

/* What KFD's private record of the BO adds. */
static void bo_private(struct json_object *row, const struct gpucr_kfdpriv *p,
		       size_t i)
{
	struct json_object *list = out_add_array(row, "mapped_gpus");
	struct gpucr_kfdpriv_bo rec;
	uint32_t id, n = 0;

	while (list && (id = gpucr_kfdpriv_bo_gpu(p, i, n++)))
		json_object_array_add(list, json_object_new_uint64(id));
	if (gpucr_kfdpriv_bo(p, i, &rec)) {
		out_add_null(row, "handle");
		out_add_null(row, "user_addr");
		return;
	}
	out_add_u64(row, "handle", rec.idr_handle);
	HEX(row, "user_addr", rec.user_addr);
}

static bool open_private(const struct gpucr_img_kfd *k, struct gpucr_kfdpriv *p)
{
	*p = (struct gpucr_kfdpriv){
		.data = k->priv,
		.size = k->priv_size,
		.num_devices = k->num_devices,
		.num_bos = k->num_bos,
		.num_objects = k->num_objects,
	};
	return k->priv_size && !gpucr_kfdpriv_open(p, k->bo_record_size);
}

/* How many mappings each BO has; free() it. */
static uint32_t *count_mapped(const struct gpucr_img_kfd *k)
{
	uint32_t *num = calloc(k->num_bos + 1, sizeof(*num));
	size_t i;

	for (i = 0; num && i < k->num_vmas; i++)
		if (k->vmas[i].bo < k->num_bos)
			num[k->vmas[i].bo]++;
	return num;
}

static void bo_rows_of(const struct gpucr_img_kfd *k)
{
	uint32_t *mapped = count_mapped(k);
	struct gpucr_kfdpriv p;
	size_t i;

	if (!open_private(k, &p))
		p.num_bos = 0;
	for (i = 0; i < k->num_bos; i++) {
		struct json_object *row = out_row();

		out_add_u64(row, "id", k->id);
		out_add_u64(row, "bo", i);
		HEX(row, "addr", k->bos[i].addr);
		out_add_u64(row, "size", k->bos[i].size);
		out_add_str(row, "heap", image_heap(k->bos[i].alloc_flags));
		gpu_add(row, k->bos[i].gpu_id);
		out_add_u64(row, "vmas", mapped ? mapped[i] : 0);
		HEX(row, "offset", k->bos[i].offset);
		HEX(row, "alloc_flags", k->bos[i].alloc_flags);
		bo_private(row, &p, i);
	}
	free(mapped);
}

static void bo_rows(const struct gpucr_imgset *set)
{
	size_t i;

	for (i = 0; i < set->num_kfds; i++)
		bo_rows_of(set->kfds[i]);
}

static const struct out_column queue_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "QID", "qid", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "TYPE", "type", out_text, 0 },
	{ "RING", "ring_size", out_size, 0 },
	{ "RING AT", "ring_addr", out_text, 0 },
	{ "PRIORITY", "priority", out_text, 0 },
	{ "PERCENT", "percent", out_text, 0 },
	{ "DOORBELL", "doorbell_id", out_text, OUT_VERBOSE },
	{ "MQD", "mqd_size", out_size, OUT_VERBOSE },
	{ "STACK", "ctl_stack_size", out_size, OUT_VERBOSE },
	{ "SAVE AREA", "save_area_size", out_size, OUT_VERBOSE },
	{ 0 }
};

static void queue_row(uint32_t id, const struct gpucr_kfdpriv_queue *q)
{
	struct json_object *row = out_row();

	out_add_u64(row, "id", id);
	out_add_u64(row, "qid", q->q_id);
	gpu_add(row, q->gpu_id);
	out_add_str(row, "type", gpucr_kfd_queue_type(q->q_type));
	out_add_str(row, "format", q->format ? "aql" : "pm4");
	out_add_u64(row, "ring_size", q->q_size);
	HEX(row, "ring_addr", q->q_address);
	HEX(row, "read_ptr_addr", q->read_ptr_addr);
	HEX(row, "write_ptr_addr", q->write_ptr_addr);
	out_add_u64(row, "priority", q->priority);
	out_add_u64(row, "percent", q->q_percent);
	out_add_u64(row, "doorbell_id", q->doorbell_id);
	HEX(row, "doorbell_off", q->doorbell_off);
	out_add_u64(row, "sdma_id", q->sdma_id);
	out_add_u64(row, "gws", q->gws);
	out_add_u64(row, "mqd_size", q->mqd_size);
	out_add_u64(row, "ctl_stack_size", q->ctl_stack_size);
	HEX(row, "save_area_addr", q->ctx_save_restore_area_address);
	out_add_u64(row, "save_area_size", q->ctx_save_restore_area_size);
}

static const struct out_column event_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "EVENT", "event", out_text, 0 },
	{ "TYPE", "type", out_text, 0 },
	{ "AUTO-RESET", "auto_reset", out_text, 0 },
	{ "SIGNALED", "signaled", out_text, 0 },
	{ "PAGE", "page_handle", out_text, OUT_VERBOSE },
	{ 0 }
};

static void event_row(uint32_t id, const struct gpucr_kfdpriv_event *e)
{
	struct json_object *row = out_row();

	out_add_u64(row, "id", id);
	out_add_u64(row, "event", e->event_id);
	out_add_str(row, "type", image_event_type(e->event_type));
	out_add_bool(row, "auto_reset", e->auto_reset);
	out_add_bool(row, "signaled", e->signaled);
	HEX(row, "page_handle", e->user_handle);
}

static void object_rows(const struct gpucr_imgset *set, uint32_t type)
{
	struct gpucr_kfdpriv_queue q;
	struct gpucr_kfdpriv_event e;
	struct gpucr_kfdpriv p;
	size_t i;

	for (i = 0; i < set->num_kfds; i++) {
		struct gpucr_kfdpriv_object o = { 0 };

		if (!open_private(set->kfds[i], &p))
			continue;
		while (gpucr_kfdpriv_next(&p, &o) > 0) {
			if (o.type != type)
				continue;
			if (!gpucr_kfdpriv_queue(&p, &o, &q))
				queue_row(set->kfds[i]->id, &q);
			else if (!gpucr_kfdpriv_event(&p, &o, &e))
				event_row(set->kfds[i]->id, &e);
		}
	}
}

static void queue_rows(const struct gpucr_imgset *set)
{
	object_rows(set, GPUCR_KFDPRIV_QUEUE);
}

static void event_rows(const struct gpucr_imgset *set)
{
	object_rows(set, GPUCR_KFDPRIV_EVENT);
}

static void cell_range(struct json_object *row, const char *key, FILE *to)
{
	(void)key;
	/* Both begin with 0x, which a range does without. */
	fprintf(to, "%s-%s",
		json_object_get_string(json_object_object_get(row, "start")) + 2,
		json_object_get_string(json_object_object_get(row, "end")) + 2);
}

static const struct out_column vma_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "RANGE", "start", cell_range, 0 },
	{ "KIND", "kind", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "BO", "bo", out_text, 0 },
	{ "SIZE", "size", out_size, 0 },
	{ "OFFSET", "offset", out_text, OUT_VERBOSE },
	{ 0 }
};

static void vma_rows(const struct gpucr_imgset *set)
{
	size_t i, j;

	for (i = 0; i < set->num_kfds; i++) {
		const struct gpucr_img_kfd *k = set->kfds[i];

		for (j = 0; j < k->num_vmas; j++) {
			const struct gpucr_img_vma *v = &k->vmas[j];
			struct json_object *row = out_row();

			out_add_u64(row, "id", k->id);
			HEX(row, "start", v->start);
			HEX(row, "end", v->end);
			out_add_u64(row, "size", v->end - v->start);
			out_add_str(row, "kind", image_vma_kind(v));
			gpu_add(row, v->gpu_id);
			if (v->bo == GPUCR_IMG_NO_BO)
				out_add_null(row, "bo");
			else
				out_add_u64(row, "bo", v->bo);
			HEX(row, "offset", v->offset);
		}
	}
}

static const struct out_column share_columns[] = {
	{ "ID", "id", out_text, 0 },
	{ "KIND", "kind", out_text, 0 },
	{ "GPU", "gpu", out_text, 0 },
	{ "OWNER", "owner_pid", out_text, 0 },
	{ "OPEN IN", "open_in", out_list, 0 },
	{ "ALIAS OF", "alias_of", out_text, 0 },
	{ 0 }
};

static struct json_object *share_row(const struct gpucr_imgset *set,
				     uint32_t id, const char *kind)
{
	struct json_object *row = out_row(), *list;
	char text[48];
	size_t i;

	out_add_u64(row, "id", id);
	out_add_str(row, "kind", kind);
	list = out_add_array(row, "open_in");
	for (i = 0; i < set->criu.num_fds; i++) {
		const struct gpucr_criuimg_fd *f = &set->criu.fds[i];

		if (f->id != id)
			continue;
		snprintf(text, sizeof(text), "%u fd %u", f->pid, f->fd);
		json_object_array_add(list, json_object_new_string(text));
	}
	return row;
}

static void share_rows(const struct gpucr_imgset *set)
{
	struct json_object *row;
	size_t i;

	for (i = 0; i < set->num_kfds; i++) {
		const struct gpucr_img_kfd *k = set->kfds[i];

		row = share_row(set, k->id, "kfd");
		out_add_null(row, "gpu");
		out_add_u64(row, "owner_pid", k->pid);
		if (k->alias_of)
			out_add_u64(row, "alias_of", k->alias_of);
		else
			out_add_null(row, "alias_of");
	}
	for (i = 0; i < set->num_renders; i++) {
		const struct gpucr_img_render *r = &set->renders[i];

		row = share_row(set, r->id, r->kfd_vm ? "render-vm" : "render");
		gpu_add(row, r->device.user_gpu_id);
		if (r->owner_pid)
			out_add_u64(row, "owner_pid", r->owner_pid);
		else
			out_add_null(row, "owner_pid");
		out_add_null(row, "alias_of");
	}
}

static const struct out_column phase_columns[] = {
	{ "PHASE", "phase", out_text, 0 },
	{ "MS", "duration_us", out_ms, 0 },
	{ "BY", "by", out_text, 0 },
	{ "ID", "id", out_text, OUT_VERBOSE },
	{ "CONTENT", "bytes", out_size, OUT_VERBOSE },
	{ 0 }
};

static struct json_object *phase_row(const char *phase, const char *by,
				     uint64_t us)
{
	struct json_object *row = out_row();

	out_add_str(row, "phase", phase);
	out_add_str(row, "by", by);
	out_add_u64(row, "duration_us", us);
	return row;
}

/* Of one process; images of before have no times. */
static void gpu_phases(const struct gpucr_img_kfd *k)
{
	struct json_object *row;

	if (!k->copy_us)
		return;
	row = phase_row("gpu-read", "gpucr", k->read_us);
	out_add_u64(row, "id", k->id);
	row = phase_row("gpu-copy", "gpucr", k->copy_us);
	out_add_u64(row, "id", k->id);
	out_add_u64(row, "bytes", gpucr_img_content_bytes(k, 0));
}

static void phase_rows(const struct gpucr_imgset *set)
{
	const struct gpucr_criuimg *c = &set->criu;
	size_t i;

	for (i = 0; i < set->num_kfds; i++)
		gpu_phases(set->kfds[i]);
	if (c->has_stats) {
		phase_row("freezing", "criu", c->freezing_us);
		phase_row("frozen", "criu", c->frozen_us);
		phase_row("memory-dump", "criu", c->memdump_us);
		phase_row("memory-write", "criu", c->memwrite_us);
	} else {
		out_warn("no-phases", "CRIU's stats-dump is not in the directory: it is in the work directory of criu dump");
	}
}

static const struct image_part parts[] = {
	{ NULL, all_rows, all_columns },
	{ "gpu", gpu_rows, gpu_columns },
	{ "bo", bo_rows, bo_columns },
	{ "queue", queue_rows, queue_columns },
	{ "event", event_rows, event_columns },
	{ "vma", vma_rows, vma_columns },
	{ "share", share_rows, share_columns },
	{ "phase", phase_rows, phase_columns },
};

const struct image_part *image_part(const char *name)
{
	size_t i;

	if (!name)
		return &parts[0];
	for (i = 1; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	return NULL;
}
