// SPDX-License-Identifier: BSD-3-Clause
#include "exec/remote.h"

#include <errno.h>
#include <stdlib.h>

#include "access/access.h"
#include "base/env.h"
#include "exec/relay.h"

/* Below this staging costs less than asking. */
#define OFFER_MIN ((size_t)16 << 10)

/*
 * Whether peers write the receive slot: only in plans that have a way around it. *@plain:
 * all they do is copy to it, what they copy to nobody else.
 */
static bool recv_is_written(const struct oc_op *op, bool *plain)
{
	const struct oc_plan *plan = op->plan;
	bool written = false;

	*plain = true;
	for (uint32_t i = 0; i < plan->nsteps; i++) {
		const struct oc_step *step = &oc_plan_steps(plan)[i];
		bool depends = step->cond != OC_COND_ALWAYS;

		written = written || (depends && (step->cond_rank == OC_RANK_ALL ||
						  step->cond_rank == plan->shape.rank));
		*plain = *plain && step->kind != OC_STEP_CALC &&
			 !(depends && step->cond_rank == OC_RANK_ALL);
	}
	return written;
}

static uint32_t offer_recv(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	struct oc_want want = {.at = bind->recv,
			       .bytes = bind->recv_bytes,
			       .mech = op->group->mech,
			       .write = true,
			       .staged = oc_env()->mech & OC_MECH_STAGED,
			       .gaps = bind->recv_hole};
	uint32_t mech;

	if (want.bytes < OFFER_MIN || !want.mech || !recv_is_written(op, &want.plain))
		return 0;
	mech = oc_access_offer(op->group->node, &want, &op->recv_place);
	if (!mech)
		return 0;
	op->line->recv = (uintptr_t)bind->recv;
	return mech << OC_BOARD_RECV | ((uint32_t)op->recv_place & OC_BOARD_PLACE_MASK)
					       << OC_BOARD_RECV_PLACE;
}

static uint32_t offer_send(struct oc_op *op)
{
	const struct oc_bind *bind = op->bind;
	struct oc_want want = {.at = bind->send,
			       .bytes = bind->send_bytes,
			       .mech = op->group->mech,
			       .staged = oc_env()->mech & OC_MECH_STAGED,
			       .once = bind->call};
	uint32_t mech;

	if (want.bytes < OFFER_MIN || !want.mech)
		return 0;
	mech = oc_access_offer(op->group->node, &want, &op->send_place);
	if (!mech)
		return 0;
	op->line->send = (uintptr_t)bind->send;
	return mech | ((uint32_t)op->send_place & OC_BOARD_PLACE_MASK) << OC_BOARD_SEND_PLACE;
}

void oc_remote_offer(struct oc_op *op, uint32_t *flags)
{
	/* First what must be writable: the send slot may be the same memory. */
	if (op->bind->recv && !op->bind->recv_layout && !(*flags & OC_BOARD_RECV_HEAP))
		*flags |= offer_recv(op);
	if (op->foreign && !op->bind->send_layout)
		*flags |= offer_send(op);
}

void oc_remote_blame(struct oc_op *op, enum oc_slot slot)
{
	uint32_t flags = oc_line_flags(op->line);
	int place = slot == OC_SLOT_RECV ? op->recv_place : op->send_place;

	if (place >= 0)
		oc_access_blame(op->group->node, place);
	else /* A refusal of what needs no preparing is about the processes. */
		op->group->mech &= ~(slot == OC_SLOT_RECV ? flags >> OC_BOARD_RECV : flags) |
				   ~(uint32_t)OC_BOARD_MECH_MASK;
}

void oc_remote_end(struct oc_op *op)
{
	struct oc_group *group = op->group;

	for (uint32_t i = 0; op->shown && i < 2 * group->size; i++) {
		struct oc_remote *remote = &op->room->remote[i];

		if (remote->seq == op->issued.seq && remote->shown) {
			oc_access_release(&remote->view);
			remote->shown = false;
			op->shown--;
		}
	}
	if (op->send_place >= 0)
		oc_access_withdraw(group->node, op->send_place);
	if (op->recv_place >= 0)
		oc_access_withdraw(group->node, op->recv_place);
	op->send_place = op->recv_place = -1;
}

/* A slot as its owner tells of it. */
struct told {
	struct oc_target target;
	struct iovec piece;
};

/* A slot that needed none of this, had its owner's arena been mapped. */
static bool is_in_arena(struct oc_op *op, uint32_t peer, enum oc_slot slot)
{
	uint32_t flags = oc_line_flags(oc_op_line(op, peer));

	if (slot == OC_SLOT_SEND)
		return !(flags & OC_BOARD_SEND_AWAY);
	return slot != OC_SLOT_RECV || flags & OC_BOARD_RECV_HEAP;
}

static void ask_line(struct oc_op *op, uint32_t peer, enum oc_slot slot, struct told *told)
{
	struct oc_group *group = op->group;
	struct oc_board_line *line = oc_op_line(op, peer);
	uint32_t flags = oc_line_flags(line), rank = group->node_rank[peer];
	uint32_t place =
		flags >> (slot == OC_SLOT_RECV ? OC_BOARD_RECV_PLACE : OC_BOARD_SEND_PLACE);
	uint32_t mech = flags >> (slot == OC_SLOT_RECV ? OC_BOARD_RECV : 0);
	uint64_t addr = slot == OC_SLOT_RECV ? line->recv : line->send;
	bool in_arena = is_in_arena(op, peer, slot);

	/* All peers reach arenas, so nothing was offered. */
	if (in_arena) {
		addr = group->node->ranks[rank].arena_base + oc_op_arena_offset(op, peer, slot);
		mech = group->mech & ~(uint32_t)OC_MECH_HEAP;
	}
	/* How much of it matters is in the plans of both. */
	told->piece.iov_base = (void *)(uintptr_t)addr;
	told->piece.iov_len = SIZE_MAX - addr;
	told->target = (struct oc_target){.owner = rank,
					  .mech = mech & OC_BOARD_MECH_MASK,
					  .kept = true,
					  .heap = in_arena,
					  .bytes = told->piece.iov_len,
					  .segs = &told->piece,
					  .nsegs = 1,
					  .window = &op->window};
	if (!in_arena)
		oc_access_find(group->node, &told->target, place & OC_BOARD_PLACE_MASK);
}

char *oc_remote_at(struct oc_op *op, uint32_t peer, enum oc_slot slot, uint64_t off, size_t len)
{
	struct oc_group *group = op->group;
	struct oc_remote *remote;
	struct told told;

	if (!op->room->remote)
		op->room->remote = calloc(2 * (size_t)group->size, sizeof(*remote));
	if (!op->room->remote)
		return NULL;
	remote = oc_op_remote(op, peer, slot);
	if (remote->seq != op->issued.seq) {
		ask_line(op, peer, slot, &told);
		remote->seq = op->issued.seq;
		remote->shown = oc_access_at(group->node, &told.target,
					     slot == OC_SLOT_RECV ? OC_PUT : OC_GET, 0, off + len,
					     &remote->view);
		op->shown += remote->shown;
	}
	return remote->shown && off + len <= remote->view.bytes ? remote->view.at + off : NULL;
}

static int move(struct oc_op *op, const struct told *told, enum oc_direction direction,
		uint64_t off, void *here, size_t len)
{
	struct iovec iov = {.iov_base = here, .iov_len = len};
	struct oc_cursor local;

	oc_cursor_init(&local, &iov, 1, 0);
	return oc_access_move(op->group->node, &told->target, direction, off, &local, len,
			      &oc_group_moved);
}

int oc_remote_get(struct oc_op *op, void *dst, uint32_t peer, enum oc_slot slot, uint64_t off,
		  size_t len)
{
	struct told told;
	int err;

	ask_line(op, peer, slot, &told);
	err = move(op, &told, OC_GET, off, dst, len);
	if (!err || !(slot == OC_SLOT_RECV || told.target.heap))
		return err;
	/* In an eager plan the owner has gone on. */
	if (op->plan->shape.eager)
		return -ENOMEM;
	return oc_relay_move(op, peer, slot, off, dst, len, false);
}

int oc_remote_put(struct oc_op *op, uint32_t peer, uint64_t off, const void *src, size_t len)
{
	void *from = (void *)(uintptr_t)src;
	struct told told;

	ask_line(op, peer, OC_SLOT_RECV, &told);
	if (!move(op, &told, OC_PUT, off, from, len))
		return 0;
	return oc_relay_move(op, peer, OC_SLOT_RECV, off, from, len, true);
}
