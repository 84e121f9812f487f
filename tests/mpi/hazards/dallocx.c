// SPDX-License-Identifier: BSD-3-Clause
/* An allocator whose blocks come from malloc()'s family and go back by another way. */
#define ALLOCATOR_DALLOCX
#include "allocator.h"
#include "pattern.h"

#define MANY ((size_t)50000)

int main(int argc, char **argv)
{
	unsigned int *data;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned int turn = 0; turn < 20; turn++) {
		data = turn % 2 ? malloc(MANY * sizeof(*data))
				: allocator_new_aligned(64, MANY * sizeof(*data));
		pattern_fill(data, MANY, rank ? turn : turn + 1);
		MPI_Bcast(data, (int)MANY, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, MANY, turn + 1, "bcast");
		dallocx(data, 0);
	}
	MPI_Finalize();
	return 0;
}
