// SPDX-License-Identifier: BSD-3-Clause
/* unequal DIGITS: broadcasts over all ranks, and over those whose digit is the same. */
#include "pattern.h"

#define WORDS ((size_t)1 << 18)

static void broadcast(unsigned int *data, MPI_Comm comm)
{
	int rank;

	MPI_Comm_rank(comm, &rank);
	for (unsigned int turn = 0; turn < 4; turn++) {
		pattern_fill(data, WORDS, rank ? ~turn : turn);
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, comm);
		pattern_check(data, WORDS, turn, "bcast");
	}
}

int main(int argc, char **argv)
{
	unsigned int *data;
	MPI_Comm alike;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	data = pattern_alloc(WORDS * 4);
	broadcast(data, MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, argv[1][rank], 0, &alike);
	broadcast(data, alike);
	MPI_Comm_free(&alike);
	MPI_Finalize();
	return 0;
}
