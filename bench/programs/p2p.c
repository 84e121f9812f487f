// SPDX-License-Identifier: BSD-3-Clause
/*
 * p2p [sweeps]: point-to-point messages of 8 B to 4 KiB around a ring, blocking and not: those
 * that an MPI copies through memory of its own. Shows that onecopy does not slow them.
 */
#include "figure.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST ((size_t)4 << 10)
#define TIMES	32 /* of each size in turn */

static void exchange(char *out, char *in, int bytes, int left, int right)
{
	MPI_Request requests[2];

	MPI_Sendrecv(out, bytes, MPI_CHAR, right, 0, in, bytes, MPI_CHAR, left, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Irecv(in, bytes, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(out, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	int sweeps = (int)figure_argument(argc, argv, 1, 3000);
	char *out = malloc(LARGEST), *in = malloc(LARGEST);
	double start, messages = 0;
	int rank, nranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	if (!out || !in)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(out, rank, LARGEST);
	memset(in, -1, LARGEST);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int sweep = 0; sweep < sweeps; sweep++) {
		for (size_t size = 8; size <= LARGEST; size *= 8) {
			for (int i = 0; i < TIMES; i++)
				exchange(out, in, (int)size, (rank + nranks - 1) % nranks,
					 (rank + 1) % nranks);
			messages += 2.0 * TIMES;
		}
	}
	if (in[0] != (char)((rank + 1) % nranks))
		MPI_Abort(MPI_COMM_WORLD, 1);
	figure_print("p2p", messages / (MPI_Wtime() - start) / 1e6, "M/s");
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
