// SPDX-License-Identifier: BSD-3-Clause
/*
 * neighbours SEED ROUNDS [large] [careful]: neighbourhood collectives on topologies drawn at
 * random: grids, also those in which a rank is its neighbour's on both sides or its own, and graphs
 * with several edges between two ranks. What is received is checked, but for which of several edges
 * it came along. A line for each call and rank has a digest of it, the same whoever carried it out.
 * large: some ranks' calls have large counts. careful: none is MPI_Neighbor_alltoallw, and no
 * array is NULL where a rank has no edges.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <mpi.h>

#include "../../random.h"

#define RANKS  8
#define EDGES  (3 * RANKS)
#define UNIT   96 /* ints */
#define LONG   90 /* units of a block at most */
#define STRIDE (LONG * UNIT * 2)
#define ROOM   ((size_t)EDGES * STRIDE)

enum { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, CALLS };

/* A rank's part of a topology: for each block whose it is, or MPI_PROC_NULL. */
static int outs, ins, to[EDGES], from[EDGES];
static int everyone[RANKS][EDGES + 1]; /* each rank's outs, and its to[] */
static bool nulls;

struct side {
	int *at;
	MPI_Datatype type;
	int ints;  /* of an element */
	int count; /* of calls that have one for all */
	int counts[EDGES], displs[EDGES];
	MPI_Datatype types[EDGES];
	MPI_Aint bytes[EDGES];
#if MPI_VERSION >= 4
	MPI_Count wide[EDGES];
	MPI_Aint far[EDGES];
#endif
};

static int rank, size;
static uint64_t state; /* the same on all ranks */
/* A unit in pieces. They are moved as they lie where a rank has few neighbours, else packed. */
static const int lengths[] = {40, 32, 24}, places[] = {1, 60, 120};
static MPI_Datatype gapped;
static int *memory[2][3]; /* of each side: from malloc, mapped, static */
static int fixed[2][ROOM];

static unsigned int dice(unsigned int sides)
{
	return (unsigned int)(random_next(&state) % sides);
}

static uint64_t hash(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = a * 1000003 + b * 10007 + c;

	return random_next(&x);
}

static void grid(MPI_Comm *comm)
{
	int dims[3] = {0}, periods[3], n = 1 + (int)dice(3);

	MPI_Dims_create(size, n, dims);
	for (int d = 0; d < n; d++)
		periods[d] = (int)dice(2);
	MPI_Cart_create(MPI_COMM_WORLD, n, dims, periods, 0, comm);
	outs = ins = 2 * n;
	for (int d = 0; d < n; d++)
		MPI_Cart_shift(*comm, d, 1, &to[2 * d], &to[2 * d + 1]);
	memcpy(from, to, sizeof(from));
}

/* Undirected, as the standard wants it. */
static void graph(MPI_Comm *comm)
{
	int index[RANKS], edges[RANKS * RANKS], n = 0;
	bool linked[RANKS][RANKS] = {{false}};

	for (int a = 0; a < size; a++)
		for (int b = a; b < size; b++)
			linked[a][b] = linked[b][a] = dice(3) > 0;
	for (int a = 0; a < size; a++) {
		for (int b = 0; b < size; b++)
			if (linked[a][b])
				edges[n++] = b;
		index[a] = n;
	}
	MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, comm);
	MPI_Graph_neighbors_count(*comm, rank, &outs);
	MPI_Graph_neighbors(*comm, rank, outs, to);
	ins = outs;
	memcpy(from, to, sizeof(from));
}

static void shuffle(int *list, int n, uint64_t seed)
{
	for (int i = n - 1; i > 0; i--) {
		int j = (int)(random_next(&seed) % (uint64_t)(i + 1)), was = list[i];

		list[i] = list[j];
		list[j] = was;
	}
}

/* Directed, with up to three edges from one rank to another, in no order; a rank may have none. */
static void directed(MPI_Comm *comm)
{
	int lonely = dice(3) ? -1 : (int)dice((unsigned int)size), weights[EDGES];
	bool weighted = dice(2);
	uint64_t seed = random_next(&state);

	outs = ins = 0;
	for (int a = 0; a < size; a++)
		for (int b = 0; b < size; b++) {
			int n = dice(2) ? 0 : 1 + (int)dice(3) / 2 + (int)dice(5) / 4;

			if (a == lonely || b == lonely)
				continue;
			for (; n > 0; n--) {
				if (a == rank)
					to[outs++] = b;
				if (b == rank)
					from[ins++] = a;
			}
		}
	shuffle(to, outs, hash(seed, (uint64_t)rank, 0));
	shuffle(from, ins, hash(seed, (uint64_t)rank, 1));
	for (int i = 0; i < EDGES; i++)
		weights[i] = i;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, ins, from,
				       weighted ? weights : MPI_UNWEIGHTED, outs, to,
				       weighted ? weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, comm);
}

/* Units from one rank to another: of several edges each. */
static int units(uint64_t seed, int source, int target)
{
	uint64_t bits = hash(seed, (uint64_t)source, (uint64_t)target);

	switch (bits % 4) {
	case 0:
		return 0;
	case 1:
		return 1 + (int)(bits / 4 % 3);
	default:
		return 12 + (int)(bits / 4 % (LONG - 12));
	}
}

/* Of any rank; without its memory. */
static void describe(struct side *s, int which, int whose, const int *peer, int n, int call,
		     uint64_t seed, bool large)
{
	uint64_t bits = hash(seed, (uint64_t)whose, 77 + (uint64_t)which);
	int alike = large ? 12 + (int)(seed % (LONG - 12)) : 1 + (int)(seed % 3), apart;
	bool packed = bits & 1;

	s->type = bits & 8 ? gapped : MPI_INT;
	s->ints = s->type == gapped ? UNIT : 1;
	/* In elements; as many ints of the type with gaps are twice as far apart. */
	apart = s->type == gapped ? LONG : LONG * UNIT;
	/* Where a rank has no neighbours, too: Open MPI compares both counts. */
	s->count = (call == ALLGATHERV ? units(seed, whose, 0) : alike) * (UNIT / s->ints);
	for (int i = 0; i < n; i++) {
		int source = which ? peer[i] : whose, target = which ? whose : peer[i];
		int u = units(seed, source, call == ALLGATHERV ? 0 : target);

		s->counts[i] = (peer[i] == MPI_PROC_NULL ? 3 : u) * (UNIT / s->ints);
		s->types[i] = s->type;
		s->displs[i] = (packed ? i : n - 1 - i) * apart;
		s->bytes[i] = (MPI_Aint)s->displs[i] * (s->type == gapped ? 2 * UNIT : 1) *
			      (MPI_Aint)sizeof(int);
#if MPI_VERSION >= 4
		s->wide[i] = s->counts[i];
		s->far[i] = s->displs[i];
#endif
	}
}

static void open_side(struct side *s, int which, int call, uint64_t seed, bool large)
{
	describe(s, which, rank, which ? from : to, which ? ins : outs, call, seed, large);
	s->at = memory[which][hash(seed, (uint64_t)rank, 3 + (uint64_t)which) % 3];
}

/* Where the integer @i of a block is. */
static size_t place(int ints, size_t begin, int i)
{
	int piece = 0, rest = i % UNIT;

	if (ints == 1)
		return begin + (size_t)i;
	for (; rest >= lengths[piece]; piece++)
		rest -= lengths[piece];
	return begin + (size_t)(i / UNIT * 2 * UNIT + places[piece] + rest);
}

static size_t begin_of(int call, const struct side *s, int block)
{
	int apart = s->ints == UNIT ? 2 * UNIT : 1;

	if (call == ALLGATHER || call == ALLTOALL)
		return (size_t)block * (size_t)s->count * (size_t)apart;
	return (size_t)s->displs[block] * (size_t)apart;
}

static int ints_of(int call, const struct side *s, int block)
{
	return s->ints * (call == ALLGATHER || call == ALLTOALL ? s->count : s->counts[block]);
}

/* Whether block @block is what @source has in @sent for its own block @k. */
static bool is_from(int call, uint64_t seed, const struct side *r, int block, int source,
		    const struct side *sent, int k)
{
	size_t begin = call <= ALLGATHERV ? 0 : begin_of(call, sent, k);

	for (int i = 0; i < ints_of(call, r, block); i++) {
		size_t there = place(sent->ints, begin, i);

		if (r->at[place(r->ints, begin_of(call, r, block), i)] !=
		    (int)hash(seed, (uint64_t)source, there))
			return false;
	}
	return true;
}

static void check(int call, uint64_t seed, bool large, const struct side *r)
{
	static struct side sent;

	for (int b = 0; b < ins; b++) {
		int source = from[b];
		bool found = false;

		if (source == MPI_PROC_NULL)
			continue;
		describe(&sent, 0, source, everyone[source] + 1, everyone[source][0], call, seed,
			 large);
		for (int k = 0; k < everyone[source][0] && !found; k++)
			found = everyone[source][1 + k] == rank &&
				is_from(call, seed, r, b, source, &sent, k);
		if (!found) {
			fprintf(stderr, "call %d, rank %d: wrong bytes in block %d\n", call, rank,
				b);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
}

static void exchange_each(int call, struct side *s, struct side *r, MPI_Comm comm)
{
	bool sends = outs || !nulls, receives = ins || !nulls;
	const int *out = sends ? s->counts : NULL, *in = receives ? r->counts : NULL;

	if (call == ALLTOALLV)
		MPI_Neighbor_alltoallv(s->at, out, sends ? s->displs : NULL, s->type, r->at, in,
				       receives ? r->displs : NULL, r->type, comm);
	else
		MPI_Neighbor_alltoallw(s->at, out, sends ? s->bytes : NULL, sends ? s->types : NULL,
				       r->at, in, receives ? r->bytes : NULL,
				       receives ? r->types : NULL, comm);
}

static void exchange(int call, struct side *s, struct side *r, MPI_Comm comm)
{
	switch (call) {
	case ALLGATHER:
		MPI_Neighbor_allgather(s->at, s->count, s->type, r->at, r->count, r->type, comm);
		return;
	case ALLGATHERV:
		MPI_Neighbor_allgatherv(s->at, s->count, s->type, r->at, r->counts, r->displs,
					r->type, comm);
		return;
	case ALLTOALL:
		MPI_Neighbor_alltoall(s->at, s->count, s->type, r->at, r->count, r->type, comm);
		return;
	default:
		exchange_each(call, s, r, comm);
	}
}

#if MPI_VERSION >= 4
static void exchange_large(int call, struct side *s, struct side *r, MPI_Comm comm)
{
	switch (call) {
	case ALLGATHER:
		MPI_Neighbor_allgather_c(s->at, s->count, s->type, r->at, r->count, r->type, comm);
		return;
	case ALLGATHERV:
		MPI_Neighbor_allgatherv_c(s->at, s->count, s->type, r->at, r->wide, r->far, r->type,
					  comm);
		return;
	case ALLTOALL:
		MPI_Neighbor_alltoall_c(s->at, s->count, s->type, r->at, r->count, r->type, comm);
		return;
	case ALLTOALLV:
		MPI_Neighbor_alltoallv_c(s->at, s->wide, s->far, s->type, r->at, r->wide, r->far,
					 r->type, comm);
		return;
	default:
		MPI_Neighbor_alltoallw_c(s->at, s->wide, s->bytes, s->types, r->at, r->wide,
					 r->bytes, r->types, comm);
	}
}
#else
static void exchange_large(int call, struct side *s, struct side *r, MPI_Comm comm)
{
	exchange(call, s, r, comm);
}
#endif

static uint64_t digest(const int *at)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ROOM; i++)
		sum = sum * 1099511628211u + (unsigned int)at[i];
	return sum;
}

static void one_call(int round, int n, MPI_Comm comm, bool wide, bool careful)
{
	static struct side s, r;
	int call = (int)dice(CALLS);
	bool large = dice(4) > 0;
	uint64_t seed = random_next(&state);

	if (call == ALLTOALLW && careful)
		call = ALLTOALLV;
	open_side(&s, 0, call, seed, large);
	open_side(&r, 1, call, seed, large);
	for (size_t i = 0; i < ROOM; i++) {
		s.at[i] = (int)hash(seed, (uint64_t)rank, i);
		r.at[i] = -1;
	}
	if (wide && hash(seed, (uint64_t)rank, 5) & 1)
		exchange_large(call, &s, &r, comm);
	else
		exchange(call, &s, &r, comm);
	memset(s.at, 0xa5, ROOM * sizeof(int)); /* a peer that still reads it will find this */
	check(call, seed, large, &r);
	printf("%d.%d call %d rank %d: %016llx\n", round, n, call, rank,
	       (unsigned long long)digest(r.at));
	memset(r.at, 0x5a, ROOM * sizeof(int));
}

/* What every rank has to know to check what it received. */
static void tell_everyone(void)
{
	int mine[EDGES + 1] = {outs};

	memcpy(mine + 1, to, sizeof(to));
	MPI_Allgather(mine, EDGES + 1, MPI_INT, everyone, EDGES + 1, MPI_INT, MPI_COMM_WORLD);
}

/* MPICH counts a communicator's nonblocking collectives, of which its neighbourhood collectives are
 * made: who left one out is waited for. */
static void after(MPI_Comm comm)
{
	int one = 1, sum = 0;
	MPI_Request request;

	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (sum != size)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make_memory(void)
{
	MPI_Datatype tight;

	for (int which = 0; which < 2; which++) {
		memory[which][0] = malloc(ROOM * sizeof(int));
		memory[which][1] = mmap(NULL, ROOM * sizeof(int), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memory[which][2] = fixed[which];
		if (!memory[which][0] || memory[which][1] == MAP_FAILED)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Type_indexed(3, lengths, places, MPI_INT, &tight);
	MPI_Type_create_resized(tight, 0, 2 * UNIT * sizeof(int), &gapped);
	MPI_Type_commit(&gapped);
	MPI_Type_free(&tight);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	bool large = false, careful = false;

	for (int i = 3; i < argc; i++) {
		large = large || !strcmp(argv[i], "large");
		careful = careful || !strcmp(argv[i], "careful");
	}

	nulls = !careful;
	state = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	make_memory();
	for (int round = 0; round < rounds; round++) {
		static void (*const kinds[])(MPI_Comm *) = {grid, graph, directed};
		MPI_Comm comm;

		kinds[dice(3)](&comm);
		tell_everyone();
		for (int n = 0; n < 8; n++)
			one_call(round, n, comm, large, careful);
		after(comm);
		MPI_Comm_free(&comm);
	}
	MPI_Finalize();
	return 0;
}
