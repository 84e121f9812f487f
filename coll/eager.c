// SPDX-License-Identifier: BSD-3-Clause
/*
 * Eager plans, for few bytes: what others read is copied aside before the rank
 * says READY, so the rank leaves as soon as it has what it came for and nobody
 * waits for readers. One copy more, one round of waiting less; and where ranks
 * share processors, several operations for each switch between them (the eager
 * protocol of point-to-point messages, applied to collectives). Receive slots
 * are written by their owners alone, so it matters not where they are. There is
 * none for allreduce: every rank would fold everything.
 */
#include "coll.h"
#include "steps.h"

static void stage(struct oc_draft *draft, uint64_t off, uint64_t len)
{
	struct oc_step step = step_stage();

	step.src = oc_ref(OC_SLOT_SEND, 0, off);
	step.len = len;
	if (len)
		oc_draft_add(draft, step, draft->nsteps);
}

/* Once @peer is READY: [soff, soff + len) of its send slot to @roff here. */
static void pull(struct oc_draft *draft, uint32_t peer, uint64_t roff, uint64_t soff, uint64_t len)
{
	uint32_t me = draft->shape.rank;
	uint32_t at = draft->nsteps;

	if (peer != me)
		oc_draft_add(draft, step_wait(peer, OC_EVENT_READY), at);
	oc_draft_add(
		draft,
		step_copy(oc_ref(OC_SLOT_RECV, me, roff), oc_ref(OC_SLOT_SEND, peer, soff), len),
		at);
}

/* Everybody's block, one's own if @own, to where it belongs; @soff: of this
 * rank's in each send slot. */
static void pull_all(struct oc_draft *draft, uint64_t soff, bool own)
{
	const struct oc_shape *shape = &draft->shape;

	for (uint32_t d = own ? 0 : 1; d < shape->size; d++) {
		uint32_t peer = (shape->rank + d) % shape->size;

		pull(draft, peer, peer * shape->bytes, soff, shape->bytes);
	}
}

/* All blocks of the send slot but one's own. */
static void stage_others(struct oc_draft *draft)
{
	const struct oc_shape *shape = &draft->shape;
	uint64_t own = shape->rank * shape->bytes, next = own + shape->bytes;

	stage(draft, 0, own);
	stage(draft, next, shape->size * shape->bytes - next);
}

static void fold(struct oc_draft *draft)
{
	uint32_t ready = plan_wait_all(draft, OC_EVENT_READY, 0);

	plan_fold_all(draft,
		      step_fold(oc_ref(OC_SLOT_RECV, draft->shape.rank, 0), draft->shape.bytes), 0,
		      ready);
}

/* The operands up to rank @last, oneself or the one before. */
static void fold_prefix(struct oc_draft *draft, uint32_t last)
{
	const struct oc_shape *shape = &draft->shape;
	uint32_t me = shape->rank, ready = draft->nsteps;

	for (uint32_t r = last + 1; r--;)
		if (r != me)
			oc_draft_add(draft, step_wait(r, OC_EVENT_READY), draft->nsteps);
	oc_draft_add(draft, step_fold(oc_ref(OC_SLOT_RECV, me, 0), shape->bytes), ready);
	for (uint32_t r = 0; r <= last; r++)
		oc_draft_operand(draft, oc_ref(OC_SLOT_SEND, r, 0));
}

static void plan_root(struct oc_draft *draft)
{
	const struct oc_shape *shape = &draft->shape;

	switch (shape->coll) {
	case OC_COLL_BCAST:
		stage(draft, 0, shape->bytes);
		break;
	case OC_COLL_SCATTER:
		stage_others(draft);
		if (!shape->in_place)
			pull(draft, shape->rank, 0, shape->rank * shape->bytes, shape->bytes);
		break;
	case OC_COLL_GATHER:
		pull_all(draft, 0, !shape->in_place);
		break;
	default: /* reduce */
		fold(draft);
	}
}

static void plan_leaf(struct oc_draft *draft)
{
	const struct oc_shape *shape = &draft->shape;

	switch (shape->coll) {
	case OC_COLL_BCAST:
		pull(draft, shape->root, 0, 0, shape->bytes);
		break;
	case OC_COLL_SCATTER:
		pull(draft, shape->root, 0, shape->rank * shape->bytes, shape->bytes);
		break;
	default: /* gather, reduce */
		stage(draft, 0, shape->bytes);
	}
}

struct oc_plan *oc_coll_eager(const struct oc_shape *shape)
{
	struct oc_draft draft = {.shape = *shape};

	switch (shape->coll) {
	case OC_COLL_ALLGATHER:
		stage(&draft, 0, shape->bytes);
		pull_all(&draft, 0, !shape->in_place);
		break;
	case OC_COLL_ALLTOALL:
		stage_others(&draft);
		pull_all(&draft, shape->rank * shape->bytes, true);
		break;
	case OC_COLL_SCAN:
	case OC_COLL_EXSCAN:
		if (shape->rank + 1 < shape->size)
			stage(&draft, 0, shape->bytes);
		if (shape->coll == OC_COLL_SCAN)
			fold_prefix(&draft, shape->rank);
		else if (shape->rank)
			fold_prefix(&draft, shape->rank - 1u);
		break;
	default:
		if (shape->rank == shape->root)
			plan_root(&draft);
		else
			plan_leaf(&draft);
	}
	return oc_draft_finish(&draft);
}

uint64_t oc_coll_eager_bytes(const struct oc_shape *shape)
{
	uint64_t blocks;

	switch (shape->coll) {
	case OC_COLL_BCAST:
		blocks = 1;
		break;
	case OC_COLL_SCATTER:
	case OC_COLL_GATHER:
	case OC_COLL_REDUCE:
	case OC_COLL_SCAN:
	case OC_COLL_EXSCAN:
		blocks = shape->size;
		break;
	case OC_COLL_ALLGATHER:
		blocks = (uint64_t)shape->size + 1;
		break;
	case OC_COLL_ALLTOALL:
		blocks = (uint64_t)shape->size * 2;
		break;
	default:
		return UINT64_MAX;
	}
	return shape->bytes <= UINT64_MAX / blocks ? blocks * shape->bytes : UINT64_MAX;
}
