// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "image_svg.h"

#define WIDTH		960	/* of a drawing, in its own units */
#define MAX_ROWS	40
#define GAP		(UINT64_C(256) << 20)	/* wider: another row */

static const char * const heaps[] = {
	"vram", "gtt", "userptr", "doorbell", "mmio", "unknown",
};

#define NUM_HEAPS	(sizeof(heaps) / sizeof(heaps[0]))

void image_html_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", to);
			break;
		case '<':
			fputs("&lt;", to);
			break;
		case '>':
			fputs("&gt;", to);
			break;
		case '"':
			fputs("&quot;", to);
			break;
		default:
			fputc(*text < ' ' || *text > '~' ? '?' : *text, to);
		}
	}
}

void image_html_size(FILE *to, uint64_t bytes)
{
	static const char * const units[] = {
		"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
	};
	double n = (double)bytes;
	size_t unit = 0;

	while (n >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1024;
		unit++;
	}
	fprintf(to, unit && n < 100 ? "%.1f %s" : "%.0f %s", n, units[unit]);
}

struct item {
	uint64_t start, end;
	size_t heap;		/* NUM_HEAPS: a mapping */
};

/* A stretch of addresses without a wide gap. */
struct row {
	uint64_t start, end;
	size_t first, num;
};

static size_t heap_index(uint32_t flags)
{
	const char *name = image_heap(flags);
	size_t i;

	for (i = 0; i + 1 < NUM_HEAPS; i++)
		if (!strcmp(heaps[i], name))
			break;
	return i;
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->heap > y->heap) - (x->heap < y->heap);
}

/* BOs at their GPU address, then mappings at their CPU address; sorted. */
static struct item *items_of(const struct gpucr_img_kfd *k, size_t *num)
{
	struct item *v = calloc(k->num_bos + k->num_vmas + 1, sizeof(*v));
	size_t i;

	*num = 0;
	if (!v)
		return NULL;
	for (i = 0; i < k->num_bos; i++) {
		const struct gpucr_img_bo *b = &k->bos[i];
		uint64_t end = b->addr + b->size;

		/* Addresses are KFD's to judge: here they only are drawn. */
		v[(*num)++] = (struct item){
			b->addr, end < b->addr ? UINT64_MAX : end,
			heap_index(b->alloc_flags),
		};
	}
	for (i = 0; i < k->num_vmas; i++)
		v[(*num)++] = (struct item){
			k->vmas[i].start, k->vmas[i].end, NUM_HEAPS,
		};
	qsort(v, *num, sizeof(*v), compare);
	return v;
}

/* Returns how many rows there are; at most max are filled. */
static size_t find_rows(const struct item *v, size_t num, struct row *rows,
			size_t max)
{
	struct row r = { 0 };
	size_t i, n = 0;

	for (i = 0; i < num; i++) {
		if (i && v[i].start <= r.end + (r.end < UINT64_MAX - GAP ?
						GAP : 0)) {
			if (v[i].end > r.end)
				r.end = v[i].end;
			r.num++;
		} else {
			if (i && n < max)
				rows[n] = r;
			n += !!i;
			r = (struct row){ v[i].start, v[i].end, i, 1 };
		}
	}
	if (num && n < max)
		rows[n] = r;
	return n + !!num;
}

static double place(const struct row *r, uint64_t addr)
{
	uint64_t length = r->end - r->start;

	return length ? (double)(addr - r->start) / (double)length * WIDTH : 0;
}

static void rect(FILE *to, const char *class, double x, double x2, int y,
		 int height)
{
	fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
		class, x, y, x2 - x < 2 ? 2 : x2 - x, height);
}

/*
 * Neighbours of one heap that end within a unit are drawn as one, so that a
 * row has at most WIDTH rectangles a heap.
 */
static void draw_lane(FILE *to, const struct row *r, const struct item *v,
		      size_t heap, int y)
{
	double x = -1, x2 = -1, a, b;
	size_t i;
	int height = heap == NUM_HEAPS ? 6 : 22;
	const char *class = heap == NUM_HEAPS ? "vma" : heaps[heap];

	for (i = r->first; i < r->first + r->num; i++) {
		if (v[i].heap != heap)
			continue;
		a = place(r, v[i].start);
		b = place(r, v[i].end);
		if (x >= 0 && a - x2 < 0.5 && b - x < 1) {
			x2 = b > x2 ? b : x2;
			continue;
		}
		if (x >= 0)
			rect(to, class, x, x2, y, height);
		x = a;
		x2 = b;
	}
	if (x >= 0)
		rect(to, class, x, x2, y, height);
}

static void draw_row(FILE *to, const struct row *r, const struct item *v)
{
	size_t h, bos = 0, vmas = 0, i;

	for (i = r->first; i < r->first + r->num; i++) {
		bos += v[i].heap != NUM_HEAPS;
		vmas += v[i].heap == NUM_HEAPS;
	}
	fprintf(to, "<figure><figcaption><code>%012llx-%012llx</code> ",
		(unsigned long long)r->start, (unsigned long long)r->end);
	image_html_size(to, r->end - r->start);
	fprintf(to, ", %zu BOs, %zu mappings</figcaption>\n"
		"<svg viewBox=\"0 0 %d 36\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%zu BOs and %zu mappings from %llx to %llx\">"
		"<rect class=\"ground\" x=\"0\" y=\"0\" width=\"%d\" height=\"36\"/>",
		bos, vmas, WIDTH, bos, vmas, (unsigned long long)r->start,
		(unsigned long long)r->end, WIDTH);
	for (h = 0; h < NUM_HEAPS; h++)
		draw_lane(to, r, v, h, 2);
	draw_lane(to, r, v, NUM_HEAPS, 28);
	fputs("</svg></figure>\n", to);
}

static void legend(FILE *to, const struct gpucr_img_kfd *k)
{
	size_t i, h, num;
	uint64_t bytes;

	fputs("<ul class=\"legend\">", to);
	for (h = 0; h < NUM_HEAPS; h++) {
		for (num = bytes = i = 0; i < k->num_bos; i++) {
			if (heap_index(k->bos[i].alloc_flags) != h)
				continue;
			num++;
			bytes += k->bos[i].size;
		}
		if (!num)
			continue;
		fprintf(to, "<li><span class=\"key %s\"></span>%s: %zu BOs, ",
			heaps[h], heaps[h], num);
		image_html_size(to, bytes);
		fputs("</li>", to);
	}
	fprintf(to, "<li><span class=\"key vma\"></span>mapped by the CPU: %zu</li></ul>\n",
		k->num_vmas);
}

void image_svg_map(FILE *to, const struct gpucr_img_kfd *k)
{
	struct row rows[MAX_ROWS];
	size_t num, n, i;
	struct item *v = items_of(k, &num);

	if (!v)
		return;
	legend(to, k);
	n = find_rows(v, num, rows, MAX_ROWS);
	for (i = 0; i < n && i < MAX_ROWS; i++)
		draw_row(to, &rows[i], v);
	if (n > MAX_ROWS)
		fprintf(to, "<p>%zu more ranges, at higher addresses, are not drawn.</p>\n",
			n - MAX_ROWS);
	free(v);
}

static void bar(FILE *to, const char *class, double from, double part)
{
	fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"18\"/>",
		class, from * WIDTH, part * WIDTH);
}

void image_svg_content(FILE *to, const struct gpucr_img_kfd *k)
{
	uint64_t most = 1;
	size_t i;

	for (i = 0; i < k->num_pages; i++)
		if (k->pages[i].chunks.raw_bytes > most)
			most = k->pages[i].chunks.raw_bytes;
	for (i = 0; i < k->num_pages; i++) {
		const struct gpucr_img_pages *p = &k->pages[i];
		struct gpucr_imgset_pages n = { 0 };
		double full;

		gpucr_imgset_count(&p->chunks, &n);
		full = (double)(n.raw_bytes - n.zero_bytes) / (double)most;
		fprintf(to, "<figure><figcaption>GPU %u: ", p->gpu_id);
		image_html_size(to, n.raw_bytes);
		fputs(" of content, ", to);
		image_html_size(to, n.file_bytes);
		fputs(" stored, ", to);
		image_html_size(to, n.zero_bytes);
		fprintf(to, " zeros, %zu chunks</figcaption>\n"
			"<svg viewBox=\"0 0 %d 18\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"part of the content that is not zeros\">"
			"<rect class=\"ground\" x=\"0\" y=\"0\" width=\"%d\" height=\"18\"/>",
			n.chunks, WIDTH, WIDTH);
		bar(to, "stored", 0, full);
		bar(to, "zeros", full, (double)n.zero_bytes / (double)most);
		fputs("</svg></figure>\n", to);
	}
	if (k->num_pages)
		fputs("<ul class=\"legend\"><li><span class=\"key stored\"></span>stored</li>"
		      "<li><span class=\"key zeros\"></span>zeros, not stored</li></ul>\n",
		      to);
}

void image_svg_phases(FILE *to, const struct gpucr_criuimg *c)
{
	const struct {
		const char *what;
		uint32_t us;
	} phases[] = {
		{ "stopping the tasks", c->freezing_us },
		{ "tasks stopped, in all", c->frozen_us },
		{ "of this: memory taken from the tasks", c->memdump_us },
		{ "of this: memory written", c->memwrite_us },
	};
	double most = 1;
	size_t i;

	for (i = 0; i < 4; i++)
		if (phases[i].us > most)
			most = phases[i].us;
	for (i = 0; i < 4; i++) {
		fprintf(to, "<figure><figcaption>%s: %.1f ms</figcaption>\n"
			"<svg viewBox=\"0 0 %d 18\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%.1f ms\">"
			"<rect class=\"ground\" x=\"0\" y=\"0\" width=\"%d\" height=\"18\"/>",
			phases[i].what, phases[i].us / 1000.0, WIDTH,
			phases[i].us / 1000.0, WIDTH);
		bar(to, "phase", 0, phases[i].us / most);
		fputs("</svg></figure>\n", to);
	}
}
