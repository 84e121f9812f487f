/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_NEIGHBOR_H
#define OC_MPI_NEIGHBOR_H

/*
 * What neighbourhood collectives have in common (MPI-4.1, 8.6): each is an exchange of blocks
 * between the ranks that have an edge, as MPI_Alltoallw is one between all. Edges between the same
 * two ranks are one block there. Each edge is served or left to the MPI by its own bytes, which
 * both ends know.
 */

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

#include "adapter.h"
#include "call.h"
#include "comm.h"
#include "count.h"
#include "topology.h"

/* One end of all edges, as a call names it. */
struct oc_neighbor_side {
	const void *user;
	struct oc_counts counts; /* NULL: @count each */
	struct oc_counts displs; /* NULL: each @stride elements behind the one before */
	MPI_Count count;
	MPI_Count stride;
	MPI_Datatype type;
	const MPI_Datatype *types; /* of each block, whose displs are bytes; NULL: type */
};

/* A call of one of them, and what is the MPI's of it: the counts of both sides' blocks as wide as
 * those that it was given. */
struct oc_neighbor_call {
	struct oc_neighbor_side send;
	struct oc_neighbor_side recv;
	bool large;
	bool alike; /* all edges have the same bytes, on all ranks: the MPI gets all or nothing */
	union oc_neighbor_rest {
		int plain[OC_MAX_RANKS];
		int64_t large[OC_MAX_RANKS];
	} left_out, left_in;
};

static inline struct oc_counts oc_neighbor_left(const struct oc_neighbor_call *it, bool sends)
{
	return (struct oc_counts){sends ? &it->left_out : &it->left_in, it->large};
}

/* The communicator if some edge here is served. NULL: the call is the MPI's, for the reason that
 * @call is told. Collective as oc_comm_get() is. */
struct oc_comm *oc_neighbor_begin(struct oc_call *call, const struct oc_neighbor_call *it,
				  MPI_Comm comm);

/* Moves the edges that are served. The others are in left_out and left_in, whatever failed. A
 * failure. */
int oc_neighbor_serve(struct oc_comm *oc, enum oc_coll coll, struct oc_neighbor_call *it);

#endif
