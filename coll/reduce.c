// SPDX-License-Identifier: BSD-3-Clause
/*
 * Reduce, Allreduce and Reduce_scatter: the vector is cut into one slice a
 * rank, and each rank folds its slice of everybody's send buffer in rank
 * order, 0 first. Every operand is read once, every result written once,
 * straight to where it is needed, and all ranks compute at once; this is the
 * movement-avoiding reduction of YHCCL (SC'23) without its intermediate
 * buffers. The order is the same at every rank, for every root and in every run.
 *
 * A receive slot that peers cannot reach gets its slices in a second way: they
 * are folded into scratch memory and pulled from there.
 */
#include "coll.h"
#include "steps.h"

/* This rank folds [off, off + len) itself. */
static struct oc_draft plan_open(const struct oc_shape *shape, uint64_t off, uint64_t len)
{
	struct oc_draft draft = {.shape = *shape};

	oc_draft_add(&draft, step_stage_but(off, len), draft.nsteps);
	plan_wait_all(&draft, OC_EVENT_READY, draft.nsteps);
	return draft;
}

struct oc_plan *oc_coll_reduce(const struct oc_shape *shape)
{
	uint32_t me = shape->rank, root = shape->root;
	uint64_t off = oc_coll_slice(shape, shape->bytes, me);
	uint64_t len = oc_coll_slice(shape, shape->bytes, me + 1) - off;
	struct oc_draft draft = plan_open(shape, off, len);
	struct oc_step there = step_fold(oc_ref(OC_SLOT_RECV, root, off), len);
	struct oc_step here = step_fold(oc_ref(OC_SLOT_SCRATCH, me, 0), len);
	uint32_t folded, waits, pulls;

	plan_fold_all(&draft, step_if(there, OC_COND_DIRECT, root), off, 0);
	plan_fold_all(&draft, step_if(here, OC_COND_INDIRECT, root), off, 0);
	folded = oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	waits = plan_wait_all(&draft, EVENT_DONE, folded);
	if (me != root) {
		/* The scratch slot is read until the root says otherwise. */
		oc_draft_add(&draft, step_if(step_wait(root, EVENT_DONE2), OC_COND_INDIRECT, root),
			     waits);
		return oc_draft_finish(&draft);
	}
	pulls = draft.nsteps;
	for (uint32_t r = 0; r < shape->size; r++) {
		uint64_t at = oc_coll_slice(shape, shape->bytes, r);
		struct oc_step pull =
			step_copy(oc_ref(OC_SLOT_RECV, me, at), oc_ref(OC_SLOT_SCRATCH, r, 0),
				  oc_coll_slice(shape, shape->bytes, r + 1) - at);

		oc_draft_add(&draft, step_if(pull, OC_COND_INDIRECT, me),
			     r ? draft.nsteps : folded);
		if (r)
			oc_draft_depend(&draft, pulls);
	}
	oc_draft_add(&draft, step_if(step_post(EVENT_DONE2), OC_COND_INDIRECT, me), pulls);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_allreduce(const struct oc_shape *shape)
{
	uint32_t me = shape->rank;
	uint64_t off = oc_coll_slice(shape, shape->bytes, me);
	uint64_t len = oc_coll_slice(shape, shape->bytes, me + 1) - off;
	struct oc_draft draft = plan_open(shape, off, len);
	struct oc_step there = step_fold(oc_ref(OC_SLOT_RECV, OC_RANK_ALL, off), len);
	struct oc_step here = step_fold(oc_ref(OC_SLOT_SCRATCH, me, 0), len);
	uint32_t folded, pulls, done;

	plan_fold_all(&draft, step_if(there, OC_COND_DIRECT, OC_RANK_ALL), off, 0);
	plan_fold_all(&draft, step_if(here, OC_COND_INDIRECT, OC_RANK_ALL), off, 0);
	folded = oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	plan_wait_all(&draft, EVENT_DONE, folded);
	pulls = draft.nsteps;
	for (uint32_t d = 0; d < shape->size; d++) {
		uint32_t r = (me + d) % shape->size;
		uint64_t at = oc_coll_slice(shape, shape->bytes, r);
		struct oc_step pull =
			step_copy(oc_ref(OC_SLOT_RECV, me, at), oc_ref(OC_SLOT_SCRATCH, r, 0),
				  oc_coll_slice(shape, shape->bytes, r + 1) - at);

		/* In place, nobody may write before all have read: the first
		 * waits for everybody, the others for the first. */
		oc_draft_add(&draft, step_if(pull, OC_COND_INDIRECT, OC_RANK_ALL),
			     d ? draft.nsteps : folded);
		if (d)
			oc_draft_depend(&draft, pulls);
	}
	done = oc_draft_add(&draft, step_if(step_post(EVENT_DONE2), OC_COND_INDIRECT, OC_RANK_ALL),
			    pulls);
	for (uint32_t d = 1; d < shape->size; d++) {
		struct oc_step wait = step_wait((me + d) % shape->size, EVENT_DONE2);

		oc_draft_add(&draft, step_if(wait, OC_COND_INDIRECT, OC_RANK_ALL), draft.nsteps);
		oc_draft_depend(&draft, done);
	}
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_reduce_scatter(const struct oc_shape *shape, const struct oc_blocks *in)
{
	uint32_t me = shape->rank;
	struct oc_draft draft = plan_open(shape, in->off[me], in->len[me]);
	enum oc_slot slot = shape->in_place ? OC_SLOT_SCRATCH : OC_SLOT_RECV;
	uint32_t folded;

	plan_fold_all(&draft, step_fold(oc_ref(slot, me, 0), in->len[me]), in->off[me], 0);
	folded = oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	plan_wait_all(&draft, EVENT_DONE, folded);
	if (shape->in_place)
		oc_draft_add(&draft,
			     step_copy(oc_ref(OC_SLOT_RECV, me, 0), oc_ref(OC_SLOT_SCRATCH, me, 0),
				       in->len[me]),
			     folded);
	return oc_draft_finish(&draft);
}
