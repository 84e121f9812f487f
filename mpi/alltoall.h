/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ALLTOALL_H
#define OC_MPI_ALLTOALL_H

/* What the exchanges have in common whose blocks differ. */

#include "serve.h"
#include "vopen.h"

/* Moves the blocks that both ends serve. What the MPI is to have is in the rest[] of @out and @in,
 * which the caller closes, then, whatever failed. @send is NULL in place, where both have the same
 * rest[]. A failure. */
int oc_alltoall_pairs(struct oc_comm *oc, enum oc_coll coll, const struct oc_vector *send,
		      const struct oc_vector *recv, struct oc_vbuffer *out, struct oc_vbuffer *in);

#endif
