/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_WINDOW_H
#define OC_WINDOW_H

/*
 * Peers' arenas in this process. Where all of them fit into what lib/base/space.h allows
 * they are mapped whole, once, when the node is joined. Else what is read or written
 * is mapped when it is needed, in windows that stay until others need their room:
 * bounded in bytes mapped and in bytes touched, the least recently used go first.
 *
 * A window is made without a descriptor, out of a page of the arena that stays
 * mapped (mremap(2) with an old size of zero): programs that close every descriptor
 * do no harm, and no rank has to hold one of each peer.
 *
 * An address is good for the use in which it was asked for, that is, until
 * oc_window_end(): windows are unmapped only when every use is over that could have
 * seen them. A use belongs to one thread; there are as many at once as threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/space.h"
#include "segment/node.h"

struct oc_window_use {
	struct oc_windows *windows; /* NULL: all arenas are mapped whole */
	uint64_t since;		    /* on the clock of the windows */
	bool urgent;		    /* has the last quarter of the room: there is no other way */
	struct oc_window_use *prev, *next;
};

/* Once all arenas' sizes are known (node->ranks): decides how they are mapped. 0 or
 * -ENOMEM. */
int oc_windows_create(struct oc_node *node);

/* Unmaps everything, but in a forked child, which has none of it. */
void oc_windows_destroy(struct oc_node *node);

/* Makes the arena of @rank, of the size in node->ranks, reachable, or undoes it. @fd
 * stays the caller's and may be closed. 0 or -errno. For the joining thread. */
int oc_window_open(struct oc_node *node, uint32_t rank, int fd);
void oc_window_close(struct oc_node *node, uint32_t rank);

/* Takes a lock. */
void oc_window_enter(struct oc_window_use *use);
void oc_window_leave(struct oc_window_use *use);

/* Nothing where arenas are mapped whole. */
static inline void oc_window_begin(struct oc_window_use *use, struct oc_node *node)
{
	*use = (struct oc_window_use){.windows = node->windows};
	if (use->windows)
		oc_window_enter(use);
}

static inline void oc_window_end(struct oc_window_use *use)
{
	if (use->windows)
		oc_window_leave(use);
}

/*
 * Where [off, off + len) of a peer's arena lies here. NULL when that is not in its
 * arena, or cannot be mapped now: no address space, no memory, more mappings than the
 * system allows, or all of the room is in use. Then there are other ways to it.
 */
char *oc_window_at(const struct oc_window_use *use, struct oc_node *node, uint32_t rank,
		   uint64_t off, size_t len);

#endif
