// SPDX-License-Identifier: BSD-3-Clause
/*
 * edges WHAT: correct calls and wrong ones of which two ranks know different things.
 * "maps"   a user's operator on one type map that ranks have made by other constructors;
 * "nulls"  no send type, or a count below 0, which the communicator's handler is told;
 * "ways"   neighbours of which one sends more than the other;
 * "place"  MPI_IN_PLACE of a rank that has no data, where the MPI takes it.
 */
#include <string.h>

#include "pattern.h"

#define BYTES 65536
#define PAIRS 8191
#define CALLS 6
#define EACH  (PAIRS * 2)

static int rank, size;
static char *out, *in;

static void add(void *from, void *to, int *len, MPI_Datatype *type)
{
	int bytes, *inout = to, *added = from;

	MPI_Type_size(*type, &bytes);
	for (int i = 0; i < *len * (bytes / (int)sizeof(int)); i++)
		inout[i] += added[i];
}

/* By @n numbers an element. */
static void reduce(MPI_Datatype type, int n, MPI_Op op)
{
	int count = 4 * EACH / n, *own = (int *)out, *all = (int *)in;

	MPI_Type_commit(&type);
	for (int turn = 0; turn < CALLS; turn++) {
		for (int i = 0; i < count * n; i++)
			own[i] = i + rank;
		MPI_Allreduce(own, all, count, type, op, MPI_COMM_WORLD);
		for (int i = 0; i < count * n; i++)
			if (all[i] != size * i + size * (size - 1) / 2)
				pattern_fail("a wrong sum");
	}
}

static MPI_Datatype contiguous(int n, MPI_Datatype of)
{
	MPI_Datatype type;

	MPI_Type_contiguous(n, of, &type);
	return type;
}

/* Of EACH integers, of two kinds in turns. */
static MPI_Datatype pairs(int blocks)
{
	static int length[EACH];
	static MPI_Aint at[EACH];
	static MPI_Datatype types[EACH];
	MPI_Datatype type;

	for (int i = 0; i < blocks; i++) {
		length[i] = 1;
		at[i] = (MPI_Aint)sizeof(int) * i;
		types[i] = i % 2 ? MPI_UNSIGNED : MPI_INT;
	}
	MPI_Type_create_struct(blocks, length, at, types, &type);
	return type;
}

static void maps(void)
{
	MPI_Datatype one = contiguous(1, MPI_INT);
	MPI_Op op;

	MPI_Op_create(add, 1, &op);
	reduce(rank ? one : contiguous(1, one), 1, op);
	if (rank)
		reduce(one, 1, op);
	else
		for (int turn = 0; turn < CALLS; turn++) {
			for (int i = 0; i < 4 * EACH; i++)
				((int *)out)[i] = i;
			MPI_Allreduce(out, in, 4 * EACH, MPI_INT, op, MPI_COMM_WORLD);
		}
	reduce(rank ? contiguous(2, MPI_INT) : contiguous(1, MPI_2INT), 2, op);
	reduce(rank ? pairs(EACH) : contiguous(PAIRS, pairs(2)), EACH, op);
	MPI_Op_free(&op);
}

static void expect(int err, int expected)
{
	int class;

	MPI_Error_class(err, &class);
	if (class != expected)
		pattern_fail("another error");
}

static void nulls(void)
{
	const MPI_Datatype null = MPI_DATATYPE_NULL, byte = MPI_BYTE;
	int counts[2] = {BYTES, BYTES}, displs[2] = {0, BYTES};
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int turn = 0; turn < CALLS; turn++)
		MPI_Allgather(out, BYTES, byte, in, BYTES, byte, comm);
	expect(MPI_Allgather(out, BYTES, null, in, BYTES, byte, comm), MPI_ERR_TYPE);
	expect(MPI_Alltoall(out, BYTES, null, in, BYTES, byte, comm), MPI_ERR_TYPE);
	expect(MPI_Allgatherv(out, BYTES, null, in, counts, displs, byte, comm), MPI_ERR_TYPE);
	expect(MPI_Allgather(out, -1, byte, in, BYTES, byte, comm), MPI_ERR_COUNT);
	expect(MPI_Alltoall(out, -1, byte, in, BYTES, byte, comm), MPI_ERR_COUNT);
	expect(MPI_Allgather(out, BYTES, byte, in, BYTES, byte, comm), MPI_SUCCESS);
	MPI_Comm_free(&comm);
}

static void ways(void)
{
	int there = 1 - rank, sent = rank ? BYTES : BYTES / 2, got = rank ? BYTES / 2 : BYTES;
	MPI_Comm comm;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &there, MPI_UNWEIGHTED, 1, &there,
				       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
	for (int turn = 0; turn < CALLS; turn++) {
		memset(out, 1 + rank, BYTES);
		memset(in, 0, BYTES);
		MPI_Neighbor_allgather(out, sent, MPI_BYTE, in, got, MPI_BYTE, comm);
		for (int i = 0; i < BYTES; i++)
			if (in[i] != (i < got ? 1 + there : 0))
				pattern_fail("other bytes");
	}
	MPI_Comm_free(&comm);
}

static void exchange(MPI_Comm comm)
{
	int counts[2] = {BYTES, BYTES}, displs[2] = {0, BYTES};

	MPI_Alltoallv(out, counts, displs, MPI_BYTE, in, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
	MPI_Neighbor_alltoallv(out, counts, displs, MPI_BYTE, in, counts, displs, MPI_BYTE, comm);
}

static void place(void)
{
	const MPI_Datatype byte = MPI_BYTE;
	int none[2] = {0, 0}, there = 1 - rank;
	void *at = rank ? in : MPI_IN_PLACE;
	MPI_Comm comm;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &there, MPI_UNWEIGHTED, 1, &there,
				       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
	for (int turn = 0; turn < CALLS; turn++) {
		exchange(comm);
		MPI_Alltoallv(out, none, none, byte, at, none, none, byte, MPI_COMM_WORLD);
		MPI_Scatterv(at, none, none, byte, in, 0, byte, 0, MPI_COMM_WORLD);
		MPI_Gatherv(out, 0, byte, at, none, none, byte, 0, MPI_COMM_WORLD);
		MPI_Neighbor_alltoallv(at, none, none, byte, in, none, none, byte, comm);
	}
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"maps", maps}, {"nulls", nulls}, {"ways", ways}, {"place", place}};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = pattern_alloc(4 * EACH * sizeof(int));
	in = pattern_alloc(4 * EACH * sizeof(int));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc == 2 && !strcmp(argv[1], cases[i].name))
			cases[i].run();
	MPI_Finalize();
	return 0;
}
