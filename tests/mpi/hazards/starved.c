// SPDX-License-Identifier: BSD-3-Clause
/*
 * One rank has no memory for its part of a v-collective, in which another has small blocks
 * alone, or all are large. It is told so, and so are those who wanted data of it; nobody
 * waits for ever, small blocks arrive, and the communicator serves what comes after.
 */
#include <string.h>

#include "allocator.h"
#include "pattern.h"

#define RANKS 4
#define SMALL 1023 /* words: left to the MPI, and not sent without their receiver */
#define LARGE ((int)16 << 10)

enum { SCATTERV, GATHERV, ALLTOALLV, ALLTOALLW, CALLS };

static int rank, size, apart; /* the rank with small blocks, or -1 */
static int large = LARGE;     /* another in each try: plans are made once */
static int counts[RANKS], displs[RANKS];
static unsigned int *out, *in;

static int words(int from, int to)
{
	return from == apart || to == apart ? SMALL : large;
}

static int call(int which)
{
	const MPI_Datatype word = MPI_UNSIGNED;
	const MPI_Comm comm = MPI_COMM_WORLD;
	MPI_Datatype types[RANKS];
	int bytes[RANKS];

	memset(in, 0, RANKS * LARGE * 4);
	for (int r = 0; r < size; r++) {
		counts[r] = which >= ALLTOALLV ? words(rank, r) : words(0, r);
		displs[r] = r * LARGE;
		pattern_fill(out + displs[r], (size_t)counts[r], (unsigned int)(rank * RANKS + r));
	}
	switch (which) {
	case SCATTERV:
		return MPI_Scatterv(out, counts, displs, word, in, counts[rank], word, 0, comm);
	case GATHERV:
		return MPI_Gatherv(out + displs[rank], counts[rank], word, in, counts, displs, word,
				   0, comm);
	case ALLTOALLV:
		return MPI_Alltoallv(out, counts, displs, word, in, counts, displs, word, comm);
	default:
		for (int r = 0; r < size; r++) {
			bytes[r] = 4 * displs[r];
			types[r] = word;
		}
		return MPI_Alltoallw(out, counts, bytes, types, in, counts, bytes, types, comm);
	}
}

/* What came from @from, if anything was to. */
static void check(int which, int from)
{
	int block = which >= ALLTOALLV ? rank : which == SCATTERV ? rank : from;
	const unsigned int *at = which == SCATTERV ? in : in + displs[from];

	if (which == SCATTERV ? from == 0 : which >= ALLTOALLV || rank == 0)
		pattern_check(at, (size_t)words(from, block), (unsigned int)(from * RANKS + block),
			      "a block");
}

static void try(int which, int starved)
{
	int err, class;

	large--;
	if (rank == starved)
		allocator_refuse_next();
	err = call(which);
	MPI_Error_class(err, &class);
	if (class != MPI_ERR_NO_MEM && (class || rank == starved)) {
		fprintf(stderr, "call %d, rank %d, starved %d: class %d\n", which, rank, starved,
			class);
		pattern_fail("not the error of too little memory");
	}
	for (int r = 0; r < size && (!class || rank == apart); r++)
		check(which, r);
	if (rank == apart && class)
		pattern_fail("an error where all was well");
	if (call(which))
		pattern_fail("the call after that");
	for (int r = 0; r < size; r++)
		check(which, r);
}

int main(int argc, char **argv)
{
	pattern_start(&argc, &argv, RANKS, &rank, &size);
	out = pattern_alloc(RANKS * LARGE * 4);
	in = pattern_alloc(RANKS * LARGE * 4);
	apart = -1;
	for (int which = 0; which < 2 * CALLS; which++)
		call(which % CALLS);
	for (int which = 0; which < CALLS; which++)
		for (int starved = 0; starved < size; starved++)
			for (apart = -1; apart < size; apart++)
				/* A root that is apart has no large block, a rank neither. */
				if (apart != starved && (apart || which >= ALLTOALLV))
					try(which, starved);
	MPI_Finalize();
	return 0;
}
