// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

#include "pairs.h"
#include "vopen.h"

/* One side while it is served. */
struct end {
	const struct oc_edges *edges;
	const struct oc_exchange_side *side;
	int *plain_rest;
	int64_t *large_rest; /* NULL: the other */
	bool alike;
	bool sends;
	struct oc_vbuffer v;
	uint64_t *bytes; /* [edges] that are served, 0: none */
	int64_t *counts; /* [edges], and what follows too: of the blocks of v */
	int64_t *displs;
	MPI_Datatype *types;
	uint64_t *off; /* [ranks] in the sequence, of what goes to a rank or comes from it */
	uint64_t *len; /* [ranks] and room for [ranks] more */
};

static int64_t count_of(const struct oc_exchange_side *side, int block)
{
	return side->each ? oc_counts_at(side->counts, block) : side->count;
}

static MPI_Datatype type_of(const struct oc_exchange_side *side, int block)
{
	return side->typed ? side->types[block] : side->type;
}

static int64_t displ_of(const struct oc_exchange_side *side, int block)
{
	return side->each ? oc_counts_at(side->displs, block) : block * side->stride;
}

static size_t bytes_of(const struct oc_exchange_side *side, int block)
{
	return oc_block_bytes(count_of(side, block), type_of(side, block));
}

static bool serves_any(const struct oc_edges *edges, const struct oc_exchange_side *side,
		       size_t min)
{
	int looks = side->each ? edges->n : edges->n > 0;

	for (int e = 0; e < looks; e++) {
		size_t bytes = bytes_of(side, edges->block[e]);

		if (bytes && bytes >= min)
			return true;
	}
	return false;
}

static bool is_wrong(const struct oc_exchange_side *side, int degree)
{
	if (!degree)
		return oc_in_place_wrong(side->user, 0);
	if (side->typed	 ? oc_blocks_wrong_each(side->counts, side->displs, side->types, degree)
	    : side->each ? oc_blocks_wrong(side->counts, side->displs, side->type, degree)
			 : oc_block_wrong(side->count, side->type))
		return true;
	return oc_in_place_wrong(side->user, side->each ? oc_counts_bits(side->counts, degree)
							: (uint64_t)side->count);
}

bool oc_exchange_is_wrong(const struct oc_exchange *it, int out, int in)
{
	return is_wrong(&it->send, out) || is_wrong(&it->recv, in);
}

/* Of a side: all bytes, and in *@most those of its largest block. */
static uint64_t total_of(const struct oc_exchange_side *side, int degree, uint64_t *most)
{
	uint64_t total = 0;
	int blocks = side->each || side->stride ? degree : degree > 0;

	for (int i = 0; i < blocks; i++) {
		uint64_t bytes = bytes_of(side, i);

		total += bytes;
		*most = bytes > *most ? bytes : *most;
	}
	return total;
}

void oc_exchange_measure(struct oc_call *call, const struct oc_exchange *it, int out, int in,
			 size_t min)
{
	uint64_t most = 0;

	if (oc_exchange_is_wrong(it, out, in))
		return;
	call->data = total_of(&it->send, out, &most) + total_of(&it->recv, in, &most);
	call->size = call->data / (uint64_t)(out + in ? out + in : 1);
	if (call->outcome == OC_OUTCOME_PROFILE && (!most || most < min))
		call->outcome = oc_outcome_below(min, most);
}

bool oc_exchange_serves(struct oc_call *call, const struct oc_exchange *it,
			const struct oc_exchange_edges *edges)
{
	if (serves_any(edges->out, &it->send, edges->min) ||
	    serves_any(edges->in, &it->recv, edges->min))
		return true;
	call->outcome = oc_outcome_below(edges->min, 1);
	return false;
}

static void set_rest(struct end *end, int block, int64_t count)
{
	if (end->large_rest)
		end->large_rest[block] = count;
	else
		end->plain_rest[block] = (int)count;
}

static int64_t rest_of(const struct end *end, int block)
{
	return end->large_rest ? end->large_rest[block] : end->plain_rest[block];
}

/* Behind the last of the edges to, or from, the rank of edge @first. */
static int group_end(const struct oc_edges *edges, int first)
{
	int last = first + 1;

	while (last < edges->n && edges->rank[last] == edges->rank[first])
		last++;
	return last;
}

/*
 * Short pieces that are not alike the MPI packs while they are sent; here they would be packed
 * before, and unpacked after. So their sender leaves them: a receiver that expects more than it
 * gets leaves that to the MPI, too (oc_pair_rest()). All edges to a rank, or none.
 */
static bool packs_all(const struct end *end, int first, int last, size_t min)
{
	const struct oc_edges *edges = end->edges;

	for (int e = first; e < last; e++) {
		int block = edges->block[e];
		size_t bytes = bytes_of(end->side, block);

		if (bytes && bytes >= min &&
		    !oc_vbuffer_packs(type_of(end->side, block), count_of(end->side, block),
				      edges->n))
			return false;
	}
	return true;
}

static void decide_group(struct end *end, int first, int last, size_t min)
{
	if (end->sends && !end->alike && packs_all(end, first, last, min))
		return;
	for (int e = first; e < last; e++) {
		int block = end->edges->block[e];
		size_t bytes = bytes_of(end->side, block);

		if (bytes && bytes >= min)
			set_rest(end, block, 0);
	}
}

/* What is the MPI's as long as nothing goes wrong. Takes no memory. */
static void decide(struct end *end, size_t min)
{
	for (int i = 0; i < end->edges->degree; i++)
		set_rest(end, i, count_of(end->side, i));
	for (int e = 0, last; e < end->edges->n; e = last) {
		last = group_end(end->edges, e);
		decide_group(end, e, last, min);
	}
}

/* Where all edges have the same block it is there as often as one rank gets it. */
static int copies_of(const struct oc_edges *edges)
{
	int most = 0;

	for (int e = 0, last; e < edges->n; e = last) {
		last = group_end(edges, e);
		most = last - e > most ? last - e : most;
	}
	return most;
}

static bool is_one_block(const struct end *end)
{
	return end->sends && !end->side->each && !end->side->stride;
}

/* What is served of the edges' blocks, in the order of their ranks. */
static int open_end(struct end *end, bool several, int size)
{
	size_t edges = (size_t)end->edges->n;
	int64_t *room = calloc(4 * edges + 3 * (size_t)size, sizeof(*room));
	struct oc_vector vector = {
		.user = end->side->user,
		.type = end->side->type,
		.n = is_one_block(end) ? copies_of(end->edges) : end->edges->n,
		.skip = -1,
		.close = several,
	};

	_Static_assert(sizeof(MPI_Datatype) <= sizeof(*room), "types fit");
	if (!room)
		return MPI_ERR_NO_MEM;
	end->counts = room;
	end->displs = room + edges;
	end->types = (MPI_Datatype *)(room + 2 * edges);
	end->bytes = (uint64_t *)room + 3 * edges;
	end->off = end->bytes + edges;
	end->len = end->off + size;
	for (size_t e = 0; e < edges; e++) {
		int block = end->edges->block[e];

		end->counts[e] = count_of(end->side, block) - rest_of(end, block);
		end->displs[e] = displ_of(end->side, block);
		end->types[e] = type_of(end->side, block);
		end->bytes[e] = oc_block_bytes(end->counts[e], end->types[e]);
	}
	vector.counts = (struct oc_counts){end->counts, true};
	vector.displs = (struct oc_counts){end->displs, true};
	vector.types = end->side->typed ? end->types : NULL;
	return edges ? oc_vbuffer_open(&end->v, &vector, 1) : MPI_SUCCESS;
}

/* What each rank has of the sequence. */
static void share(struct end *end)
{
	bool one = is_one_block(end);

	for (int e = 0; e < end->edges->n; e++) {
		int rank = end->edges->rank[e];

		if (!end->bytes[e])
			continue;
		if (!end->len[rank])
			end->off[rank] = end->v.off[one ? 0 : e];
		end->len[rank] += end->bytes[e];
	}
}

/* After the operation, from how it went with each rank. */
static void part(struct end *end, const uint8_t *pair, int *failure)
{
	for (int e = 0; e < end->edges->n && end->bytes; e++) {
		enum oc_pair how = pair[end->edges->rank[e]];
		int block = end->edges->block[e];

		if (how == OC_PAIR_TOGETHER || !end->bytes[e])
			continue;
		set_rest(end, block,
			 oc_pair_rest(how, count_of(end->side, block), end->sends, failure));
		/* Nobody gives it to the MPI. */
		if (end->alike && !*failure)
			*failure = MPI_ERR_TRUNCATE;
		if (end->v.len && !is_one_block(end))
			end->v.len[e] = 0;
	}
}

static int run(struct oc_comm *oc, enum oc_coll coll, int failure, struct end *out, struct end *in)
{
	size_t n = (size_t)oc->size;
	uint8_t ends[2 * OC_MAX_RANKS], *from = ends, *to = ends + n;
	int me = oc->rank, parted = MPI_SUCCESS;
	struct oc_blocks outs, ins;

	memset(ends, 0, 2 * n);
	if (!failure)
		failure = oc_vbuffer_pack(&out->v);
	if (!failure) {
		share(out);
		share(in);
		/* Of what a rank sends to itself both sides are known. */
		if (out->len[me] != in->len[me]) {
			to[me] = OC_PAIR_LESS;
			from[me] = out->len[me] ? OC_PAIR_MORE : OC_PAIR_ABSENT;
			out->len[me] = in->len[me] = 0;
		}
	}
	outs = (struct oc_blocks){out->len, out->off};
	ins = (struct oc_blocks){in->len, in->off};
	failure =
		coll == OC_COLL_GATHERV
			? oc_pairs_gather(oc, failure, &out->v, &in->v, &outs, &ins,
					  in->edges->n ? me : out->edges->rank[0], ends)
			: oc_pairs_exchange(oc, coll, failure, &out->v, &in->v, &outs, &ins, ends);
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

OC_APART int oc_exchange_serve(struct oc_comm *oc, enum oc_coll coll, int prepared,
			       const struct oc_exchange_edges *edges, const struct oc_exchange *it,
			       struct oc_exchange_rest *rest)
{
	struct end out = {.edges = edges->out,
			  .side = &it->send,
			  .plain_rest = rest->out.plain,
			  .large_rest = it->large ? rest->out.large : NULL,
			  .alike = it->alike,
			  .sends = true};
	struct end in = {.edges = edges->in,
			 .side = &it->recv,
			 .plain_rest = rest->in.plain,
			 .large_rest = it->large ? rest->in.large : NULL,
			 .alike = it->alike};
	size_t min = it->alike ? 1 : edges->min;
	int sends, receives, failure;

	decide(&out, min);
	decide(&in, min);
	sends = open_end(&out, edges->several, oc->size);
	receives = open_end(&in, edges->several, oc->size);
	failure = prepared ? prepared : sends ? sends : receives;
	failure = run(oc, coll, failure, &out, &in);
	close_end(&out);
	close_end(&in);
	return failure;
}

MPI_Count oc_exchange_left(const struct oc_exchange *it, const struct oc_exchange_rest *rest,
			   const struct oc_edges *out)
{
	struct oc_counts left = {&rest->out, it->large};
	MPI_Count most = 0;

	for (int e = 0; e < out->n; e++) {
		MPI_Count count = oc_counts_at(left, out->block[e]);

		most = count > most ? count : most;
	}
	return out->n ? most : it->send.count;
}
