// SPDX-License-Identifier: BSD-3-Clause
/* Blocks that grow past the size from which on they are the shared heap's, and back. */
#include <malloc.h>
#include <string.h>

#include "allocator.h"
#include "pattern.h"

#define FEW  ((size_t)250)
#define MANY ((size_t)50000)

int main(int argc, char **argv)
{
	unsigned int *data;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned int turn = 0; turn < 20; turn++) {
		data = malloc(FEW * sizeof(*data));
		pattern_fill(data, FEW, turn);
		if (malloc_usable_size(data) < FEW * sizeof(*data))
			pattern_fail("usable size of a small block");
		data = realloc(data, MANY * sizeof(*data));
		pattern_check(data, FEW, turn, "grown");
		if (malloc_usable_size(data) < MANY * sizeof(*data))
			pattern_fail("usable size of a large block");
		pattern_fill(data, MANY, rank ? turn : turn + 1);
		MPI_Bcast(data, (int)MANY, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, MANY, turn + 1, "bcast");
		data = realloc(data, FEW * sizeof(*data));
		pattern_check(data, FEW, turn + 1, "shrunk");
		free(data);
		for (size_t n = 1; n < MANY; n *= 10) {
			data = allocator_new(n * sizeof(*data));
			pattern_fill(data, n, turn);
			data = realloc(data, 2 * n * sizeof(*data));
			pattern_check(data, n, turn, "made without malloc");
			free(data);
			free(allocator_new(n));
		}
	}
	MPI_Finalize();
	return 0;
}
