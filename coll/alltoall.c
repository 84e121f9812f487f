// SPDX-License-Identifier: BSD-3-Clause
/*
 * Alltoall and Alltoallv: every rank pulls its block from every other's send
 * buffer. In Alltoallv the reader learns where from the sender's table, and either
 * end whether the other knows of the same block.
 */
#include "coll.h"
#include "steps.h"

struct oc_plan *oc_coll_alltoall(const struct oc_shape *shape)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank;
	uint64_t bytes = shape->bytes;

	if (!plan)
		return NULL;
	oc_plan_add(plan, step_stage_but(me * bytes, bytes), plan->nsteps);
	for (uint32_t d = 0; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		uint32_t at = plan->nsteps;

		if (d)
			oc_plan_add(plan, step_wait(peer, OC_PHASE_READY), plan->nsteps);
		oc_plan_add(plan,
			    step_copy(oc_ref(OC_SLOT_RECV, me, peer * bytes),
				      oc_ref(OC_SLOT_SEND, peer, me * bytes), bytes),
			    at);
	}
	oc_plan_add(plan, step_post(STAGE_DONE), 0);
	plan_wait_all(plan, STAGE_DONE, plan->nsteps);
	return plan;
}

struct oc_plan *oc_coll_alltoallv(const struct oc_shape *shape, const struct oc_blocks *out,
				  const struct oc_blocks *in)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank;

	if (!plan)
		return NULL;
	oc_plan_add(plan, step_stage(), plan->nsteps);
	if (in->len[me])
		oc_plan_add(plan,
			    step_copy(oc_ref(OC_SLOT_RECV, me, in->off[me]),
				      oc_ref(OC_SLOT_SEND, me, out->off[me]), in->len[me]),
			    plan->nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step pull = step_copy(oc_ref(OC_SLOT_RECV, me, in->off[peer]),
						oc_ref(OC_SLOT_SEND, peer, 0), in->len[peer]);
		uint32_t at;

		pull.flags = OC_STEP_SRC_INDEXED;
		if (!in->len[peer])
			continue;
		at = oc_plan_add(plan,
				 step_meet_at(peer, OC_PHASE_READY, pull.len, shape->size + me),
				 plan->nsteps);
		oc_plan_add(plan, pull, at);
	}
	oc_plan_add(plan, step_post(STAGE_DONE), 0);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step taken =
			step_meet_at(peer, STAGE_DONE, out->len[peer], 2 * shape->size + me);

		taken.flags |= OC_STEP_OUT;
		if (out->len[peer])
			oc_plan_add(plan, taken, plan->nsteps);
	}
	return plan;
}
