// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.h"

#include <string.h>

#include "failure.h"
#include "inter.h"
#include "serve.h"
#include "tune.h"
#include "vopen.h"

static int serve(struct oc_comm *oc, const void *send, MPI_Count scount, MPI_Datatype stype,
		 void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm,
		 size_t bytes)
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
		bind.send_layout = out.layout;
	}
	if (!err && oc->rank == root && !shape.in_place && !oc_same_bytes(rcount, rtype, bytes))
		err = MPI_ERR_TRUNCATE;
	if (!err && !shape.in_place) {
		err = oc_buffer_recv(&in, recv, (size_t)rcount, rtype);
		bind.recv = in.at;
		bind.recv_bytes = in.bytes;
		bind.recv_layout = in.layout;
	}
	err = oc_serve(oc, err, &shape, &bind);
	oc_buffer_close(&out, false);
	closed = oc_buffer_close(&in, !err);
	return oc_failure_end(oc, comm, OC_COLL_SCATTER, err ? err : closed);
}

/* Serves MPI_Scatter: one block is large enough. */
static OC_BOTH int scatter(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			   void *recv, MPI_Count rcount, MPI_Datatype rtype, int root,
			   MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_SCATTER, root, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = NULL;
	size_t bytes = 0;
	int rank, err;

	if (inter || !oc_comm_rank(&call, comm, &rank))
		goto pass;
	if (!(rank == root ? oc_eligible(&call, scount, stype, &bytes) &&
				     oc_acceptable(&call, recv, rcount, rtype)
			   : oc_eligible(&call, rcount, rtype, &bytes)))
		goto pass;
	oc = oc_comm_get(&call, comm, bytes, (rank == root ? send : recv) == MPI_IN_PLACE);
pass:
	if (inter)
		err = oc_inter_scatter(inter, &call, large, send, scount, stype, recv, rcount,
				       rtype);
	else if (oc)
		err = serve(oc, send, scount, stype, recv, rcount, rtype, root, comm, bytes);
	else
		err = oc_pass_scatter(large, send, scount, stype, recv, rcount, rtype, root, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Scatter(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			   MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return scatter(false, send, scount, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT_LARGE int PMPI_Scatter_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				   void *recv, MPI_Count rcount, MPI_Datatype rtype, int root,
				   MPI_Comm comm)
{
	return pmpi()->Scatter_c
		       ? scatter(true, send, scount, stype, recv, rcount, rtype, root, comm)
		       : oc_pass_refused(comm);
}

/* The root: blocks that are long enough are pulled by their receivers, then
 * the MPI scatters the others. */
static OC_APART int serve_root(struct oc_comm *oc, const void *send, struct oc_counts counts,
			       struct oc_counts displs, MPI_Datatype stype, void *recv,
			       MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_SCATTERV, oc->rank, 0);
	struct oc_vector vector = {
		.user = send,
		.counts = counts,
		.displs = displs,
		.type = stype,
		.n = oc->size,
		.skip = recv == MPI_IN_PLACE ? oc->rank : -1,
	};
	struct oc_buffer in = {0};
	struct oc_vbuffer out;
	struct oc_bind bind = {0};
	struct oc_blocks blocks;
	size_t min = oc_adapter.agreed.min[OC_COLL_SCATTERV];
	uint8_t pair[OC_MAX_RANKS];
	int failure, closed, err = MPI_SUCCESS;
	bool own;

	memset(pair, 0, (size_t)oc->size);
	failure = oc_vbuffer_open(&out, &vector, min);
	own = oc_vbuffer_own(&out, oc->rank, rcount, rtype, true, pair);
	if (!failure)
		failure = oc_vbuffer_pack(&out);
	if (!failure && own)
		failure = oc_buffer_recv(&in, recv, (size_t)rcount, rtype);
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	bind.send_layout = out.layout;
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_layout = in.layout;
	bind.scratch_bytes = 2 * (size_t)oc->size * sizeof(uint64_t);
	bind.scratch_init = out.off;
	bind.pair = pair;
	shape.stream = oc_streams(out.bytes);
	blocks = (struct oc_blocks){.len = out.len, .off = out.off};
	failure = oc_serve_blocks(oc, failure, &shape, &blocks, NULL, &bind);
	closed = oc_buffer_close(&in, !failure);
	failure = failure ? failure : closed;
	oc_vbuffer_part(&out, pair, true, &failure);
	if (oc_failure_goes_on(oc, comm, OC_COLL_SCATTERV, failure))
		err = oc_pass_scatterv(send, oc_vbuffer_rest(&out), displs, stype, recv,
				       oc_vbuffer_serves(&out, oc->rank) ? 0 : rcount, rtype,
				       oc->rank, comm);
	oc_vbuffer_close(&out);
	return err ? err : oc_failure_end(oc, comm, OC_COLL_SCATTERV, failure);
}

/* A leaf's block. */
static OC_APART int serve_leaf(struct oc_comm *oc, const void *send, struct oc_counts counts,
			       struct oc_counts displs, MPI_Datatype stype, void *recv,
			       MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm,
			       size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_SCATTERV, root, bytes);
	struct oc_bind bind = {0};
	uint8_t pair[OC_MAX_RANKS] = {0};
	struct oc_buffer in;
	MPI_Count left;
	int closed, failure, err = MPI_SUCCESS;

	shape.stream = oc_streams(bytes);
	failure = oc_buffer_recv(&in, recv, (size_t)rcount, rtype);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_layout = in.layout;
	bind.pair = pair;
	failure = oc_serve_blocks(oc, failure, &shape, NULL, NULL, &bind);
	closed = oc_buffer_close(&in, !failure && pair[root] == OC_PAIR_TOGETHER);
	failure = failure ? failure : closed;
	left = oc_pair_rest(pair[root], rcount, false, &failure);
	if (oc_failure_goes_on(oc, comm, OC_COLL_SCATTERV, failure))
		err = oc_pass_scatterv(send, counts, displs, stype, recv, left, rtype, root, comm);
	return err ? err : oc_failure_end(oc, comm, OC_COLL_SCATTERV, failure);
}

/* Serves MPI_Scatterv: pair by pair, blocks that are large enough; the MPI gets the same call for
 * the rest. */
static OC_BOTH int scatterv(const void *send, struct oc_counts counts, struct oc_counts displs,
			    MPI_Datatype stype, void *recv, MPI_Count rcount, MPI_Datatype rtype,
			    int root, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_SCATTERV, root, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = inter ? NULL : oc_comm_look(&call, comm);
	uint64_t min = oc_adapter.agreed.min[OC_COLL_SCATTERV];
	size_t bytes = 0;
	int err;

	oc = oc_comm_join(
		&call, comm, oc, OC_CREDIT_CALL,
		oc && (oc->rank == root ? oc_blocks_wrong(counts, displs, stype, oc->size) ||
						  oc_in_place_wrong(
							  send, oc_counts_bits(counts, oc->size)) ||
						  (recv != MPI_IN_PLACE &&
						   oc_leaf_wrong(recv, rcount, rtype))
					: oc_leaf_wrong(recv, rcount, rtype)));
	if (call.since && !inter)
		oc_call_measure_rooted(&call, counts, stype, recv == MPI_IN_PLACE ? 0 : rcount,
				       rtype);
	if (oc && oc->rank == root &&
	    !oc_blocks_any(counts, stype, oc->size, min, recv == MPI_IN_PLACE ? root : -1)) {
		call.outcome = OC_OUTCOME_SMALL;
		oc = oc_comm_leave(oc);
	} else if (oc && oc->rank != root && !oc_eligible(&call, rcount, rtype, &bytes)) {
		oc = oc_comm_leave(oc);
	}
	if (inter)
		err = oc_inter_scatterv(inter, &call, send, counts, displs, stype, recv, rcount,
					rtype);
	else if (!oc)
		err = oc_pass_scatterv(send, counts, displs, stype, recv, rcount, rtype, root,
				       comm);
	else if (oc->rank == root)
		err = serve_root(oc, send, counts, displs, stype, recv, rcount, rtype, comm);
	else
		err = serve_leaf(oc, send, counts, displs, stype, recv, rcount, rtype, root, comm,
				 bytes);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Scatterv(const void *send, const int counts[], const int displs[],
			    MPI_Datatype stype, void *recv, int rcount, MPI_Datatype rtype,
			    int root, MPI_Comm comm)
{
	return scatterv(send, (struct oc_counts){counts, false}, (struct oc_counts){displs, false},
			stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT_LARGE int PMPI_Scatterv_c(const void *send, const MPI_Count counts[],
				    const MPI_Aint displs[], MPI_Datatype stype, void *recv,
				    MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return pmpi()->Scatterv_c ? scatterv(send, (struct oc_counts){counts, true},
					     (struct oc_counts){displs, true}, stype, recv, rcount,
					     rtype, root, comm)
				  : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Scatter(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Scatter
		       ? oc_tool()->Scatter(send, scount, stype, recv, rcount, rtype, root, comm)
		       : PMPI_Scatter(send, scount, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT_LARGE int MPI_Scatter_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				  void *recv, MPI_Count rcount, MPI_Datatype rtype, int root,
				  MPI_Comm comm)
{
	return oc_tool()->Scatter_c
		       ? oc_tool()->Scatter_c(send, scount, stype, recv, rcount, rtype, root, comm)
		       : PMPI_Scatter_c(send, scount, stype, recv, rcount, rtype, root, comm);
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

OC_EXPORT_LARGE int MPI_Scatterv_c(const void *send, const MPI_Count counts[],
				   const MPI_Aint displs[], MPI_Datatype stype, void *recv,
				   MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Scatterv_c ? oc_tool()->Scatterv_c(send, counts, displs, stype, recv,
							     rcount, rtype, root, comm)
				     : PMPI_Scatterv_c(send, counts, displs, stype, recv, rcount,
						       rtype, root, comm);
}
