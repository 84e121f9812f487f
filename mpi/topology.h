/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_TOPOLOGY_H
#define OC_MPI_TOPOLOGY_H

/*
 * Who is whose neighbour on a communicator with a process topology (MPI-4.1, chapter 8): what a
 * neighbourhood collective's blocks are for.
 */

#include <stdbool.h>

#include <mpi.h>

/* One direction. A call has @degree blocks; those of MPI_PROC_NULL move nothing. */
struct oc_edges {
	int degree;
	int n;	    /* edges: blocks of processes */
	int *rank;  /* [n] whose, ascending; edges of one rank in the order of their sender's blocks
		     */
	int *block; /* [n] which block of the call's */
};

/* Which edge from one rank to another is which where there are several: MPIs differ, and from call
 * to call. A gathered block is the same along all of them. */
enum oc_edge_order { OC_EDGES_ALLTOALL, OC_EDGES_ALLTOALLV, OC_EDGES_ALLTOALLW, OC_EDGE_ORDERS };

struct oc_topology {
	struct oc_edges out;
	struct oc_edges in[OC_EDGE_ORDERS];
	bool several;		    /* edges from here to some rank, or from there */
	bool connected;		    /* edges lead from each rank to each, in some direction */
	bool known[OC_EDGE_ORDERS]; /* has been asked for, on all ranks */
	bool good[OC_EDGE_ORDERS];  /* and found, on all ranks */
};

/*
 * Finds out the topology of @comm, of which this process is rank @rank of @size, with this order
 * of its edges; @known is what was returned before, or NULL. Collective. It, or what takes its
 * place, has known[order] then. For oc_topology_free().
 *
 * The order is asked of the MPI itself, by a call that says what each block is for: the standard
 * gives it since MPI 4.0 (8.6) for Cartesian grids only. Not before it is wanted, and by the very
 * call: MPICH 4.0's MPI_Neighbor_alltoallw loses messages, most of all of several edges.
 */
struct oc_topology *oc_topology_ask(MPI_Comm comm, int rank, int size, struct oc_topology *known,
				    enum oc_edge_order order);

/* How many blocks a call on @comm has at this rank. Local; false if there is no topology. */
bool oc_topology_degrees(MPI_Comm comm, int *out, int *in);

void oc_topology_free(struct oc_topology *topology);

#endif
