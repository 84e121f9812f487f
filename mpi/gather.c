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
		bind.recv_layout = in.layout;
		/* A packed copy must hold the block that is in place too. */
		if (!err && shape.in_place && in.packed)
			err = oc_buffer_pack_block(&in, oc->rank, (size_t)rcount);
	}
	if (!err && gathers && !shape.in_place && !oc_same_bytes(scount, stype, bytes))
		err = MPI_ERR_TRUNCATE;
	if (!err && !shape.in_place) {
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
		bind.send = out.at;
		bind.send_bytes = out.bytes;
		bind.send_layout = out.layout;
	}
	err = oc_serve(oc, err, &shape, &bind);
	oc_buffer_close(&out, false);
	closed = oc_buffer_close(&in, !err);
	return oc_failure_end(oc, comm, OC_COLL_GATHER, err ? err : closed);
}

/* Serves MPI_Gather: one block is large enough. */
static OC_BOTH int gather(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			  void *recv, MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_GATHER, root, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = NULL;
	size_t bytes = 0;
	int rank, err;

	if (inter || !oc_comm_rank(&call, comm, &rank))
		goto pass;
	if (!(rank == root ? oc_eligible(&call, rcount, rtype, &bytes) &&
				     oc_acceptable(&call, send, scount, stype)
			   : oc_eligible(&call, scount, stype, &bytes)))
		goto pass;
	oc = oc_comm_get(&call, comm, bytes, (rank == root ? recv : send) == MPI_IN_PLACE);
pass:
	if (inter)
		err = oc_inter_gather(inter, &call, large, send, scount, stype, recv, rcount,
				      rtype);
	else if (oc)
		err = serve(oc, send, scount, stype, recv, rcount, rtype, root, comm, bytes);
	else
		err = oc_pass_gather(large, send, scount, stype, recv, rcount, rtype, root, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Gather(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return gather(false, send, scount, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT_LARGE int PMPI_Gather_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				  void *recv, MPI_Count rcount, MPI_Datatype rtype, int root,
				  MPI_Comm comm)
{
	return pmpi()->Gather_c ? gather(true, send, scount, stype, recv, rcount, rtype, root, comm)
				: oc_pass_refused(comm);
}

/* The root: blocks that are long enough come straight from their senders, then
 * the MPI gathers the others. */
static OC_APART int serve_root(struct oc_comm *oc, const void *send, MPI_Count scount,
			       MPI_Datatype stype, void *recv, struct oc_counts counts,
			       struct oc_counts displs, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_GATHERV, oc->rank, 0);
	struct oc_vector vector = {
		.user = recv,
		.counts = counts,
		.displs = displs,
		.type = rtype,
		.n = oc->size,
		.skip = send == MPI_IN_PLACE ? oc->rank : -1,
	};
	struct oc_buffer out = {0};
	struct oc_vbuffer in;
	struct oc_bind bind = {0};
	struct oc_blocks blocks;
	size_t min = oc_adapter.agreed.min[OC_COLL_GATHERV];
	uint8_t pair[OC_MAX_RANKS];
	int failure, parted = MPI_SUCCESS, err = MPI_SUCCESS;
	bool own;

	memset(pair, 0, (size_t)oc->size);
	failure = oc_vbuffer_open(&in, &vector, min);
	own = oc_vbuffer_own(&in, oc->rank, scount, stype, false, pair);
	if (!failure && own)
		failure = oc_buffer_send(&out, send, (size_t)scount, stype);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_layout = in.layout;
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	bind.send_layout = out.layout;
	bind.scratch_bytes = 2 * (size_t)oc->size * sizeof(uint64_t);
	bind.scratch_init = in.off;
	bind.pair = pair;
	shape.stream = oc_streams(in.bytes);
	blocks = (struct oc_blocks){.len = in.len, .off = in.off};
	bind.recv_whole = in.layout;
	if (!failure) {
		bind.recv_hole = oc_vbuffer_has_hole(&in);
		oc_vbuffer_place(&in);
	}
	failure = oc_serve_blocks(oc, failure, &shape, &blocks, NULL, &bind);
	oc_buffer_close(&out, false);
	oc_vbuffer_part(&in, pair, false, &parted);
	if (!failure)
		failure = oc_vbuffer_unpack(&in);
	failure = failure ? failure : parted;
	if (oc_failure_goes_on(oc, comm, OC_COLL_GATHERV, failure))
		err = oc_pass_gatherv(send, oc_vbuffer_serves(&in, oc->rank) ? 0 : scount, stype,
				      recv, oc_vbuffer_rest(&in), displs, rtype, oc->rank, comm);
	oc_vbuffer_close(&in);
	return err ? err : oc_failure_end(oc, comm, OC_COLL_GATHERV, failure);
}

/* A leaf's block. */
static OC_APART int serve_leaf(struct oc_comm *oc, const void *send, MPI_Count scount,
			       MPI_Datatype stype, void *recv, struct oc_counts counts,
			       struct oc_counts displs, MPI_Datatype rtype, int root, MPI_Comm comm,
			       size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_GATHERV, root, bytes);
	struct oc_bind bind = {0};
	uint8_t pair[OC_MAX_RANKS] = {0};
	struct oc_buffer out;
	MPI_Count left;
	int failure, err = MPI_SUCCESS;

	shape.stream = oc_streams(bytes);
	failure = oc_buffer_send(&out, send, (size_t)scount, stype);
	bind.send = out.at;
	bind.send_bytes = out.bytes;
	bind.send_layout = out.layout;
	bind.pair = pair;
	failure = oc_serve_blocks(oc, failure, &shape, NULL, NULL, &bind);
	left = oc_pair_rest(pair[root], scount, true, &failure);
	oc_buffer_close(&out, false);
	if (oc_failure_goes_on(oc, comm, OC_COLL_GATHERV, failure))
		err = oc_pass_gatherv(send, left, stype, recv, counts, displs, rtype, root, comm);
	return err ? err : oc_failure_end(oc, comm, OC_COLL_GATHERV, failure);
}

/* Serves MPI_Gatherv: pair by pair, blocks that are large enough; the MPI gets the same call for
 * the rest. */
static OC_BOTH int gatherv(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
			   struct oc_counts counts, struct oc_counts displs, MPI_Datatype rtype,
			   int root, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_GATHERV, root, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = inter ? NULL : oc_comm_look(&call, comm);
	uint64_t min = oc_adapter.agreed.min[OC_COLL_GATHERV];
	size_t bytes = 0;
	int err;

	oc = oc_comm_join(
		&call, comm, oc, OC_CREDIT_CALL,
		oc && (oc->rank == root ? oc_blocks_wrong(counts, displs, rtype, oc->size) ||
						  oc_in_place_wrong(
							  recv, oc_counts_bits(counts, oc->size)) ||
						  (send != MPI_IN_PLACE &&
						   oc_leaf_wrong(send, scount, stype))
					: oc_leaf_wrong(send, scount, stype)));
	if (call.since && !inter)
		oc_call_measure_rooted(&call, counts, rtype, send == MPI_IN_PLACE ? 0 : scount,
				       stype);
	if (oc && oc->rank == root &&
	    !oc_blocks_any(counts, rtype, oc->size, min, send == MPI_IN_PLACE ? root : -1)) {
		call.outcome = OC_OUTCOME_SMALL;
		oc = oc_comm_leave(oc);
	} else if (oc && oc->rank != root && !oc_eligible(&call, scount, stype, &bytes)) {
		oc = oc_comm_leave(oc);
	}
	if (inter)
		err = oc_inter_gatherv(inter, &call, send, scount, stype, recv, counts, displs,
				       rtype);
	else if (!oc)
		err = oc_pass_gatherv(send, scount, stype, recv, counts, displs, rtype, root, comm);
	else if (oc->rank == root)
		err = serve_root(oc, send, scount, stype, recv, counts, displs, rtype, comm);
	else
		err = serve_leaf(oc, send, scount, stype, recv, counts, displs, rtype, root, comm,
				 bytes);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Gatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
			   const int counts[], const int displs[], MPI_Datatype rtype, int root,
			   MPI_Comm comm)
{
	return gatherv(send, scount, stype, recv, (struct oc_counts){counts, false},
		       (struct oc_counts){displs, false}, rtype, root, comm);
}

OC_EXPORT_LARGE int PMPI_Gatherv_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				   void *recv, const MPI_Count counts[], const MPI_Aint displs[],
				   MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return pmpi()->Gatherv_c
		       ? gatherv(send, scount, stype, recv, (struct oc_counts){counts, true},
				 (struct oc_counts){displs, true}, rtype, root, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Gather(const void *send, int scount, MPI_Datatype stype, void *recv, int rcount,
			 MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Gather
		       ? oc_tool()->Gather(send, scount, stype, recv, rcount, rtype, root, comm)
		       : PMPI_Gather(send, scount, stype, recv, rcount, rtype, root, comm);
}

OC_EXPORT_LARGE int MPI_Gather_c(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
				 MPI_Count rcount, MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Gather_c
		       ? oc_tool()->Gather_c(send, scount, stype, recv, rcount, rtype, root, comm)
		       : PMPI_Gather_c(send, scount, stype, recv, rcount, rtype, root, comm);
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

OC_EXPORT_LARGE int MPI_Gatherv_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				  void *recv, const MPI_Count counts[], const MPI_Aint displs[],
				  MPI_Datatype rtype, int root, MPI_Comm comm)
{
	return oc_tool()->Gatherv_c ? oc_tool()->Gatherv_c(send, scount, stype, recv, counts,
							   displs, rtype, root, comm)
				    : PMPI_Gatherv_c(send, scount, stype, recv, counts, displs,
						     rtype, root, comm);
}
