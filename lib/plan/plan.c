// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

static const char *step_fault(const struct oc_plan *plan, uint32_t i, uint32_t *phase)
{
	const struct oc_step *step = &oc_plan_steps(plan)[i];
	const struct oc_shape *shape = &plan->shape;
	bool peer = step->kind == OC_STEP_WAIT || step->kind == OC_STEP_SEND ||
		    step->kind == OC_STEP_RECV;
	uint32_t posted = step->kind == OC_STEP_RECV ? step->reply : step->phase;

	for (uint32_t e = 0; e < step->nedges; e++)
		if (oc_plan_edges(plan)[step->edge + e] >= i)
			return "an edge does not point backwards";
	if (peer && (step->peer >= shape->size || step->peer == shape->rank))
		return "a peer out of range or oneself";
	if (step->kind == OC_STEP_POST || step->kind == OC_STEP_SEND ||
	    step->kind == OC_STEP_RECV) {
		if (posted <= *phase)
			return "phases do not rise";
		*phase = posted;
	}
	if (step->cond != OC_COND_ALWAYS && step->cond_rank >= shape->size &&
	    step->cond_rank != OC_RANK_ALL)
		return "a condition on no rank";
	if (step->kind == OC_STEP_COPY || step->kind == OC_STEP_RECV) {
		bool all = step->kind == OC_STEP_COPY && step->dst.rank == OC_RANK_ALL;

		if (step->src.rank >= shape->size || (step->dst.rank >= shape->size && !all))
			return "a copy outside the group";
		if (all && (step->dst.slot != OC_SLOT_RECV ||
			    (step->src.rank != shape->rank && step->src.slot != OC_SLOT_RECV)))
			return "a copy to all from a slot that may not be memory";
		if (all)
			return NULL;
		if (step->dst.rank != shape->rank && step->src.rank != shape->rank)
			return "a copy between two others";
	}
	return NULL;
}

int oc_plan_check(const struct oc_plan *plan, char *why, size_t len)
{
	uint32_t phase = 1; /* READY is posted by the executor */

	for (uint32_t i = 0; i < plan->nsteps; i++) {
		const char *fault = step_fault(plan, i, &phase);

		if (fault) {
			snprintf(why, len, "step %u: %s", i, fault);
			return -EINVAL;
		}
	}
	return 0;
}
