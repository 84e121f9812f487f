// SPDX-License-Identifier: BSD-3-Clause
/*
 * Allgather and Allgatherv: every rank pulls every other's block, nearest
 * neighbour first, so that no two start on the same one.
 */
#include "coll.h"
#include "ep.h"
#include "steps.h"

static void plan_pull(struct oc_plan *plan, uint32_t peer, uint64_t off, uint64_t len)
{
	uint32_t at = oc_plan_add(plan, step_wait(peer, OC_STAGE_READY), plan->nsteps);

	oc_plan_add(plan,
		    step_copy(oc_ref(OC_SLOT_RECV, plan->shape.rank, off),
			      oc_ref(OC_SLOT_SEND, peer, 0), len),
		    at);
}

static struct oc_plan *plan_all(const struct oc_shape *shape, const struct oc_blocks *out)
{
	struct oc_plan *plan = oc_plan_create(shape);
	uint32_t me = shape->rank;

	if (!plan)
		return NULL;
	oc_plan_add(plan, step_stage(), plan->nsteps);
	for (uint32_t d = 0; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		uint64_t len = out ? out->len[peer] : shape->bytes;
		uint64_t off = out ? out->off[peer] : peer * shape->bytes;

		if (d)
			plan_pull(plan, peer, off, len);
		else if (!shape->in_place)
			oc_plan_add(plan,
				    step_copy(oc_ref(OC_SLOT_RECV, me, off),
					      oc_ref(OC_SLOT_SEND, me, 0), len),
				    plan->nsteps);
	}
	oc_plan_add(plan, step_post(STAGE_DONE), 0);
	plan_wait_all(plan, STAGE_DONE, plan->nsteps);
	return plan;
}

struct oc_plan *oc_coll_allgather(const struct oc_shape *shape)
{
	return plan_all(shape, NULL);
}

struct oc_plan *oc_coll_allgatherv(const struct oc_shape *shape, const struct oc_blocks *out)
{
	return plan_all(shape, out);
}
