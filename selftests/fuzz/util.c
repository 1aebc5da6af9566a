// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

static char made[64];

static void remove_made(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", made);
	if (system(command))
		perror(made);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	gpucr_log_set_sink(fuzz_no_log);
	return 0;
}

int fuzz_dir(char path[64])
{
	struct stat st;
	int fd;

	snprintf(path, 64, "%s/gpucr-fuzz.XXXXXX",
		 stat("/dev/shm", &st) ? "/tmp" : "/dev/shm");
	HOLDS(mkdtemp(path));
	snprintf(made, sizeof(made), "%s", path);
	atexit(remove_made);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HOLDS(fd >= 0);
	return fd;
}

void fuzz_put(int dir, const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);

	HOLDS(fd >= 0);
	HOLDS(!size || write(fd, data, size) == (ssize_t)size);
	close(fd);
}

size_t fuzz_part(const uint8_t **data, size_t *size, const uint8_t **part)
{
	static const uint8_t end[] = { 0xff, 'N', 0xff };
	const uint8_t *at = memmem(*data, *size, end, sizeof(end));
	size_t len = at ? (size_t)(at - *data) : *size;
	size_t skip = at ? len + sizeof(end) : len;

	*part = *data;
	*data += skip;
	*size -= skip;
	return len;
}
