// SPDX-License-Identifier: BSD-3-Clause
/* A type with a part of an array that is dealt out, of which this part is none: nobody goes through
 * its rows. */
#include "pattern.h"

#define LONG  1000000
#define WORDS (16 << 10)

int main(int argc, char **argv)
{
	const int sizes[] = {LONG, LONG, 1}, parts[] = {1, 1, 2};
	const int how[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
	const int lengths[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG,
			       MPI_DISTRIBUTE_DFLT_DARG};
	const int counts[] = {1, WORDS};
	const MPI_Aint displs[] = {0, 0};
	MPI_Datatype types[] = {MPI_DATATYPE_NULL, MPI_UNSIGNED}, both;
	unsigned int *data;
	int rank, size;

	pattern_start(&argc, &argv, 2, &rank, &size);
	MPI_Type_create_darray(2, 1, 3, sizes, how, lengths, parts, MPI_ORDER_C, MPI_UNSIGNED,
			       &types[0]);
	MPI_Type_create_struct(2, counts, displs, types, &both);
	MPI_Type_commit(&both);
	data = pattern_alloc((size_t)WORDS * 4);
	for (int root = 0; root < size; root++) {
		pattern_fill(data, WORDS, (unsigned int)(rank == root ? root : 9));
		MPI_Bcast(data, 1, both, root, MPI_COMM_WORLD);
		pattern_check(data, WORDS, (unsigned int)root, "bcast");
	}
	MPI_Type_free(&types[0]);
	MPI_Type_free(&both);
	MPI_Finalize();
	return 0;
}
