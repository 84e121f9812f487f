// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.h"
#include "failure.h"
#include "inter.h"
#include "serve.h"
#include "tune.h"

static int serve(struct oc_comm *oc, void *user, MPI_Count count, MPI_Datatype type, int root,
		 MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_BCAST, root, bytes);
	bool sends = oc->rank == root;
	struct oc_bind bind = {0};
	struct oc_buffer data;
	int err, closed;

	shape.stream = oc_streams(bytes);
	err = sends ? oc_buffer_send(&data, user, (size_t)count, type)
		    : oc_buffer_recv(&data, user, (size_t)count, type);
	if (!err && sends) {
		bind.send = data.at;
		bind.send_bytes = bytes;
		bind.send_layout = data.layout;
	}
	if (!err) {
		bind.recv = data.at;
		bind.recv_bytes = bytes;
		bind.recv_layout = data.layout;
	}
	err = oc_serve(oc, err, &shape, &bind);
	closed = oc_buffer_close(&data, !sends && !err);
	return oc_failure_end(oc, comm, OC_COLL_BCAST, err ? err : closed);
}

/* Serves MPI_Bcast: the message is large enough. */
static OC_BOTH int bcast(bool large, void *buffer, MPI_Count count, MPI_Datatype type, int root,
			 MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_BCAST, root, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = NULL;
	size_t bytes;
	int err;

	if (!inter && oc_call_has_root(&call) && oc_eligible(&call, count, type, &bytes))
		oc = oc_comm_get(&call, comm, bytes, buffer == MPI_IN_PLACE);
	if (inter)
		err = oc_inter_bcast(inter, &call, large, buffer, count, type);
	else if (oc)
		err = serve(oc, buffer, count, type, root, comm, bytes);
	else
		err = oc_pass_bcast(large, buffer, count, type, root, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	return bcast(false, buffer, count, type, root, comm);
}

OC_EXPORT_LARGE int PMPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root,
				 MPI_Comm comm)
{
	return pmpi()->Bcast_c ? bcast(true, buffer, count, type, root, comm)
			       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	return oc_tool()->Bcast ? oc_tool()->Bcast(buffer, count, type, root, comm)
				: PMPI_Bcast(buffer, count, type, root, comm);
}

OC_EXPORT_LARGE int MPI_Bcast_c(void *buffer, MPI_Count count, MPI_Datatype type, int root,
				MPI_Comm comm)
{
	return oc_tool()->Bcast_c ? oc_tool()->Bcast_c(buffer, count, type, root, comm)
				  : PMPI_Bcast_c(buffer, count, type, root, comm);
}
