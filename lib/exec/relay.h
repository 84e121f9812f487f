/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_RELAY_H
#define OC_RELAY_H

/*
 * Bytes to or from a peer's slot that its owner has promised (the plan counts on it)
 * and that cannot be reached after all: memory whose region became stale meanwhile,
 * no address space left to map it. They go through the arena of
 * the rank that asks, and the owner, which waits for that rank anyway, copies
 * them. Slow, and always possible.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/op.h"

/* [off, off + len) of @peer's slot, filled from @here or, without @put, read to it; of
 * OC_SLOT_COUNT + slot, of the layout of that. 0; -ENOMEM; -EPIPE with a peer gone; what the
 * operation failed with meanwhile. */
int oc_relay_move(struct oc_op *op, uint32_t peer, uint32_t slot, uint64_t off, void *here,
		  size_t len, bool put);

/* For the owner: does what @asker's parcel asks for. 0; -EMSGSIZE when that is not in
 * the slot; -ENOMEM when the parcel cannot be mapped either. */
int oc_relay_serve(struct oc_op *op, uint32_t asker);

#endif
