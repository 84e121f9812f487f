// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

static int serve(struct oc_comm *oc, const void *send, int scount, MPI_Datatype stype, void *recv,
		 int rcount, MPI_Datatype rtype, int root, MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_GATHER, root, bytes);
	struct oc_bind bind = {0};
	struct oc_buffer out = {0}, in = {0};
	bool gathers = oc->rank == root;
	int err = MPI_SUCCESS, closed;

	shape.stream = oc_streams(bytes);
	shape.in_place = send == MPI_IN_PLACE;
	if (gathers) {
		size_t n = (size_t)rcount * (size_t)oc->size;

		err = oc_buffer_recv(&in, recv, n, rtype);
		bind.recv = in.at;
		bind.recv_bytes = in.bytes;
		/* A packed copy must hold the block that is in place too. */
		if (!err && shape.in_place && in.packed) {
			MPI_Aint lb, extent;

			err = pmpi()->Type_get_extent(rtype, &lb, &extent);
			if (!err)
				err = oc_convert((char *)recv +
							 (ptrdiff_t)oc->rank * rcount * extent,
						 in.at + (size_t)oc->rank * bytes, (size_t)rcount,
						 rtype, true);
		}
	}
	if (!err && !shape.in_place) {
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
		bind.send = out.at;
		bind.send_bytes = out.bytes;
	}
	err = oc_serve(oc, comm, err, &shape, &bind);
	oc_buffer_close(&out, false, comm);
	closed = oc_buffer_close(&in, !err, comm);
	return err ? err : closed;
}

OC_EXPORT int PMPI_Gather(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	struct oc_comm *oc;
	size_t bytes;
	int rank;

	if (!oc_adapter.active || !comm || comm == oc_abi.comm_null ||
	    pmpi()->Comm_rank(comm, &rank))
		goto pass;
	if (!(rank == root ? oc_eligible(OC_COLL_GATHER, rcount, rtype, &bytes)
			   : oc_eligible(OC_COLL_GATHER, scount, stype, &bytes)))
		goto pass;
	oc = oc_comm_get(comm, bytes);
	if (oc && root >= 0 && root < oc->size)
		return serve(oc, send, scount, stype, recv, rcount, rtype, root, comm, bytes);
pass:
	oc_count_passed(OC_COLL_GATHER);
	return pmpi()->Gather(send, scount, stype, recv, rcount, rtype, root, comm);
}

/* The root: blocks that are long enough come straight from their senders, then
 * the MPI gathers the others. */
static int serve_root(struct oc_comm *oc, const void *send, int scount, MPI_Datatype stype,
		      void *recv, const int *counts, const int *displs, MPI_Datatype rtype,
		      MPI_Comm comm)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_GATHERV, oc->rank, 0);
	int skip = send == MPI_IN_PLACE ? oc->rank : -1;
	struct oc_buffer out = {0};
	struct oc_vbuffer in;
	struct oc_bind bind = {0};
	struct oc_blocks blocks;
	size_t min = oc_adapter.agreed.min[OC_COLL_GATHERV];
	int err;

	if (!oc_blocks_any(counts, rtype, oc->size, min, skip)) {
		err = oc_serve_absent(oc, comm);
		return err ? err
			   : pmpi()->Gatherv(send, scount, stype, recv, counts, displs, rtype,
					     oc->rank, comm);
	}
	err = oc_vbuffer_open(&in, recv, counts, displs, rtype, oc->size, min, skip);
	if (err) {
		err = oc_serve_plan(oc, comm, err, NULL, &bind);
		goto out;
	}
	if (in.len[oc->rank])
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
	blocks = (struct oc_blocks){.len = in.len, .off = in.off};
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_hole = oc_vbuffer_has_hole(&in);
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	bind.scratch_bytes = (size_t)oc->size * sizeof(uint64_t);
	bind.scratch_init = in.off;
	shape.stream = oc_streams(in.bytes);
	err = oc_serve_plan(oc, comm, err, oc_coll_gatherv(&shape, &blocks), &bind);
	oc_buffer_close(&out, false, comm);
	if (!err)
		err = oc_vbuffer_unpack(&in, comm);
	if (!err)
		err = pmpi()->Gatherv(send, in.len[oc->rank] ? 0 : scount, stype, recv, in.rest,
				      displs, rtype, oc->rank, comm);
out:
	oc_vbuffer_close(&in);
	return err;
}

static int serve_leaf(struct oc_comm *oc, const void *send, int scount, MPI_Datatype stype,
		      int root, MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_GATHERV, root, 0);
	struct oc_bind bind = {0};
	uint64_t len[OC_MAX_RANKS];
	struct oc_blocks blocks = {.len = len};
	struct oc_buffer out;
	int err;

	shape.stream = oc_streams(bytes);
	len[oc->rank] = bytes;
	err = oc_buffer_send(&out, send, (size_t)scount, stype);
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	err = oc_serve_plan(oc, comm, err, oc_coll_gatherv(&shape, &blocks), &bind);
	oc_buffer_close(&out, false, comm);
	return err;
}

OC_EXPORT int PMPI_Gatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
			   const int counts[], const int displs[], MPI_Datatype rtype, int root,
			   MPI_Comm comm)
{
	struct oc_comm *oc = oc_comm_get(comm, OC_CREDIT_CALL);
	size_t bytes;
	int err;

	if (!oc || root < 0 || root >= oc->size) {
		oc_count_passed(OC_COLL_GATHERV);
		return pmpi()->Gatherv(send, scount, stype, recv, counts, displs, rtype, root,
				       comm);
	}
	if (oc->rank == root)
		return serve_root(oc, send, scount, stype, recv, counts, displs, rtype, comm);
	if (oc_eligible(OC_COLL_GATHERV, scount, stype, &bytes)) {
		err = serve_leaf(oc, send, scount, stype, root, comm, bytes);
		scount = 0;
	} else {
		err = oc_serve_absent(oc, comm);
	}
	return err ? err
		   : pmpi()->Gatherv(send, scount, stype, recv, counts, displs, rtype, root, comm);
}

OC_EXPORT int MPI_Gather(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			 MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Gather
		       ? oc_tool()->Gather(send, scount, stype, recv, rcount, rtype, root, comm)
		       : PMPI_Gather(send, scount, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT int MPI_Gatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
			  const int counts[], const int displs[], MPI_Datatype rtype, int root,
			  MPI_Comm comm)
{
	return oc_tool()->Gatherv
		       ? oc_tool()->Gatherv(send, scount, stype, recv, counts, displs, rtype, root,
					    comm)
		       : PMPI_Gatherv(send, scount, stype, recv, counts, displs, rtype, root, comm);
}
