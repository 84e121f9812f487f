// SPDX-License-Identifier: BSD-3-Clause
/* A large message is under way at its sender, which waits inside a collective,
 * while the receiver comes to that collective only when it has the message. */
#include "pattern.h"

#define WORDS ((size_t)1 << 20)

static void collective(int which, unsigned int *data, unsigned int *other, int size)
{
	int words = (int)WORDS / 16;

	switch (which) {
	case 0:
		MPI_Bcast(data, words, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		break;
	case 1:
		MPI_Bcast(data, words, MPI_UNSIGNED, 1, MPI_COMM_WORLD);
		break;
	case 2:
		MPI_Allreduce(data, other, words, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
		break;
	case 3:
		MPI_Alltoall(data, words, MPI_UNSIGNED, other, words, MPI_UNSIGNED, MPI_COMM_WORLD);
		break;
	case 4:
		MPI_Gather(data, words, MPI_UNSIGNED, other, words, MPI_UNSIGNED, size - 1,
			   MPI_COMM_WORLD);
		break;
	default:
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	unsigned int *message, *data, *other;
	MPI_Request request;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	message = pattern_alloc(WORDS * 4);
	data = pattern_alloc(WORDS * 4);
	other = pattern_alloc(WORDS * 4);
	pattern_fill(data, WORDS, 1);
	for (int turn = 0; turn < 60; turn++) {
		int from = turn % size, to = (from + 1 + turn / 7 % (size - 1)) % size;

		if (rank == from) {
			pattern_fill(message, WORDS, (unsigned int)turn);
			MPI_Isend(message, (int)WORDS, MPI_UNSIGNED, to, turn, MPI_COMM_WORLD,
				  &request);
		} else if (rank == to) {
			MPI_Recv(message, (int)WORDS, MPI_UNSIGNED, from, turn, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			pattern_check(message, WORDS, (unsigned int)turn, "the message");
		}
		collective(turn % 6, data, other, size);
		if (rank == from)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
