// SPDX-License-Identifier: BSD-3-Clause
/* Collectives in delete callbacks of a communicator that is being freed, and then in another, which
 * may have its handle. Ranks set the attribute before the first call on it or after. */
#include <stdbool.h>
#include <string.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 16)

static unsigned int data[WORDS];
static int deleted;

static void broadcast(MPI_Comm comm, unsigned int seed)
{
	int rank;

	MPI_Comm_rank(comm, &rank);
	pattern_fill(data, WORDS, rank ? ~seed : seed);
	MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, comm);
	pattern_check(data, WORDS, seed, "bcast");
}

static int last_words(MPI_Comm comm, int key, void *value, void *extra)
{
	deleted++;
	MPI_Barrier(comm);
	broadcast(comm, 77);
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	int rank, size, key, turns = 8;

	pattern_start(&argc, &argv, 64, &rank, &size);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words, &key, NULL);
	for (int turn = 0; turn < turns; turn++) {
		bool early = (turn + rank) % 2;
		MPI_Comm first, second;

		MPI_Comm_dup(MPI_COMM_WORLD, &first);
		if (early)
			MPI_Comm_set_attr(first, key, &key);
		for (unsigned int i = 0; i < 3; i++)
			broadcast(first, 100 + i);
		if (!early)
			MPI_Comm_set_attr(first, key, &key);
		if (turn % 4 < 2)
			MPI_Comm_free(&first);
		else
			MPI_Comm_disconnect(&first);
		/* Of fewer ranks, in another order. */
		MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &second);
		for (unsigned int i = 0; i < 3; i++)
			broadcast(second, 200 + i);
		MPI_Comm_free(&second);
	}
	if (deleted != turns)
		pattern_fail("callbacks");
	MPI_Comm_free_keyval(&key);
	MPI_Finalize();
	return 0;
}
