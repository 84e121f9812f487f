// SPDX-License-Identifier: BSD-3-Clause
#include "exec/op.h"

#define LOOK_AROUND 64 /* turns of waiting between looks at all members */

int oc_op_failure(struct oc_op *op, struct oc_board_line *line)
{
	return oc_board_failure(atomic_load_explicit(&line->word, memory_order_acquire),
				op->group->seq);
}

int oc_op_idle(struct oc_op *op, uint32_t peer, struct oc_board_line *line, uint64_t seen)
{
	int err = op->serve(op);

	if (err)
		return err;
	err = oc_op_failure(op, line);
	if (!err && op->group->wait.turns > op->group->node->spin &&
	    op->group->wait.turns % LOOK_AROUND == 0)
		err = oc_group_failure(op->group);
	if (err)
		return err;
	return oc_group_idle(op->group, peer, line, seen);
}

int oc_op_idle_beside(struct oc_op *op, uint32_t peer)
{
	struct oc_board_line *line = oc_group_line(op->group, peer);

	return oc_op_idle(op, peer, line, atomic_load_explicit(&line->word, memory_order_relaxed));
}

uint64_t oc_op_arena_offset(struct oc_op *op, uint32_t member, enum oc_slot slot)
{
	struct oc_board_line *line = oc_group_line(op->group, member);

	if (slot == OC_SLOT_RECV)
		return line->recv;
	if (slot == OC_SLOT_SCRATCH)
		return line->scratch;
	if (oc_line_flags(line) & OC_BOARD_SEND_STAGED)
		return (uint64_t)line->stage_page * OC_STAGE_PAGE;
	return line->send;
}
