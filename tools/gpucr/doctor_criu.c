// SPDX-License-Identifier: GPL-2.0-only
/* criu: which, which version, can it load plugins, and from where. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_elf.h"

#define HOOKS_MIN	10	/* CRIU 3.17 */

static bool is_libdir(const char *text)
{
	size_t len = strlen(text);

	if (*text != '/' || !strstr(text, "lib"))
		return false;
	while (len > 1 && text[len - 1] == '/')
		len--;
	return len > 5 && !strncmp(text + len - 5, "/criu", 5) &&
	       !strpbrk(text, "% ");
}

bool doctor_parse_version(const char *text, struct doctor_criu *c)
{
	const char *at = strstr(text, "Version: ");
	int n;

	if (!at)
		return false;
	c->sublevel = 0;
	n = sscanf(at, "Version: %u.%u.%u", &c->major, &c->minor, &c->sublevel);
	return n >= 2;
}

/* Runs criu --version, for at most ten seconds. */
static void ask_version(struct doctor_criu *c)
{
	char text[512];
	size_t len = 0;
	ssize_t n;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return;
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		alarm(10);
		execl(c->path, c->path, "--version", NULL);
		_exit(127);
	}
	close(fds[1]);
	while (pid > 0 && len < sizeof(text) - 1 &&
	       (n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (!doctor_parse_version(text, c))
		c->major = c->minor = 0;
}

bool doctor_conf_libdir(const char *file, char *to, size_t size)
{
	FILE *f = fopen(file, "re");
	char line[512], *at, *end;
	bool found = false;

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		at = line + strspn(line, " \t");
		if (strncmp(at, "libdir", 6) || !strchr(" \t=", at[6]))
			continue;
		at += 6 + strspn(at + 6, " \t=");
		end = at + strcspn(at, " \t\r\n#");
		*end = '\0';
		if (*at)
			found = (size_t)snprintf(to, size, "%s", at) < size;
	}
	fclose(f);
	return found;
}

static bool find_in_path(char *to, size_t size)
{
	static const char * const more[] = {
		"/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin",
	};
	char *copy = strdup(getenv("PATH") ? getenv("PATH") : "");
	char *rest = copy, *dir;
	bool found = false;
	size_t i;

	while (copy && !found && (dir = strsep(&rest, ":"))) {
		snprintf(to, size, "%s/criu", dir);
		found = *dir && !access(to, X_OK);
	}
	free(copy);
	for (i = 0; !found && i < sizeof(more) / sizeof(more[0]); i++) {
		snprintf(to, size, "%s/criu", more[i]);
		found = !access(to, X_OK);
	}
	return found;
}

/* As CRIU decides it: option, configuration, environment, what it was built with. */
static void find_libdir(const char *libdir, const char *conf,
			const struct doctor_elf *e, struct doctor_criu *c)
{
	const char *env = getenv("CRIU_LIBS_DIR");
	const char *built = doctor_elf_text(e, is_libdir);

	if (!libdir && doctor_conf_libdir(conf, c->libdir, sizeof(c->libdir)))
		return;
	if (!libdir)
		libdir = env && *env ? env : built;
	snprintf(c->libdir, sizeof(c->libdir), "%s", libdir ? libdir : "");
}

/* One list head for each hook, and one of the plugins. */
static void find_hooks(const struct doctor_elf *e, struct doctor_criu *c)
{
	struct doctor_sym table;

	if (doctor_elf_symbol(e, "cr_plugin_ctl", &table) &&
	    table.size / 16 > HOOKS_MIN)
		c->hooks = (unsigned int)(table.size / 16 - 1);
}

static bool judge(const struct doctor_criu *c, bool dynamic)
{
	char version[40];

	snprintf(version, sizeof(version), "%u.%u.%u", c->major, c->minor,
		 c->sublevel);
	if (!dynamic) {
		doctor_say(DOCTOR_FAIL, "criu", "criu-static",
			   "install a criu that is linked dynamically",
			   "%s is linked statically, so it cannot load plugins",
			   c->path);
		return false;
	}
	if (c->major && (c->major < 3 || (c->major == 3 && c->minor < 17))) {
		doctor_say(DOCTOR_FAIL, "criu", "criu-old",
			   "install CRIU 3.17 or newer",
			   "criu %s, %s: too old for GPU plugins", version,
			   c->path);
		return false;
	}
	if (!c->major)
		doctor_say(DOCTOR_WARN, "criu", "criu-unknown",
			   "run it with --version: it says why",
			   "%s does not tell its version", c->path);
	else if (!c->hooks)
		doctor_say(DOCTOR_WARN, "criu", "criu-unknown",
			   "use a criu whose symbols are there",
			   "criu %s, %s: it does not export its table of hooks, so the plugin will stay out of its way",
			   version, c->path);
	else
		doctor_say(DOCTOR_OK, "criu", NULL, NULL,
			   "criu %s, %s, dynamic, %u hooks, plugins from %s",
			   version, c->path, c->hooks,
			   *c->libdir ? c->libdir : "?");
	if (*c->libdir)
		return true;
	doctor_say(DOCTOR_WARN, "criu", "criu-unknown",
		   "name its directory: gpucr doctor libdir DIR",
		   "%s: it does not tell where it loads plugins from", c->path);
	return false;
}

bool doctor_check_criu(const char *path, const char *libdir, const char *conf,
		       struct doctor_criu *ret)
{
	struct doctor_elf e;
	bool dynamic;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (path)
		snprintf(ret->path, sizeof(ret->path), "%s", path);
	else if (!find_in_path(ret->path, sizeof(ret->path)))
		snprintf(ret->path, sizeof(ret->path), "criu");
	err = doctor_elf_open(ret->path, &e);
	if (err) {
		doctor_say(DOCTOR_FAIL, "criu", "criu-missing",
			   "install it (apt install criu), or name it: gpucr doctor criu PATH",
			   "%s: %s", ret->path, strerror(-err));
		return false;
	}
	find_hooks(&e, ret);
	find_libdir(libdir, conf, &e, ret);
	dynamic = doctor_elf_is_dynamic(&e);
	doctor_elf_close(&e);
	ask_version(ret);
	return judge(ret, dynamic);
}

/* Known pairs that fail without any GPU: CRIU's own news, not ours. */
void doctor_check_criu_kernel(const struct doctor_criu *c, const char *release)
{
	unsigned int major = 0, minor = 0;

	if (!c->major || sscanf(release, "%u.%u", &major, &minor) != 2)
		return;
	if (c->major < 4 && (major > 6 || (major == 6 && minor >= 12)))
		doctor_say(DOCTOR_WARN, "criu-kernel", "criu-kernel",
			   "install CRIU 4.1 or newer",
			   "criu %u.%u is older than Linux %u.%u: restores may fail without any GPU",
			   c->major, c->minor, major, minor);
	else
		doctor_say(DOCTOR_OK, "criu-kernel", NULL, NULL,
			   "criu %u.%u on Linux %u.%u", c->major, c->minor,
			   major, minor);
}
