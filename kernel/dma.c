// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies by dmaengine.
 *
 * An operation is cut into pieces: bytes contiguous in physical memory at both
 * ends, one descriptor each (channel.c). So many at most are in flight, and the feeder goes
 * when there are: first who submits, so that the engine begins at once, later a
 * worker, called by the pieces that end. Workers serve nobody in particular, so what the CPU
 * has to copy, for it does not suit the engine, is copied by who submits, beforehand.
 *
 * It counts pieces in flight, plus one for the feeder while there is more to feed. Who
 * counts to zero has the worker end it: everything is given back, which may sleep.
 * While the feeder is away the count is OCK_DMA_AWAY higher, less what may be in flight
 * still when it is called; so exactly one piece sees that it has to, without looking
 * at the operation, which may be gone by then for all others.
 *
 * Its watchdog looks at the channel rather than the operation, which may have to
 * wait for others. With an engine that is silent and cannot be stopped the
 * operation is reported failed, but keeps its pages, and this module, until the
 * engine answers. Watchdogs have a workqueue of their own: workers may sleep for a descriptor
 * of just that engine.
 */
#include "dma.h"

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/completion.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "channel.h"
#include "params.h"
#include "stats.h"
#include "trace.h"

/* Every engine takes this much in one descriptor. */
#define OCK_DMA_PIECE (256u << 10)
/* Pieces of one operation in flight, each a bit of op->used. */
#define OCK_DMA_DEPTH 64u
#define OCK_DMA_AWAY  (1 << 20)

struct ock_dma_op {
	refcount_t refs; /* its own, who waits for it */
	struct ock_channel *channel;
	struct ock_copy copy;
	u64 bytes;
	void (*done)(void *data, int err, u64 copied);
	void *data;
	spinlock_t lock; /* of the next, and of copy.stop */
	bool told;	 /* done was called, or is not to be */
	int err;	 /* the first, by cmpxchg() */
	struct delayed_work watch;

	/* The feeder's. */
	struct ock_cursor from;
	struct ock_cursor to;
	u64 position;
	u64 sent; /* bytes, to the engine */
	int low;  /* it is called when no more are in flight */

	atomic_t pending;	 /* see above */
	struct work_struct work; /* feeds, or ends */
	unsigned long used;	 /* of the pieces */
	unsigned int depth;
	struct ock_piece pieces[];
};

static struct workqueue_struct *ock_dma_wq;
static struct workqueue_struct *ock_dma_watch_wq;

static void ock_dma_op_put(struct ock_dma_op *op)
{
	if (refcount_dec_and_test(&op->refs))
		kfree(op);
}

static void ock_dma_op_fail(struct ock_dma_op *op, int err)
{
	cmpxchg(&op->err, 0, err);
}

/* Counts one less. The operation may be gone afterwards. Any context. */
static void ock_dma_op_less(struct ock_dma_op *op)
{
	int pending = atomic_dec_return(&op->pending);

	if (!pending || pending == OCK_DMA_AWAY + 1)
		queue_work(ock_dma_wq, &op->work);
}

/* Whether somebody else feeds from now on, when at most @low are in flight. */
static bool ock_dma_op_away(struct ock_dma_op *op, int low)
{
	op->low = low;
	if (atomic_add_return(OCK_DMA_AWAY - low, &op->pending) > OCK_DMA_AWAY + 1)
		return true;
	atomic_sub(OCK_DMA_AWAY - low, &op->pending);
	return false;
}

static void ock_dma_piece_end(struct ock_piece *piece, int err)
{
	struct ock_dma_op *op = piece->data;

	if (err)
		ock_dma_op_fail(op, err);
	clear_bit(piece - op->pieces, &op->used);
	ock_dma_op_less(op);
}

/* Whoever tells first. What is to stop the copy may be gone afterwards. */
static bool ock_dma_op_tells(struct ock_dma_op *op)
{
	bool first;

	spin_lock(&op->lock);
	first = !op->told;
	op->told = true;
	op->copy.stop = NULL;
	spin_unlock(&op->lock);
	return first;
}

static void ock_dma_op_tell(struct ock_dma_op *op)
{
	/* The watchdog tells while pieces may yet fail. */
	int err = READ_ONCE(op->err);

	if (ock_dma_op_tells(op))
		op->done(op->data, err, err ? 0 : op->bytes);
}

static bool ock_dma_op_stopped(struct ock_dma_op *op)
{
	bool stopped;

	spin_lock(&op->lock);
	stopped = ock_copy_stopped(&op->copy);
	spin_unlock(&op->lock);
	return stopped;
}

/* ---- pieces ---- */

/* Bytes at @cursor that follow each other in physical memory, whatever they are part of. */
static size_t ock_dma_reach(const struct ock_cursor *at, size_t max, struct ock_place *place)
{
	struct ock_cursor cursor = *at;
	size_t more = ock_cursor_peek(&cursor, max, &place->page, &place->offset);
	phys_addr_t start = page_to_phys(place->page) + place->offset;
	struct ock_place next;
	size_t bytes = more;

	while (bytes < max) {
		ock_cursor_advance(&cursor, more);
		more = ock_cursor_peek(&cursor, max - bytes, &next.page, &next.offset);
		if (!more || page_to_phys(next.page) + next.offset != start + bytes)
			break;
		bytes += more;
	}
	return bytes;
}

/* The piece where the feeder is. */
static size_t ock_dma_op_peek(struct ock_dma_op *op, struct ock_place *from, struct ock_place *to)
{
	size_t bytes = min_t(u64, op->bytes - op->position, OCK_DMA_PIECE);

	bytes = ock_dma_reach(&op->from, bytes, from);
	return ock_dma_reach(&op->to, bytes, to);
}

static void ock_dma_op_advance(struct ock_dma_op *op, size_t bytes)
{
	ock_cursor_advance(&op->from, bytes);
	ock_cursor_advance(&op->to, bytes);
	op->position += bytes;
}

static void ock_dma_op_rewind(struct ock_dma_op *op)
{
	ock_cursor_init(&op->from, op->copy.source.pages, op->copy.source.offset);
	ock_cursor_init(&op->to, op->copy.destination.pages, op->copy.destination.offset);
	op->position = 0;
}

/* Bytes where the feeder is, by the CPU. */
static int ock_dma_op_copy(struct ock_dma_op *op, u64 bytes)
{
	struct ock_copy part;

	spin_lock(&op->lock);
	part = op->copy;
	spin_unlock(&op->lock);
	part.source.offset += op->position;
	part.destination.offset += op->position;
	part.length = bytes;
	/* It may be gone; a piece is not for long. */
	part.stop = NULL;
	return ock_copy_run(&part, NULL);
}

/* What does not suit the engine, by the CPU: all that ock_dma_op_feed() will leave out. */
static int ock_dma_op_prepare(struct ock_dma_op *op)
{
	ock_dma_op_rewind(op);
	if (ock_channel_fits_all(op->channel))
		return 0;
	while (op->position < op->bytes) {
		struct ock_place from;
		struct ock_place to;
		size_t piece = ock_dma_op_peek(op, &from, &to);
		int err = 0;

		if (ock_dma_op_stopped(op))
			return -EINTR;
		if (!ock_channel_fits(op->channel, &from, &to, piece))
			err = ock_dma_op_copy(op, piece);
		if (err)
			return err;
		ock_dma_op_advance(op, piece);
		cond_resched();
	}
	ock_dma_op_rewind(op);
	return 0;
}

/* Fewer are in flight than there may be. */
static int ock_dma_op_send(struct ock_dma_op *op, const struct ock_place *from,
			   const struct ock_place *to, size_t bytes)
{
	unsigned int nr = ffz(READ_ONCE(op->used));
	struct ock_piece *piece = &op->pieces[nr];
	int err;

	set_bit(nr, &op->used);
	piece->data = op;
	/* Before: it may end at once. The feeder's own count keeps it above 0. */
	atomic_inc(&op->pending);
	err = ock_channel_submit(op->channel, piece, from, to, bytes, ock_dma_piece_end);
	if (err) {
		atomic_dec(&op->pending);
		clear_bit(nr, &op->used);
	} else {
		op->sent += bytes;
	}
	return err;
}

/* Makes pieces until there are enough, or no more. The operation is the feeder's no more. */
static void ock_dma_op_feed(struct ock_dma_op *op)
{
	int err = 0;

	while (!err && op->position < op->bytes && !READ_ONCE(op->err)) {
		int flying = atomic_read(&op->pending) - 1;
		struct ock_place from;
		struct ock_place to;
		size_t piece;

		if (flying == op->depth) {
			if (ock_dma_op_away(op, op->depth / 2))
				return;
			continue;
		}
		if (ock_dma_op_stopped(op)) {
			err = -EINTR;
			break;
		}
		piece = ock_dma_op_peek(op, &from, &to);
		if (ock_channel_fits(op->channel, &from, &to, piece))
			err = ock_dma_op_send(op, &from, &to, piece);
		if (err == -EBUSY && flying) {
			if (ock_dma_op_away(op, flying - 1))
				return;
			err = 0;
			continue;
		}
		/* Others have all there is. */
		if (err == -EBUSY || err == -ENOMEM || err == -EIO)
			err = ock_dma_op_copy(op, piece);
		ock_dma_op_advance(op, piece);
		cond_resched();
	}
	if (err)
		ock_dma_op_fail(op, err);
	ock_dma_op_less(op);
}

/* ---- operations ---- */

static void ock_dma_op_end(struct ock_dma_op *op)
{
	cancel_delayed_work_sync(&op->watch);
	trace_onecopy_dma(ock_end_cookie(&op->copy.source), ock_end_cookie(&op->copy.destination),
			  op->bytes, op->sent, op->err);
	ock_copy_deinit(&op->copy);
	ock_stat_inc(OCK_STAT_DMA);
	if (!op->err)
		ock_stat_add(OCK_STAT_BYTES, op->sent);
	ock_dma_op_tell(op);
	ock_dma_op_put(op);
	ock_channels_unhold();
	/* ock_dma_exit() waits for this function to return. */
	module_put(THIS_MODULE);
}

static void ock_dma_op_work(struct work_struct *work)
{
	struct ock_dma_op *op = container_of(work, struct ock_dma_op, work);

	if (!atomic_read(&op->pending)) {
		ock_dma_op_end(op);
		return;
	}
	atomic_sub(OCK_DMA_AWAY - op->low, &op->pending);
	ock_dma_op_feed(op);
}

static void ock_dma_op_watch(struct work_struct *work)
{
	struct ock_dma_op *op = container_of(to_delayed_work(work), struct ock_dma_op, watch);

	if (!ock_channel_check(op->channel)) {
		ock_dma_op_fail(op, -ETIMEDOUT);
		ock_dma_op_tell(op);
		return;
	}
	queue_delayed_work(ock_dma_watch_wq, &op->watch, ock_channel_patience());
}

static struct ock_dma_op *ock_dma_op_create(struct ock_channel *channel, struct ock_copy *copy,
					    void (*done)(void *data, int err, u64 copied),
					    void *data)
{
	u64 bytes = ock_copy_bytes(copy);
	unsigned int depth = min_t(u64, (bytes >> PAGE_SHIFT) + 2, OCK_DMA_DEPTH);
	struct ock_dma_op *op;

	op = kzalloc(struct_size(op, pieces, depth), GFP_KERNEL_ACCOUNT);
	if (!op)
		return NULL;
	refcount_set(&op->refs, 1);
	op->channel = channel;
	op->bytes = bytes;
	op->depth = depth;
	op->copy = *copy;
	ock_copy_init(copy);
	op->done = done;
	op->data = data;
	spin_lock_init(&op->lock);
	atomic_set(&op->pending, 1);
	INIT_DELAYED_WORK(&op->watch, ock_dma_op_watch);
	INIT_WORK(&op->work, ock_dma_op_work);
	/* It may outlive the file that it is for. */
	__module_get(THIS_MODULE);
	ock_channels_hold();
	return op;
}

/* It may be gone afterwards. */
static void ock_dma_op_go(struct ock_dma_op *op)
{
	int err;

	queue_delayed_work(ock_dma_watch_wq, &op->watch, ock_channel_patience());
	if (op->bytes < READ_ONCE(ock_params.dmamin)) {
		err = ock_dma_op_copy(op, op->bytes);
		op->position = op->bytes;
	} else {
		err = ock_dma_op_prepare(op);
	}
	if (err)
		ock_dma_op_fail(op, err);
	ock_dma_op_feed(op);
}

int ock_dma_start(struct ock_channel *channel, struct ock_copy *copy,
		  void (*done)(void *data, int err, u64 copied), void *data)
{
	struct ock_dma_op *op = ock_dma_op_create(channel, copy, done, data);

	if (!op)
		return -ENOMEM;
	ock_dma_op_go(op);
	return 0;
}

/* Who waits for an operation that does not leave it behind. */
struct ock_dma_waiter {
	struct completion told;
	int err;
	u64 copied;
};

static void ock_dma_waiter_done(void *data, int err, u64 copied)
{
	struct ock_dma_waiter *waiter = data;

	waiter->err = err;
	waiter->copied = copied;
	complete(&waiter->told);
}

int ock_dma_run(struct ock_channel *channel, struct ock_copy *copy, u64 *copied)
{
	struct ock_dma_waiter waiter = {.err = -EINTR};
	struct ock_dma_op *op = ock_dma_op_create(channel, copy, ock_dma_waiter_done, &waiter);

	if (!op)
		return ock_copy_run(copy, copied);
	init_completion(&waiter.told);
	refcount_inc(&op->refs);
	ock_dma_op_go(op);
	if (wait_for_completion_killable(&waiter.told)) {
		ock_dma_op_fail(op, -EINTR);
		/* Who tells now does not sleep. */
		if (!ock_dma_op_tells(op))
			wait_for_completion(&waiter.told);
	}
	ock_dma_op_put(op);
	*copied = waiter.copied;
	return waiter.err;
}

int ock_dma_init(void)
{
	ock_dma_wq = alloc_workqueue("onecopy-dma", WQ_UNBOUND, 0);
	if (!ock_dma_wq)
		return -ENOMEM;
	ock_dma_watch_wq = alloc_workqueue("onecopy-watch", WQ_UNBOUND, 0);
	if (!ock_dma_watch_wq) {
		destroy_workqueue(ock_dma_wq);
		return -ENOMEM;
	}
	return 0;
}

void ock_dma_exit(void)
{
	destroy_workqueue(ock_dma_wq);
	destroy_workqueue(ock_dma_watch_wq);
	/* Engines' last answers may have counted and not yet returned. */
	synchronize_rcu();
}
