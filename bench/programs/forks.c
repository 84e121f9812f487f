// SPDX-License-Identifier: BSD-3-Clause
/*
 * forks [children [MiB]]: starts children in the usual ways (fork and exit,
 * fork and exec, posix_spawn, system) while MiB of large mallocs are alive.
 * Each forked child checks that it sees the parent's data and writes to its
 * own copy, which the parent then must not see.
 */
#include "figure.h"

#include <mpi.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 20)

extern char **environ;

static void child_wait(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void child_run(int i, char *block)
{
	char *argv[] = {"true", NULL};
	pid_t pid;

	switch (i % 4) {
	case 0:
		pid = fork();
		if (pid == 0) {
			int bad = block[0] != 1 || block[BLOCK - 1] != 1;

			block[0] = 2;
			_exit(bad);
		}
		child_wait(pid);
		break;
	case 1:
		pid = fork();
		if (pid == 0) {
			execvp(argv[0], argv);
			_exit(127);
		}
		child_wait(pid);
		break;
	case 2:
		if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
			MPI_Abort(MPI_COMM_WORLD, 1);
		child_wait(pid);
		break;
	case 3:
		if (system("exit 0"))
			MPI_Abort(MPI_COMM_WORLD, 1);
		break;
	}
	if (block[0] != 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	int children = (int)figure_argument(argc, argv, 1, 400);
	size_t nblocks = (size_t)figure_argument(argc, argv, 2, 16);
	char **blocks;
	double start;

	MPI_Init(&argc, &argv);
	blocks = calloc(nblocks + 1, sizeof(*blocks));
	for (size_t i = 0; blocks && i <= nblocks; i++) {
		blocks[i] = malloc(BLOCK);
		if (!blocks[i])
			MPI_Abort(MPI_COMM_WORLD, 2);
		memset(blocks[i], 1, BLOCK);
	}
	if (!blocks)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < children; i++)
		child_run(i, blocks[(size_t)i % (nblocks + 1)]);
	figure_print("forks", children / (MPI_Wtime() - start), "children/s");
	for (size_t i = 0; i <= nblocks; i++)
		free(blocks[i]);
	free(blocks);
	MPI_Finalize();
	return 0;
}
