/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_CTX_H
#define OCK_CTX_H

/*
 * What an open file of either device has, forked processes sharing it: regions that it
 * owns, later copies once it has set them up, and who waits for their events. Part of
 * what a front end has for a file.
 */

#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/types.h>
#include <linux/wait.h>

struct ock_async;
struct ock_async_config;
struct ock_owner;
struct vm_area_struct;

struct ock_ctx {
	struct ock_owner *owner; /* of its regions */
	struct mutex lock;	 /* to set @async, and of what a front end will set it up with */
	struct ock_async *async; /* set once, read without lock */
	wait_queue_head_t wait;	 /* for events, also before there is @async */
	bool dma;		 /* holds channels; by channel.h alone */
};

/*
 * Files may be opened from ock_ctx_allow() on, the last thing of the module's coming: a device that
 * is there may have to go again when something after it fails, and the code with it, open files or
 * not.
 */
int ock_ctx_allow(void);
void ock_ctx_refuse(void);
bool ock_ctx_allowed(void);

/* For a file being opened. @memlock: as in ock_limits. -ENOMEM. */
int ock_ctx_init(struct ock_ctx *ctx, const struct file *file, bool memlock);

/*
 * At release(): nobody calls any more. Regions are destroyed, then copies ended as
 * ock_async_close() says. May sleep.
 */
void ock_ctx_deinit(struct ock_ctx *ctx);

/* NULL: not set up. */
struct ock_async *ock_ctx_async(const struct ock_ctx *ctx);

/*
 * Sets up later copies, under ctx->lock. @config: what is the front end's to say; the rest is
 * added. @vma: shows their words from the beginning; may be NULL. -EBUSY they are set up; errors of
 * ock_async_create() and ock_async_mmap().
 */
int ock_ctx_setup(struct ock_ctx *ctx, struct ock_async_config *config, struct vm_area_struct *vma);

/* poll() of both devices. */
__poll_t ock_ctx_poll(struct ock_ctx *ctx, struct file *file, poll_table *wait);

#endif
