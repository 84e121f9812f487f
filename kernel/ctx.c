// SPDX-License-Identifier: GPL-2.0-only
/*
 * Later copies are set up once, under the lock, and then found without it. At the end no peer
 * may find a region any more before anything is waited for; the owner goes last, for what
 * the copies were charged to is its.
 */
#include "ctx.h"

#include "async.h"
#include "channel.h"
#include "owner.h"
#include "table.h"

static bool allowed;

int ock_ctx_allow(void)
{
	WRITE_ONCE(allowed, true);
	return 0;
}

/* Nobody may open the devices of a module that goes, anyway. */
void ock_ctx_refuse(void)
{
}

bool ock_ctx_allowed(void)
{
	return READ_ONCE(allowed);
}

int ock_ctx_init(struct ock_ctx *ctx, const struct file *file, bool memlock)
{
	int err = ock_owner_create(file, memlock, &ctx->owner);

	if (err)
		return err;
	mutex_init(&ctx->lock);
	init_waitqueue_head(&ctx->wait);
	ctx->async = NULL;
	ctx->dma = false;
	return 0;
}

void ock_ctx_deinit(struct ock_ctx *ctx)
{
	/* First of all no peer may find a region any more: copies' ends may take their time. */
	ock_regions_close(ctx->owner);
	if (ctx->async)
		ock_async_close(ctx->async);
	ock_channels_leave(&ctx->dma);
	ock_owner_close(ctx->owner);
}

struct ock_async *ock_ctx_async(const struct ock_ctx *ctx)
{
	/* Pairs with the release in ock_ctx_setup(). */
	return smp_load_acquire(&ctx->async);
}

int ock_ctx_setup(struct ock_ctx *ctx, struct ock_async_config *config, struct vm_area_struct *vma)
{
	struct ock_async *async;
	int err;

	lockdep_assert_held(&ctx->lock);
	if (ctx->async)
		return -EBUSY;
	config->owner = ctx->owner;
	config->wait = &ctx->wait;
	config->dma = &ctx->dma;
	err = ock_async_create(config, &async);
	if (err)
		return err;
	err = vma ? ock_async_mmap(async, vma) : 0;
	if (err) {
		ock_async_close(async);
		return err;
	}
	smp_store_release(&ctx->async, async);
	return 0;
}

__poll_t ock_ctx_poll(struct ock_ctx *ctx, struct file *file, poll_table *wait)
{
	struct ock_async *async;

	/* In any case: epoll asks once where to wait. */
	poll_wait(file, &ctx->wait, wait);
	async = ock_ctx_async(ctx);
	return async ? ock_async_poll(async) : EPOLLERR;
}
