// SPDX-License-Identifier: BSD-3-Clause
/* Reduce, Allreduce, Reduce_scatter and Reduce_scatter_block. */
#include "failure.h"

#include <errno.h>
#include <stdlib.h>

#include "inter.h"
#include "operator.h"
#include "serve.h"
#include "tune.h"
#include "vbuffer.h"

static int serve(struct oc_comm *oc, enum oc_coll coll, struct oc_bind *bind, const void *send,
		 void *recv, MPI_Count count, int root, MPI_Comm comm)
{
	size_t elem = oc_operator_size(bind);
	size_t bytes = (size_t)count * elem;
	struct oc_shape shape = oc_shape_of(oc, coll, root, bytes);

	shape.granule = (uint16_t)elem;
	bind->send = send == MPI_IN_PLACE ? recv : send;
	bind->send_bytes = bytes;
	if (coll == OC_COLL_ALLREDUCE || oc->rank == root) {
		bind->recv = recv;
		bind->recv_bytes = bytes;
	}
	bind->scratch_bytes = oc_coll_slice_max(&shape, bytes);
	shape.stream = oc_streams(bytes);
	return oc_failure_end(oc, comm, coll, oc_serve(oc, MPI_SUCCESS, &shape, bind));
}

/* Serves MPI_Reduce: large enough; [operator and type](#reductions). */
static OC_BOTH int reduce(bool large, const void *send, void *recv, MPI_Count count,
			  MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_REDUCE, root, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_bind bind = {0};
	struct oc_operator own;
	struct oc_comm *oc = NULL;
	size_t bytes = 0;
	int err;

	if (!inter && oc_call_has_root(&call) && oc_eligible(&call, count, type, &bytes) &&
	    oc_reduces(&call, &own, &bind, op, type))
		oc = oc_comm_look(&call, comm);
	oc = oc_comm_join(&call, comm, oc, bytes,
			  oc && ((oc->rank == root ? recv : send) == MPI_IN_PLACE));
	if (inter)
		err = oc_inter_reduce(inter, &call, large, send, recv, count, type, op);
	else if (oc)
		err = serve(oc, OC_COLL_REDUCE, &bind, send, recv, count, root, comm);
	else
		err = oc_pass_reduce(large, send, recv, count, type, op, root, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			  int root, MPI_Comm comm)
{
	return reduce(false, send, recv, count, type, op, root, comm);
}

OC_EXPORT_LARGE int PMPI_Reduce_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				  MPI_Op op, int root, MPI_Comm comm)
{
	return pmpi()->Reduce_c ? reduce(true, send, recv, count, type, op, root, comm)
				: oc_pass_refused(comm);
}

/* Serves MPI_Allreduce: large enough; [operator and type](#reductions). */
static OC_BOTH int allreduce(bool large, const void *send, void *recv, MPI_Count count,
			     MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_ALLREDUCE, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_bind bind = {0};
	struct oc_operator own;
	struct oc_comm *oc = NULL;
	size_t bytes;
	int err;

	if (!inter && oc_eligible(&call, count, type, &bytes) &&
	    oc_reduces(&call, &own, &bind, op, type))
		oc = oc_comm_get(&call, comm, bytes, recv == MPI_IN_PLACE);
	if (inter)
		err = oc_inter_allreduce(inter, &call, large, send, recv, count, type, op);
	else if (oc)
		err = serve(oc, OC_COLL_ALLREDUCE, &bind, send, recv, count, 0, comm);
	else
		err = oc_pass_allreduce(large, send, recv, count, type, op, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			     MPI_Comm comm)
{
	return allreduce(false, send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int PMPI_Allreduce_c(const void *send, void *recv, MPI_Count count,
				     MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return pmpi()->Allreduce_c ? allreduce(true, send, recv, count, type, op, comm)
				   : oc_pass_refused(comm);
}

/* Without memory for what a Reduce_scatter needs before it can take part. */
static int decline(struct oc_comm *oc, MPI_Comm comm)
{
	int err = oc_serve_blocks(oc, MPI_ERR_NO_MEM, NULL, NULL, NULL, NULL);

	return oc_failure_end(oc, comm, OC_COLL_REDUCE_SCATTER, err);
}

/* @counts: [size] elements of each rank's block. */
static int serve_scatter(struct oc_comm *oc, struct oc_bind *bind, const void *send, void *recv,
			 struct oc_counts counts, MPI_Comm comm)
{
	size_t elem = oc_operator_size(bind);
	size_t n = (size_t)oc->size;
	uint64_t *len = calloc(2 * n, sizeof(*len));
	struct oc_blocks blocks = {.len = len, .off = len + n};
	struct oc_shape shape;
	uint64_t total = 0;
	int err;

	if (!len)
		return decline(oc, comm);
	for (size_t r = 0; r < n; r++) {
		len[r] = (uint64_t)oc_counts_at(counts, (int)r) * elem;
		len[n + r] = total;
		total += len[r];
	}
	shape = oc_shape_of(oc, OC_COLL_REDUCE_SCATTER, 0, total);
	/* Which the standard forbids, but MPIs do as well. */
	shape.in_place = send == MPI_IN_PLACE || send == recv;
	bind->send = shape.in_place ? recv : send;
	bind->send_bytes = total;
	bind->recv = recv;
	bind->recv_bytes = len[oc->rank];
	bind->scratch_bytes = shape.in_place ? len[oc->rank] : 0;
	shape.stream = oc_streams(len[oc->rank]);
	err = oc_serve_blocks(oc, MPI_SUCCESS, &shape, &blocks, NULL, bind);
	free(len);
	return oc_failure_end(oc, comm, OC_COLL_REDUCE_SCATTER, err);
}

/* What a call whose blocks have @count elements together is decided by. */
static struct oc_comm *get_scatter(struct oc_call *call, struct oc_operator *own,
				   struct oc_bind *bind, const void *recv, uint64_t count,
				   MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	uint64_t bytes = count * oc_type_bytes(type, 1);
	uint64_t min = oc_adapter.agreed.min[OC_COLL_REDUCE_SCATTER];

	call->size = bytes;
	if (!oc_adapter.active)
		return NULL;
	call->outcome = oc_outcome_below(min, bytes);
	if (bytes < min || !oc_reduces(call, own, bind, op, type))
		return NULL;
	return oc_comm_get(call, comm, bytes, recv == MPI_IN_PLACE);
}

/* Serves MPI_Reduce_scatter: all blocks together are large enough; [operator and
 * type](#reductions). */
static OC_BOTH int reduce_scatter(const void *send, void *recv, struct oc_counts counts,
				  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_REDUCE_SCATTER, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_bind bind = {0};
	struct oc_operator own;
	struct oc_comm *oc = NULL;
	uint64_t total;
	int size = inter ? 0 : oc_comm_ranks(&call, comm);
	int err;

	if (size && type && type != oc_abi.type_null && oc_counts_total(counts, size, &total))
		oc = get_scatter(&call, &own, &bind, recv, total, type, op, comm);
	if (inter)
		err = oc_inter_reduce_scatter(inter, &call, send, recv, counts, type, op);
	else if (oc)
		err = serve_scatter(oc, &bind, send, recv, counts, comm);
	else
		err = oc_pass_reduce_scatter(send, recv, counts, type, op, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Reduce_scatter(const void *send, void *recv, const int counts[],
				  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return reduce_scatter(send, recv, (struct oc_counts){counts, false}, type, op, comm);
}

OC_EXPORT_LARGE int PMPI_Reduce_scatter_c(const void *send, void *recv, const MPI_Count counts[],
					  MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return pmpi()->Reduce_scatter_c
		       ? reduce_scatter(send, recv, (struct oc_counts){counts, true}, type, op,
					comm)
		       : oc_pass_refused(comm);
}

/* Blocks of one length. */
static int serve_blocks(struct oc_comm *oc, struct oc_bind *bind, const void *send, void *recv,
			MPI_Count count, MPI_Comm comm)
{
	oc_large_count *counts = calloc((size_t)oc->size, sizeof(*counts));
	int err;

	if (!counts)
		return decline(oc, comm);
	for (int r = 0; r < oc->size; r++)
		counts[r] = count;
	err = serve_scatter(oc, bind, send, recv, (struct oc_counts){counts, true}, comm);
	free(counts);
	return err;
}

/* Serves MPI_Reduce_scatter_block: all blocks together are large enough; [operator and
 * type](#reductions). */
static OC_BOTH int reduce_scatter_block(bool large, const void *send, void *recv, MPI_Count count,
					MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct oc_call call = oc_call_begin(OC_COLL_REDUCE_SCATTER, 0, comm);
	struct oc_inter *inter = oc_inter_get(comm);
	struct oc_bind bind = {0};
	struct oc_operator own;
	struct oc_comm *oc = NULL;
	int size = inter ? 0 : oc_comm_ranks(&call, comm);
	int err;

	if (size && count > 0 && type && type != oc_abi.type_null)
		oc = get_scatter(&call, &own, &bind, recv, (uint64_t)size * (uint64_t)count, type,
				 op, comm);
	if (inter)
		err = oc_inter_reduce_scatter_block(inter, &call, large, send, recv, count, type,
						    op);
	else if (oc)
		err = serve_blocks(oc, &bind, send, recv, count, comm);
	else
		err = oc_pass_reduce_scatter_block(large, send, recv, count, type, op, comm);
	return oc_call_end(&call, err);
}

OC_EXPORT int PMPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
					MPI_Op op, MPI_Comm comm)
{
	return reduce_scatter_block(false, send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int PMPI_Reduce_scatter_block_c(const void *send, void *recv, MPI_Count count,
						MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return pmpi()->Reduce_scatter_block_c
		       ? reduce_scatter_block(true, send, recv, count, type, op, comm)
		       : oc_pass_refused(comm);
}

OC_EXPORT int MPI_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			 int root, MPI_Comm comm)
{
	return oc_tool()->Reduce ? oc_tool()->Reduce(send, recv, count, type, op, root, comm)
				 : PMPI_Reduce(send, recv, count, type, op, root, comm);
}

OC_EXPORT_LARGE int MPI_Reduce_c(const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				 MPI_Op op, int root, MPI_Comm comm)
{
	return oc_tool()->Reduce_c ? oc_tool()->Reduce_c(send, recv, count, type, op, root, comm)
				   : PMPI_Reduce_c(send, recv, count, type, op, root, comm);
}

OC_EXPORT int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
			    MPI_Comm comm)
{
	return oc_tool()->Allreduce ? oc_tool()->Allreduce(send, recv, count, type, op, comm)
				    : PMPI_Allreduce(send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int MPI_Allreduce_c(const void *send, void *recv, MPI_Count count,
				    MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Allreduce_c ? oc_tool()->Allreduce_c(send, recv, count, type, op, comm)
				      : PMPI_Allreduce_c(send, recv, count, type, op, comm);
}

OC_EXPORT int MPI_Reduce_scatter(const void *send, void *recv, const int counts[],
				 MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Reduce_scatter
		       ? oc_tool()->Reduce_scatter(send, recv, counts, type, op, comm)
		       : PMPI_Reduce_scatter(send, recv, counts, type, op, comm);
}

OC_EXPORT_LARGE int MPI_Reduce_scatter_c(const void *send, void *recv, const MPI_Count counts[],
					 MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Reduce_scatter_c
		       ? oc_tool()->Reduce_scatter_c(send, recv, counts, type, op, comm)
		       : PMPI_Reduce_scatter_c(send, recv, counts, type, op, comm);
}

OC_EXPORT int MPI_Reduce_scatter_block(const void *send, void *recv, int count, MPI_Datatype type,
				       MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Reduce_scatter_block
		       ? oc_tool()->Reduce_scatter_block(send, recv, count, type, op, comm)
		       : PMPI_Reduce_scatter_block(send, recv, count, type, op, comm);
}

OC_EXPORT_LARGE int MPI_Reduce_scatter_block_c(const void *send, void *recv, MPI_Count count,
					       MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	return oc_tool()->Reduce_scatter_block_c
		       ? oc_tool()->Reduce_scatter_block_c(send, recv, count, type, op, comm)
		       : PMPI_Reduce_scatter_block_c(send, recv, count, type, op, comm);
}
