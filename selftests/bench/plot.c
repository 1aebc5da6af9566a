// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes docs/performance.md and its plot out of the JSON of the native bench,
 * so that no figure there was written by hand.
 *
 * usage: plot JSON OUTDIR
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "wanted.h"

#define WIDTH		720
#define HEIGHT		300
#define PANEL		360	/* one of two */
#define LEFT		50
#define TOP		30
#define PLOT_W		290
#define PLOT_H		210

static double get(struct json_object *o, const char *key)
{
	struct json_object *v = json_object_object_get(o, key);

	if (!v) {
		fprintf(stderr, "plot: no \"%s\"\n", key);
		exit(1);
	}
	return json_object_get_double(v);
}

static struct json_object *array(struct json_object *doc, const char *key)
{
	struct json_object *v = json_object_object_get(doc, key);

	if (!json_object_is_type(v, json_type_array)) {
		fprintf(stderr, "plot: no list \"%s\"\n", key);
		exit(1);
	}
	return v;
}

struct axis {
	const char *x, *unit;
	double scale;		/* divides x */
};

struct line {
	double slope, base, off;	/* off: largest part that a point is off */
};

/* Least squares. */
static struct line fit(struct json_object *points, const struct axis *a,
		       const char *y)
{
	double sx = 0, sy = 0, sxx = 0, sxy = 0, n;
	struct line l;
	size_t i;

	n = json_object_array_length(points);
	for (i = 0; i < n; i++) {
		struct json_object *p = json_object_array_get_idx(points, i);
		double px = get(p, a->x) / a->scale, py = get(p, y);

		sx += px;
		sy += py;
		sxx += px * px;
		sxy += px * py;
	}
	l.slope = (n * sxy - sx * sy) / (n * sxx - sx * sx);
	l.base = (sy - l.slope * sx) / n;
	for (l.off = 0, i = 0; i < n; i++) {
		struct json_object *p = json_object_array_get_idx(points, i);
		double want = l.base + l.slope * get(p, a->x) / a->scale;
		double off = get(p, y) / want - 1;

		off = off < 0 ? -off : off;
		l.off = off > l.off ? off : l.off;
	}
	return l;
}

static double most(struct json_object *points, const char *key)
{
	double m = 0;
	size_t i;

	for (i = 0; i < json_object_array_length(points); i++) {
		double v = get(json_object_array_get_idx(points, i), key);

		m = v > m ? v : m;
	}
	return m;
}

/* Points and fitted line of one direction. */
static void draw(FILE *to, struct json_object *points, const struct axis *a,
		 const char *y, const char *color, double ymax)
{
	struct line l = fit(points, a, y);
	double xmax = most(points, a->x) / a->scale;
	size_t i;

	fprintf(to, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1\"/>\n",
		LEFT, TOP + PLOT_H - l.base / ymax * PLOT_H, LEFT + PLOT_W,
		TOP + PLOT_H - (l.base + l.slope * xmax) / ymax * PLOT_H,
		color);
	for (i = 0; i < json_object_array_length(points); i++) {
		struct json_object *p = json_object_array_get_idx(points, i);

		fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
			LEFT + get(p, a->x) / a->scale / xmax * PLOT_W,
			TOP + PLOT_H - get(p, y) / ymax * PLOT_H, color);
	}
}

static void panel(FILE *to, struct json_object *points, const struct axis *a,
		  int at)
{
	double d = most(points, "dump_s"), r = most(points, "restore_s");
	double ymax = (d > r ? d : r) * 1.1;

	fprintf(to, "<g transform=\"translate(%d,0)\">\n", at);
	fprintf(to, "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"#888\"/>\n",
		LEFT, TOP, TOP + PLOT_H, LEFT + PLOT_W);
	fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f s</text>\n",
		LEFT - 4, TOP + 10, ymax);
	fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4g %s</text>\n",
		LEFT + PLOT_W, TOP + PLOT_H + 16,
		most(points, a->x) / a->scale, a->unit);
	draw(to, points, a, "dump_s", "#b03060", ymax);
	draw(to, points, a, "restore_s", "#2060a0", ymax);
	fputs("</g>\n", to);
}

static const struct axis by_bytes = { "bytes", "GiB", 1 << 30 };
static const struct axis by_bos = { "bos", "BOs", 1 };

static void svg(FILE *to, struct json_object *doc)
{
	fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n",
		WIDTH, HEIGHT);
	fprintf(to, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH,
		HEIGHT);
	fprintf(to, "<text x=\"%d\" y=\"18\" fill=\"#b03060\">dump</text><text x=\"%d\" y=\"18\" fill=\"#2060a0\">restore</text>\n",
		LEFT, LEFT + 60);
	panel(to, array(doc, "growth_bytes"), &by_bytes, 0);
	panel(to, array(doc, "growth_bos"), &by_bos, PANEL);
	fputs("</svg>\n", to);
}

static void lines(FILE *to, struct json_object *doc)
{
	static const char * const names[] = { "dump_s", "restore_s" };
	struct json_object *v = array(doc, "growth_bytes");
	struct line l;
	size_t i;

	fputs("| | more bytes | more BOs |\n|---|---|---|\n", to);
	for (i = 0; i < 2; i++) {
		l = fit(v, &by_bytes, names[i]);
		fprintf(to, "| %s | %.3f s and %.3f s/GiB, points off by at most %.0f %% |",
			i ? "restore" : "dump", l.base, l.slope, l.off * 100);
		l = fit(array(doc, "growth_bos"), &by_bos, names[i]);
		fprintf(to, " %.3f s and %.1f us/BO, points off by at most %.0f %% |\n",
			l.base, l.slope * 1e6, l.off * 100);
	}
}

static bool is_good(struct json_object *o)
{
	return get(o, "dump_ratio") >= WANTED &&
	       get(o, "restore_ratio") >= WANTED &&
	       get(o, "cpu_s_per_gib") <= CPU_LIMIT &&
	       get(o, "restore_cpu_s_per_gib") <= CPU_LIMIT;
}

static void verdict(FILE *to, struct json_object *doc)
{
	struct json_object *v = array(doc, "cases");
	size_t i, good = 0, num = json_object_array_length(v);

	for (i = 0; i < num; i++)
		good += is_good(json_object_array_get_idx(v, i));
	fprintf(to, "Wanted: both ratios at least %.2f, at most %.1f s of CPU per GiB. Of %zu cases %zu have that.\n\n",
		WANTED, CPU_LIMIT, num, good);
}

static void cases(FILE *to, struct json_object *doc)
{
	struct json_object *v = array(doc, "cases");
	size_t i;

	fputs("| BOs | GPUs | copy : storage | write | read | dump | restore | dump ratio | restore ratio | CPU s/GiB, dump, restore | MiB, dump, restore |\n"
	      "|---|---|---|---|---|---|---|---|---|---|---|\n", to);
	for (i = 0; i < json_object_array_length(v); i++) {
		struct json_object *o = json_object_array_get_idx(v, i);

		fprintf(to, "| %s | %.0f | %.2f | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f, %.2f | %.0f, %.0f |\n",
			json_object_get_string(json_object_object_get(o, "set")),
			get(o, "gpus"), get(o, "copy_to_storage"),
			get(o, "storage_write_bytes_per_s") / 1e6,
			get(o, "storage_read_bytes_per_s") / 1e6,
			get(o, "dump_bytes_per_s") / 1e6,
			get(o, "restore_bytes_per_s") / 1e6,
			get(o, "dump_ratio"), get(o, "restore_ratio"),
			get(o, "cpu_s_per_gib"), get(o, "restore_cpu_s_per_gib"),
			get(o, "rss_bytes") / (1 << 20),
			get(o, "restore_rss_bytes") / (1 << 20));
	}
}

static void page(FILE *to, struct json_object *doc)
{
	char day[32];
	time_t t = time(NULL);

	strftime(day, sizeof(day), "%Y-%m-%d", gmtime(&t));
	fprintf(to, "# Performance of the copy engine\n\n"
		"Made by `make bench BENCH_DOCS=1` on %s, out of its own JSON; no figure is written by hand. The plugin's own\n"
		"objects copy between a stand-in for libdrm, whose \"engines\" are threads that memcpy at a set rate, and real files.\n"
		"There is no GPU in it.\n\nMachine: %s.\n\n", day,
		json_object_get_string(json_object_object_get(doc, "machine")));
	fputs("Rates in MB/s and ratios, medians of three. A run's ratio is its throughput, fsync included, over that of the slower\n"
	      "of copies and storage: copies alone just before, storage alone before and after the run, with files of the same\n"
	      "number and size, O_DIRECT, 64 MiB in flight for each file, fsync. Zeros are not stored and count for the copies\n"
	      "only. CPU is without the stand-in's. Memory is the peak beside the BOs themselves. The restore is the one\n"
	      "that a task does itself, with its small buffers, not that which overlaps.\n\n", to);
	verdict(to, doc);
	cases(to, doc);
	fputs("\n## Growth\n\nOne GPU, engines as fast as they go: bytes in BOs of 4 MiB, and as many bytes in more BOs. Lines are least\n"
	      "squares.\n\n![time against bytes and against the number of BOs](performance.svg)\n\n",
	      to);
	lines(to, doc);
}

static void make(struct json_object *doc, const char *dir, const char *name,
		 void (*fill)(FILE *to, struct json_object *doc))
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f) {
		perror(path);
		exit(1);
	}
	fill(f, doc);
	if (fclose(f)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct json_object *doc = argc == 3 ?
		json_object_from_file(argv[1]) : NULL;

	if (!doc) {
		fprintf(stderr, "usage: plot JSON OUTDIR\n");
		return 2;
	}
	make(doc, argv[2], "performance.svg", svg);
	make(doc, argv[2], "performance.md", page);
	json_object_put(doc);
	return 0;
}
