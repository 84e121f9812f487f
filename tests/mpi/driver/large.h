/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_LARGE_H
#define OC_TEST_LARGE_H

/* Calls in their form with large counts. */

#include "call.h"
#include "side.h"

struct large {
	enum call_name name;
	const void *from;
	void *to;
	const struct side *send;
	const struct side *recv;
	long count;	   /* of a reduction */
	const int *totals; /* of a reduction, of each rank */
	MPI_Datatype type; /* of a reduction */
	MPI_Op op;
	int root;
	MPI_Comm comm;
};

/* Whether a rank makes a call so, which others may make in its other form. */
bool large_is(const struct call *call, int rank);

int large_do(const struct large *l);

#endif
