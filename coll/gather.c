// SPDX-License-Identifier: BSD-3-Clause
/*
 * Gather and Gatherv: every rank pushes its block into the root's buffer while
 * the root copies its own. A root whose buffer is out of reach pulls instead.
 */
#include "coll.h"
#include "steps.h"

static void plan_leaf(struct oc_plan *plan, struct oc_step wait, struct oc_step push)
{
	uint32_t root = plan->shape.root;
	uint32_t ready = oc_plan_add(plan, wait, plan->nsteps);
	uint32_t at = oc_plan_add(plan, step_if(push, OC_COND_DIRECT, root), ready);

	oc_plan_add(plan, step_post(STAGE_DONE), at);
	oc_plan_add(plan, step_if(step_stage(), OC_COND_INDIRECT, root), ready);
	oc_plan_add(plan, step_if(step_wait(root, STAGE_DONE), OC_COND_INDIRECT, root), ready);
}

/* The root's side of one sender: wait for its push, or pull. */
static void plan_block(struct oc_plan *plan, struct oc_step wait, uint64_t off, uint64_t len)
{
	uint32_t me = plan->shape.rank, peer = wait.peer;
	struct oc_step pull =
		step_copy(oc_ref(OC_SLOT_RECV, me, off), oc_ref(OC_SLOT_SEND, peer, 0), len);
	uint32_t ready = oc_plan_add(plan, wait, plan->nsteps);

	oc_plan_add(plan, step_if(pull, OC_COND_INDIRECT, me), ready);
	oc_plan_add(plan, step_if(step_wait(peer, STAGE_DONE), OC_COND_DIRECT, me), plan->nsteps);
}

struct oc_plan *oc_coll_gather(const struct oc_shape *shape)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank, root = shape->root;
	uint64_t bytes = shape->bytes;
	struct oc_step block = step_copy(oc_ref(OC_SLOT_RECV, root, me * bytes),
					 oc_ref(OC_SLOT_SEND, me, 0), bytes);

	if (!plan)
		return NULL;
	if (me != root) {
		plan_leaf(plan, step_wait(root, OC_PHASE_READY), block);
		return plan;
	}
	if (!shape->in_place)
		oc_plan_add(plan, block, plan->nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;

		plan_block(plan, step_wait(peer, OC_PHASE_READY), peer * bytes, bytes);
	}
	oc_plan_add(plan, step_post(STAGE_DONE), 0);
	return plan;
}

struct oc_plan *oc_coll_gatherv(const struct oc_shape *shape, const struct oc_blocks *blocks)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank, root = shape->root;
	struct oc_step push;

	if (!plan)
		return NULL;
	if (me != root) {
		push = step_copy(oc_ref(OC_SLOT_RECV, root, 0), oc_ref(OC_SLOT_SEND, me, 0),
				 blocks->len[me]);
		push.flags = OC_STEP_DST_INDEXED;
		if (blocks->len[me])
			plan_leaf(plan,
				  step_meet_at(root, OC_PHASE_READY, push.len, shape->size + me),
				  push);
		return plan;
	}
	oc_plan_add(plan,
		    step_copy(oc_ref(OC_SLOT_RECV, me, blocks->off[me]),
			      oc_ref(OC_SLOT_SEND, me, 0), blocks->len[me]),
		    plan->nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;

		if (blocks->len[peer])
			plan_block(plan, step_meet(peer, OC_PHASE_READY, blocks->len[peer]),
				   blocks->off[peer], blocks->len[peer]);
	}
	oc_plan_add(plan, step_post(STAGE_DONE), 0);
	return plan;
}
