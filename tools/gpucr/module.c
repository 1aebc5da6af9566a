// SPDX-License-Identifier: GPL-2.0-only
/* The kernel module, as commands use it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "fail.h"
#include "module.h"

const char *module_sentence(const struct gpucr_nl *nl, int err)
{
	const char *text = gpucr_nl_error(nl);

	return *text ? text : strerror(-err);
}

static enum token token_of(int err)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		return TOKEN_NO_CAPABILITY;
	case EOPNOTSUPP:
		return TOKEN_DRIVER_UNKNOWN;
	case ESRCH:
		return TOKEN_PROCESS_GONE;
	case EAGAIN:
	case EINTR:
		return TOKEN_LIST_CHANGED;
	case E2BIG:
		return TOKEN_TOO_MANY_OBJECTS;
	case ENOMEM:
		return TOKEN_NO_MEMORY;
	case EPROTONOSUPPORT:
		return TOKEN_PROTOCOL_MISMATCH;
	default:
		return TOKEN_KERNEL_REFUSED;
	}
}

int module_fail(const struct gpucr_nl *nl, int err, const char *fmt, ...)
{
	char *subject = NULL;
	va_list ap;
	int status;

	va_start(ap, fmt);
	if (vasprintf(&subject, fmt, ap) < 0)
		subject = NULL;
	va_end(ap);
	status = fail(token_of(err), -err, "%s: %s", subject ? subject : "",
		      module_sentence(nl, err));
	free(subject);
	return status;
}

static int check_protocol(struct gpucr_nl *nl)
{
	struct gpucr_nl_info info;
	int err = gpucr_nl_info(nl, &info);

	if (err)
		return module_fail(nl, err, "module gpucr");
	if (info.protocol == GPUCR_FAMILY_VERSION)
		return EXIT_DONE;
	return fail(TOKEN_PROTOCOL_MISMATCH, EPROTONOSUPPORT,
		    "module gpucr %s: speaks protocol %u, this tool %d",
		    info.version, info.protocol, GPUCR_FAMILY_VERSION);
}

int module_open(struct gpucr_nl **ret)
{
	int status, err;

	*ret = NULL;
	if (backend == BACKEND_IOCTL)
		return fail(TOKEN_USAGE, 0,
			    "backend ioctl: only the module can tell this");
	err = gpucr_nl_open(ret);
	if (err == -ENOENT)
		return fail(TOKEN_NO_MODULE, ENOENT,
			    "module gpucr: not loaded, and could not be");
	if (err)
		return fail(TOKEN_KERNEL_REFUSED, -err, "module gpucr: %s",
			    strerror(-err));
	status = check_protocol(*ret);
	if (status) {
		gpucr_nl_close(*ret);
		*ret = NULL;
	}
	return status;
}

int module_open_if_loaded(struct gpucr_nl **ret)
{
	*ret = NULL;
	if (backend == BACKEND_IOCTL)
		return EXIT_DONE;
	if (backend == BACKEND_AUTO && access("/sys/module/gpucr", F_OK))
		return EXIT_DONE;
	return module_open(ret);
}
