// SPDX-License-Identifier: BSD-3-Clause
/*
 * MPI_Allgatherv in place, of elements that lie apart: long blocks are packed, and those of one
 * element lie where they are. Each block is there in the end, one's own too.
 */
#include "pattern.h"

#define RANKS 8
#define APART 9 /* words from an element to the next */
#define LONG  4096

static short words[RANKS * LONG * APART];

static short value(int rank, int i)
{
	return (short)(1 + 1000 * rank + i % 999);
}

int main(int argc, char **argv)
{
	int counts[RANKS], displs[RANKS], rank, size;
	MPI_Datatype type;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS)
		pattern_fail("at most 8 ranks");
	MPI_Type_create_resized(MPI_SHORT, 0, APART * sizeof(*words), &type);
	MPI_Type_commit(&type);
	for (int r = 0; r < size; r++) {
		counts[r] = r == 1 ? 1 : LONG;
		displs[r] = r * LONG;
	}
	for (int i = 0; i < counts[rank]; i++)
		words[(displs[rank] + i) * APART] = value(rank, i);
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, words, counts, displs, type,
		       MPI_COMM_WORLD);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < counts[r]; i++)
			if (words[(displs[r] + i) * APART] != value(r, i))
				pattern_fail(r == rank ? "one's own block" : "a block");
	MPI_Type_free(&type);
	MPI_Finalize();
	return 0;
}
