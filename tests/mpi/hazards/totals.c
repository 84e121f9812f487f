// SPDX-License-Identifier: BSD-3-Clause
/* totals [block]: MPI_Reduce_scatter, or MPI_Reduce_scatter_block, of blocks that
 * are short alone and long together. */
#include "pattern.h"

#define WORDS ((size_t)1 << 10) /* of a block: 4 KiB */
#define RANKS 4
#define TURNS 40

static void check(const unsigned int *data, unsigned int turn, int rank, int size)
{
	for (size_t i = 0; i < WORDS; i++) {
		unsigned int sum = 0;

		for (int r = 0; r < size; r++)
			sum += pattern_at(turn * RANKS + (unsigned int)r, (size_t)rank * WORDS + i);
		if (data[i] != sum)
			pattern_fail("reduce_scatter");
	}
}

int main(int argc, char **argv)
{
	int counts[RANKS] = {WORDS, WORDS, WORDS, WORDS};
	unsigned int *send, *recv;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS)
		pattern_fail("too many ranks");
	send = pattern_alloc(RANKS * WORDS * 4);
	recv = pattern_alloc(WORDS * 4);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		pattern_fill(send, RANKS * WORDS, turn * RANKS + (unsigned int)rank);
		if (argc > 1)
			MPI_Reduce_scatter_block(send, recv, (int)WORDS, MPI_UNSIGNED, MPI_SUM,
						 MPI_COMM_WORLD);
		else
			MPI_Reduce_scatter(send, recv, counts, MPI_UNSIGNED, MPI_SUM,
					   MPI_COMM_WORLD);
		check(recv, turn, rank, size);
	}
	MPI_Finalize();
	return 0;
}
