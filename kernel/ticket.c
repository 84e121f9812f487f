// SPDX-License-Identifier: GPL-2.0-only
/*
 * A ticket names region and pages and holds neither: the region is looked up again when it is
 * redeemed, and may be gone. Who asks is told how to place the mapping, so that huge entries fit.
 */
#include "ticket.h"

#include <linux/mm.h>
#include <linux/slab.h>

#include <onecopy.h>

#include "compat.h"
#include "table.h"

#define OCK_TICKETS_MAX 1024u

void ock_tickets_init(struct ock_tickets *tickets)
{
	xa_init_flags(&tickets->table, XA_FLAGS_ALLOC);
	tickets->next = 0;
}

void ock_tickets_deinit(struct ock_tickets *tickets)
{
	struct ock_ticket *ticket;
	unsigned long index;

	xa_for_each(&tickets->table, index, ticket) kfree(ticket);
	xa_destroy(&tickets->table);
}

static u32 ock_segment_of(const struct ock_pages *pages, u64 position)
{
	struct ock_cursor cursor;

	ock_cursor_init(&cursor, pages, position);
	return cursor.segment;
}

/* Of a segment. */
static u32 ock_segment_last_page(const struct ock_segment *segment)
{
	return segment->page + ((segment->offset + segment->length - 1) >> PAGE_SHIFT);
}

/*
 * The pages that show [offset, offset + length): *first and *nr. They must be
 * the region's to show, and the bytes must be as contiguous in them as they are in
 * the region.
 */
static int ock_ticket_span(const struct ock_region *region, u64 offset, u64 length, u32 *first,
			   u32 *nr, u64 *skip)
{
	const struct ock_pages *pages = &region->pages;
	u32 begin = ock_segment_of(pages, offset);
	u32 end = ock_segment_of(pages, offset + length - 1);
	const struct ock_segment *head = &pages->segments[begin];
	const struct ock_segment *tail = &pages->segments[end];
	u64 byte = head->offset + (offset - head->start);
	u32 last;

	for (const struct ock_segment *segment = head; segment < tail; segment++) {
		if (offset_in_page(segment[0].offset + segment[0].length) || segment[1].offset)
			return -EOPNOTSUPP;
	}
	last = tail->page + ((tail->offset + (offset + length - 1 - tail->start)) >> PAGE_SHIFT);
	*first = head->page + (byte >> PAGE_SHIFT);
	*nr = last - *first + 1;
	*skip = offset_in_page(byte);
	if (region->flags & ONECOPY_REGION_WHOLE_PAGES)
		return 0;
	if (*first == head->page && head->offset)
		return -EOPNOTSUPP;
	if (last == ock_segment_last_page(tail) && offset_in_page(tail->offset + tail->length))
		return -EOPNOTSUPP;
	return 0;
}

/* Which addresses would let the first run be mapped by huge entries. */
static void ock_ticket_align(const struct ock_pages *pages, u32 first,
			     struct ock_ticket_answer *answer)
{
	const struct ock_run *run = ock_pages_run(pages, first);
	unsigned long pfn = page_to_pfn(run->first) + (first - run->page);
	u32 lead = -pfn & (OCK_HUGE_PAGES - 1);

	answer->align = PAGE_SIZE;
	answer->align_offset = 0;
	if (OCK_HUGE_MAP && run->nr - (first - run->page) >= lead + OCK_HUGE_PAGES) {
		answer->align = PMD_SIZE;
		answer->align_offset = (pfn & (OCK_HUGE_PAGES - 1)) << PAGE_SHIFT;
	}
}

static int ock_ticket_issue(struct ock_tickets *tickets, const struct ock_ticket *ticket,
			    u32 *index)
{
	struct ock_ticket *copy;
	int err;

	copy = kmemdup(ticket, sizeof(*ticket), GFP_KERNEL_ACCOUNT);
	if (!copy)
		return -ENOMEM;
	/* In a circle, so that an offset used twice is noticed for a while. */
	err = xa_alloc_cyclic(&tickets->table, index, copy, XA_LIMIT(0, OCK_TICKETS_MAX - 1),
			      &tickets->next, GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		kfree(copy);
		return err == -EBUSY ? -EMFILE : err;
	}
	return 0;
}

static u32 ock_ticket_need(bool write)
{
	return ONECOPY_REGION_READ | (write ? ONECOPY_REGION_WRITE : 0);
}

int ock_ticket_ask(struct ock_tickets *tickets, u64 cookie, u64 offset, u64 length, bool write,
		   struct ock_ticket_answer *answer)
{
	struct ock_ticket ticket = {.cookie = cookie, .write = write};
	struct ock_region *region;
	struct ock_ref ref;
	u32 index;
	int err;

	err = ock_region_look(cookie, ock_ticket_need(write), &ref);
	if (err)
		return err;
	region = ref.region;

	err = -EINVAL;
	if (!length)
		goto out;
	err = -ERANGE;
	if (offset > region->pages.length || length > region->pages.length - offset)
		goto out;
	err = -EOPNOTSUPP;
	if (!ock_map_allowed() || region->flags & ONECOPY_REGION_SINGLE_USE)
		goto out;
	err = ock_ticket_span(region, offset, length, &ticket.page, &ticket.nr, &answer->skip);
	if (err)
		goto out;
	err = ock_ticket_issue(tickets, &ticket, &index);
	if (err)
		goto out;
	answer->map_offset = OCK_TICKET_OFFSET + ((u64)index << PAGE_SHIFT);
	answer->map_length = (u64)ticket.nr << PAGE_SHIFT;
	ock_ticket_align(&region->pages, ticket.page, answer);
out:
	ock_region_put(&ref);
	return err;
}

static u64 ock_ticket_index(u64 map_offset)
{
	return (map_offset - OCK_TICKET_OFFSET) >> PAGE_SHIFT;
}

static int ock_ticket_take(struct ock_tickets *tickets, u64 map_offset, struct ock_ticket *ticket)
{
	u64 index = ock_ticket_index(map_offset);
	struct ock_ticket *taken;

	if (index >= OCK_TICKETS_MAX)
		return -EINVAL;
	/* Of two that try at once one gets it. */
	taken = xa_erase(&tickets->table, index);
	if (!taken)
		return -EINVAL;
	*ticket = *taken;
	kfree(taken);
	return 0;
}

int ock_ticket_redeem(struct ock_tickets *tickets, u64 map_offset, struct ock_ticket *ticket,
		      struct ock_ref *ref)
{
	int err = ock_ticket_take(tickets, map_offset, ticket);

	return err ?: ock_region_look(ticket->cookie, ock_ticket_need(ticket->write), ref);
}

void ock_ticket_forget(struct ock_tickets *tickets, u64 map_offset)
{
	kfree(xa_erase(&tickets->table, ock_ticket_index(map_offset)));
}
