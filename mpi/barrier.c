// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

OC_EXPORT int PMPI_Barrier(MPI_Comm comm)
{
	struct oc_comm *oc = oc_comm_get(comm, OC_CREDIT_CALL);
	struct oc_bind bind = {0};
	struct oc_shape shape;

	if (oc) {
		shape = oc_shape_of(oc, OC_COLL_BARRIER, 0, 0);
		return oc_serve(oc, comm, MPI_SUCCESS, &shape, &bind);
	}
	oc_count_passed(OC_COLL_BARRIER);
	return pmpi()->Barrier(comm);
}

OC_EXPORT int MPI_Barrier(MPI_Comm comm)
{
	return oc_tool()->Barrier ? oc_tool()->Barrier(comm) : PMPI_Barrier(comm);
}
