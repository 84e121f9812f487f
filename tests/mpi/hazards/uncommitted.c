// SPDX-License-Identifier: BSD-3-Clause
/*
 * uncommitted UNIT [twice]: a rank receives, or sends, with a datatype that it has not committed,
 * whose pieces are of so many words. It is told so once, by the communicator's error handler and by
 * the call, and the communicator serves what comes after. With "twice" the MPI may say so as well
 * in calls of which it has a part.
 */
#include <stdbool.h>
#include <string.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 16) /* of a block */
#define RANKS 4

static unsigned int *send, *recv;
static int rank, size, told, last, unit = 1, most = 1;
static int counts[RANKS], displs[RANKS];
static MPI_Comm comm;

static void on_error(MPI_Comm *where, int *code, ...)
{
	(void)where;
	MPI_Error_class(*code, &last);
	told++;
}

enum {
	BCAST,
	SCATTER,
	GATHER,
	ALLGATHER,
	ALLTOALL,
	SCATTERV,
	GATHERV,
	ALLGATHERV,
	ALLTOALLV,
	ALLTOALLW,
	CALLS
};

/* Counts are in elements of two units. */
static int call(int which, MPI_Datatype out, MPI_Datatype in)
{
	const int n = (int)WORDS / 2 / unit;
	MPI_Datatype outs[RANKS], ins[RANKS];
	MPI_Aint lb, extents[2];
	int from[RANKS], to[RANKS];

	switch (which) {
	case BCAST:
		return MPI_Bcast(recv, n, rank == 0 ? out : in, 0, comm);
	case SCATTER:
		return MPI_Scatter(send, n, out, recv, n, in, 0, comm);
	case GATHER:
		return MPI_Gather(send, n, out, recv, n, in, 0, comm);
	case ALLGATHER:
		return MPI_Allgather(send, n, out, recv, n, in, comm);
	case ALLTOALL:
		return MPI_Alltoall(send, n, out, recv, n, in, comm);
	case SCATTERV:
		return MPI_Scatterv(send, counts, displs, out, recv, n, in, 0, comm);
	case GATHERV:
		return MPI_Gatherv(send, n, out, recv, counts, displs, in, 0, comm);
	case ALLGATHERV:
		return MPI_Allgatherv(send, n, out, recv, counts, displs, in, comm);
	case ALLTOALLV:
		return MPI_Alltoallv(send, counts, displs, out, recv, counts, displs, in, comm);
	default:
		MPI_Type_get_extent(out, &lb, &extents[0]);
		MPI_Type_get_extent(in, &lb, &extents[1]);
		for (int r = 0; r < size; r++) {
			outs[r] = out;
			ins[r] = in;
			from[r] = displs[r] * (int)extents[0];
			to[r] = displs[r] * (int)extents[1];
		}
		return MPI_Alltoallw(send, counts, from, outs, recv, counts, to, ins, comm);
	}
}

/* Of those that place blocks one by one the MPI gets what is not served. */
static bool in_parts(int which)
{
	return which == SCATTERV || which == GATHERV || which == ALLTOALLV || which == ALLTOALLW;
}

/* @what: the class that is expected, or -1 where any error will do. */
static void expect(int which, int code, int what)
{
	int times = what != MPI_SUCCESS;
	int class;

	MPI_Error_class(code, &class);
	if (told < times || told > times * (in_parts(which) ? most : 1) ||
	    (what >= 0 && class != what) || (told && class != last)) {
		fprintf(stderr, "call %d, rank %d: class %d, the handler %d times with %d\n", which,
			rank, class, told, last);
		pattern_fail("errors");
	}
	told = last = 0;
}

static bool receives(int which)
{
	if (which == GATHER || which == GATHERV)
		return rank == 0;
	return which != BCAST || rank != 0;
}

int main(int argc, char **argv)
{
	MPI_Datatype good, bad;
	MPI_Errhandler handler;

	MPI_Init(&argc, &argv);
	if (argc > 1)
		unit = atoi(argv[1]);
	if (argc > 2)
		most = 2;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	if (size > RANKS)
		pattern_fail("too many ranks");
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	send = pattern_alloc(RANKS * WORDS * 8);
	recv = pattern_alloc(RANKS * WORDS * 8);
	for (int r = 0; r < size; r++) {
		counts[r] = (int)WORDS / 2 / unit;
		displs[r] = r * counts[r];
	}
	MPI_Type_contiguous(2 * unit, MPI_UNSIGNED, &good);
	MPI_Type_commit(&good);
	MPI_Type_vector(2, unit, 2 * unit, MPI_UNSIGNED, &bad);
	pattern_fill(send, RANKS * WORDS, 1);
	for (int which = 0; which < CALLS; which++) {
		expect(which, call(which, good, bad), receives(which) ? MPI_ERR_TYPE : MPI_SUCCESS);
		memset(recv, 0, RANKS * WORDS * 4);
		if (which == BCAST && rank == 0)
			pattern_fill(recv, WORDS, 1);
		expect(which, call(which, good, good), MPI_SUCCESS);
		if (receives(which) && rank == 0)
			pattern_check(recv, WORDS, 1, "the call after that");
	}
	expect(CALLS, call(BCAST, bad, good), rank == 0 ? MPI_ERR_TYPE : -1);
	expect(CALLS, call(ALLTOALL, bad, good), MPI_ERR_TYPE);
	expect(CALLS, call(ALLTOALL, good, good), MPI_SUCCESS);
	MPI_Errhandler_free(&handler);
	MPI_Type_free(&good);
	MPI_Type_free(&bad);
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return 0;
}
