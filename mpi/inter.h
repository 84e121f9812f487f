/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_INTER_H
#define OC_MPI_INTER_H

/*
 * Intercommunicators (MPI-4.1, 7.6): collectives move blocks from ranks of one group to ranks of
 * the other (6.2.3), so each is an exchange within both together; reductions have plans of their
 * own.
 *
 * Of a call with a root the others of its group know nothing. So every rank counts every call of
 * those below, whatever it moves, and each takes one number of the group's operations. That is
 * known of a communicator from the beginning: those that MPI_Intercomm_create and
 * MPI_Intercomm_create_from_groups make, and their duplicates, are served, if all their ranks are
 * on the node.
 */

#include <stdbool.h>

#include <mpi.h>

#include "adapter.h"
#include "call.h"
#include "comm.h"
#include "comm_free.h"
#include "count.h"
#include "exchange.h"

/* One of them, attached to it as an attribute. */
struct oc_inter {
	struct oc_comm oc; /* of both groups, one after the other; its rank when it has a group */
	int local;	   /* ranks of this group */
	int remote;	   /* and of the other */
	int *rank;	   /* [remote] in both, when it has a group */
	int *block;	   /* [remote] in a call that has a block for each */
	struct oc_exchange_rest rest; /* of the call that is under way */
};

struct oc_inter *oc_inter_find(MPI_Comm comm);

/* NULL: @comm is none that may be served. */
static inline struct oc_inter *oc_inter_get(MPI_Comm comm)
{
	return __builtin_expect(oc_adapter.inter, 0) ? oc_inter_find(comm) : NULL;
}

/* From where to where blocks go. */
enum oc_inter_way { OC_INTER_FROM_ROOT, OC_INTER_TO_ROOT, OC_INTER_ALL };

/* This rank's edges in a call. */
struct oc_inter_edges {
	struct oc_edges out;
	struct oc_edges in;
};

/* Counts a call. False: this communicator has no group, and the call is the MPI's, for the reason
 * that @call is told. Else it is to be served, or left by oc_comm_leave(). Collective. */
bool oc_inter_count(struct oc_inter *inter, struct oc_call *call);

/* Whether this rank has a part in a call with a root. If not, @call is told why. */
bool oc_inter_has_part(const struct oc_inter *inter, struct oc_call *call);

/* Counts a call that goes @way. True, with the edges, if some are served here; else the call is the
 * MPI's at this rank, for the reason that @call is told. Collective. */
bool oc_inter_begin(struct oc_inter *inter, struct oc_call *call, enum oc_inter_way way,
		    const struct oc_exchange *it, struct oc_inter_edges *edges);

/* oc_exchange_serve() of it. What is left is in @inter->rest. */
int oc_inter_serve(struct oc_inter *inter, enum oc_inter_way way, const struct oc_exchange *it,
		   const struct oc_inter_edges *edges);

/* The calls, for which see mpi/pass.h: what they return is the call's. */
int oc_inter_bcast(struct oc_inter *inter, struct oc_call *call, bool large, void *buffer,
		   MPI_Count count, MPI_Datatype type);
int oc_inter_scatter(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		     MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		     MPI_Datatype rtype);
int oc_inter_scatterv(struct oc_inter *inter, struct oc_call *call, const void *send,
		      struct oc_counts counts, struct oc_counts displs, MPI_Datatype stype,
		      void *recv, MPI_Count rcount, MPI_Datatype rtype);
int oc_inter_gather(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		    MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		    MPI_Datatype rtype);
int oc_inter_gatherv(struct oc_inter *inter, struct oc_call *call, const void *send,
		     MPI_Count scount, MPI_Datatype stype, void *recv, struct oc_counts counts,
		     struct oc_counts displs, MPI_Datatype rtype);
int oc_inter_allgather(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		       MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		       MPI_Datatype rtype);
int oc_inter_allgatherv(struct oc_inter *inter, struct oc_call *call, const void *send,
			MPI_Count scount, MPI_Datatype stype, void *recv, struct oc_counts counts,
			struct oc_counts displs, MPI_Datatype rtype);
int oc_inter_alltoall(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		      MPI_Count scount, MPI_Datatype stype, void *recv, MPI_Count rcount,
		      MPI_Datatype rtype);
int oc_inter_alltoallv(struct oc_inter *inter, struct oc_call *call, const void *send,
		       struct oc_counts scounts, struct oc_counts sdispls, MPI_Datatype stype,
		       void *recv, struct oc_counts rcounts, struct oc_counts rdispls,
		       MPI_Datatype rtype);
int oc_inter_alltoallw(struct oc_inter *inter, struct oc_call *call, const void *send,
		       struct oc_counts scounts, struct oc_counts sdispls,
		       const MPI_Datatype *stypes, void *recv, struct oc_counts rcounts,
		       struct oc_counts rdispls, const MPI_Datatype *rtypes);

/* Reductions, and what has no blocks at all: inter_reduce.c. */
int oc_inter_reduce(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		    void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op);
int oc_inter_allreduce(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		       void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op);
int oc_inter_reduce_scatter(struct oc_inter *inter, struct oc_call *call, const void *send,
			    void *recv, struct oc_counts counts, MPI_Datatype type, MPI_Op op);
int oc_inter_reduce_scatter_block(struct oc_inter *inter, struct oc_call *call, bool large,
				  const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				  MPI_Op op);
int oc_inter_barrier(struct oc_inter *inter, struct oc_call *call);

/* A communicator that was just made of two groups. MPI_SUCCESS, or an error that its handler has
 * been told of. */
int oc_inter_made(MPI_Comm comm);

int oc_inter_setup(void); /* 0 or -errno */
void oc_inter_teardown(void);

#endif
