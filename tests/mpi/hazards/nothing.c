// SPDX-License-Identifier: BSD-3-Clause
/*
 * A rank that has no data in MPI_Gatherv or MPI_Scatterv says MPI_IN_PLACE, though it is not the
 * root: MPICH takes that. The ranks are together afterwards.
 */
#include "pattern.h"

#define RANKS 8
#define N     20000

static int words[RANKS * N], other[RANKS * N];

int main(int argc, char **argv)
{
	int counts[RANKS], displs[RANKS], rank, size;
	MPI_Comm world = MPI_COMM_WORLD;
	void *none = MPI_IN_PLACE;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	if (size > RANKS)
		pattern_fail("at most 8 ranks");
	for (int r = 0; r < size; r++) {
		counts[r] = r == size - 1 ? 0 : N;
		displs[r] = r * N;
	}
	for (int turn = 0; turn < 4; turn++) {
		int mine = counts[rank], root = turn % size;

		MPI_Gatherv(mine ? words : none, mine, MPI_INT, other, counts, displs, MPI_INT, 0,
			    world);
		MPI_Scatterv(other, counts, displs, MPI_INT, mine ? words : none, mine, MPI_INT, 0,
			     world);
		for (int i = 0; i < N; i++)
			words[i] = rank == root ? turn + i : 0;
		MPI_Bcast(words, N, MPI_INT, root, world);
		if (words[N - 1] != turn + N - 1)
			pattern_fail("bcast");
	}
	MPI_Finalize();
	return 0;
}
