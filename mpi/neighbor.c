// SPDX-License-Identifier: BSD-3-Clause
#include "neighbor.h"

#include <stdlib.h>
#include <string.h>

#include "serve.h"
#include "tune.h"
#include "vopen.h"

/* One side while it is served. */
struct end {
	const struct oc_edges *edges;
	const struct oc_neighbor_side *side;
	union oc_neighbor_rest *left;
	bool large;
	bool alike;
	bool sends;
	struct oc_vbuffer v; /* a block an edge */
	int64_t *counts;     /* [edges], and what follows too */
	int64_t *displs;
	MPI_Datatype *types;
	uint64_t *off; /* [ranks] in the sequence, of what goes to a rank or comes from it */
	uint64_t *len; /* [ranks] and room for [ranks] more */
};

static int64_t count_of(const struct oc_neighbor_side *side, int block)
{
	return side->counts.at ? oc_counts_at(side->counts, block) : side->count;
}

static MPI_Datatype type_of(const struct oc_neighbor_side *side, int block)
{
	return side->types ? side->types[block] : side->type;
}

static size_t bytes_of(const struct oc_neighbor_side *side, int block)
{
	return oc_block_bytes(count_of(side, block), type_of(side, block));
}

static bool serves_any(const struct oc_edges *edges, const struct oc_neighbor_side *side,
		       size_t min)
{
	int looks = side->counts.at ? edges->n : edges->n > 0;

	for (int e = 0; e < looks; e++) {
		size_t bytes = bytes_of(side, edges->block[e]);

		if (bytes && bytes >= min)
			return true;
	}
	return false;
}

static uint64_t total_of(const struct oc_neighbor_side *side, int blocks)
{
	uint64_t total = 0;

	for (int i = 0; i < blocks; i++)
		total += bytes_of(side, i);
	return total;
}

/* Only where somebody asked. */
static void measure(struct oc_call *call, const struct oc_neighbor_call *it)
{
	int out, in;

	if (!oc_adapter.knows_types || !call->comm || call->comm == oc_abi.comm_null ||
	    !oc_topology_degrees(call->comm, &out, &in) || !(out + in))
		return;
	call->data = total_of(&it->send, out) + total_of(&it->recv, in);
	call->size = call->data / (uint64_t)(out + in);
	if (call->outcome == OC_OUTCOME_PROFILE && call->size < oc_adapter.agreed.min[call->coll])
		call->outcome = oc_outcome_below(oc_adapter.agreed.min[call->coll], call->size);
}

static enum oc_edge_order order_of(enum oc_coll coll)
{
	switch (coll) {
	case OC_COLL_NEIGHBOR_ALLTOALLV:
		return OC_EDGES_ALLTOALLV;
	case OC_COLL_NEIGHBOR_ALLTOALLW:
		return OC_EDGES_ALLTOALLW;
	default:
		return OC_EDGES_ALLTOALL;
	}
}

/* NULL if the MPI serves such calls, on every rank alike. */
static const struct oc_topology *topology_of(struct oc_call *call, struct oc_comm *oc,
					     MPI_Comm comm, enum oc_edge_order order)
{
	if (!oc->topology || !oc->topology->known[order]) {
		call->outcome = OC_OUTCOME_INVALID;
		if (!oc_topology_has(comm))
			return NULL;
		oc->topology = oc_topology_ask(comm, oc->rank, oc->size, oc->topology, order);
	}
	call->outcome = oc->topology->good[order] ? OC_OUTCOME_SERVED : OC_OUTCOME_SETUP;
	return oc->topology->good[order] ? oc->topology : NULL;
}

struct oc_comm *oc_neighbor_begin(struct oc_call *call, const struct oc_neighbor_call *it,
				  MPI_Comm comm)
{
	uint64_t min = oc_adapter.agreed.min[call->coll];
	struct oc_comm *oc = oc_comm_get(call, comm, OC_CREDIT_CALL);
	enum oc_edge_order order = order_of(call->coll);
	const struct oc_topology *topology = oc ? topology_of(call, oc, comm, order) : NULL;

	if (call->since)
		measure(call, it);
	if (!topology)
		return NULL;
	if (serves_any(&topology->out, &it->send, min) ||
	    serves_any(&topology->in[order], &it->recv, min))
		return oc;
	call->outcome = oc_outcome_below(min, 1);
	return oc_comm_leave(oc);
}

/*
 * Short pieces the MPI packs while they are sent; here they would be packed before, and unpacked
 * after. Their sender, which knows, does not serve them: a receiver that expects more than it gets
 * leaves that to the MPI (oc_pair_rest()). All edges to a rank, or none.
 */
static bool leaves(const struct end *end, int first, int last)
{
	const struct oc_edges *edges = end->edges;

	if (!end->sends || end->alike)
		return false;
	for (int e = first; e < last; e++) {
		int64_t count = count_of(end->side, edges->block[e]);

		if (count > 0 &&
		    !oc_vbuffer_packs(type_of(end->side, edges->block[e]), count, edges->n))
			return false;
	}
	return true;
}

static void set_left(struct end *end, int block, int64_t count)
{
	if (end->large)
		end->left->large[block] = count;
	else
		end->left->plain[block] = (int)count;
}

static void serve(struct end *end, int first, int last, size_t min)
{
	for (int e = first; e < last; e++) {
		int block = end->edges->block[e];
		size_t bytes = bytes_of(end->side, block);

		if (bytes && bytes >= min)
			set_left(end, block, 0);
	}
}

/* What is the MPI's as long as nothing goes wrong. Takes no memory. */
static void leave(struct end *end, size_t min)
{
	for (int i = 0; i < end->edges->degree; i++)
		set_left(end, i, count_of(end->side, i));
	for (int e = 0, last; e < end->edges->n; e = last) {
		last = e + 1;
		while (last < end->edges->n && end->edges->rank[last] == end->edges->rank[e])
			last++;
		if (!leaves(end, e, last))
			serve(end, e, last, min);
	}
}

static int64_t left_of(const struct end *end, int block)
{
	return end->large ? end->left->large[block] : end->left->plain[block];
}

static int64_t displ_of(const struct oc_neighbor_side *side, int block)
{
	return side->displs.at ? oc_counts_at(side->displs, block) : block * side->stride;
}

/* What is served of the edges' blocks, in the order of their ranks. */
static int open_end(struct end *end, const struct oc_topology *topology, int size)
{
	size_t edges = (size_t)end->edges->n;
	int64_t *room = calloc(3 * edges + 3 * (size_t)size, sizeof(*room));
	struct oc_vector vector = {
		.user = end->side->user,
		.type = end->side->type,
		.n = end->edges->n,
		.skip = -1,
		.close = topology->several,
	};

	_Static_assert(sizeof(MPI_Datatype) <= sizeof(*room), "types fit");
	if (!room)
		return MPI_ERR_NO_MEM;
	end->counts = room;
	end->displs = room + edges;
	end->types = (MPI_Datatype *)(room + 2 * edges);
	end->off = (uint64_t *)room + 3 * edges;
	end->len = end->off + size;
	for (size_t e = 0; e < edges; e++) {
		int block = end->edges->block[e];

		end->counts[e] = count_of(end->side, block) - left_of(end, block);
		end->displs[e] = displ_of(end->side, block);
		end->types[e] = type_of(end->side, block);
	}
	vector.counts = (struct oc_counts){end->counts, true};
	vector.displs = (struct oc_counts){end->displs, true};
	vector.types = end->side->types ? end->types : NULL;
	return edges ? oc_vbuffer_open(&end->v, &vector, 1) : MPI_SUCCESS;
}

/* What each rank has of the sequence. */
static void join(struct end *end)
{
	for (int e = 0; e < end->edges->n; e++) {
		int rank = end->edges->rank[e];

		if (!end->v.len[e])
			continue;
		if (!end->len[rank])
			end->off[rank] = end->v.off[e];
		end->len[rank] += end->v.len[e];
	}
}

/* After the operation, from how it went with each rank. */
static void part(struct end *end, const uint8_t *pair, int *failure)
{
	for (int e = 0; e < end->edges->n; e++) {
		enum oc_pair how = pair[end->edges->rank[e]];
		int block = end->edges->block[e];

		if (how == OC_PAIR_TOGETHER || !end->v.len || !end->v.len[e])
			continue;
		set_left(end, block,
			 oc_pair_rest(how, count_of(end->side, block), end->sends, failure));
		end->v.len[e] = 0;
	}
}

static int run(struct oc_comm *oc, enum oc_coll coll, int failure, struct end *out, struct end *in)
{
	struct oc_shape shape = oc_shape_of(oc, coll, 0, 0);
	struct oc_bind bind = {0};
	struct oc_blocks outs, ins;
	size_t n = (size_t)oc->size;
	uint8_t ends[2 * OC_MAX_RANKS], *from = ends, *to = ends + n;
	int me = oc->rank, parted = MPI_SUCCESS;

	memset(ends, 0, 2 * n);
	if (!failure)
		failure = oc_vbuffer_pack(&out->v);
	if (!failure) {
		join(out);
		join(in);
		/* Of what a rank sends to itself both sides are known. */
		if (out->len[me] != in->len[me]) {
			to[me] = OC_PAIR_LESS;
			from[me] = out->len[me] ? OC_PAIR_MORE : OC_PAIR_ABSENT;
			out->len[me] = in->len[me] = 0;
		}
		/* To know whether a block is expected its sender looks at what its receiver
		 * expects. */
		memcpy(out->len + n, in->len, n * sizeof(*in->len));
	}
	outs = (struct oc_blocks){.len = out->len, .off = out->off};
	ins = (struct oc_blocks){.len = in->len, .off = in->off};
	bind.send = out->v.at;
	bind.send_bytes = out->v.bytes;
	bind.send_layout = out->v.layout;
	bind.recv = in->v.at;
	bind.recv_bytes = in->v.bytes;
	bind.recv_layout = in->v.layout;
	bind.scratch_bytes = 3 * n * sizeof(uint64_t);
	bind.scratch_init = out->off;
	bind.pair = ends;
	shape.stream = oc_streams(in->v.bytes);
	failure = oc_serve_blocks(oc, failure, &shape, &outs, &ins, &bind);
	part(in, from, &parted);
	part(out, to, &parted);
	if (!failure)
		failure = oc_vbuffer_unpack(&in->v);
	return failure ? failure : parted;
}

static void close_end(struct end *end)
{
	oc_vbuffer_close(&end->v);
	free(end->counts);
}

/* A rank that has neighbours on one side alone may give anything for the other. */
static bool are_alike(const struct oc_topology *topology, const struct oc_neighbor_call *it)
{
	return !topology->out.n || !topology->in[OC_EDGES_ALLTOALL].n ||
	       bytes_of(&it->send, 0) == bytes_of(&it->recv, 0);
}

OC_APART int oc_neighbor_serve(struct oc_comm *oc, enum oc_coll coll, struct oc_neighbor_call *it)
{
	const struct oc_topology *topology = oc->topology;
	struct end out = {.edges = &topology->out,
			  .side = &it->send,
			  .left = &it->left_out,
			  .large = it->large,
			  .alike = it->alike,
			  .sends = true};
	struct end in = {.edges = &topology->in[order_of(coll)],
			 .side = &it->recv,
			 .left = &it->left_in,
			 .large = it->large,
			 .alike = it->alike};
	uint64_t min = oc_adapter.agreed.min[coll];
	int sends, receives, failure;

	leave(&out, min);
	leave(&in, min);
	sends = open_end(&out, topology, oc->size);
	receives = open_end(&in, topology, oc->size);
	failure = sends ? sends : receives;
	if (!failure && it->alike && !are_alike(topology, it))
		failure = MPI_ERR_TRUNCATE;
	failure = run(oc, coll, failure, &out, &in);
	close_end(&out);
	close_end(&in);
	return failure;
}
