// SPDX-License-Identifier: BSD-3-Clause
/* Send buffers are rewritten, receive buffers read, the moment a call returns. */
#include <string.h>

#include "pattern.h"

#define TURNS 300

static unsigned int *send, *recv;
static int rank, size;

static void turn_of(unsigned int turn, size_t words)
{
	int n = (int)words;

	pattern_fill(send, words * (size_t)size, turn * 64 + (unsigned int)rank);
	switch (turn % 5) {
	case 0:
		MPI_Bcast(rank == 0 ? send : recv, n, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		memset(send, 0xee, words * 4);
		if (rank)
			pattern_check(recv, words, turn * 64, "bcast");
		break;
	case 1:
		MPI_Gather(send, n, MPI_UNSIGNED, recv, n, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		memset(send, 0xee, words * 4);
		for (int r = 0; r < size && !rank; r++)
			pattern_check(recv + words * (size_t)r, words, turn * 64 + (unsigned int)r,
				      "gather");
		break;
	case 2:
		MPI_Allgather(send, n, MPI_UNSIGNED, recv, n, MPI_UNSIGNED, MPI_COMM_WORLD);
		memset(send, 0xee, words * 4);
		for (int r = 0; r < size; r++)
			pattern_check(recv + words * (size_t)r, words, turn * 64 + (unsigned int)r,
				      "allgather");
		break;
	case 3:
		MPI_Scatter(send, n, MPI_UNSIGNED, recv, n, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		memset(send, 0xee, words * (size_t)size * 4);
		for (size_t i = 0; i < words; i++)
			if (recv[i] != pattern_at(turn * 64, words * (size_t)rank + i))
				pattern_fail("scatter");
		break;
	default:
		MPI_Reduce(send, recv, n, MPI_UNSIGNED, MPI_BXOR, 0, MPI_COMM_WORLD);
		memset(send, 0xee, words * 4);
		for (size_t i = 0; i < words && !rank; i++) {
			unsigned int want = 0;

			for (int r = 0; r < size; r++)
				want ^= pattern_at(turn * 64 + (unsigned int)r, i);
			if (recv[i] != want)
				pattern_fail("reduce");
		}
	}
	memset(recv, 0x77, words * 4);
}

int main(int argc, char **argv)
{
	size_t most = (size_t)1 << 16;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	send = pattern_alloc(most * 4 * (size_t)size);
	recv = pattern_alloc(most * 4 * (size_t)size);
	for (unsigned int turn = 0; turn < TURNS; turn++)
		turn_of(turn, turn % 3 ? 4099 : most);
	MPI_Finalize();
	return 0;
}
