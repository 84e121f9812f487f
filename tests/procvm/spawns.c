// SPDX-License-Identifier: BSD-3-Clause
/*
 * spawns: two ranks start two more, and each exchanges blocks of the heap with its counterpart in
 * the other world ("across"), or with the other rank of its own ("within"), by MPI_Sendrecv.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS ((size_t)1 << 18)
#define TURNS 8

static unsigned int word_at(int world, int rank, int turn, size_t i)
{
	return (unsigned int)(i * 2654435761u) + (unsigned int)(world * 4 + rank * 2) * 977u +
	       (unsigned int)turn;
}

/* Blocks are new each time, and what was sent is overwritten at once. */
static void exchange(MPI_Comm comm, int peer, int world, int their_world)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int turn = 0; turn < TURNS; turn++) {
		unsigned int *out = malloc(WORDS * sizeof(*out));
		unsigned int *in = calloc(WORDS, sizeof(*in));

		for (size_t i = 0; out && i < WORDS; i++)
			out[i] = word_at(world, rank, turn, i);
		MPI_Sendrecv(out, (int)WORDS, MPI_UNSIGNED, peer, turn, in, (int)WORDS,
			     MPI_UNSIGNED, peer, turn, comm, MPI_STATUS_IGNORE);
		memset(out, 0, WORDS * sizeof(*out));
		free(out);
		for (size_t i = 0; i < WORDS; i++) {
			if (in[i] == word_at(their_world, peer, turn, i))
				continue;
			fprintf(stderr, "world %d, rank %d, turn %d: word %zu is wrong\n", world,
				rank, turn, i);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		free(in);
	}
}

int main(int argc, char **argv)
{
	MPI_Comm other;
	int rank, world;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&other);
	world = other != MPI_COMM_NULL;
	if (argc != 2)
		MPI_Abort(MPI_COMM_WORLD, 64);
	if (!world)
		MPI_Comm_spawn(argv[0], argv + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other,
			       MPI_ERRCODES_IGNORE);
	if (!strcmp(argv[1], "within"))
		exchange(MPI_COMM_WORLD, !rank, world, world);
	else
		exchange(other, rank, world, !world);
	MPI_Barrier(other);
	MPI_Comm_disconnect(&other);
	MPI_Finalize();
	return 0;
}
