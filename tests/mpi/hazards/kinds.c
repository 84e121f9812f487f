// SPDX-License-Identifier: BSD-3-Clause
/* Types of Fortran's kinds (MPI_Type_create_f90_real and its like) within others: they are
 * predefined, and not to be freed. */
#include <string.h>

#include "pattern.h"

#define PAIRS 20000

static void broadcast(MPI_Datatype type, MPI_Aint words, int rank, unsigned int seed)
{
	size_t n = PAIRS * (size_t)words;
	unsigned int *data = pattern_alloc(n * sizeof(*data));

	pattern_fill(data, n, rank ? ~seed : seed);
	MPI_Bcast(data, PAIRS, type, 0, MPI_COMM_WORLD);
	pattern_check(data, n, seed, "bcast");
	free(data);
}

int main(int argc, char **argv)
{
	MPI_Datatype kinds[3], type;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Type_create_f90_real(15, MPI_UNDEFINED, &kinds[0]);
	MPI_Type_create_f90_complex(15, MPI_UNDEFINED, &kinds[1]);
	MPI_Type_create_f90_integer(12, &kinds[2]);
	for (unsigned int turn = 0; turn < 6; turn++) {
		MPI_Datatype kind = kinds[turn / 2];
		MPI_Aint lb, extent;

		MPI_Type_get_extent(kind, &lb, &extent);
		if (turn % 2)
			MPI_Type_dup(kind, &type);
		else
			MPI_Type_contiguous(2, kind, &type);
		MPI_Type_commit(&type);
		broadcast(type, extent / 4 * (turn % 2 ? 1 : 2), rank, 5 + turn);
		MPI_Type_free(&type);
		broadcast(kind, extent / 4, rank, 50 + turn);
	}
	MPI_Finalize();
	return 0;
}
