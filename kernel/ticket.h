/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_TICKET_H
#define OCK_TICKET_H

/*
 * Leave to map part of a region. An ioctl asks, with all checks, and gets a file
 * offset, the ticket's; one mmap() of that offset uses it up.
 */

#include <linux/types.h>
#include <linux/xarray.h>

struct ock_ref;

struct ock_ticket {
	u64 cookie;
	u32 page; /* of the region */
	u32 nr;
	bool write;
};

/* The tickets of one file. */
struct ock_tickets {
	struct xarray table;
	u32 next;
};

/* What ONECOPY_IOC_MAP answers. */
struct ock_ticket_answer {
	u64 map_offset;
	u64 map_length;
	u64 skip;
	u64 align;
	u64 align_offset;
};

/* Offsets from here on are tickets'. Programs of 32 bits reach 2^44. */
#define OCK_TICKET_OFFSET (1ULL << 36)

void ock_tickets_init(struct ock_tickets *tickets);
void ock_tickets_deinit(struct ock_tickets *tickets);

/* As ONECOPY_IOC_MAP. */
int ock_ticket_ask(struct ock_tickets *tickets, u64 cookie, u64 offset, u64 length, bool write,
		   struct ock_ticket_answer *answer);

/* An answer that nobody got. */
void ock_ticket_forget(struct ock_tickets *tickets, u64 map_offset);

/*
 * Uses up the ticket of @map_offset, which is at or above OCK_TICKET_OFFSET, and holds its region.
 * -EINVAL if there is none, and errors of ock_region_look().
 */
int ock_ticket_redeem(struct ock_tickets *tickets, u64 map_offset, struct ock_ticket *ticket,
		      struct ock_ref *ref);

#endif
