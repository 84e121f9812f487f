// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oc_plan *oc_plan_create(const struct oc_shape *shape)
{
	struct oc_plan *plan = calloc(1, sizeof(*plan));

	if (plan)
		plan->shape = *shape;
	return plan;
}

void oc_plan_destroy(struct oc_plan *plan)
{
	if (!plan)
		return;
	free(plan->steps);
	free(plan->edges);
	free(plan);
}

static bool grow(void **array, uint32_t *cap, uint32_t need, size_t elem)
{
	uint32_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (need <= *cap)
		return true;
	p = realloc(*array, want * elem);
	if (!p)
		return false;
	*array = p;
	*cap = want;
	return true;
}

void oc_plan_depend(struct oc_plan *plan, uint32_t on)
{
	if (plan->failed)
		return;
	if (!grow((void **)&plan->edges, &plan->edges_cap, plan->nedges + 1,
		  sizeof(*plan->edges))) {
		plan->failed = true;
		return;
	}
	plan->edges[plan->nedges++] = on;
	plan->steps[plan->nsteps - 1].ndeps++;
}

uint32_t oc_plan_add(struct oc_plan *plan, struct oc_step step, uint32_t since)
{
	uint32_t number = plan->nsteps;

	if (plan->failed ||
	    !grow((void **)&plan->steps, &plan->steps_cap, number + 1, sizeof(*plan->steps))) {
		plan->failed = true;
		return number;
	}
	step.dep = plan->nedges;
	step.ndeps = 0;
	plan->steps[plan->nsteps++] = step;
	for (uint32_t i = since; i < number; i++)
		oc_plan_depend(plan, i);
	return number;
}

static const char *step_fault(const struct oc_plan *plan, uint32_t i, uint32_t *phase)
{
	const struct oc_step *step = &plan->steps[i];
	const struct oc_shape *shape = &plan->shape;
	bool peer = step->kind == OC_STEP_WAIT || step->kind == OC_STEP_SEND ||
		    step->kind == OC_STEP_RECV;
	uint32_t posted = step->kind == OC_STEP_RECV ? step->reply : step->phase;

	for (uint32_t e = 0; e < step->ndeps; e++)
		if (plan->edges[step->dep + e] >= i)
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

	if (plan->failed) {
		snprintf(why, len, "out of memory");
		return -EINVAL;
	}
	for (uint32_t i = 0; i < plan->nsteps; i++) {
		const char *fault = step_fault(plan, i, &phase);

		if (fault) {
			snprintf(why, len, "step %u: %s", i, fault);
			return -EINVAL;
		}
	}
	return 0;
}
