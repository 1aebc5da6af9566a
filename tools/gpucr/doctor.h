/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What gpucr needs on a machine, checked one by one. Checks take the places
 * where they look as arguments, and tell what they found through doctor_say().
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_WARN,
	DOCTOR_FAIL,
};

/*
 * token: of the problem, explained in docs/troubleshooting.md; NULL where
 * there is none. fix: what to do, or NULL.
 */
void doctor_say(enum doctor_status status, const char *check,
		const char *token, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

struct doctor_places {
	const char *proc;	/* "/proc" */
	const char *sys;	/* "/sys" */
	const char *dev;	/* "/dev" */
	const char *criu_conf;	/* "/etc/criu/default.conf" */
};

struct doctor_criu {
	char path[256];
	char libdir[256];
	unsigned int major, minor, sublevel;	/* 0: not known */
	unsigned int hooks;			/* 0: not known */
};

/* doctor_criu.c: false where the rest makes no sense without it. */
bool doctor_check_criu(const char *path, const char *libdir, const char *conf,
		       struct doctor_criu *ret);
void doctor_check_criu_kernel(const struct doctor_criu *c, const char *release);
/* "Version: 4.1.1" and what stands around it. */
bool doctor_parse_version(const char *text, struct doctor_criu *c);
/* libdir of a configuration file of CRIU; false: none. */
bool doctor_conf_libdir(const char *file, char *to, size_t size);

/* doctor_plugins.c */
void doctor_check_plugins(const struct doctor_criu *c, const char *version);

/* doctor_module.c: the kernel module, as gathered. */
struct doctor_module {
	char loaded[32], installed[32];		/* versions; "": not */
	char signer[64];			/* "": not signed */
	char helper[256];
	bool has_helper;			/* the parameter was readable */
	bool sig_enforce, secure_boot;
	char release[72];
};

void doctor_gather_module(const struct doctor_places *p,
			  struct doctor_module *ret);
void doctor_judge_module(const struct doctor_module *m, const char *version);

/* doctor_host.c */
void doctor_check_kfd(const struct doctor_places *p);
void doctor_check_render(const struct doctor_places *p);
void doctor_check_kernel(const struct doctor_places *p);
void doctor_check_io_uring(const struct doctor_places *p);
/* capabilities: CapEff; limit: RLIMIT_MEMLOCK */
void doctor_check_capabilities(const struct doctor_places *p);
void doctor_judge_memlock(uint64_t capabilities, uint64_t limit);
void doctor_check_pid(const struct doctor_places *p, pid_t pid);

/* The first line of a small file; false where there is none. */
bool doctor_read(const char *dir, const char *name, char *to, size_t size);

#endif
