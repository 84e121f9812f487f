// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by dmaengine.
 *
 * Channels are private ones (dma_request_channel): Intel's DSA offers no others,
 * and only a channel of our own may be terminated when it falls silent.
 *
 * An operation is cut into pieces: bytes contiguous in physical memory at both
 * ends, one descriptor each. Each piece is on its channel's list until it ends,
 * once: by the engine's callback, or, after the channel has been terminated and
 * no callback can come any more, by the reset. Whoever takes it off the list,
 * under the channel's lock, ends it. Operations count pieces in flight, plus one
 * while pieces are still being made; who counts to zero has the operation's
 * work finish it. That work is at the same time its watchdog: queued with
 * a delay at first, and at once at the end.
 *
 * Completions may come in any order (DMA_COMPLETION_NO_ORDER): each piece has
 * its own callback and interrupt, and none is inferred from another.
 *
 * The watchdog looks at the channel rather than the operation, which may have
 * to wait for others. A channel that ended nothing for a whole period is
 * terminated. An engine that cannot be (I/OAT) is used no more; its operations
 * are reported failed, but keep their pages, and this module, until it answers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "dma.h"

#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/topology.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "stats.h"

/* Every engine takes this much in one descriptor. */
#define OCK_DMA_PIECE (256u << 10)
/* Pieces of one operation in flight. */
#define OCK_DMA_DEPTH	 64
#define OCK_DMA_CHANNELS 4

static bool dma = true;
module_param(dma, bool, 0644);
MODULE_PARM_DESC(dma, "use DMA engines when asked to (1)");

static unsigned long dmamin = 1024;
module_param(dmamin, ulong, 0644);
MODULE_PARM_DESC(dmamin, "bytes below which the CPU copies though DMA is asked for (1024)");

static unsigned int dmatimeout = 10000;
module_param(dmatimeout, uint, 0644);
MODULE_PARM_DESC(dmatimeout,
		 "milliseconds without an answer after which a DMA channel is reset (10000)");

struct ock_channel {
	struct dma_chan *chan;
	struct device *device;
	struct mutex submit;	 /* held to submit and to reset */
	spinlock_t lock;	 /* of what follows */
	struct list_head pieces; /* in flight */
	unsigned long ended;	 /* pieces so far */
	bool broken;		 /* silent and not to be terminated */
	wait_queue_head_t room;	 /* a piece has ended */
};

struct ock_dma_op {
	struct ock_channel *channel;
	struct ock_copy copy;
	void (*done)(void *data, int err, u64 copied);
	void *data;
	u64 bytes;
	int err; /* the first */
	atomic_t pending;
	unsigned long seen; /* channel->ended when the watchdog last looked */
	bool told;
	struct delayed_work work;
};

struct ock_dma_piece {
	struct list_head node; /* of channel->pieces; empty: ended */
	struct ock_dma_op *op;
	dma_addr_t from;
	dma_addr_t to;
	size_t bytes;
};

static struct workqueue_struct *ock_dma_wq;

/* Channels: nr_channels grows under ock_dma_lock and shrinks when nobody holds. */
static DEFINE_MUTEX(ock_dma_lock);
static struct ock_channel *ock_channels[OCK_DMA_CHANNELS];
static unsigned int nr_channels;
static unsigned int next_channel;
static unsigned int ock_dma_holders;

/* ---- channels ---- */

static int ock_channel_create(struct ock_channel **result)
{
	struct ock_channel *channel;
	dma_cap_mask_t mask;

	channel = kzalloc(sizeof(*channel), GFP_KERNEL);
	if (!channel)
		return -ENOMEM;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	channel->chan = dma_request_channel(mask, NULL, NULL);
	if (!channel->chan) {
		kfree(channel);
		return -ENODEV;
	}
	channel->device = channel->chan->device->dev;
	mutex_init(&channel->submit);
	spin_lock_init(&channel->lock);
	INIT_LIST_HEAD(&channel->pieces);
	init_waitqueue_head(&channel->room);
	*result = channel;
	return 0;
}

static void ock_channel_destroy(struct ock_channel *channel)
{
	WARN_ON_ONCE(!list_empty(&channel->pieces));
	dma_release_channel(channel->chan);
	kfree(channel);
}

static void ock_dma_find(void)
{
	lockdep_assert_held(&ock_dma_lock);
	while (dma && nr_channels < OCK_DMA_CHANNELS) {
		if (ock_channel_create(&ock_channels[nr_channels]))
			break;
		nr_channels++;
	}
}

/* Not those that an operation, reported failed, still waits for. */
static void ock_dma_release(void)
{
	unsigned int kept = 0;

	lockdep_assert_held(&ock_dma_lock);
	for (unsigned int i = 0; i < nr_channels; i++) {
		struct ock_channel *channel = ock_channels[i];

		spin_lock_bh(&channel->lock);
		if (!list_empty(&channel->pieces))
			ock_channels[kept++] = channel;
		else
			ock_channels[i] = NULL;
		spin_unlock_bh(&channel->lock);
	}
}
