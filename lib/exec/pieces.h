/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PIECES_H
#define OC_PIECES_H

/*
 * Slots in pieces: the bytes a plan counts lie apart (struct oc_bind, its layouts). Only the
 * slot's owner knows how. In the arena it is reached there by peers, who get its layout: a copy of
 * that is in the owner's arena, where the line says, and is taken once an operation. Elsewhere it
 * is staged like any memory that peers cannot read, in one piece, and written by its owner alone.
 */

#include <stdbool.h>
#include <stddef.h>

#include "bytes/layout_copy.h"
#include "exec/op.h"

/* How much of a layout there may be. */
#define OC_PIECES_MAX (UINT32_C(1) << 16)

/* Whether the layouts an operation is bound to are of its slots. */
bool oc_pieces_fit(const struct oc_bind *bind);

/* The owner's side, @slot one of send and receive. Where in the arena byte 0 of one's own slot
 * would be, with a layout anywhere; OC_PIECES_NOWHERE if not all of the slot is there. */
#define OC_PIECES_NOWHERE UINT64_MAX
uint64_t oc_pieces_find(const struct oc_bind *bind, enum oc_slot slot);

/* What the line says of a slot that is at @origin; OC_PIECES_NOWHERE if peers cannot be told. */
uint64_t oc_pieces_offer(struct oc_op *op, enum oc_slot slot, uint64_t origin);

/* Touches the pages that one's own receive slot, at @origin, has bytes in, before peers do
 * (heap/place.h); not what lies between pieces, nor pieces so short that it would cost more than it
 * is worth. */
void oc_pieces_place_recv(const struct oc_bind *bind, uint64_t origin);

/* Gives back what peers were told from. */
void oc_pieces_end(struct oc_op *op);

/* True if the slot is in pieces: one's own, or that of a peer, which is READY. */
static inline bool oc_pieces_has(const struct oc_op *op, uint32_t rank, enum oc_slot slot)
{
	const struct oc_board_line *line;

	if (slot == OC_SLOT_SCRATCH)
		return false;
	if (rank == op->group->rank)
		return slot == OC_SLOT_SEND ? op->bind->send_layout : op->bind->recv_layout;
	line = oc_op_line(op, rank);
	return (slot == OC_SLOT_SEND ? line->send : line->recv) & OC_BOARD_PIECES;
}

/* Of such a slot: [off, off + len), if that is in one piece and memory here, or NULL. */
char *oc_pieces_at(struct oc_op *op, struct oc_ref ref, size_t len);

/* Of such a slot: where it is, if all of it is memory here. */
bool oc_pieces_place(struct oc_op *op, struct oc_ref ref, struct oc_place *place);

/* Copies @len bytes from such a slot to @here or, with @put, to it; wherever it is. 0 or -errno. */
int oc_pieces_move(struct oc_op *op, struct oc_ref ref, void *here, size_t len, bool put);

#endif
