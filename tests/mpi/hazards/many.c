// SPDX-License-Identifier: BSD-3-Clause
/* Many small and some large collectives, with more ranks than cores. */
#include "pattern.h"

int main(int argc, char **argv)
{
	size_t most = (size_t)1 << 17;
	unsigned int *data, *other;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	data = pattern_alloc(most * 4 * (size_t)size);
	other = pattern_alloc(most * 4 * (size_t)size);
	for (int turn = 0; turn < 1500; turn++) {
		size_t n = turn % 100 == 99 ? most
			   : turn % 10 == 9 ? most / 8
					    : 1 + (size_t)turn % 2000;

		pattern_fill(data, n, (unsigned int)(rank == turn % size ? turn : -1));
		MPI_Bcast(data, (int)n, MPI_UNSIGNED, turn % size, MPI_COMM_WORLD);
		pattern_check(data, n, (unsigned int)turn, "bcast");
		MPI_Allreduce(data, other, (int)n, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
		pattern_check(other, n, (unsigned int)turn, "allreduce");
		if (turn % 5 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
