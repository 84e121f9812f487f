// SPDX-License-Identifier: BSD-3-Clause
/*
 * Random calls between the two groups of several intercommunicators: either group has the root,
 * blocks are long and short ones and none at all, the same at both ends and of other types, and
 * other lengths in one direction than in the other. Vectors are reduced by a sum, and by an
 * operation that is not commutative.
 *
 *     between SEED CALLS
 */
#include <stdbool.h>
#include <string.h>

#include "../mpi/hazards/pattern.h"

#define MOST	8     /* ranks */
#define LONGEST 70000 /* elements */
#define ROOM	((size_t)MOST * LONGEST * 2)

enum call {
	BCAST,
	SCATTER,
	SCATTERV,
	GATHER,
	GATHERV,
	ALLGATHER,
	ALLGATHERV,
	ALLTOALL,
	ALLTOALLV,
	ALLTOALLW,
	REDUCE,
	ALLREDUCE,
	REDUCE_SCATTER,
	REDUCE_SCATTER_BLOCK,
	BARRIER,
	CALLS
};
static const char *const names[CALLS] = {"bcast",	   "scatter",
					 "scatterv",	   "gather",
					 "gatherv",	   "allgather",
					 "allgatherv",	   "alltoall",
					 "alltoallv",	   "alltoallw",
					 "reduce",	   "allreduce",
					 "reduce_scatter", "reduce_scatter_block",
					 "barrier"};

/* One intercommunicator as this rank sees it. */
struct groups {
	MPI_Comm comm;
	int side, me, here, there;
};

static unsigned int state;
static unsigned int *out, *in;
static MPI_Datatype plain, gaps; /* an int; an int of every two */
static MPI_Datatype function;	 /* two ints: x -> first * x + second */
static MPI_Op compose;

/* The same on all ranks. */
static unsigned int draw(unsigned int below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

static unsigned int mix(unsigned int a, unsigned int b)
{
	return (a ^ b * 2246822519u) * 2654435761u + (b >> 7);
}

/* Elements from a rank of one side to one of the other. */
static int length(unsigned int seed, bool alike, int side, int from, int to)
{
	static const int lengths[] = {0, 1, 700, 5000, 9000, 40000, LONGEST};
	unsigned int pick = mix(seed, (unsigned int)side + 1);

	if (!alike)
		pick = mix(mix(pick, (unsigned int)from + 1), (unsigned int)to + 1);
	return lengths[(pick >> 5) % (sizeof(lengths) / sizeof(lengths[0]))];
}

static unsigned int seed_of(unsigned int seed, int side, int from, int to)
{
	return mix(mix(mix(seed, (unsigned int)side + 3), (unsigned int)from + 5),
		   (unsigned int)to + 7);
}

/* One end of a call on this rank: where its blocks are, and of which type. */
struct end {
	unsigned int *at;
	int step; /* ints from one element to the next */
	MPI_Datatype type;
	int n; /* blocks */
	bool apart;
	int count[MOST], displ[MOST], byte[MOST];
	MPI_Datatype types[MOST];
};

static void place(struct end *end, unsigned int *at, bool holes, int n, bool apart)
{
	*end = (struct end){.at = at,
			    .step = holes ? 2 : 1,
			    .type = holes ? gaps : plain,
			    .n = n,
			    .apart = apart};
	for (size_t i = 0; i < ROOM; i++)
		at[i] = 0x55555555u;
}

/* Blocks in the order of their ranks, or in another with room between them. */
static void add(struct end *end, int block, int count)
{
	end->count[block] = count;
	end->displ[block] = end->apart ? (end->n - 1 - block) * LONGEST : block * count;
	end->byte[block] = end->displ[block] * end->step * (int)sizeof(int);
	end->types[block] = end->type;
}

static void fill(struct end *end, int block, unsigned int seed)
{
	for (int i = 0; i < end->count[block]; i++)
		end->at[(size_t)(end->displ[block] + i) * (size_t)end->step] =
			pattern_at(seed, (size_t)i);
}

static void check(const struct end *end, int block, unsigned int seed, const char *what)
{
	for (int i = 0; i < end->count[block]; i++)
		if (end->at[(size_t)(end->displ[block] + i) * (size_t)end->step] !=
		    pattern_at(seed, (size_t)i)) {
			fprintf(stderr, "%s: element %d of %d\n", what, i, end->count[block]);
			pattern_fail(what);
		}
	for (int i = 0; end->step == 2 && i < end->count[block]; i++)
		if (end->at[(size_t)(end->displ[block] + i) * 2 + 1] != 0x55555555u)
			pattern_fail("a hole was written");
}

static void rooted(const struct groups *g, enum call call, unsigned int seed, int root_side,
		   int root)
{
	bool has_root = g->side == root_side && g->me == root, leaf = g->side != root_side;
	bool up = call == GATHER || call == GATHERV, apart = call == SCATTERV || call == GATHERV;
	bool one = call == BCAST, sends = up ? leaf : has_root;
	int blocks = has_root && !one ? g->there : 1, from = up ? !root_side : root_side;
	int as = has_root ? MPI_ROOT : leaf ? root : MPI_PROC_NULL;
	struct end end;

	place(&end, sends ? out : in, mix(seed, (unsigned int)g->side) & 64, blocks,
	      apart && has_root);
	for (int b = 0; (has_root || leaf) && b < blocks; b++) {
		int rank = one ? 0 : has_root ? b : g->me;
		unsigned int its = seed_of(seed, from, up ? rank : root, up || one ? 0 : rank);

		add(&end, b, length(seed, !apart, from, rank, 0));
		if (sends)
			fill(&end, b, its);
	}
	if (call == BCAST)
		MPI_Bcast(end.at, end.count[0], end.type, as, g->comm);
	else if (call == SCATTER)
		MPI_Scatter(end.at, end.count[0], end.type, end.at, end.count[0], end.type, as,
			    g->comm);
	else if (call == SCATTERV)
		MPI_Scatterv(end.at, end.count, end.displ, end.type, end.at, end.count[0], end.type,
			     as, g->comm);
	else if (call == GATHER)
		MPI_Gather(end.at, end.count[0], end.type, end.at, end.count[0], end.type, as,
			   g->comm);
	else
		MPI_Gatherv(end.at, end.count[0], end.type, end.at, end.count, end.displ, end.type,
			    as, g->comm);
	for (int b = 0; (has_root || leaf) && !sends && b < blocks; b++) {
		int rank = one ? 0 : has_root ? b : g->me;

		check(&end, b, seed_of(seed, from, up ? rank : root, up || one ? 0 : rank),
		      names[call]);
	}
}

static void all(const struct groups *g, enum call call, unsigned int seed)
{
	bool gathers = call == ALLGATHER || call == ALLGATHERV,
	     alike = call == ALLGATHER || call == ALLTOALL;
	int sends = gathers ? 1 : g->there;
	struct end to, from;

	place(&to, out, mix(seed, (unsigned int)g->side) & 64, sends, !alike && !gathers);
	place(&from, in, mix(seed, (unsigned int)g->side) & 128, g->there, !alike);
	for (int b = 0; b < sends; b++) {
		add(&to, b, length(seed, alike, g->side, g->me, gathers ? 0 : b));
		fill(&to, b, seed_of(seed, g->side, g->me, gathers ? 0 : b));
	}
	for (int r = 0; r < g->there; r++)
		add(&from, r, length(seed, alike, !g->side, r, gathers ? 0 : g->me));
	if (call == ALLGATHER)
		MPI_Allgather(to.at, to.count[0], to.type, from.at, from.count[0], from.type,
			      g->comm);
	else if (call == ALLGATHERV)
		MPI_Allgatherv(to.at, to.count[0], to.type, from.at, from.count, from.displ,
			       from.type, g->comm);
	else if (call == ALLTOALL)
		MPI_Alltoall(to.at, to.count[0], to.type, from.at, from.count[0], from.type,
			     g->comm);
	else if (call == ALLTOALLV)
		MPI_Alltoallv(to.at, to.count, to.displ, to.type, from.at, from.count, from.displ,
			      from.type, g->comm);
	else
		MPI_Alltoallw(to.at, to.count, to.byte, to.types, from.at, from.count, from.byte,
			      from.types, g->comm);
	for (int r = 0; r < g->there; r++)
		check(&from, r, seed_of(seed, !g->side, r, gathers ? 0 : g->me), names[call]);
}

/* ---- reductions -------------------------------------------------------------- */

static void then(void *first, void *second, int *count, MPI_Datatype *type)
{
	const unsigned int *a = first;
	unsigned int *b = second;

	for (int i = 0; i < *count; i++) {
		b[2 * i + 1] += b[2 * i] * a[2 * i + 1];
		b[2 * i] *= a[2 * i];
	}
}

/* Ints of rank @from's operand, both of an element for functions. */
static unsigned int operand(unsigned int seed, int side, int from, size_t i)
{
	return pattern_at(seed_of(seed, side, from, 0), i);
}

/* @ints of the result, from @first on: what the ranks of the other side contributed, in order. */
static void check_reduced(const struct groups *g, enum call call, unsigned int seed, bool composes,
			  size_t first, size_t ints)
{
	for (size_t i = 0; i < ints; i += composes ? 2 : 1) {
		size_t at = first + i;
		unsigned int sum[2] = {operand(seed, !g->side, 0, at),
				       operand(seed, !g->side, 0, at + 1)};

		for (int r = 1; r < g->there; r++) {
			unsigned int more[2] = {operand(seed, !g->side, r, at),
						operand(seed, !g->side, r, at + 1)};
			int one = 1;

			if (composes) {
				then(sum, more, &one, NULL);
				memcpy(sum, more, sizeof(sum));
			} else {
				sum[0] += more[0];
			}
		}
		if (in[i] != sum[0] || (composes && in[i + 1] != sum[1]))
			pattern_fail(names[call]);
	}
}

/* Elements of each block of a side of @n, together @total. */
static void divide(int *counts, int n, int total, unsigned int seed)
{
	for (int r = 0; r < n; r++) {
		counts[r] = r == n - 1
				    ? total
				    : (int)(mix(seed, (unsigned int)r) % (unsigned int)(total + 1));
		total -= counts[r];
	}
}

static void reduced(const struct groups *g, enum call call, unsigned int seed, int root_side,
		    int root)
{
	bool composes = seed & 1024,
	     scatters = call == REDUCE_SCATTER || call == REDUCE_SCATTER_BLOCK;
	bool has_root = g->side == root_side && g->me == root, leaf = g->side != root_side;
	int n = length(seed, true, 0, 0, 0) / (composes ? 2 : 1), each = composes ? 2 : 1;
	MPI_Datatype type = composes ? function : MPI_UNSIGNED;
	MPI_Op op = composes ? compose : MPI_SUM;
	int counts[MOST], first = 0;

	if (call == REDUCE_SCATTER_BLOCK)
		n = n / (g->here * g->there) * (g->here * g->there);
	if (call == REDUCE_SCATTER_BLOCK)
		for (int r = 0; r < g->here; r++)
			counts[r] = n / g->here;
	else
		divide(counts, g->here, n, mix(seed, (unsigned int)g->side));
	for (int r = 0; scatters && r < g->me; r++)
		first += counts[r];
	for (int i = 0; i < n * each; i++) {
		out[i] = operand(seed, g->side, g->me, (size_t)i);
		in[i] = 0x55555555u;
	}
	if (call == BARRIER)
		MPI_Barrier(g->comm);
	else if (call == REDUCE)
		MPI_Reduce(out, in, n, type, op,
			   has_root ? MPI_ROOT
			   : leaf   ? root
				    : MPI_PROC_NULL,
			   g->comm);
	else if (call == ALLREDUCE)
		MPI_Allreduce(out, in, n, type, op, g->comm);
	else if (call == REDUCE_SCATTER)
		MPI_Reduce_scatter(out, in, counts, type, op, g->comm);
	else
		MPI_Reduce_scatter_block(out, in, n / g->here, type, op, g->comm);
	if (call != BARRIER && (call != REDUCE || has_root))
		check_reduced(g, call, seed, composes, (size_t)(first * each),
			      (size_t)((scatters ? counts[g->me] : n) * each));
}

static struct groups groups_of(MPI_Comm comm, int side)
{
	struct groups g = {.comm = comm, .side = side};

	MPI_Comm_rank(comm, &g.me);
	MPI_Comm_size(comm, &g.here);
	MPI_Comm_remote_size(comm, &g.there);
	return g;
}

/* The first @cut ranks, and the others. */
static struct groups make(int cut, int rank)
{
	int side = rank >= cut;
	MPI_Comm half, comm;

	MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : cut, 7, &comm);
	MPI_Comm_free(&half);
	return groups_of(comm, side);
}

int main(int argc, char **argv)
{
	struct groups groups[3];
	MPI_Comm copy;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 3 || size < 2 || size > MOST)
		pattern_fail("between SEED CALLS, 2 to 8 ranks");
	state = (unsigned int)atoi(argv[1]);
	out = pattern_alloc(ROOM * sizeof(*out));
	in = pattern_alloc(ROOM * sizeof(*in));
	plain = MPI_INT;
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
	MPI_Type_commit(&gaps);
	MPI_Type_contiguous(2, MPI_UNSIGNED, &function);
	MPI_Type_commit(&function);
	MPI_Op_create(then, 0, &compose);
	groups[0] = make(1, rank);
	groups[1] = make((size + 1) / 2, rank);
	MPI_Comm_dup(groups[1].comm, &copy);
	groups[2] = groups_of(copy, groups[1].side);
	for (int i = 0; i < atoi(argv[2]); i++) {
		const struct groups *g = &groups[draw(3)];
		enum call call = draw(CALLS);
		int root_side = (int)draw(2);
		int root = (int)draw((unsigned int)(g->side == root_side ? g->here : g->there));
		unsigned int seed = draw(1u << 24);

		if (call <= GATHERV)
			rooted(g, call, seed, root_side, root);
		else if (call <= ALLTOALLW)
			all(g, call, seed);
		else
			reduced(g, call, seed, root_side, root);
		/* Made again, so that its handle is one that was another's. */
		if (draw(40) == 0) {
			MPI_Comm_free(&groups[0].comm);
			groups[0] = make(1 + (int)draw((unsigned int)size - 1), rank);
		}
	}
	for (int i = 0; i < 3; i++)
		MPI_Comm_free(&groups[i].comm);
	MPI_Type_free(&gaps);
	MPI_Type_free(&function);
	MPI_Op_free(&compose);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
