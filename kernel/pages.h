/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_PAGES_H
#define OCK_PAGES_H

/*
 * Memory held in place: struct ock_pages. What a region is made of, and
 * what the local side of an asynchronous copy becomes.
 *
 * The bytes of the segments, one behind the other, are positions 0 to length.
 * Pages are kept as runs: pages that follow each other in physical memory and
 * are either one folio or all of order 0, so that the kernel's address of a
 * run is linear and passes the checks of hardened usercopy. A huge page is one
 * run. Read-only after ock_pages_pin() (pin.h), so readers need no lock.
 */

#include <linux/mm_types.h>
#include <linux/types.h>

#include "limit.h"

struct ock_run;

/*
 * Where pages come from: user_memory.c has those of processes. Whoever reads them sees runs
 * alone. A provider's pages have a kernel address (page_address()), may be written
 * through it if they were pinned for that, and stay what they are until they are unpinned.
 */
struct ock_provider {
	/*
	 * Takes hold of pages from @addr on, which begins one: as many as it likes, at least one
	 * and at most @nr, into @pages. The value says how many. -EFAULT: the first is not to be
	 * had, or not so; -ENOMEM. May sleep.
	 */
	int (*pin)(u64 addr, u32 nr, bool writable, struct page **pages);
	/* Lets go of them. @dirty: they may have been written. Any process; may sleep. */
	void (*unpin)(const struct ock_run *runs, u32 nr, bool dirty);
};

/* One declared segment, of nonzero length. */
struct ock_segment {
	u64 addr;   /* the provider's: never dereferenced */
	u64 start;  /* position of its first byte */
	u64 length; /* bytes */
	u32 page;   /* index, over all segments, of its first page */
	u32 offset; /* of its first byte in that page */
};

struct ock_run {
	struct page *first;
	u32 page; /* index of the first, over all segments */
	u32 nr;
};

struct ock_pages {
	u64 length; /* bytes */
	u32 nr_segments;
	u32 nr_runs;
	u32 nr_pages;
	bool writable;
	const struct ock_provider *provider;
	struct ock_segment *segments;
	struct ock_run *runs;
	struct ock_charge charge;
	struct ock_segment one; /* storage for the commonest shapes */
	struct ock_run few[2];
};

/* The run that holds page @page, which there is. */
const struct ock_run *ock_pages_run(const struct ock_pages *pages, u32 page);

/* Where a reader of the pages is. */
struct ock_cursor {
	const struct ock_pages *pages;
	u64 position;
	u32 segment;
	u32 run;
};

void ock_cursor_init(struct ock_cursor *cursor, const struct ock_pages *pages, u64 position);

/*
 * The bytes from the cursor on that are contiguous in physical memory: *page
 * and *offset (below PAGE_SIZE) say where, the result how many, at most @max. 0 at
 * the end. All of them are in one run: page_address(*page) + *offset is linear
 * over them. Does not move the cursor.
 */
size_t ock_cursor_peek(struct ock_cursor *cursor, size_t max, struct page **page, u32 *offset);

void ock_cursor_advance(struct ock_cursor *cursor, size_t bytes);

#endif
