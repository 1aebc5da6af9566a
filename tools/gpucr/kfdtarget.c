// SPDX-License-Identifier: GPL-2.0-only
/* A process as KFD's sysfs shows it, with failures told. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "fail.h"
#include "kfdtarget.h"

int kfd_absent(int err)
{
	if (err == -ENOENT)
		return fail(TOKEN_NO_KFD, ENOENT,
			    "KFD: /sys/class/kfd is not there");
	return fail(TOKEN_KERNEL_REFUSED, -err, "KFD: %s", strerror(-err));
}

int kfd_target_read(pid_t pid, struct gpucr_kfd_proc *ret)
{
	int err = gpucr_kfd_proc_read(pid, ret);
	char comm[16];

	if (!err)
		return EXIT_DONE;
	if (err == -ENOMEM)
		return fail(TOKEN_NO_MEMORY, ENOMEM, "pid %d", pid);
	if (err != -ESRCH)
		return kfd_absent(err);
	if (gpucr_proc_comm(pid, comm, sizeof(comm)))
		return fail(TOKEN_NO_PROCESS, ESRCH,
			    "pid %d: there is no such process", pid);
	return fail(TOKEN_NO_KFD_PROCESS, 0, "pid %d (%s): does not use KFD",
		    pid, comm);
}
