// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes buffer objects and mappings on a DRM device that has dumb buffers,
 * writes what it made as JSON, and waits until it is killed.
 *
 * usage: gemtruth DRIVER FILE
 *
 * The truth has, for each file of the process, every BO that it may map, and
 * every mapping; "bo" is a name of our own: equal names are one object. DRM
 * forbids new mappings of a BO when its handle is closed; the old ones stay.
 * Exit 4: no such device.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <drm.h>
#include <drm_mode.h>

#define PAGE		4096UL
#define SKIP		4

struct bo {
	char name;
	int fd;
	uint32_t handle;
	uint64_t size, offset;
	bool closed, exported;
	unsigned int handles;
};

struct map {
	char bo;
	uint64_t start, size, delta;
	const char *prot, *kind;
	int fd;
};

static struct bo bos[16];
static struct map maps[16];
static unsigned int num_bos, num_maps;

static void die(const char *what)
{
	fprintf(stderr, "gemtruth: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_node(const char *driver, const char *form, int first)
{
	char path[64], name[64];
	int i, fd;

	for (i = first; i < first + 64; i++) {
		struct drm_version v = { .name = name, .name_len = 63 };

		snprintf(path, sizeof(path), form, i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!ioctl(fd, DRM_IOCTL_VERSION, &v)) {
			name[v.name_len < 63 ? v.name_len : 63] = '\0';
			if (!strcmp(name, driver))
				return fd;
		}
		close(fd);
	}
	return -1;
}

/* A BO of that many pages in file fd. */
static struct bo *make_bo(char name, int fd, uint64_t pages)
{
	struct drm_mode_create_dumb c = {
		.width = 1024, .height = (uint32_t)pages, .bpp = 32,
	};
	struct drm_mode_map_dumb m = { 0 };
	struct bo *bo = &bos[num_bos++];

	if (ioctl(fd, DRM_IOCTL_MODE_CREATE_DUMB, &c))
		die("create");
	m.handle = c.handle;
	if (ioctl(fd, DRM_IOCTL_MODE_MAP_DUMB, &m))
		die("offset");
	*bo = (struct bo){ .name = name, .fd = fd, .handle = c.handle,
			   .size = c.size, .offset = m.offset, .handles = 1 };
	return bo;
}

/*
 * Maps the BO, whole, since DRM takes an exact start only; what is not delta
 * to delta + size is unmapped again.
 */
static void map_bo(const struct bo *bo, int fd, uint64_t base, uint64_t delta,
		   uint64_t size, int prot)
{
	struct map *m = &maps[num_maps++];
	char *p;

	p = mmap(NULL, bo->size, prot, MAP_SHARED, fd, (off_t)base);
	if (p == MAP_FAILED)
		die("mmap");
	if ((delta && munmap(p, delta)) ||
	    (delta + size < bo->size &&
	     munmap(p + delta + size, bo->size - delta - size)))
		die("munmap");
	if (prot & PROT_WRITE)
		*(volatile char *)(p + delta) = bo->name;
	*m = (struct map){ .bo = bo->name, .start = (uintptr_t)p + delta,
			   .size = size, .delta = delta, .fd = fd,
			   .prot = prot & PROT_WRITE ? "rw-s" : "r--s",
			   .kind = base ? "bo" : "dma-buf" };
}

static void close_handle(struct bo *bo)
{
	struct drm_gem_close c = { .handle = bo->handle };

	if (ioctl(bo->fd, DRM_IOCTL_GEM_CLOSE, &c))
		die("close");
	bo->closed = true;
}

/* Exports the BO, maps it so, and gives the other file a handle too. */
static void share_bo(struct bo *bo, int other)
{
	struct drm_prime_handle p = {
		.handle = bo->handle, .flags = DRM_CLOEXEC | DRM_RDWR,
	};
	struct bo *again = &bos[num_bos++];

	if (ioctl(bo->fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &p))
		die("export");
	map_bo(bo, p.fd, 0, 0, bo->size, PROT_READ | PROT_WRITE);
	bo->exported = true;
	bo->handles = 2;
	*again = *bo;
	again->fd = other;
	if (ioctl(other, DRM_IOCTL_PRIME_FD_TO_HANDLE, &p))
		die("import");
	again->handle = p.handle;
}

static void make_all(int fd, int other)
{
	struct bo *bo;

	bo = make_bo('a', fd, 4);
	map_bo(bo, fd, bo->offset, 0, bo->size, PROT_READ | PROT_WRITE);

	bo = make_bo('b', fd, 16);
	map_bo(bo, fd, bo->offset, 0, 16 * PAGE, PROT_READ);
	map_bo(bo, fd, bo->offset, 8 * PAGE, 4 * PAGE, PROT_READ | PROT_WRITE);

	make_bo('c', fd, 2);			/* without a mapping */

	bo = make_bo('d', fd, 8);		/* without a handle */
	map_bo(bo, fd, bo->offset, 0, bo->size, PROT_READ | PROT_WRITE);
	close_handle(bo);

	share_bo(make_bo('e', fd, 1), other);
}

static void write_bo(FILE *f, const struct bo *bo)
{
	fprintf(f, "{\"bo\":\"%c\",\"fd\":%d,\"handle\":%u,\"size\":%llu,\"offset\":\"0x%llx\",\"handles\":%u,\"flags\":[%s]}",
		bo->name, bo->fd, bo->handle, (unsigned long long)bo->size,
		(unsigned long long)bo->offset, bo->handles,
		bo->exported ? "\"exported\"" : "");
}

static void write_map(FILE *f, const struct map *m)
{
	fprintf(f, "{\"bo\":\"%c\",\"start\":\"0x%llx\",\"end\":\"0x%llx\",\"prot\":\"%s\",\"kind\":\"%s\",\"bo_delta\":%llu,\"fd\":%d}",
		m->bo, (unsigned long long)m->start,
		(unsigned long long)(m->start + m->size), m->prot, m->kind,
		(unsigned long long)m->delta, m->fd);
}

static void write_truth(const char *path)
{
	const char *comma = "";
	char tmp[4096];
	unsigned int i;
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	f = fopen(tmp, "w");
	if (!f)
		die(tmp);
	fputs("{\"bos\":[", f);
	for (i = 0; i < num_bos; i++) {
		if (bos[i].closed)
			continue;
		fputs(comma, f);
		write_bo(f, &bos[i]);
		comma = ",";
	}
	fputs("],\"vmas\":[", f);
	for (i = 0; i < num_maps; i++) {
		fputs(i ? "," : "", f);
		write_map(f, &maps[i]);
	}
	fputs("]}\n", f);
	if (fclose(f) || rename(tmp, path))
		die(path);
}

int main(int argc, char **argv)
{
	int fd, other;

	if (argc != 3) {
		fputs("usage: gemtruth DRIVER FILE\n", stderr);
		return 2;
	}
	fd = open_node(argv[1], "/dev/dri/card%d", 0);
	other = open_node(argv[1], "/dev/dri/renderD%d", 128);
	if (fd < 0 || other < 0) {
		fprintf(stderr, "gemtruth: no device of %s\n", argv[1]);
		return SKIP;
	}
	/* The same open file under a second number must not be told twice. */
	if (dup(fd) < 0)
		die("dup");
	make_all(fd, other);
	write_truth(argv[2]);
	for (;;)
		pause();
}
