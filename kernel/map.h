/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_MAP_H
#define OCK_MAP_H

/*
 * Regions in other processes' address spaces. An ioctl asks and gets a file
 * offset, a ticket; mmap() of that offset redeems it.
 */

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct ock_region;

/* The tickets of one file. */
struct ock_tickets {
	struct xarray table;
	u32 next;
};

/* What ONECOPY_IOC_MAP answers. */
struct ock_map_answer {
	u64 map_offset;
	u64 map_length;
	u64 skip;
	u64 align;
	u64 align_offset;
};

/* Offsets from here on are tickets'. Programs of 32 bits reach 2^44. */
#define OCK_TICKET_OFFSET (1ULL << 36)

int ock_map_init(void);
void ock_map_exit(void);

/* To be called at open(): mappings of all files belong to one address space
 * of the module's own, whichever device node was opened. */
void ock_map_open(struct file *file);

void ock_tickets_init(struct ock_tickets *tickets);
void ock_tickets_deinit(struct ock_tickets *tickets);

/* As ONECOPY_IOC_MAP. */
int ock_map_ask(struct ock_tickets *tickets, u64 cookie, u64 offset, u64 length, bool write,
		struct ock_map_answer *answer);

/* An answer that nobody got. */
void ock_map_forget(struct ock_tickets *tickets, u64 map_offset);

/* mmap() at or above OCK_TICKET_OFFSET. */
int ock_map_mmap(struct ock_tickets *tickets, struct vm_area_struct *vma);

/* The region is being destroyed: no mapping shows it when this returns. May sleep. */
void ock_map_revoke(struct ock_region *region);

#endif
