/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ALIVE_H
#define OC_ALIVE_H

/* Who of the node lives, and says so. */

#include "segment/node.h"

/* False when the peer has left or its process is known to be gone. Costs a
 * system call or two: for slow paths. Any thread. */
bool oc_node_peer_alive(const struct oc_node *node, uint32_t peer);

/* The same, but what was found less than @ms ms ago counts; for each copy, since a peer's memory
 * outlives it here. What it costs then is reading a clock. No thread is cancelled in here. */
bool oc_node_peer_lived(const struct oc_node *node, uint32_t peer, uint64_t ms);

/* True for the first rank of the node that asks this of a dead one: who is to say so. */
static inline bool oc_node_mourn(const struct oc_node *node, uint32_t peer)
{
	return !atomic_exchange(&node->ranks[peer].mourned, 1);
}

static inline bool oc_node_mourned(const struct oc_node *node, uint32_t peer)
{
	return atomic_load(&node->ranks[peer].mourned);
}

/* Takes the lock that says "alive" and fills in who this process is. */
int oc_node_declare(struct oc_node *node);

/* True if the control segment's descriptor still is what was joined: lib/base/file.h. */
bool oc_node_owns_fd(const struct oc_node *node);

#endif
