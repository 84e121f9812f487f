// SPDX-License-Identifier: BSD-3-Clause
/* limited WHEN: ranks limit their own address space, "before" MPI_Init or "after" it, and have room
 * in it, and are served, all the same. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 18)
#define LIMIT ((rlim_t)8 << 30)

static void *nothing(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	struct rlimit limit = {LIMIT, LIMIT};
	pthread_t thread;

	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "before") && setrlimit(RLIMIT_AS, &limit))
		return 3;
	MPI_Init(&argc, &argv);
	if (!strcmp(argv[1], "after") && setrlimit(RLIMIT_AS, &limit))
		return 3;
	if (mmap(NULL, LIMIT / 8, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		pattern_fail("no room for a mapping");
	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		pattern_fail("no room for a thread");
	for (unsigned int turn = 0; turn < 4; turn++) {
		unsigned int *data = pattern_alloc(WORDS * 4);
		int rank;

		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		pattern_fill(data, WORDS, turn + (rank ? 70 : 0));
		MPI_Bcast(data, (int)WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
		free(data);
	}
	MPI_Finalize();
	return 0;
}
