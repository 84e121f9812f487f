// SPDX-License-Identifier: BSD-3-Clause
/*
 * misused WHAT: calls with arguments that the standard forbids, which return an error on every rank
 * and leave the communicator as it was: MPI_IN_PLACE where there is none ("in-place"), on all ranks
 * or on one ("alone"), arrays ("arrays") or buffers ("buffers") that are NULL.
 */
#include <string.h>

#include "pattern.h"

#define N    100000
#define MOST 8

static int send[MOST * N], recv[MOST * N], counts[MOST], displs[MOST];
static int rank, size;

static void fails(int code, const char *what)
{
	int sum = 0, one = 1;

	if (code == MPI_SUCCESS)
		pattern_fail(what);
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

	fails(MPI_Bcast(MPI_IN_PLACE, N, MPI_INT, 0, world), "bcast");
	fails(MPI_Allgather(send, N, MPI_INT, MPI_IN_PLACE, N, MPI_INT, world), "allgather");
	fails(MPI_Allreduce(send, MPI_IN_PLACE, N, MPI_INT, MPI_SUM, world), "allreduce");
}

/* The others are told, though they did nothing wrong. */
static void alone(void)
{
	MPI_Comm world = MPI_COMM_WORLD;
	void *wrong = rank == size - 1 ? MPI_IN_PLACE : (void *)recv;

	fails(MPI_Allreduce(send, wrong, N, MPI_INT, MPI_SUM, world), "allreduce");
	fails(MPI_Alltoall(send, N, MPI_INT, wrong, N, MPI_INT, world), "alltoall");
	wrong = rank ? MPI_IN_PLACE : (void *)send;
	fails(MPI_Reduce(wrong, recv, N, MPI_INT, MPI_SUM, 0, world), "reduce");
	fails(MPI_Gather(wrong, N, MPI_INT, recv, N, MPI_INT, 0, world), "gather");
	fails(MPI_Scatter(send, N, MPI_INT, wrong == MPI_IN_PLACE ? wrong : recv, N, MPI_INT, 0,
			  world),
	      "scatter");
}

static void arrays(void)
{
	MPI_Comm world = MPI_COMM_WORLD;

	fails(MPI_Reduce_scatter(send, recv, NULL, MPI_INT, MPI_SUM, world), "reduce_scatter");
	fails(MPI_Alltoallv(send, NULL, displs, MPI_INT, recv, counts, displs, MPI_INT, world),
	      "alltoallv");
	fails(MPI_Alltoallv(send, counts, NULL, MPI_INT, recv, counts, displs, MPI_INT, world),
	      "alltoallv");
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
	} cases[] = {
		{"in-place", in_place}, {"alone", alone}, {"arrays", arrays}, {"buffers", buffers}};

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
