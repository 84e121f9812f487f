// SPDX-License-Identifier: GPL-2.0-only
/* From a position to its page: a cursor is placed by bisection, and steps on from there. */
#include "pages.h"

#include <linux/mm.h>

/* The last segment that starts at or before @position. */
static u32 ock_pages_find_segment(const struct ock_pages *pages, u64 position)
{
	u32 low = 0;
	u32 high = pages->nr_segments;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (pages->segments[middle].start <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

const struct ock_run *ock_pages_run(const struct ock_pages *pages, u32 page)
{
	u32 low = 0;
	u32 high = pages->nr_runs;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (pages->runs[middle].page <= page)
			low = middle;
		else
			high = middle;
	}
	return &pages->runs[low];
}

/* Index of the page of @position, which is in @segment, and the byte in it. */
static u32 ock_segment_page(const struct ock_segment *segment, u64 position, u32 *offset)
{
	u64 byte = segment->offset + (position - segment->start);

	*offset = offset_in_page(byte);
	return segment->page + (byte >> PAGE_SHIFT);
}

void ock_cursor_init(struct ock_cursor *cursor, const struct ock_pages *pages, u64 position)
{
	*cursor = (struct ock_cursor){.pages = pages, .position = position};
	if (position < pages->length) {
		const struct ock_segment *segment;
		u32 offset;

		cursor->segment = ock_pages_find_segment(pages, position);
		segment = &pages->segments[cursor->segment];
		cursor->run = ock_pages_run(pages, ock_segment_page(segment, position, &offset)) -
			      pages->runs;
	}
}

size_t ock_cursor_peek(struct ock_cursor *cursor, size_t max, struct page **page, u32 *offset)
{
	const struct ock_pages *pages = cursor->pages;
	const struct ock_segment *segment;
	const struct ock_run *run;
	u64 bytes;
	u32 index;

	if (cursor->position >= pages->length)
		return 0;
	segment = &pages->segments[cursor->segment];
	while (cursor->position - segment->start >= segment->length)
		segment = &pages->segments[++cursor->segment];
	index = ock_segment_page(segment, cursor->position, offset);
	run = &pages->runs[cursor->run];
	while (index - run->page >= run->nr)
		run = &pages->runs[++cursor->run];

	*page = run->first + (index - run->page);
	bytes = ((u64)(run->page + run->nr - index) << PAGE_SHIFT) - *offset;
	bytes = min(bytes, segment->start + segment->length - cursor->position);
	return min_t(u64, bytes, max);
}

void ock_cursor_advance(struct ock_cursor *cursor, size_t bytes)
{
	cursor->position += bytes;
}
