// SPDX-License-Identifier: BSD-3-Clause
/* Other memory that the program maps over a block of the heap, or over static data once MPI_Init
 * has been: its peers read what was there, and go on. */
#include <sys/mman.h>

#include "pattern.h"

#define WORDS ((size_t)1 << 19)
#define BYTES (WORDS * sizeof(unsigned int))
#define PAGE  4096

static unsigned int array[2 * WORDS] __attribute__((aligned(PAGE)));

static void fill(unsigned int *data, unsigned int seed)
{
	pattern_fill(data, WORDS, seed);
	pattern_fill(data + WORDS, WORDS, seed);
}

/* Rank 1 reads its half. */
static void scatter(unsigned int *data, int rank, unsigned int seed, const char *what)
{
	static unsigned int got[WORDS];

	MPI_Scatter(data, (int)WORDS, MPI_UNSIGNED, got, (int)WORDS, MPI_UNSIGNED, 0,
		    MPI_COMM_WORLD);
	if (rank == 1)
		pattern_check(got, WORDS, seed, what);
}

static void check(unsigned int *data, int rank, const char *what)
{
	fill(data, 1);
	scatter(data, rank, 1, what);
	if (rank == 0 && mmap(data, 2 * BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != data)
		pattern_fail("mmap");
	fill(data, 2);
	scatter(data, rank, 1, what);
	pattern_check(data, WORDS, 2, "one's own memory");
}

int main(int argc, char **argv)
{
	unsigned int *block;
	int rank, size;

	pattern_start(&argc, &argv, 2, &rank, &size);
	block = aligned_alloc(PAGE, 2 * BYTES);
	if (!block)
		pattern_fail("no memory");
	check(block, rank, "a block that is covered");
	check(array, rank, "static data that is covered");
	MPI_Finalize();
	return 0;
}
