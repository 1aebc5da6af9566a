// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests of the tool: makes the images of a dump, whole and right.
 *
 *	makeimage [-zstd] DIR [PLUGIN]...	a process on two GPUs, a render
 *					node; the plugins are those of the
 *					inventory
 *	makeimage -rss KIB COMMAND...	runs it; fails where it needs more memory
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criusample.h"
#include "sample.h"

#define KFD_ID		7
#define RENDER_ID	9

static void fill(uint8_t *p, size_t len, size_t pos)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (pos + i) / GPUCR_CHUNK_SIZE % 3 == 1 ? 0 :
			(uint8_t)((pos + i) * 7 + (pos + i) / 4096);
}

/* Real content instead of the sample's index. */
static int write_pages(int dir, struct gpucr_img_pages *p, int zstd_level)
{
	struct gpucr_pages_writer w;
	uint64_t bytes = p->chunks.raw_bytes, pos;
	uint8_t *buf = malloc(GPUCR_CHUNK_SIZE);
	int err;

	gpucr_chunks_clear(&p->chunks);
	if (!buf || gpucr_pages_create(&w, dir, p->file, bytes))
		return -1;
	err = zstd_level ? gpucr_pages_set_zstd(&w, zstd_level) : 0;
	for (pos = 0; !err && pos < bytes; pos += GPUCR_CHUNK_SIZE) {
		size_t n = bytes - pos < GPUCR_CHUNK_SIZE ?
			   bytes - pos : GPUCR_CHUNK_SIZE;

		fill(buf, n, pos);
		err = gpucr_pages_append(&w, buf, n);
	}
	free(buf);
	return err ? err : gpucr_pages_commit(&w, &p->chunks);
}

static int make(const char *path, const char *const *plugins, int zstd_level)
{
	static const uint32_t ids[] = { KFD_ID, RENDER_ID };
	struct gpucr_img_render r = { .id = RENDER_ID, .kfd_vm = true };
	struct gpucr_img_kfd img;
	size_t i;
	int dir;

	dir = open(path, O_RDONLY | O_DIRECTORY);
	if (dir < 0 || sample_kfd(&img))
		return 1;
	for (i = 0; i < img.num_pages; i++)
		if (write_pages(dir, &img.pages[i], zstd_level))
			return 1;
	sample_device(&r.device, img.devices[0].user_gpu_id);
	r.owner_pid = img.pid;
	if (gpucr_img_kfd_write(dir, &img) || gpucr_img_render_write(dir, &r) ||
	    criusample_write(dir, *plugins ? plugins : NULL, ids, 2, img.pid))
		return 1;
	gpucr_img_kfd_clear(&img);
	close(dir);
	return 0;
}

static int measure(long kib, char **command)
{
	struct rusage use;
	pid_t pid = fork();
	int status;

	if (!pid) {
		execvp(command[0], command);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &use) != pid)
		return 1;
	printf("%ld KiB\n", use.ru_maxrss);
	if (use.ru_maxrss > kib)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "-rss"))
		return measure(atol(argv[2]), argv + 3);
	if (argc > 2 && !strcmp(argv[1], "-zstd"))
		return make(argv[2], (const char *const *)argv + 3, 1);
	if (argc < 2)
		return 2;
	return make(argv[1], (const char *const *)argv + 2, 0);
}
