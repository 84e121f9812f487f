/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ALLTOALL_H
#define OC_MPI_ALLTOALL_H

/* What the exchanges have in common whose blocks differ. */

#include "serve.h"
#include "vbuffer.h"

/* Moves the blocks that both ends serve, unless opening one of these had a @failure. What the MPI
 * is to have is in their rest[] then, whatever failed. A failure. */
int oc_alltoall_pairs(struct oc_comm *oc, enum oc_coll coll, int failure, struct oc_vbuffer *out,
		      struct oc_vbuffer *in);

#endif
