/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PLAN_H
#define OC_PLAN_H

/*
 * Reading plans, whose format is that of include/onecopy/plan.h. Who makes them: draft.h.
 */

#include <stddef.h>

#include <onecopy/plan.h>

static inline const struct oc_step *oc_plan_steps(const struct oc_plan *plan)
{
	return (const void *)((const char *)plan + plan->steps);
}

static inline const uint32_t *oc_plan_edges(const struct oc_plan *plan)
{
	return (const void *)((const char *)plan + plan->edges);
}

/* 0, or -EINVAL with a line in @why: edges backwards only, phases rising,
 * ranks in range, RECV and WAIT never on oneself. For tests and debugging. */
int oc_plan_check(const struct oc_plan *plan, char *why, size_t len);

static inline struct oc_ref oc_ref(enum oc_slot slot, uint32_t rank, uint64_t off)
{
	struct oc_ref ref = {.slot = (uint16_t)slot, .rank = (uint16_t)rank, .off = off};

	return ref;
}

#endif
