// SPDX-License-Identifier: BSD-3-Clause
/* levels LEVEL: MPI_Init_thread with that level grants what the MPI alone does,
 * and MPI_Init none; then calls before, between and after. -1: MPI_Init. */
#include <string.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 16)

int main(int argc, char **argv)
{
	int level = argc > 1 ? atoi(argv[1]) : -1, got = -1, flag, rank, size;
	unsigned int *data = pattern_alloc(WORDS * 4); /* before MPI_Init */
	char version[MPI_MAX_LIBRARY_VERSION_STRING];

	MPI_Initialized(&flag);
	MPI_Get_library_version(version, &rank);
	if (flag)
		pattern_fail("initialized too early");
	if (level < 0)
		MPI_Init(NULL, NULL);
	else
		MPI_Init_thread(&argc, &argv, level, &got);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (unsigned int turn = 0; turn < 8; turn++) {
		pattern_fill(data, WORDS, rank == 0 ? turn : 77);
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
	}
	if (rank == 0)
		printf("granted %d\n", got);
	MPI_Finalize();
	MPI_Finalized(&flag);
	if (!flag)
		return 3;
	pattern_fill(data, WORDS, 3); /* the heap outlives MPI */
	data = realloc(data, WORDS * 16);
	if (!data || data[5] != pattern_at(3, 5))
		return 4;
	free(data);
	return 0;
}
