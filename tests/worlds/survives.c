// SPDX-License-Identifier: BSD-3-Clause
/*
 * One rank dies, in no call of ours or in one; the others hear of it, revoke the communicator,
 * agree on one without it and go on there: the user-level failure mitigation of Open MPI 5 and
 * MPICH. Without MPI_Finalize, in which Open MPI 5.0 now and then waits for the dead rank.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "moves.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#define BIG 1000000

int main(int argc, char **argv)
{
	int rank, size, err, ok = 1, flag;
	unsigned int *data = calloc(BIG, sizeof(*data));
	MPI_Comm rest;

	MPI_Init(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 3; i++)
		moves_do(MPI_COMM_WORLD, 1);
	if (rank == size / 2)
		raise(SIGKILL);
	for (err = 0; !err;)
		err = MPI_Allreduce(MPI_IN_PLACE, data, BIG, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
	MPIX_Comm_revoke(MPI_COMM_WORLD);
	if (MPIX_Comm_shrink(MPI_COMM_WORLD, &rest))
		pattern_fail("no communicator of those who are left");
	MPI_Comm_size(rest, &flag);
	if (flag != size - 1)
		pattern_fail("how many are left");
	for (int i = 0; i < 4; i++)
		moves_do(rest, 2);
	MPIX_Comm_agree(rest, &ok);
	if (!ok)
		pattern_fail("no agreement");
	/* What was revoked stays so, whoever would serve it. */
	if (!MPI_Bcast(data, BIG, MPI_UNSIGNED, 0, MPI_COMM_WORLD) ||
	    !MPI_Bcast(data, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD))
		pattern_fail("a call on a revoked communicator");
	MPI_Barrier(rest);
	puts("gone on");
	fflush(stdout);
	_exit(0);
}
