/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_MAP_H
#define OCK_MAP_H

/* Regions in other processes' address spaces. */

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct ock_region;

int ock_map_init(void);
void ock_map_exit(void);

/* To be called at open(): mappings of all files belong to one address space
 * of the module's own, whichever device node was opened. */
void ock_map_open(struct file *file);

/* mmap() of @nr pages from @page on of a region that the caller holds. -EINVAL, -EACCES; -ENOENT it
 * has ended. */
int ock_map_region(struct ock_region *region, u32 page, u32 nr, bool write,
		   struct vm_area_struct *vma);

/* The region has ended, or is stale and does not LINGER: no mapping shows it when this returns. May
 * sleep. */
void ock_map_revoke(struct ock_region *region);

#endif
