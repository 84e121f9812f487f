/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_ALLTOALL_H
#define OC_MPI_ALLTOALL_H

/* What the exchanges have in common whose blocks differ. */

#include "serve.h"
#include "vopen.h"

/* The operation of such an exchange: what @outs names, by ranks, of what @out has goes to where
 * @ins says in @in. outs->len is outs->off's next [size] and there is room for as many behind it;
 * @ends[2 * size] gets enum oc_pair of what came from each rank, and of what went to it. @prepared
 * and what it returns: oc_serve_blocks(). */
int oc_alltoall_move(struct oc_comm *oc, enum oc_coll coll, int prepared,
		     const struct oc_vbuffer *out, const struct oc_vbuffer *in,
		     const struct oc_blocks *outs, const struct oc_blocks *ins, uint8_t *ends);

/* Serves one: blocks that both ends find long enough move here, the MPI gets the same call for the
 * others. In place @send has that for its user and what else the call was given, @recv skips this
 * rank's own block. MPI_SUCCESS or an MPI error. */
int oc_alltoall_blocks(struct oc_comm *oc, enum oc_coll coll, const struct oc_vector *send,
		       const struct oc_vector *recv, MPI_Comm comm);

#endif
