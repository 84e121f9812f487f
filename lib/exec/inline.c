// SPDX-License-Identifier: BSD-3-Clause
/*
 * The inline executor: the calling thread runs its plan, doing whichever step
 * is ready, and waits only when none is. What COPY does: transfer.c; CALC: fold.c.
 */
#include "exec/inline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/fold.h"
#include "exec/op.h"
#include "exec/pair.h"
#include "exec/remote.h"
#include "exec/slot.h"
#include "exec/transfer.h"

static bool is_direct(struct oc_op *op, uint32_t peer)
{
	return oc_line_flags(oc_group_line(op->group, peer)) & OC_BOARD_RECV_OPEN;
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
		if (op->group->done[edges[e]] != 1)
			return false;
	return true;
}

static bool reached(struct oc_op *op, uint32_t peer, uint32_t phase)
{
	if (!oc_group_reached(op->group, peer, phase))
		return false;
	op->err = oc_op_failure(op, oc_group_line(op->group, peer));
	if (!op->err && !op->bind->pair &&
	    oc_group_line(op->group, peer)->bytes != op->plan->shape.bytes)
		op->err = -EMSGSIZE;
	return true;
}

/* Whether the step is done now. @state keeps how far a SEND or RECV has come:
 * 0 not begun, 2 posted. */
static bool run_step(struct oc_op *op, const struct oc_step *step, uint8_t *state)
{
	if (!applies(op, step))
		return true;
	switch (step->kind) {
	case OC_STEP_COPY:
		op->err = oc_transfer_run(op, step);
		return true;
	case OC_STEP_CALC:
		op->err = oc_fold_run(op, step);
		return true;
	case OC_STEP_STAGE:
		if (op->foreign && oc_line_flags(op->line) & OC_BOARD_SEND_STAGED)
			op->err = oc_slot_stage(op);
		return true;
	case OC_STEP_POST:
		oc_group_post(op->group, step->phase);
		return true;
	case OC_STEP_WAIT:
		return step->flags & OC_STEP_PAIR ? oc_pair_met(op, step)
						  : reached(op, step->peer, step->phase);
	case OC_STEP_SEND:
		if (*state != 2)
			oc_group_post(op->group, step->phase);
		*state = 2;
		return reached(op, step->peer, step->reply);
	case OC_STEP_RECV:
		if (!reached(op, step->peer, step->phase))
			return false;
		if (!op->err)
			op->err = oc_transfer_run(op, step);
		if (!op->err)
			oc_group_post(op->group, step->reply);
		return true;
	}
	return true;
}

/* A turn of waiting for the phase a step wants. */
static int wait_for(struct oc_op *op, const struct oc_step *step)
{
	struct oc_board_line *line = oc_group_line(op->group, step->peer);
	uint32_t phase = step->kind == OC_STEP_SEND ? step->reply : step->phase;
	uint64_t seen = atomic_load_explicit(&line->word, memory_order_relaxed);

	/* It may have come since the step was looked at, and left. */
	if (seen >= oc_board_word(op->group->seq, phase))
		return 0;
	return oc_op_idle(op, step->peer, line, seen);
}

/* Whether a step, in the state run_step() left it in or done (1), has a phase to post. */
static bool will_post(const struct oc_step *step, uint8_t state)
{
	return !state && (step->kind == OC_STEP_POST || step->kind == OC_STEP_RECV ||
			  step->kind == OC_STEP_SEND);
}

static int run_steps(struct oc_op *op)
{
	struct oc_group *group = op->group;
	const struct oc_plan *plan = op->plan;
	const struct oc_step *steps = oc_plan_steps(plan);
	uint8_t *done = group->done;
	uint32_t first = 0;

	memset(done, 0, plan->nsteps);
	while (first < plan->nsteps) {
		uint32_t stuck = plan->nsteps;
		bool moved = false;
		bool owes = false; /* an earlier step has a phase still to post */

		for (uint32_t i = first; i < plan->nsteps; i++) {
			const struct oc_step *step = &steps[i];

			if (done[i] == 1)
				continue;
			if (deps_done(op, step) && !(owes && will_post(step, done[i]))) {
				if (run_step(op, step, &done[i])) {
					done[i] = 1;
					moved = true;
				} else if (stuck == plan->nsteps) {
					stuck = i;
				}
				if (op->err)
					return op->err;
			}
			owes = owes || will_post(step, done[i]);
		}
		while (first < plan->nsteps && done[first] == 1)
			first++;
		if (moved) {
			group->wait.turns = 0;
		} else if (stuck < plan->nsteps) {
			int err = wait_for(op, &steps[stuck]);

			if (err)
				return err;
		}
	}
	return 0;
}

/* Whether the plan is for this place in such a group, and stays within what it is bound to. */
static bool fits(const struct oc_op *op)
{
	const struct oc_plan *plan = op->plan;
	const struct oc_bind *bind = op->bind;

	return plan->shape.size == op->group->size && plan->shape.rank == op->group->rank &&
	       plan->need[OC_SLOT_SEND] <= bind->send_bytes &&
	       plan->need[OC_SLOT_RECV] <= bind->recv_bytes &&
	       plan->need[OC_SLOT_SCRATCH] <= bind->scratch_bytes;
}

int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind)
{
	struct oc_op op = {.group = group,
			   .plan = plan,
			   .bind = bind,
			   .all_direct = -1,
			   .send_place = -1,
			   .recv_place = -1};
	bool offered;
	int err = fits(&op) ? 0 : -EINVAL;

	op.line = oc_group_begin(group);
	oc_window_begin(&op.window, group->node);
	op.window.urgent = plan->shape.eager;
	if (plan->shape.stream)
		oc_store_policy_begin(&op.stores, &group->stores, plan->shape.coll,
				      bind->send_bytes + bind->recv_bytes);
	if (!err && plan->nsteps > group->done_bytes) {
		uint8_t *done = realloc(group->done, plan->nsteps);

		if (done) {
			group->done = done;
			group->done_bytes = plan->nsteps;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err)
		err = oc_slot_bind(&op);
	if (!err)
		err = oc_slot_offer(&op);
	offered = !err;
	if (!err)
		err = run_steps(&op);
	if (err)
		oc_group_fail(group, err);
	else
		oc_store_policy_end(&op.stores);
	/* What peers read in an eager plan is none of the caller's. */
	if (err && offered && !plan->shape.eager)
		oc_group_quit(group);
	oc_group_end(group);
	oc_remote_end(&op);
	oc_window_end(&op.window);
	oc_slot_end(&op);
	return err;
}

void oc_exec_decline(struct oc_group *group, int err)
{
	oc_group_begin(group);
	oc_group_fail(group, err);
	oc_group_end(group);
}
