// SPDX-License-Identifier: GPL-2.0-only
/* The kernel module: loaded, installed, signed, and its helper. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"

static void modinfo(const char *field, char *to, size_t size)
{
	char command[128];
	FILE *f;

	snprintf(command, sizeof(command),
		 "PATH=/usr/sbin:/sbin:/usr/bin:/bin; exec modinfo -F %s gpucr 2>/dev/null",
		 field);
	to[0] = '\0';
	f = popen(command, "re");
	if (!f)
		return;
	if (!fgets(to, (int)size, f))
		to[0] = '\0';
	to[strcspn(to, "\n")] = '\0';
	pclose(f);
}

/* The fifth byte of the variable is its value. */
static bool secure_boot(const char *sys)
{
	char path[256];
	uint8_t v[5] = { 0 };
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path),
		 "%s/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		 sys);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, v, sizeof(v));
	close(fd);
	return n == (ssize_t)sizeof(v) && v[4] == 1;
}

void doctor_gather_module(const struct doctor_places *p,
			  struct doctor_module *ret)
{
	struct utsname u;
	char text[8];

	memset(ret, 0, sizeof(*ret));
	doctor_read(p->sys, "module/gpucr/version", ret->loaded,
		    sizeof(ret->loaded));
	ret->has_helper = doctor_read(p->sys,
				      "module/gpucr/parameters/recovery_helper",
				      ret->helper, sizeof(ret->helper));
	ret->sig_enforce = doctor_read(p->sys,
				       "module/module/parameters/sig_enforce",
				       text, sizeof(text)) && *text == 'Y';
	ret->secure_boot = secure_boot(p->sys);
	modinfo("version", ret->installed, sizeof(ret->installed));
	modinfo("signer", ret->signer, sizeof(ret->signer));
	if (!uname(&u))
		snprintf(ret->release, sizeof(ret->release), "%s", u.release);
}

static void judge_presence(const struct doctor_module *m, const char *version)
{
	if (!*m->loaded && !*m->installed)
		doctor_say(DOCTOR_WARN, "module", "module-missing",
			   "install linux-headers of this kernel and gpucr's DKMS package (dkms status tells)",
			   "gpucr.ko is not built for the running kernel %s: the plugin does without, bo, vma and session do not",
			   m->release);
	else if (*m->loaded && *m->installed && strcmp(m->loaded, m->installed))
		doctor_say(DOCTOR_WARN, "module", "module-version",
			   "modprobe -r gpucr && modprobe gpucr",
			   "gpucr %s is loaded, %s is installed", m->loaded,
			   m->installed);
	else if (strcmp(*m->loaded ? m->loaded : m->installed, version))
		doctor_say(DOCTOR_WARN, "module", "module-version",
			   "install tool, plugin and module of one version",
			   "the module is gpucr %s, this tool %s",
			   *m->loaded ? m->loaded : m->installed, version);
	else
		doctor_say(DOCTOR_OK, "module", NULL, NULL, "gpucr %s, %s",
			   *m->loaded ? m->loaded : m->installed,
			   *m->loaded ? "loaded" : "loads when it is needed");
}

static void judge_signature(const struct doctor_module *m)
{
	const char *why = m->sig_enforce ? "signatures are enforced" :
					   "Secure Boot is on";

	if (!*m->installed)
		return;
	if (*m->signer)
		doctor_say(DOCTOR_OK, "signature", NULL, NULL,
			   "signed by %s", m->signer);
	else if ((m->sig_enforce || m->secure_boot) && !*m->loaded)
		doctor_say(DOCTOR_FAIL, "signature", "module-unsigned",
			   "sign it with a key that is enrolled (mokutil --import), as DKMS can",
			   "the module is not signed and %s: it will not load",
			   why);
	else
		doctor_say(DOCTOR_OK, "signature", NULL, NULL,
			   "not signed, and need not be here");
}

static void judge_helper(const struct doctor_module *m)
{
	if (!*m->loaded)
		return;
	if (!m->has_helper)
		doctor_say(DOCTOR_WARN, "helper", "helper-unknown",
			   "run it as root", "recovery_helper cannot be read");
	else if (!*m->helper)
		doctor_say(DOCTOR_WARN, "helper", "helper-off",
			   "load it with recovery_helper=/usr/sbin/gpucr, or watch gpucr session",
			   "a dump that is killed leaves its target paused: the recovery is off");
	else if (access(m->helper, X_OK))
		doctor_say(DOCTOR_FAIL, "helper", "helper-missing",
			   "load the module with recovery_helper= and the path of gpucr",
			   "recovery_helper %s: %s", m->helper,
			   strerror(errno));
	else
		doctor_say(DOCTOR_OK, "helper", NULL, NULL,
			   "recovery by %s", m->helper);
}

void doctor_judge_module(const struct doctor_module *m, const char *version)
{
	judge_presence(m, version);
	judge_signature(m);
	judge_helper(m);
}
