// SPDX-License-Identifier: GPL-2.0-only
/*
 * The report is JSON whatever bytes it is given: UTF-8 by iconv, and by json-c,
 * which is asked to be strict; what is UTF-8 comes through as it is.
 *
 * Bytes above 0x7f that are written as they are turn it red.
 */
#include <fcntl.h>
#include <iconv.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"
#include "sample.h"
#include "table.h"

#define NAME	"report.json"
#define RANDOM	4000

static int dir;

static bool is_utf8(char *text, size_t len)
{
	iconv_t c = iconv_open("UCS-4LE", "UTF-8");
	char *wide = malloc(4 * len), *to = wide;
	size_t room = 4 * len;
	bool good;

	good = wide && c != (iconv_t)-1 &&
	       iconv(c, &text, &len, &to, &room) != (size_t)-1 && !len;
	iconv_close(c);
	free(wide);
	return good;
}

static struct json_object *parse_text(const char *text, size_t len, int flags)
{
	struct json_tokener *t = json_tokener_new();
	struct json_object *o;

	json_tokener_set_flags(t, flags);
	o = json_tokener_parse_ex(t, text, len + 1);
	if (!o)
		ktap_note("%s in: %s", json_tokener_error_desc(
			  json_tokener_get_error(t)), text);
	json_tokener_free(t);
	return o;
}

/*
 * As of 0.18 the strict parser takes every byte above 0x7f for a control
 * character: it gets the text without them.
 */
static struct json_object *parse_strict(char *text, size_t len)
{
	struct json_object *o = NULL, *ascii;
	char *copy = malloc(len + 1);
	size_t i;

	if (!is_utf8(text, len))
		ktap_note("no UTF-8: %s", text);
	else if (copy)
		o = parse_text(text, len, 0);
	for (i = 0; copy && i <= len; i++)
		copy[i] = text[i] & 0x80 ? 'x' : text[i];
	ascii = o ? parse_text(copy, len, JSON_TOKENER_STRICT) : NULL;
	if (!ascii) {
		json_object_put(o);
		o = NULL;
	}
	json_object_put(ascii);
	free(copy);
	return o;
}

/* What was written, or NULL: it is no JSON. */
static struct json_object *parse(void)
{
	struct json_object *o = NULL;
	int fd = openat(dir, NAME, O_RDONLY);
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	text = calloc(1, st.st_size + 1);
	if (text && read(fd, text, st.st_size) == st.st_size)
		o = parse_strict(text, st.st_size);
	free(text);
	close(fd);
	return o;
}

/* A report with text wherever a text goes. */
static struct json_object *report_of(const char *text)
{
	struct gpucr_report *r = gpucr_report_new(text);

	if (!r)
		return NULL;
	gpucr_report_text(r, "driver", text);
	gpucr_report_text(r, text, text);
	gpucr_report_option(r, "option", text);
	gpucr_report_option(r, text, text);
	gpucr_report_end(r, gpucr_report_begin(r, text, 1), 2);
	gpucr_report_error(r, text, 0);
	gpucr_report_write(r, dir, NAME, false, 5);
	gpucr_report_free(r);
	return parse();
}

static const char *member(struct json_object *o, const char *name)
{
	return json_object_get_string(json_object_object_get(o, name));
}

static int every_byte(void)
{
	char text[8] = "ab.cd";
	struct json_object *o;
	unsigned int c, d;

	for (c = 1; c < 256; c++) {
		text[2] = c;
		o = report_of(text);
		CHECK(o);
		CHECK(c > 0x7f || !strcmp(member(o, "driver"), text));
		json_object_put(o);
	}
	/* Lead bytes and what may follow; one that ends with its lead. */
	for (c = 0xc0; c < 256; c++) {
		for (d = 0x7f; d < 256; d += 0x10) {
			snprintf(text, sizeof(text), "%c%c%c", c, d, d);
			o = report_of(text);
			CHECK(o);
			json_object_put(o);
		}
	}
	return 0;
}

static int random_bytes(void)
{
	unsigned int i, j, len;
	struct json_object *o;
	char text[700];

	srandom(4711);
	for (i = 0; i < RANDOM; i++) {
		len = random() % (i % 16 ? 40 : sizeof(text) - 1);
		for (j = 0; j < len; j++)
			text[j] = 1 + random() % 255;
		text[len] = '\0';
		o = report_of(text);
		CHECK(o);
		json_object_put(o);
	}
	return 0;
}

/* Also where there is room for a part of it only. */
static int utf8(void)
{
	static const char good[] = "\u00e9 \u20ac \U0001f600 \"\\/\b\f\n\r\t";
	struct json_object *o = report_of(good);
	char text[256];
	unsigned int i;

	CHECK(o && !strcmp(member(o, "driver"), good));
	CHECK(!strcmp(member(json_object_object_get(o, "error"), "message"),
		      good));
	json_object_put(o);
	for (i = 0; i < 4; i++) {
		memset(text, 'x', sizeof(text));
		strcpy(text + 122 + i, "\U0001f600\U0001f600");
		o = report_of(text);
		CHECK(o && !strncmp(member(o, "driver"), text, 122 + i));
		json_object_put(o);
	}
	return 0;
}

static int message_parts(void)
{
	struct json_object *o, *e;

	o = report_of("GPU 0x1 \"x\" (copy-failed); do \\this");
	e = o ? json_object_object_get(o, "error") : NULL;
	CHECK(e && !strcmp(member(e, "message"), "GPU 0x1 \"x\""));
	CHECK(!strcmp(member(e, "token"), "copy-failed"));
	CHECK(!strcmp(member(e, "hint"), "do \\this"));
	CHECK(!strcmp(member(e, "errno"), "EIO"));
	json_object_put(o);
	return 0;
}

int main(void)
{
	static const struct ktap_test tests[] = {
		{ "every byte, in every text", every_byte },
		{ "random bytes of all lengths", random_bytes },
		{ "UTF-8 is kept, and never cut in two", utf8 },
		{ "message, token and hint", message_parts },
	};

	dir = sample_dir();
	if (dir < 0)
		return 1;
	return ktap_run(tests, sizeof(tests) / sizeof(tests[0]));
}
