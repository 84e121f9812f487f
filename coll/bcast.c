// SPDX-License-Identifier: BSD-3-Clause
/*
 * Broadcast. The n - 1 copies are shared by all n ranks. Between two, and of few
 * bytes: each receiver pulls the first (n-1)/n of its buffer, the root, which
 * would wait anyway, pushes the last 1/n to each; a receiver the root cannot
 * reach pulls everything. Many bytes to many: each rank takes a slice of the
 * root's buffer to all others, so that the buffer is read from memory once, not
 * n - 1 times, for one more round of waiting.
 */
#include "coll.h"
#include "steps.h"

#define SPREAD_MIN (64u << 10)

/* The event of the root by which the @d-th rank after it has its bytes. Where there are more ranks
 * than events, neighbours share one. */
static uint32_t pushed(const struct oc_shape *shape, uint32_t d)
{
	uint32_t most = OC_EVENT_END - OC_EVENT_READY - 1, ranks = shape->size - 1;

	return OC_EVENT_READY + 1 + (ranks <= most ? d - 1 : (d - 1) * most / ranks);
}

static void plan_root(struct oc_draft *draft, uint64_t cut, uint64_t bytes)
{
	const struct oc_shape *shape = &draft->shape;
	uint32_t me = shape->rank, first = draft->nsteps + 1;

	oc_draft_add(draft, step_stage(), draft->nsteps);
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t peer = (me + d) % shape->size;
		struct oc_step push = step_copy(oc_ref(OC_SLOT_RECV, peer, cut),
						oc_ref(OC_SLOT_SEND, me, cut), bytes - cut);
		uint32_t at = oc_draft_add(draft, step_wait(peer, OC_EVENT_READY), draft->nsteps);

		oc_draft_add(draft, step_if(push, OC_COND_DIRECT, peer), at);
		if (d + 1 < shape->size && pushed(shape, d + 1) == pushed(shape, d))
			continue;
		/* Each leaves as soon as its own part is there, whoever else is late. */
		oc_draft_add(draft, step_post(pushed(shape, d)), first);
		first = draft->nsteps;
	}
	plan_wait_all(draft, EVENT_DONE, draft->nsteps);
}

static void plan_leaf(struct oc_draft *draft, uint64_t cut, uint64_t bytes)
{
	const struct oc_shape *shape = &draft->shape;
	uint32_t me = shape->rank, root = shape->root;
	uint32_t d = (me + shape->size - root) % shape->size;
	struct oc_step rest = step_copy(oc_ref(OC_SLOT_RECV, me, cut),
					oc_ref(OC_SLOT_SEND, root, cut), bytes - cut);
	uint32_t ready, pull;

	ready = oc_draft_add(draft, step_wait(root, OC_EVENT_READY), draft->nsteps);
	pull = oc_draft_add(
		draft, step_copy(oc_ref(OC_SLOT_RECV, me, 0), oc_ref(OC_SLOT_SEND, root, 0), cut),
		ready);
	oc_draft_add(draft, step_if(rest, OC_COND_INDIRECT, me), pull);
	oc_draft_add(draft, step_post(EVENT_DONE), pull);
	oc_draft_add(draft, step_if(step_wait(root, pushed(shape, d)), OC_COND_DIRECT, me),
		     draft->nsteps);
}

/* Whether one reading saves more than waiting for everybody costs. */
static bool spreads(const struct oc_shape *shape)
{
	return shape->stream && shape->size > 2 && shape->bytes >= SPREAD_MIN;
}

/* Slice by slice if everybody can be reached, else each receiver pulls all. */
static void plan_spread(struct oc_draft *draft)
{
	const struct oc_shape *shape = &draft->shape;
	uint32_t me = shape->rank, root = shape->root, ready;
	uint64_t off = oc_coll_slice(shape, shape->bytes, me);
	uint64_t len = oc_coll_slice(shape, shape->bytes, me + 1) - off;
	struct oc_step push = step_copy(oc_ref(OC_SLOT_RECV, OC_RANK_ALL, off),
					oc_ref(OC_SLOT_RECV, root, off), len);
	struct oc_step pull =
		step_copy(oc_ref(OC_SLOT_RECV, me, 0), oc_ref(OC_SLOT_SEND, root, 0), shape->bytes);

	if (me == root)
		pull = step_stage();
	plan_wait_all(draft, OC_EVENT_READY, 0);
	ready = draft->nsteps;
	oc_draft_add(draft, step_if(push, OC_COND_DIRECT, OC_RANK_ALL), 0);
	oc_draft_add(draft, step_if(pull, OC_COND_INDIRECT, OC_RANK_ALL), 0);
	oc_draft_add(draft, step_post(EVENT_DONE), ready);
	plan_wait_all(draft, EVENT_DONE, draft->nsteps);
}

struct oc_plan *oc_coll_bcast(const struct oc_shape *shape)
{
	struct oc_draft draft = {.shape = *shape};
	uint64_t cut = oc_coll_slice(shape, shape->bytes, shape->size - 1);

	if (spreads(shape))
		plan_spread(&draft);
	else if (shape->rank == shape->root)
		plan_root(&draft, cut, shape->bytes);
	else
		plan_leaf(&draft, cut, shape->bytes);
	return oc_draft_finish(&draft);
}
