// SPDX-License-Identifier: GPL-2.0-only
/* The image report: one HTML file that loads nothing and runs nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gpucr_kfdpriv.h>

#include "fail.h"
#include "image.h"
#include "image_svg.h"
#include "proc.h"

#define MAX_ROWS	200	/* of a table; the largest come first */

static const char style[] =
"<style>\n"
":root{--fg:#1b1b1b;--bg:#fff;--soft:#595959;--line:#c8c8c8;--ground:#f0f0f0;"
"--vram:#0067a5;--gtt:#d98200;--userptr:#00876c;--io:#a8407f;--vma:#444}\n"
"@media (prefers-color-scheme:dark){@media screen{:root{--fg:#eee;--bg:#161616;--soft:#b0b0b0;"
"--line:#4a4a4a;--ground:#2a2a2a;--vram:#4aa8e0;--gtt:#f0a030;--userptr:#2fbf9c;"
"--io:#d880b4;--vma:#ccc}}}\n"
"body{font:16px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);"
"max-width:64rem;margin:2rem auto;padding:0 1rem}\n"
"h1{font-size:1.6rem;margin-bottom:.2rem}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}"
"h3{margin:1.6rem 0 .5rem}\n"
"p.sub,figcaption,caption{color:var(--soft)}caption{text-align:left;padding:.3rem 0}\n"
"caption{font-weight:600}\n"
"code,td.n,td.a{font-family:ui-monospace,monospace;font-size:.9em}\n"
"dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.2rem}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
".scroll{overflow-x:auto;margin-top:1.4rem}table{border-collapse:collapse;width:100%}"
"th,td{padding:.25rem 1.2rem .25rem 0;text-align:left;border-bottom:1px solid var(--line)}"
"td.n,th.n{text-align:right}td.n{white-space:nowrap}\n"
"figure{margin:.6rem 0}svg{display:block;width:100%;height:2.2rem}"
"figcaption{font-size:.9em}\n"
".legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.3rem 1.4rem}"
".key{display:inline-block;width:1rem;height:.8rem;margin-right:.4rem;vertical-align:baseline}\n"
".ground{fill:var(--ground)}\n"
"rect.vram,rect.stored,rect.phase{fill:var(--vram)}rect.gtt{fill:var(--gtt)}rect.userptr{fill:var(--userptr)}"
"rect.doorbell,rect.mmio,rect.unknown{fill:var(--io)}rect.vma{fill:var(--vma)}rect.zeros{fill:var(--line)}\n"
".key.vram,.key.stored{background:var(--vram)}.key.gtt{background:var(--gtt)}.key.userptr{background:var(--userptr)}"
".key.doorbell,.key.mmio,.key.unknown{background:var(--io)}.key.vma{background:var(--vma);height:.35rem}.key.zeros{background:var(--line)}\n"
"svg rect.vram,svg rect.gtt,svg rect.userptr,svg rect.doorbell,svg rect.mmio{stroke:var(--bg);stroke-width:.5}\n"
"@media print{body{max-width:none;margin:0;font-size:10pt}h2,h3{break-after:avoid}figure,tr{break-inside:avoid}"
".scroll{overflow:visible}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n"
"</style>\n";

static void head(FILE *to, const char *path)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>GPU image ",
	      to);
	image_html_text(to, path);
	fputs("</title>\n", to);
	fputs(style, to);
	fputs("</head><body><main>\n<h1>GPU image</h1>\n<p class=\"sub\"><code>",
	      to);
	image_html_text(to, path);
	fputs("</code>, read by gpucr " GPUCR_VERSION "</p>\n", to);
}

static void item(FILE *to, const char *name, const char *text)
{
	fprintf(to, "<dt>%s</dt><dd>", name);
	image_html_text(to, *text ? text : "not recorded");
	fputs("</dd>\n", to);
}

static void item_size(FILE *to, const char *name, uint64_t bytes)
{
	fprintf(to, "<dt>%s</dt><dd>", name);
	image_html_size(to, bytes);
	fputs("</dd>\n", to);
}

static void item_number(FILE *to, const char *name, uint64_t n)
{
	fprintf(to, "<dt>%s</dt><dd>%llu</dd>\n", name, (unsigned long long)n);
}

static void table(FILE *to, const char *caption, const char *const *titles)
{
	/* Over a scrolling table, keys must reach it. */
	fprintf(to, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><caption>%s</caption><thead><tr>",
		caption, caption);
	/* "#" before a title: numbers, to the right. */
	for (; *titles; titles++)
		fprintf(to, "<th scope=\"col\"%s>%s</th>",
			**titles == '#' ? " class=\"n\"" : "",
			*titles + (**titles == '#'));
	fputs("</tr></thead><tbody>\n", to);
}

static void table_end(FILE *to)
{
	fputs("</tbody></table></div>\n", to);
}

static void cell_hex(FILE *to, uint64_t n)
{
	fprintf(to, "<td class=\"a\">0x%llx</td>", (unsigned long long)n);
}

static void cell_number(FILE *to, uint64_t n)
{
	fprintf(to, "<td class=\"n\">%llu</td>", (unsigned long long)n);
}

static void cell_size(FILE *to, uint64_t n)
{
	fputs("<td class=\"n\">", to);
	image_html_size(to, n);
	fputs("</td>", to);
}

static void cell_text(FILE *to, const char *text)
{
	fputs("<td>", to);
	image_html_text(to, text);
	fputs("</td>", to);
}

static void facts(FILE *to, const struct gpucr_img_kfd *k)
{
	struct gpucr_imgset_pages n = { 0 };
	time_t t = (time_t)k->time;
	struct image_objects o;
	char text[40] = "";
	struct tm tm;
	size_t i;

	if (k->time && gmtime_r(&t, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	for (i = 0; i < k->num_pages; i++)
		gpucr_imgset_count(&k->pages[i].chunks, &n);
	image_count_objects(k, &o);
	fputs("<dl>\n", to);
	item(to, "dumped", text);
	item(to, "kernel", k->kernel_release);
	item(to, "written by", k->writer);
	item_number(to, "GPUs", k->num_devices);
	item_number(to, "buffer objects", k->num_bos);
	item_size(to, "GPU memory", n.raw_bytes);
	item_size(to, "stored", n.file_bytes);
	item_number(to, "queues", o.queues);
	item_number(to, "events", o.events);
	item_number(to, "SVM ranges", o.ranges);
	fputs("</dl>\n", to);
}

static void gpus(FILE *to, const struct gpucr_img_kfd *k)
{
	static const char * const titles[] = {
		"#GPU", "#on that machine", "name", "target", "#VRAM", "PCI",
		"#render node", NULL
	};
	char pci[24], gfx[24];
	size_t i;

	table(to, "GPUs of the process", titles);
	for (i = 0; i < k->num_devices; i++) {
		const struct gpucr_img_device *d = &k->devices[i];

		image_pci(d, pci);
		fputs("<tr>", to);
		cell_number(to, d->user_gpu_id);
		cell_number(to, d->local_gpu_id);
		cell_text(to, d->name);
		image_gfx(d->gfx_target_version, gfx);
		cell_text(to, gfx);
		cell_size(to, d->vram_bytes);
		cell_text(to, pci);
		cell_number(to, d->render_minor);
		fputs("</tr>\n", to);
	}
	table_end(to);
}

static const struct gpucr_img_bo *sort_base;

static int by_size(const void *a, const void *b)
{
	const struct gpucr_img_bo *x = &sort_base[*(const size_t *)a];
	const struct gpucr_img_bo *y = &sort_base[*(const size_t *)b];

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void bos(FILE *to, const struct gpucr_img_kfd *k)
{
	static const char * const titles[] = {
		"#BO", "address", "#size", "heap", "#GPU", NULL
	};
	size_t *order = calloc(k->num_bos + 1, sizeof(*order)), i;

	if (!order)
		return;
	for (i = 0; i < k->num_bos; i++)
		order[i] = i;
	sort_base = k->bos;
	qsort(order, k->num_bos, sizeof(*order), by_size);
	table(to, "Buffer objects, the largest first", titles);
	for (i = 0; i < k->num_bos && i < MAX_ROWS; i++) {
		const struct gpucr_img_bo *b = &k->bos[order[i]];

		fputs("<tr>", to);
		cell_number(to, order[i]);
		cell_hex(to, b->addr);
		cell_size(to, b->size);
		cell_text(to, image_heap(b->alloc_flags));
		cell_number(to, b->gpu_id);
		fputs("</tr>\n", to);
	}
	table_end(to);
	if (k->num_bos > MAX_ROWS)
		fprintf(to, "<p>%zu smaller ones are left out; <code>gpucr image show DIR bo</code> has all.</p>\n",
			k->num_bos - MAX_ROWS);
	free(order);
}

static void vmas(FILE *to, const struct gpucr_img_kfd *k)
{
	static const char * const titles[] = {
		"start", "end", "#size", "kind", "#BO", "#GPU", NULL
	};
	size_t i;

	table(to, "Mappings", titles);
	for (i = 0; i < k->num_vmas && i < MAX_ROWS; i++) {
		const struct gpucr_img_vma *v = &k->vmas[i];

		fputs("<tr>", to);
		cell_hex(to, v->start);
		cell_hex(to, v->end);
		cell_size(to, v->end - v->start);
		cell_text(to, image_vma_kind(v));
		if (v->bo == GPUCR_IMG_NO_BO)
			fputs("<td class=\"n\">-</td>", to);
		else
			cell_number(to, v->bo);
		cell_number(to, v->gpu_id);
		fputs("</tr>\n", to);
	}
	table_end(to);
	if (k->num_vmas > MAX_ROWS)
		fprintf(to, "<p>%zu more are left out; <code>gpucr image show DIR vma</code> has all.</p>\n",
			k->num_vmas - MAX_ROWS);
}

static void queues(FILE *to, const struct gpucr_img_kfd *k)
{
	static const char * const titles[] = {
		"#queue", "#GPU", "type", "#ring", "ring at", "#priority", NULL
	};
	struct gpucr_kfdpriv p = {
		.data = k->priv, .size = k->priv_size,
		.num_devices = k->num_devices, .num_bos = k->num_bos,
		.num_objects = k->num_objects,
	};
	struct gpucr_kfdpriv_object o = { 0 };
	struct gpucr_kfdpriv_queue q;

	if (gpucr_kfdpriv_open(&p, k->bo_record_size))
		return;
	table(to, "Queues", titles);
	while (gpucr_kfdpriv_next(&p, &o) > 0) {
		if (gpucr_kfdpriv_queue(&p, &o, &q))
			continue;
		fputs("<tr>", to);
		cell_number(to, q.q_id);
		cell_number(to, q.gpu_id);
		cell_text(to, gpucr_kfd_queue_type(q.q_type));
		cell_size(to, q.q_size);
		cell_hex(to, q.q_address);
		cell_number(to, q.priority);
		fputs("</tr>\n", to);
	}
	table_end(to);
}

static void process(FILE *to, const struct gpucr_img_kfd *k)
{
	struct image_objects o;

	image_count_objects(k, &o);
	fprintf(to, "<h2>Process %u, file %u</h2>\n", k->pid, k->id);
	if (k->alias_of || k->no_gpu) {
		fprintf(to, k->alias_of ?
			"<p>Another open file of the process of file %u.</p>\n" :
			"<p>A KFD file of a process that no GPU is visible to.</p>\n",
			k->alias_of);
		return;
	}
	facts(to, k);
	fputs("<h3>Memory map</h3>\n<p class=\"sub\">Each bar is one stretch of addresses, drawn to its own length. Above: buffer objects by the GPU's address; the thin marks below: mappings by the CPU's.</p>\n",
	      to);
	image_svg_map(to, k);
	fputs("<h3>Content</h3>\n", to);
	if (k->num_pages)
		image_svg_content(to, k);
	else
		fputs("<p>No buffer object has content.</p>\n", to);
	gpus(to, k);
	if (o.queues)
		queues(to, k);
	if (k->num_vmas)
		vmas(to, k);
	if (k->num_bos)
		bos(to, k);
}

static void timeline(FILE *to, const struct gpucr_criuimg *c)
{
	fputs("<h2>The dump</h2>\n", to);
	if (c->has_stats) {
		image_svg_phases(to, c);
		fputs("<p class=\"sub\">By CRIU's stats-dump: how long each took, not when it began.</p>\n",
		      to);
	} else {
		fputs("<p>CRIU's times are not recorded: its stats-dump is not in the directory.</p>\n",
		      to);
	}
	fputs("<p>Times of the GPU's part, such as pause and copy, are not recorded.</p>\n",
	      to);
}

static void files(FILE *to, const struct gpucr_imgset *set)
{
	static const char * const titles[] = {
		"#file", "kind", "#GPU", "open in", NULL
	};
	size_t i, j;

	if (!set->num_renders)
		return;
	fputs("<h2>Render nodes</h2>\n", to);
	table(to, "Open render node files, and who has them", titles);
	for (i = 0; i < set->num_renders; i++) {
		const struct gpucr_img_render *r = &set->renders[i];
		size_t num = 0;

		fputs("<tr>", to);
		cell_number(to, r->id);
		cell_text(to, r->kfd_vm ? "address space of KFD's process" :
					  "plain");
		cell_number(to, r->device.user_gpu_id);
		fputs("<td>", to);
		for (j = 0; j < set->criu.num_fds; j++)
			if (set->criu.fds[j].id == r->id)
				fprintf(to, "%s%u fd %u", num++ ? ", " : "",
					set->criu.fds[j].pid,
					set->criu.fds[j].fd);
		fputs("</td></tr>\n", to);
	}
	table_end(to);
}

static void page(FILE *to, const struct gpucr_imgset *set, const char *path)
{
	size_t i;

	head(to, path);
	if (!set->criu.has_inventory)
		fputs("<p><strong>The dump has not ended well: CRIU's inventory is missing.</strong></p>\n",
		      to);
	for (i = 0; i < set->num_kfds; i++)
		process(to, set->kfds[i]);
	files(to, set);
	timeline(to, &set->criu);
	fputs("</main></body></html>\n", to);
}

/* Beside it first: a failure leaves what was there. */
static int write_file(const char *out, const char *text, size_t len)
{
	char *tmp;
	FILE *f;
	int fd, err = 0;

	if (asprintf(&tmp, "%s.tmp", out) < 0)
		return -ENOMEM;
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		  0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		err = -errno;
		free(tmp);
		return err;
	}
	if (fwrite(text, 1, len, f) != len)
		err = -errno;
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(tmp, out))
		err = -errno;
	if (err)
		unlink(tmp);
	free(tmp);
	return err;
}

static const struct out_column columns[] = {
	{ "written", "file", out_text, 0 },
	{ "bytes", "bytes", out_text, 0 },
	{ 0 }
};

int image_html_write(const struct gpucr_imgset *set, const char *path,
		     const char *out)
{
	struct json_object *row;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int err;

	if (!f)
		return fail(TOKEN_NO_MEMORY, ENOMEM, "%s", out);
	page(f, set, path);
	err = fclose(f) ? -ENOMEM : write_file(out, text, len);
	free(text);
	if (err)
		return fail(err == -ENOMEM ? TOKEN_NO_MEMORY : TOKEN_IO_ERROR,
			    -err, "%s: %s", out, strerror(-err));
	row = out_row();
	out_add_str(row, "file", out);
	out_add_u64(row, "bytes", len);
	return out_finish_record(columns);
}
