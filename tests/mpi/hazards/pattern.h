/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_PATTERN_H
#define OC_TEST_PATTERN_H

/* Data that tells where it came from, for the programs of this directory. */

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static inline unsigned int pattern_at(unsigned int seed, size_t i)
{
	unsigned int x = seed * 2654435761u + (unsigned int)i * 40503u;

	return x ^ x >> 15;
}

static inline void pattern_fill(unsigned int *data, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		data[i] = pattern_at(seed, i);
}

static inline void pattern_fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

/* For programs that look at the errors of at most @most ranks. */
static inline void pattern_start(int *argc, char ***argv, int most, int *rank, int *size)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, size);
	if (*size > most)
		pattern_fail("too many ranks");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static inline void pattern_check(const unsigned int *data, size_t n, unsigned int seed,
				 const char *what)
{
	for (size_t i = 0; i < n; i++)
		if (data[i] != pattern_at(seed, i)) {
			fprintf(stderr, "%s: word %zu of %zu is %#x, not %#x\n", what, i, n,
				data[i], pattern_at(seed, i));
			MPI_Abort(MPI_COMM_WORLD, 2);
			exit(2);
		}
}

static inline void *pattern_alloc(size_t bytes)
{
	void *p = malloc(bytes);

	if (!p)
		pattern_fail("no memory");
	return p;
}

#endif
