/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_NEIGHBOR_H
#define OC_MPI_NEIGHBOR_H

/* What neighbourhood collectives have in common (MPI-4.1, 8.6): each is an exchange along the edges
 * of the communicator's process topology. */

#include <stdbool.h>

#include <mpi.h>

#include "call.h"
#include "comm.h"
#include "exchange.h"

/* The communicator if some edge here is served. NULL: the call is the MPI's, for the reason that
 * @call is told. Collective as oc_comm_get() is. */
struct oc_comm *oc_neighbor_begin(struct oc_call *call, const struct oc_exchange *it,
				  MPI_Comm comm);

/* Moves the edges that are served. The others are in @rest, whatever failed. A failure. */
int oc_neighbor_serve(struct oc_comm *oc, enum oc_coll coll, const struct oc_exchange *it,
		      struct oc_exchange_rest *rest);

/* A call of MPI_Neighbor_allgather or _alltoall, which @pass gives to the MPI: where it is not
 * served, or is, but ranks that no edges lead to may leave it to the MPI, then without data: MPIs
 * number a communicator's calls. */
typedef int oc_neighbor_pass(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			     void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm);
int oc_neighbor_alike(enum oc_coll coll, const struct oc_exchange *it, MPI_Comm comm,
		      oc_neighbor_pass *pass);

#endif
