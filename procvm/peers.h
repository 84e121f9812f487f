/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_PEERS_H
#define OC_PROCVM_PEERS_H

/*
 * The ranks of the node as the two calls name them, by PID, and what memory of theirs is shared.
 * Nothing here is of the node itself, so a call that has no use for that needs not hold it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "answer.h"
#include "segment/node.h"

struct oc_procvm_peer {
	uint32_t pid;
	uint32_t rank;
	/* At the peer's own addresses. Of no bytes where there is none. */
	struct {
		uint64_t from;
		uint64_t bytes;
	} arena, static_data;
};

/* From now on they are those of @node in this PID namespace. 0 or -ENOMEM, and then they are who
 * they were. One thread at a time. */
int oc_procvm_peers_are(const struct oc_node *node);

/*
 * Whether a call that is on none of them means a rank in another PID namespace, by its number
 * there. Here that is another process's, or a thread's of this one, so the kernel would copy what
 * lies at that place of the wrong one. Without onecopy there is mostly nothing; but arenas have the
 * same addresses, and peers' are mapped here. True if it is about shared memory of that rank, or
 * names a thread of this process. Any thread.
 */
bool oc_procvm_means_stranger(const struct oc_procvm_call *call);

/* NULL if it is none. What it points to stays as it is. Any thread. */
const struct oc_procvm_peer *oc_procvm_peer_of(pid_t pid);

/* Whether nothing of a call on it can be done here, where that is cheap to see: it is of one piece
 * there, which is not shared. Short messages are such, and cost little more than the call. */
bool oc_procvm_is_private(const struct oc_procvm_peer *peer, const struct oc_procvm_call *call);

#endif
