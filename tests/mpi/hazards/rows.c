// SPDX-License-Identifier: BSD-3-Clause
/* rows: a column of a matrix whose rows are dealt out some at a time. What is broadcast is what the
 * MPI itself packs, however it lays out such types (docs/mpi.md, Intel MPI). */
#include <stdbool.h>
#include <string.h>

#include "pattern.h"

#define ROWS   64
#define LONG   256 /* words of a column's element */
#define MATRIX ((size_t)ROWS * 2 * LONG)
#define COLUMN ((size_t)ROWS * LONG)

static MPI_Datatype make_column(int order, int together)
{
	const bool c = order == MPI_ORDER_C;
	const int sizes[] = {c ? ROWS : 2, c ? 2 : ROWS}, parts[] = {c ? 1 : 2, c ? 2 : 1};
	const int cyclic = MPI_DISTRIBUTE_CYCLIC, block = MPI_DISTRIBUTE_BLOCK;
	const int how[] = {c ? cyclic : block, c ? block : cyclic};
	const int lens[] = {c ? together : 1, c ? 1 : together};
	MPI_Datatype element, column;

	MPI_Type_contiguous(LONG, MPI_UNSIGNED, &element);
	MPI_Type_create_darray(2, 1, 2, sizes, how, lens, parts, order, element, &column);
	MPI_Type_free(&element);
	MPI_Type_commit(&column);
	return column;
}

int main(int argc, char **argv)
{
	unsigned int *matrix, *column, *packed;
	int rank, size;

	pattern_start(&argc, &argv, 2, &rank, &size);
	matrix = pattern_alloc(MATRIX * 4);
	column = pattern_alloc(COLUMN * 4);
	packed = pattern_alloc(COLUMN * 4);
	pattern_fill(matrix, MATRIX, 7);
	for (int together = 1; together <= 4; together++)
		for (int order = 0; order < 2; order++) {
			MPI_Datatype type =
				make_column(order ? MPI_ORDER_C : MPI_ORDER_FORTRAN, together);
			int at = 0;

			MPI_Pack(matrix, 1, type, packed, (int)COLUMN * 4, &at, MPI_COMM_SELF);
			memset(column, 0, COLUMN * 4);
			if (rank == 0)
				MPI_Bcast(matrix, 1, type, 0, MPI_COMM_WORLD);
			else
				MPI_Bcast(column, (int)COLUMN, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
			if (rank && (at != (int)COLUMN * 4 || memcmp(column, packed, COLUMN * 4)))
				pattern_fail("a column is not what MPI_Pack makes of it");
			MPI_Type_free(&type);
		}
	free(matrix);
	free(column);
	free(packed);
	MPI_Finalize();
	return 0;
}
