// SPDX-License-Identifier: BSD-3-Clause
/*
 * Broadcasts among the ranks of each node, large enough to be served, and says
 * who found its variable in the environment: "rank host value".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define TURNS 5

int main(int argc, char **argv)
{
	const char *value = getenv("USER_VARIABLE");
	char host[64] = "", *buffer;
	MPI_Comm node;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
	buffer = malloc(BYTES);
	if (!buffer)
		return 1;
	for (int i = 0; i < TURNS; i++) {
		memset(buffer, i, BYTES);
		MPI_Bcast(buffer, BYTES, MPI_CHAR, 0, node);
		MPI_Bcast(buffer, BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
		if (buffer[0] != i || buffer[BYTES - 1] != i)
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	gethostname(host, sizeof(host) - 1);
	printf("%d %s %s\n", rank, host, value ? value : "-");
	free(buffer);
	MPI_Comm_free(&node);
	MPI_Finalize();
	return 0;
}
