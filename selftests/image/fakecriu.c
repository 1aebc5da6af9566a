// SPDX-License-Identifier: GPL-2.0-only
/* A stand-in for criu, for the tests of the doctor: its table, its version. */
#include <stdio.h>

void *cr_plugin_ctl[2 * (1 + 12)];
static const char *volatile libdir = "/usr/lib/criu/";

int main(void)
{
	printf("Version: 4.1.1\n");
	return !libdir;
}
