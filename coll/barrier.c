// SPDX-License-Identifier: BSD-3-Clause
/*
 * Barrier: posting the descriptor says "arrived"; every rank looks at every
 * other's line. Flat: one store a rank, n - 1 loads that move in parallel.
 */
#include "coll.h"
#include "steps.h"

struct oc_plan *oc_coll_barrier(const struct oc_shape *shape)
{
	struct oc_draft draft = {.shape = *shape};

	plan_wait_all(&draft, OC_EVENT_READY, draft.nsteps);
	return oc_draft_finish(&draft);
}
