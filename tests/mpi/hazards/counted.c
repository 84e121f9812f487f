// SPDX-License-Identifier: BSD-3-Clause
/* Calls of every sort, a known number of each, and then the end that the argument names. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TURNS 20
#define BYTES (1 << 20)

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
	for (int i = 0; i < *count; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

static void call_all(char *from, char *to, int rank, int size)
{
	int counts[16], displs[16], small[16], own[16];
	MPI_Datatype spaced;
	MPI_Op op;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced);
	MPI_Type_commit(&spaced);
	for (int r = 0; r < size; r++) {
		counts[r] = BYTES / size;
		displs[r] = r * (BYTES / size);
		small[r] = 8;
		own[r] = r == rank ? BYTES / size : 8;
	}
	MPI_Op_create(add, 1, &op);
	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Bcast(from, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
		MPI_Bcast(from, 64, MPI_BYTE, 0, MPI_COMM_WORLD);
		MPI_Bcast(from, 0, MPI_BYTE, 0, MPI_COMM_WORLD);
		MPI_Allreduce(from, to, BYTES / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		MPI_Allreduce(from, to, BYTES / 8, spaced, op, MPI_COMM_WORLD);
		MPI_Alltoall(from, BYTES / size, MPI_BYTE, to, BYTES / size, MPI_BYTE,
			     MPI_COMM_WORLD);
		MPI_Gatherv(from, BYTES / size, MPI_BYTE, to, counts, displs, MPI_BYTE, 0,
			    MPI_COMM_WORLD);
		MPI_Gatherv(from, 8, MPI_BYTE, to, small, displs, MPI_BYTE, 0, MPI_COMM_WORLD);
		MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, to, own, displs,
			      MPI_BYTE, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_SELF);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Op_free(&op);
	MPI_Type_free(&spaced);
}

/* Returns when every rank has returned from all of its calls: counts are those of whole calls. */
static void wait_for_all(int rank, int size)
{
	char token = 0;

	for (int r = 1; r < size; r++) {
		if (rank == 0)
			MPI_Recv(&token, 1, MPI_BYTE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else if (rank == r)
			MPI_Send(&token, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
	for (int r = 1; r < size; r++) {
		if (rank == 0)
			MPI_Send(&token, 1, MPI_BYTE, r, 0, MPI_COMM_WORLD);
		else if (rank == r)
			MPI_Recv(&token, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	const char *end = argc > 1 ? argv[1] : "";
	char *from = calloc(1, BYTES), *to = calloc(1, BYTES);
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	call_all(from, to, rank, size);
	wait_for_all(rank, size);
	if (rank == size - 1) {
		if (!strcmp(end, "segv"))
			raise(SIGSEGV);
		if (!strcmp(end, "kill"))
			raise(SIGKILL);
		if (!strcmp(end, "abort"))
			MPI_Abort(MPI_COMM_WORLD, 7);
	}
	if (!strcmp(end, "exit"))
		_exit(3);
	MPI_Barrier(MPI_COMM_WORLD);
	free(from);
	free(to);
	MPI_Finalize();
	return 0;
}
