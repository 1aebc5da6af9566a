/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a command fails: a token that stays the same over versions, the exit
 * status that goes with it, and what to do next. docs/troubleshooting.md has
 * an entry for each token.
 */
#ifndef FAIL_H
#define FAIL_H

enum exit_status {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_ABSENT = 3,
	EXIT_NO = 4,
	EXIT_CHANGED = 5,
};

enum token {
	TOKEN_USAGE,
	TOKEN_NO_MODULE,
	TOKEN_PROTOCOL_MISMATCH,
	TOKEN_NO_KFD,
	TOKEN_NO_GPU,
	TOKEN_NO_PROCESS,
	TOKEN_PROCESS_GONE,
	TOKEN_NO_KFD_PROCESS,
	TOKEN_NO_GPU_FILE,
	TOKEN_DRIVER_UNKNOWN,
	TOKEN_NO_PTRACE_ACCESS,
	TOKEN_NO_CAPABILITY,
	TOKEN_LIST_CHANGED,
	TOKEN_TOO_MANY_OBJECTS,
	TOKEN_NO_SESSION,
	TOKEN_SESSION_LIVE,
	TOKEN_TARGET_TRACED,
	TOKEN_RECOVERY_FAILED,
	TOKEN_RECOVERY_OFF,
	TOKEN_NO_MEMORY,
	TOKEN_KERNEL_REFUSED,
	TOKEN_NO_IMAGE,
	TOKEN_IMAGE_DAMAGED,
	TOKEN_IMAGE_INCOMPLETE,
	TOKEN_IMAGE_FORMAT,
	TOKEN_CHUNK_CHECKSUM,
	TOKEN_IO_ERROR,
};

/*
 * Reports "SUBJECT: what" under the token; err is an errno or 0. Returns the
 * exit status, so that a command ends with return fail(...).
 */
int fail(enum token token, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
