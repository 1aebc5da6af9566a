// SPDX-License-Identifier: GPL-2.0-only
#include "btf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BTF_DIR		"/sys/kernel/btf"
#define BTF_MAGIC	0xeb9f
#define BTF_VERSION	1
#define BTF_MAX		(64u << 20)

struct btf_header {
	uint16_t magic;
	uint8_t version;
	uint8_t flags;
	uint32_t hdr_len;
	uint32_t type_off, type_len;	/* from the header's end */
	uint32_t str_off, str_len;
};

struct btf_type {
	uint32_t name_off;
	uint32_t info;
	uint32_t size;
};

#define BTF_KIND_STRUCT	4

/* What follows a type: so much, and so much for each of its members. */
static const struct {
	uint8_t fixed, each;
	bool known;
} kinds[] = {
	[1] = { 4, 0, true },	/* int */
	[2] = { 0, 0, true },	/* pointer */
	[3] = { 12, 0, true },	/* array */
	[BTF_KIND_STRUCT] = { 0, 12, true },
	[5] = { 0, 12, true },	/* union */
	[6] = { 0, 8, true },	/* enum */
	[7] = { 0, 0, true },	/* forward */
	[8] = { 0, 0, true },	/* typedef */
	[9] = { 0, 0, true },	/* volatile */
	[10] = { 0, 0, true },	/* const */
	[11] = { 0, 0, true },	/* restrict */
	[12] = { 0, 0, true },	/* function */
	[13] = { 0, 8, true },	/* prototype */
	[14] = { 4, 0, true },	/* variable */
	[15] = { 0, 12, true },	/* data section */
	[16] = { 0, 0, true },	/* float */
	[17] = { 4, 0, true },	/* declaration tag */
	[18] = { 0, 0, true },	/* type tag */
	[19] = { 0, 12, true },	/* 64-bit enum */
};

static bool has_name(const char *strings, uint32_t len, uint32_t off,
		     uint32_t base, const char *name)
{
	size_t n = strlen(name) + 1;

	if (off < base || off - base >= len || n > len - (off - base))
		return false;
	return !memcmp(strings + (off - base), name, n);
}

static int read_header(const uint8_t *data, size_t len, struct btf_header *h)
{
	if (len < sizeof(*h))
		return -EBADMSG;
	memcpy(h, data, sizeof(*h));
	if (h->magic != BTF_MAGIC || h->hdr_len < sizeof(*h))
		return -EBADMSG;
	return h->version == BTF_VERSION ? 0 : -EPROTO;
}

int gpucr_btf_struct_size(const void *data, size_t len, uint32_t base_str_len,
			  const char *name, uint32_t *ret)
{
	const uint8_t *p, *end;
	struct btf_header h;
	const char *strings;
	struct btf_type t;
	int err;

	err = read_header(data, len, &h);
	if (err)
		return err;
	/* 32-bit sums in 64 bits: no overflow. */
	if ((uint64_t)h.hdr_len + h.type_off + h.type_len > len ||
	    (uint64_t)h.hdr_len + h.str_off + h.str_len > len)
		return -EBADMSG;
	strings = (const char *)data + h.hdr_len + h.str_off;
	p = (const uint8_t *)data + h.hdr_len + h.type_off;
	end = p + h.type_len;
	while (p < end) {
		uint32_t kind, members;
		size_t more;

		if ((size_t)(end - p) < sizeof(t))
			return -EBADMSG;
		memcpy(&t, p, sizeof(t));
		p += sizeof(t);
		kind = t.info >> 24 & 0x1f;
		members = t.info & 0xffff;
		if (kind >= sizeof(kinds) / sizeof(kinds[0]) ||
		    !kinds[kind].known)
			return -EPROTO;
		if (kind == BTF_KIND_STRUCT &&
		    has_name(strings, h.str_len, t.name_off, base_str_len,
			     name)) {
			*ret = t.size;
			return 0;
		}
		more = kinds[kind].fixed + (size_t)members * kinds[kind].each;
		if (more > (size_t)(end - p))
			return -EBADMSG;
		p += more;
	}
	return -ENOENT;
}

static int open_btf(const char *module)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", BTF_DIR, module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* NULL: errno tells. */
static uint8_t *read_all(int fd, size_t *len)
{
	struct stat st;
	ssize_t n = 0;
	uint8_t *data;

	if (fstat(fd, &st))
		return NULL;
	if (st.st_size <= 0 || st.st_size > BTF_MAX) {
		errno = EBADMSG;
		return NULL;
	}
	data = malloc((size_t)st.st_size);
	for (*len = 0; data && *len < (size_t)st.st_size; *len += (size_t)n) {
		n = read(fd, data + *len, (size_t)st.st_size - *len);
		if (n <= 0)
			break;
	}
	if (n >= 0)
		return data;
	free(data);
	return NULL;
}

/* How many bytes of names does vmlinux have? Its header tells. */
static int base_strings(uint32_t *ret)
{
	struct btf_header h;
	uint8_t head[sizeof(h)];
	int fd = open_btf("vmlinux"), err;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, head, sizeof(head));
	close(fd);
	err = n < 0 ? -EIO : read_header(head, (size_t)n, &h);
	if (!err)
		*ret = h.str_len;
	return err;
}

int gpucr_btf_module_struct_size(const char *module, const char *name,
				 uint32_t *ret)
{
	uint32_t base = 0;
	uint8_t *data;
	size_t len;
	int fd, err;

	err = base_strings(&base);
	if (err)
		return err;
	fd = open_btf(module);
	if (fd == -ENOENT) {
		base = 0;
		fd = open_btf("vmlinux");
	}
	if (fd < 0)
		return fd;
	data = read_all(fd, &len);
	err = data ? 0 : -errno;
	close(fd);
	if (!data)
		return err;
	err = gpucr_btf_struct_size(data, len, base, name, ret);
	free(data);
	return err;
}
