// SPDX-License-Identifier: BSD-3-Clause
/*
 * Scan and Exscan: the vector is cut into one slice a rank, as in reduce.c, and each rank folds
 * its slice of everybody's send buffer in rank order, 0 first, handing out what it has so far on
 * its way: to rank r, in Scan, all operands up to r, in Exscan those before r. So every operand is
 * read once and every result written once, straight to where it is needed, and all ranks compute
 * at once; were each to fold what it needs itself, the operands would be read n / 2 times.
 *
 * A slice is worked through in chunks, for what has been folded so far to stay in the caches. It
 * lies in two places of the scratch slot by turns: in place, rank r's operand must have been read
 * before its result is written, and in Exscan that result is the one before. The last result is
 * folded straight to its place; with two ranks there is no other.
 *
 * To a receive slot that peers cannot reach the results go by way of the scratch slots of those
 * who folded them.
 */
#include "coll.h"
#include "steps.h"

#define CHUNK  (UINT64_C(32) << 10) /* four of them in a second-level cache */
#define CHUNKS 64u /* at most: larger slices have longer ones, lest plans outgrow their cache */

struct scan {
	struct oc_draft draft;
	bool inclusive;
	bool met;	/* in the chunks before: all peers are READY */
	uint32_t first; /* of the waits for that */
	uint32_t last;	/* the step before */
	uint64_t off;	/* of the chunk */
	uint64_t len;
};

static uint64_t chunk_of(const struct oc_shape *shape)
{
	uint64_t unit = 64 * (uint64_t)(shape->granule ? shape->granule : 1);
	uint64_t least = oc_coll_slice_max(shape, shape->bytes) / CHUNKS;

	return ((least > CHUNK ? least : CHUNK) / unit + 1) * unit;
}

uint64_t oc_coll_scan_scratch(const struct oc_shape *shape)
{
	return 2 * chunk_of(shape) + shape->size * oc_coll_slice_max(shape, shape->bytes);
}

/* Where rank @k puts aside byte @off of rank @r's result. */
static struct oc_ref aside(const struct oc_shape *shape, uint32_t k, uint32_t r, uint64_t off)
{
	uint64_t begin = oc_coll_slice(shape, shape->bytes, k);
	uint64_t len = oc_coll_slice(shape, shape->bytes, k + 1) - begin;

	return oc_ref(OC_SLOT_SCRATCH, k, 2 * chunk_of(shape) + r * len + off - begin);
}

/* Where the operands up to @r are folded to, of which there are several. */
static struct oc_ref folded(const struct scan *scan, uint32_t r)
{
	const struct oc_shape *shape = &scan->draft.shape;

	return oc_ref(OC_SLOT_SCRATCH, shape->rank, r % 2 * chunk_of(shape));
}

/* The step added last touches a slot of rank @r. */
static void meet(struct scan *scan, uint32_t r)
{
	uint32_t me = scan->draft.shape.rank, size = scan->draft.shape.size;

	if (!scan->met && r != me)
		oc_draft_depend(&scan->draft, scan->first + (r + size - me) % size - 1);
}

/* The next step, whose result is rank @to's. */
static void add(struct scan *scan, struct oc_step step, uint32_t to)
{
	uint32_t before = scan->last;

	scan->last = oc_draft_add(&scan->draft, step, scan->draft.nsteps);
	oc_draft_depend(&scan->draft, before);
	meet(scan, to);
}

/* Folds the operands up to @r, for rank @to. */
static void add_fold(struct scan *scan, struct oc_step step, uint32_t r, uint32_t to)
{
	struct oc_draft *draft = &scan->draft;

	add(scan, step, to);
	meet(scan, r);
	if (r == 1)
		meet(scan, 0);
	if (r > 1)
		oc_draft_operand(draft, folded(scan, r - 1));
	else if (r)
		oc_draft_operand(draft, oc_ref(OC_SLOT_SEND, 0, scan->off));
	oc_draft_operand(draft, oc_ref(OC_SLOT_SEND, r, scan->off));
}

/* The same, straight to rank @to's result. */
static void fold_to(struct scan *scan, uint32_t r, uint32_t to)
{
	const struct oc_shape *shape = &scan->draft.shape;
	struct oc_step there = step_fold(oc_ref(OC_SLOT_RECV, to, scan->off), scan->len);
	struct oc_step here = step_fold(aside(shape, shape->rank, to, scan->off), scan->len);

	if (to == shape->rank) {
		add_fold(scan, there, r, to);
		return;
	}
	add_fold(scan, step_if(there, OC_COND_DIRECT, to), r, to);
	if (to) /* rank 0's result is its own operand */
		add_fold(scan, step_if(here, OC_COND_INDIRECT, to), r, to);
}

/* What the operands up to @r have been folded to, to rank @to's result. */
static void give(struct scan *scan, uint32_t r, uint32_t to)
{
	const struct oc_shape *shape = &scan->draft.shape;
	struct oc_ref result = oc_ref(OC_SLOT_RECV, to, scan->off);
	struct oc_step there = step_copy(result, folded(scan, r), scan->len);
	struct oc_step here = there;

	here.dst = aside(shape, shape->rank, to, scan->off);
	if (!r) { /* they are one, and lie with rank 0 */
		fold_to(scan, 0, to);
	} else if (to == shape->rank) {
		add(scan, there, to);
	} else {
		add(scan, step_if(there, OC_COND_DIRECT, to), to);
		add(scan, step_if(here, OC_COND_INDIRECT, to), to);
	}
}

static void plan_chunk(struct scan *scan)
{
	uint32_t end = scan->draft.shape.size - !scan->inclusive; /* of the operands */
	uint32_t ahead = !scan->inclusive;

	if (scan->inclusive || end == 1)
		give(scan, 0, ahead);
	for (uint32_t r = 1; r < end; r++) {
		struct oc_step step = step_fold(folded(scan, r), scan->len);

		step.flags = OC_STEP_NEAR;
		if (r + 1 == end)
			fold_to(scan, r, r + ahead);
		else
			add_fold(scan, step, r, r);
		/* In Exscan only now: where rank r's result goes its operand may have been. */
		if (ahead)
			give(scan, r - 1, r);
		else if (r + 1 < end)
			give(scan, r, r);
	}
	scan->met = true;
}

/* What others have put aside for this rank, whose receive slot is out of reach. Returns the first
 * step. */
static uint32_t plan_pulls(struct scan *scan, uint32_t done)
{
	struct oc_draft *draft = &scan->draft;
	const struct oc_shape *shape = &draft->shape;
	uint32_t me = shape->rank, first = draft->nsteps;

	if (!me && (!scan->inclusive || shape->in_place))
		return first;
	for (uint32_t d = 1; d < shape->size; d++) {
		uint32_t k = (me + d) % shape->size;
		uint64_t at = oc_coll_slice(shape, shape->bytes, k);
		struct oc_ref from = me ? aside(shape, k, me, at) : oc_ref(OC_SLOT_SEND, 0, at);
		struct oc_step pull = step_copy(oc_ref(OC_SLOT_RECV, me, at), from,
						oc_coll_slice(shape, shape->bytes, k + 1) - at);

		oc_draft_add(draft, step_if(pull, OC_COND_INDIRECT, me), draft->nsteps);
		oc_draft_depend(draft, done + d - 1);
	}
	return first;
}

static struct oc_plan *plan_scan(const struct oc_shape *shape, bool inclusive)
{
	struct scan scan = {.draft = {.shape = *shape}, .inclusive = inclusive};
	struct oc_draft *draft = &scan.draft;
	uint32_t me = shape->rank, size = shape->size;
	uint64_t off = oc_coll_slice(shape, shape->bytes, me), chunk = chunk_of(shape);
	uint64_t end = oc_coll_slice(shape, shape->bytes, me + 1);
	uint32_t done, pulls;

	/* Of the last rank's operand an Exscan makes no use. */
	if (inclusive || me + 1 < size)
		scan.last = oc_draft_add(draft, step_stage_but(off, end - off), 0);
	else
		scan.last = oc_draft_add(draft, step_stage_but(0, shape->bytes), 0);
	scan.first = plan_wait_all(draft, OC_EVENT_READY, draft->nsteps);
	for (scan.off = off; scan.off < end && size > !inclusive; scan.off += chunk) {
		scan.len = end - scan.off < chunk ? end - scan.off : chunk;
		plan_chunk(&scan);
	}
	done = oc_draft_add(draft, step_post(EVENT_DONE), draft->nsteps);
	oc_draft_depend(draft, scan.last);
	done = plan_wait_all(draft, EVENT_DONE, draft->nsteps);
	pulls = plan_pulls(&scan, done);
	if (me)
		oc_draft_add(draft, step_if(step_post(EVENT_DONE2), OC_COND_INDIRECT, me), pulls);
	/* What has been put aside is read until its reader says otherwise. */
	for (uint32_t d = 1; d < size; d++) {
		uint32_t r = (me + d) % size;

		if (!r)
			continue;
		oc_draft_add(draft, step_if(step_wait(r, EVENT_DONE2), OC_COND_INDIRECT, r),
			     draft->nsteps);
		oc_draft_depend(draft, done + d - 1);
	}
	return oc_draft_finish(draft);
}

struct oc_plan *oc_coll_scan(const struct oc_shape *shape)
{
	return plan_scan(shape, true);
}

struct oc_plan *oc_coll_exscan(const struct oc_shape *shape)
{
	return plan_scan(shape, false);
}
