// SPDX-License-Identifier: GPL-2.0-only
/* The plugins that criu will load, and whether ours is among them. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_elf.h"

#define OUR_NAME	"amdgpu_plugin"
#define MARK		"gpucr-kfd-"	/* in ours alone: its files' name */

struct found {
	const struct doctor_criu *criu;
	const char *version;
	unsigned int plugins, ours, claims;
	char path[600];			/* of ours */
	char claim[600];		/* of another with its name */
	bool cuda;
};

static bool has_mark(const char *text)
{
	return strstr(text, MARK);
}

static const char *wanted;		/* version */

static bool is_version(const char *text)
{
	const char *dot = strchr(text, '.');

	return dot && strchr(dot + 1, '.') && *text != '.' &&
	       strspn(text, "0123456789.") == strlen(text);
}

static bool is_wanted(const char *text)
{
	return !strcmp(text, wanted);
}

/* Loads it as criu does under LD_BIND_NOW, in a child. Its complaint, to text. */
static bool loads(const char *path, char *text, size_t size)
{
	size_t len = 0;
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	text[0] = '\0';
	if (pipe(fds))
		return false;
	pid = fork();
	if (!pid) {
		const char *error;

		close(fds[0]);
		alarm(10);
		if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
			_exit(0);
		error = dlerror();
		if (error && write(fds[1], error, strlen(error)) < 0)
			_exit(2);
		_exit(1);
	}
	close(fds[1]);
	while (pid > 0 && len < size - 1 &&
	       (n = read(fds[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       WIFEXITED(status) && !WEXITSTATUS(status);
}

static const char *text_or(const char *text)
{
	return text ? text : "unknown";
}

static void judge_ours(struct found *f, const char *path,
		       const struct doctor_elf *e)
{
	char why[256];

	if (f->ours++)
		return;
	wanted = f->version;
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (!loads(path, why, sizeof(why)))
		doctor_say(DOCTOR_FAIL, "plugin", "plugin-unloadable",
			   "install the libraries that it names, or the plugin built for this system",
			   "%s does not load: %s", path,
			   *why ? why : "the loader died");
	else if (!doctor_elf_text(e, is_wanted))
		doctor_say(DOCTOR_WARN, "plugin", "plugin-version",
			   "install plugin and tool of one version",
			   "%s is of version %s, this tool of %s", path,
			   text_or(doctor_elf_text(e, is_version)), f->version);
	else
		doctor_say(DOCTOR_OK, "plugin", NULL, NULL, "%s loads", path);
}

static void judge_file(struct found *f, const char *path)
{
	const char *name = NULL;
	struct doctor_sym desc;
	struct doctor_elf e;
	int err = doctor_elf_open(path, &e);

	f->plugins++;
	if (err) {
		doctor_say(DOCTOR_FAIL, "plugins", "plugin-foreign",
			   "remove it, or mend it: CRIU refuses every dump and restore while it is there",
			   "%s: %s", path, strerror(-err));
		return;
	}
	if (doctor_elf_symbol(&e, "CR_PLUGIN_DESC", &desc))
		name = doctor_elf_pointer(&e, desc.value);
	if (doctor_elf_text(&e, has_mark)) {
		if (f->ours)
			snprintf(f->claim, sizeof(f->claim), "%s", path);
		f->claims += !!f->ours;
		judge_ours(f, path, &e);
	} else if (name && !strcmp(name, OUR_NAME)) {
		f->claims++;
		snprintf(f->claim, sizeof(f->claim), "%s", path);
	} else if (name && !strcmp(name, "cuda_plugin")) {
		f->cuda = true;
	}
	doctor_elf_close(&e);
}

static bool ends_in_so(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && !strcmp(name + len - 3, ".so");
}

static int read_directory(struct found *f)
{
	struct dirent **list;
	char path[600];
	int i, num;

	num = scandir(f->criu->libdir, &list, NULL, alphasort);
	if (num < 0)
		return -errno;
	for (i = 0; i < num; i++) {
		size_t len = strlen(f->criu->libdir);
		bool slash = len && f->criu->libdir[len - 1] == '/';

		if (ends_in_so(list[i]->d_name) &&
		    (size_t)snprintf(path, sizeof(path), "%s%s%s",
				     f->criu->libdir, slash ? "" : "/",
				     list[i]->d_name) < sizeof(path))
			judge_file(f, path);
		free(list[i]);
	}
	free(list);
	return 0;
}

/* CHECKPOINT_DEVICES is hook 11; CRIU's cuda plugin kept it to itself up to 4.2. */
static void judge_others(const struct found *f)
{
	if (f->claims && f->ours)
		doctor_say(DOCTOR_FAIL, "plugins", "plugin-twice",
			   "remove one of the two",
			   "%s and %s are both plugins named " OUR_NAME,
			   f->path, f->claim);
	else if (f->cuda && f->criu->hooks > 11 && f->criu->hooks <= 13)
		doctor_say(DOCTOR_WARN, "plugins", "plugin-swallows",
			   "keep cuda_plugin.so in another directory, or use a newer CRIU",
			   "cuda_plugin of this CRIU may keep the hook that pauses GPUs early: processes that share memory with a GPU cannot be dumped");
	else
		doctor_say(DOCTOR_OK, "plugins", NULL, NULL,
			   "%u in %s, none in the way of ours", f->plugins,
			   f->criu->libdir);
}

void doctor_check_plugins(const struct doctor_criu *c, const char *version)
{
	struct found f = { .criu = c, .version = version };
	int err = read_directory(&f);

	if (err && err != -ENOENT) {
		doctor_say(DOCTOR_FAIL, "plugin", "plugin-missing",
			   "make it readable", "%s: %s", c->libdir,
			   strerror(-err));
		return;
	}
	if (!f.ours)
		doctor_say(DOCTOR_FAIL, "plugin", "plugin-missing",
			   "copy it there, or give criu -L the directory where it is",
			   "gpucr's amdgpu_plugin.so is not in %s, where this criu looks%s%s",
			   c->libdir, f.claims ? "; another of that name is: " :
			   "", f.claims ? f.claim : "");
	if (f.plugins)
		judge_others(&f);
}
