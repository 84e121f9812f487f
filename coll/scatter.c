// SPDX-License-Identifier: BSD-3-Clause
/*
 * Scatter and Scatterv: every rank pulls its block from the root's buffer
 * while the root copies its own.
 */
#include "coll.h"
#include "steps.h"

static void plan_leaf(struct oc_plan *plan, struct oc_step ready, struct oc_step pull)
{
	uint32_t at = oc_plan_add(plan, ready, plan->nsteps);

	at = oc_plan_add(plan, pull, at);
	oc_plan_add(plan, step_post(STAGE_DONE), at);
}

struct oc_plan *oc_coll_scatter(const struct oc_shape *shape)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank, root = shape->root;
	struct oc_step block =
		step_copy(oc_ref(OC_SLOT_RECV, me, 0),
			  oc_ref(OC_SLOT_SEND, root, me * shape->bytes), shape->bytes);

	if (!plan)
		return NULL;
	if (me != root) {
		plan_leaf(plan, step_wait(root, OC_PHASE_READY), block);
		return plan;
	}
	oc_plan_add(plan, step_stage_but(me * shape->bytes, shape->bytes), plan->nsteps);
	if (!shape->in_place)
		oc_plan_add(plan, block, plan->nsteps);
	plan_wait_all(plan, STAGE_DONE, plan->nsteps);
	return plan;
}

struct oc_plan *oc_coll_scatterv(const struct oc_shape *shape, const struct oc_blocks *blocks)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank, root = shape->root;

	if (!plan)
		return NULL;
	if (me != root) {
		struct oc_step pull = step_copy(oc_ref(OC_SLOT_RECV, me, 0),
						oc_ref(OC_SLOT_SEND, root, 0), blocks->len[me]);

		pull.flags = OC_STEP_SRC_INDEXED;
		if (blocks->len[me])
			plan_leaf(plan,
				  step_meet_at(root, OC_PHASE_READY, pull.len, shape->size + me),
				  pull);
		return plan;
	}
	oc_plan_add(plan, step_stage(), plan->nsteps);
	oc_plan_add(plan,
		    step_copy(oc_ref(OC_SLOT_RECV, me, 0),
			      oc_ref(OC_SLOT_SEND, me, blocks->off[me]), blocks->len[me]),
		    plan->nsteps);
	for (uint32_t r = 0; r < shape->size; r++)
		if (r != me && blocks->len[r])
			oc_plan_add(plan, step_meet(r, STAGE_DONE, blocks->len[r]), plan->nsteps);
	return plan;
}
