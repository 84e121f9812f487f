// SPDX-License-Identifier: BSD-3-Clause
/* Static data over which the program maps other memory before MPI_Init. */
#include <sys/mman.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 20)

static unsigned int data[WORDS] __attribute__((aligned(4096)));
static unsigned int whole[WORDS];

int main(int argc, char **argv)
{
	int rank, size;

	if (mmap(data, sizeof(data), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != data)
		return 3;
	pattern_start(&argc, &argv, 64, &rank, &size);
	for (unsigned int turn = 0; turn < 6; turn++) {
		unsigned int *at = turn % 2 ? data : whole;

		pattern_fill(at, WORDS, rank == (int)turn % size ? turn : ~turn);
		MPI_Bcast(at, (int)WORDS, MPI_UNSIGNED, (int)turn % size, MPI_COMM_WORLD);
		pattern_check(at, WORDS, turn, "bcast");
		MPI_Sendrecv_replace(at, (int)WORDS, MPI_UNSIGNED, (rank + 1) % size, 0,
				     (rank + size - 1) % size, 0, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
		pattern_check(at, WORDS, turn, "message");
	}
	/* What is thrown away of either is zero. */
	for (int i = 0; i < 2; i++) {
		unsigned int *at = (i ? data : whole) + 4096;

		at += (4096 - (size_t)at % 4096) % 4096 / sizeof(*at);
		if (madvise(at, 8192, MADV_DONTNEED) || at[0] || at[2047] || !at[2048])
			pattern_fail("not thrown away");
	}
	MPI_Finalize();
	return 0;
}
