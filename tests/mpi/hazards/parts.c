// SPDX-License-Identifier: BSD-3-Clause
/*
 * A graph in two parts that no edge connects: pairs of ranks, one of which exchanges little and the
 * other much. The calls that follow must find each other all the same. Four ranks.
 */
#include <string.h>

#include "pattern.h"

#define LITTLE 256
#define MUCH   16384
#define RANKS  4

int main(int argc, char **argv)
{
	static unsigned int send[MUCH], recv[2 * MUCH];
	int rank, size, peer, weight = 1, one = 1, sum = 0;
	MPI_Request request;
	MPI_Comm graph;
	size_t words;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	peer = rank ^ 1;
	words = rank < 2 ? LITTLE : MUCH;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &peer, &weight, 1, &peer, &weight,
				       MPI_INFO_NULL, 0, &graph);
	for (unsigned int call = 0; call < 8; call++) {
		pattern_fill(send, words, call * RANKS + (unsigned int)rank);
		memset(recv, 0, sizeof(recv));
		if (call % 2)
			MPI_Neighbor_alltoall(send, (int)words, MPI_UNSIGNED, recv, (int)words,
					      MPI_UNSIGNED, graph);
		else
			MPI_Neighbor_allgather(send, (int)words, MPI_UNSIGNED, recv, (int)words,
					       MPI_UNSIGNED, graph);
		pattern_check(recv, words, call * RANKS + (unsigned int)peer, "neighbour");
	}
	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, graph, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (sum != size)
		pattern_fail("sum");
	MPI_Comm_free(&graph);
	MPI_Finalize();
	return 0;
}
