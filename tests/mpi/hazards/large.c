// SPDX-License-Identifier: BSD-3-Clause
/*
 * More elements than an int counts, of one byte: a broadcast, which the receiver describes by a
 * derived type in the call's other form, and a sum in place.
 */
#include <stdint.h>
#include <string.h>

#include "pattern.h"

#define STEP  (1 << 20)
#define COUNT (((size_t)1 << 31) + 8)

static uint64_t word(size_t i, unsigned int rank)
{
	return (i + 1) * 0x9e3779b97f4a7c15u >> rank;
}

static void check(const uint64_t *data, int ranks)
{
	for (size_t i = 0; i < COUNT / 8; i++)
		if (data[i] != (word(i, 0) ^ (ranks > 1 ? word(i, 1) : 0)))
			pattern_fail("a word");
}

static MPI_Datatype steps(void)
{
	MPI_Datatype step, two;
	int counts[2] = {COUNT / STEP, COUNT % STEP};

	MPI_Type_contiguous(STEP, MPI_BYTE, &step);
	MPI_Type_create_struct(2, counts, (MPI_Aint[]){0, COUNT - COUNT % STEP},
			       (MPI_Datatype[]){step, MPI_BYTE}, &two);
	MPI_Type_commit(&two);
	MPI_Type_free(&step);
	return two;
}

int main(int argc, char **argv)
{
	uint64_t *data = malloc(COUNT);
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!data)
		pattern_fail("no memory");
	if (rank == 0) {
		for (size_t i = 0; i < COUNT / 8; i++)
			data[i] = word(i, 0);
		MPI_Bcast_c(data, COUNT, MPI_BYTE, 0, MPI_COMM_WORLD);
	} else {
		MPI_Datatype type = steps();

		memset(data, 0, COUNT);
		MPI_Bcast(data, 1, type, 0, MPI_COMM_WORLD);
		MPI_Type_free(&type);
		check(data, 1);
		for (size_t i = 0; i < COUNT / 8; i++)
			data[i] = word(i, 1);
	}
	MPI_Allreduce_c(MPI_IN_PLACE, data, COUNT, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
	check(data, 2);
	free(data);
	MPI_Finalize();
	return 0;
}
