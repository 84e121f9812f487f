// SPDX-License-Identifier: BSD-3-Clause
/*
 * Gather and Gatherv: every rank pushes its block into the root's buffer while
 * the root copies its own. A root whose buffer is out of reach pulls instead.
 */
#include "coll.h"
#include "steps.h"

static void plan_leaf(struct oc_draft *draft, struct oc_step wait, struct oc_step push)
{
	uint32_t root = draft->shape.root;
	uint32_t ready = oc_draft_add(draft, wait, draft->nsteps);
	uint32_t at = oc_draft_add(draft, step_if(push, OC_COND_DIRECT, root), ready);

	oc_draft_add(draft, step_post(EVENT_DONE), at);
	oc_draft_add(draft, step_if(step_stage(), OC_COND_INDIRECT, root), ready);
	oc_draft_add(draft, step_if(step_wait(root, EVENT_DONE), OC_COND_INDIRECT, root), ready);
}

/* The root's side of one sender: wait for its push, or pull. */
static void plan_block(struct oc_draft *draft, struct oc_step wait, uint64_t off, uint64_t len)
{
	uint32_t me = draft->shape.rank, peer = wait.peer;
	struct oc_step pull =
		step_copy(oc_ref(OC_SLOT_RECV, me, off), oc_ref(OC_SLOT_SEND, peer, 0), len);
	uint32_t ready = oc_draft_add(draft, wait, draft->nsteps);

	oc_draft_add(draft, step_if(pull, OC_COND_INDIRECT, me), ready);
	oc_draft_add(draft, step_if(step_wait(peer, EVENT_DONE), OC_COND_DIRECT, me),
		     draft->nsteps);
}

struct oc_plan *oc_coll_gather(const struct oc_shape *shape)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank, root = shape->root;
	uint64_t bytes = shape->bytes;
	struct oc_step block = step_copy(oc_ref(OC_SLOT_RECV, root, me * bytes),
					 oc_ref(OC_SLOT_SEND, me, 0), bytes);

	if (me != root) {
		plan_leaf(&draft, step_wait(root, OC_EVENT_READY), block);
		return oc_draft_finish(&draft);
	}
	if (!shape->in_place)
		oc_draft_add(&draft, block, draft.nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;

		plan_block(&draft, step_wait(peer, OC_EVENT_READY), peer * bytes, bytes);
	}
	oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_gatherv(const struct oc_shape *shape, const struct oc_blocks *blocks)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank, root = shape->root;
	struct oc_step push;

	if (me != root) {
		push = step_copy(oc_ref(OC_SLOT_RECV, root, 0), oc_ref(OC_SLOT_SEND, me, 0),
				 shape->bytes);
		push.flags = OC_STEP_DST_INDEXED;
		if (shape->bytes)
			plan_leaf(&draft,
				  step_meet_at(root, OC_EVENT_READY, push.len, shape->size + me),
				  push);
		return oc_draft_finish(&draft);
	}
	oc_draft_add(&draft,
		     step_copy(oc_ref(OC_SLOT_RECV, me, blocks->off[me]),
			       oc_ref(OC_SLOT_SEND, me, 0), blocks->len[me]),
		     draft.nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;

		if (blocks->len[peer])
			plan_block(&draft, step_meet(peer, OC_EVENT_READY, blocks->len[peer]),
				   blocks->off[peer], blocks->len[peer]);
	}
	oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	return oc_draft_finish(&draft);
}
