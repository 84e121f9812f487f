// SPDX-License-Identifier: BSD-3-Clause
/*
 * Reductions and barriers on intercommunicators. All who have a part in one pass the same operator
 * and, in each group, the same count and type; those of the two groups have the same signature
 * (MPI-4.1, 6.9 and 6.10.1). For a predefined operator that is the same type, so that all of them
 * serve it or none; a user's may have types of its own, of which nobody here knows the others', and
 * is the MPI's. A barrier waits for both groups, which 6.3 allows.
 */
#include "inter.h"

#include <stdlib.h>

#include "failure.h"
#include "operator.h"
#include "pass.h"
#include "serve.h"
#include "tune.h"
#include "vbuffer.h"

/* What a call reduces by, from the decision to the operation. */
struct reduction {
	struct oc_bind bind;
	struct oc_operator own;
};

/* Whether a call is served that this rank counts; of the buffers one that does not count here is
 * NULL. A @count below 0 is for the MPI to report. */
static bool begin(struct oc_inter *inter, struct oc_call *call, struct reduction *by,
		  const void *send, const void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
	bool in_place = send == MPI_IN_PLACE || recv == MPI_IN_PLACE; /* 6.2.3: there is none */
	bool part = call->coll != OC_COLL_REDUCE || oc_inter_has_part(inter, call);
	bool has_group, reduces;
	size_t bytes;

	if (call->outcome == OC_OUTCOME_INVALID ||
	    oc_comm_refuses(call, part && (in_place || oc_block_wrong(count, type) ||
					   !(oc_abi_op(op) || oc_abi_op_is_user(op)))))
		return false;
	has_group = oc_inter_count(inter, call);
	if (!part)
		call->outcome = OC_OUTCOME_EMPTY;
	reduces = part && oc_eligible(call, count, type, &bytes) &&
		  oc_reduces(call, &by->own, &by->bind, op, type) && oc_abi_op(op);
	if (reduces)
		call->outcome = inter->oc.outcome;
	if (has_group && !reduces)
		oc_comm_leave(&inter->oc);
	return has_group && reduces;
}

static struct oc_shape shape_of(const struct oc_inter *inter, const struct oc_call *call,
				const struct oc_bind *bind, int root, size_t bytes)
{
	struct oc_shape shape = oc_shape_of(&inter->oc, call->coll, root, bytes);

	shape.granule = (uint16_t)oc_operator_size(bind);
	shape.eager = false;
	shape.stream = oc_streams(bytes);
	return shape;
}

/* The longest slice where the ranks of this group share @bytes. */
static size_t slice_max(const struct oc_inter *inter, const struct oc_shape *shape)
{
	struct oc_shape group = {.size = (uint16_t)inter->local, .granule = shape->granule};

	return oc_coll_slice_max(&group, shape->bytes);
}

static int serve(struct oc_inter *inter, const struct oc_call *call, const struct oc_shape *shape,
		 const struct oc_blocks *blocks, struct oc_bind *bind)
{
	int err = oc_serve_between(&inter->oc, MPI_SUCCESS, shape, inter->oc.there, blocks, bind);

	return oc_failure_end(&inter->oc, call->comm, call->coll, err);
}

int oc_inter_reduce(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		    void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
	bool is_root = call->root == MPI_ROOT;
	struct reduction by = {0};
	struct oc_shape shape;
	size_t bytes;

	if (!begin(inter, call, &by, is_root ? NULL : send, is_root ? recv : NULL, count, type, op))
		return oc_pass_reduce(large, send, recv, count, type, op, call->root, call->comm);
	bytes = (size_t)count * oc_operator_size(&by.bind);
	shape = shape_of(inter, call, &by.bind, is_root ? inter->oc.rank : inter->rank[call->root],
			 bytes);
	by.bind.recv = is_root ? recv : NULL;
	by.bind.recv_bytes = is_root ? bytes : 0;
	by.bind.send = is_root ? NULL : send;
	by.bind.send_bytes = is_root ? 0 : bytes;
	by.bind.scratch_bytes = is_root ? 0 : slice_max(inter, &shape);
	return serve(inter, call, &shape, NULL, &by.bind);
}

int oc_inter_allreduce(struct oc_inter *inter, struct oc_call *call, bool large, const void *send,
		       void *recv, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
	struct reduction by = {0};
	struct oc_shape shape;
	size_t bytes;

	if (!begin(inter, call, &by, send, recv, count, type, op))
		return oc_pass_allreduce(large, send, recv, count, type, op, call->comm);
	bytes = (size_t)count * oc_operator_size(&by.bind);
	shape = shape_of(inter, call, &by.bind, 0, bytes);
	call->data = 2 * bytes;
	by.bind.send = send;
	by.bind.send_bytes = bytes;
	by.bind.recv = recv;
	by.bind.recv_bytes = bytes;
	by.bind.scratch_bytes = slice_max(inter, &shape);
	return serve(inter, call, &shape, NULL, &by.bind);
}

/* @counts: [local] elements of each block of this group. */
static int serve_scatter(struct oc_inter *inter, struct oc_call *call, struct oc_bind *bind,
			 const void *send, void *recv, struct oc_counts counts)
{
	size_t elem = oc_operator_size(bind), both = (size_t)inter->oc.size;
	uint64_t *len = calloc(2 * both, sizeof(*len)), total = 0;
	struct oc_blocks blocks = {.len = len, .off = len + both};
	struct oc_shape shape;
	int k = 0, err;

	if (!len) {
		err = oc_serve_between(&inter->oc, MPI_ERR_NO_MEM, NULL, NULL, NULL, NULL);
		return oc_failure_end(&inter->oc, call->comm, call->coll, err);
	}
	for (size_t r = 0; r < both; r++) {
		len[r] = inter->oc.there[r] ? 0 : (uint64_t)oc_counts_at(counts, k++) * elem;
		len[both + r] = total;
		total += len[r];
	}
	shape = shape_of(inter, call, bind, 0, total);
	shape.stream = oc_streams(len[inter->oc.rank]);
	call->data = total + len[inter->oc.rank];
	bind->send = send;
	bind->send_bytes = total;
	bind->recv = recv;
	bind->recv_bytes = len[inter->oc.rank];
	err = serve(inter, call, &shape, &blocks, bind);
	free(len);
	return err;
}

int oc_inter_reduce_scatter(struct oc_inter *inter, struct oc_call *call, const void *send,
			    void *recv, struct oc_counts counts, MPI_Datatype type, MPI_Op op)
{
	struct reduction by = {0};
	uint64_t total;
	bool adds_up = oc_counts_total(counts, inter->local, &total) && total <= INT64_MAX;

	if (!begin(inter, call, &by, send, recv, adds_up ? (MPI_Count)total : -1, type, op))
		return oc_pass_reduce_scatter(send, recv, counts, type, op, call->comm);
	return serve_scatter(inter, call, &by.bind, send, recv, counts);
}

int oc_inter_reduce_scatter_block(struct oc_inter *inter, struct oc_call *call, bool large,
				  const void *send, void *recv, MPI_Count count, MPI_Datatype type,
				  MPI_Op op)
{
	oc_large_count counts[OC_MAX_RANKS];
	struct reduction by = {0};
	MPI_Count total = count < 0 || count > INT64_MAX / inter->local ? -1 : count * inter->local;

	if (!begin(inter, call, &by, send, recv, total, type, op))
		return oc_pass_reduce_scatter_block(large, send, recv, count, type, op, call->comm);
	for (int r = 0; r < inter->local; r++)
		counts[r] = count;
	return serve_scatter(inter, call, &by.bind, send, recv, (struct oc_counts){counts, true});
}

int oc_inter_barrier(struct oc_inter *inter, struct oc_call *call)
{
	struct oc_bind bind = {0};
	struct oc_shape shape;

	if (!oc_inter_count(inter, call))
		return pmpi()->Barrier(call->comm);
	shape = oc_shape_of(&inter->oc, OC_COLL_BARRIER, 0, 0);
	return oc_failure_end(&inter->oc, call->comm, OC_COLL_BARRIER,
			      oc_serve(&inter->oc, MPI_SUCCESS, &shape, &bind));
}
