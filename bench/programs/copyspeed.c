// SPDX-License-Identifier: BSD-3-Clause
#include "copyspeed.h"

#include "ntcopy.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define FACTOR 4
#define BLOCK  ((size_t)1 << 20)
#define TRIES  3 /* measurements by which the ways are compared */
#define PASSES 8 /* of a measurement: long beside the time slices of ranks that share a core */
#define ENOUGH ((size_t)512 << 20) /* bytes of one, where caches are so large that fewer do */

static void copy_memcpy(void *dst, const void *src, size_t bytes)
{
	memcpy(dst, src, bytes);
}

static const struct ntcopy plain = {"memcpy", copy_memcpy};

static const struct ntcopy *best;
static char *from, *to;
static size_t blocks, passes;
static int nranks;

/* Not malloc(): these are nobody's buffers, whatever allocator is under us. */
static char *arena_create(size_t bytes)
{
	char *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (arena == MAP_FAILED) {
		fprintf(stderr, "copyspeed: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	madvise(arena, bytes, MADV_HUGEPAGE); /* advice: measured without where refused */
	memset(arena, 1, bytes);
	return arena;
}

/* One clock for all ranks of the node; MPI_Wtime() need not be. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* From the first rank's start to the last one's end: ranks that share a core take turns. */
static double measure(const struct ntcopy *way)
{
	double mine[2], most[2]; /* -start, end */

	MPI_Barrier(MPI_COMM_WORLD);
	mine[0] = -now();
	for (size_t pass = 0; pass < passes; pass++)
		for (size_t i = 0; i < blocks; i++)
			way->copy(to + i * BLOCK, from + i * BLOCK, BLOCK);
	mine[1] = now();
	MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return (double)(passes * blocks * BLOCK) * nranks / (most[1] + most[0]);
}

void copyspeed_init(size_t cache)
{
	const struct ntcopy *way = &plain;
	double most = 0;

	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	blocks = cache * FACTOR / 2 / (size_t)nranks / BLOCK + 1;
	passes = ENOUGH / (blocks * (size_t)nranks * BLOCK) + 1;
	if (passes > PASSES)
		passes = PASSES;
	from = arena_create(blocks * BLOCK);
	to = arena_create(blocks * BLOCK);
	for (size_t i = 0; way; way = ntcopy_at(i++)) {
		for (int try = 0; try < TRIES; try++) {
			double speed = measure(way);

			if (speed > most) {
				most = speed;
				best = way;
			}
		}
	}
}

void copyspeed_deinit(void)
{
	munmap(to, blocks * BLOCK);
	munmap(from, blocks * BLOCK);
}

double copyspeed_measure(void)
{
	return measure(best);
}
