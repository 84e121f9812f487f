// SPDX-License-Identifier: BSD-3-Clause
/*
 * mallocheavy [million-operations]: replaces blocks of 16 B to 1 MiB, sizes
 * uniform in their logarithm, in random order; some are calloc()ed, some grow
 * by realloc(). Every page of a block is written. Shows the cost of deciding
 * between the C library's heap and ours, and of ours.
 */
#include "figure.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 1024
#define PAGE   4096

struct block {
	char *p;
	size_t bytes;
};

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	/* G. Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003 */
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static size_t random_bytes(void)
{
	size_t power = (size_t)16 << next() % 16;

	return power + next() % power;
}

static void block_write(struct block *block, size_t from)
{
	for (size_t i = from; i < block->bytes; i += PAGE)
		block->p[i] = (char)i;
	memset(block->p, 1, block->bytes < 256 ? block->bytes : 256);
}

static void block_replace(struct block *block)
{
	uint64_t choice = next() % 8;
	size_t had = block->bytes;

	block->bytes = random_bytes();
	if (choice == 0) {
		block->p = realloc(block->p, block->bytes);
	} else {
		had = 0;
		free(block->p);
		block->p = choice == 1 ? calloc(1, block->bytes) : malloc(block->bytes);
	}
	if (!block->p)
		MPI_Abort(MPI_COMM_WORLD, 2);
	block_write(block, had < block->bytes ? had : 0);
}

int main(int argc, char **argv)
{
	size_t operations = (size_t)(figure_argument(argc, argv, 1, 0.3) * 1e6);
	static struct block blocks[BLOCKS];
	double start;

	MPI_Init(&argc, &argv);
	for (size_t i = 0; i < BLOCKS; i++)
		block_replace(&blocks[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (size_t i = 0; i < operations; i++)
		block_replace(&blocks[next() % BLOCKS]);
	figure_print("mallocheavy", (double)operations / (MPI_Wtime() - start) / 1e6, "Mop/s");
	for (size_t i = 0; i < BLOCKS; i++)
		free(blocks[i].p);
	MPI_Finalize();
	return 0;
}
