// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

static int serve(struct oc_comm *oc, const void *send, int scount, MPI_Datatype stype, void *recv,
		 int rcount, MPI_Datatype rtype, MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_ALLGATHER, 0, bytes);
	struct oc_bind bind = {0};
	struct oc_buffer out = {0}, in;
	MPI_Aint lb, extent;
	int err, closed;

	shape.in_place = send == MPI_IN_PLACE;
	err = oc_buffer_recv(&in, recv, (size_t)rcount * (size_t)oc->size, rtype);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	shape.stream = oc_streams(bytes * (size_t)oc->size);
	if (!err && !shape.in_place) {
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
		bind.send = out.at;
	} else if (!err) {
		char *own = in.at + (size_t)oc->rank * bytes;

		bind.send = own;
		if (in.packed)
			err = pmpi()->Type_get_extent(rtype, &lb, &extent);
		if (!err && in.packed)
			err = oc_convert((char *)recv + (ptrdiff_t)oc->rank * rcount * extent, own,
					 (size_t)rcount, rtype, true);
	}
	bind.send_bytes = bytes;
	err = oc_serve(oc, comm, err, &shape, &bind);
	oc_buffer_close(&out, false, comm);
	closed = oc_buffer_close(&in, !err, comm);
	return err ? err : closed;
}

OC_EXPORT int PMPI_Allgather(const void *send, int scount, MPI_Datatype stype, void *recv,
			     int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_comm *oc;
	size_t bytes;

	if (oc_eligible(OC_COLL_ALLGATHER, rcount, rtype, &bytes)) {
		oc = oc_comm_get(comm, bytes);
		if (oc)
			return serve(oc, send, scount, stype, recv, rcount, rtype, comm, bytes);
	}
	oc_count_passed(OC_COLL_ALLGATHER);
	return pmpi()->Allgather(send, scount, stype, recv, rcount, rtype, comm);
}

static int serve_v(struct oc_comm *oc, const void *send, int scount, MPI_Datatype stype, void *recv,
		   const int *counts, const int *displs, MPI_Datatype rtype, MPI_Comm comm,
		   size_t total)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_ALLGATHERV, 0, total);
	struct oc_bind bind = {0};
	struct oc_buffer out = {0};
	struct oc_vbuffer in;
	struct oc_blocks blocks;
	MPI_Aint lb, extent;
	int err;

	shape.stream = oc_streams(total);
	shape.in_place = send == MPI_IN_PLACE;
	err = oc_vbuffer_open(&in, recv, counts, displs, rtype, oc->size, 1, -1);
	if (err) {
		err = oc_serve_plan(oc, comm, err, NULL, &bind);
		goto out;
	}
	blocks = (struct oc_blocks){.len = in.len, .off = in.off};
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	if (!shape.in_place) {
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
		bind.send = out.at;
	} else {
		bind.send = in.at + in.off[oc->rank];
		err = pmpi()->Type_get_extent(rtype, &lb, &extent);
		if (!err && in.packed)
			err = oc_convert((char *)recv + (ptrdiff_t)displs[oc->rank] * extent,
					 in.at + in.off[oc->rank], (size_t)counts[oc->rank], rtype,
					 true);
	}
	bind.send_bytes = in.len[oc->rank];
	err = oc_serve_plan(oc, comm, err, oc_coll_allgatherv(&shape, &blocks), &bind);
	oc_buffer_close(&out, false, comm);
	if (!err)
		err = oc_vbuffer_unpack(&in, comm);
out:
	oc_vbuffer_close(&in);
	return err;
}

OC_EXPORT int PMPI_Allgatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
			      const int counts[], const int displs[], MPI_Datatype rtype,
			      MPI_Comm comm)
{
	struct oc_comm *oc;
	uint64_t total;
	int size = oc_comm_ranks(comm);

	if (!size || !rtype || rtype == oc_abi.type_null || !oc_counts_total(counts, size, &total))
		goto pass;
	total *= oc_type_bytes(rtype, 1);
	/* A mean block as long as a served block of MPI_Allgather. */
	if (total < oc_adapter.agreed.min[OC_COLL_ALLGATHERV] * (uint64_t)size || !total)
		goto pass;
	oc = oc_comm_get(comm, total);
	if (oc)
		return serve_v(oc, send, scount, stype, recv, counts, displs, rtype, comm, total);
pass:
	oc_count_passed(OC_COLL_ALLGATHERV);
	return pmpi()->Allgatherv(send, scount, stype, recv, counts, displs, rtype, comm);
}

OC_EXPORT int MPI_Allgather(const void *send, int scount, MPI_Datatype stype, void *recv,
			    int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Allgather
		       ? oc_tool()->Allgather(send, scount, stype, recv, rcount, rtype, comm)
		       : PMPI_Allgather(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT int MPI_Allgatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
			     const int counts[], const int displs[], MPI_Datatype rtype,
			     MPI_Comm comm)
{
	return oc_tool()->Allgatherv
		       ? oc_tool()->Allgatherv(send, scount, stype, recv, counts, displs, rtype,
					       comm)
		       : PMPI_Allgatherv(send, scount, stype, recv, counts, displs, rtype, comm);
}
