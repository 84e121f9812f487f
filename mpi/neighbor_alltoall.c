// SPDX-License-Identifier: BSD-3-Clause
#include "neighbor.h"

#include "failure.h"
#include "pass.h"

/* Serves MPI_Neighbor_alltoall: one block is large enough. */
static OC_BOTH int alltoall(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			    void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_NEIGHBOR_ALLTOALL, 0, comm);
	struct oc_neighbor_call it;
	struct oc_comm *oc;
	int err;

	it = (struct oc_neighbor_call){
		.send = {.user = send, .count = scount, .stride = scount, .type = stype},
		.recv = {.user = recv, .count = rcount, .stride = rcount, .type = rtype},
		.large = large,
		.alike = true,
	};
	oc = oc_neighbor_begin(&call, &it, comm);
	err = oc ? oc_neighbor_serve_alike(oc, OC_COLL_NEIGHBOR_ALLTOALL, &it, comm,
					   oc_pass_neighbor_alltoall)
		 : oc_pass_neighbor_alltoall(large, send, scount, stype, recv, rcount, rtype, comm);
	return oc_call_end(&call, err);
}

static int pass_rest(const struct oc_neighbor_call *it, const struct oc_neighbor_rest *rest,
		     MPI_Comm comm)
{
	const struct oc_neighbor_side *send = &it->send, *recv = &it->recv;
	struct oc_counts out = {&rest->out, it->large}, in = {&rest->in, it->large};
	void *to = (void *)(uintptr_t)recv->user;

	if (send->typed)
		return oc_pass_neighbor_alltoallw(send->user, out, send->displs, send->types, to,
						  in, recv->displs, recv->types, comm);
	return oc_pass_neighbor_alltoallv(send->user, out, send->displs, send->type, to, in,
					  recv->displs, recv->type, comm);
}

static OC_APART int serve_blocks(struct oc_comm *oc, enum oc_coll coll,
				 const struct oc_neighbor_call *it, MPI_Comm comm)
{
	struct oc_neighbor_rest rest;
	int failure = oc_neighbor_serve(oc, coll, it, &rest), err = MPI_SUCCESS;

	if (oc_failure_goes_on(oc, comm, coll, failure))
		err = pass_rest(it, &rest, comm);
	return err ? err : oc_failure_end(oc, comm, coll, failure);
}

/* Serves MPI_Neighbor_alltoallv: edge by edge, blocks that are large enough; the MPI gets the same
 * call for the rest. */
static OC_BOTH int alltoallv(const void *send, struct oc_counts scounts, struct oc_counts sdispls,
			     MPI_Datatype stype, void *recv, struct oc_counts rcounts,
			     struct oc_counts rdispls, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_NEIGHBOR_ALLTOALLV, 0, comm);
	struct oc_neighbor_call it;
	struct oc_comm *oc;
	int err;

	it = (struct oc_neighbor_call){
		.send = {.user = send,
			 .each = true,
			 .counts = scounts,
			 .displs = sdispls,
			 .type = stype},
		.recv = {.user = recv,
			 .each = true,
			 .counts = rcounts,
			 .displs = rdispls,
			 .type = rtype},
		.large = scounts.large,
		.alike = false,
	};
	oc = oc_neighbor_begin(&call, &it, comm);
	err = oc ? serve_blocks(oc, OC_COLL_NEIGHBOR_ALLTOALLV, &it, comm)
		 : oc_pass_neighbor_alltoallv(send, scounts, sdispls, stype, recv, rcounts, rdispls,
					      rtype, comm);
	return oc_call_end(&call, err);
}

/* Serves MPI_Neighbor_alltoallw: as MPI_Neighbor_alltoallv. */
static OC_BOTH int alltoallw(const void *send, struct oc_counts scounts, struct oc_counts sdispls,
			     const MPI_Datatype stypes[], void *recv, struct oc_counts rcounts,
			     struct oc_counts rdispls, const MPI_Datatype rtypes[], MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_NEIGHBOR_ALLTOALLW, 0, comm);
	struct oc_neighbor_call it;
	struct oc_comm *oc;
	int err;

	it = (struct oc_neighbor_call){
		.send = {.user = send,
			 .each = true,
			 .typed = true,
			 .counts = scounts,
			 .displs = sdispls,
			 .types = stypes},
		.recv = {.user = recv,
			 .each = true,
			 .typed = true,
			 .counts = rcounts,
			 .displs = rdispls,
			 .types = rtypes},
		.large = scounts.large,
		.alike = false,
	};
	oc = oc_neighbor_begin(&call, &it, comm);
	err = oc ? serve_blocks(oc, OC_COLL_NEIGHBOR_ALLTOALLW, &it, comm)
		 : oc_pass_neighbor_alltoallw(send, scounts, sdispls, stypes, recv, rcounts,
					      rdispls, rtypes, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Neighbor_alltoall(const void *send, int scount, MPI_Datatype stype, void *recv,
				     int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return alltoall(false, send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Neighbor_alltoall_c(const void *send, MPI_Count scount, MPI_Datatype stype,
					     void *recv, MPI_Count rcount, MPI_Datatype rtype,
					     MPI_Comm comm)
{
	return pmpi()->Neighbor_alltoall_c
		       ? alltoall(true, send, scount, stype, recv, rcount, rtype, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Neighbor_alltoall(const void *send, int scount, MPI_Datatype stype, void *recv,
				    int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Neighbor_alltoall
		       ? oc_tool()->Neighbor_alltoall(send, scount, stype, recv, rcount, rtype,
						      comm)
		       : PMPI_Neighbor_alltoall(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int MPI_Neighbor_alltoall_c(const void *send, MPI_Count scount, MPI_Datatype stype,
					    void *recv, MPI_Count rcount, MPI_Datatype rtype,
					    MPI_Comm comm)
{
	return oc_tool()->Neighbor_alltoall_c
		       ? oc_tool()->Neighbor_alltoall_c(send, scount, stype, recv, rcount, rtype,
							comm)
		       : PMPI_Neighbor_alltoall_c(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT int PMPI_Neighbor_alltoallv(const void *send, const int scounts[], const int sdispls[],
				      MPI_Datatype stype, void *recv, const int rcounts[],
				      const int rdispls[], MPI_Datatype rtype, MPI_Comm comm)
{
	return alltoallv(send, (struct oc_counts){scounts, false},
			 (struct oc_counts){sdispls, false}, stype, recv,
			 (struct oc_counts){rcounts, false}, (struct oc_counts){rdispls, false},
			 rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Neighbor_alltoallv_c(const void *send, const MPI_Count scounts[],
					      const MPI_Aint sdispls[], MPI_Datatype stype,
					      void *recv, const MPI_Count rcounts[],
					      const MPI_Aint rdispls[], MPI_Datatype rtype,
					      MPI_Comm comm)
{
	return pmpi()->Neighbor_alltoallv_c
		       ? alltoallv(send, (struct oc_counts){scounts, true},
				   (struct oc_counts){sdispls, true}, stype, recv,
				   (struct oc_counts){rcounts, true},
				   (struct oc_counts){rdispls, true}, rtype, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Neighbor_alltoallv(const void *send, const int scounts[], const int sdispls[],
				     MPI_Datatype stype, void *recv, const int rcounts[],
				     const int rdispls[], MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Neighbor_alltoallv
		       ? oc_tool()->Neighbor_alltoallv(send, scounts, sdispls, stype, recv, rcounts,
						       rdispls, rtype, comm)
		       : PMPI_Neighbor_alltoallv(send, scounts, sdispls, stype, recv, rcounts,
						 rdispls, rtype, comm);
}

OC_EXPORT_LARGE int MPI_Neighbor_alltoallv_c(const void *send, const MPI_Count scounts[],
					     const MPI_Aint sdispls[], MPI_Datatype stype,
					     void *recv, const MPI_Count rcounts[],
					     const MPI_Aint rdispls[], MPI_Datatype rtype,
					     MPI_Comm comm)
{
	return oc_tool()->Neighbor_alltoallv_c
		       ? oc_tool()->Neighbor_alltoallv_c(send, scounts, sdispls, stype, recv,
							 rcounts, rdispls, rtype, comm)
		       : PMPI_Neighbor_alltoallv_c(send, scounts, sdispls, stype, recv, rcounts,
						   rdispls, rtype, comm);
}

OC_EXPORT int PMPI_Neighbor_alltoallw(const void *send, const int scounts[],
				      const MPI_Aint sdispls[], const MPI_Datatype stypes[],
				      void *recv, const int rcounts[], const MPI_Aint rdispls[],
				      const MPI_Datatype rtypes[], MPI_Comm comm)
{
	return alltoallw(send, (struct oc_counts){scounts, false},
			 (struct oc_counts){sdispls, true}, stypes, recv,
			 (struct oc_counts){rcounts, false}, (struct oc_counts){rdispls, true},
			 rtypes, comm);
}

OC_EXPORT_LARGE int PMPI_Neighbor_alltoallw_c(const void *send, const MPI_Count scounts[],
					      const MPI_Aint sdispls[], const MPI_Datatype stypes[],
					      void *recv, const MPI_Count rcounts[],
					      const MPI_Aint rdispls[], const MPI_Datatype rtypes[],
					      MPI_Comm comm)
{
	return pmpi()->Neighbor_alltoallw_c
		       ? alltoallw(send, (struct oc_counts){scounts, true},
				   (struct oc_counts){sdispls, true}, stypes, recv,
				   (struct oc_counts){rcounts, true},
				   (struct oc_counts){rdispls, true}, rtypes, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Neighbor_alltoallw(const void *send, const int scounts[],
				     const MPI_Aint sdispls[], const MPI_Datatype stypes[],
				     void *recv, const int rcounts[], const MPI_Aint rdispls[],
				     const MPI_Datatype rtypes[], MPI_Comm comm)
{
	return oc_tool()->Neighbor_alltoallw
		       ? oc_tool()->Neighbor_alltoallw(send, scounts, sdispls, stypes, recv,
						       rcounts, rdispls, rtypes, comm)
		       : PMPI_Neighbor_alltoallw(send, scounts, sdispls, stypes, recv, rcounts,
						 rdispls, rtypes, comm);
}

OC_EXPORT_LARGE int MPI_Neighbor_alltoallw_c(const void *send, const MPI_Count scounts[],
					     const MPI_Aint sdispls[], const MPI_Datatype stypes[],
					     void *recv, const MPI_Count rcounts[],
					     const MPI_Aint rdispls[], const MPI_Datatype rtypes[],
					     MPI_Comm comm)
{
	return oc_tool()->Neighbor_alltoallw_c
		       ? oc_tool()->Neighbor_alltoallw_c(send, scounts, sdispls, stypes, recv,
							 rcounts, rdispls, rtypes, comm)
		       : PMPI_Neighbor_alltoallw_c(send, scounts, sdispls, stypes, recv, rcounts,
						   rdispls, rtypes, comm);
}
