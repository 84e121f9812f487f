// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by dmaengine.
 *
 * An operation is cut into pieces: bytes contiguous in physical memory at both
 * ends, one descriptor each (channel.c). It counts pieces in flight, plus one
 * while pieces are still being made; who counts to zero queues its end, which
 * gives everything back, in a workqueue, for unpinning may sleep.
 *
 * Its watchdog looks at the channel rather than the operation, which may have to
 * wait for others. With an engine that is silent and cannot be stopped the
 * operation is reported failed, but keeps its pages, and this module, until the
 * engine answers.
 */
#include "dma.h"

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "channel.h"
#include "stats.h"

/* Every engine takes this much in one descriptor. */
#define OCK_DMA_PIECE (256u << 10)
/* Pieces of one operation in flight. */
#define OCK_DMA_DEPTH 64

static unsigned long dmamin = 1024;
module_param(dmamin, ulong, 0644);
MODULE_PARM_DESC(dmamin, "bytes below which the CPU copies though DMA is asked for (1024)");

struct ock_dma_op {
	struct ock_channel *channel;
	struct ock_copy copy;
	u64 bytes;
	u64 sent; /* of them, to the engine */
	void (*done)(void *data, int err, u64 copied);
	void *data;
	bool told;	  /* done was called */
	int err;	  /* the first, by cmpxchg() */
	atomic_t pending; /* pieces in flight, and one while more are made */
	struct delayed_work watch;
	struct work_struct end; /* queued once */
};

static struct workqueue_struct *ock_dma_wq;

static void ock_dma_op_fail(struct ock_dma_op *op, int err)
{
	cmpxchg(&op->err, 0, err);
	wake_up_all(ock_channel_room(op->channel));
}

/* The operation may be gone afterwards. Any context. */
static void ock_dma_op_less(struct ock_dma_op *op)
{
	struct ock_channel *channel = op->channel;

	if (atomic_dec_and_test(&op->pending))
		queue_work(ock_dma_wq, &op->end);
	else
		wake_up_all(ock_channel_room(channel));
}

static void ock_dma_piece_end(void *data, int err)
{
	struct ock_dma_op *op = data;

	if (err)
		ock_dma_op_fail(op, err);
	ock_dma_op_less(op);
}

/* Success: the piece is on its way. -EBUSY: not now. Else it cannot go by DMA. */
static int ock_dma_op_submit(struct ock_dma_op *op, struct page *from, u32 from_offset,
			     struct page *to, u32 to_offset, size_t bytes)
{
	int err;

	if (!ock_channel_fits(op->channel, from_offset, to_offset, bytes))
		return -EINVAL;
	/* Before: it may end at once. The submitter's own count keeps it above 0. */
	atomic_inc(&op->pending);
	err = ock_channel_submit(op->channel, from, from_offset, to, to_offset, bytes,
				 ock_dma_piece_end, op);
	if (err)
		atomic_dec(&op->pending);
	return err;
}

static void ock_dma_op_tell(struct ock_dma_op *op)
{
	/* The watchdog tells while pieces may yet fail. */
	int err = READ_ONCE(op->err);

	if (op->told)
		return;
	op->told = true;
	op->done(op->data, err, err ? 0 : op->bytes);
}

/* Bytes from @position on, by the CPU. */
static int ock_dma_op_copy(struct ock_dma_op *op, u64 position, u64 bytes)
{
	struct ock_copy part = op->copy;

	part.source.offset += position;
	part.destination.offset += position;
	part.length = bytes;
	return ock_copy_run(&part, NULL);
}

/* Waits until fewer than @pending pieces are in flight. */
static int ock_dma_op_wait(struct ock_dma_op *op, int pending)
{
	return wait_event_killable(*ock_channel_room(op->channel),
				   atomic_read(&op->pending) - 1 < pending || READ_ONCE(op->err))
		       ? -EINTR
		       : 0;
}

/* Makes the pieces. Errors other than of pieces in flight. */
static int ock_dma_op_feed(struct ock_dma_op *op)
{
	struct ock_cursor from;
	struct ock_cursor to;
	u64 position = 0;
	int err;

	if (op->bytes < READ_ONCE(dmamin))
		return ock_dma_op_copy(op, 0, op->bytes);
	ock_cursor_init(&from, op->copy.source.pages, op->copy.source.offset);
	ock_cursor_init(&to, op->copy.destination.pages, op->copy.destination.offset);
	while (position < op->bytes && !READ_ONCE(op->err)) {
		struct page *source;
		struct page *destination;
		u32 source_offset;
		u32 destination_offset;
		size_t piece;
		int flying;

		err = ock_dma_op_wait(op, OCK_DMA_DEPTH);
		if (err)
			return err;
		if (ock_copy_stopped(&op->copy))
			return -EINTR;
		piece = min_t(u64, op->bytes - position, OCK_DMA_PIECE);
		piece = ock_cursor_peek(&from, piece, &source, &source_offset);
		piece = ock_cursor_peek(&to, piece, &destination, &destination_offset);
		flying = atomic_read(&op->pending) - 1;
		err = ock_dma_op_submit(op, source, source_offset, destination, destination_offset,
					piece);
		if (err == -EBUSY && flying) {
			err = ock_dma_op_wait(op, flying);
			if (err)
				return err;
			continue;
		}
		if (!err)
			op->sent += piece;
		else
			err = ock_dma_op_copy(op, position, piece);
		if (err)
			return err;
		ock_cursor_advance(&from, piece);
		ock_cursor_advance(&to, piece);
		position += piece;
		cond_resched();
	}
	return 0;
}

static void ock_dma_op_end(struct work_struct *work)
{
	struct ock_dma_op *op = container_of(work, struct ock_dma_op, end);

	cancel_delayed_work_sync(&op->watch);
	ock_copy_deinit(&op->copy);
	ock_stat_inc(OCK_STAT_DMA);
	if (!op->err)
		ock_stat_add(OCK_STAT_BYTES, op->sent);
	ock_dma_op_tell(op);
	kfree(op);
	ock_dma_unhold();
	/* ock_dma_exit() waits for this function to return. */
	module_put(THIS_MODULE);
}

static void ock_dma_op_watch(struct work_struct *work)
{
	struct ock_dma_op *op = container_of(to_delayed_work(work), struct ock_dma_op, watch);

	if (!ock_channel_check(op->channel)) {
		ock_dma_op_fail(op, -ETIMEDOUT);
		ock_dma_op_tell(op);
		return;
	}
	queue_delayed_work(ock_dma_wq, &op->watch, ock_channel_patience());
}

int ock_dma_start(struct ock_channel *channel, struct ock_copy *copy,
		  void (*done)(void *data, int err, u64 copied), void *data)
{
	struct ock_dma_op *op;
	int err;

	op = kzalloc(sizeof(*op), GFP_KERNEL_ACCOUNT);
	if (!op)
		return -ENOMEM;
	op->channel = channel;
	op->bytes = ock_copy_bytes(copy);
	op->copy = *copy;
	ock_copy_init(copy);
	op->done = done;
	op->data = data;
	atomic_set(&op->pending, 1);
	INIT_DELAYED_WORK(&op->watch, ock_dma_op_watch);
	INIT_WORK(&op->end, ock_dma_op_end);
	/* It may outlive the file that it is for. */
	__module_get(THIS_MODULE);
	ock_dma_hold();

	queue_delayed_work(ock_dma_wq, &op->watch, ock_channel_patience());
	err = ock_dma_op_feed(op);
	if (err)
		ock_dma_op_fail(op, err);
	ock_dma_op_less(op);
	return 0;
}

/* Waits for an operation. On the heap: a killed waiter leaves it behind. */
struct ock_dma_waiter {
	refcount_t refs;
	struct completion done;
	int err;
	u64 copied;
};

static void ock_dma_waiter_put(struct ock_dma_waiter *waiter)
{
	if (refcount_dec_and_test(&waiter->refs))
		kfree(waiter);
}

static void ock_dma_waiter_done(void *data, int err, u64 copied)
{
	struct ock_dma_waiter *waiter = data;

	waiter->err = err;
	waiter->copied = copied;
	complete(&waiter->done);
	ock_dma_waiter_put(waiter);
}

int ock_dma_run(struct ock_channel *channel, struct ock_copy *copy, u64 *copied)
{
	struct ock_dma_waiter *waiter;
	int err;

	waiter = kzalloc(sizeof(*waiter), GFP_KERNEL_ACCOUNT);
	if (!waiter)
		return ock_copy_run(copy, copied);
	refcount_set(&waiter->refs, 2);
	init_completion(&waiter->done);
	err = ock_dma_start(channel, copy, ock_dma_waiter_done, waiter);
	if (err) {
		kfree(waiter);
		return ock_copy_run(copy, copied);
	}
	if (wait_for_completion_killable(&waiter->done)) {
		err = -EINTR;
	} else {
		err = waiter->err;
		*copied = waiter->copied;
	}
	ock_dma_waiter_put(waiter);
	return err;
}

int ock_dma_init(void)
{
	ock_dma_wq = alloc_workqueue("onecopy-dma", WQ_UNBOUND, 0);
	return ock_dma_wq ? 0 : -ENOMEM;
}

void ock_dma_exit(void)
{
	destroy_workqueue(ock_dma_wq);
	/* Engines' last answers may have counted and not yet returned. */
	synchronize_rcu();
}
