// SPDX-License-Identifier: BSD-3-Clause
/*
 * Broadcast. The n - 1 copies are shared by all n ranks: each receiver pulls
 * the first (n-1)/n of its buffer, the root, which would wait anyway, pushes
 * the last 1/n to each. A receiver the root cannot reach pulls everything.
 */
#include "coll.h"
#include "ep.h"
#include "steps.h"

static void plan_root(struct oc_plan *plan, uint64_t cut, uint64_t bytes)
{
	const struct oc_shape *shape = &plan->shape;
	uint32_t me = shape->rank;

	oc_plan_add(plan, step_stage(), plan->nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step push = step_copy(oc_ref(OC_SLOT_RECV, peer, cut),
						oc_ref(OC_SLOT_SEND, me, cut), bytes - cut);
		uint32_t at = oc_plan_add(plan, step_wait(peer, OC_STAGE_READY), plan->nsteps);

		at = oc_plan_add(plan, step_if(push, OC_COND_DIRECT, peer), at);
		/* Stages rise in the order of the receivers, so each leaves
		 * as soon as its own part is there. */
		oc_plan_add(plan, step_post(OC_STAGE_READY + d), at);
		if (d > 1)
			oc_plan_depend(plan, at - 2);
	}
	plan_wait_all(plan, STAGE_DONE, plan->nsteps);
}

static void plan_leaf(struct oc_plan *plan, uint64_t cut, uint64_t bytes)
{
	const struct oc_shape *shape = &plan->shape;
	uint32_t me = shape->rank, root = shape->root;
	uint32_t d = (me + shape->size - root) % shape->size;
	struct oc_step rest = step_copy(oc_ref(OC_SLOT_RECV, me, cut),
					oc_ref(OC_SLOT_SEND, root, cut), bytes - cut);
	uint32_t ready, pull;

	ready = oc_plan_add(plan, step_wait(root, OC_STAGE_READY), plan->nsteps);
	pull = oc_plan_add(
		plan, step_copy(oc_ref(OC_SLOT_RECV, me, 0), oc_ref(OC_SLOT_SEND, root, 0), cut),
		ready);
	oc_plan_add(plan, step_if(rest, OC_COND_INDIRECT, me), pull);
	oc_plan_add(plan, step_post(STAGE_DONE), pull);
	oc_plan_add(plan, step_if(step_wait(root, OC_STAGE_READY + d), OC_COND_DIRECT, me),
		    plan->nsteps);
}

struct oc_plan *oc_coll_bcast(const struct oc_shape *shape)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint64_t cut = oc_coll_slice(shape, shape->bytes, shape->size - 1);

	if (!plan)
		return NULL;
	if (shape->rank == shape->root)
		plan_root(plan, cut, shape->bytes);
	else
		plan_leaf(plan, cut, shape->bytes);
	return plan;
}
