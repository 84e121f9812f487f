// SPDX-License-Identifier: BSD-3-Clause
/*
 * Every rank of a ring sends a block to either neighbour. A block is half of the buffer or, by a
 * derived datatype, one of its two columns, PIECE words wide, as the edges of a grid that is cut
 * among ranks.
 */
#include "neighbors.h"

#include <string.h>

#define PIECE 256 /* words, or one where that does not divide the size */

static MPI_Comm ring = MPI_COMM_NULL;
static MPI_Datatype column = MPI_DATATYPE_NULL;
static size_t column_words; /* of the last call */

static int piece_of(const struct call *call)
{
	return call->words % PIECE ? 1 : PIECE;
}

static void make(const struct call *call)
{
	int piece = piece_of(call), n = call->nranks, periodic = 1;

	if (ring == MPI_COMM_NULL)
		MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &periodic, 0, &ring);
	if (column_words == call->words)
		return;
	if (column != MPI_DATATYPE_NULL)
		MPI_Type_free(&column);
	MPI_Type_vector((int)call->words / piece, piece, 2 * piece, MPI_UINT32_T, &column);
	MPI_Type_commit(&column);
	column_words = call->words;
}

static void run_alltoall(const struct call *call)
{
	make(call);
	call->mpi->Neighbor_alltoall(call->send, (int)call->words, MPI_UINT32_T, call->recv,
				     (int)call->words, MPI_UINT32_T, ring);
}

static void run_alltoallw(const struct call *call)
{
	const int ones[] = {1, 1};
	const MPI_Aint begin[] = {0, (MPI_Aint)WORD * piece_of(call)};
	MPI_Datatype types[2];

	make(call);
	types[0] = types[1] = column;
	call->mpi->Neighbor_alltoallw(call->send, ones, begin, types, call->recv, ones, begin,
				      types, ring);
}

static const struct collective table[] = {
	{
		.name = "neighbor_alltoall",
		.send_root = AMOUNT_BOTH,
		.send_other = AMOUNT_BOTH,
		.recv_root = AMOUNT_BOTH,
		.recv_other = AMOUNT_BOTH,
		.origin = FROM_NEIGHBORS,
		.run = run_alltoall,
	},
	{
		.name = "neighbor_alltoallw",
		.send_root = AMOUNT_BOTH,
		.send_other = AMOUNT_BOTH,
		.recv_root = AMOUNT_BOTH,
		.recv_other = AMOUNT_BOTH,
		.origin = FROM_NEIGHBORS,
		.run = run_alltoallw,
	},
};

const struct collective *neighbors_at(size_t i)
{
	return i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

/* What comes from the left is what that sent to its right: MPI 4.0, 8.6. */
size_t neighbors_errors(const struct collective *op, const struct call *call, uint32_t stamp,
			uint32_t (*word_of)(uint32_t stamp, int rank, size_t i))
{
	size_t width = op->run == run_alltoall ? call->words : (size_t)piece_of(call), errors = 0;
	int n = call->nranks, sides[] = {(call->rank + n - 1) % n, (call->rank + 1) % n};

	for (size_t i = 0; i < 2 * call->words; i++) {
		size_t half = i / width % 2, there = half ? i - width : i + width;

		errors += call->recv[i] != word_of(stamp, sides[half], there);
	}
	return errors;
}
