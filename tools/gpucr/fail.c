// SPDX-License-Identifier: GPL-2.0-only
/* Tokens, exit statuses, and the sentence "what (token); what to do". */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "out.h"

static const struct {
	const char *name;
	enum exit_status status;
	const char *hint;
} tokens[] = {
	[TOKEN_USAGE] = { "usage", EXIT_USAGE,
		"see gpucr help" },
	[TOKEN_NO_MODULE] = { "no-module", EXIT_ABSENT,
		"load it: modprobe gpucr" },
	[TOKEN_PROTOCOL_MISMATCH] = { "protocol-mismatch", EXIT_ABSENT,
		"install tool and module of one version" },
	[TOKEN_NO_KFD] = { "no-kfd", EXIT_ABSENT,
		"load the GPU's driver: modprobe amdgpu" },
	[TOKEN_NO_GPU] = { "no-gpu", EXIT_ABSENT,
		"gpucr file and gpucr ps name the GPUs in use" },
	[TOKEN_NO_PROCESS] = { "no-process", EXIT_FAILED,
		"gpucr ps lists the GPU processes" },
	[TOKEN_PROCESS_GONE] = { "process-gone", EXIT_CHANGED,
		"nothing: it has ended" },
	[TOKEN_NO_KFD_PROCESS] = { "no-kfd-process", EXIT_FAILED,
		"gpucr ps lists those that do" },
	[TOKEN_NO_GPU_FILE] = { "no-gpu-file", EXIT_FAILED,
		"gpucr file lists the GPU files of a process" },
	[TOKEN_DRIVER_UNKNOWN] = { "driver-unknown", EXIT_ABSENT,
		"gpucr info lists the drivers that the module knows" },
	[TOKEN_NO_PTRACE_ACCESS] = { "no-ptrace-access", EXIT_FAILED,
		"run as root, or with CAP_SYS_PTRACE" },
	[TOKEN_NO_CAPABILITY] = { "no-capability", EXIT_FAILED,
		"run as root of the host, or with CAP_CHECKPOINT_RESTORE" },
	[TOKEN_LIST_CHANGED] = { "list-changed", EXIT_CHANGED,
		"run it again" },
	[TOKEN_TOO_MANY_OBJECTS] = { "too-many-objects", EXIT_FAILED,
		"ask for one descriptor with fd" },
	[TOKEN_NO_SESSION] = { "no-session", EXIT_FAILED,
		"gpucr session lists them" },
	[TOKEN_SESSION_LIVE] = { "session-live", EXIT_FAILED,
		"let its owner end it, or end its owner" },
	[TOKEN_TARGET_TRACED] = { "target-traced", EXIT_FAILED,
		"end its tracer (TracerPid in /proc/PID/status), then run it again" },
	[TOKEN_RECOVERY_FAILED] = { "recovery-failed", EXIT_FAILED,
		"see dmesg; a process that stays paused must be killed" },
	[TOKEN_RECOVERY_OFF] = { "recovery-off", EXIT_FAILED,
		"remove it, or recover by hand" },
	[TOKEN_NO_MEMORY] = { "no-memory", EXIT_FAILED,
		"free some" },
	[TOKEN_KERNEL_REFUSED] = { "kernel-refused", EXIT_FAILED,
		"see dmesg" },
	[TOKEN_NO_IMAGE] = { "no-image", EXIT_FAILED,
		"name the directory that criu dump was given with -D" },
	[TOKEN_IMAGE_DAMAGED] = { "image-damaged", EXIT_NO,
		"restore another checkpoint" },
	[TOKEN_IMAGE_INCOMPLETE] = { "image-incomplete", EXIT_NO,
		"restore another checkpoint; copy all of the directory" },
	[TOKEN_IMAGE_FORMAT] = { "image-format", EXIT_NO,
		"use a newer gpucr" },
	[TOKEN_CHUNK_CHECKSUM] = { "chunk-checksum", EXIT_NO,
		"restore another checkpoint" },
	[TOKEN_IO_ERROR] = { "io-error", EXIT_FAILED,
		"look at disk and permissions" },
};

static void add_errno(struct json_object *error, int err)
{
	const char *name = err ? strerrorname_np(err) : NULL;

	if (err && !name)
		out_add_u64(error, "errno", err);
	else
		out_add_str(error, "errno", name);
}

int fail(enum token token, int err, const char *fmt, ...)
{
	struct json_object *doc = out_envelope(), *error;
	char *what = NULL;
	va_list ap;
	int status;

	va_start(ap, fmt);
	if (vasprintf(&what, fmt, ap) < 0)
		what = NULL;
	va_end(ap);
	error = out_add_object(doc, "error");
	out_add_str(error, "token", tokens[token].name);
	add_errno(error, err);
	out_add_str(error, "message", what);
	out_add_str(error, "hint", tokens[token].hint);
	if (!out_options.json)
		fprintf(stderr, "gpucr: %s%s%s (%s); %s\n",
			out_object() ? out_object() : "",
			out_object() ? ": " : "", what ? what : "",
			tokens[token].name, tokens[token].hint);
	free(what);
	status = out_finish_error(doc);
	return status ? status : (int)tokens[token].status;
}
