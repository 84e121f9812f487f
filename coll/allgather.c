// SPDX-License-Identifier: BSD-3-Clause
/*
 * Allgather and Allgatherv. Long blocks: every rank pushes its own to all,
 * reading it once; a send buffer that peers could not read does not matter then.
 * Short ones, and if any receive slot is out of reach: every rank pulls every
 * other's block, nearest neighbour first, so that no two start on the same one.
 */
#include <stddef.h>

#include "coll.h"
#include "steps.h"

static struct oc_step step_block(const struct oc_draft *draft, uint32_t peer, uint64_t off,
				 uint64_t len)
{
	return step_copy(oc_ref(OC_SLOT_RECV, draft->shape.rank, off),
			 oc_ref(OC_SLOT_SEND, peer, 0), len);
}

/* Push if all can be reached, else pull; known when all are READY. */
static struct oc_plan *plan_push(const struct oc_shape *shape)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank;
	uint64_t bytes = shape->bytes;
	struct oc_step push = step_copy(oc_ref(OC_SLOT_RECV, OC_RANK_ALL, me * bytes),
					oc_ref(OC_SLOT_SEND, me, 0), bytes);
	uint32_t ready;

	plan_wait_all(&draft, OC_EVENT_READY, 0);
	ready = draft.nsteps;
	oc_draft_add(&draft, step_if(push, OC_COND_DIRECT, OC_RANK_ALL), 0);
	oc_draft_add(&draft, step_if(step_stage(), OC_COND_INDIRECT, OC_RANK_ALL), 0);
	for (uint32_t d = shape->in_place ? 1 : 0; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step pull = step_block(&draft, peer, peer * bytes, bytes);

		oc_draft_add(&draft, step_if(pull, OC_COND_INDIRECT, OC_RANK_ALL), ready);
	}
	oc_draft_add(&draft, step_post(EVENT_DONE), ready);
	plan_wait_all(&draft, EVENT_DONE, draft.nsteps);
	return oc_draft_finish(&draft);
}

static struct oc_plan *plan_pull(const struct oc_shape *shape, const struct oc_blocks *out)
{
	struct oc_draft draft = {.shape = *shape};
	uint32_t me = shape->rank;

	oc_draft_add(&draft, step_stage(), draft.nsteps);
	for (uint32_t d = 0; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		uint64_t len = out ? out->len[peer] : shape->bytes;
		uint64_t off = out ? out->off[peer] : peer * shape->bytes;

		uint32_t at = draft.nsteps;

		if (d)
			oc_draft_add(&draft, step_wait(peer, OC_EVENT_READY), at);
		if (d || !shape->in_place)
			oc_draft_add(&draft, step_block(&draft, peer, off, len), at);
	}
	oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	plan_wait_all(&draft, EVENT_DONE, draft.nsteps);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_allgather(const struct oc_shape *shape)
{
	return shape->stream ? plan_push(shape) : plan_pull(shape, NULL);
}

struct oc_plan *oc_coll_allgatherv(const struct oc_shape *shape, const struct oc_blocks *out)
{
	return plan_pull(shape, out);
}
