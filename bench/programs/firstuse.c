// SPDX-License-Identifier: BSD-3-Clause
/*
 * firstuse COUNT BYTES free|keep: broadcasts of buffers never used before, each
 * malloc()ed by every rank, written by the root, broadcast, read by the others,
 * and freed at once or, with keep, all at the end. All of it is timed: what a
 * mechanism spends on meeting and on losing a buffer shows here (100,000 such
 * broadcasts made an XPMEM-enabled MPI keep 900,000 mappings: pmodels/mpich
 * issue 7348).
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, nranks;

static uint64_t *buffer_create(size_t bytes)
{
	uint64_t *buffer = malloc(bytes);

	if (!buffer) {
		fprintf(stderr, "firstuse: rank %d: no memory for %zu bytes\n", rank, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return buffer;
}

/* Writes, broadcasts and reads one buffer. The number of wrong words. */
static size_t buffer_use(uint64_t *buffer, size_t words, uint64_t stamp)
{
	size_t errors = 0;

	for (size_t i = 0; rank == 0 && i < words; i++)
		buffer[i] = stamp + i;
	MPI_Bcast(buffer, (int)words, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	for (size_t i = 0; rank != 0 && i < words; i++)
		errors += buffer[i] != stamp + i;
	return errors;
}

/* Kept buffers must not drive the machine into swapping. */
static size_t affordable(size_t count, size_t bytes)
{
	size_t memory = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	unsigned long most = memory / 2 / (size_t)nranks / bytes;

	MPI_Bcast(&most, 1, MPI_UNSIGNED_LONG, 0, MPI_COMM_WORLD);
	return count < most ? count : most;
}

int main(int argc, char **argv)
{
	size_t count, bytes, words, freed = 0;
	unsigned long errors = 0, all = 0;
	double took, most = 0;
	uint64_t **kept;
	bool keep;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	if (argc != 4 || atol(argv[1]) < 1 || atol(argv[2]) < 8) {
		if (rank == 0)
			fprintf(stderr, "usage: firstuse COUNT BYTES free|keep\n");
		MPI_Finalize();
		return 2;
	}
	count = strtoull(argv[1], NULL, 10);
	bytes = strtoull(argv[2], NULL, 10);
	words = bytes / sizeof(uint64_t);
	keep = !strcmp(argv[3], "keep");
	if (keep)
		count = affordable(count, bytes);
	kept = calloc(count, sizeof(*kept));
	if (!kept)
		MPI_Abort(MPI_COMM_WORLD, 2);
	kept[0] = buffer_create(bytes);
	errors += buffer_use(kept[0], words, 1); /* connections */
	free(kept[0]);

	MPI_Barrier(MPI_COMM_WORLD);
	took = MPI_Wtime();
	for (size_t i = 0; i < count; i++) {
		kept[i] = buffer_create(bytes);
		errors += buffer_use(kept[i], words, i + 2);
		if (!keep)
			free(kept[freed++]);
	}
	while (freed < count)
		free(kept[freed++]);
	took = MPI_Wtime() - took;

	MPI_Reduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Allreduce(&errors, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("collective,bytes,ranks,mode,repetition,calls,usec,errors\n");
		printf("bcast,%zu,%d,first-use-%s,0,%zu,%.4f,%lu\n", bytes, nranks,
		       keep ? "keep" : "free", count, most * 1e6 / (double)count, all);
	}
	free(kept);
	MPI_Finalize();
	return all ? 1 : 0;
}
