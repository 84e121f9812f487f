/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_COLL_STEPS_H
#define OC_COLL_STEPS_H

/* The steps generators are made of, and how work is divided among ranks. */

#include <stdbool.h>
#include <stdint.h>

#include "plan/draft.h"

/* Events that follow OC_EVENT_READY. */
#define EVENT_DONE  2u
#define EVENT_DONE2 3u

static inline struct oc_step step_copy(struct oc_ref dst, struct oc_ref src, uint64_t len)
{
	return (struct oc_step){.kind = OC_STEP_COPY, .dst = dst, .src = src, .len = len};
}

/* Its operands are to be added: plan_fold_all(). */
static inline struct oc_step step_fold(struct oc_ref dst, uint64_t len)
{
	return (struct oc_step){.kind = OC_STEP_CALC, .dst = dst, .len = len};
}

static inline struct oc_step step_stage(void)
{
	return (struct oc_step){.kind = OC_STEP_STAGE};
}

/* Peers read all of the send slot but [off, off + len). */
static inline struct oc_step step_stage_but(uint64_t off, uint64_t len)
{
	return (struct oc_step){
		.kind = OC_STEP_STAGE, .src = oc_ref(OC_SLOT_SEND, 0, off), .len = len};
}

static inline struct oc_step step_post(uint32_t event)
{
	return (struct oc_step){.kind = OC_STEP_POST, .event = (uint16_t)event};
}

static inline struct oc_step step_wait(uint32_t peer, uint32_t event)
{
	return (struct oc_step){
		.kind = OC_STEP_WAIT, .peer = (uint16_t)peer, .event = (uint16_t)event};
}

/* Waits for @event of the other end of a pair of @len bytes, which is a rank with this one pair. */
static inline struct oc_step step_meet(uint32_t peer, uint32_t event, uint64_t len)
{
	struct oc_step step = step_wait(peer, event);

	step.flags = OC_STEP_PAIR;
	step.len = len;
	return step;
}

/* The same where the peer's lengths are in its scratch slot, behind @skip words. */
static inline struct oc_step step_meet_at(uint32_t peer, uint32_t event, uint64_t len,
					  uint32_t skip)
{
	struct oc_step step = step_meet(peer, event, len);

	step.src = oc_ref(OC_SLOT_SCRATCH, peer, skip * sizeof(uint64_t));
	return step;
}

/* The same step, taken only if @rank's receive slot is (not) reachable. */
static inline struct oc_step step_if(struct oc_step step, enum oc_cond cond, uint32_t rank)
{
	step.cond = (uint8_t)cond;
	step.cond_rank = (uint16_t)rank;
	return step;
}

/* Adds a fold of every rank's send slot, from @off on, in rank order. Its number. */
uint32_t plan_fold_all(struct oc_draft *draft, struct oc_step fold, uint64_t off, uint32_t since);

/* Waits for @event of every other rank, nearest first. The number of the
 * first of these steps. */
uint32_t plan_wait_all(struct oc_draft *draft, uint32_t event, uint32_t since);

/* The same of the ranks of one of two groups: of the @other one, those that are @there. */
uint32_t plan_wait_group(struct oc_draft *draft, const uint64_t *there, bool other, uint32_t event,
			 uint32_t since);

#endif
