/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_SLOT_H
#define OC_SLOT_H

/*
 * The slots of an operation: where this rank's are, what peers are told of them, and
 * how to get at the peers', wherever they are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes/store_policy.h"
#include "exec/op.h"
#include "plan/plan.h"

/* Finds out where the slots are, and fills a scratch slot that peers read from
 * READY on. 0 or -ENOMEM. */
int oc_slot_bind(struct oc_op *op);

/* Provides the scratch slot: before a step that writes it. 0 or -ENOMEM. */
int oc_slot_scratch(struct oc_op *op);

/* Gives back what the operation took: no peer is at it any more. */
void oc_slot_end(struct oc_op *op);

/* Says in this rank's line where its slots are and posts READY; an eager plan's
 * send slot is staged first. 0 or -ENOMEM. */
int oc_slot_offer(struct oc_op *op);

/* Does what peers ask for who cannot get at this rank's slots. 0 or -errno. */
int oc_slot_serve(struct oc_op *op);

/* Copies the send slot into the staging area, telling readers as it goes. 0 or
 * -ENOMEM. */
int oc_slot_stage(struct oc_op *op);

/* False if bytes [0, end) of @peer's send slot are to be waited for. */
bool oc_slot_is_ready(const struct oc_op *op, uint32_t peer, uint64_t end);

/* [off, off + len) of @peer's send slot, if it is memory here now; NULL when it
 * is not staged so far, or is to be read by oc_slot_read(). */
const char *oc_slot_send_at(struct oc_op *op, uint32_t peer, uint64_t off, size_t len);

/* The same, but waits for what is being staged: NULL only when it is to be read. */
int oc_slot_await_send(struct oc_op *op, uint32_t peer, uint64_t off, size_t len, const char **at);

/* Reads [off, off + len) of @peer's send slot, which is not in pieces, wherever it is, to
 * @dst. */
int oc_slot_read(struct oc_op *op, void *dst, uint32_t peer, uint64_t off, size_t len,
		 struct oc_store_turn *stores);

/* @len bytes of a slot that are memory here, in one piece: one's own, or a peer's receive or
 * scratch. NULL for what cannot be mapped (lib/exec/remote.h), and what is not in one piece
 * (lib/exec/pieces.h). */
char *oc_slot_at(struct oc_op *op, struct oc_ref ref, size_t len);

#endif
