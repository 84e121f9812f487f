/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_CTX_H
#define OCK_CTX_H

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

struct ock_ctx {
	kuid_t uid;		  /* real uid of open() */
	struct ock_limits limits; /* set by ock_ctx_create(), for good */

	spinlock_t lock;
	struct list_head regions; /* under lock; a region is destroyed by who takes it out */

	struct ock_generations generations;
	struct rcu_head rcu;
};

/*
 * For a file being opened. @memlock: as in ock_limits, whose rest are parameters of
 * the module. -ENOMEM.
 */
int ock_ctx_create(const struct file *file, bool memlock, struct ock_ctx **ctx);

/*
 * It has no regions any more, or never had. The caller has seen to it that nobody calls with
 * @ctx any more. @ctx is freed.
 */
void ock_ctx_close(struct ock_ctx *ctx);

#endif
