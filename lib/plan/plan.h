/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PLAN_H
#define OC_PLAN_H

/*
 * Reading plans, whose format is that of include/onecopy/plan.h. Making them: draft.h. What
 * comes from elsewhere is checked first: check.h.
 */

#include <onecopy/plan.h>

static inline const struct oc_step *oc_plan_steps(const struct oc_plan *plan)
{
	return (const void *)((const char *)plan + plan->steps);
}

static inline const struct oc_ref *oc_plan_operands(const struct oc_plan *plan)
{
	return (const void *)((const char *)plan + plan->operands);
}

static inline const uint32_t *oc_plan_edges(const struct oc_plan *plan)
{
	return (const void *)((const char *)plan + plan->edges);
}

static inline struct oc_ref oc_ref(enum oc_slot slot, uint32_t rank, uint64_t off)
{
	struct oc_ref ref = {.slot = (uint16_t)slot, .rank = (uint16_t)rank, .off = off};

	return ref;
}

#endif
