// SPDX-License-Identifier: BSD-3-Clause
/*
 * Callbacks of attributes of MPI_COMM_SELF, which MPI_Finalize runs before it does anything else
 * (MPI 4.1, 11.2.4): rank 0 makes there what the others make before they come to MPI_Finalize.
 */
#include "moves.h"

static int last_words(MPI_Comm comm, int key, void *value, void *extra)
{
	moves_do(MPI_COMM_WORLD, 3);
	moves_do(MPI_COMM_WORLD, 4);
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int key, rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	moves_do(MPI_COMM_WORLD, 1);
	moves_do(MPI_COMM_WORLD, 2);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words, &key, NULL);
	if (rank == 0)
		MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	else
		last_words(MPI_COMM_SELF, key, NULL, NULL);
	MPI_Comm_free_keyval(&key);
	MPI_Finalize();
	return 0;
}
