/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_RMA_POST_H
#define OC_MPI_RMA_POST_H

/* Epochs that an origin and its targets begin for each other: MPI_Win_start and MPI_Win_post. */

#include <stdbool.h>

#include "rma_window.h"

/* An access epoch is under way that has this target. */
static inline bool oc_rma_has_started(const struct oc_rma *rma, const struct oc_rma_target *target)
{
	return atomic_load_explicit(&rma->epoch, memory_order_relaxed) == OC_RMA_START &&
	       target->started;
}

/* Whether the target has begun the exposure epoch that this one is for. */
static inline bool oc_rma_has_posted(const struct oc_rma_target *target)
{
	return (int32_t)(atomic_load_explicit(target->posts, memory_order_acquire) -
			 target->starts) >= 0;
}

#endif
