// SPDX-License-Identifier: BSD-3-Clause
/*
 * filled: allocates everything first, fills it later, and allocates no more, as many
 * programs do. Prints KiB in huge pages before and after some collectives.
 */
#include <string.h>

#include "hugepages.h"
#include "pattern.h"

#define BYTES ((size_t)192 << 20)
#define PART  ((size_t)1 << 20)
#define TURNS 260

int main(int argc, char **argv)
{
	char *block = malloc(BYTES);
	long before, after;
	int rank;

	if (!block)
		pattern_fail("no memory");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	memset(block, rank, BYTES);
	before = huge_kib(block);
	for (int i = 0; i < TURNS; i++)
		MPI_Bcast(block + i % 4 * PART, (int)PART, MPI_BYTE, 0, MPI_COMM_WORLD);
	after = huge_kib(block);
	for (size_t at = 0; at < BYTES; at += 4096)
		if (block[at] != (char)(at < 4 * PART ? 0 : rank))
			pattern_fail("wrong data");
	if (rank == 0)
		printf("%ld %ld\n", before, after);
	free(block);
	MPI_Finalize();
	return 0;
}
