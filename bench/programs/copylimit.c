// SPDX-License-Identifier: BSD-3-Clause
/*
 * copylimit: the copy speed of this node with all ranks copying at once.
 *
 *	copylimit [seconds [cache-bytes]]
 *
 * Each rank copies blocks of 1 MiB between two arenas of its own, together four
 * times the caches (see collbench.c for why), with memcpy and with every kind of
 * non-temporal store the processor has. A line per way: bytes per second of all
 * ranks together. The best is the limit no collective that must copy its bytes
 * can pass.
 */
#include "ntcopy.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FACTOR 4
#define BLOCK  ((size_t)1 << 20)

static void copy_memcpy(void *dst, const void *src, size_t bytes)
{
	memcpy(dst, src, bytes);
}

static const struct ntcopy plain = {"memcpy", copy_memcpy};

static char *arena_create(size_t bytes, int rank)
{
	char *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (arena == MAP_FAILED) {
		fprintf(stderr, "copylimit: rank %d: no memory for %zu bytes\n", rank, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	madvise(arena, bytes, MADV_HUGEPAGE); /* advice: measured without where refused */
	memset(arena, rank + 1, bytes);
	return arena;
}

/* Seconds of @passes over the arenas, of the slowest rank. */
static double time_passes(const struct ntcopy *way, char *dst, const char *src, size_t blocks,
			  size_t passes)
{
	double start, mine, most;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (size_t i = 0; i < blocks * passes; i++)
		way->copy(dst + i % blocks * BLOCK, src + i % blocks * BLOCK, BLOCK);
	mine = MPI_Wtime() - start;
	MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
	size_t cache = argc > 2 ? strtoull(argv[2], NULL, 10) : (size_t)(l3 > 0 ? l3 : 32 << 20);
	const struct ntcopy *way = &plain;
	int rank, nranks;
	size_t blocks;
	char *src, *dst;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	blocks = cache * FACTOR / 2 / (size_t)nranks / BLOCK + 1;
	src = arena_create(blocks * BLOCK, rank);
	dst = arena_create(blocks * BLOCK, rank);
	if (rank == 0)
		printf("way,ranks,bytes_per_second\n");
	for (size_t i = 0; way; way = ntcopy_at(i++)) {
		double once = time_passes(way, dst, src, blocks, 1);
		size_t passes = (size_t)(seconds / once) + 1;
		double took = time_passes(way, dst, src, blocks, passes);

		if (rank == 0)
			printf("%s,%d,%.0f\n", way->name, nranks,
			       (double)(blocks * BLOCK * passes) * nranks / took);
	}
	munmap(dst, blocks * BLOCK);
	munmap(src, blocks * BLOCK);
	MPI_Finalize();
	return 0;
}
