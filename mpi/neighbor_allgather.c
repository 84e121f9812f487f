// SPDX-License-Identifier: BSD-3-Clause
#include "neighbor.h"

#include "failure.h"
#include "pass.h"

/* Serves MPI_Neighbor_allgather: one block is large enough. */
static int allgather(bool large, const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
		     MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	const struct oc_exchange it = {
		.send = {.user = send, .count = scount, .type = stype},
		.recv = {.user = recv, .count = rcount, .stride = rcount, .type = rtype},
		.large = large,
		.alike = true,
	};

	return oc_neighbor_alike(OC_COLL_NEIGHBOR_ALLGATHER, &it, comm, oc_pass_neighbor_allgather);
}

static OC_APART int serve_v(struct oc_comm *oc, const struct oc_exchange *it, MPI_Comm comm)
{
	enum oc_coll coll = OC_COLL_NEIGHBOR_ALLGATHERV;
	struct oc_exchange_rest rest;
	int failure = oc_neighbor_serve(oc, coll, it, &rest), err = MPI_SUCCESS;
	struct oc_counts in = {&rest.in, it->large};

	if (oc_failure_goes_on(oc, comm, coll, failure))
		err = oc_pass_neighbor_allgatherv(it->send.user,
						  oc_exchange_left(it, &rest, &oc->topology->out),
						  it->send.type, (void *)(uintptr_t)it->recv.user,
						  in, it->recv.displs, it->recv.type, comm);
	return err ? err : oc_failure_end(oc, comm, coll, failure);
}

/* Serves MPI_Neighbor_allgatherv: edge by edge, blocks that are large enough; the MPI gets the same
 * call for the rest. */
static OC_BOTH int allgatherv(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
			      struct oc_counts counts, struct oc_counts displs, MPI_Datatype rtype,
			      MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_NEIGHBOR_ALLGATHERV, 0, comm);
	struct oc_exchange it;
	struct oc_comm *oc;
	int err;

	it = (struct oc_exchange){
		.send = {.user = send, .count = scount, .type = stype},
		.recv = {.user = recv,
			 .each = true,
			 .counts = counts,
			 .displs = displs,
			 .type = rtype},
		.large = counts.large,
		.alike = false,
	};
	oc = oc_neighbor_begin(&call, &it, comm);
	err = oc ? serve_v(oc, &it, comm)
		 : oc_pass_neighbor_allgatherv(send, scount, stype, recv, counts, displs, rtype,
					       comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Neighbor_allgather(const void *send, int scount, MPI_Datatype stype, void *recv,
				      int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return allgather(false, send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Neighbor_allgather_c(const void *send, MPI_Count scount,
					      MPI_Datatype stype, void *recv, MPI_Count rcount,
					      MPI_Datatype rtype, MPI_Comm comm)
{
	return pmpi()->Neighbor_allgather_c
		       ? allgather(true, send, scount, stype, recv, rcount, rtype, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Neighbor_allgather(const void *send, int scount, MPI_Datatype stype, void *recv,
				     int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Neighbor_allgather
		       ? oc_tool()->Neighbor_allgather(send, scount, stype, recv, rcount, rtype,
						       comm)
		       : PMPI_Neighbor_allgather(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int MPI_Neighbor_allgather_c(const void *send, MPI_Count scount, MPI_Datatype stype,
					     void *recv, MPI_Count rcount, MPI_Datatype rtype,
					     MPI_Comm comm)
{
	return oc_tool()->Neighbor_allgather_c
		       ? oc_tool()->Neighbor_allgather_c(send, scount, stype, recv, rcount, rtype,
							 comm)
		       : PMPI_Neighbor_allgather_c(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT int PMPI_Neighbor_allgatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
				       const int counts[], const int displs[], MPI_Datatype rtype,
				       MPI_Comm comm)
{
	return allgatherv(send, scount, stype, recv, (struct oc_counts){counts, false},
			  (struct oc_counts){displs, false}, rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Neighbor_allgatherv_c(const void *send, MPI_Count scount,
					       MPI_Datatype stype, void *recv,
					       const MPI_Count counts[], const MPI_Aint displs[],
					       MPI_Datatype rtype, MPI_Comm comm)
{
	return pmpi()->Neighbor_allgatherv_c
		       ? allgatherv(send, scount, stype, recv, (struct oc_counts){counts, true},
				    (struct oc_counts){displs, true}, rtype, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Neighbor_allgatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
				      const int counts[], const int displs[], MPI_Datatype rtype,
				      MPI_Comm comm)
{
	return oc_tool()->Neighbor_allgatherv
		       ? oc_tool()->Neighbor_allgatherv(send, scount, stype, recv, counts, displs,
							rtype, comm)
		       : PMPI_Neighbor_allgatherv(send, scount, stype, recv, counts, displs, rtype,
						  comm);
}

OC_EXPORT_LARGE int MPI_Neighbor_allgatherv_c(const void *send, MPI_Count scount,
					      MPI_Datatype stype, void *recv,
					      const MPI_Count counts[], const MPI_Aint displs[],
					      MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Neighbor_allgatherv_c
		       ? oc_tool()->Neighbor_allgatherv_c(send, scount, stype, recv, counts, displs,
							  rtype, comm)
		       : PMPI_Neighbor_allgatherv_c(send, scount, stype, recv, counts, displs,
						    rtype, comm);
}
