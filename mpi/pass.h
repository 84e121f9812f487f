/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_PASS_H
#define OC_MPI_PASS_H

/* Hands a call on to the MPI in the form in which it came: with counts of int, or the large one. */

#include "count.h"
#include "pmpi.h"

static inline int oc_pass_bcast(bool large, void *buffer, MPI_Count count, MPI_Datatype type,
				int root, MPI_Comm comm)
{
	return large ? pmpi()->Bcast_c(buffer, count, type, root, comm)
		     : pmpi()->Bcast(buffer, (int)count, type, root, comm);
}

static inline int oc_pass_scatter(bool large, const void *send, MPI_Count scount,
				  MPI_Datatype stype, void *recv, MPI_Count rcount,
				  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return large ? pmpi()->Scatter_c(send, scount, stype, recv, rcount, rtype, root, comm)
		     : pmpi()->Scatter(send, (int)scount, stype, recv, (int)rcount, rtype, root,
				       comm);
}

static inline int oc_pass_scatterv(const void *send, struct oc_counts counts,
				   struct oc_counts displs, MPI_Datatype stype, void *recv,
				   MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return counts.large ? pmpi()->Scatterv_c(send, counts.at, displs.at, stype, recv, rcount,
						 rtype, root, comm)
			    : pmpi()->Scatterv(send, counts.at, displs.at, stype, recv, (int)rcount,
					       rtype, root, comm);
}

static inline int oc_pass_gather(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
				 void *recv, MPI_Count rcount, MPI_Datatype rtype, int root,
				 MPI_Comm comm)
{
	return large ? pmpi()->Gather_c(send, scount, stype, recv, rcount, rtype, root, comm)
		     : pmpi()->Gather(send, (int)scount, stype, recv, (int)rcount, rtype, root,
				      comm);
}

static inline int oc_pass_gatherv(const void *send, MPI_Count scount, MPI_Datatype stype,
				  void *recv, struct oc_counts counts, struct oc_counts displs,
				  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return counts.large ? pmpi()->Gatherv_c(send, scount, stype, recv, counts.at, displs.at,
						rtype, root, comm)
			    : pmpi()->Gatherv(send, (int)scount, stype, recv, counts.at, displs.at,
					      rtype, root, comm);
}

static inline int oc_pass_allgather(bool large, const void *send, MPI_Count scount,
				    MPI_Datatype stype, void *recv, MPI_Count rcount,
				    MPI_Datatype rtype, MPI_Comm comm)
{
	return large ? pmpi()->Allgather_c(send, scount, stype, recv, rcount, rtype, comm)
		     : pmpi()->Allgather(send, (int)scount, stype, recv, (int)rcount, rtype, comm);
}

static inline int oc_pass_allgatherv(const void *send, MPI_Count scount, MPI_Datatype stype,
				     void *recv, struct oc_counts counts, struct oc_counts displs,
				     MPI_Datatype rtype, MPI_Comm comm)
{
	return counts.large ? pmpi()->Allgatherv_c(send, scount, stype, recv, counts.at, displs.at,
						   rtype, comm)
			    : pmpi()->Allgatherv(send, (int)scount, stype, recv, counts.at,
						 displs.at, rtype, comm);
}

static inline int oc_pass_alltoall(bool large, const void *send, MPI_Count scount,
				   MPI_Datatype stype, void *recv, MPI_Count rcount,
				   MPI_Datatype rtype, MPI_Comm comm)
{
	return large ? pmpi()->Alltoall_c(send, scount, stype, recv, rcount, rtype, comm)
		     : pmpi()->Alltoall(send, (int)scount, stype, recv, (int)rcount, rtype, comm);
}

static inline int oc_pass_alltoallv(const void *send, struct oc_counts scounts,
				    struct oc_counts sdispls, MPI_Datatype stype, void *recv,
				    struct oc_counts rcounts, struct oc_counts rdispls,
				    MPI_Datatype rtype, MPI_Comm comm)
{
	return scounts.large ? pmpi()->Alltoallv_c(send, scounts.at, sdispls.at, stype, recv,
						   rcounts.at, rdispls.at, rtype, comm)
			     : pmpi()->Alltoallv(send, scounts.at, sdispls.at, stype, recv,
						 rcounts.at, rdispls.at, rtype, comm);
}

static inline int oc_pass_alltoallw(const void *send, struct oc_counts scounts,
				    struct oc_counts sdispls, const MPI_Datatype *stypes,
				    void *recv, struct oc_counts rcounts, struct oc_counts rdispls,
				    const MPI_Datatype *rtypes, MPI_Comm comm)
{
	return scounts.large ? pmpi()->Alltoallw_c(send, scounts.at, sdispls.at, stypes, recv,
						   rcounts.at, rdispls.at, rtypes, comm)
			     : pmpi()->Alltoallw(send, scounts.at, sdispls.at, stypes, recv,
						 rcounts.at, rdispls.at, rtypes, comm);
}

static inline int oc_pass_scan(bool large, const void *send, void *recv, MPI_Count count,
			       MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return large ? pmpi()->Scan_c(send, recv, count, type, op, comm)
		     : pmpi()->Scan(send, recv, (int)count, type, op, comm);
}

static inline int oc_pass_exscan(bool large, const void *send, void *recv, MPI_Count count,
				 MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return large ? pmpi()->Exscan_c(send, recv, count, type, op, comm)
		     : pmpi()->Exscan(send, recv, (int)count, type, op, comm);
}

static inline int oc_pass_reduce(bool large, const void *send, void *recv, MPI_Count count,
				 MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
	return large ? pmpi()->Reduce_c(send, recv, count, type, op, root, comm)
		     : pmpi()->Reduce(send, recv, (int)count, type, op, root, comm);
}

static inline int oc_pass_allreduce(bool large, const void *send, void *recv, MPI_Count count,
				    MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return large ? pmpi()->Allreduce_c(send, recv, count, type, op, comm)
		     : pmpi()->Allreduce(send, recv, (int)count, type, op, comm);
}

static inline int oc_pass_reduce_scatter(const void *send, void *recv, struct oc_counts counts,
					 MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return counts.large ? pmpi()->Reduce_scatter_c(send, recv, counts.at, type, op, comm)
			    : pmpi()->Reduce_scatter(send, recv, counts.at, type, op, comm);
}

static inline int oc_pass_reduce_scatter_block(bool large, const void *send, void *recv,
					       MPI_Count count, MPI_Datatype type, MPI_Op op,
					       MPI_Comm comm)
{
	return large ? pmpi()->Reduce_scatter_block_c(send, recv, count, type, op, comm)
		     : pmpi()->Reduce_scatter_block(send, recv, (int)count, type, op, comm);
}

static inline int oc_pass_neighbor_allgather(bool large, const void *send, MPI_Count scount,
					     MPI_Datatype stype, void *recv, MPI_Count rcount,
					     MPI_Datatype rtype, MPI_Comm comm)
{
	return large ? pmpi()->Neighbor_allgather_c(send, scount, stype, recv, rcount, rtype, comm)
		     : pmpi()->Neighbor_allgather(send, (int)scount, stype, recv, (int)rcount,
						  rtype, comm);
}

static inline int oc_pass_neighbor_allgatherv(const void *send, MPI_Count scount,
					      MPI_Datatype stype, void *recv,
					      struct oc_counts counts, struct oc_counts displs,
					      MPI_Datatype rtype, MPI_Comm comm)
{
	return counts.large ? pmpi()->Neighbor_allgatherv_c(send, scount, stype, recv, counts.at,
							    displs.at, rtype, comm)
			    : pmpi()->Neighbor_allgatherv(send, (int)scount, stype, recv, counts.at,
							  displs.at, rtype, comm);
}

static inline int oc_pass_neighbor_alltoall(bool large, const void *send, MPI_Count scount,
					    MPI_Datatype stype, void *recv, MPI_Count rcount,
					    MPI_Datatype rtype, MPI_Comm comm)
{
	return large ? pmpi()->Neighbor_alltoall_c(send, scount, stype, recv, rcount, rtype, comm)
		     : pmpi()->Neighbor_alltoall(send, (int)scount, stype, recv, (int)rcount, rtype,
						 comm);
}

static inline int oc_pass_neighbor_alltoallv(const void *send, struct oc_counts scounts,
					     struct oc_counts sdispls, MPI_Datatype stype,
					     void *recv, struct oc_counts rcounts,
					     struct oc_counts rdispls, MPI_Datatype rtype,
					     MPI_Comm comm)
{
	return scounts.large
		       ? pmpi()->Neighbor_alltoallv_c(send, scounts.at, sdispls.at, stype, recv,
						      rcounts.at, rdispls.at, rtype, comm)
		       : pmpi()->Neighbor_alltoallv(send, scounts.at, sdispls.at, stype, recv,
						    rcounts.at, rdispls.at, rtype, comm);
}

static inline int oc_pass_neighbor_alltoallw(const void *send, struct oc_counts scounts,
					     struct oc_counts sdispls, const MPI_Datatype *stypes,
					     void *recv, struct oc_counts rcounts,
					     struct oc_counts rdispls, const MPI_Datatype *rtypes,
					     MPI_Comm comm)
{
	return scounts.large
		       ? pmpi()->Neighbor_alltoallw_c(send, scounts.at, sdispls.at, stypes, recv,
						      rcounts.at, rdispls.at, rtypes, comm)
		       : pmpi()->Neighbor_alltoallw(send, scounts.at, sdispls.at, stypes, recv,
						    rcounts.at, rdispls.at, rtypes, comm);
}

/* What a large form says of an MPI that has none, though its ABI does: as if it were not there. */
static inline int oc_pass_refused(MPI_Comm comm)
{
	pmpi()->Comm_call_errhandler(comm, MPI_ERR_UNSUPPORTED_OPERATION);
	return MPI_ERR_UNSUPPORTED_OPERATION;
}

#endif
