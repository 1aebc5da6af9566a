// SPDX-License-Identifier: GPL-2.0-only
/* The one print path, table or JSON. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "out.h"

#define MAX_COLUMNS	16

struct out_options out_options;

static struct {
	const char *object;
	struct json_object *data;
	struct json_object *warnings;
} out;

static void *need(void *p)
{
	if (!p) {
		fputs("gpucr: out of memory (no-memory)\n", stderr);
		exit(EXIT_FAILED);
	}
	return p;
}

static void add(struct json_object *row, const char *key,
		struct json_object *value)
{
	if (json_object_object_add(row, key, value))
		need(NULL);
}

void out_begin(const char *object)
{
	out.object = object;
	out.data = need(json_object_new_array());
	out.warnings = need(json_object_new_array());
}

const char *out_object(void)
{
	return out.object;
}

struct json_object *out_row(void)
{
	struct json_object *row = need(json_object_new_object());

	if (json_object_array_add(out.data, row))
		need(NULL);
	return row;
}

void out_add_u64(struct json_object *row, const char *key, uint64_t value)
{
	add(row, key, need(json_object_new_uint64(value)));
}

void out_add_bool(struct json_object *row, const char *key, bool value)
{
	add(row, key, need(json_object_new_boolean(value)));
}

/*
 * Names of processes and sentences of kernels go to terminals and into JSON:
 * what is not printable ASCII becomes '?'.
 */
void out_add_str(struct json_object *row, const char *key, const char *value)
{
	char *clean, *c;

	if (!value || !*value) {
		add(row, key, NULL);
		return;
	}
	clean = need(strdup(value));
	for (c = clean; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	add(row, key, need(json_object_new_string(clean)));
	free(clean);
}

void out_add_null(struct json_object *row, const char *key)
{
	add(row, key, NULL);
}

void out_add_fmt(struct json_object *row, const char *key, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		need(NULL);
	va_end(ap);
	out_add_str(row, key, text);
	free(text);
}

struct json_object *out_add_array(struct json_object *row, const char *key)
{
	struct json_object *array = need(json_object_new_array());

	add(row, key, array);
	return array;
}

struct json_object *out_add_object(struct json_object *row, const char *key)
{
	struct json_object *object = need(json_object_new_object());

	add(row, key, object);
	return object;
}

void out_warn(const char *token, const char *fmt, ...)
{
	struct json_object *w = need(json_object_new_object());
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		need(NULL);
	va_end(ap);
	out_add_str(w, "token", token);
	out_add_str(w, "message", text);
	free(text);
	if (json_object_array_add(out.warnings, w))
		need(NULL);
}

static struct json_object *get(struct json_object *row, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(row, key, &value);
	return value;
}

void out_text(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *value = get(row, key);

	fputs(value ? json_object_get_string(value) : "-", to);
}

void out_format_size(uint64_t n, char text[OUT_SIZE_TEXT])
{
	static const char * const units[] = {
		"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
	};
	unsigned int unit = 0;
	uint64_t rest = 0;

	while (n >= 1024) {
		rest = n % 1024;
		n /= 1024;
		unit++;
	}
	/* Whole numbers where they are exact or have three digits. */
	if (n >= 100 || !unit || (!rest && n >= 10))
		snprintf(text, OUT_SIZE_TEXT, "%llu %s",
			 (unsigned long long)n, units[unit]);
	else
		snprintf(text, OUT_SIZE_TEXT, "%llu.%llu %s",
			 (unsigned long long)n,
			 (unsigned long long)(rest * 10 / 1024), units[unit]);
}

void out_size(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *value = get(row, key);
	char text[OUT_SIZE_TEXT] = "-";

	if (value)
		out_format_size(json_object_get_uint64(value), text);
	fputs(text, to);
}

void out_list(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *value = get(row, key);
	size_t i, num = value ? json_object_array_length(value) : 0;

	if (!num)
		fputc('-', to);
	for (i = 0; i < num; i++)
		fprintf(to, "%s%s", i ? "," : "", json_object_get_string(
				json_object_array_get_idx(value, i)));
}

void out_ms(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *value = get(row, key);

	if (value)
		fprintf(to, "%llu", (unsigned long long)
			json_object_get_uint64(value) / 1000);
	else
		fputc('-', to);
}

void out_seconds(struct json_object *row, const char *key, FILE *to)
{
	struct json_object *value = get(row, key);

	if (value)
		fprintf(to, "%llus", (unsigned long long)
			json_object_get_uint64(value) / 1000000);
	else
		fputc('-', to);
}

static char *cell_text(struct json_object *row, const struct out_column *c)
{
	char *text = NULL;
	size_t size;
	FILE *f = need(open_memstream(&text, &size));

	c->cell(row, c->key, f);
	if (fclose(f))
		need(NULL);
	return text;
}

static void print_line(char **cells, const size_t *widths, size_t num,
		       bool header)
{
	bool bold = header && out_options.color;
	size_t i;

	if (bold)
		fputs("\033[1m", stdout);
	/* No blanks at the end of a line. */
	while (num && !*cells[num - 1])
		num--;
	for (i = 0; i < num; i++)
		printf("%-*s%s", i + 1 < num ? (int)widths[i] : 0, cells[i],
		       i + 1 < num ? "  " : "");
	fputs(bold ? "\033[0m\n" : "\n", stdout);
}

static size_t chosen(const struct out_column *columns,
		     const struct out_column **to)
{
	size_t num = 0;

	for (; columns->title && num < MAX_COLUMNS; columns++)
		if (out_options.verbose || !(columns->flags & OUT_VERBOSE))
			to[num++] = columns;
	return num;
}

/* cells: one line of num for the header, where asked, and one a row. */
static void print_cells(char **cells, size_t lines, size_t num, bool header)
{
	size_t widths[MAX_COLUMNS] = { 0 }, i, j;

	for (i = 0; i < lines; i++)
		for (j = 0; j < num; j++)
			if (strlen(cells[i * num + j]) > widths[j])
				widths[j] = strlen(cells[i * num + j]);
	for (i = header ? 0 : 1; i < lines; i++)
		print_line(cells + i * num, widths, num, !i);
}

static void print_table(const struct out_column *columns)
{
	const struct out_column *c[MAX_COLUMNS];
	size_t num = chosen(columns, c), i, j;
	size_t lines = json_object_array_length(out.data) + 1;
	char **cells = need(calloc(lines * num, sizeof(*cells)));

	for (j = 0; j < num; j++)
		cells[j] = need(strdup(c[j]->title));
	for (i = 1; i < lines; i++)
		for (j = 0; j < num; j++)
			cells[i * num + j] = cell_text(
				json_object_array_get_idx(out.data, i - 1),
				c[j]);
	print_cells(cells, lines, num, !out_options.quiet);
	for (i = 0; i < lines * num; i++)
		free(cells[i]);
	free(cells);
}

static void print_record(const struct out_column *columns)
{
	struct json_object *row = json_object_array_get_idx(out.data, 0);
	const struct out_column *c[MAX_COLUMNS];
	size_t num = chosen(columns, c), i;

	for (i = 0; row && i < num; i++) {
		char *text = cell_text(row, c[i]);

		printf("%-10s %s\n", c[i]->title, text);
		free(text);
	}
}

static void print_warnings(void)
{
	size_t i, num = json_object_array_length(out.warnings);

	for (i = 0; i < num && !out_options.quiet; i++) {
		struct json_object *w =
			json_object_array_get_idx(out.warnings, i);

		fprintf(stderr, "gpucr: %s: warning: %s (%s)\n", out.object,
			json_object_get_string(get(w, "message")),
			json_object_get_string(get(w, "token")));
	}
}

struct json_object *out_envelope(void)
{
	struct json_object *doc = need(json_object_new_object());

	out_add_u64(doc, "gpucr", 1);
	out_add_str(doc, "object", out.object);
	return doc;
}

static void print_json(struct json_object *doc)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= out_options.pretty ? JSON_C_TO_STRING_PRETTY |
				      JSON_C_TO_STRING_SPACED
				    : JSON_C_TO_STRING_PLAIN;
	puts(need((void *)json_object_to_json_string_ext(doc, flags)));
}

int out_flush(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "gpucr: standard output: %s (no-output); look at what it is redirected to\n",
		strerror(errno));
	return EXIT_FAILED;
}

static int finish(const struct out_column *columns,
		  void (*print)(const struct out_column *columns))
{
	struct json_object *doc;

	if (!out_options.json) {
		print(columns);
		print_warnings();
	} else {
		doc = out_envelope();
		add(doc, "data", json_object_get(out.data));
		add(doc, "warnings", json_object_get(out.warnings));
		print_json(doc);
		json_object_put(doc);
	}
	json_object_put(out.data);
	json_object_put(out.warnings);
	return out_flush(EXIT_DONE);
}

int out_finish(const struct out_column *columns)
{
	return finish(columns, print_table);
}

int out_finish_record(const struct out_column *columns)
{
	return finish(columns, print_record);
}

int out_finish_error(struct json_object *doc)
{
	if (out_options.json)
		print_json(doc);
	json_object_put(doc);
	json_object_put(out.data);
	json_object_put(out.warnings);
	out.data = NULL;
	out.warnings = NULL;
	return out_flush(EXIT_DONE);
}
