// SPDX-License-Identifier: BSD-3-Clause
/* Vectors of blocks of a type whose extent is not its size, by which their places are counted, in
 * memory outside the heap: the blocks touch, and the first lies before the buffer. */
#include <sys/mman.h>

#include "pattern.h"

#define BLOCK	2048 /* doubles */
#define RANKS	3
#define DOUBLES (RANKS * BLOCK)

static double *map(void)
{
	double *p = mmap(NULL, DOUBLES * sizeof(*p), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		pattern_fail("mmap");
	return p;
}

static double value(int rank, int i)
{
	return rank * 100000 + i;
}

static void check(const double *got, int from, int first)
{
	for (int i = 0; i < BLOCK; i++)
		if (got[i] != value(from, first + i))
			pattern_fail("wrong data");
}

int main(int argc, char **argv)
{
	int counts[RANKS] = {1, 1, 1}, displs[RANKS] = {-BLOCK, 0, BLOCK}, rank, size;
	double *out, *in, one[BLOCK];
	MPI_Datatype block, type;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	MPI_Type_contiguous(BLOCK, MPI_DOUBLE, &block);
	MPI_Type_create_resized(block, 0, sizeof(double), &type);
	MPI_Type_commit(&type);
	out = map();
	in = map();
	for (int turn = 0; turn < 20; turn++) {
		int root = turn % RANKS;

		for (int i = 0; i < DOUBLES; i++)
			out[i] = value(rank, i);
		MPI_Scatterv(out + BLOCK, counts, displs, type, one, BLOCK, MPI_DOUBLE, root,
			     MPI_COMM_WORLD);
		check(one, root, rank * BLOCK);
		MPI_Alltoallv(out + BLOCK, counts, displs, type, in + BLOCK, counts, displs, type,
			      MPI_COMM_WORLD);
		for (int r = 0; r < RANKS; r++)
			check(in + r * BLOCK, r, rank * BLOCK);
		MPI_Gatherv(out, BLOCK, MPI_DOUBLE, in + BLOCK, counts, displs, type, root,
			    MPI_COMM_WORLD);
		for (int r = 0; rank == root && r < RANKS; r++)
			check(in + r * BLOCK, r, 0);
	}
	MPI_Type_free(&type);
	MPI_Type_free(&block);
	MPI_Finalize();
	return 0;
}
