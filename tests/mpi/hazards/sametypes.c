// SPDX-License-Identifier: BSD-3-Clause
/*
 * sametypes WHERE: a user's operator on one type that ranks have made by different constructors
 * ("one"), and on one signature that two groups have by different types ("between").
 */
#include <string.h>

#include "pattern.h"

#define N     20000
#define OF    4 /* numbers in an element */
#define CALLS 8

static int rank, size;
static long long send[N * OF], recv[N * OF];
static MPI_Op op;

static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
	long long *from = in, *to = inout;
	int bytes;

	MPI_Type_size(*type, &bytes);
	for (size_t i = 0; i < (size_t)*len * (size_t)bytes / sizeof(*to); i++)
		to[i] += from[i];
}

/* @from: the first of the ranks whose numbers are added up, @step to the next. */
static void reduce(int count, MPI_Datatype type, MPI_Comm comm, int from, int step)
{
	long long ranks = 0, total = 0;

	for (int r = from; r < size; r += step) {
		ranks++;
		total += r;
	}
	for (int call = 0; call < CALLS; call++) {
		memset(recv, 0, sizeof(recv));
		MPI_Allreduce(send, recv, count, type, op, comm);
		for (int i = 0; i < N * OF; i++)
			if (recv[i] != ranks * i + total)
				pattern_fail("allreduce");
	}
}

int main(int argc, char **argv)
{
	MPI_Datatype contiguous, vector;
	MPI_Comm group, between;

	pattern_start(&argc, &argv, 16, &rank, &size);
	if (argc != 2)
		pattern_fail("sametypes one|between");
	MPI_Op_create(add, 1, &op);
	MPI_Type_contiguous(OF, MPI_LONG_LONG, &contiguous);
	MPI_Type_commit(&contiguous);
	MPI_Type_vector(OF, 1, 1, MPI_LONG_LONG, &vector);
	MPI_Type_commit(&vector);
	for (int i = 0; i < N * OF; i++)
		send[i] = i + rank;
	if (!strcmp(argv[1], "one")) {
		reduce(N, rank ? vector : contiguous, MPI_COMM_WORLD, 0, 1);
	} else {
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &group);
		MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, !(rank % 2), 1, &between);
		reduce(rank % 2 ? N * OF : N, rank % 2 ? MPI_LONG_LONG : contiguous, between,
		       !(rank % 2), 2);
	}
	MPI_Finalize();
	return 0;
}
