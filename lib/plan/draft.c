// SPDX-License-Identifier: BSD-3-Clause
#include "plan/draft.h"

#include <stdlib.h>
#include <string.h>

#include "plan/check.h"

/* Room for one more than @n. */
static bool grow(void **array, uint32_t *cap, uint32_t n, size_t elem)
{
	uint32_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return true;
	/* An image is no longer than 32 bits can say. */
	if (want > UINT32_MAX / 4 / elem)
		return false;
	p = realloc(*array, want * elem);
	if (!p)
		return false;
	*array = p;
	*cap = want;
	return true;
}

void oc_draft_depend(struct oc_draft *draft, uint32_t on)
{
	draft->failed = draft->failed || !grow((void **)&draft->edges, &draft->edges_cap,
					       draft->nedges, sizeof(*draft->edges));
	if (draft->failed)
		return;
	draft->edges[draft->nedges++] = on;
	draft->failed = !++draft->steps[draft->nsteps - 1].nedges;
}

void oc_draft_operand(struct oc_draft *draft, struct oc_ref operand)
{
	draft->failed = draft->failed || !grow((void **)&draft->operands, &draft->operands_cap,
					       draft->noperands, sizeof(*draft->operands));
	if (draft->failed)
		return;
	draft->operands[draft->noperands++] = operand;
	draft->failed = !++draft->steps[draft->nsteps - 1].noperands;
}

uint32_t oc_draft_add(struct oc_draft *draft, struct oc_step step, uint32_t since)
{
	uint32_t number = draft->nsteps;

	draft->failed = draft->failed || !grow((void **)&draft->steps, &draft->steps_cap, number,
					       sizeof(*draft->steps));
	if (draft->failed)
		return number;
	step.edge = draft->nedges;
	step.nedges = 0;
	step.operand = draft->noperands;
	step.noperands = 0;
	draft->steps[draft->nsteps++] = step;
	for (uint32_t i = since; i < number; i++)
		oc_draft_depend(draft, i);
	return number;
}

static void take(struct oc_plan *plan, uint32_t at, const void *array, size_t bytes)
{
	if (bytes)
		memcpy((char *)plan + at, array, bytes);
}

struct oc_plan *oc_draft_finish(struct oc_draft *draft)
{
	size_t steps = draft->nsteps * sizeof(*draft->steps);
	size_t operands = draft->noperands * sizeof(*draft->operands);
	size_t edges = draft->nedges * sizeof(*draft->edges);
	size_t size = sizeof(struct oc_plan) + steps + operands + edges;
	struct oc_plan *plan = draft->failed ? NULL : malloc(size);

	if (plan) {
		*plan = (struct oc_plan){.magic = OC_PLAN_MAGIC,
					 .version = OC_PLAN_VERSION,
					 .size = (uint32_t)size,
					 .steps = sizeof(*plan),
					 .nsteps = draft->nsteps,
					 .operands = (uint32_t)(sizeof(*plan) + steps),
					 .noperands = draft->noperands,
					 .edges = (uint32_t)(sizeof(*plan) + steps + operands),
					 .nedges = draft->nedges,
					 .shape = draft->shape};
		take(plan, plan->steps, draft->steps, steps);
		take(plan, plan->operands, draft->operands, operands);
		take(plan, plan->edges, draft->edges, edges);
		oc_plan_needs(plan, plan->need);
	}
	free(draft->steps);
	free(draft->operands);
	free(draft->edges);
	*draft = (struct oc_draft){0};
	return plan;
}
