// SPDX-License-Identifier: GPL-2.0-only
/*
 * A DMA engine made of software, for tests: memcpy channels whose descriptors are copied by a
 * workqueue, later, and which go wrong on demand. Linux knows no such provider: its memcpy engines
 * are all hardware.
 *
 * What the dmaengine documentation (Documentation/driver-api/dmaengine) allows an engine to do,
 * this one does when told to by its parameters: take its time, report failed transfers, complete
 * out of order (DMA_COMPLETION_NO_ORDER), have no descriptor left, let who wants one sleep until
 * there is, insist on alignment, fall silent, and lack a way to be terminated. Callbacks run with
 * bottom halves off, as those of tasklets do, so that a client that sleeps in one is found out.
 *
 * Lists of a channel, under its lock: submitted -> issued -> (one in hand) -> freed, or -> hung.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#define SOFTDMA_CHANNELS_MAX 16

static unsigned int channels = 2;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "number of channels (2)");

static bool reorder;
module_param(reorder, bool, 0644);
MODULE_PARM_DESC(reorder, "complete the last issued descriptor first");

static bool terminate = true;
module_param(terminate, bool, 0644);
MODULE_PARM_DESC(terminate, "can be terminated (1)");

static unsigned int delay_ms;
module_param(delay_ms, uint, 0644);
MODULE_PARM_DESC(delay_ms, "milliseconds before issued descriptors are looked at (0)");

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "each n-th descriptor fails and copies nothing (0: none)");

static unsigned int hang_every;
module_param(hang_every, uint, 0644);
MODULE_PARM_DESC(hang_every, "each n-th descriptor hangs until terminated or resumed (0: none)");

static unsigned int full_every;
module_param(full_every, uint, 0644);
MODULE_PARM_DESC(full_every, "each n-th time there is no descriptor to be had (0: never)");

static unsigned int descriptors;
module_param(descriptors, uint, 0644);
MODULE_PARM_DESC(descriptors, "descriptors of a channel (0: any number)");

static bool block;
module_param(block, bool, 0644);
MODULE_PARM_DESC(block, "who finds no descriptor sleeps until there is one, or a signal (0)");

static unsigned long blocked;
module_param(blocked, ulong, 0444);
MODULE_PARM_DESC(blocked, "who sleep for a descriptor now");

static unsigned long prepared;
module_param(prepared, ulong, 0444);
MODULE_PARM_DESC(prepared, "descriptors handed out so far");

static unsigned long copied;
module_param(copied, ulong, 0444);
MODULE_PARM_DESC(copied, "bytes copied so far");

static unsigned long hung;
module_param(hung, ulong, 0444);
MODULE_PARM_DESC(hung, "descriptors hung so far");

static unsigned long misaligned;
module_param(misaligned, ulong, 0444);
MODULE_PARM_DESC(misaligned, "descriptors refused for their alignment");

struct softdma_desc {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	dma_addr_t src;
	dma_addr_t dst;
	size_t len;
};

struct softdma_chan {
	struct dma_chan chan;
	spinlock_t lock;
	struct list_head submitted;
	struct list_head issued;
	struct list_head hung;
	atomic_t nr; /* descriptors handed out */
	wait_queue_head_t room;
	struct workqueue_struct *wq;
	struct delayed_work work;
};

struct softdma {
	struct dma_device dma;
	struct softdma_chan chan[SOFTDMA_CHANNELS_MAX];
};

/* Counters and the turns of injected faults are of all channels together. */
static DEFINE_SPINLOCK(softdma_turns);
static unsigned int fail_turn, hang_turn, full_turn;

static struct softdma *softdma;

static struct softdma_chan *softdma_chan_of(struct dma_chan *chan)
{
	return container_of(chan, struct softdma_chan, chan);
}

static struct softdma_desc *softdma_desc_of(struct dma_async_tx_descriptor *tx)
{
	return container_of(tx, struct softdma_desc, tx);
}

/* Is it this one's turn to go wrong? */
static bool softdma_turn(unsigned int *turn, unsigned int every)
{
	bool hit = false;

	if (!every)
		return false;
	spin_lock_bh(&softdma_turns);
	if (++*turn >= every) {
		*turn = 0;
		hit = true;
	}
	spin_unlock_bh(&softdma_turns);
	return hit;
}

static void softdma_count(unsigned long *counter, unsigned long n)
{

	spin_lock_bh(&softdma_turns);
	*counter += n;
	spin_unlock_bh(&softdma_turns);
}

static dma_cookie_t softdma_submit(struct dma_async_tx_descriptor *tx)
{
	struct softdma_chan *sc = softdma_chan_of(tx->chan);
	dma_cookie_t cookie;

	spin_lock_bh(&sc->lock);
	cookie = sc->chan.cookie + 1;
	if (cookie < DMA_MIN_COOKIE)
		cookie = DMA_MIN_COOKIE;
	tx->cookie = cookie;
	WRITE_ONCE(sc->chan.cookie, cookie);
	list_add_tail(&softdma_desc_of(tx)->node, &sc->submitted);
	spin_unlock_bh(&sc->lock);
	return cookie;
}

static bool softdma_get(struct softdma_chan *sc)
{
	unsigned int max = READ_ONCE(descriptors);

	return atomic_add_unless(&sc->nr, 1, max ?: INT_MAX);
}

static void softdma_put(struct softdma_chan *sc, struct softdma_desc *desc)
{
	kfree(desc);
	atomic_dec(&sc->nr);
	wake_up_all(&sc->room);
}

/* As Intel's DSA, whose driver sleeps here, in a way that any signal ends. */
static bool softdma_wait(struct softdma_chan *sc)
{
	int err;

	if (softdma_get(sc))
		return true;
	if (!READ_ONCE(block))
		return false;
	softdma_count(&blocked, 1);
	err = wait_event_interruptible(sc->room, softdma_get(sc));
	softdma_count(&blocked, -1UL);
	return !err;
}

static struct dma_async_tx_descriptor *softdma_prep_memcpy(struct dma_chan *chan, dma_addr_t dst,
							   dma_addr_t src, size_t len,
							   unsigned long flags)
{
	struct softdma_chan *sc = softdma_chan_of(chan);
	struct softdma_desc *desc;

	if (!IS_ALIGNED(dst | src | len, 1UL << chan->device->copy_align)) {
		softdma_count(&misaligned, 1);
		return NULL;
	}
	if (softdma_turn(&full_turn, READ_ONCE(full_every)))
		return NULL;
	if (!softdma_wait(sc))
		return NULL;
	desc = kzalloc(sizeof(*desc), GFP_NOWAIT | __GFP_NOWARN);
	if (!desc) {
		softdma_put(sc, NULL);
		return NULL;
	}
	softdma_count(&prepared, 1);
	dma_async_tx_descriptor_init(&desc->tx, chan);
	desc->tx.tx_submit = softdma_submit;
	desc->tx.flags = flags;
	desc->src = src;
	desc->dst = dst;
	desc->len = len;
	return &desc->tx;
}

static void softdma_issue_pending(struct dma_chan *chan)
{
	struct softdma_chan *sc = softdma_chan_of(chan);

	spin_lock_bh(&sc->lock);
	list_splice_tail_init(&sc->submitted, &sc->issued);
	spin_unlock_bh(&sc->lock);
	queue_delayed_work(sc->wq, &sc->work, msecs_to_jiffies(READ_ONCE(delay_ms)));
}

static enum dma_status softdma_tx_status(struct dma_chan *chan, dma_cookie_t cookie,
					 struct dma_tx_state *state)
{
	dma_set_tx_state(state, READ_ONCE(chan->completed_cookie), READ_ONCE(chan->cookie), 0);
	return DMA_OUT_OF_ORDER;
}

static struct softdma_desc *softdma_take(struct softdma_chan *sc)
{
	struct softdma_desc *desc = NULL;

	spin_lock_bh(&sc->lock);
	if (!list_empty(&sc->issued)) {
		if (READ_ONCE(reorder))
			desc = list_last_entry(&sc->issued, struct softdma_desc, node);
		else
			desc = list_first_entry(&sc->issued, struct softdma_desc, node);
		list_del(&desc->node);
	}
	spin_unlock_bh(&sc->lock);
	return desc;
}

static void softdma_hang(struct softdma_chan *sc, struct softdma_desc *desc)
{

	softdma_count(&hung, 1);
	spin_lock_bh(&sc->lock);
	list_add_tail(&desc->node, &sc->hung);
	spin_unlock_bh(&sc->lock);
}

static void softdma_complete(struct softdma_chan *sc, struct softdma_desc *desc,
			     enum dmaengine_tx_result how)
{
	struct dmaengine_result result = {.result = how};

	WRITE_ONCE(sc->chan.completed_cookie, desc->tx.cookie);
	local_bh_disable();
	dma_descriptor_unmap(&desc->tx);
	if (desc->tx.callback_result)
		desc->tx.callback_result(desc->tx.callback_param, &result);
	else if (desc->tx.callback)
		desc->tx.callback(desc->tx.callback_param);
	local_bh_enable();
	softdma_put(sc, desc);
}

static void softdma_work(struct work_struct *work)
{
	struct softdma_chan *sc = container_of(work, struct softdma_chan, work.work);
	struct device *dev = softdma->dma.dev;
	struct softdma_desc *desc;

	while ((desc = softdma_take(sc))) {
		if (softdma_turn(&hang_turn, READ_ONCE(hang_every))) {
			softdma_hang(sc, desc);
			continue;
		}
		if (softdma_turn(&fail_turn, READ_ONCE(fail_every))) {
			softdma_complete(sc, desc, DMA_TRANS_WRITE_FAILED);
			continue;
		}
		memcpy(phys_to_virt(dma_to_phys(dev, desc->dst)),
		       phys_to_virt(dma_to_phys(dev, desc->src)), desc->len);
		softdma_count(&copied, desc->len);
		softdma_complete(sc, desc, DMA_TRANS_NOERROR);
		cond_resched();
	}
}

static void softdma_drop(struct softdma_chan *sc)
{
	struct softdma_desc *desc;
	LIST_HEAD(all);

	spin_lock_bh(&sc->lock);
	list_splice_init(&sc->submitted, &all);
	list_splice_init(&sc->issued, &all);
	list_splice_init(&sc->hung, &all);
	spin_unlock_bh(&sc->lock);
	while ((desc = list_first_entry_or_null(&all, struct softdma_desc, node))) {
		list_del(&desc->node);
		dma_descriptor_unmap(&desc->tx);
		softdma_put(sc, desc);
	}
}

static int softdma_terminate_all(struct dma_chan *chan)
{
	if (!READ_ONCE(terminate))
		return -ENOSYS;
	softdma_drop(softdma_chan_of(chan));
	return 0;
}

static void softdma_synchronize(struct dma_chan *chan)
{
	cancel_delayed_work_sync(&softdma_chan_of(chan)->work);
}

static void softdma_free_chan_resources(struct dma_chan *chan)
{
	softdma_synchronize(chan);
	softdma_drop(softdma_chan_of(chan));
}

/* Writing anything to the parameter "resume" lets hung descriptors go on. */
static int softdma_resume(const char *val, const struct kernel_param *kp)
{
	struct softdma *sd = READ_ONCE(softdma);
	unsigned int i;

	if (!sd)
		return 0;
	for (i = 0; i < channels; i++) {
		struct softdma_chan *sc = &sd->chan[i];

		spin_lock_bh(&sc->lock);
		list_splice_tail_init(&sc->hung, &sc->issued);
		spin_unlock_bh(&sc->lock);
		queue_delayed_work(sc->wq, &sc->work, 0);
	}
	return 0;
}

static const struct kernel_param_ops softdma_resume_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = softdma_resume,
};
module_param_cb(resume, &softdma_resume_ops, NULL, 0200);
MODULE_PARM_DESC(resume, "write to let hung descriptors go on");

static unsigned int align;

static int softdma_set_align(const char *val, const struct kernel_param *kp)
{
	struct softdma *sd = READ_ONCE(softdma);
	unsigned int value;
	int ret = kstrtouint(val, 0, &value);

	if (ret)
		return ret;
	if (value > PAGE_SHIFT)
		return -EINVAL;
	align = value;
	if (sd)
		WRITE_ONCE(sd->dma.copy_align, value);
	return 0;
}

static const struct kernel_param_ops softdma_align_ops = {
	.set = softdma_set_align,
	.get = param_get_uint,
};
module_param_cb(align, &softdma_align_ops, &align, 0644);
MODULE_PARM_DESC(align, "addresses and lengths are multiples of two to the power of this (0)");

static int softdma_chan_init(struct softdma *sd, struct device *dev, unsigned int i)
{
	struct softdma_chan *sc = &sd->chan[i];

	sc->wq = alloc_ordered_workqueue("softdma-%u", 0, i);
	if (!sc->wq)
		return -ENOMEM;
	spin_lock_init(&sc->lock);
	INIT_LIST_HEAD(&sc->submitted);
	INIT_LIST_HEAD(&sc->issued);
	INIT_LIST_HEAD(&sc->hung);
	init_waitqueue_head(&sc->room);
	INIT_DELAYED_WORK(&sc->work, softdma_work);
	sc->chan.device = &sd->dma;
	sc->chan.cookie = DMA_MIN_COOKIE;
	sc->chan.completed_cookie = DMA_MIN_COOKIE;
	list_add_tail(&sc->chan.device_node, &sd->dma.channels);
	return 0;
}

static void softdma_exit_channels(void *data)
{
	struct softdma *sd = data;
	unsigned int i;

	WRITE_ONCE(softdma, NULL);
	for (i = 0; i < channels; i++) {
		if (sd->chan[i].wq)
			destroy_workqueue(sd->chan[i].wq);
	}
}

static int softdma_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct softdma *sd;
	unsigned int i;
	int ret;

	sd = devm_kzalloc(dev, sizeof(*sd), GFP_KERNEL);
	if (!sd)
		return -ENOMEM;
	ret = dma_coerce_mask_and_coherent(dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	ret = devm_add_action_or_reset(dev, softdma_exit_channels, sd);
	if (ret)
		return ret;
	INIT_LIST_HEAD(&sd->dma.channels);
	for (i = 0; i < channels; i++) {
		ret = softdma_chan_init(sd, dev, i);
		if (ret)
			return ret;
	}
	dma_cap_set(DMA_MEMCPY, sd->dma.cap_mask);
	/* As the driver of Intel's DSA has it: memcpy channels to be asked for, not shared. */
	dma_cap_set(DMA_PRIVATE, sd->dma.cap_mask);
	dma_cap_set(DMA_COMPLETION_NO_ORDER, sd->dma.cap_mask);
	sd->dma.dev = dev;
	sd->dma.copy_align = align;
	sd->dma.residue_granularity = DMA_RESIDUE_GRANULARITY_DESCRIPTOR;
	sd->dma.device_free_chan_resources = softdma_free_chan_resources;
	sd->dma.device_prep_dma_memcpy = softdma_prep_memcpy;
	sd->dma.device_issue_pending = softdma_issue_pending;
	sd->dma.device_tx_status = softdma_tx_status;
	sd->dma.device_terminate_all = softdma_terminate_all;
	sd->dma.device_synchronize = softdma_synchronize;
	WRITE_ONCE(softdma, sd);
	return dmaenginem_async_device_register(&sd->dma);
}

static struct platform_driver softdma_driver = {
	.probe = softdma_probe,
	.driver = {.name = "softdma"},
};

static struct platform_device *softdma_device;

static int __init softdma_init(void)
{
	int ret;

	if (!channels || channels > SOFTDMA_CHANNELS_MAX)
		return -EINVAL;
	ret = platform_driver_register(&softdma_driver);
	if (ret)
		return ret;
	softdma_device = platform_device_register_simple("softdma", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(softdma_device)) {
		platform_driver_unregister(&softdma_driver);
		return PTR_ERR(softdma_device);
	}
	return 0;
}
module_init(softdma_init);

static void __exit softdma_exit(void)
{
	platform_device_unregister(softdma_device);
	platform_driver_unregister(&softdma_driver);
}
module_exit(softdma_exit);

MODULE_DESCRIPTION("DMA engine in software that fails on demand, for tests");
MODULE_AUTHOR("onecopy maintainers");
MODULE_LICENSE("GPL");
