/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_OWNER_H
#define OCK_OWNER_H

/*
 * The owner of regions: one open file of either device. A front end makes one
 * at open() and closes it at release(); forked processes share it.
 */

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>

#include "limit.h"
#include "notify.h"

struct ock_owner {
	kuid_t uid;		  /* real uid of open() */
	struct ock_limits limits; /* set by ock_owner_create(), for good */

	spinlock_t lock;
	struct list_head regions; /* under lock; a region is destroyed by who takes it out */

	struct ock_generations generations;
	struct rcu_head rcu;
};

/*
 * For a file being opened. @memlock: as in ock_limits, whose rest are parameters of
 * the module. -ENOMEM.
 */
int ock_owner_create(const struct file *file, bool memlock, struct ock_owner **owner);

/* It has no regions any more, or never had, and nobody calls with it any more. It is freed. */
void ock_owner_close(struct ock_owner *owner);

#endif
