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
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank;
	uint64_t bytes = shape->bytes;

	oc_draft_add(&draft, step_stage_but(me * bytes, bytes), draft.nsteps);
	for (uint32_t d = 0; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		uint32_t at = draft.nsteps;

		if (d)
			oc_draft_add(&draft, step_wait(peer, OC_EVENT_READY), draft.nsteps);
		oc_draft_add(&draft,
			     step_copy(oc_ref(OC_SLOT_RECV, me, peer * bytes),
				       oc_ref(OC_SLOT_SEND, peer, me * bytes), bytes),
			     at);
	}
	oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	plan_wait_all(&draft, EVENT_DONE, draft.nsteps);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_alltoallv(const struct oc_shape *shape, const struct oc_blocks *out,
				  const struct oc_blocks *in)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank;

	oc_draft_add(&draft, step_stage(), draft.nsteps);
	if (in->len[me])
		oc_draft_add(&draft,
			     step_copy(oc_ref(OC_SLOT_RECV, me, in->off[me]),
				       oc_ref(OC_SLOT_SEND, me, out->off[me]), in->len[me]),
			     draft.nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step pull = step_copy(oc_ref(OC_SLOT_RECV, me, in->off[peer]),
						oc_ref(OC_SLOT_SEND, peer, 0), in->len[peer]);
		uint32_t at;

		pull.flags = OC_STEP_SRC_INDEXED;
		if (!in->len[peer])
			continue;
		at = oc_draft_add(&draft,
				  step_meet_at(peer, OC_EVENT_READY, pull.len, shape->size + me),
				  draft.nsteps);
		oc_draft_add(&draft, pull, at);
	}
	oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step taken =
			step_meet_at(peer, EVENT_DONE, out->len[peer], 2 * shape->size + me);

		taken.flags |= OC_STEP_OUT;
		if (out->len[peer])
			oc_draft_add(&draft, taken, draft.nsteps);
	}
	return oc_draft_finish(&draft);
}
