/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COLLECTIVE_H
#define BENCH_COLLECTIVE_H

/*
 * What collbench knows about each operation: how much memory a call of a given
 * size needs on each rank, how to make the call, and what must be in the
 * receive buffer afterwards. A new operation is one row of a table, of collectives
 * (collective.c), of those with derived datatypes (strided.c) or neighbours (neighbors.c), or of
 * messages (message.c).
 *
 * "Size" means what it means in IMB: one block for scatter, gather, allgather,
 * alltoall and those of them with a v, whose blocks here are all alike; the whole
 * message for the others.
 */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functions.h"

/* Everything moved is counted in words: uint32_t, or float where it is reduced. */
#define WORD sizeof(uint32_t)

enum amount {
	AMOUNT_NONE,
	AMOUNT_ONE,   /* the size */
	AMOUNT_BOTH,  /* twice the size: for either neighbour, or with gaps */
	AMOUNT_EACH,  /* the size for every rank */
	AMOUNT_SHARE, /* this rank's part of the size */
	AMOUNT_PART,  /* the size by the number of ranks, rounded down */
};

/* Whose data a receive buffer holds. */
enum origin {
	FROM_NOBODY,
	FROM_ROOT,
	FROM_PARTNER,	/* the other one of ranks 0 and 1, of 2 and 3, ... */
	FROM_LEFT,	/* the rank before, of a ring */
	FROM_RIGHT,	/* the one behind */
	FROM_BOTH,	/* a block of either, the left one's first */
	FROM_EACH,	/* a block of every rank, in rank order */
	FROM_COLUMNS,	/* a column of every rank, side by side: strided.h */
	FROM_NEIGHBORS, /* of a ring, either's half that is for this one: neighbors.h */
	FROM_SUM,	/* the sum over all ranks */
	FROM_SCAN,	/* over those up to this one */
	FROM_EXSCAN,	/* over those before it */
};

struct call {
	const struct functions *mpi;
	uint32_t *send;
	uint32_t *recv;
	size_t words; /* the size */
	int root;
	int rank, nranks;
	/* For put and get: all of the ranks' buffers, open to all; where this call's are, in words.
	 */
	MPI_Win recv_window, send_window;
	MPI_Aint recv_at, send_at;
	const int *shares; /* words of each rank's share: [nranks] */
	const int *counts; /* the size for every rank: [nranks], and where its block begins */
	const int *displs;
};

struct collective {
	const char *name;
	enum amount send_root, send_other;
	enum amount recv_root, recv_other;
	enum origin origin;
	bool mine;   /* a block is the rank-th of its sender's buffer, not the first */
	bool pair;   /* only ranks 0 and 1 take part */
	bool echo;   /* a call is two messages, one after the other */
	bool window; /* it wants the windows */
	void (*run)(const struct call *call);
};

/* NULL when there is none of that name. */
const struct collective *collective_find(const char *name);

/* i-th of the tables, NULL past their end. */
const struct collective *collective_at(size_t i);

/* Words of @rank's buffers in one call. */
size_t collective_send_words(const struct collective *op, const struct call *call, int rank);
size_t collective_recv_words(const struct collective *op, const struct call *call, int rank);

/*
 * Before a call: writes this rank's send buffer with data that depends on
 * @stamp and on the rank, and spoils the receive buffer. After it:
 * collective_errors() counts the words of the receive buffer that are not what
 * the operation must leave there. Sums are of small whole numbers, exact in
 * float whatever the order.
 */
void collective_prepare(const struct collective *op, const struct call *call, uint32_t stamp);
size_t collective_errors(const struct collective *op, const struct call *call, uint32_t stamp);

#endif
