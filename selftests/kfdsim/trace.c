// SPDX-License-Identifier: GPL-2.0
/* The bodies of the trace events. */
#include <linux/types.h>

#define CREATE_TRACE_POINTS
#include "kfdsim_trace.h"
