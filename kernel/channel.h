/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_CHANNEL_H
#define OCK_CHANNEL_H

/*
 * Channels of DMA engines. Who wants a copy made by one looks for it and holds it (the
 * first part); who makes the copy, dma.c alone, sends pieces over it (the second).
 *
 * Channels are asked for when first wanted and given back when the last holder
 * is gone, so that the module keeps no engine from others, nor its driver from
 * being unloaded, while nobody uses it.
 */

#include <linux/err.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/types.h>

struct ock_channel;

#ifdef CONFIG_DMA_ENGINE

#define OCK_DMA_SUPPORTED true

/*
 * What ock_channels_take() would say: 0, there is one, or its error. Whoever holds nothing gets
 * a true answer too. May sleep.
 */
int ock_channels_probe(void);

/*
 * A channel near the current CPU; -ENODEV: none, -ENOMEM. Whoever gets one holds until its
 * ock_channels_leave(), however many it gets. @holds says whether it does: false at first. May
 * sleep.
 */
struct ock_channel *ock_channels_take(bool *holds);
void ock_channels_leave(bool *holds);

#else

#define OCK_DMA_SUPPORTED false

static inline int ock_channels_probe(void)
{
	return -ENODEV;
}

static inline struct ock_channel *ock_channels_take(bool *holds)
{
	return ERR_PTR(-ENODEV);
}

static inline void ock_channels_leave(bool *holds)
{
}

#endif

static inline bool ock_channels_available(void)
{
	return !ock_channels_probe();
}

/* ---- for dma.c, which is built where there are engines ---- */

/* Keeps channels, once found, until as many ock_channels_unhold(). May sleep. */
void ock_channels_hold(void);
void ock_channels_unhold(void);

struct ock_piece;

/*
 * A piece has ended: 0, -EIO, or -ETIMEDOUT when the channel was terminated. Called
 * once, in any context but a hard interrupt. The piece is its owner's again.
 */
typedef void (*ock_piece_end_t)(struct ock_piece *piece, int err);

/* What one descriptor moves. Its owner's memory, and the channel's while it is on its way. */
struct ock_piece {
	void *data; /* the owner's */
	/* The channel's. */
	struct ock_channel *channel;
	struct list_head node; /* of those in flight */
	ock_piece_end_t end;
	dma_addr_t from;
	dma_addr_t to;
	size_t bytes;
};

/* Where bytes begin that are contiguous in physical memory. */
struct ock_place {
	struct page *page;
	u32 offset;
};

/* Whether the engine takes pieces of any place and size. */
bool ock_channel_fits_all(const struct ock_channel *channel);

/* Whether this one suits it. */
bool ock_channel_fits(const struct ock_channel *channel, const struct ock_place *from,
		      const struct ock_place *to, size_t bytes);

/*
 * Sends off @bytes, contiguous at both ends. Success: @end will be called, perhaps
 * before this returns. -EBUSY: no descriptor is free now. -EIO, -ENOMEM. -EINTR: killed.
 * -ETIMEDOUT: the channel is not to be used any more. Sleeps, with some drivers until
 * they have a descriptor.
 */
int ock_channel_submit(struct ock_channel *channel, struct ock_piece *piece,
		       const struct ock_place *from, const struct ock_place *to, size_t bytes,
		       ock_piece_end_t end);

/*
 * Terminates the channel if it owes an answer and has given none for dmatimeout.
 * False: it cannot be terminated and is not to be used any more. Sleeps, for another dmatimeout
 * if need be, but not for the driver.
 */
bool ock_channel_check(struct ock_channel *channel);

/* The period between two checks, in jiffies. */
unsigned long ock_channel_patience(void);

#endif
