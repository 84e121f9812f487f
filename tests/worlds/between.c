// SPDX-License-Identifier: BSD-3-Clause
/*
 * Random calls between the two groups of several intercommunicators: either group has the root,
 * blocks are long and short ones and none at all, the same at both ends and of other types, and
 * other lengths in one direction than in the other.
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
	CALLS
};
static const char *const names[CALLS] = {"bcast",     "scatter",   "scatterv",	 "gather",
					 "gatherv",   "allgather", "allgatherv", "alltoall",
					 "alltoallv", "alltoallw"};

/* One intercommunicator as this rank sees it. */
struct groups {
	MPI_Comm comm;
	int side, me, here, there;
};

static unsigned int state;
static unsigned int *out, *in;
static MPI_Datatype plain, gaps; /* an int; an int of every two */

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
		else
			all(g, call, seed);
		/* Made again, so that its handle is one that was another's. */
		if (draw(40) == 0) {
			MPI_Comm_free(&groups[0].comm);
			groups[0] = make(1 + (int)draw((unsigned int)size - 1), rank);
		}
	}
	for (int i = 0; i < 3; i++)
		MPI_Comm_free(&groups[i].comm);
	MPI_Type_free(&gaps);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
