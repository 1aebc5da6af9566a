/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef GPUCR_LIB_VERSION_H
#define GPUCR_LIB_VERSION_H

/* Of library, plugin and tool; the module has the same in kmod/version.h. */
#define GPUCR_LIB_VERSION	"0.1.0"

#endif
