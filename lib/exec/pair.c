// SPDX-License-Identifier: BSD-3-Clause
#include "exec/pair.h"

#include <string.h>

#include "exec/remote.h"
#include "exec/slot.h"

int oc_pair_look_up(struct oc_op *op, struct oc_ref ref, uint64_t *word)
{
	const char *at;

	/* Its owner may be gone, and cannot be asked. */
	op->window.urgent = true;
	at = oc_slot_at(op, ref, sizeof(*word));
	op->window.urgent = op->plan->shape.eager;
	if (!at)
		return oc_remote_get(op, word, ref.rank, ref.slot, ref.off, sizeof(*word));
	memcpy(word, at, sizeof(*word));
	return 0;
}

static uint8_t *pair_of(struct oc_op *op, uint32_t peer, uint32_t flags)
{
	return &op->bind->pair[peer + (flags & OC_STEP_OUT ? op->group->size : 0)];
}

bool oc_pair_is_parted(struct oc_op *op, const struct oc_step *step)
{
	uint32_t me = op->group->rank, peer = step->peer;

	if (step->kind == OC_STEP_POST)
		return false;
	if (step->kind == OC_STEP_STAGE)
		peer = step->cond == OC_COND_ALWAYS ? me : step->cond_rank;
	else if (step->kind == OC_STEP_COPY)
		peer = step->dst.rank == me ? step->src.rank : step->dst.rank;
	return *pair_of(op, peer, step->flags) != OC_PAIR_TOGETHER;
}

bool oc_pair_met(struct oc_op *op, const struct oc_step *step)
{
	struct oc_group *group = op->group;
	struct oc_board_line *line = oc_op_line(op, step->peer);
	const struct oc_board *board = group->board[step->peer];
	uint64_t len = 0, seq = op->issued.seq, word = oc_group_word(group, seq, step->peer);

	if (!oc_board_posted(board, word, seq, step->event) &&
	    !oc_group_retired(group, seq, step->peer))
		return false;
	/* It may have come between the two looks. If not, or if this is of a later operation, it
	 * was never in this one. */
	word = oc_group_word(group, seq, step->peer);
	if (oc_board_posted(board, word, seq, step->event) && word < oc_board_word(seq + 1, 0)) {
		oc_group_met(group, seq, step->peer);
		len = line->bytes;
		op->err = oc_op_failure(op, line);
		if (!op->err && step->src.slot == OC_SLOT_SCRATCH)
			op->err = oc_pair_look_up(op, step->src, &len);
	}
	if (op->err || len == step->len)
		return true;
	op->parted = true;
	*pair_of(op, step->peer, step->flags) = !len		  ? OC_PAIR_ABSENT
						: len < step->len ? OC_PAIR_LESS
								  : OC_PAIR_MORE;
	return true;
}
