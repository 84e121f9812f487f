/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_CHANNEL_H
#define OCK_CHANNEL_H

/*
 * Channels of DMA engines, and the pieces they move. Of dma.c only; its header
 * says how channels are held.
 */

#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/wait.h>

struct ock_channel;

/*
 * A piece has ended: 0, -EIO, or -ETIMEDOUT when the channel was terminated. Called
 * once, in any context but a hard interrupt.
 */
typedef void (*ock_piece_end_t)(void *data, int err);

/* Whether the piece's place and size suit the engine. */
bool ock_channel_fits(const struct ock_channel *channel, u32 from_offset, u32 to_offset,
		      size_t bytes);

/*
 * Sends off @bytes, contiguous at both ends. Success: @end will be called, perhaps
 * before this returns. -EBUSY: no descriptor is free now. -EIO, -ENOMEM. Sleeps.
 */
int ock_channel_submit(struct ock_channel *channel, struct page *from, u32 from_offset,
		       struct page *to, u32 to_offset, size_t bytes, ock_piece_end_t end,
		       void *data);

/* Where to wait for pieces to end; woken by those who end them. */
wait_queue_head_t *ock_channel_room(struct ock_channel *channel);

/*
 * Terminates the channel if it owes an answer and has given none for dmatimeout.
 * False: it cannot be terminated and is not to be used any more. Sleeps.
 */
bool ock_channel_check(struct ock_channel *channel);

/* The period between two checks, in jiffies. */
unsigned long ock_channel_patience(void);

#endif
