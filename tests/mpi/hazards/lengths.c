// SPDX-License-Identifier: BSD-3-Clause
/* One rank passes another amount of data than the others: an error of that class on every
 * rank that has to do with it, and calls go on after it. */
#include <string.h>

#include "pattern.h"

#define WORDS (1 << 16) /* more than a rank says before it hears of the others */
#define RANKS 4

enum { BCAST, SCATTER, GATHER, ALLGATHER, ALLTOALL, SENT_ALLTOALL, REDUCE, ALLREDUCE, CALLS };

static unsigned int *send, *recv;
static int rank, size;

/* @odd: this rank's amount differs. In SENT_ALLTOALL it does in what it sends alone. */
static int call(int which, int odd)
{
	int n = odd ? WORDS / 2 : WORDS;
	const MPI_Comm comm = MPI_COMM_WORLD;
	const MPI_Datatype word = MPI_UNSIGNED;

	switch (which) {
	case BCAST:
		return MPI_Bcast(recv, n, word, 0, comm);
	case SCATTER:
		return MPI_Scatter(send, n, word, recv, n, word, 0, comm);
	case GATHER:
		return MPI_Gather(send, n, word, recv, n, word, 0, comm);
	case ALLGATHER:
		return MPI_Allgather(send, n, word, recv, n, word, comm);
	case ALLTOALL:
		return MPI_Alltoall(send, n, word, recv, n, word, comm);
	case SENT_ALLTOALL:
		return MPI_Alltoall(send, n, word, recv, WORDS, word, comm);
	case REDUCE:
		return MPI_Reduce(send, recv, n, word, MPI_SUM, 0, comm);
	default:
		return MPI_Allreduce(send, recv, n, word, MPI_SUM, comm);
	}
}

int main(int argc, char **argv)
{
	pattern_start(&argc, &argv, RANKS, &rank, &size);
	send = pattern_alloc(RANKS * WORDS * 4);
	recv = pattern_alloc(RANKS * WORDS * 4);
	memset(send, 1, RANKS * WORDS * 4);
	for (int which = 0; which < CALLS; which++) {
		int rooted = which == BCAST || which == SCATTER || which == GATHER;
		int err = call(which, rank == 0), class;

		MPI_Error_class(err, &class);
		if (class != MPI_ERR_TRUNCATE) {
			fprintf(stderr, "call %d, rank %d: class %d\n", which, rank, class);
			pattern_fail("not the error of unequal amounts");
		}
		if (call(which, 0))
			pattern_fail("the call after that");
		/* Leaves have nothing to do with each other. */
		err = call(which, rank == size - 1);
		MPI_Error_class(err, &class);
		if (class != MPI_ERR_TRUNCATE && (class || !rooted || rank == 0))
			pattern_fail("not the error of unequal amounts of the last rank");
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
