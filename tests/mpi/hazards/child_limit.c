// SPDX-License-Identifier: BSD-3-Clause
/*
 * child_limit: a forked child of a rank that has its peers' arenas mapped limits its addresses. It
 * has as many beside its copy of the heap, and not as many again as its parent's peers take.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pattern.h"

#define GIB  ((size_t)1 << 30)
#define PART ((size_t)1 << 20)

static int can_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED && !munmap(p, bytes);
}

/* 0 if it holds. */
static int be_child(const char *block)
{
	struct rlimit two = {2 * GIB, 2 * GIB};

	if (setrlimit(RLIMIT_AS, &two))
		return 1;
	if (!can_map(GIB))
		return 2;
	if (can_map(3 * GIB))
		return 3;
	return memchr(block, 2, PART) ? 4 : 0;
}

int main(int argc, char **argv)
{
	char *block = malloc(PART);
	int rank, status = 0;
	pid_t child;

	if (!block)
		pattern_fail("no memory");
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	memset(block, 1, PART);
	MPI_Bcast(block, (int)PART, MPI_BYTE, 0, MPI_COMM_WORLD);
	child = fork();
	if (!child)
		_exit(be_child(block));
	if (waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "status %#x\n", (unsigned int)status);
		pattern_fail("a wrong limit");
	}
	free(block);
	MPI_Finalize();
	return 0;
}
