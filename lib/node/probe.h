/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROBE_H
#define OC_PROBE_H

/*
 * Finding out by real copies which peers can be reached how, once, while they
 * join. Every rank shows a block with a random token; a peer that reads the
 * token through an address is looking at the right process, and one that
 * writes its echo there and reads it back can write too.
 */

#include "segment/node.h"

/* Makes this rank's block, in the arena if there is one, and publishes it.
 * Before the vote that lets peers probe. */
int oc_probe_publish(struct oc_node *node);

/* Probes every peer in both directions; fills node->peers. Between two votes.
 * False when a mapped arena did not show what its owner wrote. */
bool oc_probe_peers(struct oc_node *node);

/* Frees the block. After the vote that says that everybody has probed. */
void oc_probe_retract(struct oc_node *node);

#endif
