// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channels are private ones (dma_request_channel): Intel's DSA offers no others,
 * and only a channel of our own may be terminated when it falls silent.
 *
 * Each piece in flight is on its channel's list until it ends, once: by the
 * engine's callback, or, after the channel has been terminated and no callback
 * can come any more, by whoever did that. Completions may come in any order
 * (DMA_COMPLETION_NO_ORDER), so each piece has a callback and an interrupt of its
 * own and none is inferred from another; nor does DSA's driver look at pieces without.
 *
 * A channel that owes an answer and has given none for a whole period is
 * terminated. An engine that cannot be (I/OAT) is used no more; what it was given
 * stays pinned until it answers. So it is with one whose driver puts who wants a descriptor
 * to sleep until there is one (DSA), if somebody sleeps there: what he comes back with may not
 * be from after the termination.
 *
 * Pieces are sent one at a time, by whose turn it is. That is no mutex, so that those who
 * wait for their turn can go when the channel is given up, and the watchdog after a while.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "channel.h"

#include <linux/bitops.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/topology.h>
#include <linux/wait.h>

#include "compat.h"
#include "params.h"

#define OCK_CHANNELS_MAX 4

struct ock_channel {
	struct dma_chan *chan;
	struct device *device;	 /* does the accesses: memory is mapped for it */
	unsigned long taken;	 /* bit 0: somebody has the turn to submit, or to reset */
	wait_queue_head_t turn;	 /* for that */
	spinlock_t lock;	 /* of what follows */
	struct list_head pieces; /* in flight */
	unsigned long alive;	 /* jiffies when it last answered or began to be owed an answer */
	bool broken;		 /* given up; read without lock */
	struct rcu_head rcu;	 /* for answers that have yet to return */
};

/* Channels: found under ock_channels_lock, given back when nobody holds. */
static DEFINE_MUTEX(ock_channels_lock);
static struct ock_channel *ock_channels[OCK_CHANNELS_MAX];
static unsigned int nr_channels;
static unsigned int next_channel;
static unsigned int nr_holders;

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
	channel->device = ock_dma_device(channel->chan);
	init_waitqueue_head(&channel->turn);
	spin_lock_init(&channel->lock);
	INIT_LIST_HEAD(&channel->pieces);
	*result = channel;
	return 0;
}

static void ock_channel_destroy(struct ock_channel *channel)
{
	WARN_ON_ONCE(!list_empty(&channel->pieces));
	dma_release_channel(channel->chan);
	kfree_rcu(channel, rcu);
}

/* As many as there are; why no more. */
static int ock_channels_find(void)
{
	lockdep_assert_held(&ock_channels_lock);
	while (READ_ONCE(ock_params.dma) && nr_channels < OCK_CHANNELS_MAX) {
		int err = ock_channel_create(&ock_channels[nr_channels]);

		if (err)
			return err;
		nr_channels++;
	}
	return -ENODEV;
}

void ock_channels_hold(void)
{
	mutex_lock(&ock_channels_lock);
	nr_holders++;
	mutex_unlock(&ock_channels_lock);
}

void ock_channels_unhold(void)
{
	mutex_lock(&ock_channels_lock);
	if (!--nr_holders) {
		while (nr_channels)
			ock_channel_destroy(ock_channels[--nr_channels]);
	}
	mutex_unlock(&ock_channels_lock);
}

static struct ock_channel *ock_channels_look(unsigned int first)
{
	struct ock_channel *found = NULL;

	for (unsigned int i = 0; READ_ONCE(ock_params.dma) && i < nr_channels; i++) {
		struct ock_channel *channel = ock_channels[(first + i) % nr_channels];

		if (READ_ONCE(channel->broken))
			continue;
		if (!found)
			found = channel;
		if (dev_to_node(channel->device) == numa_node_id())
			return channel;
	}
	return found;
}

/* From @first on, the next good one; rather one near this CPU. */
static struct ock_channel *ock_channels_choose(unsigned int first)
{
	struct ock_channel *found;
	int err;

	lockdep_assert_held(&ock_channels_lock);
	found = ock_channels_look(first);
	if (found)
		return found;
	err = ock_channels_find();
	return ock_channels_look(first) ?: ERR_PTR(err);
}

struct ock_channel *ock_channels_take(bool *holds)
{
	struct ock_channel *channel;

	mutex_lock(&ock_channels_lock);
	channel = ock_channels_choose(next_channel++);
	if (!IS_ERR(channel) && !*holds) {
		nr_holders++;
		*holds = true;
	}
	mutex_unlock(&ock_channels_lock);
	return channel;
}

void ock_channels_leave(bool *holds)
{
	if (*holds)
		ock_channels_unhold();
	*holds = false;
}

int ock_channels_probe(void)
{
	struct ock_channel *channel;

	ock_channels_hold();
	mutex_lock(&ock_channels_lock);
	channel = ock_channels_choose(0);
	mutex_unlock(&ock_channels_lock);
	ock_channels_unhold();
	return PTR_ERR_OR_ZERO(channel);
}

/* ---- turns ---- */

static bool ock_channel_try(struct ock_channel *channel)
{
	return !test_and_set_bit_lock(0, &channel->taken);
}

static void ock_channel_leave(struct ock_channel *channel)
{
	clear_bit_unlock(0, &channel->taken);
	/* The bit, before looking for those who wait for it. */
	smp_mb__after_atomic();
	wake_up(&channel->turn);
}

/* -EINTR killed, -ETIMEDOUT the channel was given up. */
static int ock_channel_enter(struct ock_channel *channel)
{
	bool entered = false;
	int err;

	err = wait_event_killable_exclusive(
		channel->turn, READ_ONCE(channel->broken) || (entered = ock_channel_try(channel)));
	if (err)
		return -EINTR;
	return entered ? 0 : -ETIMEDOUT;
}

/* ---- pieces ---- */

static void ock_piece_unmap(struct ock_channel *channel, const struct ock_piece *piece)
{
	dma_unmap_page(channel->device, piece->from, piece->bytes, DMA_TO_DEVICE);
	dma_unmap_page_attrs(channel->device, piece->to, piece->bytes, DMA_FROM_DEVICE,
			     OCK_DMA_TO_ATTRS);
}

/* For whoever took it off the list. */
static void ock_piece_end(struct ock_channel *channel, struct ock_piece *piece, int err)
{
	ock_piece_unmap(channel, piece);
	piece->end(piece, err);
}

static void ock_piece_answer(void *data, const struct dmaengine_result *result)
{
	struct ock_piece *piece = data;
	struct ock_channel *channel = piece->channel;

	/* Once the last piece has ended the channel may be given back, and not every
	 * driver waits for callbacks to return then. */
	rcu_read_lock();
	spin_lock_bh(&channel->lock);
	list_del(&piece->node);
	channel->alive = jiffies;
	spin_unlock_bh(&channel->lock);
	ock_piece_end(channel, piece, result && result->result != DMA_TRANS_NOERROR ? -EIO : 0);
	rcu_read_unlock();
}

static int ock_piece_map(struct ock_channel *channel, struct ock_piece *piece,
			 const struct ock_place *from, const struct ock_place *to)
{
	struct device *device = channel->device;

	piece->from = dma_map_page(device, from->page, from->offset, piece->bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(device, piece->from))
		return -ENOMEM;
	piece->to = dma_map_page_attrs(device, to->page, to->offset, piece->bytes, DMA_FROM_DEVICE,
				       OCK_DMA_TO_ATTRS);
	if (dma_mapping_error(device, piece->to)) {
		dma_unmap_page(device, piece->from, piece->bytes, DMA_TO_DEVICE);
		return -ENOMEM;
	}
	return 0;
}

/* By whose turn it is. -EBUSY: the channel has no descriptor. */
static int ock_piece_issue(struct ock_channel *channel, struct ock_piece *piece)
{
	const unsigned long flags = DMA_PREP_INTERRUPT | DMA_CTRL_ACK;
	struct dma_async_tx_descriptor *tx;

	tx = dmaengine_prep_dma_memcpy(channel->chan, piece->to, piece->from, piece->bytes, flags);
	if (!tx)
		return -EBUSY;
	tx->callback_result = ock_piece_answer;
	tx->callback_param = piece;

	/* Before it is submitted: the answer may come at once. */
	spin_lock_bh(&channel->lock);
	if (list_empty(&channel->pieces))
		channel->alive = jiffies;
	list_add_tail(&piece->node, &channel->pieces);
	spin_unlock_bh(&channel->lock);

	if (dma_submit_error(dmaengine_submit(tx))) {
		spin_lock_bh(&channel->lock);
		list_del(&piece->node);
		spin_unlock_bh(&channel->lock);
		return -EIO;
	}
	dma_async_issue_pending(channel->chan);
	return 0;
}

bool ock_channel_fits_all(const struct ock_channel *channel)
{
	return dev_is_dma_coherent(channel->device) && !channel->chan->device->copy_align;
}

bool ock_channel_fits(const struct ock_channel *channel, const struct ock_place *from,
		      const struct ock_place *to, size_t bytes)
{
	/* Where caches do not follow DMA, their lines at the destination's ends would be
	 * lost, with what others write to them meanwhile. */
	if (!dev_is_dma_coherent(channel->device) &&
	    !IS_ALIGNED(to->offset | bytes, dma_get_cache_alignment()))
		return false;
	return is_dma_copy_aligned(channel->chan->device, from->offset, to->offset, bytes);
}

int ock_channel_submit(struct ock_channel *channel, struct ock_piece *piece,
		       const struct ock_place *from, const struct ock_place *to, size_t bytes,
		       ock_piece_end_t end)
{
	int err;

	piece->channel = channel;
	piece->end = end;
	piece->bytes = bytes;
	err = ock_piece_map(channel, piece, from, to);
	if (err)
		return err;
	err = ock_channel_enter(channel);
	if (err)
		goto unmap;
	err = ock_piece_issue(channel, piece);
	ock_channel_leave(channel);
	if (err)
		goto unmap;
	return 0;

unmap:
	ock_piece_unmap(channel, piece);
	return err;
}

/* ---- channels that fall silent ---- */

unsigned long ock_channel_patience(void)
{
	return max(msecs_to_jiffies(READ_ONCE(ock_params.dmatimeout)), 1UL);
}

static bool ock_channel_silent(struct ock_channel *channel)
{
	bool silent;

	spin_lock_bh(&channel->lock);
	silent = !list_empty(&channel->pieces) &&
		 time_after_eq(jiffies, channel->alive + ock_channel_patience());
	spin_unlock_bh(&channel->lock);
	return silent;
}

static void ock_channel_give_up(struct ock_channel *channel, const char *why)
{
	bool before;

	spin_lock_bh(&channel->lock);
	before = channel->broken;
	WRITE_ONCE(channel->broken, true);
	spin_unlock_bh(&channel->lock);
	if (before)
		return;
	pr_warn("%s is silent and %s: not used any more\n", dma_chan_name(channel->chan), why);
	wake_up_all(&channel->turn);
}

/* By whose turn it is. */
static void ock_channel_reset(struct ock_channel *channel)
{
	struct ock_piece *piece;
	LIST_HEAD(lost);

	if (dmaengine_terminate_sync(channel->chan)) {
		ock_channel_give_up(channel, "cannot be terminated");
		return;
	}
	pr_warn_ratelimited("%s was silent and has been terminated\n",
			    dma_chan_name(channel->chan));
	spin_lock_bh(&channel->lock);
	list_splice_init(&channel->pieces, &lost);
	spin_unlock_bh(&channel->lock);
	while ((piece = list_first_entry_or_null(&lost, struct ock_piece, node))) {
		list_del(&piece->node);
		ock_piece_end(channel, piece, -ETIMEDOUT);
	}
}

bool ock_channel_check(struct ock_channel *channel)
{
	bool entered = false;

	if (!ock_channel_silent(channel))
		return !READ_ONCE(channel->broken);
	wait_event_timeout(channel->turn,
			   READ_ONCE(channel->broken) || (entered = ock_channel_try(channel)),
			   ock_channel_patience());
	if (!entered) {
		if (ock_channel_silent(channel))
			ock_channel_give_up(channel, "holds up who wants a descriptor");
		return !READ_ONCE(channel->broken);
	}
	/* Another's check may have done it. */
	if (ock_channel_silent(channel) && !READ_ONCE(channel->broken))
		ock_channel_reset(channel);
	ock_channel_leave(channel);
	return !READ_ONCE(channel->broken);
}
