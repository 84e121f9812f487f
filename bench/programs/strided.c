// SPDX-License-Identifier: BSD-3-Clause
/*
 * A block is a column of a matrix, PIECE words wide: that many bytes lie together, as in the
 * transposes of Fourier transforms over several ranks. The receive buffer is a matrix with a column
 * of each rank.
 */
#include "strided.h"

#include <stdlib.h>

#define PIECE 256 /* words, or one where that does not divide the size */

/* Types of one size, in the last call's. */
static struct {
	size_t words;
	MPI_Datatype in_two;   /* the first of two columns */
	MPI_Datatype column;   /* of as many as there are ranks; the next one is beside it */
	MPI_Datatype *columns; /* [nranks] the same as parts of the whole matrix */
	int *ones, *zeros;
} made;

static int piece_of(const struct call *call)
{
	return call->words % PIECE ? 1 : PIECE;
}

static void forget(int nranks)
{
	if (!made.columns)
		return;
	MPI_Type_free(&made.in_two);
	MPI_Type_free(&made.column);
	for (int r = 0; r < nranks; r++)
		MPI_Type_free(&made.columns[r]);
	free(made.columns);
	free(made.ones);
	free(made.zeros);
}

static void make(const struct call *call)
{
	int piece = piece_of(call), rows = (int)call->words / piece, n = call->nranks;
	const int sizes[] = {rows, n * piece}, part[] = {rows, piece};
	MPI_Datatype vector;

	if (made.words == call->words)
		return;
	forget(n);
	made.words = call->words;
	made.columns = calloc((size_t)n, sizeof(MPI_Datatype));
	made.ones = calloc((size_t)n, sizeof(int));
	made.zeros = calloc((size_t)n, sizeof(int));
	if (!made.columns || !made.ones || !made.zeros)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Type_vector(rows, piece, 2 * piece, MPI_UINT32_T, &made.in_two);
	MPI_Type_commit(&made.in_two);
	MPI_Type_vector(rows, piece, n * piece, MPI_UINT32_T, &vector);
	MPI_Type_create_resized(vector, 0, (MPI_Aint)(WORD * (size_t)piece), &made.column);
	MPI_Type_commit(&made.column);
	MPI_Type_free(&vector);
	for (int r = 0; r < n; r++) {
		const int start[] = {0, r * piece};

		MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_UINT32_T,
					 &made.columns[r]);
		MPI_Type_commit(&made.columns[r]);
		made.ones[r] = 1;
	}
}

static void run_allgather(const struct call *call)
{
	make(call);
	call->mpi->Allgather(call->send, 1, made.in_two, call->recv, 1, made.column,
			     MPI_COMM_WORLD);
}

static void run_alltoallw(const struct call *call)
{
	make(call);
	call->mpi->Alltoallw(call->send, made.ones, made.zeros, made.columns, call->recv, made.ones,
			     made.zeros, made.columns, MPI_COMM_WORLD);
}

static const struct collective table[] = {
	{
		.name = "strided_allgather",
		.send_root = AMOUNT_BOTH,
		.send_other = AMOUNT_BOTH,
		.recv_root = AMOUNT_EACH,
		.recv_other = AMOUNT_EACH,
		.origin = FROM_COLUMNS,
		.run = run_allgather,
	},
	{
		.name = "alltoallw",
		.send_root = AMOUNT_EACH,
		.send_other = AMOUNT_EACH,
		.recv_root = AMOUNT_EACH,
		.recv_other = AMOUNT_EACH,
		.origin = FROM_COLUMNS,
		.mine = true,
		.run = run_alltoallw,
	},
};

const struct collective *strided_at(size_t i)
{
	return i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

size_t strided_errors(const struct collective *op, const struct call *call, uint32_t stamp,
		      uint32_t (*word_of)(uint32_t stamp, int rank, size_t i))
{
	size_t piece = (size_t)piece_of(call), n = (size_t)call->nranks, errors = 0;
	size_t width = op->mine ? n : 2, column = op->mine ? (size_t)call->rank : 0;

	for (size_t i = 0; i < n * call->words; i++) {
		size_t row = i / (n * piece), from = i / piece % n;

		errors += call->recv[i] !=
			  word_of(stamp, (int)from, (row * width + column) * piece + i % piece);
	}
	return errors;
}
