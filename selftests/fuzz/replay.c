// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives the corpus of a target to it, each input whole and cut in half: what
 * once was found is not found again, also where there is no libFuzzer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ktap.h"
#include "fuzz.h"

static int feed(const char *dir, const char *name)
{
	char path[512];
	struct stat st;
	uint8_t *data;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	data = malloc(st.st_size + 1);
	if (!data || read(fd, data, st.st_size) != st.st_size)
		return -1;
	close(fd);
	/* Canary: the sanitizer must see a target that reads too far. */
	if (getenv("GPUCR_CANARY"))
		LLVMFuzzerTestOneInput(data, st.st_size + 4096);
	LLVMFuzzerTestOneInput(data, st.st_size);
	LLVMFuzzerTestOneInput(data, st.st_size / 2);
	free(data);
	return 0;
}

int main(void)
{
	const char *dir = "corpus/" TARGET;
	struct dirent *de;
	int num = 0, bad = 0;
	DIR *d;

	ktap_plan(1);
	LLVMFuzzerInitialize(NULL, NULL);
	d = opendir(dir);
	while (d && (de = readdir(d))) {
		if (*de->d_name == '.')
			continue;
		num++;
		bad += !!feed(dir, de->d_name);
	}
	if (d)
		closedir(d);
	ktap_ok(num && !bad, "%d inputs of %s", num, dir);
	return ktap_exit();
}
