// SPDX-License-Identifier: BSD-3-Clause
/*
 * For ranks that are started without descriptors 0, 1 and 2, and print all the same: the exit
 * status says whether their blocks have changed, and whether something of the library has one of
 * these numbers, which a child of fork prints to at once.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#define BLOCKS 64
#define BYTES  ((size_t)1 << 20)

static bool is_of_library(int fd)
{
	char path[32], to[256];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, to, sizeof(to) - 1);
	to[len > 0 ? len : 0] = '\0';
	return strstr(to, "onecopy") != NULL;
}

static bool holds(const char *block, int value)
{
	return block[0] == value && !memcmp(block, block + 1, BYTES - 1);
}

/* The child's word is not taken for a sign that it has its copy. */
static bool forks(char *block, int value)
{
	bool same = true;
	int status;
	pid_t pid = fork();

	if (!pid) {
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			same = write(fd, "x", 1) < 0 && same;
		usleep(20000);
		_exit(same && holds(block, value) ? 0 : 1);
	}
	memset(block, value + 1, BYTES);
	waitpid(pid, &status, 0);
	memset(block, value, BYTES);
	return !status;
}

int main(int argc, char **argv)
{
	char *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BYTES);
		if (!blocks[i])
			return 2;
		memset(blocks[i], i, BYTES);
	}
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (is_of_library(fd))
			return 3;
	if (!forks(blocks[3], 3))
		return 6;
	for (int step = 0; step < 20; step++) {
		printf("step %d: residual 0.12345\n", step);
		fflush(stdout);
		fprintf(stderr, "step %d is done\n", step);
	}
	MPI_Init(&argc, &argv);
	for (int turn = 0; turn < 4; turn++)
		MPI_Bcast(blocks[turn], (int)BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (is_of_library(fd))
			return 4;
	for (int i = 0; i < BLOCKS; i++)
		if (!holds(blocks[i], i))
			return 5;
	MPI_Finalize();
	return 0;
}
