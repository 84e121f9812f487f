// SPDX-License-Identifier: BSD-3-Clause
#include "failure.h"
#include "inter.h"
#include "serve.h"

/* Serves MPI_Barrier: the communicator lies within the node. */
OC_EXPORT int PMPI_Barrier(MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_BARRIER, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = inter ? NULL : oc_comm_get(&call, comm, OC_CREDIT_CALL, false);
	struct oc_bind bind = {0};
	struct oc_shape shape;
	int err;

	if (inter) {
		err = oc_inter_barrier(inter, &call);
	} else if (oc) {
		shape = oc_shape_of(oc, OC_COLL_BARRIER, 0, 0);
		err = oc_failure_end(oc, comm, OC_COLL_BARRIER,
				     oc_serve(oc, MPI_SUCCESS, &shape, &bind));
	} else {
		err = pmpi()->Barrier(comm);
	}
	return oc_call_end(&call, err);
}

OC_EXPORT int MPI_Barrier(MPI_Comm comm)
{
	return oc_tool()->Barrier ? oc_tool()->Barrier(comm) : PMPI_Barrier(comm);
}
