/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CTL_H
#define OC_CTL_H

/* Making and mapping the control segment and the peers' arenas. Used by
 * oc_node_join() and oc_node_leave() alone. */

#include "node.h"

/* Rank 0: makes the segment for node->nranks and maps it. Sets ctl_fd, ctl and
 * ranks. -EFBIG when RLIMIT_FSIZE forbids it, or what the system said. */
int oc_ctl_create(struct oc_node *node);

/* The others: maps the segment behind @fd, which becomes node->ctl_fd, after
 * making sure that it cannot fault. -EPROTO when it is none of ours. Closes @fd
 * on failure. */
int oc_ctl_open(struct oc_node *node, int fd);

/* Undoes either; does nothing before. */
void oc_ctl_close(struct oc_node *node);

/* Maps a peer's arena of @size bytes; @fd stays the caller's and may be closed.
 * The pages come when they are touched. */
int oc_ctl_map_arena(struct oc_node_peer *peer, int fd, uint64_t size);
void oc_ctl_unmap_arena(struct oc_node_peer *peer);

#endif
