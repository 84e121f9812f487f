/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_MAP_H
#define OCK_MAP_H

/* Regions in other processes' address spaces. */

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct ock_region;
struct ock_tickets;

int ock_map_init(void);
void ock_map_exit(void);

/* To be called at open(): mappings of all files belong to one address space
 * of the module's own, whichever device node was opened. */
void ock_map_open(struct file *file);

/* mmap() at or above OCK_TICKET_OFFSET: redeems the ticket of that offset, see ticket.h. */
int ock_map_mmap(struct ock_tickets *tickets, struct vm_area_struct *vma);

/* The region is being destroyed: no mapping shows it when this returns. May sleep. */
void ock_map_revoke(struct ock_region *region);

#endif
