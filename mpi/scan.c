// SPDX-License-Identifier: BSD-3-Clause
/* Scan and Exscan. */
#include "failure.h"
#include "operator.h"
#include "serve.h"
#include "tune.h"

static int serve(struct oc_comm *oc, enum oc_coll coll, struct oc_bind *bind, const void *send,
		 void *recv, MPI_Count count, MPI_Comm comm)
{
	size_t elem = oc_operator_size(bind);
	size_t bytes = (size_t)count * elem;
	struct oc_shape shape = oc_shape_of(oc, coll, 0, bytes);

	shape.granule = (uint16_t)elem;
	shape.in_place = send == MPI_IN_PLACE;
	bind->send = shape.in_place ? recv : send;
	bind->send_bytes = bytes;
	/* Before rank 0 there is nobody: its receive buffer is not looked at. */
	if (coll == OC_COLL_SCAN || oc->rank) {
		bind->recv = recv;
		bind->recv_bytes = bytes;
	}
	bind->scratch_bytes = oc_coll_scan_scratch(&shape);
	shape.stream = oc_streams(bytes);
	return oc_failure_end(oc, comm, coll, oc_serve(oc, MPI_SUCCESS, &shape, bind));
}

/* Serves MPI_Scan, MPI_Exscan: large enough; [operator and type](#reductions). */
static OC_BOTH int prefix(enum oc_coll coll, bool large, const void *send, void *recv,
			  MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(coll, 0, comm);
	struct oc_bind bind = {0};
	struct oc_operator own;
	struct oc_comm *oc = NULL;
	size_t bytes;
	int err;

	if (oc_eligible(&call, count, type, &bytes) && oc_reduces(&call, &own, &bind, op, type))
		oc = oc_comm_get(&call, comm, bytes, recv == MPI_IN_PLACE);
	if (oc)
		err = serve(oc, coll, &bind, send, recv, count, comm);
	else if (coll == OC_COLL_SCAN)
		err = oc_pass_scan(large, send, recv, count, type, op, comm);
	else
		err = oc_pass_exscan(large, send, recv, count, type, op, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			MPI_Comm comm)
{
	return prefix(OC_COLL_SCAN, false, send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int PMPI_Scan_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				MPI_Op op, MPI_Comm comm)
{
	return pmpi()->Scan_c ? prefix(OC_COLL_SCAN, true, send, recv, count, type, op, comm)
			      : oc_pass_refused(comm);
}

OC_EXPORT int PMPI_Exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			  MPI_Comm comm)
{
	return prefix(OC_COLL_EXSCAN, false, send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int PMPI_Exscan_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				  MPI_Op op, MPI_Comm comm)
{
	return pmpi()->Exscan_c ? prefix(OC_COLL_EXSCAN, true, send, recv, count, type, op, comm)
				: oc_pass_refused(comm);
}

OC_EXPORT int MPI_Scan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		       MPI_Comm comm)
{
	return oc_tool()->Scan ? oc_tool()->Scan(send, recv, count, type, op, comm)
			       : PMPI_Scan(send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int MPI_Scan_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
			       MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Scan_c ? oc_tool()->Scan_c(send, recv, count, type, op, comm)
				 : PMPI_Scan_c(send, recv, count, type, op, comm);
}

OC_EXPORT int MPI_Exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			 MPI_Comm comm)
{
	return oc_tool()->Exscan ? oc_tool()->Exscan(send, recv, count, type, op, comm)
				 : PMPI_Exscan(send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int MPI_Exscan_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				 MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Exscan_c ? oc_tool()->Exscan_c(send, recv, count, type, op, comm)
				   : PMPI_Exscan_c(send, recv, count, type, op, comm);
}
