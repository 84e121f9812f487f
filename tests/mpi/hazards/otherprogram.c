// SPDX-License-Identifier: BSD-3-Clause
/* A program of that MPI: large calls, and one with more arguments than registers. */
#include <stdio.h>
#include <stdlib.h>

#include "othermpi.h"

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: the MPI got other arguments\n", what);
	exit(2);
}

int main(int argc, char **argv)
{
	int counts[1] = {1 << 20}, displs[1] = {0};
	char *in = malloc(1 << 20), *out = malloc(1 << 20);
	void *memory;

	check(!in || !out, "malloc");
	check(MPI_Init(&argc, &argv), "init");
	check(MPI_Bcast(in, 1 << 20, OTHER_BYTE, 3, OTHER_WORLD), "bcast");
	check(MPI_Alltoallv(in, counts, displs, OTHER_BYTE, out, counts, displs, OTHER_BYTE,
			    OTHER_WORLD),
	      "alltoallv");
	check(MPI_Alloc_mem(64, OTHER_INFO_NULL, &memory), "alloc_mem");
	check(MPI_Free_mem(memory), "free_mem");
	check(MPI_Finalize(), "finalize");
	free(in);
	free(out);
	return 0;
}
