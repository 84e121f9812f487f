/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_HOT_H
#define OCK_HOT_H

/*
 * The per-CPU count of a region that is looked up often: one user of the region,
 * as long as it is open. It ends after a grace period and a work item, and only
 * then are the region's pages and what they are charged with given back.
 */

#include <linux/types.h>

struct ock_hot;
struct ock_region;

int ock_hot_init(void);
/* All have been closed. */
void ock_hot_exit(void);

/* The caller holds a user. No harm if there is no memory. */
void ock_hot_open(struct ock_region *region);

/* Once, with or without a count: there will be none any more. */
void ock_hot_close(struct ock_region *region);

/* A user of the region by its count; NULL: there is none, or it is closed. Under RCU. */
struct ock_hot *ock_hot_get(struct ock_region *region);
void ock_hot_put(struct ock_hot *hot);

#endif
