// SPDX-License-Identifier: BSD-3-Clause
/*
 * dies scatterv|gatherv|allreduce [late|fatal]: rank 2 of 4 dies, and the others make a call that,
 * if it has blocks, has a small one for rank 3. Each says how that ended, and leaves. Rank 3 may be
 * late, or the handler of errors the one that ends the job.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "pattern.h"

#define RANKS 4
#define DEAD  2
#define SMALL 1500 /* words: served by the MPI, and not without its receiver */
#define LARGE ((int)16 << 10)

static int rank, size;
static int counts[RANKS], displs[RANKS];
static unsigned int *out, *in;

static int call(const char *name)
{
	for (int r = 0; r < size; r++) {
		counts[r] = r == 3 ? SMALL : LARGE;
		displs[r] = r * LARGE;
		pattern_fill(out + displs[r], (size_t)counts[r], (unsigned int)(rank * RANKS + r));
	}
	if (!strcmp(name, "scatterv"))
		return MPI_Scatterv(out, counts, displs, MPI_UNSIGNED, in, counts[rank],
				    MPI_UNSIGNED, 0, MPI_COMM_WORLD);
	if (!strcmp(name, "allreduce"))
		return MPI_Allreduce(out, in, LARGE, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
	return MPI_Gatherv(out + displs[rank], counts[rank], MPI_UNSIGNED, in, counts, displs,
			   MPI_UNSIGNED, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	const char *word = argc > 2 ? argv[2] : "";
	char text[MPI_MAX_ERROR_STRING] = "";
	int err, class, len;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = pattern_alloc(RANKS * LARGE * 4);
	in = pattern_alloc(RANKS * LARGE * 4);
	if (strcmp(word, "fatal"))
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 6; i++)
		call(argv[1]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == DEAD)
		kill(getpid(), SIGKILL);
	if (rank == 3 && !strcmp(word, "late"))
		sleep(1);
	err = call(argv[1]);
	if (rank == 3 && !err && !strcmp(argv[1], "scatterv"))
		pattern_check(in, SMALL, 3, "scatterv");
	MPI_Error_class(err, &class);
	MPI_Error_string(err, text, &len);
	printf("rank %d: %s\n", rank, class == MPI_SUCCESS ? "success" : text);
	fflush(stdout);
	_exit(0); /* without MPI_Finalize, which would wait for the dead */
}
