// SPDX-License-Identifier: BSD-3-Clause
/*
 * Scatter and Scatterv: every rank pulls its block from the root's buffer
 * while the root copies its own.
 */
#include "coll.h"
#include "steps.h"

static void plan_leaf(struct oc_draft *draft, struct oc_step ready, struct oc_step pull)
{
	uint32_t at = oc_draft_add(draft, ready, draft->nsteps);

	at = oc_draft_add(draft, pull, at);
	oc_draft_add(draft, step_post(EVENT_DONE), at);
}

struct oc_plan *oc_coll_scatter(const struct oc_shape *shape)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank, root = shape->root;
	struct oc_step block =
		step_copy(oc_ref(OC_SLOT_RECV, me, 0),
			  oc_ref(OC_SLOT_SEND, root, me * shape->bytes), shape->bytes);

	if (me != root) {
		plan_leaf(&draft, step_wait(root, OC_EVENT_READY), block);
		return oc_draft_finish(&draft);
	}
	oc_draft_add(&draft, step_stage_but(me * shape->bytes, shape->bytes), draft.nsteps);
	if (!shape->in_place)
		oc_draft_add(&draft, block, draft.nsteps);
	plan_wait_all(&draft, EVENT_DONE, draft.nsteps);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_scatterv(const struct oc_shape *shape, const struct oc_blocks *blocks)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank, root = shape->root;

	if (me != root) {
		struct oc_step pull = step_copy(oc_ref(OC_SLOT_RECV, me, 0),
						oc_ref(OC_SLOT_SEND, root, 0), shape->bytes);

		pull.flags = OC_STEP_SRC_INDEXED;
		if (shape->bytes)
			plan_leaf(&draft,
				  step_meet_at(root, OC_EVENT_READY, pull.len, shape->size + me),
				  pull);
		return oc_draft_finish(&draft);
	}
	oc_draft_add(&draft, step_stage(), draft.nsteps);
	oc_draft_add(&draft,
		     step_copy(oc_ref(OC_SLOT_RECV, me, 0),
			       oc_ref(OC_SLOT_SEND, me, blocks->off[me]), blocks->len[me]),
		     draft.nsteps);
	for (uint32_t r = 0; r < shape->size; r++)
		if (r != me && blocks->len[r])
			oc_draft_add(&draft, step_meet(r, EVENT_DONE, blocks->len[r]),
				     draft.nsteps);
	return oc_draft_finish(&draft);
}
