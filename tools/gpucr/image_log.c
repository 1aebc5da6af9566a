// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fail.h"
#include "image_log.h"
#include "log.h"
#include "out.h"

static size_t errors;

static const struct {
	const char *name;
	enum token token;
	int err;
} tokens[] = {
	{ "image-damaged", TOKEN_IMAGE_DAMAGED, EBADMSG },
	{ "chunk-checksum", TOKEN_CHUNK_CHECKSUM, EBADMSG },
	{ "image-incomplete", TOKEN_IMAGE_INCOMPLETE, ENOENT },
	{ "image-format", TOKEN_IMAGE_FORMAT, EPROTONOSUPPORT },
	{ "io-error", TOKEN_IO_ERROR, EIO },
};

const char *image_log_split(char *text, char *name, size_t size)
{
	char *open, *close;

	name[0] = '\0';
	for (open = strchr(text, '('); open; open = strchr(open + 1, '(')) {
		close = open + 1 + strspn(open + 1,
					  "abcdefghijklmnopqrstuvwxyz-");
		if (*close != ')' || !memchr(open, '-', close - open) ||
		    open == text || open[-1] != ' ')
			continue;
		snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
		open[-1] = '\0';
		return !strncmp(close, "); ", 3) ? close + 3 : NULL;
	}
	return NULL;
}

static void sink(enum gpucr_log_level level, const char *text)
{
	char copy[512], name[32];

	if (level == GPUCR_LOG_ERROR)
		errors++;
	if (level != GPUCR_LOG_WARN)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	image_log_split(copy, name, sizeof(name));
	out_warn(*name ? name : "image-stale", "%s", copy);
}

void image_log_begin(void)
{
	errors = 0;
	gpucr_log_reset();
	gpucr_log_set_sink(sink);
}

size_t image_log_end(void)
{
	gpucr_log_set_sink(NULL);
	return errors;
}

int image_log_fail(const char *path, int err)
{
	size_t more = image_log_end();
	char text[512], name[32], rest[48] = "";
	size_t i;

	if (err == -ENOMEM || !more)
		return fail(err == -ENOMEM ? TOKEN_NO_MEMORY : TOKEN_IO_ERROR,
			    -err, "%s: %s", path, strerror(-err));
	snprintf(text, sizeof(text), "%s", gpucr_log_first_error());
	image_log_split(text, name, sizeof(name));
	if (more > 1)
		snprintf(rest, sizeof(rest), ", and %zu more", more - 1);
	for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
		if (!strcmp(tokens[i].name, name))
			return fail(tokens[i].token, tokens[i].err, "%s%s",
				    text, rest);
	return fail(TOKEN_IMAGE_DAMAGED, EBADMSG, "%s%s", text, rest);
}
