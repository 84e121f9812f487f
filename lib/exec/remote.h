/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_REMOTE_H
#define OC_REMOTE_H

/*
 * Slots outside the shared heap: what a rank says of its own (offer), and how it gets at
 * its peers'. By what mechanism is the matter of lib/access/access.h; a slot is turned
 * into a target for it here.
 *
 * Called in the thread of the operation.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/op.h"
#include "plan/plan.h"

/*
 * Says where the send slot is (if it is not in the heap and peers read it) and
 * the receive slot (if it is not and peers could write it): sets bits of *@flags
 * and the addresses in op->line. A slot without a bit is for others to place.
 */
void oc_remote_offer(struct oc_op *op, uint32_t *flags);

/* Peers could not get at this rank's send or receive slot the way it was offered:
 * offers it another way from the next operation on. */
void oc_remote_blame(struct oc_op *op, enum oc_slot slot);

/* Ends the holds on one's own memory, which no peer is at any more, and on peers'. Does
 * nothing where oc_remote_offer() was not called. */
void oc_remote_end(struct oc_op *op);

/* [off, off + len) of @peer's slot, shown here until oc_remote_end(). NULL when its owner
 * did not offer that, or no mechanism can. */
char *oc_remote_at(struct oc_op *op, uint32_t peer, enum oc_slot slot, uint64_t off, size_t len);

/*
 * Copies what is no memory here: from a slot of @peer or to its receive slot, be it
 * offered or in an arena that cannot be mapped. A receive slot that no mechanism
 * reaches, and any in the arena, is left to its owner
 * (lib/exec/relay.h). 0; -errno for a send slot that they do not reach, or when that
 * failed too.
 */
int oc_remote_get(struct oc_op *op, void *dst, uint32_t peer, enum oc_slot slot, uint64_t off,
		  size_t len);
int oc_remote_put(struct oc_op *op, uint32_t peer, uint64_t off, const void *src, size_t len);

#endif
