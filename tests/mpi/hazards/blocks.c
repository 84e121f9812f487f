// SPDX-License-Identifier: BSD-3-Clause
/*
 * blocks SEED CALLS: v-collectives whose blocks are small, large or none, drawn at random pair by
 * pair; in stretches most calls have no large one, or one rank has none in any. Ranks do not
 * wait for each other but where a call makes them. Some calls between are of another kind.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"
#include "../../random.h"

#define RANKS 8
#define ROOM  ((int)8 << 10) /* words of a block at most */

static int rank, size;
static int counts[RANKS], displs[RANKS], gets[RANKS];
static unsigned int *out, *in;
static uint64_t state; /* the same on all ranks */
static int stretch, quiet, apart;

static unsigned int dice(unsigned int sides)
{
	return (unsigned int)(random_next(&state) % sides);
}

/* Words from one rank to another; every rank draws all of them. */
static int draw(int from, int to)
{
	unsigned int kind = dice(100), words = 1 + dice(60);

	if (kind < 10)
		return 0;
	if (kind < 80 || quiet || from == apart || to == apart)
		return (int)words;
	return (int)(2048 + dice(ROOM - 2048));
}

static void fill(unsigned int turn)
{
	for (int r = 0; r < size; r++) {
		displs[r] = r * ROOM;
		pattern_fill(out + displs[r], (size_t)counts[r],
			     turn * RANKS * RANKS + (unsigned int)(rank * RANKS + r));
	}
}

static void check(const unsigned int *at, int n, int from, int to, unsigned int turn)
{
	pattern_check(at, (size_t)n, turn * RANKS * RANKS + (unsigned int)(from * RANKS + to),
		      "a block");
}

static void scatterv(unsigned int turn, int root)
{
	for (int r = 0; r < size; r++)
		counts[r] = draw(root, r);
	fill(turn);
	MPI_Scatterv(out, counts, displs, MPI_UNSIGNED, in, counts[rank], MPI_UNSIGNED, root,
		     MPI_COMM_WORLD);
	check(in, counts[rank], root, rank, turn);
}

static void gatherv(unsigned int turn, int root)
{
	for (int r = 0; r < size; r++)
		gets[r] = draw(r, root);
	memset(counts, 0, sizeof(counts));
	counts[root] = gets[rank];
	fill(turn);
	MPI_Gatherv(out + displs[root], counts[root], MPI_UNSIGNED, in, gets, displs, MPI_UNSIGNED,
		    root, MPI_COMM_WORLD);
	for (int r = 0; r < size && rank == root; r++)
		check(in + displs[r], gets[r], r, root, turn);
}

static void alltoall(unsigned int turn, bool each)
{
	MPI_Datatype types[RANKS];
	int bytes[RANKS];

	for (int from = 0; from < size; from++)
		for (int to = 0; to < size; to++) {
			int words = draw(from, to);

			if (from == rank)
				counts[to] = words;
			if (to == rank)
				gets[from] = words;
		}
	fill(turn);
	for (int r = 0; r < size; r++) {
		types[r] = MPI_UNSIGNED;
		bytes[r] = 4 * displs[r];
	}
	if (each)
		MPI_Alltoallw(out, counts, bytes, types, in, gets, bytes, types, MPI_COMM_WORLD);
	else
		MPI_Alltoallv(out, counts, displs, MPI_UNSIGNED, in, gets, displs, MPI_UNSIGNED,
			      MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		check(in + displs[r], gets[r], r, rank, turn);
}

/* In place both ranks of a pair send as much as they get, and a rank's own block stays. */
static void alltoall_in_place(unsigned int turn, bool each)
{
	MPI_Datatype types[RANKS];
	int bytes[RANKS];

	for (int from = 0; from < size; from++)
		for (int to = from; to < size; to++) {
			int words = draw(from, to);

			if (from == rank)
				counts[to] = words;
			if (to == rank)
				counts[from] = words;
		}
	fill(turn);
	for (int r = 0; r < size; r++) {
		types[r] = MPI_UNSIGNED;
		bytes[r] = 4 * displs[r];
	}
	if (each)
		MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, out, counts, bytes, types,
			      MPI_COMM_WORLD);
	else
		MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, counts, displs,
			      MPI_UNSIGNED, MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		check(out + displs[r], counts[r], r, rank, turn);
}

static void exchange(unsigned int turn, unsigned int how)
{
	if (how & 2)
		alltoall_in_place(turn, how & 1);
	else
		alltoall(turn, how & 1);
}

/* What of the standard's collectives has no blocks, all of it large. */
static void other(unsigned int turn, int root)
{
	pattern_fill(out, ROOM, rank == root ? turn : ~turn);
	MPI_Bcast(out, ROOM, MPI_UNSIGNED, root, MPI_COMM_WORLD);
	pattern_check(out, ROOM, turn, "bcast");
	if (turn % 3 == 0)
		MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	unsigned int calls = (unsigned int)atoi(argv[2]);

	MPI_Init(&argc, &argv);
	state = strtoull(argv[1], NULL, 10);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS)
		pattern_fail("too many ranks");
	out = pattern_alloc((size_t)RANKS * ROOM * 4);
	in = pattern_alloc((size_t)RANKS * ROOM * 4);
	for (unsigned int turn = 0; turn < calls; turn++) {
		unsigned int which = dice(10), root = dice((unsigned int)size);

		if (!stretch--) {
			stretch = (int)dice(dice(4) ? 20 : 300);
			quiet = !dice(3);
			apart = dice(2) ? -1 : (int)dice((unsigned int)size);
		}
		memset(in, 0xcc, (size_t)RANKS * ROOM * 4);
		if (dice(50) == 0 && dice((unsigned int)size) == (unsigned int)rank)
			usleep(2000);
		if (which < 4)
			scatterv(turn, (int)root);
		else if (which < 8)
			gatherv(turn, (int)root);
		else if (which == 8 || quiet)
			exchange(turn, dice(4));
		else
			other(turn, (int)root);
	}
	MPI_Finalize();
	return 0;
}
