// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program with a free() of its own, as those have that count allocations: over the C library's
 * functions (OWN_ALL, OWN_FREE), or over whatever comes next, which it looks up as it is first
 * called (OWN_LOOKUP). What it does not define comes from elsewhere.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "pattern.h"

#define WORDS 100000

#ifdef OWN_LOOKUP
void free(void *p)
{
	static void (*next)(void *);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "free");
	next(p);
}
#else
extern void __libc_free(void *p);

void free(void *p)
{
	__libc_free(p);
}
#endif

#ifdef OWN_ALL
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

void *malloc(size_t bytes)
{
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
	return __libc_realloc(p, bytes);
}
#endif

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (unsigned int turn = 0; turn < 20; turn++) {
		unsigned int *data = calloc(WORDS, sizeof(*data) / 2);
		void *aligned;

		data = realloc(data, WORDS * sizeof(*data));
		if (posix_memalign(&aligned, 64, WORDS * sizeof(*data)))
			pattern_fail("no memory");
		pattern_fill(data, WORDS, rank ? ~turn : turn);
		MPI_Bcast(data, WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		pattern_check(data, WORDS, turn, "bcast");
		memcpy(aligned, data, WORDS * sizeof(*data));
		MPI_Bcast(aligned, WORDS, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
		free(aligned);
		free(data);
	}
	MPI_Finalize();
	return 0;
}
