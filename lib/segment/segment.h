/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_SEGMENT_H
#define OC_SEGMENT_H

/* Making and mapping the control segment. Used by oc_node_join() and
 * oc_node_leave() alone. */

#include "segment/node.h"

/* Rank 0: makes the segment for node->nranks and maps it. Sets segment_fd, segment and
 * ranks. -EFBIG when RLIMIT_FSIZE forbids it, or what the system said. */
int oc_segment_create(struct oc_node *node);

/* The others: maps the segment behind @fd, which becomes node->segment_fd, after
 * making sure that it cannot fault. -EPROTO when it is none of ours. Closes @fd
 * on failure. */
int oc_segment_open(struct oc_node *node, int fd);

/* Undoes either; does nothing before. */
void oc_segment_close(struct oc_node *node);

#endif
