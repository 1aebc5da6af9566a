// SPDX-License-Identifier: GPL-2.0-only
/* gpucr doctor: is everything there that a dump or restore needs? */
#include <stdarg.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "args.h"
#include "doctor.h"
#include "fail.h"
#include "finding.h"
#include "out.h"

static size_t num[DOCTOR_FAIL + 1];

static const struct out_column columns[] = {
	{ "STATUS", "status", out_text, 0 },
	{ "CHECK", "check", out_text, 0 },
	{ "FOUND", "message", finding_cell, 0 },
	{ 0 }
};

void doctor_say(enum doctor_status status, const char *check,
		const char *token, const char *fix, const char *fmt, ...)
{
	static const char * const words[] = {
		[DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn",
		[DOCTOR_FAIL] = "FAIL",
	};
	struct json_object *row = out_row();
	va_list ap;

	out_add_str(row, "status", words[status]);
	out_add_str(row, "check", check);
	va_start(ap, fmt);
	finding_fill(row, token, fix, fmt, ap);
	va_end(ap);
	num[status]++;
}

static void check_all(const struct args *args, const struct doctor_places *p)
{
	struct doctor_module m;
	struct doctor_criu c;
	struct utsname u;

	if (doctor_check_criu(args->text[KEY_CRIU], args->text[KEY_LIBDIR],
			      p->criu_conf, &c))
		doctor_check_plugins(&c, GPUCR_VERSION);
	if (!uname(&u))
		doctor_check_criu_kernel(&c, u.release);
	doctor_check_kernel(p);
	doctor_gather_module(p, &m);
	doctor_judge_module(&m, GPUCR_VERSION);
	doctor_check_kfd(p);
	doctor_check_render(p);
	doctor_check_capabilities(p);
	doctor_check_io_uring(p);
	if (args->has[KEY_PID])
		doctor_check_pid(p, (pid_t)args->value[KEY_PID]);
}

static int doctor_show(const struct args *args)
{
	static const struct doctor_places places = {
		.proc = "/proc",
		.sys = "/sys",
		.dev = "/dev",
		.criu_conf = "/etc/criu/default.conf",
	};
	int status;

	check_all(args, &places);
	status = out_finish(columns);
	if (status)
		return status;
	if (!out_options.json && !out_options.quiet)
		printf("%zu ok, %zu warning%s, %zu failed\n", num[DOCTOR_OK],
		       num[DOCTOR_WARN], num[DOCTOR_WARN] == 1 ? "" : "s",
		       num[DOCTOR_FAIL]);
	return out_flush(num[DOCTOR_FAIL] ? EXIT_NO : EXIT_DONE);
}

static const struct command commands[] = {
	{ "show", 0, KEY(KEY_PID) | KEY(KEY_CRIU) | KEY(KEY_LIBDIR),
	  doctor_show },
	{ 0 }
};

const struct object doctor_object = {
	"doctor", "is all there that a dump or restore needs", commands,
};
