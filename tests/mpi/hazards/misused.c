// SPDX-License-Identifier: BSD-3-Clause
/*
 * misused WHAT: calls with arguments that the standard forbids, which return an error and leave the
 * communicator as it was: MPI_IN_PLACE where there is none ("in-place"), arrays ("arrays") or
 * buffers ("buffers") that are NULL, a block of one's own with two lengths ("counts"), all on every
 * rank; what every MPI finds, made by all ranks ("found") or by one and never by the others
 * ("alone"); lengths that differ by rank ("lengths").
 */
#include <string.h>

#include "pattern.h"

#define N     100000
#define MOST  8
#define WRONG 11

static int send[MOST * N], recv[MOST * N], counts[MOST], displs[MOST];
static int rank, size, told, last;

static void on_error(MPI_Comm *where, int *code, ...)
{
	(void)where;
	MPI_Error_class(*code, &last);
	told++;
}

/* How the MPI says so is to be printed, for it to be compared with how it does by itself. */
static void listen_to(void)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Errhandler_free(&handler);
}

static void fails(int code, const char *what)
{
	int sum = 0, one = 1, class;

	/* MPICH 5 returns MPI_SUCCESS where a handler of the program's has returned. */
	if (code == MPI_SUCCESS && !told)
		pattern_fail(what);
	MPI_Error_class(code, &class);
	if (!rank)
		printf("%s: class %d, the handler %d times with %d\n", what, class, told, last);
	told = last = 0;
	/* The ranks are still together. */
	if (MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) || sum != size)
		pattern_fail(what);
	memset(recv, 0, sizeof(recv));
	for (int i = 0; i < N; i++)
		send[i] = i + rank;
	if (MPI_Bcast(send, N, MPI_INT, 0, MPI_COMM_WORLD) || send[N - 1] != N - 1)
		pattern_fail(what);
}

/* Of all these those that Open MPI finds. */
static void in_place(void)
{
	MPI_Comm world = MPI_COMM_WORLD;

	listen_to();
	fails(MPI_Bcast(MPI_IN_PLACE, N, MPI_INT, 0, world), "bcast");
	fails(MPI_Allgather(send, N, MPI_INT, MPI_IN_PLACE, N, MPI_INT, world), "allgather");
	fails(MPI_Allreduce(send, MPI_IN_PLACE, N, MPI_INT, MPI_SUM, world), "allreduce");
}

static void right(MPI_Comm comm, int calls)
{
	for (int i = 0; i < calls; i++) {
		memset(recv, 0, sizeof(recv));
		for (int k = 0; k < N; k++)
			send[k] = rank ? 0 : i + k;
		if (MPI_Bcast(send, N, MPI_INT, 0, comm) || send[N - 1] != i + N - 1 ||
		    MPI_Alltoallv(send, counts, displs, MPI_INT, recv, counts, displs, MPI_INT,
				  comm) ||
		    recv[(size - 1) * N + 1] != (size == 1 ? send[1] : recv[1]))
			pattern_fail("right");
	}
}

/* Of all that is wrong what every MPI finds. */
static int wrong(int what, MPI_Comm comm)
{
	static int none[MOST], less[MOST] = {-1};

	switch (what) {
	case 0:
		return MPI_Bcast(send, N, MPI_INT, 99, comm);
	case 1:
		return MPI_Bcast(send, N, MPI_INT, -7, comm);
	case 2:
		return MPI_Bcast(send, -1, MPI_INT, 0, comm);
	case 3:
		return MPI_Gather(send, N, MPI_DATATYPE_NULL, recv, N, MPI_INT, 0, comm);
	case 4:
		return MPI_Gatherv(send, -1, MPI_INT, recv, counts, displs, MPI_INT, 0, comm);
	case 5:
		return MPI_Gatherv(send, N, MPI_DATATYPE_NULL, recv, counts, displs, MPI_INT, 0,
				   comm);
	case 6:
		return MPI_Scatterv(send, counts, displs, MPI_INT, recv, N, MPI_INT, size, comm);
	case 7:
		return MPI_Alltoallv(send, less, displs, MPI_INT, recv, counts, displs, MPI_INT,
				     comm);
	case 8:
		return MPI_Alltoallv(send, none, none, MPI_DATATYPE_NULL, recv, none, none,
				     MPI_DATATYPE_NULL, comm);
	case 9:
		return MPI_Allreduce(send, recv, N, MPI_INT, MPI_OP_NULL, comm);
	case 10:
		return MPI_Scatter(send, N, MPI_INT, recv, N, MPI_DATATYPE_NULL, 0, comm);
	default:
		return MPI_SUCCESS;
	}
}

/* By all ranks. */
static void found(void)
{
	char name[32];

	listen_to();
	for (int what = 0; what < WRONG; what++) {
		snprintf(name, sizeof(name), "call %d", what);
		fails(wrong(what, MPI_COMM_WORLD), name);
	}
}

/* The others never make these calls, before their communicator is served or later. */
static void alone(void)
{
	MPI_Comm comm;

	for (int what = 0; what < WRONG; what++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		for (int turn = 0; turn < 4; turn++) {
			if (rank == size - 1 && wrong(what, comm) == MPI_SUCCESS)
				pattern_fail("nothing was wrong");
			right(comm, 1 + turn);
		}
		MPI_Comm_free(&comm);
	}
}

/* Where they made the communicator a served one at different calls it would hang. */
static void lengths(void)
{
	int n = rank ? N / 4 : N / 3;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < 20; i++)
		MPI_Gather(send, n, MPI_BYTE, recv, N / 3, MPI_BYTE, 0, comm);
	right(comm, 3);
	MPI_Comm_free(&comm);
}

/* Served or not, nothing is read behind what is sent. */
static void own_counts(void)
{
	for (int i = 0; i < 6; i++)
		if (MPI_Allgatherv(send, 2 * N, MPI_INT, recv, counts, displs, MPI_INT,
				   MPI_COMM_WORLD) == MPI_SUCCESS)
			pattern_fail("allgatherv");
}

static void arrays(void)
{
	MPI_Comm world = MPI_COMM_WORLD;

	listen_to();
	fails(MPI_Reduce_scatter(send, recv, NULL, MPI_INT, MPI_SUM, world), "reduce_scatter");
	fails(MPI_Alltoallv(send, NULL, displs, MPI_INT, recv, counts, displs, MPI_INT, world),
	      "alltoallv");
	fails(MPI_Alltoallv(send, counts, NULL, MPI_INT, recv, counts, displs, MPI_INT, world),
	      "alltoallv");
	fails(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, recv, NULL, NULL, MPI_INT, world),
	      "alltoallv");
	fails(MPI_Alltoallw(send, counts, displs, NULL, recv, counts, displs, NULL, world),
	      "alltoallw");
}

/* Which no MPI need find. */
static void buffers(void)
{
	MPI_Comm world = MPI_COMM_WORLD;

	fails(MPI_Bcast(rank ? NULL : send, N, MPI_INT, 0, world), "bcast");
	fails(MPI_Allreduce(send, NULL, N, MPI_INT, MPI_SUM, world), "allreduce");
	fails(MPI_Alltoall(NULL, N, MPI_INT, recv, N, MPI_INT, world), "alltoall");
	fails(MPI_Scan(NULL, recv, N, MPI_INT, MPI_SUM, world), "scan");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"found", found},	    {"in-place", in_place}, {"alone", alone},
		     {"lengths", lengths},  {"arrays", arrays},	    {"buffers", buffers},
		     {"counts", own_counts}};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (argc != 2 || size > MOST)
		pattern_fail("misused WHAT, at most 8 ranks");
	for (int r = 0; r < size; r++) {
		counts[r] = N;
		displs[r] = r * N;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1]))
			cases[i].run();
	MPI_Finalize();
	return 0;
}
