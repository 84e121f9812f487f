// SPDX-License-Identifier: BSD-3-Clause
/* Every collective on an intercommunicator, of which one side is larger. */
#include <stdbool.h>
#include <string.h>

#include "../mpi/hazards/pattern.h"

#define N    3000
#define MOST 16 /* blocks */

static MPI_Comm inter;
static int side, me, here, there;
static int out[MOST * N], in[MOST * N];
static int counts[MOST], displs[MOST], bytes[MOST];
static MPI_Datatype types[MOST];

static int value(int of_side, int rank, int i)
{
	return of_side * 10000000 + rank * 1000000 + i;
}

static void fill(void)
{
	for (int i = 0; i < MOST * N; i++) {
		out[i] = value(side, me, i);
		in[i] = -1;
	}
}

/* @n elements at @at came from one rank of the other side, where they were from @first on. */
static void expect(const char *what, int at, int rank, int first, int n)
{
	for (int i = 0; i < n; i++)
		if (in[at + i] != value(!side, rank, first + i))
			pattern_fail(what);
}

static void expect_sum(const char *what, int first, int n)
{
	for (int i = 0; i < n; i++) {
		int sum = 0;

		for (int r = 0; r < there; r++)
			sum += value(!side, r, first + i);
		if (in[i] != sum)
			pattern_fail(what);
	}
}

/* The root of what goes to, or comes from, side 1: rank 0 of side 0. */
static int root(void)
{
	return side ? 0 : me ? MPI_PROC_NULL : MPI_ROOT;
}

/* MPI_INT, where the argument counts for anything on this rank; else what no MPI could look at.
 * (But the library of MPI 5's ABI looks: it is made of another one.) */
static MPI_Datatype type_if(bool counts_here)
{
	MPI_Datatype type = MPI_INT;

	if (!counts_here) {
#ifdef MPI_ABI_VERSION
		type = MPI_DATATYPE_NULL;
#else
		memset(&type, 0x5a, sizeof(type));
#endif
	}
	return type;
}

static void rooted(void)
{
	bool roots = !side && !me;

	fill();
	MPI_Bcast(side ? in : out, N, MPI_INT, root(), inter);
	if (side)
		expect("bcast", 0, 0, 0, N);
	fill();
	MPI_Scatter(out, N, type_if(roots), in, N, type_if(side), root(), inter);
	if (side)
		expect("scatter", 0, 0, me * N, N);
	fill();
	MPI_Scatterv(out, counts, displs, MPI_INT, in, N, MPI_INT, root(), inter);
	if (side)
		expect("scatterv", 0, 0, displs[me], N);
	fill();
	MPI_Gather(out, N, type_if(side), in, N, type_if(roots), root(), inter);
	for (int r = 0; roots && r < there; r++)
		expect("gather", r * N, r, 0, N);
	fill();
	MPI_Gatherv(out, N, MPI_INT, in, counts, displs, MPI_INT, root(), inter);
	for (int r = 0; roots && r < there; r++)
		expect("gatherv", displs[r], r, 0, N);
	fill();
	MPI_Reduce(out, in, N, MPI_INT, MPI_SUM, root(), inter);
	if (roots)
		expect_sum("reduce", 0, N);
}

static void all(void)
{
	fill();
	MPI_Allgather(out, N, MPI_INT, in, N, MPI_INT, inter);
	for (int r = 0; r < there; r++)
		expect("allgather", r * N, r, 0, N);
	fill();
	MPI_Allgatherv(out, N, MPI_INT, in, counts, displs, MPI_INT, inter);
	for (int r = 0; r < there; r++)
		expect("allgatherv", displs[r], r, 0, N);
	fill();
	MPI_Alltoall(out, N, MPI_INT, in, N, MPI_INT, inter);
	for (int r = 0; r < there; r++)
		expect("alltoall", r * N, r, me * N, N);
	fill();
	MPI_Alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, inter);
	for (int r = 0; r < there; r++)
		expect("alltoallv", displs[r], r, displs[me], N);
	fill();
	MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, inter);
	for (int r = 0; r < there; r++)
		expect("alltoallw", displs[r], r, displs[me], N);
	fill();
	MPI_Allreduce(out, in, N, MPI_INT, MPI_SUM, inter);
	expect_sum("allreduce", 0, N);
	fill();
	MPI_Reduce_scatter_block(out, in, there * N, MPI_INT, MPI_SUM, inter);
	expect_sum("reduce_scatter_block", me * there * N, there * N);
	for (int r = 0; r < here; r++)
		counts[r] = there * N;
	fill();
	MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, inter);
	expect_sum("reduce_scatter", me * there * N, there * N);
	MPI_Barrier(inter);
}

#if MPI_VERSION >= 4
static void large(void)
{
	MPI_Count wide[MOST];
	MPI_Aint at[MOST];

	for (int r = 0; r < MOST; r++) {
		wide[r] = N;
		at[r] = bytes[r];
	}
	fill();
	MPI_Bcast_c(side ? in : out, N, MPI_INT, root(), inter);
	if (side)
		expect("bcast_c", 0, 0, 0, N);
	fill();
	MPI_Alltoallw_c(out, wide, at, types, in, wide, at, types, inter);
	for (int r = 0; r < there; r++)
		expect("alltoallw_c", displs[r], r, displs[me], N);
	for (int r = 0; r < here; r++)
		wide[r] = there * N;
	fill();
	MPI_Reduce_scatter_c(out, in, wide, MPI_INT, MPI_SUM, inter);
	expect_sum("reduce_scatter_c", me * there * N, there * N);
}
#else
static void large(void)
{
}
#endif

int main(int argc, char **argv)
{
	MPI_Comm half;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	side = rank > 0;
	MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 1, &inter);
	MPI_Comm_rank(inter, &me);
	MPI_Comm_size(inter, &here);
	MPI_Comm_remote_size(inter, &there);
	for (int r = 0; r < MOST; r++) {
		counts[r] = N;
		displs[r] = (here + there - r) * N;
		bytes[r] = displs[r] * (int)sizeof(int);
		types[r] = MPI_INT;
	}
	/* Once for a group. */
	rooted();
	rooted();
	all();
	large();
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Finalize();
	return 0;
}
