/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_SERVE_H
#define OC_MPI_SERVE_H

/* From a call to its operation: whether it is ours, its shape, its plan, running that. */

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

#include "abi.h"
#include "adapter.h"
#include "call.h"
#include "coll.h"
#include "comm.h"
#include "exec/inline.h"
#include "pass.h"
#include "type_sizes.h"

/*
 * The first look at a call: true if it has a signature of at least the agreed
 * bytes, written to @bytes. Costs nanoseconds, touches no communicator.
 */
static inline bool oc_eligible(struct oc_call *call, MPI_Count count, MPI_Datatype type,
			       size_t *bytes)
{
	if (!oc_call_known(call))
		return false;
	if (count <= 0 || !type || type == oc_abi.type_null) {
		call->outcome = count ? OC_OUTCOME_INVALID : OC_OUTCOME_EMPTY;
		return false;
	}
	call->size = *bytes = oc_type_bytes(type, (size_t)count);
	if (!oc_adapter.active)
		return false;
	if (*bytes && *bytes >= oc_adapter.agreed.min[call->coll])
		return true;
	call->outcome = oc_outcome_below(oc_adapter.agreed.min[call->coll], *bytes);
	return false;
}

/*
 * Of the side of a root's call that does not decide whether it is ours: false where every MPI finds
 * it wrong. Others may find the same in theirs, and be gone.
 */
static inline bool oc_acceptable(struct oc_call *call, const void *buffer, MPI_Count count,
				 MPI_Datatype type)
{
	if (buffer == MPI_IN_PLACE || (count >= 0 && type && type != oc_abi.type_null))
		return true;
	call->outcome = OC_OUTCOME_INVALID;
	return false;
}

/*
 * Runs a collective whose plan depends on @shape alone, from the group's cache.
 * @prepared is how opening the buffers went: after an error the others are told
 * that this rank cannot take part, and why. A failure.
 */
int oc_serve(struct oc_comm *oc, int prepared, const struct oc_shape *shape, struct oc_bind *bind);

/* The same where the plan depends on layouts, too: NULL for what the generator does not look at,
 * @in where it looks at one alone. After an error in @prepared the shape and they need not be
 * there. */
int oc_serve_blocks(struct oc_comm *oc, int prepared, const struct oc_shape *shape,
		    const struct oc_blocks *out, const struct oc_blocks *in, struct oc_bind *bind);

/* A reduction between two groups: @there as coll/coll.h has it, @blocks NULL but for
 * Reduce_scatter's own. After an error in @prepared neither need be there. */
int oc_serve_between(struct oc_comm *oc, int prepared, const struct oc_shape *shape,
		     const uint64_t *there, const struct oc_blocks *blocks, struct oc_bind *bind);

/* Fills what all shapes share. */
struct oc_shape oc_shape_of(const struct oc_comm *oc, enum oc_coll coll, int root, size_t bytes);

#endif
