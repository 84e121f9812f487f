/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_NEIGHBOR_H
#define OC_MPI_NEIGHBOR_H

/*
 * What neighbourhood collectives have in common (MPI-4.1, 8.6): each is an exchange of blocks
 * between the ranks that have an edge, as MPI_Alltoallw is one between all. Edges between the same
 * two ranks are one block there. Which edges are served their ends find by the edges' own bytes,
 * but for what a sender leaves to the MPI because of its pieces.
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
	bool each;		 /* a block has a count and a place of its own */
	bool typed;		 /* and a type, and its place is in bytes */
	struct oc_counts counts; /* of each */
	struct oc_counts displs;
	MPI_Count count;  /* of all */
	MPI_Count stride; /* elements from one to the next; 0: all are the same block */
	MPI_Datatype type;
	const MPI_Datatype *types;
};

struct oc_neighbor_call {
	struct oc_neighbor_side send;
	struct oc_neighbor_side recv;
	bool large; /* counts are MPI_Count */
	bool alike; /* all edges have the same bytes, on all ranks: the MPI gets all or nothing */
};

/* The counts that the MPI is to get, as wide as those that the call was given. */
struct oc_neighbor_rest {
	union {
		int plain[OC_MAX_RANKS];
		int64_t large[OC_MAX_RANKS];
	} out, in;
};

/* The communicator if some edge here is served. NULL: the call is the MPI's, for the reason that
 * @call is told. Collective as oc_comm_get() is. */
struct oc_comm *oc_neighbor_begin(struct oc_call *call, const struct oc_neighbor_call *it,
				  MPI_Comm comm);

/* Moves the edges that are served. The others are in @rest, whatever failed. A failure. */
int oc_neighbor_serve(struct oc_comm *oc, enum oc_coll coll, const struct oc_neighbor_call *it,
		      struct oc_neighbor_rest *rest);

/* A call of MPI_Neighbor_allgather or _alltoall, which @pass gives to the MPI: where it is not
 * served, or is, but some rank has no neighbours and leaves it to the MPI, then without data. */
typedef int oc_neighbor_pass(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			     void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm);
int oc_neighbor_alike(enum oc_coll coll, const struct oc_neighbor_call *it, MPI_Comm comm,
		      oc_neighbor_pass *pass);

#endif
