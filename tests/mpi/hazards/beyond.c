// SPDX-License-Identifier: BSD-3-Clause
/* Communicators beyond one MPI_COMM_WORLD: spawned processes, intercommunicators
 * and what is merged from them. Run with its own path as argument. */
#include <string.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 16)

static unsigned int *data, *all;

static void use_inter(MPI_Comm inter, int child)
{
	unsigned int seed = 5;
	int rank, others;

	MPI_Comm_rank(inter, &rank);
	MPI_Comm_remote_size(inter, &others);
	pattern_fill(data, WORDS, child ? 0 : seed);
	MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED,
		  child	      ? 0
		  : rank == 0 ? MPI_ROOT
			      : MPI_PROC_NULL,
		  inter);
	pattern_check(data, WORDS, seed, "bcast over an intercommunicator");
	pattern_fill(data, WORDS, (unsigned int)(child * 50 + rank));
	MPI_Allgather(data, (int)WORDS, MPI_UNSIGNED, all, (int)WORDS, MPI_UNSIGNED, inter);
	for (int r = 0; r < others; r++)
		pattern_check(all + WORDS * (size_t)r, WORDS, (unsigned int)(!child * 50 + r),
			      "allgather over an intercommunicator");
	MPI_Barrier(inter);
}

static void use_intra(MPI_Comm comm, const char *what)
{
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int turn = 0; turn < 6; turn++) {
		pattern_fill(data, WORDS, rank == turn % size ? (unsigned int)turn : 0);
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, turn % size, comm);
		pattern_check(data, WORDS, (unsigned int)turn, what);
		MPI_Barrier(comm);
	}
}

static void split_world(void)
{
	MPI_Comm half, inter;
	int rank, size, side;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	side = rank >= size / 2;
	MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : size / 2, 3, &inter);
	use_inter(inter, side);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
	char *child_argv[] = {"child", NULL};
	MPI_Comm parent, inter, merged;

	MPI_Init(&argc, &argv);
	data = pattern_alloc(WORDS * 4);
	all = pattern_alloc(WORDS * 4 * 8);
	MPI_Comm_get_parent(&parent);
	use_intra(MPI_COMM_WORLD, "bcast over the world");
	use_intra(MPI_COMM_SELF, "bcast to oneself");
	if (parent == MPI_COMM_NULL) {
		split_world();
		MPI_Comm_spawn(argv[1], child_argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
			       MPI_ERRCODES_IGNORE);
	} else {
		inter = parent;
	}
	use_inter(inter, parent != MPI_COMM_NULL);
	MPI_Intercomm_merge(inter, parent != MPI_COMM_NULL, &merged);
	use_intra(merged, "bcast over merged worlds");
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&inter);
	MPI_Finalize();
	return 0;
}
