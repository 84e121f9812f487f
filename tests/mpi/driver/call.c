// SPDX-License-Identifier: BSD-3-Clause
#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "large.h"
#include "side.h"

#define CROSSED_INTS (1 << 18)
#define UNIT	     12 /* what every layout divides */

/* A call on one rank. */
struct part {
	const struct call *c;
	MPI_Comm comm;
	int rank;
	int size;
	bool sends;
	bool receives;
	bool in_place;	/* here */
	bool untouched; /* the receive buffer is to be */
	struct side send;
	struct side recv;
	int totals[SIDE_BLOCKS]; /* reduce_scatter */
};

int call_find(const char *name)
{
	static const char *const names[CALL_COUNT] = {
		[CALL_BCAST] = "bcast",
		[CALL_SCATTER] = "scatter",
		[CALL_SCATTERV] = "scatterv",
		[CALL_GATHER] = "gather",
		[CALL_GATHERV] = "gatherv",
		[CALL_ALLGATHER] = "allgather",
		[CALL_ALLGATHERV] = "allgatherv",
		[CALL_ALLTOALL] = "alltoall",
		[CALL_ALLTOALLV] = "alltoallv",
		[CALL_ALLTOALLW] = "alltoallw",
		[CALL_REDUCE] = "reduce",
		[CALL_ALLREDUCE] = "allreduce",
		[CALL_REDUCE_SCATTER] = "reduce_scatter",
		[CALL_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
		[CALL_SCAN] = "scan",
		[CALL_EXSCAN] = "exscan",
		[CALL_BARRIER] = "barrier",
	};

	for (int i = 0; i < CALL_COUNT; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

static void wrong(const struct part *p, const char *what)
{
	fprintf(stderr, "line %d, rank %d of %d: %s\n", p->c->line, p->rank, p->size, what);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static bool is_v(const struct call *c)
{
	return c->name == CALL_SCATTERV || c->name == CALL_GATHERV || c->name == CALL_ALLGATHERV ||
	       c->name == CALL_ALLTOALLV || c->name == CALL_ALLTOALLW;
}

static bool reduces(const struct call *c)
{
	return c->name >= CALL_REDUCE && c->name <= CALL_EXSCAN;
}

/* Blocks of a rank that go to different ranks, hence differ. */
static bool addressed(const struct call *c)
{
	return c->name == CALL_SCATTER || c->name == CALL_SCATTERV || c->name == CALL_ALLTOALL ||
	       c->name == CALL_ALLTOALLV || c->name == CALL_ALLTOALLW;
}

static bool rooted(const struct call *c)
{
	return c->name == CALL_BCAST || c->name == CALL_SCATTER || c->name == CALL_SCATTERV ||
	       c->name == CALL_GATHER || c->name == CALL_GATHERV || c->name == CALL_REDUCE;
}

/* Elements that go from rank @from to rank @to. */
static long length(const struct call *c, int from, int to)
{
	uint64_t bits;
	long count;

	if (!is_v(c) && c->name != CALL_REDUCE_SCATTER)
		return c->count;
	if (c->name == CALL_GATHERV || c->name == CALL_ALLGATHERV)
		to = 0;
	if (c->name == CALL_SCATTERV || c->name == CALL_REDUCE_SCATTER)
		from = 0;
	if ((c->name == CALL_ALLTOALLV || c->name == CALL_ALLTOALLW) && c->in_place && from > to)
		return length(c, to, from);
	bits = element_hash(c->seed, (uint64_t)from + 100, (uint64_t)to);
	count = bits % 4 ? (long)(bits / 4 % (uint64_t)(2 * c->count + 1)) : 0;
	return c->seed & 1 ? count / UNIT * UNIT : count;
}

static void make(const struct call *c, int from, int to, long i, void *out)
{
	element_make(c->e, reduces(c) ? c->op : -1,
		     element_hash(c->seed, 3, addressed(c) ? (uint64_t)to : 0), from, (uint64_t)i,
		     out);
}

/* Whose operands are in this rank's result: those of the ranks below. */
static int operands_end(const struct part *p)
{
	if (p->c->name == CALL_SCAN)
		return p->rank + 1;
	return p->c->name == CALL_EXSCAN ? p->rank : p->size;
}

/* Element @i of block @block of what this rank is to receive. */
static void expected(const struct part *p, int block, long i, void *out)
{
	const struct call *c = p->c;
	unsigned char operand[32];
	long off = 0;

	if (!reduces(c)) {
		make(c, p->recv.blocks > 1 ? block : c->root, p->rank, i, out);
		return;
	}
	if (c->name == CALL_REDUCE_SCATTER || c->name == CALL_REDUCE_SCATTER_BLOCK)
		for (int r = 0; r < p->rank; r++)
			off += length(c, 0, r);
	make(c, 0, 0, off + i, out);
	for (int r = 1; r < operands_end(p); r++) {
		make(c, r, 0, off + i, operand);
		element_fold(c->e, c->op, out, operand);
	}
}

/* What one rank sends and receives, before anything is allocated. */
static void shape(struct part *p)
{
	const struct call *c = p->c;
	bool root = p->rank == c->root;
	bool scatters = c->name == CALL_SCATTER || c->name == CALL_SCATTERV;
	bool gathers = c->name == CALL_GATHER || c->name == CALL_GATHERV;
	bool to_all =
		c->name == CALL_ALLTOALL || c->name == CALL_ALLTOALLV || c->name == CALL_ALLTOALLW;
	bool from_all =
		gathers || to_all || c->name == CALL_ALLGATHER || c->name == CALL_ALLGATHERV;
	bool slices = c->name == CALL_REDUCE_SCATTER || c->name == CALL_REDUCE_SCATTER_BLOCK;

	p->in_place = c->in_place && c->name != CALL_BCAST && (!rooted(c) || root);
	p->sends = scatters || c->name == CALL_BCAST ? root : !p->in_place;
	p->receives = !rooted(c) || (c->name == CALL_BCAST ? !root : scatters || root);
	if (scatters && p->in_place)
		p->receives = false;
	p->untouched = c->name == CALL_EXSCAN && !p->rank;
	p->send.blocks = scatters || to_all ? p->size : 1;
	for (int b = 0; b < p->send.blocks; b++)
		p->send.count[b] = length(c, p->rank, b);
	p->recv.blocks = from_all ? p->size : 1;
	for (int b = 0; b < p->recv.blocks; b++)
		p->recv.count[b] = length(c, from_all ? b : c->root, p->rank);
	if (slices) {
		long total = 0;

		for (int r = 0; r < p->size; r++) {
			p->totals[r] = (int)length(c, 0, r);
			total += p->totals[r];
		}
		p->send.count[0] = total;
		p->recv.count[0] = p->totals[p->rank];
		if (p->in_place) { /* the rest of the operand lies behind the result */
			p->recv.blocks = 2;
			p->recv.count[1] = total - p->recv.count[0];
		}
	}
	/* A block that stays in place is not sent from anywhere. */
	if (c->name == CALL_SCATTERV && p->in_place)
		p->send.count[p->rank] = 0;
}

static int pick(unsigned int set, uint64_t bits)
{
	int n = __builtin_popcount(set);

	if (!n)
		return 0;
	for (n = (int)(bits % (uint64_t)n); n; n--)
		set &= set - 1;
	return __builtin_ctz(set);
}

/* Whichever the root uses, another rank may use another. */
static void open_side(struct part *p, struct side *s, int which, char *stack)
{
	const struct call *c = p->c;
	uint64_t bits = element_hash(c->seed, 4 + (uint64_t)which, (uint64_t)p->rank);
	int kind = pick(c->kinds, bits), layout = pick(c->layouts, bits >> 20);

	if (which && (kind == MEMORY_READONLY || kind == MEMORY_WRITEONLY))
		kind = MEMORY_PRIVATE;
	/* Operators want predefined types. And Open MPI 4 chooses how to do an
	 * allgatherv by the size of each rank's own send type, so that ranks
	 * with different ones may wait for each other for ever. */
	if (reduces(c) || (c->name == CALL_ALLGATHERV && which == 0))
		layout = LAYOUT_PLAIN;
	side_open(s, c->e, layout, kind, which, (size_t)c->align * (bits >> 40 & 1),
		  is_v(c) && s->blocks > 1, c->seed, stack);
}

static void fill(struct part *p)
{
	const struct call *c = p->c;
	bool own_only = c->name == CALL_GATHER || c->name == CALL_GATHERV ||
			c->name == CALL_ALLGATHER || c->name == CALL_ALLGATHERV;
	long at = 0;

	if (p->sends)
		for (int b = 0; b < p->send.blocks; b++)
			for (long i = 0; i < p->send.count[b]; i++)
				make(c, p->rank, b, i, side_element(&p->send, b, i));
	if (!p->in_place || !p->receives)
		return;
	for (int b = 0; b < p->recv.blocks; b++) {
		for (long i = 0; i < p->recv.count[b] && (!own_only || b == p->rank); i++)
			make(c, p->rank, b, at + i, side_element(&p->recv, b, i));
		if (reduces(c)) /* one vector, seen as two blocks */
			at += p->recv.count[b];
	}
}

/* The same in bytes, with a type for each block. */
static int do_w(struct part *p, const void *from, void *to)
{
	struct side *s = &p->send, *r = &p->recv;
	MPI_Datatype stypes[SIDE_BLOCKS], rtypes[SIDE_BLOCKS];
	int sdispls[SIDE_BLOCKS], rdispls[SIDE_BLOCKS];

	for (int b = 0; b < p->size; b++) {
		stypes[b] = s->type;
		sdispls[b] = (int)(s->displs[b] * s->extent);
		rtypes[b] = r->type;
		rdispls[b] = (int)(r->displs[b] * r->extent);
	}
	return MPI_Alltoallw(from, s->units, sdispls, stypes, to, r->units, rdispls, rtypes,
			     p->comm);
}

static int do_v(struct part *p, const void *from, void *to)
{
	const struct call *c = p->c;
	struct side *s = &p->send, *r = &p->recv;

	switch (c->name) {
	case CALL_SCATTERV:
		return MPI_Scatterv(from, s->units, s->displs, s->type, to, r->units[0], r->type,
				    c->root, p->comm);
	case CALL_GATHERV:
		return MPI_Gatherv(from, s->units[0], s->type, to, r->units, r->displs, r->type,
				   c->root, p->comm);
	case CALL_ALLGATHERV:
		return MPI_Allgatherv(from, s->units[0], s->type, to, r->units, r->displs, r->type,
				      p->comm);
	case CALL_ALLTOALLW:
		return do_w(p, from, to);
	default:
		return MPI_Alltoallv(from, s->units, s->displs, s->type, to, r->units, r->displs,
				     r->type, p->comm);
	}
}

static int do_it(struct part *p)
{
	const struct call *c = p->c;
	struct side *s = &p->send, *r = &p->recv;
	bool scatters = c->name == CALL_SCATTER || c->name == CALL_SCATTERV;
	const void *from = p->in_place && !scatters ? MPI_IN_PLACE : p->sends ? s->at : NULL;
	void *to = p->in_place && scatters ? MPI_IN_PLACE : p->receives ? r->at : NULL;
	MPI_Op op = reduces(c) ? element_op(c->op) : MPI_OP_NULL;
	int n = (int)c->count;

	if (large_is(c, p->rank))
		return large_do(&(struct large){c->name, from, to, s, r, c->count, p->totals,
						c->e->type, op, c->root, p->comm});
	switch (c->name) {
	case CALL_BCAST:
		return p->sends ? MPI_Bcast(s->at, s->units[0], s->type, c->root, p->comm)
				: MPI_Bcast(r->at, r->units[0], r->type, c->root, p->comm);
	case CALL_SCATTER:
		return MPI_Scatter(from, s->units[0], s->type, to, r->units[0], r->type, c->root,
				   p->comm);
	case CALL_GATHER:
		return MPI_Gather(from, s->units[0], s->type, to, r->units[0], r->type, c->root,
				  p->comm);
	case CALL_ALLGATHER:
		return MPI_Allgather(from, s->units[0], s->type, to, r->units[0], r->type, p->comm);
	case CALL_ALLTOALL:
		return MPI_Alltoall(from, s->units[0], s->type, to, r->units[0], r->type, p->comm);
	case CALL_REDUCE:
		return MPI_Reduce(from, to, n, c->e->type, op, c->root, p->comm);
	case CALL_ALLREDUCE:
		return MPI_Allreduce(from, to, n, c->e->type, op, p->comm);
	case CALL_REDUCE_SCATTER:
		return MPI_Reduce_scatter(from, to, p->totals, c->e->type, op, p->comm);
	case CALL_REDUCE_SCATTER_BLOCK:
		return MPI_Reduce_scatter_block(from, to, n, c->e->type, op, p->comm);
	case CALL_SCAN:
		return MPI_Scan(from, to, n, c->e->type, op, p->comm);
	case CALL_EXSCAN:
		return MPI_Exscan(from, to, n, c->e->type, op, p->comm);
	case CALL_BARRIER:
		return MPI_Barrier(p->comm);
	default:
		return do_v(p, from, to);
	}
}

static void check_received(struct part *p, bool ordered)
{
	const struct call *c = p->c;
	bool rounds = reduces(c) && element_rounds(c->e, c->op);
	struct side *r = &p->recv;
	unsigned char want[32];

	for (int b = 0; b < r->blocks; b++)
		for (long i = 0; i < r->count[b] && !p->untouched; i++) {
			char *got = side_element(r, b, i);

			if (reduces(c) && b) { /* nobody says what is there now */
				memset(got, 0, c->e->size);
				memset(side_kept(r, b, i), 0, c->e->size);
				continue;
			}
			expected(p, b, i, want);
			if (rounds && !ordered && element_close(c->e, got, want))
				memcpy(got, want, c->e->size);
			memcpy(side_kept(r, b, i), want, c->e->size);
		}
	if (!side_unchanged(r))
		wrong(p, "wrong bytes in the receive buffer or around it");
}

/* Even ranks have a large message to the next under way, which the odd ones
 * receive before they come to the collective. */
static int *cross_begin(const struct part *p, MPI_Request *request)
{
	int peer = p->rank % 2 ? p->rank - 1 : p->rank + 1;
	int *data;

	*request = MPI_REQUEST_NULL;
	if (!p->c->crossed || peer >= p->size)
		return NULL;
	data = malloc(CROSSED_INTS * sizeof(int));
	if (!data)
		wrong(p, "no memory");
	for (int i = 0; i < CROSSED_INTS; i++)
		data[i] = p->rank % 2 ? -1 : i ^ p->c->line;
	if (p->rank % 2)
		MPI_Recv(data, CROSSED_INTS, MPI_INT, peer, 7, p->comm, MPI_STATUS_IGNORE);
	else
		MPI_Isend(data, CROSSED_INTS, MPI_INT, peer, 7, p->comm, request);
	for (int i = 0; i < CROSSED_INTS; i++)
		if (data[i] != (i ^ p->c->line))
			wrong(p, "wrong data in a message received beside");
	return data;
}

uint64_t call_do(const struct call *call, MPI_Comm comm, bool ordered)
{
	char frame[2][MEMORY_STACK_BYTES];
	struct part p = {.c = call, .comm = comm};
	MPI_Request request;
	uint64_t digest = 0;
	int *crossed, err;

	MPI_Comm_rank(comm, &p.rank);
	MPI_Comm_size(comm, &p.size);
	shape(&p);
	if (call->name == CALL_BARRIER)
		p.sends = p.receives = false;
	if (p.sends)
		open_side(&p, &p.send, 0, frame[0]);
	if (p.receives)
		open_side(&p, &p.recv, 1, frame[1]);
	fill(&p);
	if (p.sends) {
		side_keep(&p.send);
		memory_protect(&p.send.memory);
	}
	if (p.receives)
		side_keep(&p.recv);
	crossed = cross_begin(&p, &request);
	err = do_it(&p);
	if (p.sends) {
		bool same;

		memory_unprotect(&p.send.memory);
		same = side_unchanged(&p.send);
		/* A peer that still reads it will find this. */
		memset(p.send.memory.base, 0xa5, p.send.memory.bytes);
		if (!same)
			wrong(&p, "the send buffer has changed");
	}
	if (err)
		wrong(&p, "an error code");
	if (p.receives) {
		check_received(&p, ordered);
		digest = side_digest(&p.recv);
		memset(p.recv.memory.base, 0x5a, p.recv.memory.bytes);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(crossed);
	if (p.sends)
		side_close(&p.send);
	if (p.receives)
		side_close(&p.recv);
	return digest;
}
