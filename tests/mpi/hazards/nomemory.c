// SPDX-License-Identifier: BSD-3-Clause
/* One rank has no memory to note that a communicator is new, in its first large call. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int armed;

void *calloc(size_t n, size_t size)
{
	static void *(*next)(size_t, size_t);

	if (armed && n == 1 && size <= 64) {
		armed = 0;
		return NULL;
	}
	if (!next) {
		void *found = dlsym(RTLD_NEXT, "calloc");

		memcpy(&next, &found, sizeof(next));
	}
	return next(n, size);
}

int main(int argc, char **argv)
{
	static char data[1 << 20];
	MPI_Comm comm;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	armed = rank == 1;
	for (int turn = 0; turn < 10; turn++)
		MPI_Bcast(data, sizeof(data), MPI_BYTE, 0, comm);
	MPI_Comm_free(&comm);
	MPI_Finalize();
	return 0;
}
