// SPDX-License-Identifier: BSD-3-Clause
/* Reductions whose send buffer is the receive buffer, without MPI_IN_PLACE: an error that is served
 * as if it were in place. */
#include "pattern.h"

#define WORDS (64 << 10)
#define RANKS 4

static int value(int rank, int i, int turn)
{
	return rank * 3 + i % 1000 + turn;
}

static int sum(int size, int i, int turn)
{
	int all = 0;

	for (int r = 0; r < size; r++)
		all += value(r, i, turn);
	return all;
}

int main(int argc, char **argv)
{
	int *data = pattern_alloc(WORDS * sizeof(*data)), counts[RANKS], rank, size;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	for (int r = 0; r < size; r++)
		counts[r] = WORDS / size;
	for (int turn = 0; turn < 40; turn++) {
		int first = turn % 4 == 3 ? 0 : rank * counts[0];

		for (int i = 0; i < WORDS; i++)
			data[i] = value(rank, i, turn);
		if (turn % 4 == 0)
			MPI_Reduce_scatter(data, data, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		else if (turn % 4 == 1)
			MPI_Reduce_scatter_block(data, data, counts[0], MPI_INT, MPI_SUM,
						 MPI_COMM_WORLD);
		else if (turn % 4 == 2) /* and ranks that do it right */
			MPI_Reduce_scatter(rank % 2 ? data : MPI_IN_PLACE, data, counts, MPI_INT,
					   MPI_SUM, MPI_COMM_WORLD);
		else
			MPI_Allreduce(data, data, WORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < counts[0]; i++)
			if (data[i] != sum(size, first + i, turn))
				pattern_fail("wrong sum");
	}
	MPI_Finalize();
	return 0;
}
