// SPDX-License-Identifier: BSD-3-Clause
/* Collectives and messages without end: somebody will be killed. Each rank says its pid. */
#include <string.h>
#include <unistd.h>

#include "pattern.h"

static unsigned int still[1 << 18]; /* not in the shared heap */

int main(int argc, char **argv)
{
	size_t words = (size_t)1 << 18;
	unsigned int *data, *other;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	data = pattern_alloc(words * 4);
	other = pattern_alloc(words * 4 * (size_t)size);
	memset(data, 1, words * 4);
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	for (int turn = 0;; turn++) {
		int n = turn % 3 ? (int)words : 1 << 12;
		MPI_Comm comm;

		MPI_Bcast(turn % 2 ? data : still, n, MPI_UNSIGNED, turn % size, MPI_COMM_WORLD);
		MPI_Allreduce(data, other, n, MPI_UNSIGNED, MPI_BOR, MPI_COMM_WORLD);
		MPI_Alltoall(other, n / size, MPI_UNSIGNED, data, n / size, MPI_UNSIGNED,
			     MPI_COMM_WORLD);
		MPI_Sendrecv(other, n, MPI_UNSIGNED, (rank + 1) % size, 0, data, n, MPI_UNSIGNED,
			     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Gather(data, n / size, MPI_UNSIGNED, other, n / size, MPI_UNSIGNED, 0, comm);
		MPI_Barrier(comm);
		MPI_Comm_free(&comm);
	}
}
