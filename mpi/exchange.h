/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_EXCHANGE_H
#define OC_MPI_EXCHANGE_H

/*
 * An exchange of blocks between the ranks of a group that have an edge, as MPI_Alltoallw is one
 * between all. Edges between the same two ranks are one block there. Which edges are served their
 * ends find by the edges' own bytes, but for what a sender leaves to the MPI because of its pieces.
 * What neighbourhood collectives are, and collectives between two groups.
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
struct oc_exchange_side {
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

struct oc_exchange {
	struct oc_exchange_side send;
	struct oc_exchange_side recv;
	bool large; /* counts are MPI_Count */
	bool alike; /* the MPI gets all or nothing, for the calls on all ranks are of one mind */
};

/* The counts that the MPI is to get, as wide as those that the call was given. */
struct oc_exchange_rest {
	union {
		int plain[OC_MAX_RANKS];
		int64_t large[OC_MAX_RANKS];
	} out, in;
};

/* Whose blocks there are at this rank. */
struct oc_exchange_edges {
	const struct oc_edges *out;
	const struct oc_edges *in;
	bool several; /* edges from here to some rank, or from there */
	size_t min;   /* bytes from which an edge is served */
};

/* For statistics: the size and data of a call that has @out and @in blocks, of which those of @min
 * bytes would be served. */
void oc_exchange_measure(struct oc_call *call, const struct oc_exchange *it, int out, int in,
			 size_t min);

/* Whether the MPI is to report what is wrong with a call of so many blocks, which nobody is to look
 * at then. */
bool oc_exchange_is_wrong(const struct oc_exchange *it, int out, int in);

/* Whether some edge is to be served. If not, @call is told why. */
bool oc_exchange_serves(struct oc_call *call, const struct oc_exchange *it,
			const struct oc_exchange_edges *edges);

/* Moves the edges that are served, by the plans of @coll: OC_COLL_GATHERV, if all go to one rank,
 * or one of those that are made as alltoallv is. The others are in @rest, whatever failed.
 * @prepared: a failure before it, of which the others are told. A failure. */
int oc_exchange_serve(struct oc_comm *oc, enum oc_coll coll, int prepared,
		      const struct oc_exchange_edges *edges, const struct oc_exchange *it,
		      struct oc_exchange_rest *rest);

/* After that, where the MPI has one count for all edges that leave here (Allgatherv): the most that
 * is left of any. */
MPI_Count oc_exchange_left(const struct oc_exchange *it, const struct oc_exchange_rest *rest,
			   const struct oc_edges *out);

#endif
