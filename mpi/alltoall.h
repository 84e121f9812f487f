/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ALLTOALL_H
#define OC_MPI_ALLTOALL_H

/* What MPI_Alltoallv and MPI_Alltoallw have in common. */

#include "serve.h"
#include "vopen.h"

/* Serves an exchange: blocks that both ends find long enough move here, the MPI gets the same call
 * for the others. In place @send has that for its user and what else the call was given, @recv
 * skips this rank's own block. MPI_SUCCESS or an MPI error. */
int oc_alltoall_blocks(struct oc_comm *oc, enum oc_coll coll, const struct oc_vector *send,
		       const struct oc_vector *recv, MPI_Comm comm);

#endif
