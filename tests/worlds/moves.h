/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOVES_H
#define MOVES_H

/* Collectives that would be served, and whether they did what they should. */

#include <stdlib.h>

#include "../mpi/hazards/pattern.h"

#define MOVES_COUNT 30000

static inline void moves_do(MPI_Comm comm, unsigned int seed)
{
	unsigned int *data = malloc(MOVES_COUNT * sizeof(*data)), *all;
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	all = malloc((size_t)size * MOVES_COUNT * sizeof(*all));
	if (!data || !all)
		pattern_fail("no memory");
	pattern_fill(data, MOVES_COUNT, rank == size - 1 ? seed : seed + 1);
	MPI_Bcast(data, MOVES_COUNT, MPI_UNSIGNED, size - 1, comm);
	for (size_t i = 0; i < MOVES_COUNT; i++)
		if (data[i] != pattern_at(seed, i))
			pattern_fail("a broadcast");
	pattern_fill(data, MOVES_COUNT, seed + (unsigned int)rank);
	MPI_Allgather(data, MOVES_COUNT, MPI_UNSIGNED, all, MOVES_COUNT, MPI_UNSIGNED, comm);
	for (int r = 0; r < size; r++)
		for (size_t i = 0; i < MOVES_COUNT; i++)
			if (all[(size_t)r * MOVES_COUNT + i] !=
			    pattern_at(seed + (unsigned int)r, i))
				pattern_fail("an allgather");
	MPI_Allreduce(MPI_IN_PLACE, data, MOVES_COUNT, MPI_UNSIGNED, MPI_BXOR, comm);
	for (size_t i = 0; i < MOVES_COUNT; i++) {
		unsigned int want = 0;

		for (int r = 0; r < size; r++)
			want ^= pattern_at(seed + (unsigned int)r, i);
		if (data[i] != want)
			pattern_fail("an allreduce");
	}
	MPI_Barrier(comm);
	free(data);
	free(all);
}

#endif
