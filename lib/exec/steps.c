// SPDX-License-Identifier: BSD-3-Clause
/* What COPY does: transfer.c; CALC: fold.c. */
#include "exec/steps.h"

#include <errno.h>

#include "exec/fold.h"
#include "exec/pair.h"
#include "exec/slot.h"
#include "exec/transfer.h"

static bool is_direct(struct oc_op *op, uint32_t peer)
{
	return oc_line_flags(oc_op_line(op, peer)) & OC_BOARD_RECV_OPEN;
}

/* Asked only when every rank is READY; the answer holds for the operation. */
static bool all_direct(struct oc_op *op)
{
	bool direct = true;

	if (op->all_direct < 0) {
		for (uint32_t p = 0; p < op->group->size && direct; p++)
			direct = is_direct(op, p);
		op->all_direct = direct;
	}
	return op->all_direct;
}

static bool applies(struct oc_op *op, const struct oc_step *step)
{
	bool direct;

	if (op->parted && oc_pair_is_parted(op, step))
		return false;
	if (step->cond == OC_COND_ALWAYS)
		return true;
	direct = step->cond_rank == OC_RANK_ALL ? all_direct(op) : is_direct(op, step->cond_rank);
	return direct == (step->cond == OC_COND_DIRECT);
}

static bool deps_done(const struct oc_op *op, const struct oc_step *step)
{
	const uint32_t *edges = oc_plan_edges(op->plan) + step->edge;

	for (uint32_t e = 0; e < step->nedges; e++)
		if (op->room->done[edges[e]] != 1)
			return false;
	return true;
}

static bool has_posted(struct oc_op *op, uint32_t peer, uint32_t event)
{
	struct oc_group *group = op->group;
	uint64_t seq = op->issued.seq, word = oc_group_word(group, seq, peer);

	if (!oc_board_posted(group->board[peer], word, seq, event))
		return false;
	oc_group_met(group, seq, peer);
	op->err = oc_board_failure(word, seq);
	if (!op->err && !op->bind->pair && oc_op_line(op, peer)->bytes != op->plan->shape.bytes)
		op->err = -EMSGSIZE;
	return true;
}

static void post(struct oc_op *op, uint32_t event)
{
	oc_group_post(op->group, &op->issued, event);
}

/* Whether the step is done now. @state keeps how far a SEND or RECV has come:
 * 0 not begun, 2 posted. */
static bool run_step(struct oc_op *op, const struct oc_step *step, uint8_t *state)
{
	if (!applies(op, step))
		return true;
	switch (step->kind) {
	case OC_STEP_COPY:
		if (!op->waits && !oc_transfer_is_ready(op, step))
			return false;
		if (!op->err)
			op->err = oc_transfer_run(op, step);
		return true;
	case OC_STEP_CALC:
		if (!op->waits && oc_fold_awaited(op, step) != op->group->rank)
			return false;
		op->err = oc_fold_run(op, step);
		return true;
	case OC_STEP_STAGE:
		if (op->foreign && oc_line_flags(op->line) & OC_BOARD_SEND_STAGED)
			op->err = oc_slot_stage(op);
		return true;
	case OC_STEP_POST:
		post(op, step->event);
		return true;
	case OC_STEP_WAIT:
		return step->flags & OC_STEP_PAIR ? oc_pair_met(op, step)
						  : has_posted(op, step->peer, step->event);
	case OC_STEP_SEND:
		if (*state != 2)
			post(op, step->event);
		*state = 2;
		return has_posted(op, step->peer, step->reply);
	case OC_STEP_RECV:
		if (!has_posted(op, step->peer, step->event))
			return false;
		if (!op->err && !op->waits && !oc_transfer_is_ready(op, step))
			return false;
		if (!op->err)
			op->err = oc_transfer_run(op, step);
		if (!op->err)
			post(op, step->reply);
		return true;
	}
	return true;
}

uint32_t oc_steps_peer(const struct oc_op *op, uint32_t stuck)
{
	const struct oc_step *step = oc_plan_steps(op->plan) + stuck;

	if (step->kind == OC_STEP_COPY)
		return step->src.rank;
	return step->kind == OC_STEP_CALC ? oc_fold_awaited(op, step) : step->peer;
}

int oc_steps_idle(struct oc_op *op, uint32_t stuck)
{
	const struct oc_step *step = oc_plan_steps(op->plan) + stuck;
	struct oc_group *group = op->group;
	const struct oc_board *board = group->board[step->peer];
	uint32_t event = step->kind == OC_STEP_SEND ? step->reply : step->event;
	uint64_t seq = op->issued.seq, seen = oc_group_word(group, seq, step->peer);
	int err;

	/* It may have come since the step was looked at, and left. */
	if (oc_board_posted(board, seen, seq, event))
		return 0;
	err = oc_op_idle(op, step->peer, oc_op_line(op, step->peer), seen);
	return err == -EPIPE ? oc_steps_without(op, step->peer) : err;
}

/* Nor does the peer's word tell: two events beside it leave it as it was, and so does leaving the
 * operation out, which ends the wait for a pair. */
int oc_steps_without(struct oc_op *op, uint32_t peer)
{
	uint32_t stuck;
	int moved;

	op->group->lost = -1;
	moved = oc_steps_pass(op, &stuck);
	if (moved)
		return moved;
	op->group->lost = (int)peer;
	return -EPIPE;
}

int oc_steps_pass(struct oc_op *op, uint32_t *stuck)
{
	const struct oc_plan *plan = op->plan;
	const struct oc_step *steps = oc_plan_steps(plan);
	uint8_t *done = op->room->done;
	int moved = 0;

	*stuck = plan->nsteps;
	for (uint32_t i = op->first; i < plan->nsteps; i++) {
		const struct oc_step *step = &steps[i];

		if (done[i] == 1 || !deps_done(op, step))
			continue;
		if (run_step(op, step, &done[i]))
			moved = done[i] = 1;
		else if (*stuck == plan->nsteps)
			*stuck = i;
		if (op->err)
			return op->err;
	}
	while (op->first < plan->nsteps && done[op->first] == 1)
		op->first++;
	return moved;
}
