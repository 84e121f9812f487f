// SPDX-License-Identifier: BSD-3-Clause
/* What an extension module of an interpreter is: a library that calls MPI. */
#include "pattern.h"

#define WORDS ((size_t)1 << 18)
#define TURNS 10

__attribute__((visibility("default"))) void plugin_start(void)
{
	MPI_Init(NULL, NULL);
}

__attribute__((visibility("default"))) void plugin_use(void)
{
	unsigned int *data = pattern_alloc(WORDS * 4);
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		pattern_fill(data, WORDS, rank ? 0 : turn);
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
	}
	free(data);
}

__attribute__((visibility("default"))) void plugin_stop(void)
{
	MPI_Finalize();
}
