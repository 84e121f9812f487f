/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PLAN_CHECK_H
#define OC_PLAN_CHECK_H

/*
 * Whether bytes from elsewhere are a plan. The check reads nothing but them, whatever they
 * are, in time that is linear in their number, and changes nothing. An executor may then
 * follow every offset and number in the image, and on this rank's side stays within slots that
 * have what the plan needs. What the image cannot tell is left to who binds it: whether the
 * plans of all ranks go together, and whether what it reads and writes of other ranks is theirs
 * to give.
 */

#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

/* 0, or -EINVAL with a line in @why, [@len]. @bytes may be any memory of @size bytes that
 * nobody writes meanwhile. */
int oc_plan_check(const void *bytes, size_t size, char *why, size_t len);

/* What plan->need must be, for a plan whose steps are as they should be. */
void oc_plan_needs(const struct oc_plan *plan, uint64_t need[OC_SLOT_COUNT]);

#endif
