// SPDX-License-Identifier: BSD-3-Clause
/*
 * Reductions between two groups (MPI-4.1, 6.9): the ranks of one contribute, in rank order, those
 * of the other receive, and nothing is in place. Slices are folded at once, as within one group:
 * of Reduce by those who contribute, of Allreduce by those who receive, each for its own group.
 * Those leave their slices in scratch memory, for only what all receive can be written together
 * (OC_RANK_ALL).
 */
#include "coll.h"
#include "steps.h"

/* The ranks of one of the groups as who share a vector in slices; @rank: those before this one. */
static struct oc_shape group_of(const struct oc_shape *shape, const uint64_t *there, bool other)
{
	struct oc_shape group = {.granule = shape->granule};

	for (uint32_t r = 0; r < shape->size; r++) {
		if (!there[r] == other)
			continue;
		group.size++;
		if (r < shape->rank)
			group.rank++;
	}
	return group;
}

/* A fold of what the ranks of one group have in their send slots, after all that is before it. */
static void fold(struct oc_draft *draft, struct oc_step step, const uint64_t *there, bool other,
		 uint64_t off)
{
	oc_draft_add(draft, step, 0);
	for (uint32_t r = 0; r < draft->shape.size; r++)
		if (!there[r] != other)
			oc_draft_operand(draft, oc_ref(OC_SLOT_SEND, r, off));
}

/* Copies, on @cond, what the ranks of @group have folded into scratch memory, once the steps
 * since @since are done. The first one's number. */
static uint32_t pull_slices(struct oc_draft *draft, const struct oc_shape *group,
			    const uint64_t *there, bool other, enum oc_cond cond, uint32_t since)
{
	uint32_t me = draft->shape.rank, first = draft->nsteps, k = 0;
	uint64_t bytes = draft->shape.bytes;

	for (uint32_t r = 0; r < draft->shape.size; r++) {
		uint64_t at = oc_coll_slice(group, bytes, k);
		struct oc_step pull;

		if (!there[r] == other)
			continue;
		pull = step_copy(oc_ref(OC_SLOT_RECV, me, at), oc_ref(OC_SLOT_SCRATCH, r, 0),
				 oc_coll_slice(group, bytes, ++k) - at);
		if (cond != OC_COND_ALWAYS)
			pull = step_if(pull, cond, me);
		oc_draft_add(draft, pull, k > 1 ? draft->nsteps : since);
		if (k > 1)
			oc_draft_depend(draft, first);
	}
	return first;
}

static struct oc_plan *reduce_at_root(const struct oc_shape *shape, const uint64_t *there)
{
	struct oc_shape group = group_of(shape, there, true);
	struct oc_draft draft = {.shape = *shape};
	uint32_t pulls;

	plan_wait_group(&draft, there, true, EVENT_DONE, 0);
	pulls = pull_slices(&draft, &group, there, true, OC_COND_INDIRECT, 0);
	oc_draft_add(&draft, step_if(step_post(EVENT_DONE2), OC_COND_INDIRECT, shape->rank), pulls);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_reduce_between(const struct oc_shape *shape, const uint64_t *there)
{
	struct oc_shape group = group_of(shape, there, false);
	uint64_t off = oc_coll_slice(&group, shape->bytes, group.rank);
	uint64_t len = oc_coll_slice(&group, shape->bytes, group.rank + 1u) - off;
	struct oc_draft draft = {.shape = *shape};
	uint32_t root = shape->root, done;

	if (shape->rank == root)
		return reduce_at_root(shape, there);
	oc_draft_add(&draft, step_stage_but(off, len), 0);
	plan_wait_group(&draft, there, false, OC_EVENT_READY, draft.nsteps);
	oc_draft_add(&draft, step_wait(root, OC_EVENT_READY), draft.nsteps);
	fold(&draft, step_if(step_fold(oc_ref(OC_SLOT_RECV, root, off), len), OC_COND_DIRECT, root),
	     there, false, off);
	fold(&draft,
	     step_if(step_fold(oc_ref(OC_SLOT_SCRATCH, shape->rank, 0), len), OC_COND_INDIRECT,
		     root),
	     there, false, off);
	done = oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	plan_wait_group(&draft, there, false, EVENT_DONE, done);
	/* The scratch slot is read until the root says otherwise. */
	oc_draft_add(&draft, step_if(step_wait(root, EVENT_DONE2), OC_COND_INDIRECT, root), done);
	return oc_draft_finish(&draft);
}

/* What is read by the other group, whose own is there to be read then. */
static struct oc_draft open_both(const struct oc_shape *shape, const uint64_t *there)
{
	struct oc_draft draft = {.shape = *shape};

	oc_draft_add(&draft, step_stage(), 0);
	plan_wait_group(&draft, there, true, OC_EVENT_READY, draft.nsteps);
	return draft;
}

struct oc_plan *oc_coll_allreduce_between(const struct oc_shape *shape, const uint64_t *there)
{
	struct oc_shape group = group_of(shape, there, false);
	uint64_t off = oc_coll_slice(&group, shape->bytes, group.rank);
	uint64_t len = oc_coll_slice(&group, shape->bytes, group.rank + 1u) - off;
	enum oc_slot slot = group.size > 1 ? OC_SLOT_SCRATCH : OC_SLOT_RECV;
	struct oc_draft draft = open_both(shape, there);
	uint32_t done, pulls, pulled;

	fold(&draft, step_fold(oc_ref(slot, shape->rank, 0), len), there, true, off);
	done = oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	if (group.size > 1) {
		plan_wait_group(&draft, there, false, EVENT_DONE, done);
		pulls = pull_slices(&draft, &group, there, false, OC_COND_ALWAYS, done);
		pulled = oc_draft_add(&draft, step_post(EVENT_DONE2), pulls);
		plan_wait_group(&draft, there, false, EVENT_DONE2, pulled);
	}
	plan_wait_group(&draft, there, true, EVENT_DONE, done);
	return oc_draft_finish(&draft);
}

struct oc_plan *oc_coll_reduce_scatter_between(const struct oc_shape *shape, const uint64_t *there,
					       const struct oc_blocks *in)
{
	struct oc_draft draft = open_both(shape, there);
	uint32_t me = shape->rank, done;

	fold(&draft, step_fold(oc_ref(OC_SLOT_RECV, me, 0), in->len[me]), there, true, in->off[me]);
	done = oc_draft_add(&draft, step_post(EVENT_DONE), 0);
	plan_wait_group(&draft, there, true, EVENT_DONE, done);
	return oc_draft_finish(&draft);
}
