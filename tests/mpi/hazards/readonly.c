// SPDX-License-Identifier: BSD-3-Clause
/* What is only sent need not be writable: blocks of the heap that the program has protected. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pattern.h"

#define WORDS ((size_t)256 << 10) /* 1 MiB */
#define RANKS 4

static int rank, size;

static unsigned int *protected_block(size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)pattern_alloc(bytes + 2 * page);

	at = (at + page - 1) & ~(page - 1);
	pattern_fill((unsigned int *)at, WORDS, (unsigned int)rank);
	if (mprotect((void *)at, bytes, PROT_READ))
		pattern_fail("mprotect");
	return (unsigned int *)at;
}

int main(int argc, char **argv)
{
	unsigned int *send, *recv;
	int part;

	pattern_start(&argc, &argv, RANKS, &rank, &size);
	send = protected_block(WORDS * sizeof(*send));
	recv = pattern_alloc(RANKS * WORDS * sizeof(*recv));
	part = (int)WORDS / size;
	for (int root = 0; root < size; root++) {
		memset(recv, 0, WORDS * sizeof(*recv));
		MPI_Bcast(rank == root ? send : recv, (int)WORDS, MPI_UNSIGNED, root,
			  MPI_COMM_WORLD);
		if (rank != root)
			pattern_check(recv, WORDS, (unsigned int)root, "bcast");
		MPI_Scatter(send, part, MPI_UNSIGNED, recv, part, MPI_UNSIGNED, root,
			    MPI_COMM_WORLD);
		MPI_Gather(send, (int)WORDS, MPI_UNSIGNED, recv, (int)WORDS, MPI_UNSIGNED, root,
			   MPI_COMM_WORLD);
		if (rank == root)
			pattern_check(recv + (size - 1) * WORDS, WORDS, (unsigned int)size - 1,
				      "gather");
		MPI_Allgather(send, (int)WORDS, MPI_UNSIGNED, recv, (int)WORDS, MPI_UNSIGNED,
			      MPI_COMM_WORLD);
		pattern_check(recv + root * WORDS, WORDS, (unsigned int)root, "allgather");
		MPI_Allreduce(send, recv, (int)WORDS, MPI_UNSIGNED, MPI_MAX, MPI_COMM_WORLD);
		MPI_Alltoall(send, part, MPI_UNSIGNED, recv, part, MPI_UNSIGNED, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
