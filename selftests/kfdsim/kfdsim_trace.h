/* SPDX-License-Identifier: GPL-2.0 */
/* Trace events that amdgpu has, under its name and with its fields. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM amdgpu

#if !defined(KFDSIM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KFDSIM_TRACE_H

#include <linux/tracepoint.h>

/* to, from: as TTM counts its places, ~0: nowhere */
TRACE_EVENT(amdgpu_bo_move,
	    TP_PROTO(const void *bo, u64 size, u32 to, u32 from),
	    TP_ARGS(bo, size, to, from),
	    TP_STRUCT__entry(__field(const void *, bo)
			     __field(u64, bo_size)
			     __field(u32, new_placement)
			     __field(u32, old_placement)
	    ),
	    TP_fast_assign(__entry->bo = bo;
			   __entry->bo_size = size;
			   __entry->new_placement = to;
			   __entry->old_placement = from;
	    ),
	    TP_printk("bo=%p, from=%d, to=%d, size=%lld", __entry->bo,
		      (int)__entry->old_placement, (int)__entry->new_placement,
		      (long long)__entry->bo_size)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE kfdsim_trace
#include <trace/define_trace.h>
