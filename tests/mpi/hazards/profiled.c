// SPDX-License-Identifier: BSD-3-Clause
/* Built with tool.c, as one program or with the tool as a library. */
#include "pattern.h"

#define WORDS ((size_t)1 << 16)
#define TURNS 10

extern int tool_calls;

int main(int argc, char **argv)
{
	unsigned int *data;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	data = pattern_alloc(WORDS * 4);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		pattern_fill(data, WORDS, rank ? 0 : turn);
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
	}
	if (tool_calls != TURNS)
		pattern_fail("the tool was passed by");
	MPI_Finalize();
	return 0;
}
