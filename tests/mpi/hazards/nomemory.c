// SPDX-License-Identifier: BSD-3-Clause
/*
 * nomemory HERE|MPI: one rank has no memory to note that a communicator is new, in its first
 * large call: the library, or the MPI that is to keep the note. That is no error and keeps
 * nobody waiting.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int armed, starving; /* the next allocation of ours fails, of anybody's */
static int for_the_mpi, failed;

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

void *calloc(size_t n, size_t size)
{
	static void *(*real)(size_t, size_t);

	if (armed && n == 1 && size <= 64) {
		armed = 0;
		failed += !for_the_mpi;
		if (!for_the_mpi)
			return NULL;
		starving = 1;
	}
	if (!real) {
		void *found = next("calloc");

		memcpy(&real, &found, sizeof(real));
	}
	return real(n, size);
}

void *malloc(size_t size)
{
	static void *(*real)(size_t);

	if (starving) {
		starving = 0;
		failed++;
		return NULL;
	}
	if (!real) {
		void *found = next("malloc");

		memcpy(&real, &found, sizeof(real));
	}
	return real(size);
}

int main(int argc, char **argv)
{
	static char data[1 << 20];
	MPI_Comm comm;
	int rank, keyval;

	MPI_Init(&argc, &argv);
	for_the_mpi = argc == 2 && !strcmp(argv[1], "MPI");
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
	for (int again = 0; again < 3; again++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		/* Its table of attributes is there. */
		MPI_Comm_set_attr(comm, keyval, data);
		armed = rank == 1;
		for (int turn = 0; turn < 10; turn++) {
			memset(data, rank ? 0 : turn + 1, sizeof(data));
			if (MPI_Bcast(data, sizeof(data), MPI_BYTE, 0, comm) ||
			    data[sizeof(data) - 1] != turn + 1)
				MPI_Abort(MPI_COMM_WORLD, 1);
		}
		MPI_Comm_free(&comm);
	}
	if (rank == 1 && failed != 3)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Finalize();
	return 0;
}
