/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_DMA_H
#define OCK_DMA_H

/*
 * Copies by a channel of a DMA engine, which the caller has from channel.h. async.c and
 * knem_copy.c say when, dma.c how.
 */

#include <linux/errno.h>
#include <linux/types.h>

#include "copy.h"

struct ock_channel;

#ifdef CONFIG_DMA_ENGINE

/*
 * Starts to move what *copy says; both ends are regions or pinned. Success takes
 * over all that *copy holds and leaves it initialised. @done is called once,
 * from a workqueue, perhaps before this returns: 0, -EIO the engine failed,
 * -ETIMEDOUT it fell silent, -EINTR killed while waiting for room. By then
 * the pages are given back, unless the engine is silent and cannot be stopped:
 * it may still write. What is too short or not aligned as the engine
 * needs it, and what it has no descriptors for, the CPU copies. -ENOMEM. Sleeps.
 */
int ock_dma_start(struct ock_channel *channel, struct ock_copy *copy,
		  void (*done)(void *data, int err, u64 copied), void *data);

/*
 * The same, and waits; killable. The result is @done's. Without memory for it the
 * CPU copies.
 */
int ock_dma_run(struct ock_channel *channel, struct ock_copy *copy, u64 *copied);

int ock_dma_init(void);
void ock_dma_exit(void);

#else

static inline int ock_dma_start(struct ock_channel *channel, struct ock_copy *copy,
				void (*done)(void *data, int err, u64 copied), void *data)
{
	return -ENODEV;
}

static inline int ock_dma_run(struct ock_channel *channel, struct ock_copy *copy, u64 *copied)
{
	return -ENODEV;
}

static inline int ock_dma_init(void)
{
	return 0;
}

static inline void ock_dma_exit(void)
{
}

#endif

#endif
