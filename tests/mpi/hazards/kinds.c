// SPDX-License-Identifier: BSD-3-Clause
/* Types of Fortran's kinds (MPI_Type_create_f90_real and its like) within others: they are
 * predefined, and not to be freed, and are reduced as what they stand for. */
#include <stdint.h>
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

static void wrong(const char *what, int i)
{
	fprintf(stderr, "%s: element %d\n", what, i);
	pattern_fail("a wrong result");
}

static void sum_reals(MPI_Datatype type, int rank, int size)
{
	double *own = pattern_alloc(PAIRS * sizeof(*own)),
	       *all = pattern_alloc(PAIRS * sizeof(*all));

	for (int i = 0; i < PAIRS; i++)
		own[i] = rank + 0.5 * i;
	MPI_Allreduce(own, all, PAIRS, type, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < PAIRS; i++)
		if (all[i] != size * (size - 1) / 2.0 + 0.5 * i * size)
			wrong("reals", i);
	free(own);
	free(all);
}

static void find_most(MPI_Datatype type, int rank, int size)
{
	int64_t *own = pattern_alloc(PAIRS * sizeof(*own)),
		*all = pattern_alloc(PAIRS * sizeof(*all));

	for (int i = 0; i < PAIRS; i++)
		own[i] = ((int64_t)1 << 40) * (i % 2 ? -rank : rank) + i;
	MPI_Allreduce(own, all, PAIRS, type, MPI_MAX, MPI_COMM_WORLD);
	for (int i = 0; i < PAIRS; i++)
		if (all[i] != ((int64_t)1 << 40) * (i % 2 ? 0 : size - 1) + i)
			wrong("integers", i);
	free(own);
	free(all);
}

int main(int argc, char **argv)
{
	MPI_Datatype kinds[3], type;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
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
	sum_reals(kinds[0], rank, size);
	find_most(kinds[2], rank, size);
	MPI_Finalize();
	return 0;
}
