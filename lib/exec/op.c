// SPDX-License-Identifier: BSD-3-Clause
#include "exec/op.h"

#define LOOK_AROUND 64 /* turns of waiting between looks at all members */

int oc_op_failure(struct oc_op *op, struct oc_board_line *line)
{
	return oc_board_failure(atomic_load_explicit(&line->word, memory_order_acquire),
				op->issued.seq);
}

int oc_op_look_around(struct oc_op *op, uint32_t turn)
{
	return turn % LOOK_AROUND ? 0 : oc_group_failure(op->group, op->issued.seq);
}

int oc_op_idle(struct oc_op *op, uint32_t peer, struct oc_board_line *line, uint64_t seen)
{
	int err = op->turn(op);

	if (err)
		return err;
	err = oc_op_failure(op, line);
	if (!err && op->group->wait.turns > op->group->node->spin)
		err = oc_op_look_around(op, op->group->wait.turns);
	if (err)
		return err;
	return oc_group_idle(op->group, peer, line, seen);
}

int oc_op_idle_beside(struct oc_op *op, uint32_t peer)
{
	struct oc_board_line *line = oc_op_line(op, peer);

	return oc_op_idle(op, peer, line, atomic_load_explicit(&line->word, memory_order_relaxed));
}

uint64_t oc_op_arena_offset(struct oc_op *op, uint32_t member, enum oc_slot slot)
{
	struct oc_board_line *line = oc_op_line(op, member);

	if (slot == OC_SLOT_RECV)
		return line->recv;
	if (slot == OC_SLOT_SCRATCH)
		return line->scratch;
	if (oc_line_flags(line) & OC_BOARD_SEND_STAGED)
		return (uint64_t)line->stage_page * OC_STAGE_PAGE;
	return line->send;
}
