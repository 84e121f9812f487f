// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

static int serve(struct oc_comm *oc, const void *send, int scount, MPI_Datatype stype, void *recv,
		 int rcount, MPI_Datatype rtype, int root, MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_SCATTER, root, bytes);
	struct oc_bind bind = {0};
	struct oc_buffer out = {0}, in = {0};
	int err = MPI_SUCCESS, closed;

	shape.stream = oc_streams(bytes);
	shape.in_place = recv == MPI_IN_PLACE;
	if (oc->rank == root) {
		err = oc_buffer_send(&out, send, (size_t)scount * (size_t)oc->size, stype);
		bind.send = out.at;
		bind.send_bytes = out.bytes;
	}
	if (!err && !shape.in_place) {
		err = oc_buffer_recv(&in, recv, (size_t)rcount, rtype);
		bind.recv = in.at;
		bind.recv_bytes = in.bytes;
	}
	err = oc_serve(oc, comm, err, &shape, &bind);
	oc_buffer_close(&out, false, comm);
	closed = oc_buffer_close(&in, !err, comm);
	return err ? err : closed;
}

OC_EXPORT int PMPI_Scatter(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			   MPI_Datatype rtype, int root, MPI_Comm comm)
{
	struct oc_comm *oc;
	size_t bytes;
	int rank;

	if (!oc_adapter.active || !comm || comm == oc_abi.comm_null ||
	    pmpi()->Comm_rank(comm, &rank))
		goto pass;
	if (!(rank == root ? oc_eligible(OC_COLL_SCATTER, scount, stype, &bytes)
			   : oc_eligible(OC_COLL_SCATTER, rcount, rtype, &bytes)))
		goto pass;
	oc = oc_comm_get(comm, bytes);
	if (oc && root >= 0 && root < oc->size)
		return serve(oc, send, scount, stype, recv, rcount, rtype, root, comm, bytes);
pass:
	oc_count_passed(OC_COLL_SCATTER);
	return pmpi()->Scatter(send, scount, stype, recv, rcount, rtype, root, comm);
}

/* The root: blocks that are long enough are pulled by their receivers, then
 * the MPI scatters the others. */
static int serve_root(struct oc_comm *oc, const void *send, const int *counts, const int *displs,
		      MPI_Datatype stype, void *recv, int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_SCATTERV, oc->rank, 0);
	int skip = recv == MPI_IN_PLACE ? oc->rank : -1;
	struct oc_buffer in = {0};
	struct oc_vbuffer out;
	struct oc_bind bind = {0};
	struct oc_blocks blocks;
	size_t min = oc_adapter.agreed.min[OC_COLL_SCATTERV];
	int err, closed;

	if (!oc_blocks_any(counts, stype, oc->size, min, skip)) {
		err = oc_serve_absent(oc, comm);
		return err ? err
			   : pmpi()->Scatterv(send, counts, displs, stype, recv, rcount, rtype,
					      oc->rank, comm);
	}
	err = oc_vbuffer_open(&out, send, counts, displs, stype, oc->size, min, skip);
	if (err) {
		err = oc_serve_plan(oc, comm, err, NULL, &bind);
		goto out;
	}
	err = oc_vbuffer_pack(&out);
	if (!err && out.len[oc->rank])
		err = oc_buffer_recv(&in, recv, (size_t)rcount, rtype);
	blocks = (struct oc_blocks){.len = out.len, .off = out.off};
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.scratch_bytes = (size_t)oc->size * sizeof(uint64_t);
	bind.scratch_init = out.off;
	shape.stream = oc_streams(out.bytes);
	err = oc_serve_plan(oc, comm, err, oc_coll_scatterv(&shape, &blocks), &bind);
	closed = oc_buffer_close(&in, !err, comm);
	err = err ? err : closed;
	if (!err)
		err = pmpi()->Scatterv(send, out.rest, displs, stype, recv,
				       out.len[oc->rank] ? 0 : rcount, rtype, oc->rank, comm);
out:
	oc_vbuffer_close(&out);
	return err;
}

static int serve_leaf(struct oc_comm *oc, void *recv, int rcount, MPI_Datatype rtype, int root,
		      MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_SCATTERV, root, 0);
	struct oc_bind bind = {0};
	uint64_t len[OC_MAX_RANKS];
	struct oc_blocks blocks = {.len = len};
	struct oc_buffer in;
	int err, closed;

	shape.stream = oc_streams(bytes);
	len[oc->rank] = bytes;
	err = oc_buffer_recv(&in, recv, (size_t)rcount, rtype);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	err = oc_serve_plan(oc, comm, err, oc_coll_scatterv(&shape, &blocks), &bind);
	closed = oc_buffer_close(&in, !err, comm);
	return err ? err : closed;
}

OC_EXPORT int PMPI_Scatterv(const void *send, const int counts[], const int displs[],
			    MPI_Datatype stype, void *recv, int rcount, MPI_Datatype rtype,
			    int root, MPI_Comm comm)
{
	struct oc_comm *oc = oc_comm_get(comm, OC_CREDIT_CALL);
	size_t bytes;
	int err = MPI_SUCCESS;

	if (!oc || root < 0 || root >= oc->size) {
		oc_count_passed(OC_COLL_SCATTERV);
		return pmpi()->Scatterv(send, counts, displs, stype, recv, rcount, rtype, root,
					comm);
	}
	if (oc->rank == root)
		return serve_root(oc, send, counts, displs, stype, recv, rcount, rtype, comm);
	if (oc_eligible(OC_COLL_SCATTERV, rcount, rtype, &bytes)) {
		err = serve_leaf(oc, recv, rcount, rtype, root, comm, bytes);
		rcount = 0;
	} else {
		err = oc_serve_absent(oc, comm);
	}
	return err ? err
		   : pmpi()->Scatterv(send, counts, displs, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT int MPI_Scatter(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Scatter
		       ? oc_tool()->Scatter(send, scount, stype, recv, rcount, rtype, root, comm)
		       : PMPI_Scatter(send, scount, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT int MPI_Scatterv(const void *send, const int counts[], const int displs[],
			   MPI_Datatype stype, void *recv, int rcount, MPI_Datatype rtype, int root,
			   MPI_Comm comm)
{
	return oc_tool()->Scatterv ? oc_tool()->Scatterv(send, counts, displs, stype, recv, rcount,
							 rtype, root, comm)
				   : PMPI_Scatterv(send, counts, displs, stype, recv, rcount, rtype,
						   root, comm);
}
