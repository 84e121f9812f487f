// SPDX-License-Identifier: BSD-3-Clause
#include "exec/transfer.h"

#include <errno.h>
#include <stdlib.h>

#include "bytes/copy.h"
#include "exec/pair.h"
#include "exec/pieces.h"
#include "exec/remote.h"
#include "exec/slot.h"

int oc_transfer_read(struct oc_op *op, void *dst, struct oc_ref src, size_t len,
		     struct oc_store_turn *stores)
{
	if (oc_pieces_has(op, src.rank, src.slot))
		return oc_pieces_move(op, src, dst, len, false);
	if (src.slot == OC_SLOT_SEND)
		return oc_slot_read(op, dst, src.rank, src.off, len, stores);
	return oc_remote_get(op, dst, src.rank, src.slot, src.off, len);
}

int oc_transfer_write(struct oc_op *op, struct oc_ref dst, const void *src, size_t len)
{
	if (oc_pieces_has(op, dst.rank, dst.slot))
		return oc_pieces_move(op, dst, (void *)(uintptr_t)src, len, true);
	return oc_remote_put(op, dst.rank, dst.off, src, len);
}

static bool is_own_scratch(const struct oc_op *op, struct oc_ref ref)
{
	return ref.slot == OC_SLOT_SCRATCH && ref.rank == op->group->rank;
}

/* The offset @rank's table gives for this rank. */
static int indexed(struct oc_op *op, uint32_t rank, uint64_t *off)
{
	return oc_pair_look_up(op, oc_ref(OC_SLOT_SCRATCH, rank, op->group->rank * sizeof(*off)),
			       off);
}

/* To a receive slot that is no memory here, or in pieces; @from is NULL if the source is not
 * either, and then a buffer is. */
static int write_slot(struct oc_op *op, struct oc_ref dst, struct oc_ref src, const char *from,
		      size_t len)
{
	struct oc_store_turn ordinary = {0}; /* it is read again at once */
	char *temp;
	int err = 0;

	if (from)
		return oc_transfer_write(op, dst, from, len);
	temp = malloc(OC_OP_CHUNK);
	if (!temp)
		return -ENOMEM;
	while (len && !err) {
		size_t part = len < OC_OP_CHUNK ? len : OC_OP_CHUNK;

		err = oc_transfer_read(op, temp, src, part, &ordinary);
		if (!err)
			err = oc_transfer_write(op, dst, temp, part);
		src.off += part;
		dst.off += part;
		len -= part;
	}
	free(temp);
	return err;
}

static int move_whole(struct oc_op *op, struct oc_ref dst, struct oc_ref src, size_t len)
{
	bool sent = src.rank != op->group->rank && src.slot == OC_SLOT_SEND;
	const char *from = sent ? NULL : oc_slot_at(op, src, len);
	char *to = oc_slot_at(op, dst, len);

	if (!to)
		return write_slot(op, dst, src, from, len);
	if (!from)
		return oc_transfer_read(op, to, src, len, &op->stores);
	if (to == from)
		return 0;
	oc_store_policy_copy(&op->stores, to, from, len);
	/* One of them is a slot of this rank. */
	oc_op_count(op, src.slot, src.rank, len);
	oc_op_count(op, dst.slot, dst.rank, len);
	return 0;
}

/* Where a slot is, in pieces or in one, if it is memory here. */
static bool find_place(struct oc_op *op, struct oc_ref ref, size_t len, struct oc_place *place)
{
	if (oc_pieces_has(op, ref.rank, ref.slot))
		return oc_pieces_place(op, ref, place);
	*place = (struct oc_place){0};
	/* What is being staged is to be followed. */
	if (ref.slot == OC_SLOT_SEND && ref.rank != op->group->rank)
		place->base = (char *)(uintptr_t)oc_slot_send_at(op, ref.rank, ref.off, len);
	else
		place->base = oc_slot_at(op, ref, len);
	return place->base;
}

/* One of the slots is in pieces. Straight from layout to layout, where both are memory here. */
static int move_pieces(struct oc_op *op, struct oc_ref dst, struct oc_ref src, size_t len)
{
	struct oc_place to, from;
	bool to_here = find_place(op, dst, len, &to);
	bool from_here = !op->err && find_place(op, src, len, &from);

	if (op->err)
		return op->err;
	if (to_here && from_here) {
		uint64_t since = oc_store_policy_clock(&op->stores);

		oc_layout_copy(&to, &from, len, op->stores.past);
		oc_store_policy_add(&op->stores, since, len);
		oc_op_count(op, src.slot, src.rank, len);
		oc_op_count(op, dst.slot, dst.rank, len);
		return 0;
	}
	if (to_here && !to.layout)
		return oc_transfer_read(op, to.base, src, len, &op->stores);
	return write_slot(op, dst, src, from_here && !from.layout ? from.base : NULL, len);
}

static int move(struct oc_op *op, struct oc_ref dst, struct oc_ref src, size_t len)
{
	if (oc_pieces_has(op, src.rank, src.slot) || oc_pieces_has(op, dst.rank, dst.slot))
		return move_pieces(op, dst, src, len);
	return move_whole(op, dst, src, len);
}

/* Whether some of it lies in pieces. */
static bool has_pieces(const struct oc_op *op, const struct oc_step *step)
{
	bool any = oc_pieces_has(op, step->src.rank, step->src.slot);

	for (uint32_t p = 0; p < op->group->size && !any; p++)
		any = oc_pieces_has(op, p, step->dst.slot);
	return any;
}

/* Pieces part by part: what the first takes from memory the others have from a cache. */
static int move_to_all(struct oc_op *op, const struct oc_step *step)
{
	size_t left = step->len, most = has_pieces(op, step) ? OC_COPY_TURN : left;
	struct oc_ref src = step->src, dst = step->dst;
	int err = 0;

	while (left && !err) {
		size_t part = left < most ? left : most;

		for (uint32_t p = 0; p < op->group->size && !err; p++) {
			dst.rank = (uint16_t)p;
			if (p != src.rank || src.slot != dst.slot)
				err = move(op, dst, src, part);
		}
		src.off += part;
		dst.off += part;
		left -= part;
	}
	return err;
}

/* The same bytes to every rank, read once if all slots are memory here. */
static int copy_all(struct oc_op *op, const struct oc_step *step)
{
	struct oc_group *group = op->group;
	const char *from = oc_slot_at(op, step->src, step->len);
	struct oc_ref ref = step->dst;
	void *dst[OC_MAX_RANKS];
	bool memory = from;

	for (uint32_t p = 0; p < group->size; p++) {
		ref.rank = (uint16_t)p;
		dst[p] = oc_slot_at(op, ref, step->len);
		memory = memory && dst[p];
	}
	if (op->err)
		return op->err;
	if (memory) {
		uint64_t since = oc_store_policy_clock(&op->stores);

		oc_copy_each(dst, group->size, from, step->len, op->stores.past);
		oc_store_policy_add(&op->stores, since, step->len * group->size);
	}
	for (uint32_t p = 0; p < group->size && memory; p++)
		oc_op_count(op, ref.slot, p, step->len);
	return memory ? 0 : move_to_all(op, step);
}

bool oc_transfer_is_ready(struct oc_op *op, const struct oc_step *step)
{
	struct oc_ref src = step->src;

	if (!step->len || src.slot != OC_SLOT_SEND || src.rank == op->group->rank)
		return true;
	if (step->flags & OC_STEP_SRC_INDEXED)
		op->err = indexed(op, src.rank, &src.off);
	return op->err || oc_slot_is_ready(op, src.rank, src.off + step->len);
}

int oc_transfer_run(struct oc_op *op, const struct oc_step *step)
{
	struct oc_ref src = step->src, dst = step->dst;
	int err = 0;

	if (!step->len)
		return 0;
	if (is_own_scratch(op, src) || is_own_scratch(op, dst))
		err = oc_slot_scratch(op);
	if (err)
		return err;
	if (dst.rank == OC_RANK_ALL)
		return copy_all(op, step);
	if (step->flags & OC_STEP_SRC_INDEXED)
		err = indexed(op, src.rank, &src.off);
	if (!err && step->flags & OC_STEP_DST_INDEXED)
		err = indexed(op, dst.rank, &dst.off);
	return err ? err : move(op, dst, src, step->len);
}
