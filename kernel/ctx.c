// SPDX-License-Identifier: GPL-2.0-only
#include "ctx.h"

#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "region.h"
#include "stats.h"

static ulong max_user_pages;
module_param(max_user_pages, ulong, 0644);
MODULE_PARM_DESC(max_user_pages,
		 "Pages a user may pin through both devices (0: three quarters of the memory)");

static uint max_user_regions = 1U << 20;
module_param(max_user_regions, uint, 0644);
MODULE_PARM_DESC(max_user_regions, "Regions a user may have");

static uint max_user_threads = 4096;
module_param(max_user_threads, uint, 0644);
MODULE_PARM_DESC(max_user_threads, "Kernel threads for asynchronous copies that a user may have");

int ock_ctx_create(const struct file *file, bool memlock, struct ock_ctx **result)
{
	struct ock_ctx *ctx;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	ctx->uid = file->f_cred->uid;
	ctx->limits.user = ock_user_get(ctx->uid);
	if (!ctx->limits.user) {
		kfree(ctx);
		return -ENOMEM;
	}
	ctx->limits.max_pages = READ_ONCE(max_user_pages) ?: totalram_pages() / 4 * 3;
	ctx->limits.max_regions = READ_ONCE(max_user_regions);
	ctx->limits.max_threads = READ_ONCE(max_user_threads);
	ctx->limits.memlock = memlock;
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->regions);
	ock_generations_init(&ctx->generations);
	ock_stat_inc(OCK_LIVE_FILES);
	*result = ctx;
	return 0;
}

void ock_ctx_close(struct ock_ctx *ctx)
{
	ock_region_destroy_all(ctx);
	ock_generations_deinit(&ctx->generations);
	ock_user_put(ctx->limits.user);
	/* Who found a single-use region just before may still want ctx->lock. */
	kfree_rcu(ctx, rcu);
	ock_stat_dec(OCK_LIVE_FILES);
}
