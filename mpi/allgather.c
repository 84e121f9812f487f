// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.h"
#include "failure.h"
#include "inter.h"
#include "serve.h"
#include "tune.h"
#include "vopen.h"

static int serve(struct oc_comm *oc, const void *send, MPI_Count scount, MPI_Datatype stype,
		 void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_ALLGATHER, 0, bytes);
	struct oc_bind bind = {0};
	struct oc_buffer out = {0}, in;
	int err, closed;

	shape.in_place = send == MPI_IN_PLACE;
	err = oc_buffer_recv(&in, recv, (size_t)rcount * (size_t)oc->size, rtype);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_layout = in.layout;
	shape.stream = oc_streams(bytes * (size_t)oc->size);
	if (!err && !shape.in_place && !oc_same_bytes(scount, stype, bytes))
		err = MPI_ERR_TRUNCATE;
	if (!err && !shape.in_place) {
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
		bind.send = out.at;
		bind.send_layout = out.layout;
	} else if (!err && in.layout) {
		err = oc_buffer_send(
			&out, oc_layout_at(recv, (int64_t)oc->rank * rcount * in.layout->extent),
			(size_t)rcount, rtype);
		bind.send = out.at;
		bind.send_layout = out.layout;
	} else if (!err) {
		bind.send = in.at + (size_t)oc->rank * bytes;
		if (in.packed)
			err = oc_buffer_pack_block(&in, oc->rank, (size_t)rcount);
	}
	bind.send_bytes = bytes;
	err = oc_serve(oc, err, &shape, &bind);
	oc_buffer_close(&out, false);
	closed = oc_buffer_close(&in, !err);
	return oc_failure_end(oc, comm, OC_COLL_ALLGATHER, err ? err : closed);
}

/* Serves MPI_Allgather: one block is large enough. */
static OC_BOTH int allgather(bool large, const void *send, MPI_Count scount, MPI_Datatype stype,
			     void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_ALLGATHER, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_comm *oc = NULL;
	size_t bytes;
	int err;

	if (!inter && oc_eligible(&call, rcount, rtype, &bytes))
		oc = oc_comm_get(&call, comm, bytes,
				 recv == MPI_IN_PLACE || oc_sent_wrong(send, scount, stype));
	if (inter)
		err = oc_inter_allgather(inter, &call, large, send, scount, stype, recv, rcount,
					 rtype);
	else if (oc)
		err = serve(oc, send, scount, stype, recv, rcount, rtype, comm, bytes);
	else
		err = oc_pass_allgather(large, send, scount, stype, recv, rcount, rtype, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Allgather(const void *send, int scount, MPI_Datatype stype, void *recv,
			     int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return allgather(false, send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Allgather_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				     void *recv, MPI_Count rcount, MPI_Datatype rtype,
				     MPI_Comm comm)
{
	return pmpi()->Allgather_c ? allgather(true, send, scount, stype, recv, rcount, rtype, comm)
				   : oc_pass_refused(comm);
}

static int serve_v(struct oc_comm *oc, const void *send, MPI_Count scount, MPI_Datatype stype,
		   void *recv, struct oc_counts counts, struct oc_counts displs, MPI_Datatype rtype,
		   MPI_Comm comm, size_t total)
{
	struct oc_shape shape = oc_shape_of(oc, OC_COLL_ALLGATHERV, 0, total);
	struct oc_vector vector = {recv, counts, displs, rtype, .n = oc->size, .skip = -1};
	struct oc_bind bind = {0};
	struct oc_buffer out = {0};
	struct oc_vbuffer in;
	struct oc_blocks blocks;
	MPI_Aint lb, extent;
	int err;

	shape.stream = oc_streams(total);
	shape.in_place = send == MPI_IN_PLACE;
	err = oc_vbuffer_open(&in, &vector, 1);
	bind.recv = in.at;
	bind.recv_bytes = in.bytes;
	bind.recv_layout = in.layout;
	bind.recv_whole = in.bytes <= total;
	if (!err && !shape.in_place && !oc_same_bytes(scount, stype, in.len[oc->rank]))
		err = MPI_ERR_TRUNCATE;
	if (!err && !shape.in_place) {
		err = oc_buffer_send(&out, send, (size_t)scount, stype);
		bind.send = out.at;
		bind.send_layout = out.layout;
	} else if (!err && in.layout) {
		err = pmpi()->Type_get_extent(rtype, &lb, &extent);
		if (!err)
			err = oc_buffer_send(
				&out, oc_layout_at(recv, oc_counts_at(displs, oc->rank) * extent),
				(size_t)oc_counts_at(counts, oc->rank), rtype);
		bind.send = out.at;
		bind.send_layout = out.layout;
	} else if (!err) {
		bind.send = in.at + in.off[oc->rank];
		err = pmpi()->Type_get_extent(rtype, &lb, &extent);
		if (!err && in.copy.at)
			err = oc_convert((char *)recv + oc_counts_at(displs, oc->rank) * extent,
					 in.at + in.off[oc->rank],
					 (size_t)oc_counts_at(counts, oc->rank), rtype, true);
	}
	if (!err)
		bind.send_bytes = in.len[oc->rank];
	blocks = (struct oc_blocks){.len = in.len, .off = in.off};
	err = oc_serve_blocks(oc, err, &shape, &blocks, NULL, &bind);
	oc_buffer_close(&out, false);
	if (!err) {
		/* Blocks of one element may lie where they are while longer ones are in a copy:
		 * this rank's was sent from the user's memory then, and its copy has nothing. */
		if (shape.in_place)
			in.put[oc->rank] = OC_VBUFFER_NOWHERE;
		err = oc_vbuffer_unpack(&in);
	}
	oc_vbuffer_close(&in);
	return oc_failure_end(oc, comm, OC_COLL_ALLGATHERV, err);
}

/* Serves MPI_Allgatherv: the mean block is large enough. */
static OC_BOTH int allgatherv(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
			      struct oc_counts counts, struct oc_counts displs, MPI_Datatype rtype,
			      MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_ALLGATHERV, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	uint64_t min = oc_adapter.agreed.min[OC_COLL_ALLGATHERV], total;
	struct oc_comm *oc = NULL;
	int size = inter ? 0 : oc_comm_ranks(&call, comm);
	int err;

	if (!size || !rtype || rtype == oc_abi.type_null || !oc_counts_total(counts, size, &total))
		goto pass;
	if (call.since)
		oc_call_measure(&call, (struct oc_counts){0}, oc_abi.type_null, counts, rtype);
	total *= oc_type_bytes(rtype, 1);
	/* A mean block as long as a served block of MPI_Allgather. */
	if (total >= min * (uint64_t)size && total)
		oc = oc_comm_get(&call, comm, total,
				 recv == MPI_IN_PLACE || !displs.at ||
					 oc_sent_wrong(send, scount, stype));
	else if (oc_adapter.active)
		call.outcome = oc_outcome_below(min, total);
pass:
	if (inter)
		err = oc_inter_allgatherv(inter, &call, send, scount, stype, recv, counts, displs,
					  rtype);
	else if (oc)
		err = serve_v(oc, send, scount, stype, recv, counts, displs, rtype, comm, total);
	else
		err = oc_pass_allgatherv(send, scount, stype, recv, counts, displs, rtype, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Allgatherv(const void *send, int scount, MPI_Datatype stype, void *recv,
			      const int counts[], const int displs[], MPI_Datatype rtype,
			      MPI_Comm comm)
{
	return allgatherv(send, scount, stype, recv, (struct oc_counts){counts, false},
			  (struct oc_counts){displs, false}, rtype, comm);
}

OC_EXPORT_LARGE int PMPI_Allgatherv_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				      void *recv, const MPI_Count counts[], const MPI_Aint displs[],
				      MPI_Datatype rtype, MPI_Comm comm)
{
	return pmpi()->Allgatherv_c
		       ? allgatherv(send, scount, stype, recv, (struct oc_counts){counts, true},
				    (struct oc_counts){displs, true}, rtype, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Allgather(const void *send, int scount, MPI_Datatype stype, void *recv,
			    int rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Allgather
		       ? oc_tool()->Allgather(send, scount, stype, recv, rcount, rtype, comm)
		       : PMPI_Allgather(send, scount, stype, recv, rcount, rtype, comm);
}

OC_EXPORT_LARGE int MPI_Allgather_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				    void *recv, MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Allgather_c
		       ? oc_tool()->Allgather_c(send, scount, stype, recv, rcount, rtype, comm)
		       : PMPI_Allgather_c(send, scount, stype, recv, rcount, rtype, comm);
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

OC_EXPORT_LARGE int MPI_Allgatherv_c(const void *send, MPI_Count scount, MPI_Datatype stype,
				     void *recv, const MPI_Count counts[], const MPI_Aint displs[],
				     MPI_Datatype rtype, MPI_Comm comm)
{
	return oc_tool()->Allgatherv_c
		       ? oc_tool()->Allgatherv_c(send, scount, stype, recv, counts, displs, rtype,
						 comm)
		       : PMPI_Allgatherv_c(send, scount, stype, recv, counts, displs, rtype, comm);
}
