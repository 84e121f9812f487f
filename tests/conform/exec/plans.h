/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_PLANS_H
#define OC_TEST_PLANS_H

/* Plans no collective of coll/ is made of. */

#include "../job.h"
#include "exec/board.h"
#include "plan/draft.h"
#include "plan/plan.h"

enum { FIRST = OC_EVENT_READY + 1 };

struct oc_step plans_message(enum oc_step_kind kind, uint32_t peer, uint32_t event, uint32_t reply);

/* Checked, malloc'ed. */
struct oc_plan *plans_finish(struct oc_draft *draft);

/* Everybody's bytes to the next rank, in pieces that are all under way at once. */
struct oc_plan *plans_ring(const struct job *job, uint64_t bytes);

/* Rank 0's bytes from hand to hand: each passes on only what has come. */
struct oc_plan *plans_chain(const struct job *job, uint64_t bytes);

/* Each rank gets the sum of its bytes and those of all before. */
struct oc_plan *plans_scan(const struct job *job, uint64_t bytes);

/* The same for the last rank alone: each adds its bytes to what the one before has, in its scratch
 * slot. */
struct oc_plan *plans_pass(const struct job *job, uint64_t bytes);

#endif
