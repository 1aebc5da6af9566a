// SPDX-License-Identifier: GPL-2.0-only
#include "opt.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "copy.h"
#include "log.h"
#include "zchunk.h"

#define OPT_FILE_MAX	(64 * 1024)
#define OPT_SECONDS_MAX	1000000

extern char **environ;

struct opt_def {
	const char *name;
	const char *kfd_env;	/* upstream's name, where it has one */
	bool in_image;		/* may be set by gpucr.conf of an image */
	int (*set)(void *field, const char *value);
	size_t offset;
};

static int set_backend(void *field, const char *value)
{
	static const char * const names[] = { "auto", "netlink", "ioctl" };
	enum gpucr_backend_choice *b = field;
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]))
			continue;
		*b = i;
		return 0;
	}
	return -EINVAL;
}

static int set_bool(void *field, const char *value)
{
	static const char * const on[] = { "on", "1", "yes" };
	static const char * const off[] = { "off", "0", "no" };
	bool *b = field;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (strcasecmp(value, on[i]) && strcasecmp(value, off[i]))
			continue;
		*b = !strcasecmp(value, on[i]);
		return 0;
	}
	return -EINVAL;
}

static int set_size(void *field, const char *value)
{
	uint64_t *size = field;
	unsigned long long n;
	unsigned int shift = 0;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	n = strtoull(value, &end, 0);
	if (errno)
		return -ERANGE;
	switch (toupper((unsigned char)*end)) {
	case 'G':
		shift += 10;
		/* fallthrough */
	case 'M':
		shift += 10;
		/* fallthrough */
	case 'K':
		shift += 10;
		end++;
		break;
	}
	if (*end || n > UINT64_MAX >> shift)
		return -EINVAL;
	*size = (uint64_t)n << shift;
	return 0;
}

static int set_seconds(void *field, const char *value)
{
	unsigned int *seconds = field;
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return -EINVAL;
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || *end || n > OPT_SECONDS_MAX)
		return -EINVAL;
	*seconds = n;
	return 0;
}

/* Without an end a hanging engine would hang CRIU: 0 is no value. */
static int set_deadline(void *field, const char *value)
{
	unsigned int seconds;

	if (set_seconds(&seconds, value) || !seconds)
		return -EINVAL;
	*(unsigned int *)field = seconds;
	return 0;
}

static int parse_id(const char *s, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	*ret = strtoul(s, &end, 0);
	return errno || *end || !*ret || *ret > UINT32_MAX ? -EINVAL : 0;
}

/* 0000:03:00.0, as lspci has it; the domain may be left out. */
static int parse_pci(const char *s, uint64_t *ret)
{
	unsigned int domain = 0, bus, dev, fn;
	int len = 0;

	if (sscanf(s, "%8x:%2x:%2x.%1x%n", &domain, &bus, &dev, &fn,
		   &len) != 4) {
		domain = 0;
		len = 0;
		if (sscanf(s, "%2x:%2x.%1x%n", &bus, &dev, &fn, &len) != 3)
			return -EINVAL;
	}
	if (!len || s[len] || dev > 31 || fn > 7)
		return -EINVAL;
	*ret = (uint64_t)domain << 32 | bus << 8 | dev << 3 | fn;
	return 0;
}

/* GPU-0123456789abcdef, as ROCm's tools have it. */
static int parse_uuid(const char *s, uint64_t *ret)
{
	char *end;

	if (!isxdigit((unsigned char)s[4]))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s + 4, &end, 16);
	return errno || *end || !*ret ? -EINVAL : 0;
}

static int parse_gpu(const char *s, struct gpucr_gpu_name *ret)
{
	if (!strncasecmp(s, "GPU-", 4)) {
		ret->kind = GPUCR_NAME_UUID;
		return parse_uuid(s, &ret->value);
	}
	if (strchr(s, ':')) {
		ret->kind = GPUCR_NAME_PCI;
		return parse_pci(s, &ret->value);
	}
	ret->kind = GPUCR_NAME_ID;
	return parse_id(s, &ret->value);
}

static int parse_pair(const char *s, size_t len, struct gpucr_gpu_pair *ret)
{
	char text[96], *value;

	if (len >= sizeof(text))
		return -EINVAL;
	memcpy(text, s, len);
	text[len] = '\0';
	value = strchr(text, '=');
	if (!value)
		return -EINVAL;
	*value++ = '\0';
	return parse_gpu(text, &ret->image) || parse_gpu(value, &ret->local) ?
	       -EINVAL : 0;
}

/* old=new[,old=new]...; "identity" and "" clear the list. */
static int set_map(void *field, const char *value)
{
	struct gpucr_gpu_pair map[GPUCR_OPT_MAX_PAIRS];
	struct gpucr_opts *o = field;
	size_t n = 0;

	if (!*value || !strcmp(value, "identity")) {
		o->map_len = 0;
		return 0;
	}
	/* What is refused leaves the list as it was. */
	for (;;) {
		size_t len = strcspn(value, ",");

		if (n == GPUCR_OPT_MAX_PAIRS)
			return -E2BIG;
		if (parse_pair(value, len, &map[n]))
			return -EINVAL;
		n++;
		value += len;
		if (!*value)
			break;
		value++;
	}
	memcpy(o->map, map, n * sizeof(*map));
	o->map_len = n;
	return 0;
}

int gpucr_opts_set_map(struct gpucr_opts *o, const char *value)
{
	return set_map(o, value);
}

/* on, off, or the program to be run. */
static int set_guard(void *field, const char *value)
{
	struct gpucr_opts *o = field;
	bool on;

	if (*value != '/') {
		if (set_bool(&on, value))
			return -EINVAL;
		value = on ? GPUCR_OPT_GUARD : "";
	}
	if (strlen(value) >= sizeof(o->guard))
		return -ENAMETOOLONG;
	strcpy(o->guard, value);
	return 0;
}

static int set_format(void *field, const char *value)
{
	enum gpucr_img_format *format = field;

	if (!strcmp(value, "native"))
		*format = GPUCR_FORMAT_NATIVE;
	else if (!strcmp(value, "upstream-4.2"))
		*format = GPUCR_FORMAT_UPSTREAM;
	else
		return -EINVAL;
	return 0;
}

/* none, zstd or zstd:LEVEL. */
static int set_compress(void *field, const char *value)
{
	int *level = field;
	char *end;
	long n = 1;

	if (!strcmp(value, "none")) {
		*level = 0;
		return 0;
	}
	if (strncmp(value, "zstd", 4))
		return -EINVAL;
	value += 4;
	if (*value) {
		if (*value != ':' || !isdigit((unsigned char)value[1]))
			return -EINVAL;
		n = strtol(value + 1, &end, 10);
		if (*end || n < 1 || n > GPUCR_ZCHUNK_MAX_LEVEL)
			return -EINVAL;
	}
	*level = n;
	return 0;
}

#define FIELD(f) offsetof(struct gpucr_opts, f)

static const struct opt_def opt_defs[] = {
	{ "backend", NULL, true, set_backend, FIELD(backend) },
	{ "max-buffer-size", "KFD_MAX_BUFFER_SIZE", true, set_size,
	  FIELD(max_buffer_size) },
	{ "device-map", NULL, true, set_map, 0 },
	{ "image-format", NULL, false, set_format, FIELD(format) },
	{ "space-check", NULL, false, set_bool, FIELD(space_check) },
	{ "keep-partial", NULL, false, set_bool, FIELD(keep_partial) },
	{ "guard", NULL, false, set_guard, 0 },
	{ "io-uring", NULL, false, set_bool, FIELD(io_uring) },
	{ "overlap", NULL, false, set_bool, FIELD(overlap) },
	{ "compress", NULL, false, set_compress, FIELD(zstd_level) },
	{ "bandwidth-limit", NULL, false, set_size, FIELD(bandwidth) },
	{ "pause-limit", NULL, false, set_seconds, FIELD(pause_limit) },
	{ "copy-deadline", NULL, false, set_deadline, FIELD(copy_deadline) },
	{ "capability-check", "KFD_CAPABILITY_CHECK", false, set_bool,
	  FIELD(check_capability) },
	{ "vram-size-check", "KFD_VRAM_SIZE_CHECK", false, set_bool,
	  FIELD(check_vram_size) },
	{ "num-gws-check", "KFD_NUM_GWS_CHECK", false, set_bool,
	  FIELD(check_num_gws) },
	{ "caches-count-check", "KFD_CACHES_COUNT_CHECK", false, set_bool,
	  FIELD(check_caches_count) },
	{ "fw-ver-check", "KFD_FW_VER_CHECK", false, set_bool,
	  FIELD(check_fw_ver) },
	{ "sdma-fw-ver-check", "KFD_SDMA_FW_VER_CHECK", false, set_bool,
	  FIELD(check_sdma_fw_ver) },
	{ "numa-check", "KFD_NUMA_CHECK", false, set_bool, FIELD(check_numa) },
	{ "link-check", NULL, false, set_bool, FIELD(check_links) },
};

#define NUM_OPTS (sizeof(opt_defs) / sizeof(opt_defs[0]))

void gpucr_opts_defaults(struct gpucr_opts *o)
{
	memset(o, 0, sizeof(*o));
	o->space_check = true;
	strcpy(o->guard, GPUCR_OPT_GUARD);
	o->io_uring = true;
	o->overlap = true;
	o->copy_deadline = GPUCR_COPY_DEADLINE_MS / 1000;
	o->check_capability = true;
	o->check_vram_size = true;
	o->check_num_gws = true;
	o->check_caches_count = true;
	o->check_fw_ver = true;
	o->check_sdma_fw_ver = true;
	o->check_numa = true;
	o->check_links = true;
}

static int opt_set(struct gpucr_opts *o, const struct opt_def *d,
		   const char *value, const char *where)
{
	if (!d->set((char *)o + d->offset, value))
		return 0;
	gpucr_err("%s: \"%s\" is no value for %s (bad-option)", where, value,
		  d->name);
	return -EINVAL;
}

static char *strip(char *s)
{
	char *end;

	while (isspace((unsigned char)*s))
		s++;
	end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return s;
}

static int parse_line(struct gpucr_opts *o, char *line, const char *where,
		      bool from_image)
{
	char *name, *value;
	size_t i;

	name = strip(line);
	if (!*name || *name == '#')
		return 0;
	value = strchr(name, '=');
	if (!value) {
		gpucr_err("%s: no \"=\" in \"%s\" (bad-option)", where, name);
		return -EINVAL;
	}
	*value++ = '\0';
	name = strip(name);
	value = strip(value);
	for (i = 0; i < NUM_OPTS; i++) {
		if (strcmp(name, opt_defs[i].name))
			continue;
		if (!from_image || opt_defs[i].in_image)
			return opt_set(o, &opt_defs[i], value, where);
		gpucr_err("%s: %s may not be set by an image (bad-option)",
			  where, name);
		return -EPERM;
	}
	gpucr_err("%s: unknown option \"%s\" (bad-option)", where, name);
	return -EINVAL;
}

int gpucr_opts_parse(struct gpucr_opts *o, char *text, const char *where,
		     bool from_image)
{
	unsigned int n = 0;
	char at[256], *line;

	while ((line = strsep(&text, "\n"))) {
		int err;

		snprintf(at, sizeof(at), "%s:%u", where, ++n);
		err = parse_line(o, line, at, from_image);
		if (err)
			return err;
	}
	return 0;
}

static int load_file(struct gpucr_opts *o, int dir, const char *name,
		     bool from_image)
{
	ssize_t len;
	char *text;
	int fd, err;

	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		err = -errno;
		gpucr_err("%s: %s (bad-option)", name, strerror(errno));
		return err;
	}
	text = malloc(OPT_FILE_MAX);
	len = text ? read(fd, text, OPT_FILE_MAX) : -1;
	err = len < 0 ? -errno : len == OPT_FILE_MAX ? -EFBIG : 0;
	close(fd);
	if (err) {
		gpucr_err("%s: cannot be read: %s (bad-option)", name,
			  strerror(-err));
	} else {
		text[len] = '\0';
		err = gpucr_opts_parse(o, text, name, from_image);
	}
	free(text);
	return err;
}

/* GPUCR_SPACE_CHECK for space-check. */
static bool env_name_matches(const char *env, size_t len, const char *name)
{
	size_t i;

	if (strlen(name) != len)
		return false;
	for (i = 0; i < len; i++) {
		int c = name[i] == '-' ? '_' : toupper((unsigned char)name[i]);

		if (env[i] != c)
			return false;
	}
	return true;
}

static int env_one(struct gpucr_opts *o, const char *entry)
{
	const char *name = entry + strlen("GPUCR_");
	size_t len = strcspn(name, "=");
	char where[128];
	size_t i;

	snprintf(where, sizeof(where), "environment: GPUCR_%.*s", (int)len,
		 name);
	for (i = 0; i < NUM_OPTS; i++) {
		if (env_name_matches(name, len, opt_defs[i].name) && name[len])
			return opt_set(o, &opt_defs[i], name + len + 1, where);
	}
	/* Not refused: other programs may use the prefix for themselves. */
	gpucr_warn("%s: unknown option, ignored", where);
	return 0;
}

static int load_env(struct gpucr_opts *o)
{
	char **e;
	size_t i;
	int err;

	for (i = 0; i < NUM_OPTS; i++) {
		const char *name = opt_defs[i].kfd_env;
		const char *value = name ? getenv(name) : NULL;
		char where[128];

		if (!value)
			continue;
		snprintf(where, sizeof(where), "environment: %s", name);
		err = opt_set(o, &opt_defs[i], value, where);
		if (err)
			return err;
	}
	for (e = environ; e && *e; e++) {
		if (strncmp(*e, "GPUCR_", strlen("GPUCR_")))
			continue;
		err = env_one(o, *e);
		if (err)
			return err;
	}
	return 0;
}

int gpucr_opts_load(struct gpucr_opts *o, const char *file, int image_dir)
{
	int err;

	gpucr_opts_defaults(o);
	err = load_file(o, AT_FDCWD, file, false);
	if (!err)
		err = load_env(o);
	if (!err && image_dir >= 0)
		err = load_file(o, image_dir, GPUCR_OPT_IMAGE_FILE, true);
	return err;
}

/* What set_... of the option has made, as text. */
static void value_text(const struct gpucr_opts *o, const struct opt_def *d,
		       char *text, size_t size)
{
	static const char * const backends[] = { "auto", "netlink", "ioctl" };
	const void *field = (const char *)o + d->offset;

	if (d->set == set_bool)
		snprintf(text, size, "%s", *(const bool *)field ? "on" : "off");
	else if (d->set == set_size)
		snprintf(text, size, "%llu",
			 (unsigned long long)*(const uint64_t *)field);
	else if (d->set == set_backend)
		snprintf(text, size, "%s", backends[o->backend]);
	else if (d->set == set_format)
		snprintf(text, size, "%s",
			 o->format == GPUCR_FORMAT_UPSTREAM ? "upstream-4.2" :
							      "native");
	else if (d->set == set_guard)
		snprintf(text, size, "%s", *o->guard ? o->guard : "off");
	else if (d->set == set_map)
		snprintf(text, size, "%zu pairs", o->map_len);
	else if (d->set == set_compress)
		snprintf(text, size, o->zstd_level ? "zstd:%d" : "none",
			 o->zstd_level);
	else
		snprintf(text, size, "%u", *(const unsigned int *)field);
}

void gpucr_opts_tell(const struct gpucr_opts *o,
		     void (*fn)(void *arg, const char *name,
				const char *value), void *arg)
{
	char text[sizeof(o->guard)];
	size_t i;

	for (i = 0; i < NUM_OPTS; i++) {
		value_text(o, &opt_defs[i], text, sizeof(text));
		fn(arg, opt_defs[i].name, text);
	}
}
