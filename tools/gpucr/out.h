/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one print path. A command adds rows, JSON objects; out_finish() prints
 * them as a table, by columns, or as JSON. Nothing appears before that, so an
 * error never follows half an answer.
 */
#ifndef OUT_H
#define OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <json-c/json.h>

struct out_options {
	bool json, pretty, quiet, verbose;
	bool color;
};

extern struct out_options out_options;

#define OUT_VERBOSE	1	/* column or record shown with -v only */

struct out_column {
	const char *title;
	const char *key;
	void (*cell)(struct json_object *row, const char *key, FILE *to);
	unsigned int flags;
};

/* Cells. What is absent or null is "-". */
void out_text(struct json_object *row, const char *key, FILE *to);
void out_size(struct json_object *row, const char *key, FILE *to);
void out_list(struct json_object *row, const char *key, FILE *to);
void out_ms(struct json_object *row, const char *key, FILE *to);
void out_seconds(struct json_object *row, const char *key, FILE *to);

/* "16.3 GiB", as in a cell. */
#define OUT_SIZE_TEXT	24
void out_format_size(uint64_t n, char text[OUT_SIZE_TEXT]);

void out_begin(const char *object);
/* Name of the object, as in messages. */
const char *out_object(void);
/* A new empty row; it belongs to the output. */
struct json_object *out_row(void);
/* Prints a table with a header; exit status. */
int out_finish(const struct out_column *columns);
/* Prints the first row as lines "title  value"; exit status. */
int out_finish_record(const struct out_column *columns);
/* Drops rows and warnings; under --json prints doc, which it takes over. */
int out_finish_error(struct json_object *doc);
/*
 * After printing otherwise: the status, or a failure where standard output
 * did not take it all (a full disk, say).
 */
int out_flush(int status);
/* The envelope {"gpucr":1,"object":...}. */
struct json_object *out_envelope(void);

void out_warn(const char *token, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Members of a row; absent values are JSON null. */
void out_add_u64(struct json_object *row, const char *key, uint64_t value);
void out_add_bool(struct json_object *row, const char *key, bool value);
/* NULL and "" give null. */
void out_add_str(struct json_object *row, const char *key, const char *value);
void out_add_null(struct json_object *row, const char *key);
/* A string made by printf. */
void out_add_fmt(struct json_object *row, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* An empty array, an empty object; they belong to the row. */
struct json_object *out_add_array(struct json_object *row, const char *key);
struct json_object *out_add_object(struct json_object *row, const char *key);

#endif
