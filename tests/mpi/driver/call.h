/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_CALL_H
#define OC_TEST_CALL_H

/* One collective call with made-up data, and whether it did what the standard
 * says. */

#include "element.h"

enum call_name {
	CALL_BCAST,
	CALL_SCATTER,
	CALL_SCATTERV,
	CALL_GATHER,
	CALL_GATHERV,
	CALL_ALLGATHER,
	CALL_ALLGATHERV,
	CALL_ALLTOALL,
	CALL_ALLTOALLV,
	CALL_ALLTOALLW,
	CALL_REDUCE,
	CALL_ALLREDUCE,
	CALL_REDUCE_SCATTER,
	CALL_REDUCE_SCATTER_BLOCK,
	CALL_SCAN,
	CALL_EXSCAN,
	CALL_BARRIER,
	CALL_COUNT
};

struct call {
	int line;
	enum call_name name;
	int root;
	long count; /* elements of a block; mean of those that differ */
	const struct element *e;
	int op;
	bool in_place;
	int align;
	unsigned int kinds; /* sets to draw from, a bit each */
	unsigned int layouts;
	bool crossed; /* large messages are under way meanwhile */
	uint64_t seed;
};

int call_find(const char *name); /* -1: no such */

/* Does it; ends the job with a line that says what is wrong. @ordered: sums and
 * products of floats must be folded in rank order. Returns a digest of what
 * this rank received that is the same whoever carries the call out. */
uint64_t call_do(const struct call *call, MPI_Comm comm, bool ordered);

#endif
