// SPDX-License-Identifier: BSD-3-Clause
/*
 * The two ends of one block of a v-collective have different lengths, an error: one sees it to
 * be served and the other does not, or both do. Nobody waits for ever; where too much is sent its
 * sender is told, and nothing is written past what its receiver passed; where too little is, it
 * arrives, as messages do, but for one's own; all other blocks arrive; and calls go on after it.
 */
#include <string.h>

#include "pattern.h"

#define RANKS 4
#define WORDS (1 << 16)
#define GUARD 0xeeeeeeeeu

enum { SCATTERV, GATHERV, ALLTOALLV, ALLTOALLW, CALLS };

static const int lengths[][2] = {/* words sent, words expected */
				 {WORDS, 10},
				 {10, WORDS},
				 {WORDS, WORDS / 2},
				 {WORDS / 2, WORDS}};

static int rank, size, other; /* words of all other blocks */
static int odd_from, odd_to, odd_sent, odd_expected;
static int scounts[RANKS], rcounts[RANKS], displs[RANKS];
static unsigned int *out, *in;

static int sent(int from, int to)
{
	return from == odd_from && to == odd_to ? odd_sent : other;
}

static int expected(int from, int to)
{
	return from == odd_from && to == odd_to ? odd_expected : other;
}

static int call(int which)
{
	const MPI_Comm comm = MPI_COMM_WORLD;
	const MPI_Datatype word = MPI_UNSIGNED;
	MPI_Datatype types[RANKS];
	int bytes[RANKS];

	for (int i = 0; i < RANKS * WORDS; i++)
		in[i] = GUARD;
	for (int r = 0; r < size; r++) {
		scounts[r] = which == GATHERV ? sent(rank, 0) : sent(rank, r);
		rcounts[r] = which == SCATTERV ? expected(0, rank) : expected(r, rank);
		displs[r] = r * WORDS;
		pattern_fill(out + displs[r], WORDS, (unsigned int)(rank * RANKS + r));
	}
	switch (which) {
	case SCATTERV:
		return MPI_Scatterv(out, scounts, displs, word, in, rcounts[0], word, 0, comm);
	case GATHERV:
		return MPI_Gatherv(out, scounts[0], word, in, rcounts, displs, word, 0, comm);
	case ALLTOALLV:
		return MPI_Alltoallv(out, scounts, displs, word, in, rcounts, displs, word, comm);
	default:
		for (int r = 0; r < size; r++) {
			bytes[r] = 4 * displs[r];
			types[r] = word;
		}
		return MPI_Alltoallw(out, scounts, bytes, types, in, rcounts, bytes, types, comm);
	}
}

/* What came from @from to @at. */
static void check(int which, int from, const unsigned int *at)
{
	int block = which == GATHERV ? 0 : rank, room = expected(from, rank);

	if (sent(from, rank) <= room && (from != odd_from || from != odd_to))
		pattern_check(at, (size_t)sent(from, rank), (unsigned int)(from * RANKS + block),
			      "a block");
	for (int i = room; i < WORDS; i++)
		if (at[i] != GUARD)
			pattern_fail("written behind the block");
}

static void try(int which)
{
	int err = call(which), class;

	MPI_Error_class(err, &class);
	if (class && class != MPI_ERR_TRUNCATE)
		pattern_fail("another error than that of unequal amounts");
	if (!class && rank == odd_from && (odd_sent > odd_expected || rank == odd_to))
		pattern_fail("no error where blocks differ");
	if (class && rank != odd_from && (rank != odd_to || odd_sent <= odd_expected))
		pattern_fail("an error where all was well");
	for (int r = 0; r < size; r++)
		if (which == SCATTERV ? r == 0 : which >= ALLTOALLV || rank == 0)
			check(which, r, which == SCATTERV ? in : in + displs[r]);
}

static void try_pair(int which, int from, int to)
{
	odd_from = from;
	odd_to = to;
	try(which);
	odd_from = odd_to = -1;
	try(which);
}

int main(int argc, char **argv)
{
	pattern_start(&argc, &argv, RANKS, &rank, &size);
	out = pattern_alloc(RANKS * WORDS * 4);
	in = pattern_alloc(RANKS * WORDS * 4);
	other = WORDS;
	for (int turn = 0; turn < 6; turn++)
		try_pair(turn % CALLS, -1, -1);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int which = 0; which < CALLS; which++)
			for (int large = 0; large < 2; large++) {
				odd_sent = lengths[i][0];
				odd_expected = lengths[i][1];
				other = large ? WORDS : 10;
				try_pair(which, which == GATHERV ? 2 : 0, which == GATHERV ? 0 : 2);
				/* What these do not serve is the MPI's to find. */
				if (which >= ALLTOALLV ||
				    (which == SCATTERV ? odd_sent : odd_expected) > 10)
					try_pair(which, 0, 0);
			}
	MPI_Finalize();
	return 0;
}
