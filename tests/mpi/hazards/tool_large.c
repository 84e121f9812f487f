// SPDX-License-Identifier: BSD-3-Clause
/* A profiling tool in front of a call with large counts, and a program that has it. */
#include "pattern.h"

#define COUNT 5000

static int tool_calls;

int MPI_Allgather_c(const void *send, MPI_Count scount, MPI_Datatype stype, void *recv,
		    MPI_Count rcount, MPI_Datatype rtype, MPI_Comm comm)
{
	tool_calls++;
	return PMPI_Allgather_c(send, scount, stype, recv, rcount, rtype, comm);
}

int main(int argc, char **argv)
{
	unsigned int *one = malloc(COUNT * sizeof(*one)), *all;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	all = malloc((size_t)size * COUNT * sizeof(*all));
	pattern_fill(one, COUNT, (unsigned int)rank);
	MPI_Allgather_c(one, COUNT, MPI_INT, all, COUNT, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		for (size_t i = 0; i < COUNT; i++)
			if (all[(size_t)r * COUNT + i] != pattern_at((unsigned int)r, i))
				pattern_fail("an element");
	if (tool_calls != 1)
		pattern_fail("the tool has not been asked");
	free(one);
	free(all);
	MPI_Finalize();
	return 0;
}
