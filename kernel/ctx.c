// SPDX-License-Identifier: GPL-2.0-only
#include "ctx.h"

#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "stats.h"

static ulong max_user_pages;
module_param(max_user_pages, ulong, 0644);
MODULE_PARM_DESC(max_user_pages,
		 "Pages a user may pin through both devices (0: a sixteenth of the memory)");

static ulong max_pages;
module_param(max_pages, ulong, 0644);
MODULE_PARM_DESC(max_pages, "Pages all users together may pin (0: a quarter of the memory)");

static uint max_user_regions = 1U << 18;
module_param(max_user_regions, uint, 0644);
MODULE_PARM_DESC(max_user_regions, "Regions a user may have");

static uint max_regions = 1U << 20;
module_param(max_regions, uint, 0644);
MODULE_PARM_DESC(max_regions, "Regions all users together may have");

static uint max_user_threads;
module_param(max_user_threads, uint, 0644);
MODULE_PARM_DESC(max_user_threads,
		 "Threads for asynchronous copies that a user may have (0: one a processor)");

static uint max_threads;
module_param(max_threads, uint, 0644);
MODULE_PARM_DESC(max_threads,
		 "Threads that all users together may have (0: four for each processor)");

static void ock_ctx_limit(struct ock_limits *limits)
{
	limits->of_user[OCK_PAGES] = READ_ONCE(max_user_pages) ?: totalram_pages() / 16;
	limits->of_all[OCK_PAGES] = READ_ONCE(max_pages) ?: totalram_pages() / 4;
	limits->of_user[OCK_REGIONS] = READ_ONCE(max_user_regions);
	limits->of_all[OCK_REGIONS] = READ_ONCE(max_regions);
	limits->of_user[OCK_THREADS] = READ_ONCE(max_user_threads) ?: num_online_cpus();
	limits->of_all[OCK_THREADS] = READ_ONCE(max_threads) ?: num_online_cpus() * 4;
}

int ock_ctx_create(const struct file *file, bool memlock, struct ock_ctx **result)
{
	struct ock_ctx *ctx;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	ctx->uid = file->f_cred->uid;
	ctx->limits.user = ock_user_get(file->f_cred);
	if (!ctx->limits.user) {
		kfree(ctx);
		return -ENOMEM;
	}
	ock_ctx_limit(&ctx->limits);
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
	ock_generations_deinit(&ctx->generations);
	ock_user_put(ctx->limits.user);
	/* Who found a single-use region just before may still want ctx->lock. */
	kfree_rcu(ctx, rcu);
	ock_stat_dec(OCK_LIVE_FILES);
}
