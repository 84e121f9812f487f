// SPDX-License-Identifier: BSD-3-Clause
#include "large.h"

#if MPI_VERSION < 4

bool large_is(const struct call *call, int rank)
{
	return false;
}

int large_do(const struct large *l)
{
	return MPI_ERR_OTHER;
}

#else

bool large_is(const struct call *call, int rank)
{
	return call->name < CALL_BARRIER && element_hash(call->seed, 6, (uint64_t)rank) & 1;
}

/* What the other form has as int. */
struct wide {
	MPI_Count counts[SIDE_BLOCKS];
	MPI_Aint displs[SIDE_BLOCKS];
};

static struct wide wide_of(const struct side *s)
{
	struct wide w;

	for (int b = 0; b < SIDE_BLOCKS; b++) {
		w.counts[b] = s->units[b];
		w.displs[b] = s->displs[b];
	}
	return w;
}

static int move_types(const struct large *l)
{
	const struct side *s = l->send, *r = l->recv;
	struct wide out = wide_of(s), in = wide_of(r);
	MPI_Datatype stypes[SIDE_BLOCKS], rtypes[SIDE_BLOCKS];

	for (int b = 0; b < SIDE_BLOCKS; b++) {
		stypes[b] = s->type;
		out.displs[b] *= s->extent;
		rtypes[b] = r->type;
		in.displs[b] *= r->extent;
	}
	return MPI_Alltoallw_c(l->from, out.counts, out.displs, stypes, l->to, in.counts, in.displs,
			       rtypes, l->comm);
}

static int move_blocks(const struct large *l)
{
	const struct side *s = l->send, *r = l->recv;
	struct wide out = wide_of(s), in = wide_of(r);

	switch (l->name) {
	case CALL_SCATTERV:
		return MPI_Scatterv_c(l->from, out.counts, out.displs, s->type, l->to, in.counts[0],
				      r->type, l->root, l->comm);
	case CALL_GATHERV:
		return MPI_Gatherv_c(l->from, out.counts[0], s->type, l->to, in.counts, in.displs,
				     r->type, l->root, l->comm);
	case CALL_ALLGATHERV:
		return MPI_Allgatherv_c(l->from, out.counts[0], s->type, l->to, in.counts,
					in.displs, r->type, l->comm);
	case CALL_ALLTOALLW:
		return move_types(l);
	default:
		return MPI_Alltoallv_c(l->from, out.counts, out.displs, s->type, l->to, in.counts,
				       in.displs, r->type, l->comm);
	}
}

static int move(const struct large *l)
{
	const struct side *s = l->send, *r = l->recv;

	switch (l->name) {
	case CALL_BCAST:
		return l->from ? MPI_Bcast_c(s->at, s->units[0], s->type, l->root, l->comm)
			       : MPI_Bcast_c(r->at, r->units[0], r->type, l->root, l->comm);
	case CALL_SCATTER:
		return MPI_Scatter_c(l->from, s->units[0], s->type, l->to, r->units[0], r->type,
				     l->root, l->comm);
	case CALL_GATHER:
		return MPI_Gather_c(l->from, s->units[0], s->type, l->to, r->units[0], r->type,
				    l->root, l->comm);
	case CALL_ALLGATHER:
		return MPI_Allgather_c(l->from, s->units[0], s->type, l->to, r->units[0], r->type,
				       l->comm);
	case CALL_ALLTOALL:
		return MPI_Alltoall_c(l->from, s->units[0], s->type, l->to, r->units[0], r->type,
				      l->comm);
	default:
		return move_blocks(l);
	}
}

static int reduce_blocks(const struct large *l)
{
	MPI_Count totals[SIDE_BLOCKS];

	for (int b = 0; b < SIDE_BLOCKS; b++)
		totals[b] = l->totals[b];
	return MPI_Reduce_scatter_c(l->from, l->to, totals, l->type, l->op, l->comm);
}

int large_do(const struct large *l)
{
	switch (l->name) {
	case CALL_REDUCE:
		return MPI_Reduce_c(l->from, l->to, l->count, l->type, l->op, l->root, l->comm);
	case CALL_ALLREDUCE:
		return MPI_Allreduce_c(l->from, l->to, l->count, l->type, l->op, l->comm);
	case CALL_REDUCE_SCATTER:
		return reduce_blocks(l);
	case CALL_REDUCE_SCATTER_BLOCK:
		return MPI_Reduce_scatter_block_c(l->from, l->to, l->count, l->type, l->op,
						  l->comm);
	case CALL_SCAN:
		return MPI_Scan_c(l->from, l->to, l->count, l->type, l->op, l->comm);
	case CALL_EXSCAN:
		return MPI_Exscan_c(l->from, l->to, l->count, l->type, l->op, l->comm);
	default:
		return move(l);
	}
}

#endif
