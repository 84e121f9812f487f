/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM onecopy

#if !defined(OCK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define OCK_TRACE_H

/* Cookies are secrets: traces show 32 bits of one, enough to tell regions apart. */

#include <linux/tracepoint.h>
#include <linux/types.h>

/* Before others can find it, so before it has a cookie. */
TRACE_EVENT(onecopy_region_create, TP_PROTO(u32 flags, u64 length, u32 runs),
	    TP_ARGS(flags, length, runs),
	    TP_STRUCT__entry(__field(u64, length) __field(u32, runs) __field(u32, flags)),
	    TP_fast_assign(__entry->length = length; __entry->runs = runs; __entry->flags = flags;),
	    TP_printk("length=%llu runs=%u flags=%#x", __entry->length, __entry->runs,
		      __entry->flags));

DECLARE_EVENT_CLASS(onecopy_region, TP_PROTO(u64 cookie), TP_ARGS(cookie),
		    TP_STRUCT__entry(__field(u32, id)), TP_fast_assign(__entry->id = cookie;),
		    TP_printk("region=%08x", __entry->id));

DEFINE_EVENT(onecopy_region, onecopy_region_destroy, TP_PROTO(u64 cookie), TP_ARGS(cookie));
DEFINE_EVENT(onecopy_region, onecopy_region_stale, TP_PROTO(u64 cookie), TP_ARGS(cookie));

TRACE_EVENT(onecopy_copy, TP_PROTO(u64 bytes, u64 copied, int err), TP_ARGS(bytes, copied, err),
	    TP_STRUCT__entry(__field(u64, bytes) __field(u64, copied) __field(int, err)),
	    TP_fast_assign(__entry->bytes = bytes; __entry->copied = copied; __entry->err = err;),
	    TP_printk("bytes=%llu copied=%llu err=%d", __entry->bytes, __entry->copied,
		      __entry->err));

TRACE_EVENT(onecopy_map_fill, TP_PROTO(u64 cookie, u32 pages, u32 huge, int err),
	    TP_ARGS(cookie, pages, huge, err),
	    TP_STRUCT__entry(__field(u32, id) __field(u32, pages) __field(u32, huge)
				     __field(int, err)),
	    TP_fast_assign(__entry->id = cookie; __entry->pages = pages; __entry->huge = huge;
			   __entry->err = err;),
	    TP_printk("region=%08x pages=%u huge=%u err=%d", __entry->id, __entry->pages,
		      __entry->huge, __entry->err));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
