// SPDX-License-Identifier: BSD-3-Clause
#include "neighbor.h"

#include "failure.h"
#include "pass.h"

/* Serves MPI_Neighbor_alltoall: one block is large enough. */
static int alltoall(bool large, const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
		    MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	const struct oc_exchange it = {
		.send = {.user = send, .count = scount, .stride = scount, .type = stype},
		.recv = {.user = recv, .count = rcount, .stride = rcount, .type = rtype},
		.large = large,
		.alike = true,
	};

	return oc_neighbor_alike(OC_COLL_NEIGHBOR_ALLTOALL, &it, comm, oc_pass_neighbor_alltoall);
}

/* With these counts. */
static int pass_blocks(const struct oc_exchange *it, struct oc_counts out, struct oc_counts in,
		       MPI_Comm comm)
{
	const struct oc_exchange_side *send = &it->send, *recv = &it->recv;
	void *to = (void *)(uintptr_t)recv->user;

	if (send->typed)
		return oc_pass_neighbor_alltoallw(send->user, out, send->displs, send->types, to,
						  in, recv->displs, recv->types, comm);
	return oc_pass_neighbor_alltoallv(send->user, out, send->displs, send->type, to, in,
					  recv->displs, recv->type, comm);
}

static OC_APART int serve_blocks(struct oc_comm *oc, enum oc_coll coll,
				 const struct oc_exchange *it, MPI_Comm comm)
{
	struct oc_exchange_rest rest;
	int failure = oc_neighbor_serve(oc, coll, it, &rest), err = MPI_SUCCESS;

	if (oc_failure_goes_on(oc, comm, coll, failure))
		err = pass_blocks(it, (struct oc_counts){&rest.out, it->large},
				  (struct oc_counts){&rest.in, it->large}, comm);
	return err ? err : oc_failure_end(oc, comm, coll, failure);
}

static int blocks(enum oc_coll coll, const struct oc_exchange *it, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(coll, 0, comm);
	struct oc_comm *oc = oc_neighbor_begin(&call, it, comm);
	int err = oc ? serve_blocks(oc, coll, it, comm)
		     : pass_blocks(it, it->send.counts, it->recv.counts, comm);

	return oc_call_end(&call, err);
}

static struct oc_exchange_side side_of(const void *user, struct oc_counts counts,
				       struct oc_counts displs)
{
	return (struct oc_exchange_side){
		.user = user, .each = true, .counts = counts, .displs = displs};
}

/* Serves MPI_Neighbor_alltoallv: edge by edge, blocks that are large enough; the MPI gets the same
 * call for the rest. */
static int alltoallv(const void *send, struct oc_counts scounts, struct oc_counts sdispls,
		     MPI_Datatype stype, void *recv, struct oc_counts rcounts,
		     struct oc_counts rdispls, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_exchange it = {.send = side_of(send, scounts, sdispls),
				 .recv = side_of(recv, rcounts, rdispls),
				 .large = scounts.large};

	it.send.type = stype;
	it.recv.type = rtype;
	return blocks(OC_COLL_NEIGHBOR_ALLTOALLV, &it, comm);
}

/* Serves MPI_Neighbor_alltoallw: as MPI_Neighbor_alltoallv. */
static int alltoallw(const void *send, struct oc_counts scounts, struct oc_counts sdispls,
		     const MPI_Datatype stypes[], void *recv, struct oc_counts rcounts,
		     struct oc_counts rdispls, const MPI_Datatype rtypes[], MPI_Comm comm)
{
	struct oc_exchange it = {.send = side_of(send, scounts, sdispls),
				 .recv = side_of(recv, rcounts, rdispls),
				 .large = scounts.large};

	it.send.typed = it.recv.typed = true;
	it.send.types = stypes;
	it.recv.types = rtypes;
	return blocks(OC_COLL_NEIGHBOR_ALLTOALLW, &it, comm);
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
