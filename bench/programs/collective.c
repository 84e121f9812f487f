// SPDX-License-Identifier: BSD-3-Clause
#include "collective.h"

#include <string.h>

#include "message.h"
#include "neighbors.h"
#include "strided.h"

#define PERIOD 64 /* of the summands: sums of 2^18 ranks stay exact in float */

static size_t part_words(const struct call *call)
{
	return call->words / (size_t)call->nranks;
}

static void run_barrier(const struct call *call)
{
	call->mpi->Barrier(MPI_COMM_WORLD);
}

static void run_bcast(const struct call *call)
{
	call->mpi->Bcast(call->rank == call->root ? call->send : call->recv, (int)call->words,
			 MPI_UINT32_T, call->root, MPI_COMM_WORLD);
}

static void run_scatter(const struct call *call)
{
	call->mpi->Scatter(call->send, (int)call->words, MPI_UINT32_T, call->recv, (int)call->words,
			   MPI_UINT32_T, call->root, MPI_COMM_WORLD);
}

static void run_gather(const struct call *call)
{
	call->mpi->Gather(call->send, (int)call->words, MPI_UINT32_T, call->recv, (int)call->words,
			  MPI_UINT32_T, call->root, MPI_COMM_WORLD);
}

static void run_allgather(const struct call *call)
{
	call->mpi->Allgather(call->send, (int)call->words, MPI_UINT32_T, call->recv,
			     (int)call->words, MPI_UINT32_T, MPI_COMM_WORLD);
}

static void run_allgatherv(const struct call *call)
{
	call->mpi->Allgatherv(call->send, (int)call->words, MPI_UINT32_T, call->recv, call->counts,
			      call->displs, MPI_UINT32_T, MPI_COMM_WORLD);
}

static void run_alltoall(const struct call *call)
{
	call->mpi->Alltoall(call->send, (int)call->words, MPI_UINT32_T, call->recv,
			    (int)call->words, MPI_UINT32_T, MPI_COMM_WORLD);
}

static void run_scatterv(const struct call *call)
{
	call->mpi->Scatterv(call->send, call->counts, call->displs, MPI_UINT32_T, call->recv,
			    (int)call->words, MPI_UINT32_T, call->root, MPI_COMM_WORLD);
}

static void run_gatherv(const struct call *call)
{
	call->mpi->Gatherv(call->send, (int)call->words, MPI_UINT32_T, call->recv, call->counts,
			   call->displs, MPI_UINT32_T, call->root, MPI_COMM_WORLD);
}

static void run_alltoallv(const struct call *call)
{
	call->mpi->Alltoallv(call->send, call->counts, call->displs, MPI_UINT32_T, call->recv,
			     call->counts, call->displs, MPI_UINT32_T, MPI_COMM_WORLD);
}

static void run_reduce(const struct call *call)
{
	call->mpi->Reduce(call->send, call->recv, (int)call->words, MPI_FLOAT, MPI_SUM, call->root,
			  MPI_COMM_WORLD);
}

static void run_allreduce(const struct call *call)
{
	call->mpi->Allreduce(call->send, call->recv, (int)call->words, MPI_FLOAT, MPI_SUM,
			     MPI_COMM_WORLD);
}

static void run_reduce_scatter(const struct call *call)
{
	call->mpi->Reduce_scatter(call->send, call->recv, call->shares, MPI_FLOAT, MPI_SUM,
				  MPI_COMM_WORLD);
}

static void run_reduce_scatter_block(const struct call *call)
{
	call->mpi->Reduce_scatter_block(call->send, call->recv, (int)part_words(call), MPI_FLOAT,
					MPI_SUM, MPI_COMM_WORLD);
}

static void run_scan(const struct call *call)
{
	call->mpi->Scan(call->send, call->recv, (int)call->words, MPI_FLOAT, MPI_SUM,
			MPI_COMM_WORLD);
}

static void run_exscan(const struct call *call)
{
	call->mpi->Exscan(call->send, call->recv, (int)call->words, MPI_FLOAT, MPI_SUM,
			  MPI_COMM_WORLD);
}

static const struct collective table[] = {
	{
		.name = "bcast",
		.send_root = AMOUNT_ONE,
		.recv_other = AMOUNT_ONE,
		.origin = FROM_ROOT,
		.run = run_bcast,
	},
	{
		.name = "scatter",
		.send_root = AMOUNT_EACH,
		.recv_root = AMOUNT_ONE,
		.recv_other = AMOUNT_ONE,
		.origin = FROM_ROOT,
		.mine = true,
		.run = run_scatter,
	},
	{
		.name = "gather",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_EACH,
		.origin = FROM_EACH,
		.run = run_gather,
	},
	{
		.name = "allgather",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_EACH,
		.recv_other = AMOUNT_EACH,
		.origin = FROM_EACH,
		.run = run_allgather,
	},
	{
		.name = "alltoall",
		.send_root = AMOUNT_EACH,
		.send_other = AMOUNT_EACH,
		.recv_root = AMOUNT_EACH,
		.recv_other = AMOUNT_EACH,
		.origin = FROM_EACH,
		.mine = true,
		.run = run_alltoall,
	},
	{
		.name = "reduce",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_ONE,
		.origin = FROM_SUM,
		.run = run_reduce,
	},
	{
		.name = "allreduce",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_ONE,
		.recv_other = AMOUNT_ONE,
		.origin = FROM_SUM,
		.run = run_allreduce,
	},
	{
		.name = "reduce_scatter",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_SHARE,
		.recv_other = AMOUNT_SHARE,
		.origin = FROM_SUM,
		.mine = true,
		.run = run_reduce_scatter,
	},
	{
		.name = "reduce_scatter_block",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_PART,
		.recv_other = AMOUNT_PART,
		.origin = FROM_SUM,
		.mine = true,
		.run = run_reduce_scatter_block,
	},
	{
		.name = "scan",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_ONE,
		.recv_other = AMOUNT_ONE,
		.origin = FROM_SCAN,
		.run = run_scan,
	},
	{
		.name = "exscan",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_ONE,
		.recv_other = AMOUNT_ONE,
		.origin = FROM_EXSCAN,
		.run = run_exscan,
	},
	{
		.name = "scatterv",
		.send_root = AMOUNT_EACH,
		.recv_root = AMOUNT_ONE,
		.recv_other = AMOUNT_ONE,
		.origin = FROM_ROOT,
		.mine = true,
		.run = run_scatterv,
	},
	{
		.name = "gatherv",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_EACH,
		.origin = FROM_EACH,
		.run = run_gatherv,
	},
	{
		.name = "allgatherv",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_EACH,
		.recv_other = AMOUNT_EACH,
		.origin = FROM_EACH,
		.run = run_allgatherv,
	},
	{
		.name = "alltoallv",
		.send_root = AMOUNT_EACH,
		.send_other = AMOUNT_EACH,
		.recv_root = AMOUNT_EACH,
		.recv_other = AMOUNT_EACH,
		.origin = FROM_EACH,
		.mine = true,
		.run = run_alltoallv,
	},
	{
		.name = "barrier",
		.run = run_barrier,
	},
};

const struct collective *collective_at(size_t i)
{
	static const struct collective *(*const others[])(size_t i) = {strided_at, neighbors_at,
								       message_at};
	size_t count = sizeof(table) / sizeof(table[0]);

	if (i < count)
		return &table[i];
	for (size_t t = 0; t < sizeof(others) / sizeof(others[0]); t++) {
		i -= count;
		if (others[t](i))
			return others[t](i);
		for (count = 0; others[t](count);)
			count++;
	}
	return NULL;
}

const struct collective *collective_find(const char *name)
{
	const struct collective *op;

	for (size_t i = 0; (op = collective_at(i)); i++)
		if (!strcmp(op->name, name))
			return op;
	return NULL;
}

static size_t amount_words(enum amount amount, const struct call *call, int rank)
{
	switch (amount) {
	case AMOUNT_ONE:
		return call->words;
	case AMOUNT_BOTH:
		return 2 * call->words;
	case AMOUNT_EACH:
		return call->words * (size_t)call->nranks;
	case AMOUNT_SHARE:
		return (size_t)call->shares[rank];
	case AMOUNT_PART:
		return part_words(call);
	case AMOUNT_NONE:
		break;
	}
	return 0;
}

/* Of pairs, the last of an odd number of ranks has none. */
static bool is_idle(const struct collective *op, const struct call *call, int rank)
{
	return (op->pair && rank > 1) || (op->origin == FROM_PARTNER && (rank ^ 1) >= call->nranks);
}

size_t collective_send_words(const struct collective *op, const struct call *call, int rank)
{
	if (is_idle(op, call, rank))
		return 0;
	return amount_words(rank == call->root ? op->send_root : op->send_other, call, rank);
}

size_t collective_recv_words(const struct collective *op, const struct call *call, int rank)
{
	if (is_idle(op, call, rank))
		return 0;
	return amount_words(rank == call->root ? op->recv_root : op->recv_other, call, rank);
}

/* First word of @rank's send buffer; word i is this plus i times STRIDE. */
#define STRIDE 2654435761u

static uint32_t first_word(uint32_t stamp, int rank)
{
	return (stamp * 0x9e3779b9u) ^ ((uint32_t)rank * 0x85ebca6bu);
}

/* Word i of @rank's summands is (first + i) % PERIOD, as a float. */
static uint32_t first_summand(uint32_t stamp, int rank)
{
	return stamp * 7u + (uint32_t)rank * 13u;
}

static bool is_summed(const struct collective *op)
{
	return op->origin == FROM_SUM || op->origin == FROM_SCAN || op->origin == FROM_EXSCAN;
}

void collective_prepare(const struct collective *op, const struct call *call, uint32_t stamp)
{
	size_t nsend = collective_send_words(op, call, call->rank);
	size_t nrecv = collective_recv_words(op, call, call->rank);

	if (is_summed(op)) {
		uint32_t first = first_summand(stamp, call->rank);
		float *send = (float *)call->send;

		for (size_t i = 0; i < nsend; i++)
			send[i] = (float)(int)((first + (uint32_t)i) % PERIOD);
	} else {
		uint32_t first = first_word(stamp, call->rank);

		for (size_t i = 0; i < nsend; i++)
			call->send[i] = first + (uint32_t)i * STRIDE;
	}
	/* All ones: a NaN, and no word sequence of ours. */
	memset(call->recv, 0xff, nrecv * WORD);
}

static uint32_t word_of(uint32_t stamp, int rank, size_t i)
{
	return first_word(stamp, rank) + (uint32_t)i * STRIDE;
}

static size_t block_errors(const uint32_t *got, size_t words, uint32_t first, size_t start)
{
	size_t errors = 0;

	for (size_t i = 0; i < words; i++)
		errors += got[i] != first + (uint32_t)(start + i) * STRIDE;
	return errors;
}

/* The sum over the first @ranks ranks. */
static size_t sum_errors(const struct call *call, size_t words, size_t start, uint32_t stamp,
			 int ranks)
{
	const float *got = (const float *)call->recv;
	float sums[PERIOD] = {0};
	size_t errors = 0;

	for (int r = 0; r < ranks; r++)
		for (uint32_t i = 0; i < PERIOD; i++)
			sums[i] += (float)(int)((first_summand(stamp, r) + i) % PERIOD);
	for (size_t i = 0; i < words; i++)
		errors += got[i] != sums[(start + i) % PERIOD];
	return errors;
}

size_t collective_errors(const struct collective *op, const struct call *call, uint32_t stamp)
{
	size_t words = collective_recv_words(op, call, call->rank);
	size_t start = op->mine ? call->words * (size_t)call->rank : 0;
	size_t errors = 0;

	if (words == 0)
		return 0;
	switch (op->origin) {
	case FROM_ROOT:
		return block_errors(call->recv, words, first_word(stamp, call->root), start);
	case FROM_PARTNER:
		return block_errors(call->recv, words, first_word(stamp, message_partner(call)), 0);
	case FROM_LEFT:
		return block_errors(call->recv, words, first_word(stamp, message_left(call)), 0);
	case FROM_RIGHT:
		return block_errors(call->recv, words, first_word(stamp, message_right(call)), 0);
	case FROM_BOTH:
		return block_errors(call->recv, call->words, first_word(stamp, message_left(call)),
				    0) +
		       block_errors(call->recv + call->words, call->words,
				    first_word(stamp, message_right(call)), 0);
	case FROM_EACH:
		for (int r = 0; r < call->nranks; r++)
			errors += block_errors(call->recv + call->words * (size_t)r, call->words,
					       first_word(stamp, r), start);
		return errors;
	case FROM_COLUMNS:
		return strided_errors(op, call, stamp, word_of);
	case FROM_NEIGHBORS:
		return neighbors_errors(op, call, stamp, word_of);
	case FROM_SUM:
		start = 0;
		for (int r = 0; op->mine && r < call->rank; r++)
			start += collective_recv_words(op, call, r);
		return sum_errors(call, words, start, stamp, call->nranks);
	case FROM_SCAN:
		return sum_errors(call, words, 0, stamp, call->rank + 1);
	case FROM_EXSCAN:
		/* Before rank 0 there is nobody: what it receives is not defined. */
		return call->rank ? sum_errors(call, words, 0, stamp, call->rank) : 0;
	case FROM_NOBODY:
		break;
	}
	return 0;
}
