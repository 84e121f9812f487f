// SPDX-License-Identifier: BSD-3-Clause
#include "plans.h"

#include <stdio.h>

#include "plan/check.h"

struct oc_step plans_message(enum oc_step_kind kind, uint32_t peer, uint32_t event, uint32_t reply)
{
	return (struct oc_step){.kind = (uint8_t)kind,
				.peer = (uint16_t)peer,
				.event = (uint16_t)event,
				.reply = (uint16_t)reply};
}

struct oc_plan *plans_finish(struct oc_draft *draft)
{
	struct oc_plan *plan = oc_draft_finish(draft);
	char why[128];

	CHECK(plan);
	if (oc_plan_check(plan, plan->size, why, sizeof(why)))
		job_fail(__FILE__, __LINE__, why, 0, 1);
	return plan;
}

/* Everybody's bytes to the next rank, in pieces that are all under way at once. Their events have
 * a bit in the word of the line, or none, and are neither posted nor answered in their order. */
struct oc_plan *plans_ring(const struct job *job, uint64_t bytes)
{
	enum { PIECES = 20, LAST = OC_EVENT_END - 1 };
	uint32_t me = job->rank, n = job->nranks, next = (me + 1) % n, last = (me + n - 1) % n;
	struct oc_shape shape = {
		.rank = (uint16_t)me, .size = (uint16_t)n, .granule = 1, .bytes = bytes};
	struct oc_draft draft = {.shape = shape};

	oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	for (uint32_t i = PIECES; i--;)
		oc_draft_add(&draft, plans_message(OC_STEP_SEND, next, FIRST + i, LAST - i),
			     draft.nsteps);
	for (uint32_t i = 0; i < PIECES; i++) {
		struct oc_step step = plans_message(OC_STEP_RECV, last, FIRST + i, LAST - i);
		uint64_t off = i * bytes / PIECES;

		step.len = (i + 1) * bytes / PIECES - off;
		step.src = oc_ref(OC_SLOT_SEND, last, off);
		step.dst = oc_ref(OC_SLOT_RECV, me, off);
		oc_draft_add(&draft, step, draft.nsteps);
	}
	return plans_finish(&draft);
}

/* Rank 0's bytes from hand to hand: each passes on only what has come. */
struct oc_plan *plans_chain(const struct job *job, uint64_t bytes)
{
	uint32_t me = job->rank, n = job->nranks;
	struct oc_shape shape = {
		.rank = (uint16_t)me, .size = (uint16_t)n, .granule = 1, .bytes = bytes};
	struct oc_draft draft = {.shape = shape};
	struct oc_step step = plans_message(OC_STEP_RECV, me - 1, FIRST + 1, FIRST);

	if (me == 0)
		oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	step.len = bytes;
	step.src = oc_ref(me > 1 ? OC_SLOT_RECV : OC_SLOT_SEND, me - 1, 0);
	step.dst = oc_ref(OC_SLOT_RECV, me, 0);
	if (me)
		oc_draft_add(&draft, step, draft.nsteps);
	if (me + 1 < n)
		oc_draft_add(&draft, plans_message(OC_STEP_SEND, me + 1, FIRST + 1, FIRST), 0);
	return plans_finish(&draft);
}

static void wait_for(struct oc_draft *draft, uint32_t peer, uint32_t event)
{
	oc_draft_add(draft, plans_message(OC_STEP_WAIT, peer, event, 0), draft->nsteps);
}

/* Each rank gets the sum of its bytes and those of all before. */
struct oc_plan *plans_scan(const struct job *job, uint64_t bytes)
{
	uint32_t me = job->rank, n = job->nranks;
	struct oc_shape shape = {
		.rank = (uint16_t)me, .size = (uint16_t)n, .granule = 1, .bytes = bytes};
	struct oc_draft draft = {.shape = shape};
	struct oc_step fold = {
		.kind = OC_STEP_CALC, .dst = oc_ref(OC_SLOT_RECV, me, 0), .len = bytes};

	oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
	for (uint32_t r = 0; r < me; r++)
		wait_for(&draft, r, OC_EVENT_READY);
	oc_draft_add(&draft, fold, 0);
	for (uint32_t r = 0; r <= me; r++)
		oc_draft_operand(&draft, oc_ref(OC_SLOT_SEND, r, 0));
	oc_draft_add(&draft, plans_message(OC_STEP_POST, 0, FIRST, 0), 0);
	for (uint32_t r = me + 1; r < n; r++)
		wait_for(&draft, r, FIRST);
	return plans_finish(&draft);
}

/* The same for the last rank alone: each adds its bytes to what the one before has, in its scratch
 * slot. */
struct oc_plan *plans_pass(const struct job *job, uint64_t bytes)
{
	uint32_t me = job->rank, n = job->nranks;
	bool last = me == n - 1;
	struct oc_shape shape = {
		.rank = (uint16_t)me, .size = (uint16_t)n, .granule = 1, .bytes = bytes};
	struct oc_draft draft = {.shape = shape};
	struct oc_step fold = {.kind = OC_STEP_CALC, .len = bytes};

	if (me == 0) {
		oc_draft_add(&draft, (struct oc_step){.kind = OC_STEP_STAGE}, 0);
		wait_for(&draft, 1, FIRST);
		return plans_finish(&draft);
	}
	wait_for(&draft, me - 1, me > 1 ? FIRST : OC_EVENT_READY);
	fold.dst = oc_ref(last ? OC_SLOT_RECV : OC_SLOT_SCRATCH, me, 0);
	oc_draft_add(&draft, fold, 0);
	oc_draft_operand(&draft, oc_ref(me > 1 ? OC_SLOT_SCRATCH : OC_SLOT_SEND, me - 1, 0));
	oc_draft_operand(&draft, oc_ref(OC_SLOT_SEND, me, 0));
	oc_draft_add(&draft, plans_message(OC_STEP_POST, 0, FIRST, 0), 0);
	if (!last)
		wait_for(&draft, me + 1, FIRST);
	return plans_finish(&draft);
}
