/* SPDX-License-Identifier: GPL-2.0-only */
/* Debian 12 has the thunk's header one directory higher. */
#ifndef GPUCR_COMPAT_HSAKMT_H
#define GPUCR_COMPAT_HSAKMT_H

#include <hsakmt.h>

#endif
