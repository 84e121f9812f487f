/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_DRAFT_H
#define OC_DRAFT_H

/*
 * Making plans: a draft grows step by step and is finished into an image. It belongs to who
 * makes it. A draft that finds no memory remembers that, takes no more, and is found out
 * when it is finished: no call before that needs to be looked at.
 */

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

/* All zero but the shape: empty. Once a step is added it is to be finished, whatever happens. */
struct oc_draft {
	struct oc_shape shape;
	uint32_t nsteps;
	uint32_t noperands;
	uint32_t nedges;
	uint32_t steps_cap;
	uint32_t operands_cap;
	uint32_t edges_cap;
	bool failed; /* out of memory, or larger than an image may be */
	struct oc_step *steps;
	struct oc_ref *operands;
	uint32_t *edges; /* step numbers */
};

/* Appends a copy of @step that depends on the steps added since @since
 * (a step number; pass draft->nsteps for none). Returns its number. */
uint32_t oc_draft_add(struct oc_draft *draft, struct oc_step step, uint32_t since);

/* One more edge onto the last step added. */
void oc_draft_depend(struct oc_draft *draft, uint32_t on);

/* One more operand of the last step added, a CALC. */
void oc_draft_operand(struct oc_draft *draft, struct oc_ref operand);

/* The image, of a single malloc(), for the caller to free(); NULL if the draft has failed. The
 * draft is empty then. */
struct oc_plan *oc_draft_finish(struct oc_draft *draft);

#endif
