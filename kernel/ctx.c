// SPDX-License-Identifier: GPL-2.0-only
#include "ctx.h"

#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "params.h"
#include "stats.h"

static void ock_ctx_limit(struct ock_limits *limits)
{
	limits->of_user[OCK_PAGES] = READ_ONCE(ock_params.max_user_pages) ?: totalram_pages() / 16;
	limits->of_all[OCK_PAGES] = READ_ONCE(ock_params.max_pages) ?: totalram_pages() / 4;
	limits->of_user[OCK_REGIONS] = READ_ONCE(ock_params.max_user_regions);
	limits->of_all[OCK_REGIONS] = READ_ONCE(ock_params.max_regions);
	limits->of_user[OCK_THREADS] = READ_ONCE(ock_params.max_user_threads) ?: num_online_cpus();
	limits->of_all[OCK_THREADS] = READ_ONCE(ock_params.max_threads) ?: num_online_cpus() * 4;
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
