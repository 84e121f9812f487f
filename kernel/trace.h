/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM onecopy

#if !defined(OCK_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define OCK_TRACE_H

/*
 * Cookies are secrets: traces show 32 bits of one, enough to tell regions apart, and 0 for
 * local memory. docs/kernel.md lists the events.
 */

#include <linux/tracepoint.h>
#include <linux/types.h>

/* Before others can find it and have events of their own. */
TRACE_EVENT(onecopy_region_create, TP_PROTO(u64 cookie, u32 flags, u64 length, u32 runs),
	    TP_ARGS(cookie, flags, length, runs),
	    TP_STRUCT__entry(__field(u64, length) __field(u32, id) __field(u32, runs)
				     __field(u32, flags)),
	    TP_fast_assign(__entry->length = length; __entry->id = cookie; __entry->runs = runs;
			   __entry->flags = flags;),
	    TP_printk("region=%08x length=%llu runs=%u flags=%#x", __entry->id, __entry->length,
		      __entry->runs, __entry->flags));

DECLARE_EVENT_CLASS(onecopy_region, TP_PROTO(u64 cookie), TP_ARGS(cookie),
		    TP_STRUCT__entry(__field(u32, id)), TP_fast_assign(__entry->id = cookie;),
		    TP_printk("region=%08x", __entry->id));

DEFINE_EVENT(onecopy_region, onecopy_region_destroy, TP_PROTO(u64 cookie), TP_ARGS(cookie));
DEFINE_EVENT(onecopy_region, onecopy_region_stale, TP_PROTO(u64 cookie), TP_ARGS(cookie));
DEFINE_EVENT(onecopy_region, onecopy_region_revoke, TP_PROTO(u64 cookie), TP_ARGS(cookie));

/* What was moved, by the CPU or an engine. */
DECLARE_EVENT_CLASS(
	onecopy_move, TP_PROTO(u64 source, u64 destination, u64 bytes, u64 copied, int err),
	TP_ARGS(source, destination, bytes, copied, err),
	TP_STRUCT__entry(__field(u64, bytes) __field(u64, copied) __field(u32, source)
				 __field(u32, destination) __field(int, err)),
	TP_fast_assign(__entry->bytes = bytes; __entry->copied = copied; __entry->source = source;
		       __entry->destination = destination; __entry->err = err;),
	TP_printk("source=%08x destination=%08x bytes=%llu copied=%llu err=%d", __entry->source,
		  __entry->destination, __entry->bytes, __entry->copied, __entry->err));

DEFINE_EVENT(onecopy_move, onecopy_copy,
	     TP_PROTO(u64 source, u64 destination, u64 bytes, u64 copied, int err),
	     TP_ARGS(source, destination, bytes, copied, err));
DEFINE_EVENT(onecopy_move, onecopy_dma,
	     TP_PROTO(u64 source, u64 destination, u64 bytes, u64 copied, int err),
	     TP_ARGS(source, destination, bytes, copied, err));

TRACE_EVENT(onecopy_queue, TP_PROTO(u64 source, u64 destination, u64 bytes, u32 slot, u32 how),
	    TP_ARGS(source, destination, bytes, slot, how),
	    TP_STRUCT__entry(__field(u64, bytes) __field(u32, source) __field(u32, destination)
				     __field(u32, slot) __field(u32, how)),
	    TP_fast_assign(__entry->bytes = bytes; __entry->source = source;
			   __entry->destination = destination; __entry->slot = slot;
			   __entry->how = how;),
	    TP_printk("source=%08x destination=%08x bytes=%llu slot=%u how=%s", __entry->source,
		      __entry->destination, __entry->bytes, __entry->slot,
		      __print_flags(__entry->how, "|", {1, "thread"}, {2, "dma"}, {4, "event"})));

TRACE_EVENT(onecopy_cancel, TP_PROTO(u32 slot, int err), TP_ARGS(slot, err),
	    TP_STRUCT__entry(__field(u32, slot) __field(int, err)),
	    TP_fast_assign(__entry->slot = slot; __entry->err = err;),
	    TP_printk("slot=%u err=%d", __entry->slot, __entry->err));

TRACE_EVENT(onecopy_map, TP_PROTO(u64 cookie, u32 page, u32 pages, bool write),
	    TP_ARGS(cookie, page, pages, write),
	    TP_STRUCT__entry(__field(u32, id) __field(u32, page) __field(u32, pages)
				     __field(u32, write)),
	    TP_fast_assign(__entry->id = cookie; __entry->page = page; __entry->pages = pages;
			   __entry->write = write;),
	    TP_printk("region=%08x page=%u pages=%u write=%u", __entry->id, __entry->page,
		      __entry->pages, __entry->write));

TRACE_EVENT(onecopy_map_fill, TP_PROTO(u64 cookie, u32 pages, u32 huge, int err),
	    TP_ARGS(cookie, pages, huge, err),
	    TP_STRUCT__entry(__field(u32, id) __field(u32, pages) __field(u32, huge)
				     __field(int, err)),
	    TP_fast_assign(__entry->id = cookie; __entry->pages = pages; __entry->huge = huge;
			   __entry->err = err;),
	    TP_printk("region=%08x pages=%u huge=%u err=%d", __entry->id, __entry->pages,
		      __entry->huge, __entry->err));

/* A request of /dev/knem; its copies and regions have the events above. */
TRACE_EVENT(onecopy_knem, TP_PROTO(u32 request, int err), TP_ARGS(request, err),
	    TP_STRUCT__entry(__field(u32, request) __field(int, err)),
	    TP_fast_assign(__entry->request = request; __entry->err = err;),
	    TP_printk("request=%#x err=%d", __entry->request, __entry->err));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
