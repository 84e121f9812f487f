/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_DMA_H
#define OCK_DMA_H

/*
 * Copies by dmaengine channels. async.c and knem.c say when, dma.c how.
 *
 * Channels are asked for when first wanted and given back when the last holder
 * is gone, so that the module keeps no engine from others, nor its driver from
 * being unloaded, while nobody uses it.
 */

#include <linux/err.h>
#include <linux/types.h>

#include "copy.h"

struct ock_channel;

#ifdef CONFIG_DMA_ENGINE

#define OCK_DMA_SUPPORTED true

/* Keeps channels, once found, until as many ock_dma_unhold(). May sleep. */
void ock_dma_hold(void);
void ock_dma_unhold(void);

/*
 * Whether ock_dma_channel() would find one: 0, or its error. Whoever holds nothing gets a
 * true answer too. May sleep.
 */
int ock_dma_available(void);

/*
 * A channel near the current CPU; -ENODEV: none, -ENOMEM. Whoever gets one holds until its
 * ock_dma_leave(), however many it gets. @holds says whether it does: false at first. May sleep.
 */
struct ock_channel *ock_dma_channel(bool *holds);
void ock_dma_leave(bool *holds);

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

#define OCK_DMA_SUPPORTED false

static inline void ock_dma_hold(void)
{
}

static inline void ock_dma_unhold(void)
{
}

static inline int ock_dma_available(void)
{
	return -ENODEV;
}

static inline struct ock_channel *ock_dma_channel(bool *holds)
{
	return ERR_PTR(-ENODEV);
}

static inline void ock_dma_leave(bool *holds)
{
}

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
