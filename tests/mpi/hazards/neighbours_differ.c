// SPDX-License-Identifier: BSD-3-Clause
/* Neighbourhood collectives that are wrong, on 2 ranks: an error on each, and the program goes on.
 */
#include <stdio.h>

#include "pattern.h"

#define N 40000

static int out[2 * N], in[2 * N];

static void expect(int err, int class, const char *what)
{
	int is;

	MPI_Error_class(err, &is);
	if (class == MPI_SUCCESS ? !err : is != class) {
		fprintf(stderr, "%s: error class %d\n", what, is);
		pattern_fail(what);
	}
}

int main(int argc, char **argv)
{
	int rank, peer, none = 0, one = 1, weight = 1;
	int counts[] = {N}, zeros[] = {0};
	MPI_Comm forth, ring;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	peer = !rank;
	/* Open MPI says there what is wrong with arguments. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	/* One edge, from 0 to 1, whose ends have different lengths. */
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank, &none, &weight, !rank, &one, &weight,
				       MPI_INFO_NULL, 0, &forth);
	MPI_Comm_set_errhandler(forth, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		int n = rank ? N : N / 2;

		expect(MPI_Neighbor_alltoall(out, n, MPI_INT, in, n, MPI_INT, forth),
		       MPI_ERR_TRUNCATE, "longer at its receiver");
	}
	MPI_Comm_free(&forth);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &peer, &weight, 1, &peer, &weight,
				       MPI_INFO_NULL, 0, &ring);
	MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		expect(MPI_Neighbor_alltoall(MPI_IN_PLACE, N, MPI_INT, in, N, MPI_INT, ring),
		       MPI_SUCCESS, "in place");
		expect(MPI_Neighbor_alltoallv(out, counts, NULL, MPI_INT, in, counts, zeros,
					      MPI_INT, ring),
		       MPI_SUCCESS, "no displacements");
	}
	MPI_Comm_free(&ring);
	MPI_Finalize();
	return 0;
}
