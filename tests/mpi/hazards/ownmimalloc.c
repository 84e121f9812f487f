// SPDX-License-Identifier: BSD-3-Clause
/* A program that is linked to libmimalloc, which is its own malloc(): memory of threads that have
 * ended passes to others, in a forked child, too. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

#define THREADS 4
#define EACH	100
#define BYTES	100000
#define SMALL	200000

static char *kept[THREADS * EACH];

static void *fill(void *arg)
{
	char **mine = arg;

	for (int i = 0; i < EACH; i++) {
		mine[i] = malloc(BYTES);
		memset(mine[i], i, BYTES);
	}
	return NULL;
}

static int use(void)
{
	for (int i = 0; i < THREADS * EACH; i++)
		if (kept[i][BYTES / 2] != i % EACH)
			return 1;
	for (int i = 0; i < SMALL; i++) {
		char *small = malloc(1000 + i % 5000);

		if (!small)
			return 2;
		small[0] = 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	MPI_Init(&argc, &argv);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, fill, kept + (size_t)i * EACH);
		pthread_join(thread, NULL);
	}
	pid = fork();
	if (!pid)
		_exit(use());
	if (waitpid(pid, &status, 0) != pid || status || use())
		pattern_fail("a child with malloc() of its parent's");
	for (unsigned int turn = 0; turn < 10; turn++)
		MPI_Bcast(kept[turn], BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
